'use strict';

const assert = require('node:assert');
const test = require('node:test');
const { LedgerError, readEntries } = require('../src/entries');

const note = (text) => readEntries(`2031-04-02 gifts -20.00 ${text}\n`)[0].note;

test('what is quoted is taken as it is', () => {
  assert.strictEqual(note('"card #3" # for the neighbours'), 'card #3');
  assert.strictEqual(note('"# 7"'), '# 7');
});

test('a note without quotes is as it was', () => {
  assert.strictEqual(note('card # 3'), 'card');
  assert.strictEqual(note(''), '');
});

test('quotes in a comment mean nothing', () => {
  assert.strictEqual(note('card # a 5" one'), 'card');
  assert.deepStrictEqual(readEntries('# so "called\n'), []);
});

test('a quote that is not closed is named', () => {
  assert.throws(
    () => readEntries('# April\n2031-04-02 gifts -20.00 "card #3\n'),
    (error) =>
      error instanceof LedgerError &&
      error.number === 2 &&
      error.message.includes('a quote is not closed'),
  );
});
