/** Guesses which word was meant, for messages about unknown names. The work is bounded for every input. */

/** Longer words are not compared: a comparison costs the product of two lengths. */
const LENGTH_MAX = 64;

/** Edits of one letter that still match: one, and two in words of twice as many letters. */
const EDITS_MAX = 2;
const LETTERS_PER_EDIT = 4;

/** Shorter words and stems have too many neighbours for a guess. */
const GUESS_LENGTH_MIN = 3;

/**
 * The word of `known` that was probably meant: equal but for case and separators (`initialBackoff`), else with the
 * fewest edits (`timout`), else with the same stem (`retries` for `retry`, `length` for `len`).
 */
export function suggest(word: string, known: readonly string[]): string | undefined {
  return misspelt(word, known) ?? likest(word, known, stemOf);
}

/** By edits only: for names that users choose, where `transform_order` is no mistake for `transform`. */
export function misspelt(word: string, known: readonly string[]): string | undefined {
  return likest(word, known, (a, b) => {
    const most = editsAllowed(a, b);
    if (Math.abs(a.length - b.length) > most) return undefined;
    const edits = distance(a, b);
    return edits > most ? undefined : -edits;
  });
}

/** The first of the words with the greatest likeness. */
function likest(
  word: string,
  known: readonly string[],
  likenessOf: (a: string, b: string) => number | undefined,
): string | undefined {
  if (word.length > LENGTH_MAX) return undefined;
  const plain = normalise(word);
  let best: string | undefined;
  let most = Number.NEGATIVE_INFINITY;
  for (const candidate of known) {
    const likeness = likenessOf(plain, normalise(candidate));
    if (likeness === undefined || likeness <= most) continue;
    best = candidate;
    most = likeness;
  }
  return best;
}

/** Without case and separators: `HTTP-Request` and `httpRequest` are `httprequest`. */
function normalise(word: string): string {
  return word.toLowerCase().replace(/[\s_.-]/g, '');
}

/** Short words that begin differently (`mail`, `fail`) are different words. */
function editsAllowed(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  if (length < GUESS_LENGTH_MIN) return 0;
  if (length <= LETTERS_PER_EDIT && a[0] !== b[0]) return 0;
  return Math.min(EDITS_MAX, Math.max(1, Math.floor(length / LETTERS_PER_EDIT)));
}

/** Length of the common start, if that is nearly all of one word. */
function stemOf(a: string, b: string): number | undefined {
  let stem = 0;
  while (stem < a.length && a[stem] === b[stem]) stem += 1;
  const isStem = stem >= GUESS_LENGTH_MIN && stem >= Math.min(a.length, b.length) - 1;
  return isStem ? stem : undefined;
}

/** Insertions, deletions, replacements and swaps of neighbours from `a` to `b` (optimal string alignment). */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      let least = Math.min(replaced, row[j]! + 1, next[j - 1]! + 1);
      const isExchange = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isExchange) least = Math.min(least, before[j - 2]! + 1);
      next.push(least);
    }
    before = row;
    row = next;
  }
  return row[b.length]!;
}
