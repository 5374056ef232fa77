/**
 * The writer's statements, carried out on rows in memory. Most are read from their SQL text, so that
 * a column that a statement forgets is forgotten here too; the few of another form are spelled out.
 * A statement of a form that is not known stops the simulation when it is loaded.
 */

import type { JsonObject, JsonValue } from '../../src/core/json.js';
import type { MutationKind } from '../../src/core/unit.js';
import { GATED_STATEMENTS, STATEMENTS } from '../../src/db/statements.js';
import {
  type MemoryTables,
  type Row,
  SqlError,
  stored,
  type Transaction,
} from './memory-tables.js';
import { type ColumnType, listOf } from './tables.js';

/** Carries the statement out for the given rows; returns what its `returning` lists. */
export type Run = (db: MemoryTables, tx: Transaction, rows: readonly JsonObject[]) => string[];

type Types = ReadonlyMap<string, ColumnType>;

const RECORDSET = String.raw`json_to_recordset\(\$1::json\) as r\(([\s\S]*?)\)`;

const INSERT = new RegExp(
  String.raw`^insert into (\w+) \(([^)]*)\)\s*select\s+([\s\S]*?)\s*from ${RECORDSET}` +
    String.raw`(\s*on conflict (.*))?$`,
  's',
);
const UPDATE = new RegExp(
  String.raw`^update (\w+) \w+ set\s+([\s\S]*?)\s*from ${RECORDSET}\s*where (.*)$`,
  's',
);
const DELETE = new RegExp(
  String.raw`^delete from (\w+) \w+\s*using ${RECORDSET}\s*where (.*)$`,
  's',
);

/** Name of the prepared statement → what it does. */
export const RUNS: ReadonlyMap<string, Run> = new Map([
  ...Object.entries(STATEMENTS).map(
    ([kind, { name, text }]) => [name, specialRun(kind as MutationKind) ?? compile(text)] as const,
  ),
  ...Object.values(GATED_STATEMENTS).map(({ name, text }) => [name, compile(text)] as const),
]);

function compile(text: string): Run {
  const sql = text.trim();
  const run = compileInsert(sql) ?? compileUpdate(sql) ?? compileDelete(sql);
  if (run === undefined) throw new Error(`a statement of unknown form: ${sql}`);
  return run;
}

// ---------------------------------------------------------------- the regular forms

/** All values of all rows are converted before the first row is looked at, as by the server. */
function typed(types: Types, rows: readonly JsonObject[]): JsonObject[] {
  return rows.map((given) => {
    const row: JsonObject = {};
    for (const [field, type] of types) row[field] = stored(type, given[field]);
    return row;
  });
}

function compileInsert(sql: string): Run | undefined {
  const match = INSERT.exec(sql);
  if (match === null) return undefined;
  const [, name, columnList, valueList, recordList, , conflict = ''] = match;
  const columns = listOf(columnList!);
  const types = typesOf(recordList!);
  const values = splitValues(valueList!).map((value) => compileValue(value, types));
  const isIgnored = /^(\([^)]*\) )?do nothing/.test(conflict);
  const isReturning = /returning id$/.test(conflict);
  const updates = /^\(([^)]*)\) do update set\s+([\s\S]*)$/.exec(conflict)?.[2];
  const changed = updates === undefined ? undefined : splitValues(updates).map(excludedColumn);
  return (db, tx, rows) => {
    const table = db.table(name!);
    const returned: string[] = [];
    const seen = new Set<string>();
    for (const given of typed(types, rows)) {
      const row: Record<string, JsonValue> = {};
      for (const { name: column, defaultValue } of table.columns.values()) {
        row[column] = defaultValue ?? null;
      }
      columns.forEach((column, i) => {
        row[column] = values[i]!(given, row);
      });
      expectWhole(db, name!, row);
      const violated = db.violated(tx, table, row);
      const key = db.keyOf(table, row);
      if (violated === undefined) {
        db.put(tx, table, key, row);
        if (isReturning) returned.push(key);
      } else if (changed !== undefined && violated.endsWith('_pkey')) {
        if (seen.has(key)) throw new SqlError('21000', 'a row is affected a second time');
        const next: Record<string, JsonValue> = { ...db.seen(tx, name!, key) };
        for (const column of changed) next[column] = row[column] ?? null;
        db.put(tx, table, key, next);
      } else if (!isIgnored) {
        throw new SqlError('23505', `duplicate key violates unique constraint "${violated}"`);
      }
      seen.add(key);
    }
    return returned;
  };
}

