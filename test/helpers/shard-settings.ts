/** What shards of tests are made with, wherever they run. */

import assert from 'node:assert/strict';
import type { ShardSettings } from '../../actors/runtime/kernel.js';
import type { PushSender } from '../../src/handlers/push-sender.js';
import type { WebhookSender } from '../../src/handlers/webhook-sender.js';

/** Of a shard that is alone; nothing in them makes a test wait. */
export const SHARD_SETTINGS: ShardSettings = {
  ...{ shard: 0, shards: 1, tickIntervalMs: 100, cronTickMs: 10_000, workerStaleMs: 60_000 },
  ...{ workerReaperTickMs: 5_000, lostClaimsMax: 10, requireClaimEpoch: false },
  // Long enough that `letHoursPass` of a local shard is what ends a call.
  ...{ stepTimeoutMaxMs: 3_600_000, unpoliciedRetry: 'redispatch', maxContextBytes: 262_144 },
  ...{ maxOutputBytes: 1_048_576, maxBodyBytes: 10_485_760, webhookUrls: [], activityDays: 0 },
};

export const NO_PUSHES: PushSender = { send: () => Promise.resolve({ kind: 'aborted' }) };

export const NO_WEBHOOKS: WebhookSender = {
  isSigned: false,
  problemOf: () => undefined,
  send: () => assert.fail('there is no webhook'),
};
