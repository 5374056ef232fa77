/**
 * Lists that stay as they are while somebody is about to act on them: of what a list holds by now, what is shown.
 * A second click of a double click must not meet another row. Pure.
 */

export interface SteadyRow<Row> {
  readonly row: Row;
  /** It is in the list no longer. */
  readonly isGone: boolean;
}

export interface Steady<Row> {
  readonly rows: readonly SteadyRow<Row>[];
  /** New ones that are not shown yet. */
  readonly waiting: number;
}

/**
 * @param shown what stands there
 * @param rows what the list holds
 * @param appends whether new ones come below those that are shown, and do not wait
 * @returns the shown ones in their order and as they are now, with those that are gone
 */
export function steadyRows<Row>(
  shown: readonly SteadyRow<Row>[],
  rows: readonly Row[],
  idOf: (row: Row) => string,
  appends: boolean,
): Steady<Row> {
  const left = new Map(rows.map((row) => [idOf(row), row]));
  const stayed = shown.map(({ row }) => {
    const id = idOf(row);
    const now = left.get(id);
    left.delete(id);
    return { row: now ?? row, isGone: now === undefined };
  });
  const fresh = appends ? freshRows([...left.values()]) : [];
  return { rows: [...stayed, ...fresh], waiting: appends ? 0 : left.size };
}

export const freshRows = <Row>(rows: readonly Row[]): readonly SteadyRow<Row>[] =>
  rows.map((row) => ({ row, isGone: false }));
