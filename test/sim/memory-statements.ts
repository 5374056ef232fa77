/**
 * The writer's mutations, carried out on rows in memory. The regular ones follow from the table of
 * mutations, as their SQL does; what is special in SQL is spelled out here, too.
 */

import { type PackedOutput, unpacked } from '../../actors/instance/output-tables.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { laterOf } from '../../src/base/time.js';
import { CELL_END, LINE_END, NULL_CELL } from '../../src/db/lines.js';
import { type Delete, fieldsOf, type Insert, type Update } from '../../src/db/mutation.js';
import type { Statement } from '../../src/db/statements.js';
import { columnType } from '../../src/db/table.js';
import {
  GATED_LINE_STATEMENTS,
  GATED_STATEMENTS,
  LINE_STATEMENTS,
  MUTATION_KINDS,
  MUTATIONS,
  STATEMENTS,
  TABLES,
} from '../helpers/store.js';
import { readRow } from '../helpers/unit-rows.js';
import type { MemoryTables, Row, Transaction } from './memory-tables.js';
import { SqlError, stored } from './memory-tables.js';

/** Carries the statement out for the given rows; returns what its `returning` lists. */
export type Run = (db: MemoryTables, tx: Transaction, rows: readonly JsonObject[]) => string[];

function runOf(kind: string): Run {
  const mutation = MUTATIONS[kind]!;
  switch (mutation.does) {
    case 'insert':
      return insertRun(mutation);
    case 'update':
      return updateRun(mutation);
    case 'delete':
      return deleteRun(mutation);
    case 'special': {
      const types = fieldsOf(mutation);
      const run = SPECIAL[kind];
      if (run === undefined) throw new Error(`${kind} is special, and not known here`);
      return (db, tx, rows) => {
        run(db, tx, typed(types, rows));
        return [];
      };
    }
  }
}

// ---------------------------------------------------------------- the regular forms

/** All values of all rows are converted before the first row is looked at, as by the server. */
function typed(types: ReturnType<typeof fieldsOf>, rows: readonly JsonObject[]): JsonObject[] {
  return rows.map((given) =>
    Object.fromEntries(types.map(([field, type]) => [field, stored(type, given[field])])),
  );
}

/** The value that a literal of SQL stands for. */
function literal(text: number | string): JsonValue {
  if (typeof text === 'number') return text;
  return text.startsWith("'") ? text.slice(1, -1) : text === 'true';
}

/** @param barring a row of this table with its id keeps one from being inserted */
function insertRun(mutation: Insert, barring?: string): Run {
  const { defaults, onConflict } = mutation;
  const { name: table, columns } = mutation.table;
  const types = fieldsOf(mutation);
  const filled = Object.entries(defaults).map(
    ([column, text]) => [column, literal(text!)] as const,
  );
  const empty = Object.fromEntries(Object.keys(columns).map((name) => [name, null]));
  return (db, tx, rows) => {
    const inserted: string[] = [];
    const seen = new Set<string>();
    for (const given of typed(types, rows)) {
      const row: Record<string, JsonValue> = { ...empty, ...given };
      for (const [column, value] of filled) row[column] ??= value;
      // Before its values are looked at: such a row is not even selected.
      if (barring !== undefined && db.seen(tx, barring, String(row.id)) !== undefined) continue;
      expectWhole(table, row);
      const violated = db.violated(tx, table, row);
      const key = db.keyOf(table, row);
      // An output that was, or still is, in the row of its instance.
      if (table === 'block_outputs' && db.seen(tx, table, key)?.id === row.id) continue;
      if (violated === undefined) {
        putRow(db, tx, table, key, row);
        inserted.push(key);
      } else if (typeof onConflict !== 'string' && violated.endsWith('_pkey')) {
        if (seen.has(key)) throw new SqlError('21000', 'a row is affected a second time');
        const next: Record<string, JsonValue> = { ...db.seen(tx, table, key) };
        for (const column of onConflict) next[column] = row[column] ?? null;
        db.put(tx, table, key, next);
      } else if (onConflict !== 'nothing') {
        throw new SqlError('23505', `duplicate key violates unique constraint "${violated}"`);
      }
      seen.add(key);
    }
    return inserted;
  };
}

/** Outputs in the row of an instance are read like rows of their own, which they are here. */
function putRow(db: MemoryTables, tx: Transaction, table: string, key: string, row: Row): void {
  db.put(tx, table, key, row);
  if (table !== 'instances') return;
  for (const output of (row.end_outputs ?? []) as unknown as readonly PackedOutput[]) {
    OUTPUT_INSERT(db, tx, [unpacked(String(row.id), output) as JsonObject]);
  }
}

