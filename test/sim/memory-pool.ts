/**
 * The pool of connections that actors are loaded over, in the simulation: it answers the real
 * loader's statements from what is committed when the question arrives, which may be old when the
 * answer does. Every statement of the loader has its counterpart here; a new one does not compile
 * without.
 */

import type pg from 'pg';
import { LOAD_SQL, OVERDUE_ROWS_MAX } from '../../actors/runtime/load-sql.js';
import { routeOf, shardOf } from '../../src/core/ids.js';
import type { JsonValue } from '../../src/core/json.js';
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

export function memoryPool(server: MemoryServer, thread: Thread): pg.Pool {
  return new MemoryPool(server, thread) as unknown as pg.Pool;
}

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
const OF_ACTORS: ReadonlySet<Name> = new Set(['instances', 'tasks', 'snapshots', 'outputs']);

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
  const list = /select (?:distinct (?:on )?)?(.*?) from/.exec(flat)?.[1];
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

function all(db: MemoryTables, table: string, matches: (row: Row) => boolean): Row[] {
  const found: Row[] = [];
  for (const row of db.rows(table).values()) if (matches(row)) found.push(row);
  return found;
}

function byKey(db: MemoryTables, table: string, key: unknown): Row[] {
  const row = db.row(table, String(key));
  return row === undefined ? [] : [row];
}

function byKeys(db: MemoryTables, table: string, keys: unknown): Row[] {
  return (keys as string[]).flatMap((key) => byKey(db, table, key));
}

