'use strict';

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const { main } = require('../src/cli');
const { formatAmount } = require('../src/money');
const { table } = require('../src/table');

test('thousands are grouped if that is asked for', () => {
  assert.strictEqual(formatAmount(123456789, { group: true }), '1,234,567.89');
  assert.strictEqual(formatAmount(-123400, { group: true }), '-1,234.00');
  assert.strictEqual(formatAmount(99999, { group: true }), '999.99');
  assert.strictEqual(formatAmount(-5, { group: true }), '-0.05');
});

test('they are not if it is not', () => {
  assert.strictEqual(formatAmount(123456789), '1234567.89');
});

test('columns stay aligned', () => {
  const sums = new Map([['a', 123456], ['bank', -50]]);
  assert.strictEqual(
    table(sums, 123406, { group: true }),
    'a      1,234.56\nbank      -0.50\ntotal  1,234.06',
  );
});

test('the command takes it', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'pennybook-'));
  const file = path.join(folder, 'ledger.txt');
  fs.writeFileSync(file, '2031-04-03 wages 1800.00\n');
  const said = [];
  const print = (line) => said.push(line);
  assert.strictEqual(main(['--group', file], print, print), 0);
  assert.strictEqual(main([file], print, print), 0);
  assert.deepStrictEqual(said, [
    'wages  1,800.00\ntotal  1,800.00',
    'wages  1800.00\ntotal  1800.00',
  ]);
  assert.strictEqual(main(['--grope', file], print, print), 2);
  assert.strictEqual(main(['--group'], print, print), 2);
  fs.rmSync(folder, { recursive: true });
});
