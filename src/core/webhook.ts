/** Outbound webhooks (docs/webhooks.md): the signature, and the wait after a failed attempt. */

import { createHmac } from 'node:crypto';
import { words } from '../../schema/states.js';
import type { DELIVERY_ERROR_CLASSES, WEBHOOK_EVENTS } from '../../schema/webhook.js';

export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number];
/** A stored webhook that has not been delivered. */
export interface WebhookRow {
  readonly id: string;
  readonly url: string;
  readonly event_type: WebhookEvent;
  readonly instance_id: string;
  readonly tenant_id: string;
  readonly body: string;
  readonly attempts: number;
  readonly last_error: string | null;
  readonly delivery_id: string | null;
  readonly status: 'pending' | 'in_flight' | 'parked';
  readonly next_attempt_at: string | null;
  readonly claimed_at: string | null;
  readonly created_at: string;
  readonly subscription_id: string | null;
}

export type DeliveryErrorClass = (typeof DELIVERY_ERROR_CLASSES)[number];

interface FailedAttempt {
  readonly delivered: false;
  readonly errorClass: DeliveryErrorClass;
  /** The status of the receiver's response; undefined without a response. */
  readonly status: number | undefined;
  /** Text that the database can store. */
  readonly excerpt: string;
}
export type AttemptOutcome = { readonly delivered: true; readonly status: number } | FailedAttempt;
/** The first one, and three retries. */
const ATTEMPTS_MAX = 4;
const FIRST_WAIT_MS = 500;

/** A retry of the same request would fail in the same way. */
const FINAL_CLASSES: ReadonlySet<DeliveryErrorClass> = new Set(
  words('internal_policy redirect_rejected serialization signature_configuration'),
);
/** The 4xx statuses that are temporary. */
const PASSING_STATUSES: ReadonlySet<number> = new Set([408, 429]);

/** The value of `X-Engine-Signature`. @param timestamp Unix seconds, as `X-Engine-Timestamp` has them */
export function webhookSignature(secret: string, timestamp: number, body: string): string {
  const digest = createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex');
  return `sha256=${digest}`;
}

/** How long to wait before the next attempt; null: there is none. @param attempts made so far */
export function nextWaitMs(attempts: number, outcome: FailedAttempt): number | null {
  if (attempts >= ATTEMPTS_MAX || isFinal(outcome)) return null;
  return FIRST_WAIT_MS * 2 ** (attempts - 1);
}

function isFinal({ errorClass, status }: FailedAttempt): boolean {
  if (errorClass !== 'http_status') return FINAL_CLASSES.has(errorClass);
  return status !== undefined && status < 500 && !PASSING_STATUSES.has(status);
}
