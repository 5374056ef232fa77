/** The database changes of an attempt: a row in the delivery log, and the webhook's next state. Pure. */

import { isoTime, type UnixMs } from '../../src/base/time.js';
import { type AttemptOutcome, nextWaitMs, type WebhookRow } from '../../src/core/webhook.js';
import type { Turn } from '../runtime/turn.js';
import { DELIVERY, WEBHOOK } from './tables.js';

export interface Attempt {
  /** The id that all attempts of a delivery share. Redelivering a parked webhook begins a new delivery. */
  readonly delivery: string;
  /** Within the delivery, from 1. */
  readonly number: number;
  readonly at: UnixMs;
  readonly signed: boolean;
  /** A parked webhook is parked again if the redelivery fails. */
  readonly isRedelivery: boolean;
}

export function beginAttempt(
  row: WebhookRow,
  newDelivery: () => string,
  at: UnixMs,
  signed: boolean,
): Attempt {
  const isRedelivery = row.status === 'parked';
  return row.delivery_id === null || isRedelivery
    ? { delivery: newDelivery(), number: 1, at, signed, isRedelivery }
    : { delivery: row.delivery_id, number: row.attempts + 1, at, signed, isRedelivery };
}

export function claimed(row: WebhookRow, { delivery, at }: Attempt): WebhookRow {
  return { ...row, status: 'in_flight', delivery_id: delivery, claimed_at: isoTime(at) };
}

/** The row after an attempt that does not count. */
export function unclaimed(row: WebhookRow): WebhookRow {
  return { ...row, status: 'pending', claimed_at: null };
}

/**
 * Puts the changes of the attempt into the turn; `id` is that of the row in the log.
 * @returns the webhook's row; undefined when it is delivered and the row is deleted
 */
export function recordAttempt(
  turn: Turn,
  row: WebhookRow,
  attempt: Attempt,
  outcome: AttemptOutcome,
  { id, tookMs, now }: { readonly id: string; readonly tookMs: number; readonly now: UnixMs },
): WebhookRow | undefined {
  const { url, event_type, instance_id, subscription_id } = row;
  turn.put(DELIVERY.insert, id, {
    id,
    delivery_id: attempt.delivery,
    url,
    event_type,
    instance_id,
    attempt_number: attempt.number,
    attempted_at: isoTime(attempt.at),
    duration_ms: Math.max(0, Math.round(tookMs)),
    success: outcome.delivered,
    status_code: outcome.status ?? null,
    error_class: outcome.delivered ? null : outcome.errorClass,
    error_excerpt: outcome.delivered ? null : outcome.excerpt,
    signed: attempt.signed,
    subscription_id,
  });
  if (outcome.delivered) {
    turn.put(WEBHOOK.clear, row.id, { id: row.id });
    turn.count('engine_webhooks_sent_total');
    return undefined;
  }
  const attempts = row.attempts + 1;
  const waitMs = attempt.isRedelivery ? null : nextWaitMs(attempts, outcome);
  if (waitMs === null) turn.count('engine_webhooks_failed_total');
  const next: WebhookRow = {
    ...row,
    attempts,
    last_error: `${outcome.errorClass}: ${outcome.excerpt}`,
    delivery_id: attempt.delivery,
    status: waitMs === null ? 'parked' : 'pending',
    next_attempt_at: waitMs === null ? null : isoTime(now + waitMs),
    claimed_at: null,
  };
  turn.put(WEBHOOK.set, row.id, next);
  return next;
}
