/**
 * Slots of concurrency keys and grants of rate limits. Requests are numbered and tries identified,
 * so that late and repeated responses are recognised.
 */

import { WAITS_FOR_START } from '../../schema/execution.js';
import { SEQUENCE_KEY_PREFIX } from '../../schema/flow-limits.js';
import { isEnded } from '../../schema/states.js';
import { concurrencyKeyId, throttleId } from '../../src/base/ids.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import type { Slot } from '../runtime/slots.js';
import type { Turn } from '../runtime/turn.js';
import { advance, advanceTry } from './advance.js';
import type { Handler, LiveInstance } from './live-instance.js';
import { putAudit, sendToPeer } from './progress.js';
import { type InstanceRecord, isKeyed, type PermitStatus, permitStatus } from './record.js';
import { PERMIT_REQUEST, START_REQUEST } from './tables.js';

/** Records a changed need for a slot. Call it before the instance's row is put. */
export function recordPermit(actor: LiveInstance, turn: Turn, before: PermitStatus): void {
  if (isKeyed(actor.record)) keepSlot(actor, before);
  const after = permitStatus(actor.record);
  // A creation that has taken a slot records it itself.
  if (before === 'held' && actor.creationAudit !== undefined) return;
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
  const waitsForStart = execution.w === WAITS_FOR_START;
  // A requested start is over when the instance waits for that of its throttle.
  const isHeldBack = state === 'paused' || (execution.h !== undefined && !waitsForStart);
  const keeps =
    (before === 'held' || execution.r === 1) &&
    (state === 'scheduled' || state === 'paused') &&
    record.fence === null &&
    (isHeldBack ? running.size > 0 || tasks.hasClaimed : execution.t !== null || waitsForStart);
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
  const whenFull = number === FIRST_REQUEST ? policyOf(actor) : null;
  putRequest(turn, record, key, { when_full: whenFull, has_slot: false });
  sendToPeer(actor, turn, key, {
    kind: 'permit.wanted',
    key,
    instance: record.id,
    tenant: record.tenant_id,
    number,
    max,
    createdAt: Date.parse(record.created_at),
    whenFull,
  });
}

/** The number of the request of a new instance: one that comes back later waits. */
const FIRST_REQUEST = 1;

/** An instance that exists cannot be skipped: it is cancelled. */
function policyOf({ plan, record }: LiveInstance): SlotPolicy {
  if (record.concurrency_key?.startsWith(SEQUENCE_KEY_PREFIX) !== true) return null;
  const whenFull = plan.flow?.concurrency?.whenFull ?? 'queue';
  if (whenFull === 'queue') return null;
  return whenFull === 'cancel_oldest' ? 'cancel_oldest' : 'cancel_newest';
}

type SlotPolicy = 'cancel_oldest' | 'cancel_newest' | null;

interface RequestTerms {
  readonly when_full: SlotPolicy;
  readonly has_slot: boolean;
}

function putRequest(turn: Turn, record: InstanceRecord, key: string, terms: RequestTerms): void {
  turn.put(PERMIT_REQUEST.set, record.id, {
    instance_id: record.id,
    key_id: key,
    max_concurrency: record.max_concurrency ?? 0,
    number: record.snapshot.execution.n ?? 0,
    created_at: record.created_at,
    ...terms,
  });
}

/** The new instance begins with a slot. */
export function giveSlot({ snapshot: { execution } }: InstanceRecord): void {
  execution.n = FIRST_REQUEST;
  execution.r = 1;
}

/** Records the slot of a new instance in its unit. @returns false when it needs none any more */
export function recordSlot(turn: Turn, record: InstanceRecord, slot: Slot): boolean {
  if (permitStatus(record) !== 'held') return false;
  putRequest(turn, record, keyOf(record), { when_full: null, has_slot: true });
  slot.record(turn);
  return true;
}

