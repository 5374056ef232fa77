/**
 * The SQL of the writer: one statement per kind of mutation, each taking the JSON text of an array
 * of rows. They are prepared by name on every connection of the writer. No statement reads a table
 * in order to decide: what is written was decided by the actor that owns the row.
 */

import type { MutationKind } from '../core/unit.js';
import { CONTINUITY_TEXTS } from './continuity-statements.js';

export interface Statement {
  /** The name under which it is prepared, at most 63 bytes. */
  readonly name: string;
  readonly text: string;
}

/**
 * Settings of the writer's sessions. Every statement below finds its rows by an index, through a
 * nested loop from the handed-in rows. A plan that was cached while a table was small would join by
 * reading the whole of it, and would be kept until the table is analysed: so such plans are ruled
 * out.
 */
export const WRITER_SETTINGS =
  'set enable_hashjoin = off; set enable_mergejoin = off; set enable_seqscan = off; set jit = off';

export const BEGIN: Statement = { name: 'writer_begin', text: 'begin' };
export const COMMIT: Statement = { name: 'writer_commit', text: 'commit' };

/**
 * $1 lane, $2 epoch, $3 number of the flush. Fails with 22012 (division by zero) when it matches no
 * row, so that everything sent behind it in the same exchange is skipped. Since the number must
 * follow the last one, a flush can be applied once at most, whatever is sent how often.
 */
export const FENCE: Statement = {
  name: 'writer_fence',
  text: `
with passed as (
  update lanes set batch = $3::bigint
  where lane = $1::int and epoch = $2::bigint and batch = $3::bigint - 1
  returning lane
)
select 1 / count(*) from passed`,
};

export const FENCE_FAILED = '22012';

const INSERT_SEQUENCES = `
insert into sequences (
  id, tenant_id, namespace, name, version, deprecated, status, definition, created_at)
select
  id, tenant_id, namespace, name, version, coalesce(deprecated, false),
  coalesce(status, 'production'), definition, created_at
from json_to_recordset($1::json) as r(
  id uuid, tenant_id text, namespace text, name text, version integer, deprecated boolean,
  status text, definition json, created_at timestamptz)`;

const INSERT_INSTANCES = `
insert into instances (
  id, sequence_id, tenant_id, namespace, state, next_fire_at, priority, timezone, metadata, data,
  config, context_audit, runtime, execution, concurrency_key, max_concurrency, idempotency_key,
  parent_instance_id, cron_schedule_id, release_id, release_variant, traceparent, birth_audit,
  signal_count, audit_count, created_at, updated_at)
select
  id, sequence_id, tenant_id, namespace, state, next_fire_at, priority, timezone, metadata, data,
  config, context_audit, runtime, execution, concurrency_key, max_concurrency, idempotency_key,
  parent_instance_id, cron_schedule_id, release_id, release_variant, traceparent, birth_audit,
  signal_count, audit_count, created_at, updated_at
from json_to_recordset($1::json) as r(
  id uuid, sequence_id uuid, tenant_id text, namespace text, state text, next_fire_at timestamptz,
  priority smallint, timezone text, metadata json, data json, config json, context_audit json,
  runtime json, execution json, concurrency_key text, max_concurrency integer,
  idempotency_key text, parent_instance_id uuid, cron_schedule_id uuid, release_id uuid,
  release_variant text, traceparent text, birth_audit json, signal_count integer,
  audit_count integer, created_at timestamptz, updated_at timestamptz)`;

/**
 * Part of a statement that deletes the instances whose ids are in `doomed`, with all that belongs to
 * them. Open tasks are found through their tasks, since they have no index on the instance.
 */
