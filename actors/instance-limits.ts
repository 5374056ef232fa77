/**
 * The instance's side of concurrency keys and rate limits (spec/06 rows 21 and 23): it says when it
 * wants a slot and when it is without need of one, and it asks before a try that is limited. Wishes
 * are numbered and tries are named, so that answers which are late or come twice are recognised.
 */

import { concurrencyKeyId, rateLimitId, routeOf, shardOf } from '../src/core/ids.js';
import type { Progress, RateRequest } from '../src/core/progress.js';
import type { UnixMs } from '../src/core/time.js';
import { isoTime } from '../src/core/time.js';
import type { InstanceActor } from './instance.js';
import type { InstanceMessage } from './instance-messages.js';
import type { InstanceRecord } from './instance-record.js';
import type { PeerMessage } from './protocol.js';
import type { Turn } from './turn.js';

/** What the instance has to do with its key: a slot is held while it is running or waiting. */
export type PermitStatus = 'none' | 'wanted' | 'held';

/** Both fields are needed: a key without a limit limits nothing (spec/01 §5.9). */
export function isKeyed(record: InstanceRecord): boolean {
  return record.concurrencyKey !== null && record.maxConcurrency !== null;
}

export function permitStatus(record: InstanceRecord): PermitStatus {
  if (!isKeyed(record)) return 'none';
  const { state, execution } = record.snapshot;
  if (execution.w === 1) return 'wanted';
  return state === 'running' || state === 'waiting' ? 'held' : 'none';
}

/** Writes down what changed, and tells the key's actor; called before the instance's own row is put. */
export function recordPermit(actor: InstanceActor, turn: Turn, before: PermitStatus): void {
  const after = permitStatus(actor.record);
  if (before === after || (before === 'wanted' && after === 'held')) return;
  if (before !== 'none') leave(actor, turn, actor.record.snapshot.execution.n ?? 0);
  if (after === 'none') {
    turn.put('permitRequest.clear', actor.record.id, { instance_id: actor.record.id });
    return;
  }
  if (after === 'held') throw new Error(`instance ${actor.record.id} took a slot unasked`);
  want(actor, turn);
}

function want(actor: InstanceActor, turn: Turn): void {
  const { record } = actor;
  const { execution } = record.snapshot;
  const key = keyOf(record);
  const number = (execution.n ?? 0) + 1;
  const max = record.maxConcurrency ?? 0;
  execution.n = number;
  turn.put('permitRequest.set', record.id, {
    instance_id: record.id,
    key_id: key,
    max_concurrency: max,
    number,
    created_at: isoTime(record.createdAt),
  });
  send(actor, turn, key, ['permit.wanted', key, record.id, number, max, record.createdAt]);
}

function leave(actor: InstanceActor, turn: Turn, number: number): void {
  const key = keyOf(actor.record);
  send(actor, turn, key, ['permit.left', key, actor.record.id, number]);
}

/** A slot for a wish that is over is given back. */
export function permitGranted(
  actor: InstanceActor,
  turn: Turn,
  number: number,
): Progress | undefined {
  const { record } = actor;
  if (!isKeyed(record)) return undefined;
  const status = permitStatus(record);
  const isPresent = record.snapshot.execution.n === number;
  if (status === 'wanted' && isPresent) return actor.advance(turn, { kind: 'admitted' });
  if (status !== 'held' || !isPresent) leave(actor, turn, number);
  return undefined;
}

function keyOf(record: InstanceRecord): string {
  return concurrencyKeyId(record.tenantId, record.concurrencyKey ?? '');
}

// ---------------------------------------------------------------- rate limits

export function askRate(actor: InstanceActor, turn: Turn, request: RateRequest): void {
  const { node, iteration, attempt, key } = request;
  const limit = rateLimitId(actor.record.tenantId, key);
  send(actor, turn, limit, ['rate.asked', limit, actor.record.id, node, iteration, attempt]);
}

type Granted = Extract<InstanceMessage, { kind: 'rate.granted' }>;

/**
 * A grant is for the moment. One that is too late, whose try is gone, or that meets a paused instance
 * is not used; the try asks again by itself.
 */
export function rateGranted(
  actor: InstanceActor,
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
  const progress = actor.advance(turn, { kind: 'rate.granted', ...step });
  const isUsed = progress.stale !== true;
  // The time at which the try has begun, not before: the window is that of what can be seen.
  reportUse(actor, turn, key, grant, isUsed ? actor.env.now() : null);
  if (isUsed) rememberUse(actor, grant);
  return isUsed ? progress : undefined;
}

/** Nothing comes twice after so many others. */
const GRANTS_REMEMBERED = 16;

function rememberUse(actor: InstanceActor, grant: number): void {
  if (grant !== 0) actor.usedGrants.set(grant, actor.env.now());
  if (actor.usedGrants.size <= GRANTS_REMEMBERED) return;
  actor.usedGrants.delete(actor.usedGrants.keys().next().value as number);
}

function reportUse(
  actor: InstanceActor,
  turn: Turn,
  limit: string | undefined,
  grant: number,
  at: UnixMs | null,
): void {
  if (grant === 0 || limit === undefined) return;
  send(actor, turn, limit, ['rate.used', limit, grant, at]);
}

function limitOf(actor: InstanceActor, node: number): string | undefined {
  const step = actor.plan.nodes[node];
  if (step?.type !== 'step' || step.rateLimitKey === null) return undefined;
  return rateLimitId(actor.record.tenantId, step.rateLimitKey);
}

export function rateDeferred(
  actor: InstanceActor,
  turn: Turn,
  { step, until }: Extract<InstanceMessage, { kind: 'rate.deferred' }>,
): Progress | undefined {
  const progress = actor.advance(turn, { kind: 'rate.deferred', ...step, until });
  if (progress.stale === true) return undefined;
  turn.count('engine_rate_limits_exceeded_total');
  return progress;
}

export function rateChanged(
  actor: InstanceActor,
  turn: Turn,
  { step }: Extract<InstanceMessage, { kind: 'rate.changed' }>,
): Progress | undefined {
  const progress = actor.advance(turn, { kind: 'rate.changed', ...step });
  return progress.stale === true ? undefined : progress;
}

function send(actor: InstanceActor, turn: Turn, id: string, message: PeerMessage): void {
  turn.effects.push({ kind: 'peer', shard: shardOf(routeOf(id), actor.env.shards), message });
}
