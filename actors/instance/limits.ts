/**
 * Slots of concurrency keys and grants of rate limits. Requests are numbered and tries identified,
 * so that late and repeated responses are recognised.
 */

import { concurrencyKeyId, rateLimitId } from '../../src/base/ids.js';
import type { UnixMs } from '../../src/base/time.js';
import type { Turn } from '../runtime/turn.js';
import { advance, advanceTry } from './advance.js';
import type { Handler, LiveInstance } from './live-instance.js';
import { sendToPeer } from './progress.js';
import { type InstanceRecord, isKeyed, type PermitStatus, permitStatus } from './record.js';
import { PERMIT_REQUEST } from './tables.js';

/** Records a changed need for a slot. Call it before the instance's row is put. */
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
 * An instance that is neither running nor waiting keeps its slot between tries and during delays.
 * While it is paused or postponed, it keeps the slot as long as a handler or worker executes one of
 * its steps.
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
  sendToPeer(actor, turn, key, {
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
  sendToPeer(actor, turn, key, { kind: 'permit.left', key, instance: actor.record.id, number });
}

function keyOf(record: InstanceRecord): string {
  return concurrencyKeyId(record.tenant_id, record.concurrency_key ?? '');
}

/** Returns the slot if its request is outdated. */
export const permitGranted: Handler<'permit.granted'> = (actor, turn, { number }) => {
  const { record } = actor;
  if (!isKeyed(record)) return undefined;
  const status = permitStatus(record);
  const isPresent = record.snapshot.execution.n === number;
  if (status === 'wanted' && isPresent) {
    // The instance may start with a delay, and holds the slot meanwhile.
    record.snapshot.execution.r = 1;
    return advance(actor, turn, { kind: 'admitted' });
  }
  if (status !== 'held' || !isPresent) leave(actor, turn, number);
  return undefined;
};

/** Returns a grant that is late or whose try cannot start; the try requests another one. */
export const rateGranted: Handler<'rate.granted'> = (actor, turn, { step, grant, usableUntil }) => {
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
  // The start of the try, as callers of the target see it.
  reportUse(actor, turn, key, grant, isUsed ? actor.env.now() : null);
  if (isUsed && grant !== 0) {
    const { usedGrants } = actor;
    usedGrants.set(grant, actor.env.now());
    if (usedGrants.size > GRANTS_REMEMBERED) {
      usedGrants.delete(usedGrants.keys().next().value as number);
    }
  }
  return progress;
};

/** A grant is not repeated after this many newer ones. */
const GRANTS_REMEMBERED = 16;

function reportUse(
  actor: LiveInstance,
  turn: Turn,
  limit: string | undefined,
  grant: number,
  at: UnixMs | null,
): void {
  if (grant === 0 || limit === undefined) return;
  sendToPeer(actor, turn, limit, { kind: 'rate.used', limit, grant, at });
}

function limitOf(actor: LiveInstance, node: number): string | undefined {
  const step = actor.plan.nodes[node];
  if (step?.type !== 'step' || step.rateLimitKey === null) return undefined;
  return rateLimitId(actor.record.tenant_id, step.rateLimitKey);
}

export const rateDeferred: Handler<'rate.deferred'> = (actor, turn, { step, until }) => {
  const progress = advanceTry(actor, turn, { kind: 'rate.deferred', ...step, until });
  if (progress !== undefined) turn.count('engine_rate_limits_exceeded_total');
  return progress;
};