function compileUpdate(sql: string): Run | undefined {
  const match = UPDATE.exec(sql);
  if (match === null) return undefined;
  const [, name, assignments, recordList, where] = match;
  const types = typesOf(recordList!);
  const sets = splitValues(assignments!).map((assignment) => {
    const [column, value] = assignment.split(/\s*=\s*/);
    return [column!, compileValue(value!, types)] as const;
  });
  const condition = compileCondition(where!, types);
  return (db, tx, rows) => {
    const table = db.table(name!);
    for (const given of typed(types, rows)) {
      for (const [key, row] of condition(db, tx, name!, given)) {
        const next: Record<string, JsonValue> = { ...row };
        for (const [column, valueIn] of sets) next[column] = valueIn(given, row);
        expectWhole(db, name!, next);
        db.put(tx, table, key, next);
      }
    }
    return [];
  };
}

function compileDelete(sql: string): Run | undefined {
  const match = DELETE.exec(sql);
  if (match === null || match[3]!.includes('select')) return undefined;
  const [, name, recordList, where] = match;
  const types = typesOf(recordList!);
  const condition = compileCondition(where!, types);
  return (db, tx, rows) => {
    const table = db.table(name!);
    for (const given of typed(types, rows)) {
      for (const [key] of condition(db, tx, name!, given)) db.put(tx, table, key, undefined);
    }
    return [];
  };
}

type Condition = (
  db: MemoryTables,
  tx: Transaction,
  table: string,
  given: JsonObject,
) => [string, Row][];

/** Comparisons joined by `and`, each of a column with a field of `r` or with a constant. */
function compileCondition(where: string, types: Types): Condition {
  const terms = where.split(/\s+and\s+/).map((term) => {
    const match = /^\w+\.(\w+) (=|<) (?:r\.(\w+)|'(.*)')$/.exec(term.trim());
    if (match === null) throw new Error(`a condition of unknown form: ${term}`);
    const [, column, operator, field, constant] = match;
    const valueIn = field === undefined ? () => constant! : compileValue(`r.${field}`, types);
    return { column: column!, operator: operator!, valueIn };
  });
  return (db, tx, table, given) => {
    const { key } = db.table(table);
    const wanted = terms.map(({ valueIn }) => valueIn(given, {}));
    const matches = (row: Row) =>
      terms.every(({ column, operator }, i) => {
        const value = row[column] ?? null;
        if (value === null || wanted[i] === null) return false;
        return operator === '=' ? value === wanted[i] : value < wanted[i]!;
      });
    const [only] = key;
    const at = key.length === 1 ? terms.findIndex(({ column }) => column === only) : -1;
    if (at < 0) return db.matching(tx, table, matches);
    const row = db.seen(tx, table, String(wanted[at]));
    return row !== undefined && matches(row) ? [[String(wanted[at]), row]] : [];
  };
}

/** `row` is the stored one, whose columns stand behind any other alias than `r`. */
type Value = (given: JsonObject, row: Row) => JsonValue;

function compileValue(text: string, types: Types): Value {
  if (/^\d+$/.test(text)) return () => Number(text);
  // Bytes are kept as the text that they come in.
  const encoded = /^decode\((\w+), 'base64'\)$/.exec(text)?.[1];
  if (encoded !== undefined) return compileValue(encoded, types);
  const coalesced = /^coalesce\(([\w.]+), (.+)\)$/.exec(text);
  if (coalesced !== null) {
    const valueIn = compileValue(coalesced[1]!, types);
    const otherwise = compileValue(coalesced[2]!, types);
    return (given, row) => valueIn(given, row) ?? otherwise(given, row);
  }
  const ofRow = /^[a-qs-z]\.(\w+)$/.exec(text)?.[1];
  if (ofRow !== undefined) return (_given, row) => row[ofRow] ?? null;
  const field = text.replace(/^r\./, '');
  if (types.has(field)) return (given) => given[field]!;
  const constant = constantOf(text);
  return () => constant;
}

