/**
 * The rows of the simulated database, with transactions as Postgres has them by default: a
 * transaction sees what is committed and what it wrote itself, and holds a lock on every row that it
 * wrote until it ends. Knows nothing of statements.
 */

import type { JsonObject, JsonValue } from '../../src/base/json.js';
import type { BaseType, Table } from '../../src/db/table.js';
import { entryOf } from '../helpers/entry.js';
import { TABLES } from '../helpers/store.js';

/** JSON columns hold the parsed value, times are RFC 3339 with milliseconds. Never changed inside. */
export type Row = Readonly<Record<string, JsonValue>>;

type Write = readonly [key: string, row: Row | undefined];

const byId = ([, one]: Write, [, other]: Write) =>
  String(one?.id ?? '') < String(other?.id ?? '') ? -1 : 1;

export interface Change {
  readonly table: string;
  readonly key: string;
  readonly before: Row | undefined;
  readonly after: Row | undefined;
}

/** What the server refuses, with its SQLSTATE. */
export class SqlError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** The row is locked by another transaction: the statement waits until that one has ended. */
export class Blocked extends Error {
  readonly by: Transaction;

  constructor(by: Transaction) {
    super('blocked');
    this.by = by;
  }
}

export class Transaction {
  /** Table → key → row, or undefined for a row that was deleted. */
  readonly writes = new Map<string, Map<string, Row | undefined>>();
  readonly locks = new Set<string>();
  /** Called when the transaction has ended. */
  readonly waiters: (() => void)[] = [];
  waitsFor: Transaction | undefined;
}

const NO_ROWS: ReadonlyMap<string, Row> = new Map();

export class MemoryTables {
  readonly #rows = new Map<string, Map<string, Row>>();
  readonly #locks = new Map<string, Transaction>();
  /** Name and values of a unique index → key of the row. */
  readonly #unique = new Map<string, string>();
  readonly #jsonColumns = new Set<string>();

  constructor() {
    for (const [name, { columns }] of Object.entries(TABLES)) {
      this.#rows.set(name, new Map());
      for (const [column, type] of Object.entries(columns)) {
        if (type.startsWith('json')) this.#jsonColumns.add(column);
      }
    }
  }

  /** No two tables have a column of one name, one of which is JSON and the other is not. */
  isJson(column: string): boolean {
    return this.#jsonColumns.has(column);
  }

  /** What is committed. */
  rows(table: string): ReadonlyMap<string, Row> {
    return this.#rows.get(table) ?? NO_ROWS;
  }

  row(table: string, key: string): Row | undefined {
    return this.#rows.get(table)?.get(key);
  }

  keyOf(table: string, row: Row): string {
    const { key } = tableOf(table);
    return key.length === 1 ? String(row[key[0]!]) : key.map((column) => row[column]).join('/');
  }

  /** What the transaction sees. */
  seen(tx: Transaction, table: string, key: string): Row | undefined {
    const writes = tx.writes.get(table);
    return writes?.has(key) === true ? writes.get(key) : this.row(table, key);
  }

  /** The rows that the transaction sees and that match. */
  matching(tx: Transaction, table: string, matches: (row: Row) => boolean): [string, Row][] {
    const found: [string, Row][] = [];
    const writes = tx.writes.get(table);
    for (const [key, row] of this.rows(table)) {
      if (writes?.has(key) !== true && matches(row)) found.push([key, row]);
    }
    for (const [key, row] of writes ?? []) {
      if (row !== undefined && matches(row)) found.push([key, row]);
    }
    return found;
  }

  /** @throws Blocked when another transaction holds the lock, SqlError 40P01 on a deadlock */
  lock(tx: Transaction, name: string): void {
    const holder = this.#locks.get(name);
    if (holder === tx) return;
    if (holder === undefined) {
      this.#locks.set(name, tx);
      tx.locks.add(name);
      return;
    }
    for (let next = holder.waitsFor; next !== undefined; next = next.waitsFor) {
      if (next === tx) throw new SqlError('40P01', 'deadlock detected');
    }
    throw new Blocked(holder);
  }

  /** @throws Blocked */
  put(tx: Transaction, name: string, key: string, row: Row | undefined): void {
    this.lock(tx, `${name}:${key}`);
    entryOf(tx.writes, name, () => new Map<string, Row | undefined>()).set(key, row);
  }