const INSTANCES_GONE = `open_gone as (
  delete from open_tasks o using worker_tasks t, doomed d
  where t.instance_id = d.id and o.task_id = t.id
), tasks_gone as (
  delete from worker_tasks t using doomed d where t.instance_id = d.id
), outputs_gone as (
  delete from block_outputs o using doomed d where o.instance_id = d.id
), snapshots_gone as (
  delete from iteration_snapshots s using doomed d where s.instance_id = d.id
), signals_gone as (
  delete from signals s using doomed d where s.instance_id = d.id
), audit_gone as (
  delete from audit_log a using doomed d where a.instance_id = d.id
), step_logs_gone as (
  delete from step_logs l using doomed d where l.instance_id = d.id
), checkpoints_gone as (
  delete from checkpoints c using doomed d where c.instance_id = d.id
), injections_gone as (
  delete from injected_blocks b using doomed d where b.instance_id = d.id
), permit_requests_gone as (
  delete from permit_requests p using doomed d where p.instance_id = d.id
), timers_gone as (
  delete from timers t using doomed d where t.instance_id = d.id
), dead_letters_gone as (
  delete from dead_letters l using doomed d where l.instance_id = d.id
), effect_receipts_gone as (
  delete from effect_receipts e using doomed d where e.instance_id = d.id
), effect_resolutions_gone as (
  delete from effect_resolutions e using doomed d where e.instance_id = d.id
), artifacts_gone as (
  delete from artifacts a using doomed d where a.instance_id = d.id
), migrations_gone as (
  delete from migrations m using doomed d where m.continuity_id = d.id
), release_outcomes_gone as (
  delete from release_outcomes o using doomed d where o.instance_id = d.id
), instances_gone as (
  delete from instances i using doomed d where i.id = d.id
)`;

