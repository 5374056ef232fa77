/** Reads of instances: actors with all their rows, the ends of children, due timers and claims. */

import type { Variant } from '../../schema/release-states.js';
import type { InstanceState, TaskState } from '../../schema/states.js';
import type { JsonValue } from '../../src/base/json.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import { foundBy } from '../../src/db/mutation.js';
import { columnsBut, type StoredRow, selected } from '../../src/db/table.js';
import { boundOf, columnOf, idsOf, isOwn, ofIds, type Queries } from '../runtime/queries.js';
import type { DueTimer } from '../runtime/timer.js';
import { IS_OPEN, OPEN_TASKS, TASKS, TASKS_TO_MOVE, type TaskToMove } from './old-tables.js';
import { outputLoads } from './output-loads.js';
import { BLOCK_OUTPUTS, OUTPUT_ROWS, type SIGNALS } from './output-tables.js';
import { type FAMILY_MESSAGES, INSTANCES } from './tables.js';
import { WORKER_TASKS } from './task-tables.js';

export const INSTANCE_COLUMNS = columnsBut(
  INSTANCES,
  'creation_audit',
  'creation_data',
  'cron_schedule_id',
  'failure',
);
export const TASK_COLUMNS = [...columnsBut(WORKER_TASKS, 'ownership_epoch'), 'is_before'] as const;
export const OUTPUT_COLUMNS = columnsBut(BLOCK_OUTPUTS, 'try', 'effect');

export interface InstanceRow
  extends Omit<
    StoredRow<typeof INSTANCES, (typeof INSTANCE_COLUMNS)[number]>,
    'state' | 'release_variant'
  > {
  readonly state: InstanceState;
  readonly release_variant: Variant | null;
  readonly injected: string | null;
}

export interface WorkerTaskRow
  extends Omit<StoredRow<typeof WORKER_TASKS>, 'state' | 'ownership_epoch'> {
  readonly state: TaskState;
  /** The row is in the old tables (`old-tables.ts`). */
  readonly is_before?: boolean;
}

export interface StoredTimer {
  readonly fireAt: UnixMs | null;
  readonly recover: boolean;
}

export interface LoadedInstance {
  readonly row: InstanceRow;
  readonly timer: StoredTimer | undefined;
  readonly tasks: readonly WorkerTaskRow[];
  readonly snapshots: ReadonlyMap<string, JsonValue[]>;
  /** Signals that no step has taken yet, oldest first. */
  readonly signals: readonly KeptSignalRow[];
}

export type KeptSignalRow = StoredRow<
  typeof SIGNALS,
  'seq' | 'id' | 'signal_type' | 'payload' | 'sent_by' | 'sent_groups'
>;

export type ListedOutput = StoredRow<typeof BLOCK_OUTPUTS, (typeof OUTPUT_COLUMNS)[number]>;

export interface ChildEndRow {
  readonly state: InstanceState;
  readonly failure: string | null;
  /** The time of the dead letter, which differs for each failure. */
  readonly failed_at: string | null;
  /** Whether the instance has failed and a retry would clean up. */
  readonly owes: boolean;
  readonly rows: number;
  readonly bytes: number;
}

/** The instance of an idempotency key; `starts_at` is set until it starts from collected creations. */
export interface KeyedInstance {
  readonly id: string;
  readonly tenant_id: string;
  readonly idempotency_key: string | null;
  readonly is_dry_run: boolean;
  readonly starts_at: string | null;
}

type StoredStart = { readonly tenant_id: string; readonly starts_at: string };

/** The columns that do not belong to the instance; snapshots and signals are JSON or null. */
interface Beside {
  readonly has_timer: boolean;
  readonly fire_at: string | null;
  readonly recover: boolean;
  readonly snapshots: string | null;
  readonly signals: string | null;
  /** The number of the task in this row, from 1; null without an open task. */
  readonly place: number | null;
}

export const TASK_ALIASES: readonly (readonly [column: keyof WorkerTaskRow, alias: string])[] =
  TASK_COLUMNS.map((column) => [column, `task_${column}`]);

