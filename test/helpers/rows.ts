/** Rows by what a test is about, so that what is expected of them is one line. */

export function column<Row, Name extends keyof Row>(
  rows: Iterable<Row>,
  name: Name,
): readonly Row[Name][] {
  return [...rows].map((row) => row[name]);
}

/** The fields of each row, as one text. */
export function lines<Row>(rows: Iterable<Row>, ...names: readonly (keyof Row)[]): string[] {
  return [...rows].map((row) => names.map((name) => String(row[name])).join(' '));
}
