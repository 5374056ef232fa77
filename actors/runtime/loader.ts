/**
 * What actors read when they come to life: rows by primary key, many actors in one query per turn,
 * and pages of what is due or open when a shard starts. Reads only; every statement is named and
 * keyed by an index.
 */

import type pg from 'pg';
import { LIMITS } from '../../src/config.js';
import type { JsonValue } from '../../src/core/json.js';
import type { Plan } from '../../src/core/plan.js';
import type { Outcomes } from '../../src/core/releases/gates.js';
import {
  type ReleaseRow,
  releaseRowOf,
  type StoredRelease,
} from '../../src/core/releases/record.js';
import type { RoutingRow } from '../../src/core/releases/routes.js';
import type { UnixMs } from '../../src/core/time.js';
import { isoTime } from '../../src/core/time.js';
import { withCursor } from '../../src/db/pool.js';
import { RELEASE_SQL, type ReleaseStateRow } from './release-sql.js';
import {
  type DueSchedule,
  INSTANCE_COLUMNS,
  type InstanceCounts,
  type InstanceRow,
  type LoadedInstance,
  type OpenTaskRow,
  type PermitHolderRow,
  type PermitWaiterRow,
  type PollScope,
  type RateGrantRow,
  type RateLimitRow,
  type ScheduleRow,
  type SequenceRow,
  type StoredOutput,
  TASK_COLUMNS,
  type TaskPlace,
  WEBHOOK_COLUMNS,
  type WebhookRow,
  type WorkerTaskRow,
} from './rows.js';

/** Overdue timers that are read at once. */
export const OVERDUE_ROWS_MAX = 1_000;

/** @param condition of the kind of poll; `$2 … $4` is the place of the last task that was read */
function readyTasks(condition: string): string {
  return (
    'select o.task_id, o.instance_id, o.tenant_id, o.queue_name, o.rank, o.created_at ' +
    'from open_tasks o cross join lateral (' +
    "select 1 from worker_tasks where id = o.task_id and state = 'pending' offset 0) t " +
    `where o.handler_name = $1 ${condition}and ` +
    '(o.rank, o.created_at, o.task_id) > ($2::smallint, $3::timestamptz, $4::uuid) ' +
    'order by o.rank, o.created_at, o.task_id limit $5'
  );
}

/** The least key after the one given; null when there is none. */
function nextPermitKey(after: string): string {
  const of = (table: string) =>
    `(select n.key_id from ${table} n where n.key_id > ${after} order by n.key_id limit 1)`;
  return `least(${of('permit_requests')}, ${of('permits')})`;
}

