/**
 * The pool of connections that actors are loaded over, in the simulation: it answers the real
 * loader's statements from what is committed when the question arrives, which may be old when the
 * answer does. Every statement of the loader has its counterpart here; a new one does not compile
 * without.
 */

import type pg from 'pg';
import { OPEN_EVENTS_MAX } from '../../actors/event/loads.js';
import {
  LARGE_COLUMNS,
  OVERDUE_ROWS_MAX,
  TASK_ALIASES,
  TASK_COLUMNS,
} from '../../actors/instance/loads.js';
import { LOAD_SQL } from '../../actors/shard/loads.js';
import type { Execution } from '../../schema/execution.js';
import { routeOf, shardOf } from '../../src/base/ids.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { SILENCE_REASON } from '../../src/core/effects.js';
import { isPattern } from '../../src/core/rate-patterns.js';
import type { Faults } from './faults.js';
import type { MemoryServer } from './memory-server.js';
import type { MemoryTables, Row } from './memory-tables.js';
import type { Thread, World } from './world.js';

type Name = keyof typeof LOAD_SQL;
type Values = readonly unknown[];

/** Rows in the statement's order, with at least the columns that it selects. */
type Read = (db: MemoryTables, values: Values) => Row[];

/** Rows that a cursor reads at once at most, so that a page ends in the middle of things. */
const PAGE_ROWS = 7;

export const memoryPool = (server: MemoryServer, thread: Thread): pg.Pool =>
  new MemoryPool(server, thread) as unknown as pg.Pool;

class MemoryPool {
  readonly #server: MemoryServer;
  readonly #thread: Thread;
  readonly #world: World;
  readonly #faults: Faults;

  constructor(server: MemoryServer, thread: Thread) {
    this.#server = server;
    this.#thread = thread;
    this.#world = server.deps.world;
    this.#faults = server.deps.faults;
  }

  query({ name, values }: { readonly name: string; readonly values: Values }) {
    const statement = name.replace('load_', '') as Name;
    return this.#ask(statement, () => ({ rows: rowsOf(this.#server.tables, statement, values) }));
  }

  async connect() {
    return {
      on() {},
      removeListener() {},
      release() {},
      query: ({ text, values }: { readonly text: string; readonly values: Values }) => {
        const statement = NAMES.get(text);
        if (statement === undefined) throw new Error(`a cursor over unknown SQL: ${text}`);
        let rest: Row[] | undefined;
        return {
          read: (max: number) =>
            this.#ask(statement, () => {
              rest ??= rowsOf(this.#server.tables, statement, values);
              return rest.splice(0, Math.min(max, PAGE_ROWS));
            }),
          close: () => Promise.resolve(),
        };
      },
    };
  }

  /** @param read what the server does when the question arrives */
  #ask<T>(name: Name, read: () => T): Promise<T> {
    const world = this.#world;
    const isSlow = this.#faults.hits('read.slow', name === 'routingReleases' ? 4 : 1);
    const isFailing = this.#faults.hits('read.failed', OF_ACTORS.has(name) ? 2 : 1);
    const there = world.latency(0.02, isSlow ? 1_500 : 1);
    const back = world.latency(0.02, isSlow ? 1_500 : 1);
    return new Promise((resolve, reject) => {
      world.at(world.now + there, () => {
        const isLost = isFailing || this.#server.isAway;
        const answer = isLost ? undefined : read();
        if (isLost) world.note(`${this.#thread.name} cannot read ${name}`);
        const arrive = () => {
          if (answer === undefined) reject(new Error('simulated: the rows could not be read'));
          else resolve(answer);
        };
        world.at(world.now + back, arrive, this.#thread);
      });
    });
  }
}

/** What an instance is brought to life with: it is least expected to fail where it matters most. */
const OF_ACTORS: ReadonlySet<Name> = new Set(['instances', 'outputs']);

const NAMES: ReadonlyMap<string, Name> = new Map(
  Object.entries(LOAD_SQL).map(([name, text]) => [text, name as Name]),
);

const COLUMNS = Object.fromEntries(
  Object.entries(LOAD_SQL).map(([name, text]) => [name, columnsOf(text)]),
) as Record<Name, string[]>;

/** The names of the columns that a statement selects. */
function columnsOf(sql: string): string[] {
  let flat = sql;
  // What stands in parentheses has no say in the names.
  while (flat.includes('(')) flat = flat.replaceAll(/\([^()]*\)/g, '');
  const list = /select (?:distinct (?:on )?)?(.*?) from /.exec(flat)?.[1];
  if (list === undefined) throw new Error(`no columns in ${sql}`);
  return list.split(',').map((column) => {
    const name = column.replace(/^.* as /, '').replace(/^ *\w\./, '');
    return name === '1' ? '?column?' : name.trim();
  });
}

function rowsOf(db: MemoryTables, name: Name, values: Values): Row[] {
  const columns = COLUMNS[name];
  return READS[name](db, values).map((row) => selected(db, columns, row));
}