/** Large columns, which are null in all but the first row of an instance. */
export const LARGE_COLUMNS: ReadonlySet<string> = new Set([
  'metadata',
  'data',
  'data_patch',
  'config',
  'runtime',
  'execution',
  'context_audit',
]);

function ofFirstRow(expression: string, column: string): string {
  return `case when coalesce(k.place, 1) = 1 then ${expression} end as ${column}`;
}

const OF_INSTANCE = INSTANCE_COLUMNS.map((column) =>
  LARGE_COLUMNS.has(column) ? ofFirstRow(`i.${column}`, column) : `i.${column}`,
);

const IS_LIVE = "i.state not in ('completed', 'cancelled')";

// A failed try hands its checkpoint to the next one.
const IS_OPEN_TASK =
  "(state in ('pending', 'claimed') or (withdrawn and state = 'failed' and checkpoint_seq > 0))";

const SNAPSHOTS =
  `case when ${IS_LIVE} then (select json_agg(json_build_object('key', key, 'items', items) order by key) ` +
  'from iteration_snapshots where instance_id = i.id) end';

// Also for ended instances, which may be resumed from a block that waits.
const KEPT_SIGNALS =
  'case when i.signal_count > 0 then (select json_agg(json_build_object(' +
  "'seq', seq, 'id', id, 'signal_type', signal_type, 'payload', payload::text, 'sent_by', sent_by, " +
  "'sent_groups', sent_groups" +
  ") order by seq) from signals where instance_id = i.id and status = 'kept') end";

export const INSTANCE_SQL = {
  // The instance that has the key of a creation, by the id that follows from the key. Before it starts, it has a time.
  keyedInstances: ofIds(
    'o.id, o.tenant_id, o.idempotency_key, o.is_dry_run, o.starts_at',
    'select k.instance_id as id, k.tenant_id, k.idempotency_key, false as is_dry_run, p.starts_at ' +
      'from instance_keys k left join pending_starts p on p.id = k.instance_id where k.id = w.id ' +
      "union all select i.id, i.tenant_id, i.idempotency_key, (i.runtime ->> 'dry_run') is not null, null " +
      'from instances i where i.id = w.id',
  ),
  startOfInstance: ofIds(
    'o.tenant_id, o.starts_at',
    'select tenant_id, starts_at from pending_starts where id = w.id',
  ),
  // One statement, because another one costs 0.2 ms. It returns a row for each open task; most
  // instances have one or none.
  instances:
    `select ${OF_INSTANCE.join(', ')}, ` +
    't.instance_id is not null as has_timer, t.fire_at, t.recover, ' +
    `${ofFirstRow('b.blocks', 'injected')}, ${ofFirstRow(SNAPSHOTS, 'snapshots')}, ` +
    `${ofFirstRow(KEPT_SIGNALS, 'signals')}, k.place, ` +
    `${TASK_ALIASES.map(([column, alias]) => `k.${column} as ${alias}`).join(', ')} ` +
    `from instances i left join timers t on ${foundBy('t.instance_id', 'i.id')} ` +
    `left join injected_blocks b on ${foundBy('b.instance_id', 'i.id')} left join lateral (` +
    `select ${selected(TASK_COLUMNS)}, row_number() over (order by id) as place from ${TASKS} t ` +
    `where instance_id = i.id and ${IS_LIVE} and ${IS_OPEN_TASK}) k on true ` +
    'where i.id = any($1::uuid[])',
  endedInstances:
    "select id from instances where id = any($1::uuid[]) and state in ('completed', 'cancelled') " +
    'and updated_at < $2::timestamptz',
  orphanedInstances:
    'select i.id from instances i where i.id = any($1::uuid[]) ' +
    'and exists (select 1 from sequence_tombstones t where t.id = i.sequence_id)',
  task: `select ${selected(TASK_COLUMNS)} from ${TASKS} t where id = $1::uuid`,
  taskOwners: `select id, instance_id from ${TASKS} t where id = any($1::uuid[])`,
  tasksToMove: TASKS_TO_MOVE,
  familyMessages:
    'select to_id, from_id, id, word from kin_notes where (to_id, from_id) > ($1::uuid, $2::uuid) ' +
    `and id < $3::uuid and ${isOwn('to_id', '$5', '$6')} order by to_id, from_id limit $4`,
  childEnds: ofIds(
    'o.state, o.failure, o.failed_at, o.owes, o.rows, o.bytes',
    'select i.state, i.failure, t.rows, t.bytes, ' +
      // Read the large column of failed instances only.
      "case when i.state = 'failed' then i.execution->'m' is not null else false end as owes, " +
      '(select d.failed_at from dead_letters d where d.instance_id = i.id) ' +
      'from instances i cross join lateral (' +
      `select count(*) as rows, coalesce(sum(b.output_size), 0) as bytes from ${OUTPUT_ROWS} b ` +
      'where b.instance_id = i.id offset 0) t where i.id = w.id',
  ),
  childOutputs: ofIds(
    selected(OUTPUT_COLUMNS, 'o'),
    `select ${selected(OUTPUT_COLUMNS)} from ${OUTPUT_ROWS} b where instance_id = w.id ` +
      'order by created_at, id',
  ),
} as const;

