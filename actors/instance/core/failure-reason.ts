/**
 * Folds failure messages that differ only in numbers, ids or quoted text into one reason. The rule
 * exists for messages in memory and for SQL, where it selects instances
 * (docs/operate/statistics.md).
 */

const QUOTED = '"[^"]*"|\'[^\']*\'|`[^`]*`';
const QUOTED_FOLDED = '"…"';
/** Words with a digit: numbers, times and most ids. ASCII only, so that both forms agree. */
const WORD = '[A-Za-z0-9_-]';
const ID_FOLDED = '#';
/** Classes of characters below 128; 0: none of these. */
const LETTER = 1;
const DIGIT = 2;
const QUOTE = 3;
const KINDS = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code);
  if (/[0-9]/.test(character)) return DIGIT;
  if (/[A-Za-z_-]/.test(character)) return LETTER;
  return /["'`]/.test(character) ? QUOTE : 0;
});

/** `order 123 refused` and `order 456 refused` both become `order # refused`. */
export function foldReason(message: string): string {
  // Regular expressions would take fifty times as long, and one answer folds thousands of messages.
  let folded = '';
  /** The message up to this index is in `folded`. */
  let done = 0;
  let at = 0;
  while (at < message.length) {
    const kind = KINDS[message.charCodeAt(at)];
    const begin = at;
    at += 1;
    if (kind === QUOTE) {
      const end = message.indexOf(message.charAt(begin), at);
      if (end < 0) continue;
      at = end + 1;
      folded += message.slice(done, begin) + QUOTED_FOLDED;
      done = at;
    } else if (kind === LETTER || kind === DIGIT) {
      let hasDigit = kind === DIGIT;
      for (; at < message.length; at += 1) {
        const next = KINDS[message.charCodeAt(at)];
        if (next === DIGIT) hasDigit = true;
        else if (next !== LETTER) break;
      }
      if (!hasDigit) continue;
      folded += message.slice(done, begin) + ID_FOLDED;
      done = at;
    }
  }
  return done === 0 ? message : folded + message.slice(done);
}

/** The same as an SQL expression. */
export function foldedSql(message: string): string {
  const quotesFolded = `regexp_replace(${message}, '${QUOTED.replaceAll("'", "''")}', '${QUOTED_FOLDED}', 'g')`;
  return `regexp_replace(${quotesFolded}, '${WORD}*[0-9]${WORD}*', '${ID_FOLDED}', 'g')`;
}
