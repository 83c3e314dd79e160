'use strict';

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const { main } = require('../src/cli');

const LEDGER = '2031-04-02 food -12.50 milk\n2031-04-03 wages 1800.00\n2031-05-02 food -7.25\n';

function run(ledger, ...words) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'pennybook-'));
  const file = path.join(folder, 'ledger.txt');
  fs.writeFileSync(file, ledger);
  const said = [];
  const code = main([...words, file], (line) => said.push(line), (line) => said.push(line));
  fs.rmSync(folder, { recursive: true });
  return [code, said.join('\n')];
}

test('the balance of each account is printed', () => {
  const [code, said] = run(LEDGER);
  assert.strictEqual(code, 0);
  assert.strictEqual(said, 'food    -19.75\nwages  1800.00\ntotal  1780.25');
});

test('a broken ledger is told', () => {
  const [code, said] = run('food 3\n');
  assert.strictEqual(code, 1);
  assert.match(said, /^line 1: /);
});
