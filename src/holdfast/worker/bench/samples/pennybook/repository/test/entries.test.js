'use strict';

const assert = require('node:assert');
const test = require('node:test');
const { LedgerError, readEntries } = require('../src/entries');

test('an entry has a date, an account, cents and a note', () => {
  const [entry] = readEntries('2031-04-02 food -12.50 milk and bread\n');
  assert.deepStrictEqual(entry, {
    date: '2031-04-02',
    account: 'food',
    cents: -1250,
    note: 'milk and bread',
  });
});

test('comments and empty lines are skipped', () => {
  const entries = readEntries('# April\n\n2031-04-03 wages 1800.00 # paid early\n');
  assert.deepStrictEqual(entries.map((entry) => entry.note), ['']);
});

test('a line that is no entry is named', () => {
  assert.throws(
    () => readEntries('2031-04-02 food -12.50\nfood 3\n'),
    (error) => error instanceof LedgerError && error.number === 2,
  );
});
