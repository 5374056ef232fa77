/**
 * Keeps the rows of a list in place while the user is about to act on them, so that the second click of a double click
 * does not hit another row. Pure.
 */

export interface SteadyRow<Row> {
  readonly row: Row;
  /** No longer in the list. */
  readonly isGone: boolean;
  /** On a later page now, so it is no longer updated. */
  readonly isBehind: boolean;
}

export interface Steady<Row> {
  readonly rows: readonly SteadyRow<Row>[];
  /** New rows that are not shown yet. */
  readonly waiting: number;
}

export interface SteadyOptions {
  /** New rows are added below at once instead of waiting. */
  readonly appends?: boolean;
  /** There is another page: new rows have moved the last ones to it. */
  readonly hasMore?: boolean;
}

/**
 * @param shown the rows on the screen
 * @param rows the current rows of the list
 * @returns the rows on the screen in their order, updated, including removed ones
 */
export function steadyRows<Row>(
  shown: readonly SteadyRow<Row>[],
  rows: readonly Row[],
  idOf: (row: Row) => string,
  { appends = false, hasMore = false }: SteadyOptions,
): Steady<Row> {
  const left = new Map(rows.map((row) => [idOf(row), row]));
  const current = shown.map(({ row }) => {
    const id = idOf(row);
    const now = left.get(id);
    left.delete(id);
    return now;
  });
  const last = current.findLastIndex((row) => row !== undefined);
  const stayed = shown.map(({ row }, at) => {
    const now = current[at];
    const isBehind = hasMore && at > last;
    return { row: now ?? row, isGone: now === undefined && !isBehind, isBehind };
  });
  const fresh = appends ? freshRows([...left.values()]) : [];
  return { rows: [...stayed, ...fresh], waiting: appends ? 0 : left.size };
}

export const freshRows = <Row>(rows: readonly Row[]): readonly SteadyRow<Row>[] =>
  rows.map((row) => ({ row, isGone: false, isBehind: false }));