const TEXTS: Readonly<Record<MutationKind, string>> = {
  'sequence.insert': INSERT_SEQUENCES,

  'sequence.update': `
update sequences s set deprecated = r.deprecated
from json_to_recordset($1::json) as r(id uuid, deprecated boolean)
where s.id = r.id`,

  // With its schedules, its instances, and all that belongs to them.
  'sequence.delete': `
with doomed as (
  select i.id
  from json_to_recordset($1::json) as r(id uuid)
  join instances i on i.sequence_id = r.id
), ${INSTANCES_GONE}, schedules_gone as (
  delete from cron_schedules c using json_to_recordset($1::json) as r(id uuid)
  where c.sequence_id = r.id
)
delete from sequences s using json_to_recordset($1::json) as r(id uuid) where s.id = r.id`,

  'instance.insert': INSERT_INSTANCES,

  'instance.update': `
update instances i set
  state = r.state, next_fire_at = r.next_fire_at, runtime = r.runtime, execution = r.execution,
  signal_count = r.signal_count, audit_count = r.audit_count, updated_at = r.updated_at
from json_to_recordset($1::json) as r(
  id uuid, state text, next_fire_at timestamptz, runtime json, execution json,
  signal_count integer, audit_count integer, updated_at timestamptz)
where i.id = r.id`,

  // What was there at creation is kept for replays the first time that it changes.
  'instance.context': `
update instances i set
  birth_data = coalesce(i.birth_data, i.data),
  data = r.data, config = r.config, context_audit = r.context_audit
from json_to_recordset($1::json) as r(id uuid, data json, config json, context_audit json)
where i.id = r.id`,

  'instance.rebind': `
update instances i set sequence_id = r.sequence_id
from json_to_recordset($1::json) as r(id uuid, sequence_id uuid)
where i.id = r.id`,

  'instance.trace': `
update instances i set traceparent = r.traceparent
from json_to_recordset($1::json) as r(id uuid, traceparent text)
where i.id = r.id`,

  'instance.delete': `
with doomed as (
  select id from json_to_recordset($1::json) as r(id uuid)
), ${INSTANCES_GONE}
select count(*) from doomed`,

  'injection.set': `
insert into injected_blocks (instance_id, blocks)
select instance_id, blocks
from json_to_recordset($1::json) as r(instance_id uuid, blocks json)
on conflict (instance_id) do update set blocks = excluded.blocks`,

  'output.dropErrors': `
delete from block_outputs o
using json_to_recordset($1::json) as r(instance_id uuid)
where o.instance_id = r.instance_id and o.output_ref = '__error__'`,

  // A receipt outlives the output that it was stored with.
  'output.dropBlocks': `
with dropped as (
  delete from block_outputs o
  using json_to_recordset($1::json) as r(instance_id uuid, block_ids json)
  where o.instance_id = r.instance_id
    and o.block_id in (select json_array_elements_text(r.block_ids))
  returning o.effect
)
insert into effect_receipts (
  id, instance_id, continuity_id, tenant_id, epoch, block_id, attempt, kind, state,
  destination_fingerprint, idempotency_key, request_sha256, provider_receipt_id, created_at,
  updated_at)
select r.*
from dropped d cross join lateral json_to_record(d.effect) as r(
  id uuid, instance_id uuid, continuity_id uuid, tenant_id text, epoch bigint, block_id text,
  attempt integer, kind text, state text, destination_fingerprint text, idempotency_key text,
  request_sha256 text, provider_receipt_id text, created_at timestamptz, updated_at timestamptz)
where d.effect is not null
on conflict (id) do nothing`,

  'output.insert': `
insert into block_outputs (
  id, instance_id, block_id, iteration, attempt, try, output, output_ref, output_size, effect,
  created_at)
select
  id, instance_id, block_id, iteration, attempt, try, output, output_ref, output_size, effect,
  created_at
from json_to_recordset($1::json) as r(
  id uuid, instance_id uuid, block_id text, iteration text, attempt integer, try integer,
  output json, output_ref text, output_size integer, effect json, created_at timestamptz)`,

  'snapshot.clear': `
delete from iteration_snapshots s
using json_to_recordset($1::json) as r(instance_id uuid, key text)
where s.instance_id = r.instance_id and s.key = r.key`,

  'snapshot.set': `
insert into iteration_snapshots (instance_id, key, items)
select instance_id, key, items
from json_to_recordset($1::json) as r(instance_id uuid, key text, items json)
on conflict (instance_id, key) do update set items = excluded.items`,

  'signal.insert': `
insert into signals (id, instance_id, seq, signal_type, payload, traceparent, created_at)
select id, instance_id, seq, signal_type, payload, traceparent, created_at
from json_to_recordset($1::json) as r(
  id uuid, instance_id uuid, seq integer, signal_type text, payload json, traceparent text,
  created_at timestamptz)`,

  'audit.insert': `
insert into audit_log (instance_id, seq, tenant_id, entries, created_at)
select instance_id, seq, tenant_id, entries, created_at
from json_to_recordset($1::json) as r(
  instance_id uuid, seq integer, tenant_id text, entries json, created_at timestamptz)`,

  'stepLog.insert': `
insert into step_logs (id, instance_id, entries, created_at)
select id, instance_id, entries, created_at
from json_to_recordset($1::json) as r(
  id uuid, instance_id uuid, entries json, created_at timestamptz)`,

  'checkpoint.insert': `
insert into checkpoints (id, instance_id, checkpoint_data, created_at)
select id, instance_id, checkpoint_data, created_at
from json_to_recordset($1::json) as r(
  id uuid, instance_id uuid, checkpoint_data json, created_at timestamptz)`,

  // All but the newest ones; `keep` is how many stay.
  'checkpoint.prune': `
delete from checkpoints c
using json_to_recordset($1::json) as r(instance_id uuid, keep integer)
where c.instance_id = r.instance_id and c.id in (
  select o.id from checkpoints o where o.instance_id = r.instance_id
  order by o.id desc offset r.keep)`,

  'task.insert': `
insert into worker_tasks (
  id, instance_id, tenant_id, block_id, node, iteration, handler_name, queue_name, params, overlay,
  attempt, timeout_ms, priority, state, withdrawn, worker_id, claim_epoch, claimed_at,
  heartbeat_at, completed_at, output, error_message, error_retryable, checkpoint_seq,
  resume_checkpoint, history, ownership_epoch, created_at)
select
  id, instance_id, tenant_id, block_id, node, iteration, handler_name, queue_name, params, overlay,
  attempt, timeout_ms, priority, state, withdrawn, worker_id, claim_epoch, claimed_at,
  heartbeat_at, completed_at, output, error_message, error_retryable, checkpoint_seq,
  resume_checkpoint, history, ownership_epoch, created_at
from json_to_recordset($1::json) as r(
  id uuid, instance_id uuid, tenant_id text, block_id text, node integer, iteration text,
  handler_name text, queue_name text, params json, overlay json, attempt integer,
  timeout_ms bigint, priority smallint, state text, withdrawn boolean, worker_id text,
  claim_epoch integer, claimed_at timestamptz, heartbeat_at timestamptz,
  completed_at timestamptz, output json, error_message text, error_retryable boolean,
  checkpoint_seq integer, resume_checkpoint json, history json, ownership_epoch bigint,
  created_at timestamptz)`,

  'task.update': `
update worker_tasks t set
  state = r.state, withdrawn = r.withdrawn, worker_id = r.worker_id, claim_epoch = r.claim_epoch,
  claimed_at = r.claimed_at, heartbeat_at = r.heartbeat_at, completed_at = r.completed_at,
  output = r.output, error_message = r.error_message, error_retryable = r.error_retryable,
  checkpoint_seq = r.checkpoint_seq, resume_checkpoint = r.resume_checkpoint, history = r.history
from json_to_recordset($1::json) as r(
  id uuid, state text, withdrawn boolean, worker_id text, claim_epoch integer,
  claimed_at timestamptz, heartbeat_at timestamptz, completed_at timestamptz, output json,
  error_message text, error_retryable boolean, checkpoint_seq integer, resume_checkpoint json,
  history json)
where t.id = r.id`,

  // An upsert, because a batch keeps only the last of "deleted, then opened again".
  'openTask.insert': `
insert into open_tasks (
  task_id, instance_id, tenant_id, handler_name, queue_name, rank, created_at)
select task_id, instance_id, tenant_id, handler_name, queue_name, rank, created_at
from json_to_recordset($1::json) as r(
  task_id uuid, instance_id uuid, tenant_id text, handler_name text, queue_name text,
  rank smallint, created_at timestamptz)
on conflict (task_id) do update set
  instance_id = excluded.instance_id, tenant_id = excluded.tenant_id,
  handler_name = excluded.handler_name, queue_name = excluded.queue_name,
  rank = excluded.rank, created_at = excluded.created_at`,

  'openTask.delete': `
delete from open_tasks o
using json_to_recordset($1::json) as r(task_id uuid)
where o.task_id = r.task_id`,

  'timer.clear': `
delete from timers t
using json_to_recordset($1::json) as r(instance_id uuid)
where t.instance_id = r.instance_id`,

  'timer.set': `
insert into timers (instance_id, fire_at, recover, rank)
select instance_id, fire_at, recover, coalesce(rank, 2)
from json_to_recordset($1::json) as r(
  instance_id uuid, fire_at timestamptz, recover boolean, rank smallint)
on conflict (instance_id) do update set
  fire_at = excluded.fire_at, recover = excluded.recover, rank = excluded.rank`,

  'deadLetter.clear': `
delete from dead_letters l
using json_to_recordset($1::json) as r(instance_id uuid)
where l.instance_id = r.instance_id`,

  'deadLetter.set': `
insert into dead_letters (instance_id, tenant_id, created_at, failed_at, reason)
select instance_id, tenant_id, created_at, failed_at, reason
from json_to_recordset($1::json) as r(
  instance_id uuid, tenant_id text, created_at timestamptz, failed_at timestamptz, reason text)
on conflict (instance_id) do update set
  tenant_id = excluded.tenant_id, created_at = excluded.created_at,
  failed_at = excluded.failed_at, reason = excluded.reason`,

  'permitRequest.clear': `
delete from permit_requests p
using json_to_recordset($1::json) as r(instance_id uuid)
where p.instance_id = r.instance_id`,

  'permitRequest.set': `
insert into permit_requests (instance_id, key_id, max_concurrency, number, created_at)
select instance_id, key_id, max_concurrency, number, created_at
from json_to_recordset($1::json) as r(
  instance_id uuid, key_id uuid, max_concurrency integer, number integer, created_at timestamptz)
on conflict (instance_id) do update set number = excluded.number`,

  'permit.clear': `
delete from permits p
using json_to_recordset($1::json) as r(instance_id uuid)
where p.instance_id = r.instance_id`,

  'permit.set': `
insert into permits (instance_id, key_id, number)
select instance_id, key_id, number
from json_to_recordset($1::json) as r(instance_id uuid, key_id uuid, number integer)
on conflict (instance_id) do update set number = excluded.number`,

  'rateLimit.clear': `
delete from rate_limits l
using json_to_recordset($1::json) as r(id uuid)
where l.id = r.id`,

  'rateLimit.set': `
insert into rate_limits (id, tenant_id, limit_key, max_count, window_seconds, updated_at)
select id, tenant_id, limit_key, max_count, window_seconds, updated_at
from json_to_recordset($1::json) as r(
  id uuid, tenant_id text, limit_key text, max_count integer, window_seconds integer,
  updated_at timestamptz)
on conflict (id) do update set
  max_count = excluded.max_count, window_seconds = excluded.window_seconds,
  updated_at = excluded.updated_at`,

  'rateGrant.prune': `
delete from rate_grants g
using json_to_recordset($1::json) as r(limit_id uuid, before timestamptz)
where g.limit_id = r.limit_id and g.granted_at < r.before`,

  'rateGrant.insert': `
insert into rate_grants (limit_id, granted_at, id, count)
select limit_id, granted_at, id, count
from json_to_recordset($1::json) as r(
  limit_id uuid, granted_at timestamptz, id uuid, count integer)`,

  'worker.seen': `
insert into workers (tenant_id, worker_id, handler_name, queue_name, version, last_seen_at)
select tenant_id, worker_id, handler_name, coalesce(queue_name, ''), version, last_seen_at
from json_to_recordset($1::json) as r(
  tenant_id text, worker_id text, handler_name text, queue_name text, version text,
  last_seen_at timestamptz)
on conflict (tenant_id, worker_id, handler_name, queue_name) do update set
  version = excluded.version, last_seen_at = excluded.last_seen_at`,

  'cron.clear': `
delete from cron_schedules c
using json_to_recordset($1::json) as r(id uuid)
where c.id = r.id`,

  'cron.set': `
insert into cron_schedules (
  id, tenant_id, namespace, sequence_id, cron_expr, timezone, enabled, metadata, overlap_policy,
  skipped_fires, last_skipped_at, last_triggered_at, next_fire_at, last_error, created_at, updated_at)
select
  id, tenant_id, namespace, sequence_id, cron_expr, timezone, enabled, metadata, overlap_policy,
  skipped_fires, last_skipped_at, last_triggered_at, next_fire_at, last_error, created_at, updated_at
from json_to_recordset($1::json) as r(
  id uuid, tenant_id text, namespace text, sequence_id uuid, cron_expr text, timezone text,
  enabled boolean, metadata json, overlap_policy text, skipped_fires integer,
  last_skipped_at timestamptz, last_triggered_at timestamptz, next_fire_at timestamptz,
  last_error text, created_at timestamptz, updated_at timestamptz)
on conflict (id) do update set
  cron_expr = excluded.cron_expr, timezone = excluded.timezone, enabled = excluded.enabled,
  metadata = excluded.metadata, overlap_policy = excluded.overlap_policy,
  skipped_fires = excluded.skipped_fires, last_skipped_at = excluded.last_skipped_at,
  last_triggered_at = excluded.last_triggered_at, next_fire_at = excluded.next_fire_at,
  last_error = excluded.last_error, updated_at = excluded.updated_at`,

  'apiKey.insert': `
insert into api_keys (
  id, tenant_id, name, capabilities, secret_hash, created_at, expires_at, last_used_at, revoked)
select
  id, tenant_id, name, capabilities, secret_hash, created_at, expires_at, last_used_at, revoked
from json_to_recordset($1::json) as r(
  id text, tenant_id text, name text, capabilities json, secret_hash text,
  created_at timestamptz, expires_at timestamptz, last_used_at timestamptz, revoked boolean)`,

  'apiKey.update': `
update api_keys k set last_used_at = r.last_used_at, revoked = r.revoked
from json_to_recordset($1::json) as r(id text, last_used_at timestamptz, revoked boolean)
where k.id = r.id`,

  'webhook.clear': `
delete from webhook_outbox w
using json_to_recordset($1::json) as r(id uuid)
where w.id = r.id`,

  'webhook.set': `
insert into webhook_outbox (
  id, url, event_type, instance_id, tenant_id, body, attempts, last_error, delivery_id, status,
  next_attempt_at, claimed_at, created_at)
select
  id, url, event_type, instance_id, tenant_id, body, attempts, last_error, delivery_id, status,
  next_attempt_at, claimed_at, created_at
from json_to_recordset($1::json) as r(
  id uuid, url text, event_type text, instance_id uuid, tenant_id text, body text,
  attempts integer, last_error text, delivery_id uuid, status text,
  next_attempt_at timestamptz, claimed_at timestamptz, created_at timestamptz)
on conflict (id) do update set
  attempts = excluded.attempts, last_error = excluded.last_error,
  delivery_id = excluded.delivery_id, status = excluded.status,
  next_attempt_at = excluded.next_attempt_at, claimed_at = excluded.claimed_at`,

  'delivery.insert': `
insert into webhook_deliveries (
  id, delivery_id, url, event_type, instance_id, attempt_number, attempted_at, duration_ms,
  success, status_code, error_class, error_excerpt, signed)
select
  id, delivery_id, url, event_type, instance_id, attempt_number, attempted_at, duration_ms,
  success, status_code, error_class, error_excerpt, signed
from json_to_recordset($1::json) as r(
  id uuid, delivery_id uuid, url text, event_type text, instance_id uuid, attempt_number integer,
  attempted_at timestamptz, duration_ms integer, success boolean, status_code integer,
  error_class text, error_excerpt text, signed boolean)`,

  'delivery.prune': `
delete from webhook_deliveries d
using json_to_recordset($1::json) as r(before timestamptz) cross join lateral (
  select id from webhook_deliveries where attempted_at < r.before
  order by attempted_at, id limit 1000 offset 0) as old
where d.id = old.id`,

  'changeMark.set': `
insert into change_mark (id, stamps_from)
select id, stamps_from
from json_to_recordset($1::json) as r(id smallint, stamps_from timestamptz)
on conflict (id) do update set stamps_from = excluded.stamps_from`,

  'release.set': `
insert into releases (
  id, tenant_id, namespace, sequence_name, baseline_sequence_id, baseline_version,
  candidate_sequence_id, candidate_version, state, canary_percent, gates, in_flight_policy,
  validation_summary, canary_started_at, created_at, updated_at)
select
  id, tenant_id, namespace, sequence_name, baseline_sequence_id, baseline_version,
  candidate_sequence_id, candidate_version, state, canary_percent, gates, in_flight_policy,
  validation_summary, canary_started_at, created_at, updated_at
from json_to_recordset($1::json) as r(
  id uuid, tenant_id text, namespace text, sequence_name text, baseline_sequence_id uuid,
  baseline_version integer, candidate_sequence_id uuid, candidate_version integer, state text,
  canary_percent smallint, gates json, in_flight_policy text, validation_summary json,
  canary_started_at timestamptz, created_at timestamptz, updated_at timestamptz)
on conflict (id) do update set
  state = excluded.state, canary_percent = excluded.canary_percent,
  validation_summary = excluded.validation_summary,
  canary_started_at = excluded.canary_started_at, updated_at = excluded.updated_at`,

  'releaseDecision.insert': `
insert into release_decisions (id, release_id, from_state, to_state, actor, reason, decided_at)
select id, release_id, from_state, to_state, actor, reason, decided_at
from json_to_recordset($1::json) as r(
  id uuid, release_id uuid, from_state text, to_state text, actor text, reason text,
  decided_at timestamptz)`,

  'releaseOutcome.clear': `
delete from release_outcomes o
using json_to_recordset($1::json) as r(instance_id uuid)
where o.instance_id = r.instance_id`,

  'releaseOutcome.set': `
insert into release_outcomes (instance_id, release_id, sequence_id, state, created_at)
select instance_id, release_id, sequence_id, state, created_at
from json_to_recordset($1::json) as r(
  instance_id uuid, release_id uuid, sequence_id uuid, state text, created_at timestamptz)
on conflict (instance_id) do update set
  sequence_id = excluded.sequence_id, state = excluded.state`,

  ...CONTINUITY_TEXTS,
};

/** $1 of each is the JSON text of an array of rows, whose fields are the columns named here. */
export const STATEMENTS = Object.fromEntries(
  Object.entries(TEXTS).map(([kind, text]) => [
    kind,
    { name: `writer_${kind.replace('.', '_').toLowerCase()}`, text },
  ]),
) as Readonly<Record<MutationKind, Statement>>;

export type GatedKind = 'sequence.insert' | 'instance.insert';

/** The inserts of gated units: a row that is there stays, and is missing from the answer. */
export const GATED_STATEMENTS: Readonly<Record<GatedKind, Statement>> = {
  'sequence.insert': {
    name: 'writer_gated_sequence_insert',
    text: `${INSERT_SEQUENCES}\non conflict do nothing\nreturning id`,
  },
  'instance.insert': {
    name: 'writer_gated_instance_insert',
    text: `${INSERT_INSTANCES}\non conflict do nothing\nreturning id`,
  },
};

/** Everything that a connection of the writer prepares. */
export const ALL_STATEMENTS: readonly Statement[] = [
  BEGIN,
  COMMIT,
  FENCE,
  ...Object.values(STATEMENTS),
  ...Object.values(GATED_STATEMENTS),
];