  /** The name of the constraint that a new row would violate, having waited for who may decide it. */
  violated(tx: Transaction, name: string, row: Row): string | undefined {
    const key = this.keyOf(name, row);
    this.lock(tx, `${name}:${key}`);
    if (this.seen(tx, name, key) !== undefined) return `${name}_pkey`;
    for (const [index, columns] of uniqueOf(name)) {
      const value = `${index}:${JSON.stringify(columns.map((column) => row[column]))}`;
      this.lock(tx, value);
      const owner = this.#unique.get(value);
      if (owner !== undefined && this.seen(tx, name, owner) !== undefined) return index;
      const isTaken = (other: Row | undefined) =>
        other !== undefined && columns.every((column) => other[column] === row[column]);
      if ([...(tx.writes.get(name)?.values() ?? [])].some(isTaken)) return index;
    }
    return undefined;
  }

  commit(tx: Transaction): Change[] {
    const changes: Change[] = [];
    for (const [name, writes] of tx.writes) {
      const rows = this.#rows.get(name)!;
      // Some outputs of a unit are in the row of its instance, which is written first.
      const isOutputs = name === 'block_outputs';
      for (const [key, after] of isOutputs ? [...writes].sort(byId) : writes) {
        const before = rows.get(key);
        if (before === undefined && after === undefined) continue;
        if (after === undefined) rows.delete(key);
        else rows.set(key, after);
        this.#index(name, key, before, after);
        changes.push({ table: name, key, before, after });
      }
    }
    this.end(tx);
    return changes;
  }

  /** Frees the locks; what was not committed is gone. */
  end(tx: Transaction): void {
    for (const name of tx.locks) this.#locks.delete(name);
    tx.locks.clear();
    tx.writes.clear();
    for (const wake of tx.waiters.splice(0)) wake();
  }

  #index(table: string, key: string, before: Row | undefined, after: Row | undefined): void {
    for (const [index, columns] of uniqueOf(table)) {
      const indexed = (row: Row) => `${index}:${JSON.stringify(columns.map((name) => row[name]))}`;
      if (before !== undefined) this.#unique.delete(indexed(before));
      if (after !== undefined) this.#unique.set(indexed(after), key);
    }
  }
}

function tableOf(name: string): Table {
  return (TABLES as Readonly<Record<string, Table>>)[name]!;
}

function uniqueOf(name: string): [index: string, columns: readonly string[]][] {
  return Object.entries(tableOf(name).unique ?? {});
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

const INTEGER_MAX = { smallint: 32_767, integer: 2_147_483_647, bigint: Number.MAX_SAFE_INTEGER };

/** context.data of an instance, with what has changed since it was stored whole. */
export const contextData = ({ data, data_patch: patch }: Row): JsonObject => ({
  ...(data as JsonObject),
  ...(patch as JsonObject | null),
});

/** The value as the column stores it. @throws SqlError of class 22 when the type does not take it */
export function stored(type: BaseType, value: JsonValue | undefined): JsonValue {
  if (value === undefined || value === null) return null;
  switch (type) {
    case 'json':
      return value;
    case 'bytea':
    case 'text':
      return typeof value === 'string' ? value : JSON.stringify(value);
    case 'boolean':
      if (!/^(true|false)$/.test(String(value))) throw new SqlError('22P02', 'invalid boolean');
      return String(value) === 'true';
    case 'uuid':
      if (typeof value !== 'string' || !UUID.test(value)) {
        throw new SqlError('22P02', 'invalid input syntax for type uuid');
      }
      return value;
    case 'timestamptz':
      return storedTime(value);
    case 'smallint':
    case 'integer':
    case 'bigint':
      if (!/^-?\d+$/.test(String(value))) {
        throw new SqlError('22P02', `invalid input syntax for type ${type}`);
      }
      if (Math.abs(Number(value)) > INTEGER_MAX[type]) throw new SqlError('22003', 'out of range');
      return Number(value);
  }
}

function storedTime(value: JsonValue): string {
  const text = String(value);
  if (text.length === 24 && text.endsWith('Z')) return text;
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw new SqlError('22007', 'invalid input syntax for a timestamp');
  return new Date(time).toISOString();
}
