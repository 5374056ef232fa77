/**
 * What an instance has to do with concurrency keys and rate limits: it says when it wants a slot and
 * when it is without need of one, and takes their answers. Wishes are numbered and tries are named, so
 * that answers which are late or come twice are recognised.
 */

import { concurrencyKeyId, rateLimitId } from '../../src/base/ids.js';
import type { UnixMs } from '../../src/base/time.js';
import type { Progress } from '../../src/core/progress.js';
import type { Turn } from '../runtime/turn.js';
import { advance, advanceTry } from './advance.js';
import type { LiveInstance } from './live-instance.js';
import type { MessageOf } from './messages.js';
import { tellPeer } from './progress.js';
import { type InstanceRecord, isKeyed, type PermitStatus, permitStatus } from './record.js';
import { PERMIT_REQUEST } from './tables.js';

/** Writes down what changed, and tells the key's actor; called before the instance's own row is put. */
export function recordPermit(actor: LiveInstance, turn: Turn, before: PermitStatus): void {
  if (isKeyed(actor.record)) keepSlot(actor, before);
  const after = permitStatus(actor.record);
  if (before === after || (before === 'wanted' && after === 'held')) return;
  if (before !== 'none') leave(actor, turn, actor.record.snapshot.execution.n ?? 0);
  if (after === 'none') {
    turn.put(PERMIT_REQUEST.clear, actor.record.id, { instance_id: actor.record.id });
    return;
  }
  if (after === 'held') throw new Error(`instance ${actor.record.id} took a slot unasked`);
  want(actor, turn);
}

/**
 * What its instance is when it is neither running nor waiting: between tries and in delays it keeps its slot, since
 * it has begun; when it is paused or put off, as long as somebody is still at work for it.
 */
function keepSlot({ record, tasks, running }: LiveInstance, before: PermitStatus): void {
  const { state, execution } = record.snapshot;
  const isHeldBack = state === 'paused' || execution.h !== undefined;
  const keeps =
    (before === 'held' || execution.r === 1) &&
    (state === 'scheduled' || state === 'paused') &&
    record.fence === null &&
    (isHeldBack ? running.size > 0 || tasks.hasClaimed : execution.t !== null);
  if (keeps) execution.r = 1;
  else if (execution.r !== undefined) delete execution.r;
}

function want(actor: LiveInstance, turn: Turn): void {
  const { record } = actor;
  const { execution } = record.snapshot;
  const key = keyOf(record);
  const number = (execution.n ?? 0) + 1;
  const max = record.max_concurrency ?? 0;
  execution.n = number;
  turn.put(PERMIT_REQUEST.set, record.id, {
    instance_id: record.id,
    key_id: key,
    max_concurrency: max,
    number,
    created_at: record.created_at,
  });
  tellPeer(actor, turn, key, {
    kind: 'permit.wanted',
    key,
    instance: record.id,
    tenant: record.tenant_id,
    number,
    max,
    createdAt: Date.parse(record.created_at),
  });
}

function leave(actor: LiveInstance, turn: Turn, number: number): void {
  const key = keyOf(actor.record);
  tellPeer(actor, turn, key, { kind: 'permit.left', key, instance: actor.record.id, number });
}

function keyOf(record: InstanceRecord): string {
  return concurrencyKeyId(record.tenant_id, record.concurrency_key ?? '');
}

/** A slot for a wish that is over is given back. */
export function permitGranted(
  actor: LiveInstance,
  turn: Turn,
  { number }: MessageOf<'permit.granted'>,
): Progress | undefined {
  const { record } = actor;
  if (!isKeyed(record)) return undefined;
  const status = permitStatus(record);
  const isPresent = record.snapshot.execution.n === number;
  if (status === 'wanted' && isPresent) {
    // It may go into a delay at once.
    record.snapshot.execution.r = 1;
    return advance(actor, turn, { kind: 'admitted' });
  }
  if (status !== 'held' || !isPresent) leave(actor, turn, number);
  return undefined;
}

// ---------------------------------------------------------------- rate limits

type Granted = MessageOf<'rate.granted'>;

/**
 * A grant is for the moment. One that is too late, whose try is gone, or that meets a paused instance
 * is not used; the try asks again by itself.
 */
export function rateGranted(
  actor: LiveInstance,
  turn: Turn,
  { step, grant, usableUntil }: Granted,
): Progress | undefined {
  const now = actor.env.now();
  const key = limitOf(actor, step.node);
  const usedAt = actor.usedGrants.get(grant);
  const isLate = now > usableUntil || actor.record.snapshot.state !== 'running';
  if (usedAt !== undefined || isLate) {
    reportUse(actor, turn, key, grant, usedAt ?? null);
    return undefined;
  }
  const progress = advanceTry(actor, turn, { kind: 'rate.granted', ...step });
  const isUsed = progress !== undefined;
  // The time at which the try has begun, not before: the window is that of what can be seen.
  reportUse(actor, turn, key, grant, isUsed ? actor.env.now() : null);
  if (isUsed) rememberUse(actor, grant);
  return progress;
}

/** Nothing comes twice after so many others. */
const GRANTS_REMEMBERED = 16;

function rememberUse(actor: LiveInstance, grant: number): void {
  if (grant !== 0) actor.usedGrants.set(grant, actor.env.now());
  if (actor.usedGrants.size <= GRANTS_REMEMBERED) return;
  actor.usedGrants.delete(actor.usedGrants.keys().next().value as number);
}

function reportUse(
  actor: LiveInstance,
  turn: Turn,
  limit: string | undefined,
  grant: number,
  at: UnixMs | null,
): void {
  if (grant === 0 || limit === undefined) return;
  tellPeer(actor, turn, limit, { kind: 'rate.used', limit, grant, at });
}

function limitOf(actor: LiveInstance, node: number): string | undefined {
  const step = actor.plan.nodes[node];
  if (step?.type !== 'step' || step.rateLimitKey === null) return undefined;
  return rateLimitId(actor.record.tenant_id, step.rateLimitKey);
}

export function rateDeferred(
  actor: LiveInstance,
  turn: Turn,
  { step, until }: MessageOf<'rate.deferred'>,
): Progress | undefined {
  const progress = advanceTry(actor, turn, { kind: 'rate.deferred', ...step, until });
  if (progress !== undefined) turn.count('engine_rate_limits_exceeded_total');
  return progress;
}