/** Records whether the instance waits for its throttle. @param before the key for which it waited */
export function recordStart(actor: LiveInstance, turn: Turn, before: string | undefined): void {
  const { record } = actor;
  const after = startKeyOf(record);
  if (before === after) return;
  const { id: instance } = record;
  if (after !== undefined) {
    const { key, createdAt, limit, perMs, burst } = askForStart(actor, turn, after);
    turn.put(START_REQUEST.set, instance, {
      instance_id: instance,
      key_id: key,
      max_starts: limit,
      per_ms: perMs,
      burst,
      created_at: isoTime(createdAt),
    });
  } else if (before !== undefined) {
    turn.put(START_REQUEST.clear, instance, { instance_id: instance });
    const key = throttleId(record.tenant_id, before);
    sendToPeer(actor, turn, key, { kind: 'start.left', key, instance });
  }
}

/** The key of the throttle that puts off its start; undefined: none does. */
export function startKeyOf({ snapshot: { execution } }: InstanceRecord): string | undefined {
  return execution.w === WAITS_FOR_START ? execution.i : undefined;
}

function askForStart(actor: LiveInstance, turn: Turn, name: string) {
  const { id: instance, tenant_id: tenant, created_at } = actor.record;
  const key = throttleId(tenant, name);
  const { limit, perMs, burst } = actor.plan.flow?.throttle ?? UNTHROTTLED;
  const createdAt = Date.parse(created_at);
  const terms = { limit, perMs, burst };
  const message = { kind: 'start.wanted', key, instance, tenant, createdAt, ...terms } as const;
  sendToPeer(actor, turn, key, message);
  return message;
}

/** For an instance that a migration has moved to a version without a throttle. */
const UNTHROTTLED = { limit: 1, perMs: 1, burst: 1 };

export const startGranted: Handler<'start.granted'> = (actor, turn, message) => {
  const { record, env } = actor;
  const { key, grant, usableUntil } = message;
  const name = startKeyOf(record);
  const isUsed = name !== undefined && env.now() <= usableUntil;
  const at = isUsed ? env.now() : null;
  sendToPeer(actor, turn, key, { kind: 'start.used', key, grant, at });
  if (isUsed) return advance(actor, turn, { kind: 'start.granted' });
  // The grant is late, and the key no longer has the request in memory.
  if (name !== undefined) askForStart(actor, turn, name);
  return undefined;
};

function leave(actor: LiveInstance, turn: Turn, number: number): void {
  const key = keyOf(actor.record);
  sendToPeer(actor, turn, key, { kind: 'permit.left', key, instance: actor.record.id, number });
}

function keyOf(record: InstanceRecord): string {
  return concurrencyKeyId(record.tenant_id, record.concurrency_key ?? '');
}

/** There is no slot for the instance: it is cancelled like by the signal. */
export const permitDenied: Handler<'permit.denied'> = (actor, turn, { number, why }) => {
  const { record } = actor;
  const { state, execution } = record.snapshot;
  if (permitStatus(record) === 'none' || execution.n !== number) return undefined;
  // It is being cancelled, and keeps its slot until its protected work has ended.
  if (isEnded(state) || execution.x === 1) return undefined;
  const details = { concurrency_key: record.concurrency_key, when_full: why };
  putAudit(actor, turn, [{ eventType: 'key_full', details }]);
  turn.count('engine_key_cancellations_total');
  return advance(actor, turn, { kind: 'cancel' });
};

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
export const rateGranted: Handler<'rate.granted'> = (actor, turn, message) => {
  const { limit, step, grant, usableUntil } = message;
  const now = actor.env.now();
  const usedAt = actor.usedGrants.get(grant);
  const isLate = now > usableUntil || actor.record.snapshot.state !== 'running';
  if (usedAt !== undefined || isLate) {
    reportUse(actor, turn, limit, grant, usedAt ?? null);
    return undefined;
  }
  const progress = advanceTry(actor, turn, { kind: 'rate.granted', ...step });
  const isUsed = progress !== undefined;
  // The start of the try, as callers of the target see it.
  reportUse(actor, turn, limit, grant, isUsed ? actor.env.now() : null);
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
  limit: string,
  grant: number,
  at: UnixMs | null,
): void {
  if (grant === 0) return;
  sendToPeer(actor, turn, limit, { kind: 'rate.used', limit, grant, at });
}

export const rateDeferred: Handler<'rate.deferred'> = (actor, turn, { step, until }) => {
  const progress = advanceTry(actor, turn, { kind: 'rate.deferred', ...step, until });
  if (progress !== undefined) turn.count('engine_rate_limits_exceeded_total');
  return progress;
};
