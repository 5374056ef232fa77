/** Values of a line that it does not show by itself. Pure. */

/** The places of values without a neighbour, which a line does not show. */
export function lonely(values: readonly (number | null | undefined)[]): number[] {
  return values.flatMap((value, at) =>
    value != null && values[at - 1] == null && values[at + 1] == null ? [at] : [],
  );
}
