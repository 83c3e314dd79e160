'use strict';

const fs = require('node:fs');
const { byAccount, total } = require('./balance');
const { LedgerError, readEntries } = require('./entries');
const { table } = require('./table');

/** Run the command; its exit code. `print` and `complain` take lines. */
function main(words, print = console.log, complain = console.error) {
  if (words.length !== 1) {
    complain('usage: pennybook FILE');
    return 2;
  }
  try {
    const entries = readEntries(fs.readFileSync(words[0], 'utf8'));
    print(table(byAccount(entries), total(entries)));
    return 0;
  } catch (error) {
    if (error instanceof LedgerError) {
      complain(error.message);
      return 1;
    }
    throw error;
  }
}

if (require.main === module) {
  process.exitCode = main(process.argv.slice(2));
}

module.exports = { main };
