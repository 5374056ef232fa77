/**
 * The statements by which actors are loaded: rows by primary key, of many actors at once where a turn
 * asks for many, and pages of what is due or open on one shard. Every one of them finds its rows by an
 * index.
 */

import { COLLECTED_BYTES_MAX } from '../../schema/blocks.js';
import { INT32_MAX } from '../../schema/common.js';
import { RELEASE_COLUMNS } from '../../src/core/releases/record.js';
import { foundBy } from '../../src/db/special-statements.js';
import { columnsBut, selected } from '../../src/db/tables.js';
import { IS_REPORTED, IS_TOUCHED, TASKS } from '../../src/db/tasks-as-they-stand.js';
import {
  INSTANCE_COLUMNS,
  OUTPUT_COLUMNS,
  TASK_COLUMNS,
  WEBHOOK_COLUMNS,
  type WorkerTaskRow,
} from './rows.js';

/** Overdue timers that are read at once. */
export const OVERDUE_ROWS_MAX = 1_000;

/** Events of one key that its actor has in mind; the rest is read when these are gone. */
export const OPEN_EVENTS_MAX = 50;
/** Waits that one event is told to at once; more instances that wait for the same wait for the next. */
export const EVENT_WAITS_MAX = 100_000;

/**
 * That the id's routing bits lead to one of so many shards. Rows are filtered as an index brings them in
 * their order. The planner takes a comparison for one that hardly any row passes, and would sort; of a
 * `coalesce` it thinks that half of them do.
 */
function isOwn(id: string, shard: string, shards: string): string {
  const route = `get_byte(uuid_send(${id}), 14) * 256 + get_byte(uuid_send(${id}), 15)`;
  return `coalesce((${route}) % ${shards}::int = ${shard}::int, false)`;
}

/**
 * Whose timer it is, a sub-select and no join: timers are read by their index alone and in its order, of
 * however many the statistics speak.
 */
const OF_TIMER =
  't.instance_id as instance, t.rank, ' +
  "coalesce((select i.tenant_id from instances i where i.id = t.instance_id), '') as tenant " +
  'from timers t';

/**
 * Of the outputs of one block of one instance, for each pair that is asked for; `n` says by whom.
 * `lateral` keeps every pair a look-up by key, however many there are.
 */
function ofPairs(columns: string, rows: string): string {
  return (
    `select w.n, ${columns} from unnest($1::int[], $2::uuid[], $3::text[]) ` +
    `as w(n, instance_id, block_id) cross join lateral (${rows}) o`
  );
}

/** The same for every id that is asked for, such as that of an instance. */
function ofIds(columns: string, rows: string): string {
  return (
    `select w.n, ${columns} from unnest($1::uuid[]) with ordinality ` +
    `as w(id, n) cross join lateral (${rows}) o`
  );
}

/** @param condition of the kind of poll; `$2 … $4` is the place of the last task that was read */
function readyTasks(condition: string): string {
  return (
    'select o.task_id, o.instance_id, o.tenant_id, o.queue_name, o.rank, o.created_at ' +
    `from open_tasks o where o.handler_name = $1 ${condition}and o.claimed_at is null and ` +
    '(o.rank, o.created_at, o.task_id) > ($2::smallint, $3::timestamptz, $4::uuid) ' +
    'order by o.rank, o.created_at, o.task_id limit $5'
  );
}

/** Bytes of what may have as many characters as are collected. */
const COLLECTED_TEXT_MAX = 6 * COLLECTED_BYTES_MAX;

/** Which item the row is of; null where it is of none, such as what a person has said. */
const ITEM_OF_ITERATION = "substring(split_part(b.iteration, '.', w.depth) from '^[0-9]+$')::int";

/** What a for_each notes of its progress is smaller, and no output. */
const NOTE_BYTES_MAX = 4_096;

const SUBSCRIPTION_COLUMNS = selected(columnsBut('webhook_subscriptions'));

/** The least key after the one given; null when there is none. */
function nextPermitKey(after: string): string {
  const of = (table: string) =>
    `(select n.key_id from ${table} n where n.key_id > ${after} order by n.key_id limit 1)`;
  return `least(${of('permit_requests')}, ${of('permits')})`;
}

/** Names of the columns of a task in the row of its instance. */
export const TASK_ALIASES: readonly (readonly [column: keyof WorkerTaskRow, alias: string])[] =
  TASK_COLUMNS.map((column) => [column, `task_${column}`]);

