'use strict';

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const balance = require('../src/balance');
const { main } = require('../src/cli');

const LEDGER = '2031-05-02 food -7.25\n2031-04-02 food -12.50\n2031-04-03 wages 1800.00\n';

test('months are summed in the order of the calendar', () => {
  const entries = [
    { date: '2032-01-05', account: 'a', cents: 3 },
    { date: '2031-12-31', account: 'b', cents: -5 },
    { date: '2031-12-01', account: 'a', cents: 10 },
  ];
  assert.deepStrictEqual([...balance.byMonth(entries)], [['2031-12', 5], ['2032-01', 3]]);
  assert.strictEqual(balance.byMonth([]).size, 0);
});

test('the command shows months, or accounts', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'pennybook-'));
  const file = path.join(folder, 'ledger.txt');
  fs.writeFileSync(file, LEDGER);
  const said = [];
  const print = (line) => said.push(line);
  assert.strictEqual(main(['--by', 'month', file], print, print), 0);
  assert.strictEqual(said.pop(), '2031-04  1787.50\n2031-05    -7.25\ntotal    1780.25');
  assert.strictEqual(main(['--by', 'account', file], print, print), 0);
  assert.strictEqual(main([file], print, print), 0);
  assert.strictEqual(said[0], said[1]);
  assert.match(said[0], /^food /);
  for (const words of [['--by', 'year', file], ['--by', file], ['--by'], []]) {
    assert.strictEqual(main(words, print, print), 2, words.join(' '));
  }
  fs.rmSync(folder, { recursive: true });
});