export const LOAD_SQL = {
  instances:
    `select ${INSTANCE_COLUMNS.map((column) => `i.${column}`).join(', ')}, ` +
    't.instance_id is not null as has_timer, t.fire_at, t.recover, b.blocks as injected ' +
    'from instances i left join timers t on t.instance_id = i.id ' +
    'left join injected_blocks b on b.instance_id = i.id where i.id = any($1::uuid[])',
  // A failed try that was given back keeps its checkpoint for the next one.
  tasks:
    `select ${TASK_COLUMNS.join(', ')} from worker_tasks where instance_id = any($1::uuid[]) ` +
    "and (state in ('pending', 'claimed') or (withdrawn and state = 'failed' and checkpoint_seq > 0)) " +
    'order by id',
  snapshots:
    'select instance_id, key, items from iteration_snapshots where instance_id = any($1::uuid[])',
  outputs:
    'select distinct on (block_id) block_id, output from block_outputs ' +
    'where instance_id = $1::uuid and ($2::text[] is null or block_id = any($2::text[])) ' +
    "and (output_ref is null or output_ref = '__error__') " +
    'order by block_id, created_at desc, id desc',
  outputTotals:
    'select count(*) as rows, coalesce(sum(output_size), 0) as bytes from block_outputs ' +
    'where instance_id = $1::uuid and block_id = any($2::text[])',
  outputRows:
    'select block_id, iteration, attempt, try, output, output_ref, output_size ' +
    'from block_outputs where instance_id = $1::uuid and block_id = any($2::text[]) ' +
    'order by created_at, id',
  endedInstances:
    "select id from instances where id = any($1::uuid[]) and state in ('completed', 'cancelled') " +
    'and updated_at < $2::timestamptz',
  // Their sequence was deleted, and they are still to be removed.
  orphanedInstances:
    'select i.id from instances i where i.id = any($1::uuid[]) ' +
    'and exists (select 1 from sequence_tombstones t where t.id = i.sequence_id)',
  newestCheckpoint:
    'select id from checkpoints where instance_id = $1::uuid order by id desc limit 1',
  // What a worker that once had the task did, or a try without an output, nobody knows.
  doubtfulEffect:
    "select t.id from worker_tasks t where t.instance_id = $1::uuid and t.state = 'failed' " +
    'and t.claim_epoch > 0 and coalesce((select r.state from effect_resolutions r ' +
    "where r.id = t.id), 'unknown') = 'unknown' " +
    'union all select e.id from effect_receipts e where e.instance_id = $1::uuid ' +
    "and e.state = 'unknown' and coalesce((select r.state from effect_resolutions r " +
    "where r.id = e.id), 'unknown') = 'unknown' limit 1",
  endedBlocks:
    'select distinct block_id from block_outputs where instance_id = $1::uuid ' +
    "and output_ref is distinct from '__error__'",
  task: `select ${TASK_COLUMNS.join(', ')} from worker_tasks where id = $1::uuid`,
  taskOwners: 'select id, instance_id from worker_tasks where id = any($1::uuid[])',
  sequence:
    'select id, tenant_id, namespace, name, version, deprecated, definition from sequences ' +
    'where id = $1::uuid',
  instanceCounts:
    "select count(*) filter (where state in ('completed', 'cancelled')) as ended, " +
    "count(*) filter (where state = 'failed') as failed, " +
    "count(*) filter (where state not in ('completed', 'cancelled', 'failed')) as live " +
    'from instances where sequence_id = $1::uuid',
  dueTimers:
    'select instance_id, fire_at, rank from timers where fire_at > $1::timestamptz and ' +
    'fire_at <= $2::timestamptz order by fire_at, instance_id',
  overdueTimers:
    'select instance_id, rank from timers where fire_at > $1::timestamptz and ' +
    `fire_at <= $2::timestamptz order by fire_at, instance_id limit ${OVERDUE_ROWS_MAX}`,
  recover: 'select instance_id, rank from timers where recover order by instance_id',
  // Those that somebody waits for or holds a slot of: one after the other by the indexes, however many
  // instances each has.
  permitKeys:
    'with recursive keys(key_id) as (' +
    `select ${nextPermitKey('$1::uuid')} ` +
    `union all select ${nextPermitKey('k.key_id')} from keys k where k.key_id is not null) ` +
    'select key_id from keys where key_id is not null limit $2',
  permitHolders:
    'select p.instance_id, p.number, ' +
    '(select r.number from permit_requests r where r.instance_id = p.instance_id) as wanted, ' +
    '(select i.state from instances i where i.id = p.instance_id) as state ' +
    'from permits p where p.key_id = $1::uuid order by p.instance_id',
  permitWaiters:
    'select r.instance_id, r.number, r.max_concurrency, r.created_at from permit_requests r ' +
    'where r.key_id = $1::uuid and (r.created_at, r.instance_id) > ($2::timestamptz, $3::uuid) ' +
    'and not exists (select 1 from permits p where p.instance_id = r.instance_id offset 0) ' +
    'order by r.created_at, r.instance_id limit $4',
  rateLimit:
    'select tenant_id, limit_key, max_count, window_seconds from rate_limits where id = $1::uuid',
  rateGrants:
    'select granted_at, count from rate_grants where limit_id = $1::uuid ' +
    'and granted_at >= $2::timestamptz order by granted_at, id',
  schedules:
    'select id, tenant_id, namespace, sequence_id, cron_expr, timezone, enabled, metadata, ' +
    'overlap_policy, skipped_fires, last_skipped_at, last_triggered_at, next_fire_at, last_error, ' +
    'created_at, updated_at from cron_schedules where id = any($1::uuid[])',
  dueSchedules:
    'select id, next_fire_at from cron_schedules where enabled ' +
    'and (next_fire_at, id) > ($1::timestamptz, $2::uuid) and next_fire_at <= $3::timestamptz ' +
    'order by next_fire_at, id limit $4',
  // Of the newest runs only: a schedule may have millions that ended.
  activeRuns:
    'select s.id as schedule_id, r.id from unnest($1::uuid[]) as s(id) cross join lateral (' +
    'select id, state from instances where cron_schedule_id = s.id ' +
    'order by created_at desc, id desc limit 1000) r ' +
    "where r.state in ('scheduled', 'running', 'waiting', 'paused')",
  // All in one statement, so that a table is one state of the releases.
  routingReleases:
    'select id, tenant_id, baseline_sequence_id, candidate_sequence_id, state, canary_percent, ' +
    "created_at, updated_at from releases where state in ('canary', 'promoted')",
  checkpoints: 'select count(*) as stored from checkpoints where instance_id = $1::uuid',
  // One address after the other by the index, however many webhooks each has.
  webhookUrls:
    'with recursive urls(url) as (' +
    '(select url from webhook_outbox where next_attempt_at is not null order by url limit 1) ' +
    'union all select (select w.url from webhook_outbox w where w.next_attempt_at is not null ' +
    'and w.url > u.url order by w.url limit 1) from urls u where u.url is not null) ' +
    'select url from urls where url is not null limit $1',
  dueWebhooks:
    `select ${WEBHOOK_COLUMNS.join(', ')} from webhook_outbox where url = $1 ` +
    'and next_attempt_at is not null and (next_attempt_at, id) > ($2::timestamptz, $3::uuid) ' +
    'order by next_attempt_at, id limit $4',
  webhook: `select ${WEBHOOK_COLUMNS.join(', ')} from webhook_outbox where id = $1::uuid`,
  oldestDelivery: 'select attempted_at from webhook_deliveries order by attempted_at, id limit 1',
  // `offset 0` keeps the join a look-up by key for each open task: as a plain join, Postgres may
  // read the whole history of tasks instead. The same in `readyTasks`.
  claimedTasks:
    'select o.task_id, o.instance_id, t.heartbeat_at from open_tasks o cross join lateral (' +
    "select heartbeat_at from worker_tasks where id = o.task_id and state = 'claimed' offset 0) t",
  // One statement for each kind of poll: each has an index with exactly its conditions and order.
  readyTasks: readyTasks(''),
  readyTasksOfTenant: readyTasks('and o.tenant_id = $6 '),
  readyTasksOfQueue: readyTasks('and o.queue_name = $6 '),
  readyTasksOfTenantQueue: readyTasks('and o.tenant_id = $6 and o.queue_name = $7 '),
  ...RELEASE_SQL,
} as const;