function ownLoads(queries: Queries) {
  const sql = queries.of(INSTANCE_SQL);
  const childEnds = sql.batch<string, ChildEndRow>('childEnds', columnOf);
  const childOutputs = sql.batch<string, ListedOutput>('childOutputs', columnOf);
  const keyedInstances = sql.batch<string, KeyedInstance>('keyedInstances', columnOf);
  const pendingStarts = sql.batch<string, StoredStart>('startOfInstance', columnOf);
  return {
    /** Everything that actors need except outputs, which depend on the plan. */
    async instances(ids: readonly string[]): Promise<Map<string, LoadedInstance>> {
      const found = new Map<string, LoadedInstance & { readonly tasks: WorkerTaskRow[] }>();
      for (const columns of await sql.all<InstanceRow & Beside>('instances', [ids])) {
        let loaded = found.get(columns.id);
        if (loaded === undefined) {
          loaded = loadedOf(columns);
          found.set(columns.id, loaded);
        }
        if (columns.place !== null) loaded.tasks[columns.place - 1] = picked(columns, TASK_ALIASES);
      }
      return found;
    },

    endedInstances: async (ids: readonly string[], before: UnixMs): Promise<string[]> =>
      idsOf(await sql.all('endedInstances', [ids, isoTime(before)])),
    orphanedInstances: async (ids: readonly string[]): Promise<string[]> =>
      idsOf(await sql.all('orphanedInstances', [ids])),
    /** @param id the one that follows from the key */
    keyedInstance: async (id: string): Promise<KeyedInstance | undefined> =>
      (await keyedInstances.read(id))[0],
    /** Of an instance that is yet to start from collected creations. */
    startOfInstance: async (id: string): Promise<StoredStart | undefined> =>
      (await pendingStarts.read(id))[0],
    task: (id: string): Promise<WorkerTaskRow | undefined> => sql.one('task', [id]),
    async taskOwners(tasks: readonly string[]): Promise<Map<string, string>> {
      const rows = await sql.all<{ id: string; instance_id: string }>('taskOwners', [tasks]);
      return new Map(rows.map((row) => [row.id, row.instance_id]));
    },

    tasksToMove: (after: string, limit: number): Promise<TaskToMove[]> =>
      sql.all('tasksToMove', [after, limit]),

    /** The messages to instances of the shard after this position, with ids below `before`. */
    familyMessages(
      after: { readonly to: string; readonly from: string },
      before: string,
      limit: number,
    ): Promise<StoredRow<typeof FAMILY_MESSAGES>[]> {
      return sql.own('familyMessages', [after.to, after.from, before, limit]);
    },
    childEnd: async (id: string): Promise<ChildEndRow | undefined> => (await childEnds.read(id))[0],
    /** Oldest first. */
    childOutputs: (id: string): Promise<ListedOutput[]> => childOutputs.read(id),
  };
}

export function instanceLoads(queries: Queries) {
  return { ...ownLoads(queries), ...outputLoads(queries), ...timerLoads(queries) };
}

export type InstanceLoads = ReturnType<typeof instanceLoads>;

