/** Lists of rooms of a shard or of the front thread: a room may have parts, and each row of a table has one room. */

/** The rooms and their parts in order; parts come before their room. */
export function withParts<Room extends { readonly parts?: readonly (Room | undefined)[] }>(
  rooms: readonly (Room | undefined)[],
): Room[] {
  return rooms.flatMap((room) => (room ? [...withParts<Room>(room.parts ?? []), room] : []));
}

/**
 * One table of those of all rooms; `NoneIsMissing` checks that it is complete. @throws Error when two rooms have the
 * same row
 */
export function joined<Rows extends object>(tables: readonly (Partial<Rows> | undefined)[]): Rows {
  const rows: Record<string, unknown> = {};
  for (const [name, row] of tables.flatMap((table) => Object.entries(table ?? {}))) {
    if (Object.hasOwn(rows, name)) throw new Error(`two rooms take ${name}`);
    rows[name] = row;
  }
  return rows as Rows;
}

/** The names of the rows that a room and its parts have in that table. */
export type RowsOf<Table extends string, Opened> =
  | (Opened extends { readonly [Key in Table]?: infer Rows } ? keyof NonNullable<Rows> : never)
  | (Opened extends { readonly parts: readonly (infer Part)[] } ? RowsOf<Table, Part> : never);

/** Does not compile when rows are missing. */
export type NoneIsMissing<_Missing extends never> = true;
