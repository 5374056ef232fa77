/** Which rows stay at the top of a timeline while it is scrolled: those around the first visible one. Pure. */

/** More would hide what they are about. */
const HEADS_MAX = 3;

/** For each row the index of the row around it; -1 for none. @param depths of the rows, in their order */
export function rowsAround(depths: readonly number[]): readonly number[] {
  const open: number[] = [];
  return depths.map((depth, index) => {
    while (open.length > 0 && depths[open.at(-1)!]! >= depth) open.pop();
    const around = open.at(-1) ?? -1;
    open.push(index);
    return around;
  });
}

/** @param first the index of the first row of which a part is visible */
export function headsAt(around: readonly number[], first: number): readonly number[] {
  let heads: readonly number[] = [];
  for (;;) {
    const all: number[] = [];
    // The heads cover as many rows.
    let row = around[Math.min(first + heads.length, around.length - 1)] ?? -1;
    for (; row >= 0; row = around[row]!) all.unshift(row);
    // Others are where their head would be, or below.
    const shown = all.slice(0, HEADS_MAX).filter((index, place) => index <= first + place);
    if (shown.length <= heads.length) return shown;
    heads = shown;
  }
}
