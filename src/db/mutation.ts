/**
 * Mutations as data: the table, the columns, and how several mutations of one kind merge. The types of
 * rows, the statements (`statements.ts`) and the simulation derive from them. Each room declares the
 * mutations of its tables. Pure.
 */

import type { RowWriters } from './lines.js';
import {
  type BaseType,
  type ColumnOf,
  columnsBut,
  columnType,
  type KeyOf,
  type Table,
  type WrittenRow,
} from './table.js';

type Literal = number | string;
type Literals<C extends string = string> = { readonly [K in C]?: Literal };

/** An insert that may be the gate of a unit (`src/core/unit.ts`); its rows have an `id`. */
export interface Gate {
  /** Whether it is a gate in units of many instances too. */
  readonly isOfBatches?: true;
  /** A row of this table with the same id prevents the insert too. */
  readonly unless?: Table;
}

interface Rule<Row extends object> {
  /** Noun and verb, such as `cron.set`; names its statement. */
  kind: string;
  /** Its index in the store identifies it between threads. */
  place: number;
  /** `insert`: once per key. `latest`: the last one of its group and key wins. `barrier`: alone. */
  readonly merge: 'insert' | 'latest' | 'barrier';
  readonly table: Table;
  /** Kinds of a group write the same row, such as setting and clearing a timer. */
  readonly group: string;
  /** It writes the first columns of these kinds, and is merged into their rows. */
  readonly narrows?: readonly Mutation[];
  /** Exists in the type only. */
  readonly row?: Row;
}

/** On a row with the same key: fail, keep it, or replace these columns. */
type OnConflict = 'error' | 'nothing' | readonly string[];

export interface Insert<Row extends object = object> extends Rule<Row> {
  readonly does: 'insert';
  readonly columns: readonly string[];
  /** Stored in place of null. */
  readonly defaults: Literals;
  readonly onConflict: OnConflict;
  readonly gate?: Gate;
  readonly lines?: RowWriters;
}

export interface Update<Row extends object = object> extends Rule<Row> {
  readonly does: 'update';
  readonly columns: readonly string[];
  /** Column → the column whose value before its first change it stores. */
  readonly keeps: Readonly<Record<string, string>>;
  readonly lines?: RowWriters;
}

export interface Delete<Row extends object = object> extends Rule<Row> {
  readonly does: 'delete';
  readonly columns: readonly string[];
  readonly where: Literals;
}

export interface Special<Row extends object = object> extends Rule<Row> {
  readonly does: 'special';
  readonly fields: Fields;
  /** @param rows SQL of the given rows, with the alias r */
  readonly text: (rows: string, tables: readonly Table[]) => string;
}
type Fields = Readonly<Record<string, BaseType>>;

export type Mutation<Row extends object = object> =
  | Insert<Row>
  | Update<Row>
  | Delete<Row>
  | Special<Row>;

/** The columns of a mutation; JSON is any serializable value. */
export type MutationRow<M extends Mutation> = NonNullable<M['row']>;

/** Names the mutations of a noun by their verbs, in the order of execution. */
export function mutations<const M extends Readonly<Record<string, Mutation>>>(
  noun: string,
  members: M,
): M {
  for (const [verb, mutation] of Object.entries(members)) mutation.kind = `${noun}.${verb}`;
  return members;
}

const UNNAMED = { kind: '', place: -1 };

interface InsertOptions<T extends Table, W extends string, D extends string> {
  readonly without?: readonly (W & ColumnOf<T>)[];
  readonly defaults?: Literals<D & ColumnOf<T>>;
}

type InsertedRow<T extends Table, W extends string, D extends ColumnOf<T>> = WrittenRow<
  T,
  Exclude<ColumnOf<T>, W | D>
> &
  Partial<WrittenRow<T, D>>;

export function insert<
  T extends Table,
  const W extends ColumnOf<T> = never,
  const D extends ColumnOf<T> = never,