function constantOf(text: string): JsonValue {
  if (/^'.*'$/.test(text)) return text.slice(1, -1);
  if (text === 'true' || text === 'false') return text === 'true';
  if (!/^\d+$/.test(text)) throw new Error(`a value of unknown form: ${text}`);
  return Number(text);
}

function typesOf(recordList: string): Types {
  return new Map(listOf(recordList).map((field) => field.split(/\s+/) as [string, ColumnType]));
}

/** At the commas that are not inside of parentheses. */
function splitValues(list: string): string[] {
  return list.split(/,(?![^(]*\))/).map((part) => part.trim().replaceAll(/\s+/g, ' '));
}

function excludedColumn(assignment: string): string {
  const match = /^(\w+) = excluded\.\1$/.exec(assignment);
  if (match === null) throw new Error(`an assignment of unknown form: ${assignment}`);
  return match[1]!;
}

function expectWhole(db: MemoryTables, name: string, row: Row): void {
  for (const column of db.table(name).columns.values()) {
    if (column.isRequired && row[column.name] === null) {
      throw new SqlError('23502', `null value in column "${column.name}" of "${name}"`);
    }
  }
}

// ---------------------------------------------------------------- the others

/** The tables that lose the rows of an instance with it. */
/** Of the tables whose rows name their instance by another column. */
const OWNER_COLUMNS: ReadonlyMap<string, string> = new Map([
  ['instances', 'id'],
  ['migrations', 'continuity_id'],
]);

const BELONGINGS = [...STATEMENTS['instance.delete'].text.matchAll(/delete from (\w+)/g)].map(
  ([, table]) => table!,
);

function specialRun(kind: MutationKind): Run | undefined {
  switch (kind) {
    case 'sequence.delete':
      return deleteSequences;
    case 'instance.delete':
      return (db, tx, rows) => {
        deleteInstances(db, tx, new Set(rows.map(({ id }) => stored('uuid', id))));
        return [];
      };
    case 'output.dropBlocks':
      return dropBlocks;
    case 'execution.update':
      return updateExecutions;
    case 'runtime.set':
      return setRuntimes;
    case 'checkpoint.prune':
      return pruneCheckpoints;
    case 'delivery.prune':
      return pruneDeliveries;
    default:
      return undefined;
  }
}

function deleteSequences(db: MemoryTables, tx: Transaction, rows: readonly JsonObject[]): string[] {
  const sequences = new Set(rows.map(({ id }) => stored('uuid', id)));
  const hasGone = (row: Row) => sequences.has(row.sequence_id!);
  deleteInstances(db, tx, keysOf(db, tx, 'instances', hasGone));
  remove(db, tx, 'cron_schedules', hasGone);
  remove(db, tx, 'sequences', (row) => sequences.has(row.id!));
  return [];
}

function deleteInstances(db: MemoryTables, tx: Transaction, doomed: ReadonlySet<JsonValue>): void {
  const tasks = keysOf(db, tx, 'worker_tasks', (row) => doomed.has(row.instance_id!));
  for (const table of BELONGINGS) {
    const isGone = (row: Row) => {
      if (table === 'open_tasks') return tasks.has(row.task_id!);
      return doomed.has(row[OWNER_COLUMNS.get(table) ?? 'instance_id']!);
    };
    remove(db, tx, table, isGone);
  }
}

function keysOf(
  db: MemoryTables,
  tx: Transaction,
  table: string,
  isWanted: (row: Row) => boolean,
): ReadonlySet<JsonValue> {
  return new Set(db.matching(tx, table, isWanted).map(([key]) => key));
}

