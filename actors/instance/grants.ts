/** What an instance makes of the answers of concurrency keys and rate limits. */

import { rateLimitId } from '../../src/core/ids.js';
import type { Progress } from '../../src/core/progress.js';
import type { UnixMs } from '../../src/core/time.js';
import type { Turn } from '../runtime/turn.js';
import { advance } from './advance.js';
import { isKeyed, leave, permitStatus, send } from './limits.js';
import type { LiveInstance } from './live-instance.js';
import type { InstanceMessage } from './messages.js';

/** A slot for a wish that is over is given back. */
export function permitGranted(
  actor: LiveInstance,
  turn: Turn,
  number: number,
): Progress | undefined {
  const { record } = actor;
  if (!isKeyed(record)) return undefined;
  const status = permitStatus(record);
  const isPresent = record.snapshot.execution.n === number;
  if (status === 'wanted' && isPresent) return advance(actor, turn, { kind: 'admitted' });
  if (status !== 'held' || !isPresent) leave(actor, turn, number);
  return undefined;
}

type Granted = Extract<InstanceMessage, { kind: 'rate.granted' }>;

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
  const progress = advance(actor, turn, { kind: 'rate.granted', ...step });
  const isUsed = progress.stale !== true;
  // The time at which the try has begun, not before: the window is that of what can be seen.
  reportUse(actor, turn, key, grant, isUsed ? actor.env.now() : null);
  if (isUsed) rememberUse(actor, grant);
  return isUsed ? progress : undefined;
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
  send(actor, turn, limit, { kind: 'rate.used', limit, grant, at });
}

function limitOf(actor: LiveInstance, node: number): string | undefined {
  const step = actor.plan.nodes[node];
  if (step?.type !== 'step' || step.rateLimitKey === null) return undefined;
  return rateLimitId(actor.record.tenantId, step.rateLimitKey);
}

export function rateDeferred(
  actor: LiveInstance,
  turn: Turn,
  { step, until }: Extract<InstanceMessage, { kind: 'rate.deferred' }>,
): Progress | undefined {
  const progress = advance(actor, turn, { kind: 'rate.deferred', ...step, until });
  if (progress.stale === true) return undefined;
  turn.count('engine_rate_limits_exceeded_total');
  return progress;
}

export function rateChanged(
  actor: LiveInstance,
  turn: Turn,
  { step }: Extract<InstanceMessage, { kind: 'rate.changed' }>,
): Progress | undefined {
  const progress = advance(actor, turn, { kind: 'rate.changed', ...step });
  return progress.stale === true ? undefined : progress;
}
