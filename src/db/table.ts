/** What is said of a table of the engine (`tables.ts`). Pure. */

export type BaseType =
  | 'uuid'
  | 'text'
  | 'smallint'
  | 'integer'
  | 'bigint'
  | 'boolean'
  | 'json'
  | 'timestamptz'
  | 'bytea';
/** A question mark: the column may be null. */
export type ColumnType = BaseType | `${BaseType}?`;

export interface Table {
  /** The primary key, in its order. */
  readonly key: readonly string[];
  readonly columns: Readonly<Record<string, ColumnType>>;
  /** The column that names an instance with which the row is removed. */
  readonly instance?: string;
  /** Unique indexes beside the key, by name. */
  readonly unique?: Readonly<Record<string, readonly string[]>>;
}

export function table<
  const Columns extends Record<string, ColumnType>,
  const Key extends readonly (keyof Columns & string)[],
>(
  key: Key,
  columns: Columns,
  also: {
    readonly instance?: keyof Columns & string;
    readonly unique?: Readonly<Record<string, readonly (keyof Columns & string)[]>>;
  } = {},
) {
  return { key, columns, ...also };
}

/** A table whose rows go with the instance that each of them names. */
export function belonging<
  const Columns extends Record<string, ColumnType> & { readonly instance_id: 'uuid' },
  const Key extends readonly (keyof Columns & string)[],
>(key: Key, columns: Columns) {
  return table<Columns, Key>(key, columns, { instance: 'instance_id' });
}