function dropBlocks(db: MemoryTables, tx: Transaction, rows: readonly JsonObject[]): string[] {
  for (const row of rows) {
    const instance = stored('uuid', row.instance_id);
    const blocks = new Set((row.block_ids ?? []) as JsonValue[]);
    const isDropped = ({ instance_id, block_id }: Row) =>
      instance_id === instance && blocks.has(block_id!);
    for (const [, { effect }] of db.matching(tx, 'block_outputs', isDropped)) {
      if (effect != null) insertOnce(db, tx, 'effect_receipts', effect as Row);
    }
    remove(db, tx, 'block_outputs', isDropped);
  }
  return [];
}

function insertOnce(db: MemoryTables, tx: Transaction, name: string, row: Row): void {
  const table = db.table(name);
  if (db.violated(tx, table, row) === undefined) db.put(tx, table, db.keyOf(table, row), row);
}

/** All of them, or none when one was decided on another version. */
function updateExecutions(
  db: MemoryTables,
  tx: Transaction,
  rows: readonly JsonObject[],
): string[] {
  const types = typesOf(recordListOf('execution.update'));
  const given = typed(types, rows);
  const table = db.table('continuity_executions');
  for (const { version, ...changes } of given) {
    const key = String(changes.continuity_id);
    const row = db.seen(tx, table.name, key);
    if (row === undefined || version === null || row.version !== version) {
      throw new SqlError('22P02', 'invalid input syntax for type integer: "stale"');
    }
    const next = { ...row, ...changes, version: Number(version) + 1 };
    expectWhole(db, table.name, next);
    const twin = [...db.matching(tx, table.name, (other) => isTwin(other, next))];
    if (twin.length > 0) throw new SqlError('23505', 'duplicate key value');
    db.put(tx, table, key, next);
  }
  return [];
}

function isTwin(a: Row, b: Row): boolean {
  return (
    a.continuity_id !== b.continuity_id &&
    a.tenant_id === b.tenant_id &&
    a.current_instance_id === b.current_instance_id
  );
}

/** What was observed last stays. */
function setRuntimes(db: MemoryTables, tx: Transaction, rows: readonly JsonObject[]): string[] {
  const table = db.table('runtimes');
  for (const row of typed(typesOf(recordListOf('runtime.set')), rows)) {
    expectWhole(db, table.name, row);
    const key = db.keyOf(table, row);
    db.lock(tx, `${table.name}:${key}`);
    const before = db.seen(tx, table.name, key);
    if (before === undefined || row.observed_at! >= before.observed_at!)
      db.put(tx, table, key, row);
  }
  return [];
}

function recordListOf(kind: MutationKind): string {
  return new RegExp(RECORDSET).exec(STATEMENTS[kind].text)?.[1] ?? '';
}

function pruneCheckpoints(
  db: MemoryTables,
  tx: Transaction,
  rows: readonly JsonObject[],
): string[] {
  for (const row of rows) {
    const instance = stored('uuid', row.instance_id);
    const keep = Number(stored('integer', row.keep));
    db.matching(tx, 'checkpoints', ({ instance_id }) => instance_id === instance)
      .sort(([, a], [, b]) => (a.id! < b.id! ? 1 : -1))
      .slice(keep)
      .forEach(([key]) => {
        db.put(tx, db.table('checkpoints'), key, undefined);
      });
  }
  return [];
}

/** So few that the statement's limit is never reached. */
function pruneDeliveries(db: MemoryTables, tx: Transaction, rows: readonly JsonObject[]): string[] {
  for (const row of rows) {
    const before = stored('timestamptz', row.before);
    if (before !== null) remove(db, tx, 'webhook_deliveries', (it) => it.attempted_at! < before);
  }
  return [];
}

function remove(
  db: MemoryTables,
  tx: Transaction,
  table: string,
  isGone: (row: Row) => boolean,
): void {
  for (const [key] of db.matching(tx, table, isGone)) db.put(tx, db.table(table), key, undefined);
}
