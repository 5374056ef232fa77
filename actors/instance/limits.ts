/**
 * What an instance asks of concurrency keys and rate limits: it says when it wants a slot and when it
 * is without need of one, and it asks before a try that is limited. Wishes are numbered and tries are
 * named, so that answers which are late or come twice are recognised (`grants.ts`).
 */

import { concurrencyKeyId, rateLimitId, routeOf, shardOf } from '../../src/core/ids.js';
import type { RateRequest } from '../../src/core/progress.js';
import { isoTime } from '../../src/core/time.js';
import type { PeerMessage } from '../runtime/protocol.js';
import type { Turn } from '../runtime/turn.js';
import type { LiveInstance } from './live-instance.js';
import type { InstanceRecord } from './record.js';

/** What the instance has to do with its key: a slot is held while it is running or waiting. */
export type PermitStatus = 'none' | 'wanted' | 'held';

/** Both fields are needed: a key without a limit limits nothing. */
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
export function recordPermit(actor: LiveInstance, turn: Turn, before: PermitStatus): void {
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

function want(actor: LiveInstance, turn: Turn): void {
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
  const { id: instance, createdAt } = record;
  send(actor, turn, key, { kind: 'permit.wanted', key, instance, number, max, createdAt });
}

export function leave(actor: LiveInstance, turn: Turn, number: number): void {
  const key = keyOf(actor.record);
  send(actor, turn, key, { kind: 'permit.left', key, instance: actor.record.id, number });
}

function keyOf(record: InstanceRecord): string {
  return concurrencyKeyId(record.tenantId, record.concurrencyKey ?? '');
}

// ---------------------------------------------------------------- rate limits

export function askRate(actor: LiveInstance, turn: Turn, request: RateRequest): void {
  const { node, iteration, attempt, key } = request;
  const limit = rateLimitId(actor.record.tenantId, key);
  const asker = { instance: actor.record.id, node, iteration, attempt };
  send(actor, turn, limit, { kind: 'rate.asked', limit, ...asker });
}

export function send(actor: LiveInstance, turn: Turn, id: string, message: PeerMessage): void {
  turn.effects.push({ kind: 'peer', shard: shardOf(routeOf(id), actor.env.shards), message });
}
