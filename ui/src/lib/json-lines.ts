/** Splits a JSON text into parts of a given number of lines of limited length. Pure. */

/** Long single-line texts, such as a base64 image, are broken here. */
export const LINE_CHARACTERS_MAX = 200;

/** The offset after each line break; a very long line has several ends. */
export function lineEnds(text: string): readonly number[] {
  const ends: number[] = [];
  for (let from = 0; from < text.length; ) {
    const at = text.indexOf('\n', from);
    const end = at < 0 ? text.length : at + 1;
    while (end - from > LINE_CHARACTERS_MAX) {
      from += LINE_CHARACTERS_MAX;
      ends.push(from);
    }
    ends.push(end);
    from = end;
  }
  return ends;
}

/** The first `lines` lines, in parts of `size` lines each. */
export function partsOf(
  text: string,
  ends: readonly number[],
  lines: number,
  size: number,
): readonly string[] {
  const parts: string[] = [];
  for (let at = 0; at < lines; at += size) {
    parts.push(text.slice(ends[at - 1] ?? 0, ends[Math.min(at + size, lines) - 1]));
  }
  return parts;
}