function loadedOf(columns: InstanceRow & Beside): LoadedInstance & { tasks: WorkerTaskRow[] } {
  const { has_timer, fire_at, recover, snapshots, signals } = columns;
  const fireAt = fire_at === null ? null : Date.parse(fire_at);
  const items = parsedRows<{ key: string; items: JsonValue[] }>(snapshots);
  return {
    row: picked<InstanceRow>(columns, ROW_COLUMNS),
    timer: has_timer ? { fireAt, recover } : undefined,
    tasks: [],
    signals: parsedRows<KeptSignalRow>(signals),
    snapshots: new Map(items.map((snapshot) => [snapshot.key, snapshot.items])),
  };
}

const ROW_COLUMNS = [...INSTANCE_COLUMNS, 'injected'].map((column) => [column, column] as const);

function picked<Row extends object>(
  row: object,
  columns: readonly (readonly [column: string, name: string])[],
): Row {
  const from = row as Readonly<Record<string, unknown>>;
  const to: Record<string, unknown> = {};
  for (const [column, name] of columns) to[column] = from[name];
  return to as Row;
}

function parsedRows<Row>(text: string | null): Row[] {
  return text === null ? [] : (JSON.parse(text) as Row[]);
}

export const OVERDUE_ROWS_MAX = 1_000;

/** A sub-select for the tenant, not a join, so that every plan reads timers in index order. */
const OF_TIMER =
  't.instance_id as instance, t.rank, ' +
  "coalesce((select i.tenant_id from instances i where i.id = t.instance_id), '') as tenant " +
  'from timers t';

export const TIMER_SQL = {
  dueTimers:
    `select t.fire_at, ${OF_TIMER} where t.fire_at > $1::timestamptz and ` +
    `t.fire_at <= $2::timestamptz and ${isOwn('t.instance_id', '$3', '$4')} ` +
    'order by t.fire_at, t.instance_id',
  overdueTimers:
    `select ${OF_TIMER} where t.fire_at > $1::timestamptz and ` +
    `t.fire_at <= $2::timestamptz and ${isOwn('t.instance_id', '$3', '$4')} ` +
    `order by t.fire_at, t.instance_id limit ${OVERDUE_ROWS_MAX}`,
  recover:
    `select ${OF_TIMER} where t.recover and ${isOwn('t.instance_id', '$1', '$2')} ` +
    'order by t.instance_id',
  claimedTasks:
    `select id, instance_id, tenant_id, heartbeat_at from ${OPEN_TASKS} o ` +
    `where ${IS_OPEN} and claimed_at is not null and ${isOwn('instance_id', '$1', '$2')}`,
} as const;

function timerLoads(queries: Queries) {
  const sql = queries.of(TIMER_SQL);

  return {
    dueTimers(
      from: UnixMs,
      to: UnixMs,
      each: (fireAt: UnixMs, timer: DueTimer) => void,
    ): Promise<void> {
      return sql.each<DueTimer & { readonly fire_at: string }>(
        'dueTimers',
        [boundOf(from), isoTime(to)],
        ({ fire_at, instance, rank, tenant }) =>
          each(Date.parse(fire_at), { instance, rank, tenant }),
      );
    },

    /** The earliest timers that were due after `from` and until `to`. */
    overdueTimers: (from: UnixMs, to: UnixMs): Promise<DueTimer[]> =>
      sql.own('overdueTimers', [boundOf(from), isoTime(to)]),
    /** Instances with work in a process that has died. */
    recoverable: (each: (timer: DueTimer) => void): Promise<void> =>
      sql.each<DueTimer>('recover', [], each),
    claimedTasks(
      each: (task: string, instance: string, heartbeatAt: UnixMs, tenant: string) => void,
    ): Promise<void> {
      type Row = StoredRow<
        typeof WORKER_TASKS,
        'id' | 'instance_id' | 'tenant_id' | 'heartbeat_at'
      >;
      return sql.each<Row>('claimedTasks', [], (row) => {
        const { id, instance_id, tenant_id, heartbeat_at } = row;
        each(id, instance_id, heartbeat_at === null ? 0 : Date.parse(heartbeat_at), tenant_id);
      });
    },
  };
}

export type TimerLoads = ReturnType<typeof timerLoads>;
