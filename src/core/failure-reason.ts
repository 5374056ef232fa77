/**
 * The reason that messages of failures have in common: what tells one occurrence from another, such as the
 * number of an order, is folded away. The same rule in two forms, for messages that are here and for those
 * in the database, because instances are selected by their reasons (docs/operate/statistics.md). Pure.
 */

const QUOTED = '"[^"]*"|\'[^\']*\'|`[^`]*`';
const QUOTED_FOLDED = '"…"';
/** Words that have a digit: numbers, times and most ids. ASCII, so that both forms agree. */
const WORD = '[A-Za-z0-9_-]';
const ID_FOLDED = '#';

const QUOTES = new RegExp(QUOTED, 'g');
const WORDS = new RegExp(`${WORD}+`, 'g');

/** `order 123 refused` and `order 456 refused` are both `order # refused`. */
export function foldReason(message: string): string {
  // Word by word rather than by one expression, which would read long words again and again.
  return message
    .replace(QUOTES, QUOTED_FOLDED)
    .replace(WORDS, (word) => (/\d/.test(word) ? ID_FOLDED : word));
}

/** The same of an SQL expression that gives a text. */
export function foldedSql(message: string): string {
  const quotesFolded = `regexp_replace(${message}, '${QUOTED.replaceAll("'", "''")}', '${QUOTED_FOLDED}', 'g')`;
  return `regexp_replace(${quotesFolded}, '${WORD}*[0-9]${WORD}*', '${ID_FOLDED}', 'g')`;
}
