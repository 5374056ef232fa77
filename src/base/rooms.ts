/** Rooms (modules) of a shard or the front thread. Each row of a table belongs to one room. */

/** Flattens rooms and their parts; parts precede their room. */
export function withParts<Room extends { readonly parts?: readonly (Room | undefined)[] }>(
  rooms: readonly (Room | undefined)[],
): Room[] {
  return rooms.flatMap((room) => (room ? [...withParts<Room>(room.parts ?? []), room] : []));
}

/** Merges the tables of all rooms; `NoneIsMissing` checks completeness. @throws Error for a duplicate row */
export function joined<Rows extends object>(tables: readonly (Partial<Rows> | undefined)[]): Rows {
  const rows: Record<string, unknown> = {};
  for (const [name, row] of tables.flatMap((table) => Object.entries(table ?? {}))) {
    if (Object.hasOwn(rows, name)) throw new Error(`two rooms take ${name}`);
    rows[name] = row;
  }
  return rows as Rows;
}

/** The row names of a room and its parts in one table. */
export type RowsOf<Table extends string, Opened> =
  | (Opened extends { readonly [Key in Table]?: infer Rows } ? keyof NonNullable<Rows> : never)
  | (Opened extends { readonly parts: readonly (infer Part)[] } ? RowsOf<Table, Part> : never);

export type NoneIsMissing<_Missing extends never> = true;
