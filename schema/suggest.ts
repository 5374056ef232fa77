/**
 * Which word was probably meant: the one guess that messages about unknown names make, for members of
 * bodies and definitions, handlers, functions, filters and blocks alike. Bounded whatever the input.
 */

/** Longer words are nobody's slip; what is compared costs the product of two lengths. */
const LENGTH_MAX = 64;

/** Slips of one letter that still count: one, and two in words of twice so many letters. */
const SLIPS_MAX = 2;
const LETTERS_PER_SLIP = 4;

/** Shorter words and beginnings have too many neighbours for a guess. */
const GUESS_LENGTH_MIN = 3;

/**
 * The word of `known` that was probably meant by `word`: the same but for case and separators
 * (`initialBackoff`), else the one with the fewest slips (`timout`), else one with the same stem
 * (`retries` for `retry`, `length` for `len`). Undefined when none is near enough.
 */
export function suggest(word: string, known: readonly string[]): string | undefined {
  return misspelt(word, known) ?? sameStem(word, known);
}

/**
 * As `suggest`, but by slips only: for names that anybody may choose, such as those of handlers, where
 * `transform_order` is no mistake for `transform`.
 */
export function misspelt(word: string, known: readonly string[]): string | undefined {
  if (word.length > LENGTH_MAX) return undefined;
  const plain = normalise(word);
  let nearest: string | undefined;
  let fewest = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const other = normalise(candidate);
    const most = slipsAllowed(plain, other);
    if (Math.abs(plain.length - other.length) > most) continue;
    const slips = distance(plain, other);
    if (slips > most || slips >= fewest) continue;
    nearest = candidate;
    fewest = slips;
  }
  return nearest;
}

/** Without case and separators: `HTTP-Request` and `httpRequest` are `httprequest`. */
function normalise(word: string): string {
  return word.toLowerCase().replace(/[\s_.-]/g, '');
}

/** Short words that begin differently (`mail`, `fail`) are two words, not one with a slip. */
function slipsAllowed(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  if (length < GUESS_LENGTH_MIN) return 0;
  if (length <= LETTERS_PER_SLIP && a[0] !== b[0]) return 0;
  return Math.min(SLIPS_MAX, Math.max(1, Math.floor(length / LETTERS_PER_SLIP)));
}

/** The letters of the word that stand in the candidate's beginning, if those are most of either. */
function sameStem(word: string, known: readonly string[]): string | undefined {
  if (word.length > LENGTH_MAX) return undefined;
  const plain = normalise(word);
  let best: string | undefined;
  let longest = 0;
  for (const candidate of known) {
    const other = normalise(candidate);
    const stem = commonStart(plain, other);
    const isStem = stem >= GUESS_LENGTH_MIN && stem >= Math.min(plain.length, other.length) - 1;
    if (!isStem || stem <= longest) continue;
    best = candidate;
    longest = stem;
  }
  return best;
}

function commonStart(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  return at;
}

/**
 * Letters to insert, delete, replace or exchange with their neighbour to make `b` of `a` (optimal
 * string alignment).
 */
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
