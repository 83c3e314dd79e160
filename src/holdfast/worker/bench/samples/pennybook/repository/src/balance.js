'use strict';

/** What each account holds, by name. */
function byAccount(entries) {
  const sums = new Map();
  for (const entry of entries) {
    sums.set(entry.account, (sums.get(entry.account) || 0) + entry.cents);
  }
  return new Map([...sums].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** What all accounts hold together. */
function total(entries) {
  return entries.reduce((sum, entry) => sum + entry.cents, 0);
}

module.exports = { byAccount, total };