/** Columns that may be large: of an instance with many tasks only the first row has them. */
export const LARGE_COLUMNS: ReadonlySet<string> = new Set([
  'metadata',
  'data',
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

// A failed try that was given back keeps its checkpoint for the next one.
const IS_OPEN_TASK =
  "(state in ('pending', 'claimed') or (withdrawn and state = 'failed' and checkpoint_seq > 0))";

const SNAPSHOTS =
  `case when ${IS_LIVE} then (select json_agg(json_build_object('key', key, 'items', items) order by key) ` +
  'from iteration_snapshots where instance_id = i.id) end';

// Of ended ones, too: they may be resumed from a block that waits.
const KEPT_SIGNALS =
  'case when i.signal_count > 0 then (select json_agg(json_build_object(' +
  "'seq', seq, 'id', id, 'signal_type', signal_type, 'payload', payload::text, 'sent_by', sent_by" +
  ") order by seq) from signals where instance_id = i.id and status = 'kept') end";

export const LOAD_SQL = {
  // With all that an actor has beside its row: a statement more would cost a fifth of a millisecond, and
  // most instances have one task or none. One with several has a row for each of them.
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
  outputs: ofPairs(
    'w.block_id, o.iteration, o.output',
    'select iteration, output from block_outputs ' +
      'where instance_id = w.instance_id and block_id = w.block_id ' +
      "and (output_ref is null or output_ref = '__error__') order by created_at desc, id desc limit 1",
  ),
  allOutputs: ofIds(
    'o.block_id, o.iteration, o.output',
    'select distinct on (block_id) block_id, iteration, output from block_outputs ' +
      "where instance_id = w.id and (output_ref is null or output_ref = '__error__') " +
      'order by block_id, created_at desc, id desc',
  ),
  // Of each item of a for_each: the last output of all these blocks, or where items are named, of each of
  // them. What is too large together to be collected is told by one row.
  itemOutputs:
    'select w.n, o.item, o.block_id, o.iteration, o.output, o.output_ref, o.fits ' +
    'from unnest($1::int[], $2::uuid[], $3::text[], $4::int[], $5::jsonb[], $6::jsonb[]) ' +
    'as w(n, instance_id, prefix, depth, blocks, items) cross join lateral (' +
    'select l.*, row_number() over () as place, ' +
    `w.items is not null or sum(l.output_size) over () <= ${COLLECTED_TEXT_MAX} as fits from (` +
    'select distinct on (item, part) ' +
    `${ITEM_OF_ITERATION} as item, ` +
    'case when w.items is not null then b.block_id end as part, ' +
    'b.block_id, b.iteration, b.output, b.output_ref, b.output_size, b.created_at, b.id ' +
    'from block_outputs b where b.instance_id = w.instance_id ' +
    'and b.block_id = any(array(select jsonb_array_elements_text(w.blocks))) ' +
    'and starts_with(b.iteration, w.prefix) and (w.items is null or w.items @> to_jsonb(' +
    `${ITEM_OF_ITERATION})) ` +
    "and (b.output_ref is null or w.items is not null and b.output_ref = '__error__') " +
    `and (w.items is not null or b.output is null or b.output_size > ${NOTE_BYTES_MAX} or ` +
    `b.output::text not like '{"_index":%,"_snapshot_ref":%') ` +
    'order by item, part, b.created_at desc, b.id desc) l where l.item is not null) o ' +
    'where o.fits or o.place = 1 order by w.n, o.created_at, o.id',
  outputTotals: ofPairs(
    'o.rows, o.bytes',
    'select count(*) as rows, coalesce(sum(output_size), 0) as bytes from block_outputs ' +
      'where instance_id = w.instance_id and block_id = w.block_id',
  ),
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
  // What a worker that said nothing did with a task, or an answer that did not arrive, nobody knows.
  doubtfulEffect:
    "select t.id from worker_tasks t where t.instance_id = $1::uuid and t.state = 'failed' " +
    `and ${IS_TOUCHED} and not ${IS_REPORTED} and ` +
    'coalesce((select r.state from effect_resolutions r ' +
    "where r.id = t.id), 'unknown') = 'unknown' " +
    'union all select e.id from effect_receipts e where e.instance_id = $1::uuid ' +
    "and e.state = 'unknown' and coalesce((select r.state from effect_resolutions r " +
    "where r.id = e.id), 'unknown') = 'unknown' limit 1",
  endedBlocks: ofIds(
    'o.block_id',
    'select distinct block_id from block_outputs where instance_id = w.id ' +
      "and (output_ref is null or output_ref not in ('__error__', 'human_input'))",
  ),
  task: `select ${selected(TASK_COLUMNS)} from ${TASKS} t where id = $1::uuid`,
  taskOwners: 'select id, instance_id from worker_tasks where id = any($1::uuid[])',
  sequence:
    'select id, tenant_id, namespace, name, version, deprecated, definition from sequences ' +
    'where id = $1::uuid',
  // Versions that only a release leads to come late: the candidate of one that was not promoted. Last come
  // those on hold, to which no name leads.
  namedSequence:
    'select w.n, o.id, o.is_on_hold from unnest($1::text[], $2::text[], $3::text[], $4::int[]) ' +
    'with ordinality as w(tenant_id, namespace, name, version, n) cross join lateral (' +
    'select s.id, (w.version is null and s.hold) as is_on_hold from sequences s ' +
    'where s.tenant_id = w.tenant_id and s.namespace = w.namespace ' +
    `and s.name = w.name and s.version between coalesce(w.version, -${INT32_MAX}) ` +
    `and coalesce(w.version, ${INT32_MAX}) and (w.version is not null or not s.deprecated) ` +
    "order by is_on_hold, coalesce((select r.state <> 'promoted' from releases r " +
    'where r.candidate_sequence_id = s.id order by r.created_at desc, r.id desc limit 1), false), ' +
    's.version desc limit 1) o',
  instanceCounts:
    "select count(*) filter (where state in ('completed', 'cancelled')) as ended, " +
    "count(*) filter (where state = 'failed') as failed, " +
    "count(*) filter (where state not in ('completed', 'cancelled', 'failed')) as live " +
    'from instances where sequence_id = $1::uuid',
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
  // Those that somebody waits for or holds a slot of: one after the other by the indexes, however many
  // instances each has.
  permitKeys:
    'with recursive keys(key_id) as (' +
    `select ${nextPermitKey('$1::uuid')} ` +
    `union all select ${nextPermitKey('k.key_id')} from keys k where k.key_id is not null) ` +
    `select key_id from keys where key_id is not null and ${isOwn('key_id', '$3', '$4')} limit $2`,
  permitHolders:
    'select p.instance_id, p.number, ' +
    '(select r.number from permit_requests r where r.instance_id = p.instance_id) as wanted, ' +
    "(select i.state = 'scheduled' and coalesce(i.execution ->> 'w' = '1', false) " +
    'from instances i where i.id = p.instance_id) is true as is_awaited, ' +
    '(select i.tenant_id from instances i where i.id = p.instance_id) as tenant_id ' +
    'from permits p where p.key_id = $1::uuid order by p.instance_id',
  permitWaiters:
    'select r.instance_id, r.number, r.max_concurrency, r.created_at, ' +
    '(select i.tenant_id from instances i where i.id = r.instance_id) as tenant_id ' +
    'from permit_requests r ' +
    'where r.key_id = $1::uuid ' +
    'and not exists (select 1 from permits p where p.instance_id = r.instance_id offset 0) ' +
    'order by r.created_at, r.instance_id limit $2',
  // One event more than are kept shows that there are more.
  openEvents: ofIds(
    'o.id, o.tenant_id, o.seq, o.payload, o.status, o.matched, o.targets, o.expires_at',
    'select id, tenant_id, seq, payload, status, matched, targets, expires_at from events ' +
      "where key_id = w.id and (status = 'pending' or targets is not null) " +
      `order by seq, id limit ${OPEN_EVENTS_MAX + 1}`,
  ),
  eventWaits: ofIds(
    'o.id, o.instance_id',
    'select id, instance_id from event_waits where key_id = w.id ' +
      `order by id, instance_id limit ${EVENT_WAITS_MAX}`,
  ),
  eventTakes: 'select event_id, wait_id, outcome from event_takes where event_id = any($1::uuid[])',
  storedEvent: 'select status, matched from events where id = $1::uuid',
  // Only triggers of events have the name of one.
  eventTriggers:
    'select w.n, o.slug, o.config from unnest($1::text[], $2::text[]) with ordinality ' +
    'as w(tenant_id, event_name, n) cross join lateral (' +
    'select slug, config from triggers t where t.tenant_id = w.tenant_id ' +
    'and t.event_name = w.event_name and t.enabled order by slug) o',
  // Events that somebody has yet to answer, those that somebody waits for, and those that expired.
  dueEventKeys:
    "select distinct e.key_id from events e where (e.status = 'pending' or e.targets is not null) " +
    'and e.key_id > $1::uuid and (e.targets is not null or e.expires_at <= $2::timestamptz ' +
    'or exists (select 1 from event_waits w where w.key_id = e.key_id offset 0)) ' +
    `and ${isOwn('e.key_id', '$4', '$5')} order by e.key_id limit $3`,
  oldestEndedEvent:
    "select ended_at from events where status <> 'pending' and targets is null and fires is null " +
    'and ended_at is not null order by ended_at, id limit 1',
  rateLimit:
    'select tenant_id, limit_key, max_count, window_seconds, updated_at from rate_limits where id = $1::uuid',
  rateGrants:
    'select granted_at, count from rate_grants where limit_id = $1::uuid ' +
    'and granted_at >= $2::timestamptz order by granted_at, id',
  kinNotes:
    'select to_id, from_id, id, word from kin_notes where (to_id, from_id) > ($1::uuid, $2::uuid) ' +
    `and id < $3::uuid and ${isOwn('to_id', '$5', '$6')} order by to_id, from_id limit $4`,
  // What an instance came to that another one waits for, without its outputs.
  childEnds: ofIds(
    'o.state, o.failure, o.failed_at, o.owes, o.rows, o.bytes',
    'select i.state, i.failure, t.rows, t.bytes, ' +
      // What is large in it has no part in other ends.
      "case when i.state = 'failed' then i.execution->'m' is not null else false end as owes, " +
      '(select d.failed_at from dead_letters d where d.instance_id = i.id) ' +
      'from instances i cross join lateral (' +
      'select count(*) as rows, coalesce(sum(b.output_size), 0) as bytes from block_outputs b ' +
      'where b.instance_id = i.id offset 0) t where i.id = w.id',
  ),
  childOutputs: ofIds(
    selected(OUTPUT_COLUMNS, 'o'),
    `select ${selected(OUTPUT_COLUMNS)} from block_outputs where instance_id = w.id ` +
      'order by created_at, id',
  ),
  schedules: `select ${selected(columnsBut('cron_schedules'))} from cron_schedules where id = any($1::uuid[])`,
  dueSchedules:
    'select id, next_fire_at from cron_schedules where enabled ' +
    'and (next_fire_at, id) > ($1::timestamptz, $2::uuid) and next_fire_at <= $3::timestamptz ' +
    `and ${isOwn('id', '$5', '$6')} order by next_fire_at, id limit $4`,
  // Of the newest runs only: a schedule may have millions that ended.
  activeRuns: ofIds(
    'o.id',
    'select r.id from (select id, state from instances where cron_schedule_id = w.id ' +
      'order by created_at desc, id desc limit 1000) r ' +
      "where r.state in ('scheduled', 'running', 'waiting', 'paused')",
  ),
  // All in one statement, so that a table is one state of the releases.
  routingReleases:
    'select id, tenant_id, baseline_sequence_id, candidate_sequence_id, state, canary_percent, ' +
    'created_at, updated_at, coalesce((select s.deprecated from sequences s ' +
    'where s.id = candidate_sequence_id), false) as is_deprecated ' +
    "from releases where state in ('canary', 'promoted')",
  checkpoints: ofIds(
    'o.stored',
    'select count(*) as stored from checkpoints where instance_id = w.id',
  ),
  bulkJob: `select ${selected(columnsBut('bulk_jobs'))} from bulk_jobs where id = $1::uuid`,
  openBulkJobs:
    'select count(*)::int as count from bulk_jobs where tenant_id = $1 and ended_at is null',
  oldBulkJobs:
    'select id from bulk_jobs where tenant_id = $1 and created_at < $2::timestamptz ' +
    'and ended_at < $2::timestamptz order by created_at, id limit $3::bigint',
  credentials:
    `select ${selected(columnsBut('credentials'))} from credentials ` +
    'join unnest($1::text[], $2::text[]) as asked(tenant_id, id) using (tenant_id, id)',
  credentialCount: 'select count(*)::int as count from credentials where tenant_id = $1',
  trigger: `select ${selected(columnsBut('triggers'))} from triggers where slug = $1`,
  // One address after the other by the index, however many webhooks each has; those of the shard's.
  webhookUrls:
    'with recursive urls(url) as (' +
    '(select url from webhook_outbox where next_attempt_at is not null and url > $1 ' +
    'order by url limit 1) ' +
    'union all select (select w.url from webhook_outbox w where w.next_attempt_at is not null ' +
    'and w.url > u.url order by w.url limit 1) from urls u where u.url is not null) ' +
    'select u.url from urls u where u.url is not null and exists (' +
    'select 1 from webhook_outbox w where w.url = u.url and w.next_attempt_at is not null ' +
    `and ${isOwn('w.id', '$3', '$4')} offset 0) limit $2`,
  dueWebhooks:
    `select ${selected(WEBHOOK_COLUMNS)} from webhook_outbox where url = $1 ` +
    'and next_attempt_at is not null and (next_attempt_at, id) > ($2::timestamptz, $3::uuid) ' +
    `and ${isOwn('id', '$5', '$6')} order by next_attempt_at, id limit $4`,
  webhook: `select ${selected(WEBHOOK_COLUMNS)} from webhook_outbox where id = $1::uuid`,
  subscription: `select ${SUBSCRIPTION_COLUMNS} from webhook_subscriptions where id = $1::uuid`,
  subscriptions:
    `select ${SUBSCRIPTION_COLUMNS} from webhook_subscriptions ` +
    'where tenant_id = any($1::text[])',
  allSubscriptions:
    `select ${SUBSCRIPTION_COLUMNS} from webhook_subscriptions where id > $1::uuid ` +
    'order by id limit $2',
  oldestActivity: 'select at from activity order by at limit 1',
  oldestDelivery: 'select attempted_at from webhook_deliveries order by attempted_at, id limit 1',
  claimedTasks:
    'select task_id, instance_id, tenant_id, heartbeat_at from open_tasks ' +
    `where claimed_at is not null and ${isOwn('instance_id', '$1', '$2')}`,
  // One statement for each kind of poll: each has an index with exactly its conditions and order.
  readyTasks: readyTasks(''),
  readyTasksOfTenant: readyTasks('and o.tenant_id = $6 '),
  readyTasksOfQueue: readyTasks('and o.queue_name = $6 '),
  readyTasksOfTenantQueue: readyTasks('and o.tenant_id = $6 and o.queue_name = $7 '),
  release: `select ${RELEASE_COLUMNS} from releases where id = $1::uuid`,
  routingRelease:
    'select id, state from releases where baseline_sequence_id = $1::uuid ' +
    "and state in ('canary', 'promoted') limit 1",
  leadingReleases:
    "select id, state from releases where candidate_sequence_id = $1::uuid and state in ('canary', 'promoted')",
  // A draft needs its baseline only: its candidate may go.
  releaseNaming:
    'select id, state from releases where baseline_sequence_id = $1::uuid ' +
    "and state in ('draft', 'validating', 'ready', 'canary', 'paused', 'promoted') union all " +
    'select id, state from releases where candidate_sequence_id = $1::uuid ' +
    "and state in ('validating', 'ready', 'canary', 'paused', 'promoted') limit 1",
  openReleases:
    'select id, state, is_deprecated from (select id, state, gates, ' +
    'coalesce((select s.deprecated from sequences s where s.id = candidate_sequence_id), false) ' +
    "as is_deprecated from releases where state in ('canary', 'validating')) r " +
    "where state = 'validating' or is_deprecated or json_array_length(gates) > 0",
  // The runs from before the canary are read by the index of a sequence's instances, newest first, and
  // no further than what the baseline lacks. In one statement, so that both are of one instant.
  releaseOutcomes:
    'with counted as (select sequence_id, state, count(*) as instances from release_outcomes ' +
    'where release_id = $1::uuid and created_at >= $2::timestamptz group by sequence_id, state) ' +
    'select sequence_id, state, instances, false as is_earlier from counted union all ' +
    'select $3::uuid, state, count(*), true from (select state from instances ' +
    'where sequence_id = $3::uuid and created_at < $2::timestamptz ' +
    'and created_at >= $4::timestamptz ' +
    "and state in ('completed', 'failed', 'cancelled') " +
    "and (runtime ->> 'dry_run') is distinct from 'true' " +
    'order by created_at desc, id desc limit greatest(0, $5::bigint - ' +
    '(select coalesce(sum(instances), 0)::bigint from counted where sequence_id = $3::uuid))) i ' +
    'group by state',
} as const;