/** COPY gathers rows, each of which has what it must have, before it inserts the first of them. */
function copyRun(mutation: Insert): Run {
  const types = fieldsOf(mutation);
  const insert = insertRun(mutation);
  return (db, tx, rows) => {
    for (const row of typed(types, rows)) expectWhole(mutation.table.name, row);
    return insert(db, tx, rows);
  };
}

function updateRun(mutation: Update): Run {
  const { keeps } = mutation;
  const { name: table } = mutation.table;
  const types = fieldsOf(mutation);
  return (db, tx, rows) => {
    for (const given of typed(types, rows)) {
      const key = db.keyOf(table, given);
      const row = db.seen(tx, table, key);
      if (row === undefined) continue;
      const next: Record<string, JsonValue> = { ...row, ...given };
      for (const [kept, of] of Object.entries(keeps)) next[kept] = row[kept] ?? row[of] ?? null;
      expectWhole(table, next);
      putRow(db, tx, table, key, next);
    }
    return [];
  };
}

function deleteRun(mutation: Delete): Run {
  const { columns, where } = mutation;
  const { name: table, key } = mutation.table;
  const types = fieldsOf(mutation);
  const wanted = Object.entries(where).map(([column, text]) => [column, literal(text!)] as const);
  const isWhole = key.length === columns.length && key.every((column) => columns.includes(column));
  const isByKey = wanted.length === 0 && isWhole;
  return (db, tx, rows) => {
    for (const given of typed(types, rows)) {
      if (isByKey) {
        const at = db.keyOf(table, given);
        if (db.seen(tx, table, at) !== undefined) db.put(tx, table, at, undefined);
      } else {
        const isGone = (row: Row) =>
          [...Object.entries(given), ...wanted].every(([column, value]) => row[column] === value);
        remove(db, tx, table, isGone);
      }
    }
    return [];
  };
}

function expectWhole(table: string, row: Row): void {
  const known = TABLES[table]!;
  for (const column of Object.keys(known.columns)) {
    if (!columnType(known, column).isNullable && (row[column] ?? null) === null) {
      throw new SqlError('23502', `null value in column "${column}" of "${table}"`);
    }
  }
}

const OUTPUT_INSERT = runOf('output.insert');

// ---------------------------------------------------------------- the others

type SpecialRun = (db: MemoryTables, tx: Transaction, rows: readonly JsonObject[]) => void;

