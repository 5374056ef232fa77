/**
 * Texts that are the same in another case, in all of Unicode and whatever the locale of a database
 * (docs/decisions/0016-lists.md). Pure.
 *
 * What Postgres's own `lower` changes depends on the locale of its database: nothing beyond ASCII in `C`. So letters
 * are folded here, and the database is told the few that it has to change.
 */

/** What a text that is looked for becomes, and by which letters others are made comparable with it. */
export interface Sought {
  readonly text: string;
  /** Letters, each of which becomes the one in its place in `to`; those without one are left out. */
  readonly from: string;
  readonly to: string;
}

/** The dot of a Turkish capital, which small letters do not have. */
const DOT = '\u0307';

/** Small letters that no capital leads to: final sigma, dotless i, iota below, and old forms of Cyrillic ones. */
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

/** Every letter with its marks behind it, and ligatures as letters: as Postgres decomposes it, too. */
export function decomposed(text: string): string {
  return text.normalize('NFKD').replace(/[ßẞ]/g, 'ss');
}

/** Where one of the mappings makes several letters of it, the letter is left as it is. */
export function foldLetter(letter: string): string {
  const upper = single(letter.toUpperCase(), letter);
  return single(upper.toLowerCase(), upper);
}

/** All others that fold to it. */
function likeLetters(folded: string): Set<string> {
  const upper = single(folded.toUpperCase(), folded);
  const all = [upper, ...[...FURTHER].filter((letter) => foldLetter(letter) === folded)];
  return new Set(all.filter((letter) => letter !== folded && foldLetter(letter) === folded));
}

function single(letters: string, otherwise: string): string {
  return [...letters].length === 1 ? letters : otherwise;
}
