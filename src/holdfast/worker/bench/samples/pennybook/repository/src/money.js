'use strict';

// Amounts are whole cents, so that sums are exact.

const AMOUNT = /^([+-]?)(\d+)(?:\.(\d{1,2}))?$/;

/** The cents in a text such as "-12.50"; throws a RangeError if it is no amount. */
function parseAmount(text) {
  if (!AMOUNT.test(text)) {
    throw new RangeError(`'${text}' is no amount`);
  }
  return Math.trunc(parseFloat(text) * 100);
}

/** Cents as text, with two digits behind the point. */
function formatAmount(cents) {
  const sign = cents < 0 ? '-' : '';
  const whole = Math.trunc(Math.abs(cents) / 100);
  const rest = String(Math.abs(cents) % 100).padStart(2, '0');
  return `${sign}${whole}.${rest}`;
}

module.exports = { parseAmount, formatAmount };