const SPECIAL: Readonly<Record<string, SpecialRun>> = {
  'sequence.delete': (db, tx, rows) => {
    const sequences = new Set(rows.map(({ id }) => id));
    for (const { name, sequence } of Object.values(TABLES)) {
      if (sequence !== undefined) remove(db, tx, name, (row) => sequences.has(row[sequence]!));
    }
    remove(db, tx, 'sequences', (row) => sequences.has(row.id!));
  },

  'instance.delete': (db, tx, rows) => {
    for (const { id } of rows) noteEndOfExecution(db, tx, id!);
    deleteInstances(db, tx, new Set(rows.map(({ id }) => id!)));
  },

  'output.dropBlocks': (db, tx, rows) => {
    for (const { instance_id: instance, block_ids } of rows) {
      const blocks = new Set((block_ids ?? []) as JsonValue[]);
      const isDropped = (row: Row) => row.instance_id === instance && blocks.has(row.block_id!);
      for (const [, { effect }] of db.matching(tx, 'block_outputs', isDropped)) {
        if (effect != null) insertOnce(db, tx, 'effect_receipts', effect as Row);
      }
      remove(db, tx, 'block_outputs', isDropped);
    }
  },

  // No simulated engine has tasks from before.
  'taskBefore.move': () => undefined,
  'taskBefore.drop': () => undefined,

  'checkpoint.prune': (db, tx, rows) => {
    for (const { instance_id: instance, keep } of rows) {
      const all = db.matching(tx, 'checkpoints', (row) => row.instance_id === instance);
      const newestFirst = all.sort(([, a], [, b]) => (a.id! < b.id! ? 1 : -1));
      for (const [key] of newestFirst.slice(Number(keep)))
        db.put(tx, 'checkpoints', key, undefined);
    }
  },

  'rateGrant.prune': (db, tx, rows) => {
    for (const { limit_id, before } of rows) {
      const isOld = (row: Row) => row.limit_id === limit_id && row.granted_at! < before!;
      remove(db, tx, 'rate_grants', isOld);
    }
  },

  'eventCancel.order': (db, tx, rows) => {
    for (const { event_id, key_id } of rows) {
      for (const [, { instance_id }] of db.matching(
        tx,
        'cancel_waits',
        (row) => row.key_id === key_id,
      )) {
        const row = {
          instance_id: instance_id!,
          event_id: event_id!,
          outcome: null,
          taken_at: null,
        };
        expectWhole('event_cancels', row);
        const key = db.keyOf('event_cancels', row);
        if (db.seen(tx, 'event_cancels', key) === undefined) db.put(tx, 'event_cancels', key, row);
      }
    }
  },

  'eventCancel.settle': (db, tx, rows) => {
    for (const row of rows) {
      const key = db.keyOf('event_cancels', row);
      const before = db.seen(tx, 'event_cancels', key);
      if (before?.outcome === null) db.put(tx, 'event_cancels', key, { ...before, ...row });
    }
  },

  'eventCancel.handOver': (db, tx, rows) => {
    for (const { instance_id, event_id, key_id, name_id, taken_at } of rows) {
      if (db.seen(tx, 'instances', db.keyOf('instances', { id: instance_id! })) === undefined) {
        continue;
      }
      const isWait = (row: Row) =>
        row.instance_id === instance_id && (row.key_id === key_id || row.key_id === name_id);
      const isAwaited = db.matching(tx, 'cancel_waits', isWait).length > 0;
      const outcome = isAwaited ? null : 'ended';
      const at = isAwaited ? null : taken_at!;
      const row = { instance_id: instance_id!, event_id: event_id!, outcome, taken_at: at };
      insertOnce(db, tx, 'event_cancels', row);
    }
  },

  'collectedWait.clear': (db, tx, rows) => {
    for (const { pending_id, from_seq, to_seq } of rows) {
      if (from_seq === null || to_seq === null) continue;
      remove(db, tx, 'collected_waits', (row) => {
        const isAmong = row.seq! >= from_seq! && row.seq! <= to_seq!;
        return row.pending_id === pending_id && isAmong;
      });
    }
  },

  'collectedCancel.order': (db, tx, rows) => {
    for (const { event_id, key_id } of rows) {
      const waits = db.matching(tx, 'collected_waits', (row) => row.key_id === key_id);
      for (const [, { pending_id, seq, tenant_id }] of waits) {
        const wait = { pending_id: pending_id!, seq: seq!, tenant_id: tenant_id! };
        insertOnce(db, tx, 'collected_cancels', { ...wait, event_id: event_id! });
      }
    }
  },

  'startGrant.prune': (db, tx, rows) => {
    for (const { key_id, before } of rows) {
      const isOld = (row: Row) => row.key_id === key_id && row.granted_at! < before!;
      remove(db, tx, 'start_grants', isOld);
    }
  },

  'action.prune': (db, tx, rows) => {
    for (const { before } of rows) remove(db, tx, 'actions', (row) => row.at! < before!);
  },

  'activity.prune': (db, tx, rows) => {
    for (const { before } of rows) remove(db, tx, 'activity', (row) => row.at! < before!);
  },

  'bulkRetry.prune': (db, tx, rows) => {
    for (const { before } of rows) {
      remove(db, tx, 'bulk_retries', (row) => row.retried_at! < before!);
    }
  },

  'stepActivity.prune': (db, tx, rows) => {
    for (const { before } of rows) remove(db, tx, 'step_activity', (row) => row.at! < before!);
  },

  'queueMinute.prune': (db, tx, rows) => {
    for (const { before } of rows) remove(db, tx, 'queue_minutes', (row) => row.at! < before!);
  },

  'event.prune': (db, tx, rows) => {
    const isOver = ({ status, targets, fires }: Row) =>
      status !== 'pending' && targets === null && fires === null;
    for (const { before } of rows) {
      remove(db, tx, 'events', (row) => isOver(row) && row.ended_at! < before!);
    }
  },

  // So few that the statement's limit is never reached.
  'delivery.prune': (db, tx, rows) => {
    for (const { before } of rows) {
      if (before !== null) remove(db, tx, 'webhook_deliveries', (it) => it.attempted_at! < before!);
    }
  },

  // All of them, or none when one was decided on another version.
  'execution.update': (db, tx, rows) => {
    const table = 'continuity_executions';
    for (const { version, ...changes } of rows) {
      const key = db.keyOf(table, changes);
      const row = db.seen(tx, table, key);
      if (row === undefined || version === null || row.version !== version) {
        throw new SqlError('22P02', 'invalid input syntax for type integer: "stale"');
      }
      const next = { ...row, ...changes, version: Number(version) + 1 };
      expectWhole(table, next);
      if (db.matching(tx, table, (other) => isTwin(other, next)).length > 0) {
        throw new SqlError('23505', 'duplicate key value');
      }
      db.put(tx, table, key, next);
    }
  },

  // What was observed last stays.
  'runtime.set': (db, tx, rows) => {
    for (const row of rows) {
      expectWhole('runtimes', row);
      const key = db.keyOf('runtimes', row);
      db.lock(tx, `runtimes:${key}`);
      const before = db.seen(tx, 'runtimes', key);
      if (before === undefined || row.observed_at! >= before.observed_at!) {
        db.put(tx, 'runtimes', key, row);
      }
    }
  },
};