/** As `pg` hands rows out: JSON as text. */
function selected(db: MemoryTables, columns: readonly string[], row: Row): Row {
  const result: Record<string, JsonValue> = {};
  for (const column of columns) {
    const value = row[column];
    if (value === undefined) throw new Error(`a row without the column ${column}`);
    result[column] = value !== null && db.isJson(column) ? JSON.stringify(value) : value;
  }
  return result;
}

/** It waits for its slot. */
const isAwaited = (row: Row | undefined): boolean =>
  row?.state === 'scheduled' && (row.execution as { readonly w?: 1 }).w === 1;

const tenantOf = (db: MemoryTables, { instance_id }: Row): JsonValue =>
  db.row('instances', String(instance_id))?.tenant_id ?? null;

interface Query {
  /** Columns that must have these values. */
  readonly is?: Readonly<Record<string, unknown>>;
  readonly where?: (row: Row) => boolean;
  /** Columns, the most significant first; `-` in front of a name turns its order round. */
  readonly by?: readonly string[];
  /** The place in that order which the rows lie behind. */
  readonly behind?: Values;
  readonly limit?: unknown;
}

function select(db: MemoryTables, table: string, query: Query = {}): Row[] {
  const { is = {}, where = () => true, by = [], behind, limit } = query;
  const values = Object.entries(is);
  const found: Row[] = [];
  for (const row of db.rows(table).values()) {
    if (!values.every(([column, value]) => row[column] === value) || !where(row)) continue;
    if (behind === undefined || isBehind(row, by, behind)) found.push(row);
  }
  return sorted(found, by).slice(0, (limit as number | undefined) ?? found.length);
}

function dueTimers(db: MemoryTables, query: Query): Row[] {
  return select(db, 'timers', query).map(({ instance_id = null, ...timer }) => {
    const tenant = db.row('instances', String(instance_id))?.tenant_id ?? '';
    return { ...timer, instance: instance_id, tenant };
  });
}

/** How many there are of each version and state. */
function summed(rows: readonly Row[], is_earlier: boolean): Row[] {
  const counts = new Map<string, Row & { instances: number }>();
  for (const { sequence_id = null, state = null } of rows) {
    const name = `${sequence_id} ${state}`;
    const instances = (counts.get(name)?.instances ?? 0) + 1;
    counts.set(name, { sequence_id, state, instances, is_earlier });
  }
  return [...counts.values()];
}

function byKey(db: MemoryTables, table: string, key: unknown): Row[] {
  const row = db.row(table, String(key));
  return row === undefined ? [] : [row];
}

const byKeys = (db: MemoryTables, table: string, keys: unknown): Row[] =>
  (keys as string[]).flatMap((key) => byKey(db, table, key));

function sorted(rows: Row[], columns: readonly string[]): Row[] {
  return rows.sort((a, b) => {
    for (const column of columns) {
      const [name, sign] = column.startsWith('-') ? [column.slice(1), -1] : [column, 1];
      const [x, y] = [a[name]!, b[name]!];
      if (x !== y) return x < y ? -sign : sign;
    }
    return 0;
  });
}

/** Whether the row lies behind the place, compared column by column. */
function isBehind(row: Row, columns: readonly string[], place: Values): boolean {
  for (const [i, column] of columns.entries()) {
    const [x, y] = [row[column] as string, place[i] as string];
    if (x !== y) return x > y;
  }
  return false;
}

const isAmong = (values: unknown, column: string) => {
  const wanted = new Set(values as JsonValue[]);
  return (row: Row) => wanted.has(row[column]!);
};

/** Of the rows with one value of the column, the one that comes first. */
function firstOfEach(rows: readonly Row[], column: string): Row[] {
  const seen = new Set<JsonValue | undefined>();
  return rows.filter((row) => !seen.has(row[column]) && seen.add(row[column]));
}

/** Whether the row belongs to the shard that asks. Of a cursor, numbers come as text. */
const isOf =
  ([shard, shards]: Values, column: string) =>
  (row: Row) =>
    shardOf(routeOf(String(row[column])), Number(shards)) === Number(shard);

/** The rows of every ask, with its number in `n`. */
const asked = <Ask>(asks: readonly Ask[], read: (ask: Ask) => Row[]): Row[] =>
  asks.flatMap((ask, at) => read(ask).map((row) => ({ ...row, n: at + 1 })));

/** The same for asks that come as a number, an instance and a block. */
function askedPairs(values: Values, read: (instance: string, block: string) => Row[]): Row[] {
  const [numbers, instances, blocks] = values as [number[], string[], string[]];
  return numbers.flatMap((n, at) => {
    const block_id = blocks[at]!;
    return read(instances[at]!, block_id).map((row) => ({ ...row, block_id, n }));
  });
}

/** The last one of each block. */
function lastOutputs(db: MemoryTables, instance_id: string): Row[] {
  const where = isAmong([null, '__error__'], 'output_ref');
  const by = ['block_id', '-created_at', '-id'];
  return firstOfEach(select(db, 'block_outputs', { is: { instance_id }, where, by }), 'block_id');
}

