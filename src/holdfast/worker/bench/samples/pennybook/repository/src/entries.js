'use strict';

const { parseAmount } = require('./money');

const LINE = /^(\d{4}-\d{2}-\d{2})\s+(\S+)\s+(\S+)(?:\s+(.*))?$/;

/** A line that is no entry; `number` says which. */
class LedgerError extends Error {
  constructor(number, why) {
    super(`line ${number}: ${why}`);
    this.number = number;
  }
}

/** What stands before a comment. */
function withoutComment(line) {
  const at = line.indexOf('#');
  return (at < 0 ? line : line.slice(0, at)).trim();
}

/** The entries in the text of a ledger, in their order. */
function readEntries(text) {
  const entries = [];
  text.split('\n').forEach((raw, index) => {
    const line = withoutComment(raw);
    if (line === '') {
      return;
    }
    const found = LINE.exec(line);
    if (found === null) {
      throw new LedgerError(index + 1, `'${line}' is no entry`);
    }
    const [, date, account, amount, note = ''] = found;
    try {
      entries.push({ date, account, cents: parseAmount(amount), note });
    } catch (error) {
      throw new LedgerError(index + 1, error.message);
    }
  });
  return entries;
}

module.exports = { readEntries, LedgerError };