>(
  table: T,
  options: InsertOptions<T, W, D> = {},
  onConflict: OnConflict = 'error',
): Insert<InsertedRow<T, W, D>> {
  return {
    ...UNNAMED,
    does: 'insert',
    table,
    columns: columnsBut(table, ...(options.without ?? [])),
    defaults: options.defaults ?? {},
    onConflict,
    merge: onConflict === 'error' || onConflict === 'nothing' ? 'insert' : 'latest',
    group: table.name,
  };
}

/** Inserts the row, or replaces these columns of an existing one. */
export function set<T extends Table, const D extends ColumnOf<T> = never>(
  table: T,
  changing: readonly ColumnOf<T>[],
  options: InsertOptions<T, never, D> = {},
): Insert<InsertedRow<T, never, D>> {
  return insert(table, options, changing);
}

interface UpdateOptions<T extends Table, C extends ColumnOf<T>> {
  readonly keeps?: { readonly [K in ColumnOf<T>]?: C };
}

export function update<T extends Table, const C extends ColumnOf<T>>(
  table: T,
  changing: readonly C[],
  { keeps = {} }: UpdateOptions<T, C> = {},
): Update<WrittenRow<T, C | KeyOf<T>>> {
  return {
    ...UNNAMED,
    does: 'update',
    table,
    columns: [...table.key, ...changing],
    keeps: keeps as Readonly<Record<string, string>>,
    merge: 'latest',
    // Kinds that change different columns of a row do not replace each other.
    group: `${table.name}.${changing[0]}`,
  };
}

/** Deletes the row with this key, if `also` has the given value. */
export function clear<T extends Table, const C extends ColumnOf<T> = never>(
  table: T,
  also?: C,
): Delete<WrittenRow<T, KeyOf<T> | C>> {
  return {
    ...UNNAMED,
    does: 'delete',
    table,
    columns: also === undefined ? table.key : [...table.key, also],
    where: {},
    merge: 'latest',
    group: also === undefined ? table.name : `${table.name}.${also}`,
  };
}

/** Deletes all rows with the given value in `column` and these values in others. */
export function drop<T extends Table, const C extends ColumnOf<T>>(
  table: T,
  column: C,
  where: Literals<ColumnOf<T>>,
): Delete<WrittenRow<T, C>> {
  const columns = [column];
  const group = table.name;
  return { ...UNNAMED, does: 'delete', table, columns, where, merge: 'barrier', group };
}

type FieldValue<B extends BaseType> = B extends 'json'
  ? unknown
  : B extends 'smallint' | 'integer' | 'bigint'
    ? number
    : string;

export function special<const F extends Fields>(
  table: Table,
  merge: Rule<object>['merge'],
  fields: F,
  text: Special['text'],
): Special<{ readonly [K in keyof F]: FieldValue<F[K]> }> {
  // It neither replaces other mutations nor is replaced.
  const group = merge === 'latest' ? `${table.name}.special` : table.name;
  return { ...UNNAMED, does: 'special', table, fields, merge, group, text };
}

export function fieldsOf(mutation: Mutation): (readonly [name: string, type: BaseType])[] {
  if (mutation.does === 'special') return Object.entries(mutation.fields);
  const { table, columns } = mutation;
  return columns.map((column) => [column, columnType(table, column).base] as const);
}

/**
 * An equality as a one-element list, which only an index lookup can serve. For a plain equality the planner may scan a
 * whole index in its order when it expects few live rows, and step over all dead rows that an old snapshot keeps.
 */
export const foundBy = (column: string, value: string) => `${column} = any(array[${value}])`;

/** The time in a UUIDv7. Division of a whole number of milliseconds is exact to the microsecond. */
export const timeOf = (id: string) =>
  `to_timestamp(('x0000' || left(replace(${id}::text, '-', ''), 12))::bit(64)::bigint / 1000.0)`;