const outputsOf = (db: MemoryTables, instance_id: unknown, blocks: unknown) =>
  select(db, 'block_outputs', {
    is: { instance_id },
    where: isAmong(blocks, 'block_id'),
    by: ['created_at', 'id'],
  });

/** The last output of each item, or of each block in each of some items; all of one ask that fit. */
function itemOutputs(db: MemoryTables, values: Values): Row[] {
  const [numbers, instances, prefixes, depths, blocks, items] = values as [
    number[],
    string[],
    string[],
    number[],
    string[],
    (string | null)[],
  ];
  return numbers.flatMap((n, at) => {
    const wanted = items[at] == null ? undefined : (JSON.parse(items[at]) as number[]);
    const refs = wanted === undefined ? [null] : [null, '__error__'];
    const latest = new Map<string, Row>();
    for (const row of outputsOf(db, instances[at]!, JSON.parse(blocks[at]!))) {
      const part = String(row.iteration).split('.')[depths[at]! - 1] ?? '';
      if (!/^\d+$/.test(part) || !String(row.iteration).startsWith(prefixes[at]!)) continue;
      const item = Number(part);
      if (!refs.includes(row.output_ref as string | null)) continue;
      if (wanted?.includes(item) === false) continue;
      const text = JSON.stringify(row.output);
      if (wanted === undefined && /^\{"_index":.*,"_snapshot_ref":/s.test(text)) continue;
      const name = wanted === undefined ? part : `${part}:${row.block_id}`;
      latest.delete(name);
      latest.set(name, { ...row, n, item, fits: true });
    }
    const rows = [...latest.values()];
    const bytes = rows.reduce((sum, row) => sum + Number(row.output_size), 0);
    const fits = wanted !== undefined || bytes <= 6 * 1024 * 1024;
    return fits ? rows : rows.slice(0, 1).map((row) => ({ ...row, fits }));
  });
}

/** @param columns must have the values that follow the limit */
function readyTasks(...columns: readonly string[]): Read {
  return (db, [handler_name, rank, createdAt, id, limit, ...names]) =>
    select(db, 'worker_tasks', {
      is: { handler_name, ...Object.fromEntries(columns.map((column, i) => [column, names[i]])) },
      where: ({ rank, claimed_at }) => rank !== null && claimed_at === null,
      by: ['rank', 'created_at', 'id'],
      behind: [rank, createdAt, id],
      limit,
    });
}

const isLive = isAmong(['scheduled', 'running', 'waiting', 'paused'], 'state');
const isEnded = isAmong(['completed', 'failed', 'cancelled'], 'state');
const isOpenEvent = ({ status, targets }: Row) => status === 'pending' || targets !== null;
const isOverEvent = ({ status, targets, fires }: Row) =>
  status !== 'pending' && targets === null && fires === null;
const isOpen = isAmong(['pending', 'claimed'], 'state');
const isRouting = isAmong(['canary', 'promoted'], 'state');
const needsCandidate = isAmong(['validating', 'ready', 'canary', 'paused', 'promoted'], 'state');

/** Instances, started or not. */
function cancelledBy(db: MemoryTables, event_id: string): number {
  const is = { event_id };
  const pending = select(db, 'collected_cancels', { is }).map(({ pending_id }) => pending_id);
  return select(db, 'event_cancels', { is }).length + new Set(pending).size;
}

/** Of its candidate. */
function withDeprecation(db: MemoryTables, row: Row): Row {
  const candidate = db.row('sequences', String(row.candidate_sequence_id));
  return { ...row, is_deprecated: candidate?.deprecated ?? false };
}

/** Only a release leads to it, which was not promoted. */
function isHeld(db: MemoryTables, { id = null }: Row): boolean {
  const by = ['-created_at', '-id'];
  const [newest] = select(db, 'releases', { is: { candidate_sequence_id: id }, by, limit: 1 });
  return newest !== undefined && newest.state !== 'promoted';
}

/** The parameter where a read begins at the beginning. */
const BEGINNING = '-infinity';

/** What hangs on an instance, as the statement packs it. */
function besideInstance(db: MemoryTables, { id, state, signal_count }: Row): Row {
  const is = { instance_id: id };
  const isLive = !ENDED.has(state);
  const snapshots = isLive ? select(db, 'iteration_snapshots', { is, by: ['key'] }) : [];
  const kept = { ...is, status: 'kept' };
  const signals = Number(signal_count) > 0 ? select(db, 'signals', { is: kept, by: ['seq'] }) : [];
  return {
    snapshots: packed(snapshots.map(({ key, items }) => ({ key, items }))),
    signals: packed(
      signals.map(({ seq, id, signal_type, payload, sent_by, sent_groups }) => {
        const text = payload === null ? null : JSON.stringify(payload);
        return { seq, id, signal_type, payload: text, sent_by, sent_groups };
      }),
    ),
  };
}

const ENDED: ReadonlySet<unknown> = new Set(['completed', 'cancelled']);

/** A row for each task that is loaded with the instance, the first of which has the rest. */
function withTasks(db: MemoryTables, row: Row, beside: Row): Row[] {
  const isCut = (task: Row) =>
    task.withdrawn === true && task.state === 'failed' && Number(task.checkpoint_seq) > 0;
  const where = (task: Row) => isOpen(task) || isCut(task);
  const is = { instance_id: row.id };
  const tasks = ENDED.has(row.state)
    ? []
    : select(db, 'worker_tasks', { is, by: ['id'] })
        .filter(where)
        .map((task) => selected(db, TASK_COLUMNS, asRead(task)));
  const rows = tasks.length === 0 ? [undefined] : tasks;
  return rows.map((task, at) => {
    const aliased = TASK_ALIASES.map(([column, alias]) => [alias, task?.[column] ?? null]);
    const all: Record<string, JsonValue> = { ...row, ...beside };
    if (at > 0) {
      for (const column of [...LARGE_COLUMNS, 'injected', 'snapshots', 'signals'])
        all[column] = null;
    }
    return { ...all, ...Object.fromEntries(aliased), place: task === undefined ? null : at + 1 };
  });
}

/** No simulated engine has tasks from before. */
const asRead = (task: Row): Row => ({ ...task, is_before: false });

function packed(rows: readonly object[]): string | null {
  return rows.length === 0 ? null : JSON.stringify(rows);
}

function permitsOf(db: MemoryTables, key_id: string): Row[] {
  return select(db, 'permits', { is: { key_id }, by: ['instance_id'] }).map((row) => ({
    ...row,
    has_permit: true,
    wanted: db.row('permit_requests', String(row.instance_id))?.number ?? null,
    created_at: db.row('permit_requests', String(row.instance_id))?.created_at ?? null,
    is_awaited: isAwaited(db.row('instances', String(row.instance_id))),
    tenant_id: tenantOf(db, row),
  }));
}

function requestedSlotsOf(db: MemoryTables, key_id: string): Row[] {
  const is = { key_id, has_slot: true };
  return select(db, 'permit_requests', { is, by: ['instance_id'] }).map((row) => ({
    ...row,
    has_permit: false,
    wanted: row.number!,
    is_awaited: false,
    tenant_id: tenantOf(db, row),
  }));
}

function waitersOf(db: MemoryTables, key_id: string): Row[] {
  const is = { key_id, has_slot: false };
  const by = ['created_at', 'instance_id'];
  return select(db, 'permit_requests', { is, by })
    .filter(({ instance_id }) => db.row('permits', String(instance_id)) === undefined)
    .map((row) => ({ ...row, tenant_id: tenantOf(db, row) }));
}
const withoutStart = (row: Row): Row => {
  const { dry_run } = (row.runtime ?? {}) as JsonObject;
  return { ...row, is_dry_run: dry_run !== undefined, starts_at: null };
};

const READS: Readonly<Record<Name, Read>> = {
  instances: (db, [ids]) =>
    byKeys(db, 'instances', ids).flatMap((row) => {
      const timer = db.row('timers', String(row.id));
      const { fire_at = null, recover = null } = timer ?? {};
      const injected = db.row('injected_blocks', String(row.id))?.blocks ?? null;
      const text = injected === null ? null : JSON.stringify(injected);
      const beside = { has_timer: timer !== undefined, fire_at, recover, injected: text };
      return withTasks(db, row, { ...beside, ...besideInstance(db, row) });
    }),
  endedInstances: (db, [ids, before]) =>
    byKeys(db, 'instances', ids)
      .filter(isAmong(['completed', 'cancelled'], 'state'))
      .filter((row) => row.updated_at! < (before as string)),
  outputs: (db, values) =>
    askedPairs(values, (instance, block) =>
      lastOutputs(db, instance).filter(({ block_id }) => block_id === block),
    ),
  allOutputs: (db, [instances]) =>
    asked(instances as string[], (instance) => lastOutputs(db, instance)),
  itemOutputs: (db, values) => itemOutputs(db, values),
  outputTotals: (db, values) =>
    askedPairs(values, (instance, block) => {
      const rows = outputsOf(db, instance, [block]);
      const bytes = rows.reduce((sum, row) => sum + Number(row.output_size), 0);
      return [{ rows: rows.length, bytes }];
    }),
  outputRows: (db, [instance, blocks]) => outputsOf(db, instance, blocks),
  task: (db, [id]) => byKey(db, 'worker_tasks', id).map(asRead),
  tasksToMove: () => [],
  taskOwners: (db, [ids]) => byKeys(db, 'worker_tasks', ids),
  sequence: (db, [id]) => byKey(db, 'sequences', id),
  orphanedInstances: (db, [ids]) =>
    byKeys(db, 'instances', ids).filter(
      (row) => db.row('sequence_tombstones', String(row.sequence_id)) !== undefined,
    ),
  instanceCounts: (db, [sequence_id]) => {
    const rows = select(db, 'instances', { is: { sequence_id } });
    const live = rows.filter(isLive).length;
    const failed = rows.filter(isAmong(['failed'], 'state')).length;
    return [{ live, failed, ended: rows.length - live - failed }];
  },
  dueTimers: (db, [from, to, ...place]) => {
    const isOwn = isOf(place, 'instance_id');
    const isDue = ({ fire_at }: Row) =>
      fire_at !== null &&
      (from === BEGINNING || fire_at! > (from as string)) &&
      fire_at! <= (to as string);
    const where = (row: Row) => isDue(row) && isOwn(row);
    return dueTimers(db, { where, by: ['fire_at', 'instance_id'] });
  },
  overdueTimers: (db, values) => READS.dueTimers(db, values).slice(0, OVERDUE_ROWS_MAX),
  recover: (db, place) => {
    const where = isOf(place, 'instance_id');
    return dueTimers(db, { is: { recover: true }, where, by: ['instance_id'] });
  },
  permitKeys: (db, [after, limit, ...place]) => {
    const isOwn = isOf(place, 'key_id');
    const requests = select(db, 'permit_requests', { is: { has_slot: false } });
    const rows = [...requests, ...select(db, 'permits')];
    const keys = sorted(firstOfEach(rows.filter(isOwn), 'key_id'), ['key_id']);
    return keys.filter(({ key_id }) => key_id! > (after as string)).slice(0, limit as number);
  },
  permitKeysWithWork: (db, [keys]) =>
    (keys as string[])
      .filter(
        (key) =>
          waitersOf(db, key).length > 0 ||
          permitsOf(db, key).some(
            ({ number, wanted, is_awaited }) => number !== wanted || is_awaited === true,
          ),
      )
      .map((key_id) => ({ key_id })),
  permitHolders: (db, [keys]) =>
    asked(keys as string[], (key) => [...permitsOf(db, key), ...requestedSlotsOf(db, key)]),
  permitWaiters: (db, [keys, limit]) =>
    asked(keys as string[], (key) => waitersOf(db, key).slice(0, limit as number)),
  startKeys: (db, [after, limit, ...place]) => {
    const rows = select(db, 'start_requests', { where: isOf(place, 'key_id') });
    const keys = sorted(firstOfEach(rows, 'key_id'), ['key_id']);
    return keys.filter(({ key_id }) => key_id! > (after as string)).slice(0, limit as number);
  },
  startWaiters: (db, [keys, limit]) =>
    asked(keys as string[], (key_id) =>
      select(db, 'start_requests', {
        is: { key_id },
        by: ['created_at', 'instance_id'],
        limit,
      }).map((row) => ({ ...row, tenant_id: tenantOf(db, row) })),
    ),
  startGrants: (db, [keys, since]) =>
    asked([...(keys as string[]).keys()], (at) =>
      select(db, 'start_grants', {
        is: { key_id: (keys as string[])[at] },
        where: ({ granted_at }) => granted_at! >= (since as string[])[at]!,
        by: ['granted_at', 'id'],
      }),
    ),
  rateLimit: (db, [id]) => byKey(db, 'rate_limits', id),
  ratePatterns: (db, [tenants]) =>
    select(db, 'rate_limits', {
      where: (row) => isAmong(tenants, 'tenant_id')(row) && isPattern(String(row.limit_key)),
    }),
  allRatePatterns: (db, [tenant, id, limit]) =>
    select(db, 'rate_limits', {
      where: ({ limit_key }) => isPattern(String(limit_key)),
      by: ['tenant_id', 'id'],
      behind: [tenant, id],
      limit,
    }),
  grantedLimits: (db, [after, before, limit]) =>
    firstOfEach(
      select(db, 'rate_grants', {
        where: ({ limit_id }) => limit_id! > (after as string),
        by: ['limit_id', 'granted_at', 'id'],
      }),
      'limit_id',
    )
      .map((row) => ({ limit_id: row.limit_id!, is_old: row.granted_at! < (before as string) }))
      .slice(0, limit as number),
  rateGrants: (db, [limit_id, since]) =>
    select(db, 'rate_grants', {
      is: { limit_id },
      where: ({ granted_at }) => granted_at! >= (since as string),
      by: ['granted_at', 'id'],
    }),
  openEvents: (db, [keys]) =>
    asked(keys as string[], (key_id) =>
      select(db, 'events', {
        is: { key_id },
        where: isOpenEvent,
        by: ['seq', 'id'],
        limit: OPEN_EVENTS_MAX + 1,
      }),
    ),
  eventWaits: (db, [keys]) =>
    asked(keys as string[], (key_id) =>
      select(db, 'event_waits', { is: { key_id }, by: ['id', 'instance_id'] }),
    ),
  eventTakes: (db, [events]) => select(db, 'event_takes', { where: isAmong(events, 'event_id') }),
  storedEvent: (db, [id]) =>
    byKey(db, 'events', id).map((row) => ({
      ...row,
      cancelled: cancelledBy(db, id as string),
    })),
  eventListeners: (db, values) => {
    const [tenants, names, keys, nameIds] = values as [string[], string[], string[], string[]];
    return asked([...names.keys()], (at) => {
      const is = { tenant_id: tenants[at], event_name: names[at], enabled: true };
      const isAwaited = [keys[at], nameIds[at]].some(
        (key_id) =>
          select(db, 'cancel_waits', { is: { key_id }, limit: 1 }).length > 0 ||
          select(db, 'collected_waits', { is: { key_id }, limit: 1 }).length > 0,
      );
      const triggers = select(db, 'triggers', { is, by: ['slug'] });
      return isAwaited ? [...triggers, { slug: null, config: null }] : triggers;
    });
  },
  pendingCancels: (db, [instance, event, limit, ...place]) => {
    const isOwn = isOf(place, 'instance_id');
    return select(db, 'event_cancels', {
      where: (row) =>
        row.outcome === null &&
        isOwn(row) &&
        db.row('instances', String(row.instance_id)) !== undefined,
      by: ['instance_id', 'event_id'],
      behind: [instance, event],
      limit,
    }).map((row) => {
      const { event_name = null, correlation_key = null } =
        db.row('events', String(row.event_id)) ?? {};
      return { ...row, event_name, correlation_key };
    });
  },
  dueEventKeys: (db, [after, now, limit, ...place]) => {
    const isOwn = isOf(place, 'key_id');
    const isAwaited = ({ key_id = null }: Row) =>
      select(db, 'event_waits', { is: { key_id }, limit: 1 }).length > 0;
    const isDue = (row: Row) =>
      row.targets !== null || row.expires_at! <= (now as string) || isAwaited(row);
    const where = (row: Row) => isOpenEvent(row) && isOwn(row) && isDue(row);
    const found = firstOfEach(select(db, 'events', { where, by: ['key_id'] }), 'key_id');
    return found.filter(({ key_id }) => key_id! > (after as string)).slice(0, limit as number);
  },
  oldestEndedEvent: (db) =>
    select(db, 'events', {
      where: (row) => isOverEvent(row) && row.ended_at !== null,
      by: ['ended_at', 'id'],
      limit: 1,
    }),
  webhookUrls: (db, [after, limit, ...place]) => {
    const isOwn = isOf(place, 'id');
    const where = (row: Row) =>
      row.next_attempt_at !== null && row.url! > (after as string) && isOwn(row);
    return firstOfEach(select(db, 'webhook_outbox', { where, by: ['url'] }), 'url').slice(
      0,
      limit as number,
    );
  },
  dueWebhooks: (db, [url, at, id, limit, ...place]) => {
    const isOwn = isOf(place, 'id');
    return select(db, 'webhook_outbox', {
      is: { url },
      where: (row) => row.next_attempt_at !== null && isOwn(row),
      by: ['next_attempt_at', 'id'],
      behind: [at === BEGINNING ? '' : at, id],
      limit,
    });
  },
  webhook: (db, [id]) => byKey(db, 'webhook_outbox', id),
  bulkJob: (db, [id]) => byKey(db, 'bulk_jobs', id),
  openBulkJobs: (db, [tenant_id]) => [
    { count: select(db, 'bulk_jobs', { is: { tenant_id, ended_at: null } }).length },
  ],
  oldBulkJobs: (db, [tenant_id, until, limit]) =>
    select(db, 'bulk_jobs', {
      is: { tenant_id },
      where: ({ created_at, ended_at = null }) =>
        created_at! < (until as string) && ended_at !== null && ended_at < (until as string),
      by: ['created_at', 'id'],
      limit,
    }),
  credentials: (db, [tenants, ids]) =>
    (tenants as string[]).flatMap((tenant_id, i) =>
      select(db, 'credentials', { is: { tenant_id, id: (ids as string[])[i] ?? null } }),
    ),
  credentialCount: (db, [tenant_id]) => [
    { count: select(db, 'credentials', { is: { tenant_id } }).length },
  ],
  trigger: (db, [slug]) => select(db, 'triggers', { is: { slug } }),
  subscription: (db, [id]) => byKey(db, 'webhook_subscriptions', id),
  subscriptions: (db, [tenants]) =>
    select(db, 'webhook_subscriptions', { where: isAmong(tenants, 'tenant_id') }),
  allSubscriptions: (db, [after, limit]) =>
    select(db, 'webhook_subscriptions', { by: ['id'], behind: [after], limit }),
  endpoints: (db, [tenants]) =>
    select(db, 'worker_endpoints', { where: isAmong(tenants, 'tenant_id') }),
  allEndpoints: (db, [tenant, name, limit]) =>
    select(db, 'worker_endpoints', { by: ['tenant_id', 'name'], behind: [tenant, name], limit }),
  endpointAt: (db, [count]) =>
    select(db, 'worker_endpoints', { by: ['tenant_id', 'name'] }).slice(
      count as number,
      (count as number) + 1,
    ),
  oldestRetry: (db) => select(db, 'bulk_retries', { by: ['retried_at'], limit: 1 }),
  oldestAction: (db) => select(db, 'actions', { by: ['at', 'id'], limit: 1 }),
  oldestActivity: (db) => select(db, 'activity', { by: ['at'], limit: 1 }),
  oldestQueueMinutes: (db) => select(db, 'queue_minutes', { by: ['at'], limit: 1 }),
  oldestSteps: (db) => select(db, 'step_activity', { by: ['at'], limit: 1 }),
  oldestDelivery: (db) =>
    select(db, 'webhook_deliveries', { by: ['attempted_at', 'id'], limit: 1 }),
  schedules: (db, [ids]) => byKeys(db, 'cron_schedules', ids),
  dueSchedules: (db, [at, id, to, limit, ...place]) => {
    const isOwn = isOf(place, 'id');
    const isDue = ({ next_fire_at }: Row) =>
      next_fire_at !== null && next_fire_at! <= (to as string);
    return select(db, 'cron_schedules', {
      is: { enabled: true },
      where: (row) => isDue(row) && isOwn(row),
      by: ['next_fire_at', 'id'],
      ...(at === BEGINNING ? {} : { behind: [at, id] }),
      limit,
    });
  },
  keyedInstances: (db, [ids]) =>
    asked(ids as string[], (id) => {
      const collected = byKey(db, 'instance_keys', id).map(({ instance_id = null, ...key }) => {
        const { starts_at = null } = db.row('pending_starts', String(instance_id)) ?? {};
        return { ...key, id: instance_id, is_dry_run: false, starts_at };
      });
      return [...collected, ...byKey(db, 'instances', id).map(withoutStart)];
    }),
  startOfInstance: (db, [ids]) => asked(ids as string[], (id) => byKey(db, 'pending_starts', id)),
  startsOfKey: (db, [keys]) =>
    asked(keys as string[], (key_id) =>
      select(db, 'pending_starts', { is: { key_id }, by: ['created_at', 'id'] }).map((row) => {
        const is = { pending_id: row.id! };
        return { ...row, is_awaiting: select(db, 'collected_waits', { is, limit: 1 }).length > 0 };
      }),
    ),
  keyOfStart: (db, [id]) => byKey(db, 'pending_starts', id),
  creationOfStart: (db, [ids]) => asked(ids as string[], (id) => byKey(db, 'pending_starts', id)),
  itemsOfStart: (db, [ids]) =>
    asked(ids as string[], (pending_id) =>
      select(db, 'collected_items', { is: { pending_id }, by: ['seq'] }),
    ),
  ordersOfStart: (db, [ids]) =>
    asked(ids as string[], (pending_id) =>
      select(db, 'collected_cancels', { is: { pending_id }, by: ['event_id', 'seq'] }),
    ),
  orderedStarts: (db, [after, limit, ...place]) => {
    const rows = select(db, 'collected_cancels', {
      where: isOf(place, 'pending_id'),
      by: ['pending_id'],
      behind: [after],
    });
    return rows.slice(0, limit as number).map(({ pending_id }) => {
      const { key_id = null } = db.row('pending_starts', String(pending_id)) ?? {};
      return { pending_id: pending_id!, key_id };
    });
  },
  lateOrders: (db, [ids]) =>
    asked(ids as string[], (pending_id) =>
      select(db, 'collected_cancels', { is: { pending_id }, by: ['event_id', 'seq'] }).map(
        (row) => {
          const { key_id = null, event_name = null } = db.row('events', String(row.event_id)) ?? {};
          return { ...row, key_id, event_name };
        },
      ),
    ),
  dueStarts: (db, [at, id, to, limit, ...place]) => {
    const isOwn = isOf(place, 'key_id');
    return select(db, 'pending_starts', {
      where: (row) => row.starts_at! <= (to as string) && isOwn(row),
      by: ['starts_at', 'id'],
      ...(at === BEGINNING ? {} : { behind: [at, id] }),
      limit,
    });
  },
  activeRuns: (db, [schedules]) =>
    asked(schedules as string[], (cron_schedule_id) => {
      const is = { cron_schedule_id };
      const runs = select(db, 'instances', { is, by: ['-created_at', '-id'], limit: 1_000 });
      return runs.filter(isLive);
    }),
  namedSequence: (db, values) => {
    const [tenants, namespaces, names, versions] = values as [
      string[],
      string[],
      string[],
      (number | null)[],
    ];
    return asked([...names.keys()], (at) => {
      const is = { tenant_id: tenants[at], namespace: namespaces[at], name: names[at] };
      const version = versions[at] ?? null;
      const where = (row: Row) =>
        version === null ? row.deprecated === false : row.version === version;
      const found = select(db, 'sequences', { is, where, by: ['-version'] });
      const isOnHold = ({ hold }: Row) => version === null && hold === true;
      const rank = (row: Row) => Number(isOnHold(row)) * 2 + Number(isHeld(db, row));
      const [first] = found.toSorted((a, b) => rank(a) - rank(b));
      return first === undefined ? [] : [{ ...first, is_on_hold: isOnHold(first) }];
    });
  },
  routingReleases: (db) =>
    select(db, 'releases', { where: isRouting, by: ['id'] }).map((row) => withDeprecation(db, row)),
  leadingReleases: (db, [candidate_sequence_id]) =>
    select(db, 'releases', { is: { candidate_sequence_id }, where: isRouting }),
  release: (db, [id]) => byKey(db, 'releases', id),
  routingRelease: (db, [baseline_sequence_id]) =>
    select(db, 'releases', { is: { baseline_sequence_id }, where: isRouting, limit: 1 }),
  releaseNaming: (db, [id]) => {
    const isBaseline = (row: Row) => row.baseline_sequence_id === id;
    const where = (row: Row) =>
      (isBaseline(row) || row.candidate_sequence_id === id) &&
      (needsCandidate(row) || (row.state === 'draft' && isBaseline(row)));
    return select(db, 'releases', { where, limit: 1 });
  },
  openReleases: (db) =>
    select(db, 'releases', { where: isAmong(['canary', 'validating'], 'state'), by: ['id'] })
      .map((row) => withDeprecation(db, row))
      .filter(
        ({ state, gates, is_deprecated }) =>
          state === 'validating' || is_deprecated === true || (gates as JsonValue[]).length > 0,
      ),
  releaseOutcomes: (db, [release_id, since, sequence_id, from, sample]) => {
    const isSince = ({ created_at }: Row) => created_at! >= (since as string);
    const routed = select(db, 'release_outcomes', { is: { release_id }, where: isSince });
    const where = (row: Row) =>
      isEnded(row) &&
      !isSince(row) &&
      (from === '-infinity' || row.created_at! >= (from as string)) &&
      (row.runtime as { dry_run?: JsonValue }).dry_run !== true;
    const own = routed.filter((row) => row.sequence_id === sequence_id).length;
    const limit = Math.max(0, (sample as number) - own);
    const by = ['-created_at', '-id'];
    const earlier = select(db, 'instances', { is: { sequence_id }, where, by, limit });
    return [...summed(routed, false), ...summed(earlier, true)];
  },
  checkpoints: (db, [instances]) =>
    asked(instances as string[], (instance_id) => [
      { stored: select(db, 'checkpoints', { is: { instance_id } }).length },
    ]),
  newestCheckpoint: (db, [instance_id]) =>
    select(db, 'checkpoints', { is: { instance_id }, by: ['-id'], limit: 1 }),
  doubtfulEffect: (db, [instance_id]) => {
    const isInDoubt = ({ id }: Row) =>
      (db.row('effect_resolutions', String(id))?.state ?? 'unknown') === 'unknown';
    const hasEntry = ({ history }: Row, event: string, reason?: string) =>
      (history as unknown as readonly { event: string; reason?: string }[]).some(
        (entry) => entry.event === event && (reason === undefined || entry.reason === reason),
      );
    const isTouched = (row: Row) =>
      Number(row.claim_epoch) > 0 &&
      (row.worker_id != null || hasEntry(row, 'reclaimed', SILENCE_REASON));
    const tried = select(db, 'worker_tasks', {
      is: { instance_id, state: 'failed' },
      where: (row) => isTouched(row) && !hasEntry(row, 'failed'),
    });
    const untold = select(db, 'effect_receipts', { is: { instance_id, state: 'unknown' } });
    return [...tried, ...untold].filter(isInDoubt).slice(0, 1);
  },
  endedBlocks: (db, [instances]) => {
    const where = (row: Row) => row.output_ref !== '__error__';
    return asked(instances as string[], (instance_id) =>
      firstOfEach(select(db, 'block_outputs', { is: { instance_id }, where }), 'block_id'),
    );
  },
  familyMessages: (db, [to, from, before, limit, ...place]) => {
    const isOwn = isOf(place, 'to_id');
    const where = (row: Row) => row.id! < (before as string) && isOwn(row);
    return select(db, 'kin_notes', { where, by: ['to_id', 'from_id'], behind: [to, from], limit });
  },
  childEnds: (db, [ids]) =>
    asked(ids as string[], (id) =>
      byKey(db, 'instances', id).map((row) => {
        const outputs = select(db, 'block_outputs', { is: { instance_id: id } });
        const bytes = outputs.reduce((sum, { output_size }) => sum + Number(output_size), 0);
        const { failed_at = null } = byKey(db, 'dead_letters', id)[0] ?? {};
        const { m } = row.execution as unknown as Execution;
        const owes = row.state === 'failed' && m !== undefined;
        return { ...row, failed_at, owes, rows: outputs.length, bytes };
      }),
    ),
  childOutputs: (db, [ids]) =>
    asked(ids as string[], (instance_id) =>
      select(db, 'block_outputs', { is: { instance_id }, by: ['created_at', 'id'] }),
    ),
  claimedTasks: (db, place) =>
    select(db, 'worker_tasks', { where: isOf(place, 'instance_id') }).filter(
      ({ rank, claimed_at }) => rank !== null && claimed_at !== null,
    ),
  readyTasks: readyTasks(),
  readyTasksOfTenant: readyTasks('tenant_id'),
  readyTasksOfQueue: readyTasks('queue_name'),
  readyTasksOfTenantQueue: readyTasks('tenant_id', 'queue_name'),
};
