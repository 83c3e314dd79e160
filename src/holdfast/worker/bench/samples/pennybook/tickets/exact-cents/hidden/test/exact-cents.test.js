'use strict';

const assert = require('node:assert');
const test = require('node:test');
const { formatAmount, parseAmount } = require('../src/money');

test('every amount below a thousand is read exactly', () => {
  for (let cents = 0; cents < 100000; cents += 1) {
    assert.strictEqual(parseAmount(formatAmount(cents)), cents);
  }
});

test('signs and short fractions', () => {
  assert.strictEqual(parseAmount('-0.29'), -29);
  assert.strictEqual(parseAmount('+1.1'), 110);
  assert.strictEqual(parseAmount('-0.07'), -7);
});

test('large amounts are exact or refused', () => {
  assert.strictEqual(parseAmount('90071992547409.91'), 9007199254740991);
  assert.throws(() => parseAmount('90071992547409.92'), RangeError);
});

test('there is no minus zero', () => {
  assert.ok(Object.is(parseAmount('-0.00'), 0));
});