const ENDED: ReadonlySet<JsonValue> = new Set(['completed', 'failed', 'cancelled']);

/** An execution outlives its instance, and keeps how that ended. */
function noteEndOfExecution(db: MemoryTables, tx: Transaction, id: JsonValue): void {
  const instance = db.seen(tx, 'instances', db.keyOf('instances', { id }));
  if (instance === undefined || instance.continuity_id == null) return;
  if (!ENDED.has(instance.state!)) return;
  const table = 'continuity_executions';
  const isOf = (row: Row) => row.tenant_id === instance.tenant_id && row.current_instance_id === id;
  for (const [key, row] of db.matching(tx, table, isOf)) {
    const updated_at = laterOf(String(row.updated_at), String(instance.updated_at));
    db.put(tx, table, key, { ...row, ended: instance.state!, updated_at });
  }
}

function deleteInstances(db: MemoryTables, tx: Transaction, doomed: ReadonlySet<JsonValue>): void {
  for (const { name, instance } of Object.values(TABLES)) {
    if (instance === undefined) continue;
    remove(db, tx, name, (row) => doomed.has(row[instance]!));
  }
}

function insertOnce(db: MemoryTables, tx: Transaction, table: string, row: Row): void {
  if (db.violated(tx, table, row) === undefined) db.put(tx, table, db.keyOf(table, row), row);
}

function isTwin(a: Row, b: Row): boolean {
  return (
    a.continuity_id !== b.continuity_id &&
    a.tenant_id === b.tenant_id &&
    a.current_instance_id === b.current_instance_id
  );
}

function remove(
  db: MemoryTables,
  tx: Transaction,
  table: string,
  isGone: (row: Row) => boolean,
): void {
  for (const [key] of db.matching(tx, table, isGone)) db.put(tx, table, key, undefined);
}

/** Name of the prepared statement → what it does. */
export const RUNS: ReadonlyMap<string, Run> = new Map([
  ...MUTATION_KINDS.map((kind) => [STATEMENTS[kind]!.name, runOf(kind)] as const),
  ...Object.entries(LINE_STATEMENTS).flatMap(([kind, { name, isCopy, ofCells }]) => {
    const run = runOf(kind);
    const ofLines = isCopy ? copyRun(MUTATIONS[kind] as Insert) : run;
    return [[name, ofLines] as const, [ofCells!.name, run] as const];
  }),
  ...[GATED_STATEMENTS, GATED_LINE_STATEMENTS].flatMap((statements) =>
    Object.entries(statements).flatMap(([kind, statement]) => {
      const insert = MUTATIONS[kind] as Insert;
      const run = insertRun({ ...insert, onConflict: 'nothing' }, insert.gate?.unless?.name);
      return namesOf(statement).map((name) => [name, run] as const);
    }),
  ),
]);

/** Name of a statement whose rows are lines → their kind. */
const LINED = new Map<string, string>(
  [LINE_STATEMENTS, GATED_LINE_STATEMENTS].flatMap((statements) =>
    Object.entries(statements).flatMap(([kind, statement]) =>
      namesOf(statement).map((name) => [name, kind] as const),
    ),
  ),
);

function namesOf({ name, ofCells }: Statement): string[] {
  return ofCells === undefined ? [name] : [name, ofCells.name];
}

/** What a statement was given as one text: the cells of a row as a line. */
export function textIn(statement: string, values: readonly (string | null)[]): string {
  if (!CELLED.has(statement)) return values[0]!;
  return values.map((value) => value ?? NULL_CELL).join(CELL_END);
}

/** Statements that are given the cells of one row. */
const CELLED: ReadonlySet<string> = new Set(
  [LINE_STATEMENTS, GATED_LINE_STATEMENTS].flatMap((statements) =>
    Object.values(statements).map(({ ofCells }) => ofCells!.name),
  ),
);

/** The rows that a statement was given. */
export function rowsIn(statement: string, text: string): JsonObject[] {
  const kind = LINED.get(statement);
  if (kind === undefined) return JSON.parse(text) as JsonObject[];
  return text.split(LINE_END).map((line) => readRow(kind, line));
}
