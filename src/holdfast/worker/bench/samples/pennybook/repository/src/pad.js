'use strict';

/** A text of this width, filled with blanks on its right. */
function padRight(text, width) {
  return text + ' '.repeat(Math.max(0, width - text.length));
}

/** A text of this width, filled with blanks on its left. */
function padLeft(text, width) {
  return ' '.repeat(Math.max(0, width - text.length)) + text;
}

module.exports = { padRight, padLeft };
