/**
 * Declares a table of a room: the columns are spelled only there and in the migration. Statements, types of
 * rows and the simulation derive from it; a test compares it with a database. Pure.
 */

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
/** A question mark: nullable. `patched`: another column has what changed since, and both are read together. */
export type ColumnType = BaseType | `${BaseType}?` | 'json patched';

/** The text of a patched column, which is only a part of the value. */
export interface Unpatched {
  readonly unpatched: string;
}

type Columns = Readonly<Record<string, ColumnType>>;

interface Marks<Column extends string> {
  /** The column of the instance with which the row is deleted. */
  readonly instance?: Column;
  /** The column of the sequence with which the row is deleted. */
  readonly sequence?: Column;
  /** What remains of deleted instances, whose ids `doomed` has: a part of a WITH, `name as (…)`. */
  readonly keptOfInstances?: string;
  /** The condition for rows of the tenant `$T` in a table without a tenant column. */
  readonly ofTenant?: string;
  /** Why the rows stay when a tenant is moved to another cell. */
  readonly stays?: string;
  /** The parent table of rows that name no instance: a tenant without parents has none. */
  readonly follows?: string;
  /** Unique indexes besides the key, by name. */
  readonly unique?: Readonly<Record<string, readonly Column[]>>;
}

export interface Table<C extends Columns = Columns, Key extends string = string>
  extends Marks<string> {
  readonly name: string;
  readonly key: readonly Key[];
  readonly columns: C;
}

export function table<const C extends Columns, const Key extends keyof C & string>(
  name: string,
  key: readonly Key[],
  columns: C,
  marks: Marks<keyof C & string> = {},
): Table<C, Key> {
  return { name, key, columns, ...marks };
}

export function belonging<
  const C extends Columns & { readonly instance_id: 'uuid' },
  const Key extends keyof C & string,
>(
  name: string,
  key: readonly Key[],
  columns: C,
  marks: Omit<Marks<keyof C & string>, 'instance'> = {},
): Table<C, Key> {
  return table<C, Key>(name, key, columns, { instance: 'instance_id', ...marks });
}

export type ColumnOf<T extends Table> = keyof T['columns'] & string;
export type KeyOf<T extends Table> = T['key'][number] & ColumnOf<T>;
type TypeOf<T extends Table, C extends ColumnOf<T>> = T['columns'][C] & ColumnType;

type Value<Type extends ColumnType, Json> = Type extends `${infer Base}?`
  ? Value<Base & BaseType, Json> | null
  : Type extends 'json patched'
    ? Unpatched
    : Type extends 'json'
      ? Json
      : Type extends 'boolean'
        ? boolean
        : Type extends 'smallint' | 'integer' | 'bigint'
          ? number
          : string;

/** A row as read: JSON as text, times as RFC 3339, bytes in base64. */
export type StoredRow<T extends Table, C extends ColumnOf<T> = ColumnOf<T>> = {
  readonly [K in C]: Value<TypeOf<T, K>, string>;
};

type Nullable<T extends Table, C extends ColumnOf<T>> = {
  [K in C]: null extends Value<TypeOf<T, K>, string> ? K : never;
}[C];

/** A row as written: JSON as any serializable value; nullable columns may be omitted. */
export type WrittenRow<T extends Table, C extends ColumnOf<T> = ColumnOf<T>> = {
  readonly [K in Exclude<C, Nullable<T, C>>]: Value<TypeOf<T, K>, unknown>;
} & { readonly [K in Nullable<T, C>]?: Value<TypeOf<T, K>, unknown> | undefined };

/** All columns of a table but these, in their order. */
export function columnsBut<T extends Table, const B extends ColumnOf<T>>(
  { columns }: T,
  ...but: readonly B[]
): Exclude<ColumnOf<T>, B>[] {
  return (Object.keys(columns) as ColumnOf<T>[]).filter(
    (column): column is Exclude<ColumnOf<T>, B> => !(but as readonly string[]).includes(column),
  );
}

export function columnsOf<T extends Table, const C extends ColumnOf<T>>(
  _table: T,
  ...columns: readonly C[]
): readonly C[] {
  return columns;
}

export function selected(columns: readonly string[], alias?: string): string {
  return columns.map((column) => (alias === undefined ? column : `${alias}.${column}`)).join(', ');
}

export function columnType(
  { columns }: Table,
  column: string,
): { base: BaseType; isNullable: boolean } {
  const type = columns[column]!;
  const isNullable = type.endsWith('?');
  return { base: type.replace(/\?| patched/, '') as BaseType, isNullable };
}
