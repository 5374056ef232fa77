/** Rows that follow from every message: its own, timer, slot, dead letter, webhooks. */

import { rankOf } from '../../schema/states.js';
import type { WebhookBody } from '../../schema/webhook.js';
import type { JsonObject } from '../../src/base/json.js';
import { isoTime, isoTimeOrNull, laterOf, type UnixMs } from '../../src/base/time.js';
import { updatedAt } from '../../src/base/unchanged-since.js';
import type { AuditEvent, Progress } from '../../src/core/progress.js';
import type { WebhookEvent, WebhookRow } from '../../src/core/webhook.js';
import { noteOutcome } from '../release/attribution.js';
import type { Effect, Turn } from '../runtime/turn.js';
import { WEBHOOK } from '../webhook/tables.js';
import { continueAfter } from './advance.js';
import { recordCancelWaits } from './cancel-waits.js';
import { foldReason } from './core/failure-reason.js';
import { notifyFamily } from './family.js';
import { writeGates } from './gate-rows.js';
import { recordPermit, recordStart, startKeyOf } from './limits.js';
import { type LiveInstance, nextId } from './live-instance.js';
import * as notes from './notes.js';
import {
  changeOf,
  failureOf,
  type InstanceRecord,
  offersTasks,
  permitStatus,
  sectionsOf,
  wholeLine,
} from './record.js';
import { changeSearchTerms, putSearchTerms } from './search-terms.js';
import { DEAD_LETTER, INSTANCE, TIMER } from './tables.js';
import { offerTasks } from './tasks.js';

/** State before a message, to detect the rows that have to be written. */
type StateBefore = Readonly<ReturnType<typeof stateBefore>>;

/** Creates the instance in one unit with everything that happens before its first commit. */
export function settleNew(actor: LiveInstance, turn: Turn, begin: () => Progress): void {
  actor.creationAudit = [];
  const { record } = actor;
  const { snapshot } = record;
  const begunAt = record.created_at;
  const stamp = actor.env.stamp();
  record.created_at = isoTime(stamp);
  const before = stateBefore(actor);
  const progress = begin();
  // After the progress, so that `updated_at` is not earlier than its times.
  touch(actor);
  // The stamp may be ahead of the clock, and nothing is due before the creation.
  const { nextFireAt: due } = snapshot;
  if (due !== null && isoTime(due) === begunAt) snapshot.nextFireAt = stamp;
  settle(actor, turn, progress, before);
  notes.putLines(actor, turn);
  writeGates(actor, turn);
  turn.put(INSTANCE.insert, actor.record.id, wholeLine(actor.record, actor.creationAudit));
  putSearchTerms(turn, record, actor.plan.searchable);
  turn.effects.push({ kind: 'counted', tenant: record.tenant_id, change: 'created' });
  actor.creationAudit = undefined;
  record.raw = undefined;
  record.stored = snapshot.data;
}

export function stateBefore({ record, plan }: LiveInstance) {
  return {
    paths: plan.searchable,
    state: record.snapshot.state,
    permit: permitStatus(record),
    startKey: startKeyOf(record),
    offers: offersTasks(record),
    failure: failureOf(record),
    context: sectionsOf(record),
    updatedAt: record.updated_at,
  };
}

export function touch({ record, env }: LiveInstance): void {
  const now = isoTime(env.now());
  // The times of the creation and of a context change may be ahead of the clock.
  record.updated_at = laterOf(now, laterOf(record.created_at, record.updated_at));
}

export function write(
  actor: LiveInstance,
  turn: Turn,
  progress: Progress | 'touched',
  before: StateBefore,
): void {
  const { record, env } = actor;
  touch(actor);
  // A changed context gets a new time even within a millisecond (`if_unchanged_since`).
  if (record.updated_at === before.updatedAt) {
    const { data, config, audit } = before.context;
    const after = sectionsOf(record);
    if (data !== after.data || config !== after.config || audit !== after.audit) {
      record.updated_at = updatedAt(env.now(), before.updatedAt);
    }
  }
  if (progress !== 'touched') settle(actor, turn, progress, before);
  writeGates(actor, turn);
  const { id } = record;
  const { data, config, audit } = sectionsOf(record);
  changeSearchTerms(actor, turn, { data: before.context.data, paths: before.paths });
  const [kind, row] = changeOf(record, data !== before.context.data);
  turn.put(kind, id, row);
  if (config !== before.context.config || audit !== before.context.audit) {
    turn.put(INSTANCE.config, id, { id, config, context_audit: audit });
  }
}

function settle(actor: LiveInstance, turn: Turn, progress: Progress, before: StateBefore): void {
  recordPermit(actor, turn, before.permit);
  recordStart(actor, turn, before.startKey);
  recordCancelWaits(actor, turn);
  if (offersTasks(actor.record) !== before.offers) offerTasks(actor, turn);
  // Continuations and in-process steps have no due time; `recover` finds them after a crash.
  const continues = turn.effects.some((effect) => effect.kind === 'continue');
  setTimer(actor, turn, progress.wakeAt, actor.running.size > 0 || progress.more || continues);
  const { record, creationAudit } = actor;
  const failure = failureOf(record);
  // The row of a new instance includes its failure.
  if (failure !== before.failure && creationAudit === undefined) {
    turn.put(INSTANCE.failure, record.id, { id: record.id, failure });
  }
  writeDeadLetter(actor, turn, progress, before);
  if (actor.record.snapshot.state !== before.state) notifyFamily(actor, turn, before.state);
  if (progress.more) continueAfter(actor, turn);
}

