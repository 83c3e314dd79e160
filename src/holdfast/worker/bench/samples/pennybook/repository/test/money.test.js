'use strict';

const assert = require('node:assert');
const test = require('node:test');
const { formatAmount, parseAmount } = require('../src/money');

test('an amount is read as cents', () => {
  assert.strictEqual(parseAmount('12.50'), 1250);
  assert.strictEqual(parseAmount('-3'), -300);
});

test('what is no amount is refused', () => {
  assert.throws(() => parseAmount('12,50'), RangeError);
  assert.throws(() => parseAmount('1.234'), RangeError);
});

test('cents are written with two digits', () => {
  assert.strictEqual(formatAmount(1205), '12.05');
  assert.strictEqual(formatAmount(-5), '-0.05');
});
