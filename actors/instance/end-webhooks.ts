/**
 * The webhooks of an instance that ended: one row for each that is to be told, in the unit that records the end. What
 * is sent is fixed here; the sender of the shard takes it from there.
 */

import type { WebhookBody } from '../../schema/webhook.js';
import type { JsonObject } from '../../src/base/json.js';
import { isoTime } from '../../src/base/time.js';
import type { WebhookEvent, WebhookRow } from '../../src/core/webhook.js';
import type { Turn } from '../runtime/turn.js';
import { WEBHOOK } from '../webhook/tables.js';
import { type LiveInstance, nextId } from './live-instance.js';
import { failureOf } from './record.js';

/** A dry run has no effects outside, and a cancelled instance is no event. */
export function noteEnd(actor: LiveInstance, turn: Turn): void {
  const { env, record, plan } = actor;
  const { state, runtime } = record.snapshot;
  if ((state !== 'completed' && state !== 'failed') || runtime.dry_run === true) return;
  const { id, tenant_id, namespace, sequence_id, metadata, updated_at } = record;
  const event: WebhookEvent = state === 'completed' ? 'instance.completed' : 'instance.failed';
  const targets = env.webhookTargets(tenant_id, event);
  if (targets.length === 0) return;
  const now = env.now();
  const told: Required<WebhookBody> = {
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
  // Byte for byte what is stored, signed and sent.
  const body = JSON.stringify(told);
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

/** `{error, attempts, block_id}`: the last two when a step was the reason. */
function whyOf({ record }: LiveInstance): JsonObject {
  const { message = '', block_id, attempt } = failureOf(record) ?? {};
  const data: JsonObject = { error: message };
  if (attempt != null) data.attempts = attempt + 1;
  if (block_id != null) data.block_id = block_id;
  return data;
}
