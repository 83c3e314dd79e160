'use strict';

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const { main } = require('../src/cli');
const { csv } = require('../src/csv');

test('names and amounts are parted by commas', () => {
  const sums = new Map([['food', -1975], ['rent', -80000]]);
  assert.strictEqual(csv(sums, -81975), 'account,amount\nfood,-19.75\nrent,-800.00\ntotal,-819.75');
});

test('names with commas and quotes are quoted', () => {
  const sums = new Map([['a,b', 1], ['5"-pipe', 2]]);
  assert.strictEqual(csv(sums, 3), 'account,amount\n"a,b",0.01\n"5""-pipe",0.02\ntotal,0.03');
});

test('the command prints it', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'pennybook-'));
  const file = path.join(folder, 'ledger.txt');
  fs.writeFileSync(file, '2031-04-02 food -12.50\n');
  const said = [];
  const print = (line) => said.push(line);
  assert.strictEqual(main(['--csv', file], print, print), 0);
  assert.strictEqual(main([file], print, print), 0);
  assert.deepStrictEqual(said, [
    'account,amount\nfood,-12.50\ntotal,-12.50',
    'food   -12.50\ntotal  -12.50',
  ]);
  assert.strictEqual(main(['--csv'], print, print), 2);
  fs.rmSync(folder, { recursive: true });
});

test('nobody pads by hand any more', () => {
  assert.ok(!fs.existsSync(path.join(__dirname, '..', 'src', 'pad.js')));
});
