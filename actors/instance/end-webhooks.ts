/**
 * The webhooks of an instance that ended: one row for each that is to be told, in the unit that records the end. What
 * is sent is fixed here; the sender of the shard takes it from there.
 */

import type { WebhookBody } from '../../schema/webhook.js';
import type { JsonObject } from '../../src/core/json.js';
import type { Progress } from '../../src/core/progress.js';
import { isoTime } from '../../src/core/time.js';
import type { WebhookEvent } from '../../src/core/webhook.js';
import type { WebhookRow } from '../runtime/rows.js';
import type { Turn } from '../runtime/turn.js';
import { type LiveInstance, nextId } from './live-instance.js';

/** A dry run has no effects outside, and a cancelled instance is no event. */
export function noteEnd(actor: LiveInstance, turn: Turn, progress: Progress): void {
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
    failure: null,
    data: state === 'completed' ? {} : failureOf(actor, progress),
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
    turn.put('webhook.set', row.id, row);
    turn.effects.push({ kind: 'webhook', row });
  }
}

/** `{error, attempts, block_id}`: the last two when a step of this very turn was the reason. */
function failureOf(actor: LiveInstance, progress: Progress): JsonObject {
  const { runtime } = actor.record.snapshot;
  const { audit } = progress;
  const failed =
    audit.findLast(({ eventType }) => eventType === 'step_failed') ??
    audit.findLast(({ eventType }) => eventType === 'block_failed');
  const data: JsonObject = { error: progress.failure ?? 'failed by request' };
  if (failed?.blockId === undefined) return data;
  if (failed.blockId === runtime.current_step && typeof runtime.attempt === 'number') {
    data.attempts = runtime.attempt + 1;
  }
  data.block_id = failed.blockId;
  return data;
}