export function setTimer(
  actor: LiveInstance,
  turn: Turn,
  fireAt: UnixMs | null,
  recover: boolean,
): void {
  const { id, priority } = actor.record;
  const rank = rankOf(priority);
  if (fireAt === null && !recover) {
    if (actor.timer === undefined) return;
    actor.timer = undefined;
    turn.put(TIMER.clear, id, { instance_id: id });
    return;
  }
  if (fireAt !== null) turn.effects.push({ kind: 'timer', instance: id, at: fireAt, rank });
  if (actor.timer?.fireAt === fireAt && actor.timer.recover === recover) return;
  actor.timer = { fireAt, recover };
  turn.put(TIMER.set, id, { instance_id: id, fire_at: isoTimeOrNull(fireAt), recover, rank });
}

function writeDeadLetter(
  actor: LiveInstance,
  turn: Turn,
  progress: Progress,
  { state: before, failure }: StateBefore,
): void {
  const { id, sequence_id, snapshot } = actor.record;
  if (snapshot.state === before) {
    // A failed instance whose clean-up has failed as well.
    const isWorse = before === 'failed' && failureOf(actor.record) !== failure;
    if (isWorse) putDeadLetter(actor, turn);
    return;
  }
  putWebhooks(actor, turn);
  noteOutcome(actor.record, turn, before);
  countEnd(actor, turn);
  if (snapshot.state === 'completed') {
    turn.count('engine_instances_completed_total');
    turn.effects.push({ kind: 'completed', sequence: sequence_id });
  }
  if (snapshot.state === 'failed') {
    turn.count('engine_instances_failed_total');
    turn.effects.push(failedEffect(actor.record, progress.audit));
    putDeadLetter(actor, turn);
  } else if (before === 'failed') {
    turn.put(DEAD_LETTER.clear, id, { instance_id: id });
  }
}

function countEnd({ record, env }: LiveInstance, turn: Turn): void {
  const { tenant_id: tenant, created_at } = record;
  const { state: change } = record.snapshot;
  if (change === 'cancelled') turn.effects.push({ kind: 'counted', tenant, change });
  if (change !== 'completed' && change !== 'failed') return;
  const durationMs = env.now() - Date.parse(created_at);
  turn.effects.push({ kind: 'counted', tenant, change, durationMs });
}

/** Names the block that failed, unless a request stopped the instance. */
function failedEffect(record: InstanceRecord, audit: readonly AuditEvent[]): Effect {
  const last = audit.findLast(
    ({ eventType }) => eventType === 'step_failed' || eventType === 'block_failed',
  );
  return {
    kind: 'failed',
    instance: record.id,
    tenant: record.tenant_id,
    sequence: record.sequence_id,
    blockId: last?.blockId,
    cause: last?.eventType ?? 'stopped',
  };
}

/** Failures are grouped by code and folded reason (docs/decisions/0016-lists.md). */
function putDeadLetter({ record, env }: LiveInstance, turn: Turn): void {
  const { id, tenant_id, created_at, namespace, sequence_id } = record;
  const failure = failureOf(record);
  turn.put(DEAD_LETTER.set, id, {
    instance_id: id,
    tenant_id,
    created_at,
    failed_at: isoTime(env.now()),
    reason: failure?.message ?? '',
    namespace,
    sequence_id,
    failure_code: failure?.code ?? null,
    block_id: failure?.block_id ?? null,
    handler: failure?.handler ?? null,
    folded_reason: failure && foldReason(failure.message),
  });
}

/** Stores a webhook for each target. Dry runs and cancelled instances send none. */
function putWebhooks(actor: LiveInstance, turn: Turn): void {
  const { env, record, plan } = actor;
  const { state, runtime } = record.snapshot;
  if ((state !== 'completed' && state !== 'failed') || runtime.dry_run === true) return;
  const { id, tenant_id, namespace, sequence_id, metadata, updated_at } = record;
  const event: WebhookEvent = state === 'completed' ? 'instance.completed' : 'instance.failed';
  const targets = env.webhookTargets(tenant_id, event);
  if (targets.length === 0) return;
  const now = env.now();
  const content: Required<WebhookBody> = {
    event_type: event,
    instance_id: id,
    timestamp: isoTime(Date.parse(updated_at)),
    tenant_id,
    namespace,
    sequence_id,
    sequence_name: plan.name,
    sequence_version: plan.version,
    metadata,
    failure: failureOf(record),
    data: state === 'completed' ? {} : whyOf(actor),
  };
  // These bytes are stored, signed and sent.
  const body = JSON.stringify(content);
  for (const { url, subscription } of targets) {
    const row: WebhookRow = {
      id: nextId(actor),
      url,
      event_type: event,
      instance_id: id,
      tenant_id,
      body,
      attempts: 0,
      last_error: null,
      delivery_id: null,
      status: 'pending',
      next_attempt_at: isoTime(now),
      claimed_at: null,
      created_at: isoTime(now),
      subscription_id: subscription,
    };
    turn.put(WEBHOOK.set, row.id, row);
    turn.effects.push({ kind: 'webhook', row });
  }
}

/** `{error, attempts, block_id}`; the last two only when a step failed. */
function whyOf({ record }: LiveInstance): JsonObject {
  const { message = '', block_id, attempt } = failureOf(record) ?? {};
  const data: JsonObject = { error: message };
  if (attempt != null) data.attempts = attempt + 1;
  if (block_id != null) data.block_id = block_id;
  return data;
}