/** What actors are given of the loader: another store may stand in for the tables. */
export type Rows = Pick<Loader, keyof Loader>;

/** A database that went silent is given up: what waits for the rows is refused, or tried again. */
const QUERY_TIMEOUT_MS = 10_000;

export class Loader {
  readonly #pool: pg.Pool;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  /** Rows with everything an actor needs but outputs, which depend on its plan. */
  async instances(ids: readonly string[]): Promise<Map<string, LoadedInstance>> {
    const { rows } = await this.#query<
      InstanceRow & { has_timer: boolean; fire_at: string | null; recover: boolean }
    >('instances', [ids]);
    const live = rows.filter(({ state }) => state !== 'completed' && state !== 'cancelled');
    const liveIds = live.map((row) => row.id);
    const [tasks, snapshots] =
      liveIds.length === 0
        ? [[], []]
        : await Promise.all([
            this.#query<WorkerTaskRow>('tasks', [liveIds]).then((result) => result.rows),
            this.#query<{ instance_id: string; key: string; items: string }>('snapshots', [
              liveIds,
            ]).then((result) => result.rows),
          ]);
    const tasksOf = groupBy(tasks, (task) => task.instance_id);
    const snapshotsOf = groupBy(snapshots, (snapshot) => snapshot.instance_id);
    return new Map(
      rows.map((row) => [
        row.id,
        {
          row,
          timer: row.has_timer
            ? {
                fireAt: row.fire_at === null ? null : Date.parse(row.fire_at),
                recover: row.recover,
              }
            : undefined,
          tasks: tasksOf.get(row.id) ?? [],
          snapshots: new Map(
            (snapshotsOf.get(row.id) ?? []).map(({ key, items }) => [
              key,
              JSON.parse(items) as JsonValue[],
            ]),
          ),
        },
      ]),
    );
  }

  /** Those of the instances that ended, and were not changed since that time. */
  async endedInstances(ids: readonly string[], before: UnixMs): Promise<string[]> {
    const { rows } = await this.#query<{ id: string }>('endedInstances', [ids, isoTime(before)]);
    return rows.map((row) => row.id);
  }

  /** Those of the instances whose sequence was deleted. */
  async orphanedInstances(ids: readonly string[]): Promise<string[]> {
    const { rows } = await this.#query<{ id: string }>('orphanedInstances', [ids]);
    return rows.map((row) => row.id);
  }

  /** The latest outputs that the plan's expressions can read. */
  async outputs(instanceId: string, refs: Plan['outputRefs']): Promise<Map<string, JsonValue>> {
    const wanted = refs === 'all' ? null : [...refs];
    if (wanted !== null && wanted.length === 0) return new Map();
    const { rows } = await this.#query<{ block_id: string; output: string | null }>('outputs', [
      instanceId,
      wanted,
    ]);
    return new Map(
      rows.map(({ block_id, output }) => [
        block_id,
        output === null ? null : (JSON.parse(output) as JsonValue),
      ]),
    );
  }

  /** How many rows of these blocks there are, and the bytes of their outputs. */
  async outputTotals(
    instanceId: string,
    blockIds: readonly string[],
  ): Promise<{ rows: number; bytes: number }> {
    const { rows } = await this.#query<{ rows: number; bytes: number }>('outputTotals', [
      instanceId,
      blockIds,
    ]);
    return rows[0] ?? { rows: 0, bytes: 0 };
  }

  /** The rows of these blocks, oldest first. */
  async outputRows(instanceId: string, blockIds: readonly string[]): Promise<StoredOutput[]> {
    return (await this.#query<StoredOutput>('outputRows', [instanceId, blockIds])).rows;
  }

  async task(taskId: string): Promise<WorkerTaskRow | undefined> {
    return (await this.#query<WorkerTaskRow>('task', [taskId])).rows[0];
  }

  async taskOwners(taskIds: readonly string[]): Promise<Map<string, string>> {
    const { rows } = await this.#query<{ id: string; instance_id: string }>('taskOwners', [
      taskIds,
    ]);
    return new Map(rows.map((row) => [row.id, row.instance_id]));
  }

  /** How many checkpoints an instance has. */
  async checkpoints(instanceId: string): Promise<number> {
    const { rows } = await this.#query<{ stored: number }>('checkpoints', [instanceId]);
    return rows[0]?.stored ?? 0;
  }

  /** The id of the checkpoint that an instance saved last. */
  async newestCheckpoint(instanceId: string): Promise<string | undefined> {
    return (await this.#query<{ id: string }>('newestCheckpoint', [instanceId])).rows[0]?.id;
  }

  /** Whether it is unknown, and nobody has found out, what became of something it did outside. */
  async hasDoubtfulEffect(instanceId: string): Promise<boolean> {
    return (await this.#query('doubtfulEffect', [instanceId])).rows.length > 0;
  }

  /** The blocks of an instance that have an output. */
  async endedBlocks(instanceId: string): Promise<Set<string>> {
    const { rows } = await this.#query<{ block_id: string }>('endedBlocks', [instanceId]);
    return new Set(rows.map((row) => row.block_id));
  }

  async sequence(id: string): Promise<SequenceRow | undefined> {
    return (await this.#query<SequenceRow>('sequence', [id])).rows[0];
  }

  /** How many instances the sequence has. */
  async instanceCounts(sequenceId: string): Promise<InstanceCounts> {
    const { rows } = await this.#query<InstanceCounts>('instanceCounts', [sequenceId]);
    return rows[0] as InstanceCounts;
  }

  async release(id: string): Promise<ReleaseRow | undefined> {
    const [stored] = (await this.#query<StoredRelease>('release', [id])).rows;
    return stored === undefined ? undefined : releaseRowOf(stored);
  }

  /** The release that routes new instances of the sequence, if there is one. */
  async routingRelease(baselineId: string): Promise<ReleaseStateRow | undefined> {
    return (await this.#query<ReleaseStateRow>('routingRelease', [baselineId])).rows[0];
  }

  /** A release that needs the sequence, on either side. */
  async releaseNaming(sequenceId: string): Promise<ReleaseStateRow | undefined> {
    return (await this.#query<ReleaseStateRow>('releaseNaming', [sequenceId])).rows[0];
  }

  /** Releases that are being validated, and canaries with gates. */
  async openReleases(): Promise<ReleaseStateRow[]> {
    return (await this.#query<ReleaseStateRow>('openReleases', [])).rows;
  }

  /** How the instances ended that the release routed, of those created since then. */
  async releaseOutcomes(releaseId: string, since: string): Promise<Outcomes[]> {
    return (await this.#query<Outcomes>('releaseOutcomes', [releaseId, since])).rows;
  }

  /** Streams timers that are due after `from` and until `to`, in pages. */
  async dueTimers(
    from: UnixMs,
    to: UnixMs,
    each: (instance: string, fireAt: UnixMs, rank: number) => void,
  ): Promise<void> {
    await this.#stream<{ instance_id: string; fire_at: string; rank: number }>(
      LOAD_SQL.dueTimers,
      [boundOf(from), isoTime(to)],
      (row) => each(row.instance_id, Date.parse(row.fire_at), row.rank),
    );
  }

  /** The first instances whose timers were due in that time and have not been served. */
  async overdueTimers(from: UnixMs, to: UnixMs): Promise<{ instance: string; rank: number }[]> {
    const { rows } = await this.#query<{ instance_id: string; rank: number }>('overdueTimers', [
      boundOf(from),
      isoTime(to),
    ]);
    return rows.map((row) => ({ instance: row.instance_id, rank: row.rank }));
  }

  /** Instances that were in the middle of work inside a process that is gone. */
  async recoverable(each: (instance: string, rank: number) => void): Promise<void> {
    await this.#stream<{ instance_id: string; rank: number }>(LOAD_SQL.recover, [], (row) =>
      each(row.instance_id, row.rank),
    );
  }

  /** Concurrency keys with an instance that waits or runs, in order, after the one given. */
  async permitKeys(after: string, limit: number): Promise<string[]> {
    const { rows } = await this.#query<{ key_id: string }>('permitKeys', [after, limit]);
    return rows.map((row) => row.key_id);
  }

  async permitHolders(keyId: string): Promise<PermitHolderRow[]> {
    return (await this.#query<PermitHolderRow>('permitHolders', [keyId])).rows;
  }

  /** The next instances that wait for a slot, oldest first, after the one given. */
  async permitWaiters(
    keyId: string,
    after: { readonly createdAt: UnixMs; readonly id: string },
    limit: number,
  ): Promise<PermitWaiterRow[]> {
    const { rows } = await this.#query<PermitWaiterRow>('permitWaiters', [
      keyId,
      isoTime(after.createdAt),
      after.id,
      limit,
    ]);
    return rows;
  }

  async rateLimit(id: string): Promise<RateLimitRow | undefined> {
    return (await this.#query<RateLimitRow>('rateLimit', [id])).rows[0];
  }

  async rateGrants(id: string, since: UnixMs): Promise<RateGrantRow[]> {
    return (await this.#query<RateGrantRow>('rateGrants', [id, isoTime(since)])).rows;
  }

  /** The addresses that something is still to be sent to. */
  async webhookUrls(limit: number): Promise<string[]> {
    const { rows } = await this.#query<{ url: string }>('webhookUrls', [limit]);
    return rows.map((row) => row.url);
  }

  /** What is to be sent to the address, by time, after the one given; parked ones are left out. */
  async dueWebhooks(
    url: string,
    after: { readonly at: string; readonly id: string },
    limit: number,
  ): Promise<WebhookRow[]> {
    return (await this.#query<WebhookRow>('dueWebhooks', [url, after.at, after.id, limit])).rows;
  }

  async webhook(id: string): Promise<WebhookRow | undefined> {
    return (await this.#query<WebhookRow>('webhook', [id])).rows[0];
  }

  /** When the first attempt of those in the log was made. */
  async oldestDelivery(): Promise<UnixMs | undefined> {
    const { rows } = await this.#query<{ attempted_at: string }>('oldestDelivery', []);
    return rows[0] === undefined ? undefined : Date.parse(rows[0].attempted_at);
  }

  async schedules(ids: readonly string[]): Promise<Map<string, ScheduleRow>> {
    const { rows } = await this.#query<ScheduleRow>('schedules', [ids]);
    return new Map(rows.map((row) => [row.id, row]));
  }

  /** The next enabled schedules in the order of their times, after the one given. */
  async dueSchedules(after: DueSchedule, to: UnixMs, limit: number): Promise<DueSchedule[]> {
    const values = [after.next_fire_at, after.id, isoTime(to), limit];
    return (await this.#query<DueSchedule>('dueSchedules', values)).rows;
  }

  /** By schedule: those of its thousand newest runs that have not ended, if there are any. */
  async activeRuns(schedules: readonly string[]): Promise<Map<string, string[]>> {
    const { rows } = await this.#query<{ schedule_id: string; id: string }>('activeRuns', [
      schedules,
    ]);
    const runs = groupBy(rows, (row) => row.schedule_id);
    return new Map([...runs].map(([schedule, own]) => [schedule, own.map(({ id }) => id)]));
  }

  /** The releases that route creations now. */
  async routingReleases(): Promise<RoutingRow[]> {
    return (await this.#query<RoutingRow>('routingReleases', [])).rows;
  }

  async claimedTasks(
    each: (task: string, instance: string, heartbeatAt: UnixMs) => void,
  ): Promise<void> {
    await this.#stream<{ task_id: string; instance_id: string; heartbeat_at: string | null }>(
      LOAD_SQL.claimedTasks,
      [],
      (row) =>
        each(
          row.task_id,
          row.instance_id,
          row.heartbeat_at === null ? 0 : Date.parse(row.heartbeat_at),
        ),
    );
  }

  /** The next waiting tasks in the order in which they are offered, after the place. */
  async readyTasks(scope: PollScope, after: TaskPlace, limit: number): Promise<OpenTaskRow[]> {
    const { handler, tenant, queue } = scope;
    const ofAll = queue === '' ? 'readyTasks' : 'readyTasksOfQueue';
    const ofTenant = queue === '' ? 'readyTasksOfTenant' : 'readyTasksOfTenantQueue';
    const place = [after.rank, isoTime(after.createdAt), after.id];
    const names = [tenant, queue].filter((text) => text !== '');
    const values = [handler, ...place, limit, ...names];
    const name = tenant === '' ? ofAll : ofTenant;
    return (await this.#query<OpenTaskRow>(name, values)).rows;
  }

  #query<Row extends object>(name: keyof typeof LOAD_SQL, values: readonly unknown[]) {
    return this.#pool.query<Row>({
      name: `load_${name}`,
      text: LOAD_SQL[name],
      values: [...values],
      // Of the query, not of the pool: there it would end cursors that have long been read.
      query_timeout: QUERY_TIMEOUT_MS,
    } as pg.QueryConfig);
  }

  #stream<Row>(sql: string, values: readonly unknown[], each: (row: Row) => void): Promise<void> {
    return withCursor<Row, void>(this.#pool, sql, values, async (reader) => {
      for (;;) {
        const rows = await reader.read(LIMITS.recoveryPageRows);
        if (rows.length === 0) return;
        for (const row of rows) each(row);
      }
    });
  }
}

function boundOf(from: UnixMs): string {
  return from === Number.NEGATIVE_INFINITY ? '-infinity' : isoTime(from);
}

function groupBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