/** Sorts by columns, one after the other; `-` in front of a name turns its order round. */
function sorted(rows: Row[], ...columns: readonly string[]): Row[] {
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

/** Whether the row belongs to the shard that asks. Of a cursor, numbers come as text. */
function isOwn(id: JsonValue | undefined, [shard, shards]: Values): boolean {
  return shardOf(routeOf(String(id)), Number(shards)) === Number(shard);
}

/** The rows of every ask, with its number in `n`. */
function asked<Ask>(asks: readonly Ask[], read: (ask: Ask) => Row[]): Row[] {
  return asks.flatMap((ask, at) => read(ask).map((row) => ({ ...row, n: at + 1 })));
}

/** The same for asks that come as a number, an instance and a block. */
function askedPairs(
  values: Values,
  read: (instance: string, block: string) => readonly Row[],
): Row[] {
  const [numbers, instances, blocks] = values as [number[], string[], string[]];
  return numbers.flatMap((n, at) =>
    read(instances[at]!, blocks[at]!).map((row) => ({ ...row, block_id: blocks[at]!, n })),
  );
}

/** Newest first. */
function storedOutputs(db: MemoryTables, instance: string): Row[] {
  const isStored = (row: Row) =>
    row.instance_id === instance && (row.output_ref === null || row.output_ref === '__error__');
  return sorted(all(db, 'block_outputs', isStored), '-created_at', '-id');
}

/** The first row of each block. */
function firstOfBlocks(rows: readonly Row[]): Row[] {
  const first = new Map<JsonValue, Row>();
  for (const row of rows) if (!first.has(row.block_id!)) first.set(row.block_id!, row);
  return [...first.values()];
}

function outputsOf(db: MemoryTables, instance: unknown, blocks: unknown): Row[] {
  const wanted = new Set(blocks as string[]);
  return all(
    db,
    'block_outputs',
    (row) => row.instance_id === instance && wanted.has(row.block_id as string),
  );
}

/** @param columns must have the values that follow the limit */
function readyTasks(...columns: readonly string[]): Read {
  const order = ['rank', 'created_at', 'task_id'];
  return (db, [handler, rank, createdAt, id, limit, ...names]) => {
    const waiting = all(
      db,
      'open_tasks',
      (row) =>
        row.handler_name === handler &&
        columns.every((column, i) => row[column] === names[i]) &&
        isBehind(row, order, [rank, createdAt, id]) &&
        db.row('worker_tasks', String(row.task_id))?.state === 'pending',
    );
    return sorted(waiting, ...order).slice(0, limit as number);
  };
}

const LIVE: ReadonlySet<JsonValue> = new Set(['scheduled', 'running', 'waiting', 'paused']);
const OPEN: ReadonlySet<JsonValue> = new Set(['pending', 'claimed']);

const NEEDS_CANDIDATE: ReadonlySet<JsonValue> = new Set([
  'validating',
  'ready',
  'canary',
  'paused',
  'promoted',
]);

const isRouting = ({ state }: Row) => state === 'canary' || state === 'promoted';

const READS: Readonly<Record<Name, Read>> = {
  instances: (db, [ids]) =>
    byKeys(db, 'instances', ids).map((row) => {
      const timer = db.row('timers', String(row.id));
      const { fire_at = null, recover = null } = timer ?? {};
      const injected = db.row('injected_blocks', String(row.id))?.blocks ?? null;
      return {
        ...row,
        has_timer: timer !== undefined,
        fire_at,
        recover,
        injected: injected === null ? null : JSON.stringify(injected),
      };
    }),
  endedInstances: (db, [ids, before]) =>
    byKeys(db, 'instances', ids).filter(
      (row) =>
        (row.state === 'completed' || row.state === 'cancelled') &&
        row.updated_at! < (before as string),
    ),
  tasks: (db, [ids]) => {
    const wanted = new Set(ids as string[]);
    const isLoaded = (row: Row) =>
      wanted.has(row.instance_id as string) &&
      (OPEN.has(row.state!) ||
        (row.withdrawn === true && row.state === 'failed' && Number(row.checkpoint_seq) > 0));
    return sorted(all(db, 'worker_tasks', isLoaded), 'id');
  },
  snapshots: (db, [ids]) => {
    const wanted = new Set(ids as string[]);
    return all(db, 'iteration_snapshots', (row) => wanted.has(row.instance_id as string));
  },
  outputs: (db, values) =>
    askedPairs(values, (instance, block) =>
      storedOutputs(db, instance)
        .filter((row) => row.block_id === block)
        .slice(0, 1),
    ),
  allOutputs: (db, [instances]) =>
    asked(instances as string[], (instance) =>
      sorted(firstOfBlocks(storedOutputs(db, instance)), 'block_id'),
    ),
  outputTotals: (db, values) =>
    askedPairs(values, (instance, block) => {
      const rows = outputsOf(db, instance, [block]);
      const bytes = rows.reduce((sum, row) => sum + Number(row.output_size), 0);
      return [{ rows: rows.length, bytes }];
    }),
  outputRows: (db, [instance, blocks]) =>
    sorted(outputsOf(db, instance, blocks), 'created_at', 'id'),
  task: (db, [id]) => byKey(db, 'worker_tasks', id),
  taskOwners: (db, [ids]) => byKeys(db, 'worker_tasks', ids),
  sequence: (db, [id]) => byKey(db, 'sequences', id),
  orphanedInstances: (db, [ids]) =>
    byKeys(db, 'instances', ids).filter(
      (row) => db.row('sequence_tombstones', String(row.sequence_id)) !== undefined,
    ),
  instanceCounts: (db, [sequence]) => {
    const states = all(db, 'instances', (row) => row.sequence_id === sequence).map(
      ({ state }) => state!,
    );
    const live = states.filter((state) => LIVE.has(state)).length;
    const failed = states.filter((state) => state === 'failed').length;
    return [{ live, failed, ended: states.length - live - failed }];
  },
  dueTimers: (db, [from, to, ...place]) => {
    const isDue = ({ instance_id, fire_at }: Row) =>
      fire_at !== null &&
      (from === '-infinity' || fire_at! > (from as string)) &&
      fire_at! <= (to as string) &&
      isOwn(instance_id, place);
    return sorted(all(db, 'timers', isDue), 'fire_at', 'instance_id');
  },
  overdueTimers: (db, values) => READS.dueTimers(db, values).slice(0, OVERDUE_ROWS_MAX),
  recover: (db, place) =>
    sorted(
      all(db, 'timers', (row) => row.recover === true && isOwn(row.instance_id, place)),
      'instance_id',
    ),
  permitKeys: (db, [after, limit, ...place]) => {
    const rows = [...db.rows('permit_requests').values(), ...db.rows('permits').values()];
    const keys = new Set(rows.map((row) => row.key_id!));
    return [...keys]
      .filter((key) => key! > (after as string) && isOwn(key, place))
      .sort()
      .slice(0, limit as number)
      .map((key_id) => ({ key_id }));
  },
  permitHolders: (db, [key]) =>
    sorted(
      all(db, 'permits', (row) => row.key_id === key),
      'instance_id',
    ).map((row) => ({
      ...row,
      wanted: db.row('permit_requests', String(row.instance_id))?.number ?? null,
      state: db.row('instances', String(row.instance_id))?.state ?? null,
    })),
  permitWaiters: (db, [key, limit]) =>
    sorted(
      all(
        db,
        'permit_requests',
        (row) => row.key_id === key && db.row('permits', String(row.instance_id)) === undefined,
      ),
      'created_at',
      'instance_id',
    ).slice(0, limit as number),
  rateLimit: (db, [id]) => byKey(db, 'rate_limits', id),
  rateGrants: (db, [limit, since]) =>
    sorted(
      all(
        db,
        'rate_grants',
        (row) => row.limit_id === limit && row.granted_at! >= (since as string),
      ),
      'granted_at',
      'id',
    ),
  webhookUrls: (db, [limit, ...place]) => {
    const isOpen = (row: Row) => row.next_attempt_at !== null && isOwn(row.id, place);
    const open = all(db, 'webhook_outbox', isOpen);
    const urls = [...new Set(open.map((row) => row.url!))].sort();
    return urls.slice(0, limit as number).map((url) => ({ url }));
  },
  dueWebhooks: (db, [url, at, id, limit, ...shard]) => {
    const place = [at === '-infinity' ? '' : at, id];
    const isDue = (row: Row) =>
      row.url === url &&
      row.next_attempt_at !== null &&
      isBehind(row, ['next_attempt_at', 'id'], place) &&
      isOwn(row.id, shard);
    return sorted(all(db, 'webhook_outbox', isDue), 'next_attempt_at', 'id').slice(
      0,
      limit as number,
    );
  },
  webhook: (db, [id]) => byKey(db, 'webhook_outbox', id),
  oldestDelivery: (db) =>
    sorted(
      all(db, 'webhook_deliveries', () => true),
      'attempted_at',
      'id',
    ).slice(0, 1),
  schedules: (db, [ids]) => byKeys(db, 'cron_schedules', ids),
  dueSchedules: (db, [at, id, to, limit, ...place]) => {
    const isDue = (row: Row) =>
      row.enabled === true &&
      row.next_fire_at !== null &&
      (at === '-infinity' || isBehind(row, ['next_fire_at', 'id'], [at, id])) &&
      row.next_fire_at! <= (to as string) &&
      isOwn(row.id, place);
    const due = sorted(all(db, 'cron_schedules', isDue), 'next_fire_at', 'id');
    return due.slice(0, limit as number);
  },
  activeRuns: (db, [schedules]) =>
    asked(schedules as string[], (schedule) => {
      const runs = all(db, 'instances', (row) => row.cron_schedule_id === schedule);
      return sorted(runs, '-created_at', '-id')
        .slice(0, 1_000)
        .filter((row) => LIVE.has(row.state!));
    }),
  routingReleases: (db) => sorted(all(db, 'releases', isRouting), 'id'),
  release: (db, [id]) => byKey(db, 'releases', id),
  routingRelease: (db, [baseline]) =>
    all(db, 'releases', (row) => row.baseline_sequence_id === baseline && isRouting(row)).slice(
      0,
      1,
    ),
  releaseNaming: (db, [id]) =>
    all(
      db,
      'releases',
      (row) =>
        (row.baseline_sequence_id === id || row.candidate_sequence_id === id) &&
        (NEEDS_CANDIDATE.has(row.state!) ||
          (row.state === 'draft' && row.baseline_sequence_id === id)),
    ).slice(0, 1),
  openReleases: (db) =>
    sorted(
      all(
        db,
        'releases',
        ({ state, gates }) =>
          state === 'validating' || (state === 'canary' && (gates as JsonValue[]).length > 0),
      ),
      'id',
    ),
  releaseOutcomes: (db, [release, since]) => {
    const counts = new Map<string, Row & { instances: number }>();
    for (const { release_id, sequence_id, state, created_at } of db
      .rows('release_outcomes')
      .values()) {
      if (release_id !== release || created_at! < (since as string)) continue;
      const name = `${sequence_id} ${state}`;
      const instances = (counts.get(name)?.instances ?? 0) + 1;
      counts.set(name, { sequence_id: sequence_id!, state: state!, instances });
    }
    return [...counts.values()];
  },
  checkpoints: (db, [instances]) =>
    asked(instances as string[], (instance) => [
      { stored: all(db, 'checkpoints', (row) => row.instance_id === instance).length },
    ]),
  newestCheckpoint: (db, [instance]) =>
    sorted(
      all(db, 'checkpoints', (row) => row.instance_id === instance),
      'id',
    ).slice(-1),
  doubtfulEffect: (db, [instance]) => {
    const isOpen = ({ id }: Row) =>
      (db.row('effect_resolutions', String(id))?.state ?? 'unknown') === 'unknown';
    const tried = all(
      db,
      'worker_tasks',
      (row) =>
        row.instance_id === instance && row.state === 'failed' && Number(row.claim_epoch) > 0,
    );
    const untold = all(
      db,
      'effect_receipts',
      (row) => row.instance_id === instance && row.state === 'unknown',
    );
    return [...tried, ...untold].filter(isOpen).slice(0, 1);
  },
  endedBlocks: (db, [instances]) =>
    asked(instances as string[], (instance) =>
      firstOfBlocks(
        all(
          db,
          'block_outputs',
          (row) => row.instance_id === instance && row.output_ref !== '__error__',
        ),
      ),
    ),
  claimedTasks: (db, place) =>
    [...db.rows('open_tasks').values()].flatMap((row) => {
      const task = db.row('worker_tasks', String(row.task_id));
      if (task?.state !== 'claimed' || !isOwn(row.instance_id, place)) return [];
      return [{ ...row, heartbeat_at: task.heartbeat_at ?? null }];
    }),
  readyTasks: readyTasks(),
  readyTasksOfTenant: readyTasks('tenant_id'),
  readyTasksOfQueue: readyTasks('queue_name'),
  readyTasksOfTenantQueue: readyTasks('tenant_id', 'queue_name'),
};
