/**
 * Case-insensitive comparison of texts, in all of Unicode and independent of the locale of a database
 * (docs/decisions/0016-lists.md). Pure.
 *
 * Postgres's `lower` depends on the locale of its database: nothing beyond ASCII in `C`. So letters are
 * folded here, and the database gets the few that it has to map.
 */

/** The folded search text, and the letters that make stored texts comparable with it. */
export interface Sought {
  readonly text: string;
  /** Letters, each mapped to the one at its index in `to`; those without one are removed. */
  readonly from: string;
  readonly to: string;
}

/** The dot of a Turkish capital, which small letters do not have. */
const DOT = '\u0307';

/** Small letters without a capital: final sigma, dotless i, iota below, and old Cyrillic forms. */
const FURTHER = 'ς\u0131\u0345ᲀᲁᲂᲃᲄᲅᲆᲇᲈ';

/** For `strpos(translate(decomposed, from, to), text)`; see `decomposed`. */
export function soughtInAnyCase(text: string): Sought {
  const letters = new Map<string, string>();
  let folded = '';
  for (const letter of decomposed(text)) {
    const one = foldLetter(letter);
    folded += one;
    for (const like of likeLetters(one)) letters.set(like, one);
  }
  const bare = folded.replaceAll(DOT, '');
  const from = [...letters.keys(), ...(bare === '' ? [] : DOT)].join('');
  return { text: bare || folded, from, to: [...letters.values()].join('') };
}

/** Every letter followed by its marks, and ligatures as letters, as Postgres decomposes them too. */
export function decomposed(text: string): string {
  return text.normalize('NFKD').replace(/[ßẞ]/g, 'ss');
}

/** A letter that a mapping turns into several letters is left as it is. */
function foldLetter(letter: string): string {
  const upper = single(letter.toUpperCase(), letter);
  return single(upper.toLowerCase(), upper);
}

/** All other letters that fold to it. */
function likeLetters(folded: string): Set<string> {
  const upper = single(folded.toUpperCase(), folded);
  const all = [upper, ...[...FURTHER].filter((letter) => foldLetter(letter) === folded)];
  return new Set(all.filter((letter) => letter !== folded && foldLetter(letter) === folded));
}

function single(letters: string, otherwise: string): string {
  return [...letters].length === 1 ? letters : otherwise;
}
