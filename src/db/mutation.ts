/**
 * What an actor may change, as data: the table, the columns, and how several mutations of one kind are put together.
 * The types of rows, the statements (`statements.ts`) and what the simulation does with a mutation follow from it.
 * Each room has those of its tables. Pure.
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

/** An insert that may be the gate of a unit (`src/core/unit.ts`): its rows have an `id`. */
export interface Gate {
  /** Of units of many, too. */
  readonly isOfBatches?: true;
  /** A row of this table with its id keeps one from being inserted, as one with its key does. */
  readonly unless?: Table;
}

interface Rule<Row extends object> {
  /** A noun of its room and a verb, as in `cron.set`: its statement is named after it. */
  kind: string;
  /** Its place in the store, which stands for it between threads. */
  place: number;
  /** `insert`: once per key. `latest`: the last one of its group and key wins. `barrier`: alone. */
  readonly merge: 'insert' | 'latest' | 'barrier';
  readonly table: Table;
  /** Kinds of one group write the same row, such as setting and clearing a timer. */
  readonly group: string;
  /** It writes some of the columns of this kind, whose row it does not replace but is laid over. */
  readonly narrows?: Mutation;
  /** Only for the type. */
  readonly row?: Row;
}

/** What is told of a row whose key is there already: an error, nothing, or these columns are replaced. */
type OnConflict = 'error' | 'nothing' | readonly string[];

export interface Insert<Row extends object = object> extends Rule<Row> {
  readonly does: 'insert';
  /** Those of the row. */
  readonly columns: readonly string[];
  /** What is stored where the row has null. */
  readonly defaults: Literals;
  readonly onConflict: OnConflict;
  readonly gate?: Gate;
  /** Its rows may be lines. */
  readonly lines?: RowWriters;
}

export interface Update<Row extends object = object> extends Rule<Row> {
  readonly does: 'update';
  /** The key, and the columns that change. */
  readonly columns: readonly string[];
  /** Column → the column whose value it keeps from before that one's first change. */
  readonly keeps: Readonly<Record<string, string>>;
}

export interface Delete<Row extends object = object> extends Rule<Row> {
  readonly does: 'delete';
  /** Those that name the rows. */
  readonly columns: readonly string[];
  /** Only rows with these values. */
  readonly where: Literals;
}

/** A statement of its own. */
export interface Special<Row extends object = object> extends Rule<Row> {
  readonly does: 'special';
  readonly fields: Fields;
  /**
   * @param rows the text of those that are handed in, under the name r
   * @param tables of all rooms
   */
  readonly text: (rows: string, tables: readonly Table[]) => string;
}
type Fields = Readonly<Record<string, BaseType>>;

export type Mutation<Row extends object = object> =
  | Insert<Row>
  | Update<Row>
  | Delete<Row>
  | Special<Row>;

/** The columns of one mutation: JSON as any value that has a text. */
export type MutationRow<M extends Mutation> = NonNullable<M['row']>;

/** Names the mutations of a room's noun by their verbs. They are carried out in this order. */
export function mutations<const M extends Readonly<Record<string, Mutation>>>(
  noun: string,
  members: M,
): M {
  for (const [verb, mutation] of Object.entries(members)) mutation.kind = `${noun}.${verb}`;
  return members;
}

const UNNAMED = { kind: '', place: -1 };

interface InsertOptions<T extends Table, W extends string, D extends string> {
  /** Columns that it leaves at null. */
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

/** Inserts the row, or replaces these columns of it. */
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
    // Two kinds that change other columns of one row do not replace each other.
    group: `${table.name}.${changing[0]}`,
  };
}

/** Deletes the row with this key, if it has the value in the other column, too. */
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

/** Deletes all rows with the value in the column, of those that have the others. */
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

/** What does more than insert, update or delete rows by their key. */
export function special<const F extends Fields>(
  table: Table,
  merge: Rule<object>['merge'],
  fields: F,
  text: Special['text'],
): Special<{ readonly [K in keyof F]: FieldValue<F[K]> }> {
  // Nothing else replaces it, nor does it replace anything.
  const group = merge === 'latest' ? `${table.name}.special` : table.name;
  return { ...UNNAMED, does: 'special', table, fields, merge, group, text };
}

/** What the rows of a mutation have, with its types. */
export function fieldsOf(mutation: Mutation): (readonly [name: string, type: BaseType])[] {
  if (mutation.does === 'special') return Object.entries(mutation.fields);
  const { table, columns } = mutation;
  return columns.map((column) => [column, columnType(table, column).base] as const);
}

/**
 * A condition that is answered by an index and by nothing else, as one of a list of its own. An equation can also be
 * had from a whole index, read in its order: the planner does so where it knows of few live rows, however many dead
 * ones lie between them while somebody holds an old snapshot.
 */
export const foundBy = (column: string, value: string) => `${column} = any(array[${value}])`;
