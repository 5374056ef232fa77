/** Columns of rows, for comparing what a test is about and nothing else. */

export const column = <Row, Key extends keyof Row>(rows: Iterable<Row>, key: Key): Row[Key][] =>
  [...rows].map((row) => row[key]);

/** Each row as a list of these fields, in this order. */
export function columns<Row, Key extends keyof Row>(
  rows: readonly Row[],
  ...keys: readonly Key[]
): Row[Key][][] {
  return rows.map((row) => keys.map((key) => row[key]));
}

/** The fields of each row, as one text. */
export const lines = <Row>(rows: Iterable<Row>, ...names: readonly (keyof Row)[]): string[] =>
  [...rows].map((row) => names.map((name) => String(row[name])).join(' '));
