'use strict';

const { formatAmount } = require('./money');
const { padLeft, padRight } = require('./pad');

/** Names and amounts in two columns, and a last line with their sum. */
function table(sums, sum) {
  const rows = [...sums].map(([name, cents]) => [name, formatAmount(cents)]);
  rows.push(['total', formatAmount(sum)]);
  const left = Math.max(...rows.map(([name]) => name.length));
  const right = Math.max(...rows.map(([, amount]) => amount.length));
  return rows
    .map(([name, amount]) => `${padRight(name, left)}  ${padLeft(amount, right)}`)
    .join('\n');
}

module.exports = { table };
