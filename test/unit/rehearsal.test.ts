/** What a shard does while it waits for its start: seen by nobody, and over when it is told so. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContinuityRows } from '../../actors/continuity/rows.js';
import type { Rows } from '../../actors/runtime/loader.js';
import type { ShardDeps } from '../../actors/shard/parts.js';
import { rehearse } from '../../actors/shard/rehearsal.js';
import type { WebhookSender } from '../../src/handlers/webhook-sender.js';
import type { Logger } from '../../src/log.js';
import { COUNTER_NAMES } from '../../src/metrics/catalog.js';
import { Meter } from '../../src/metrics/meter.js';

/** What nobody may touch. */
function untouched<Thing extends object>(what: string): Thing {
  const fail = () => assert.fail(`the rehearsal used the ${what} of the shard`);
  return new Proxy({} as Thing, { get: fail });
}

/** A clock on which `msPerLook` pass whenever somebody looks at it. */
function depsWith(meter: Meter, msPerLook: number): ShardDeps {
  let ms = 0;
  const look = () => {
    ms += msPerLook;
    return ms;
  };
  return {
    settings: {
      shard: 1,
      shards: 2,
      tickIntervalMs: 100,
      cronTickMs: 1_000,
      workerStaleMs: 60_000,
      workerReaperTickMs: 1_000,
      stepTimeoutMaxMs: 300_000,
      requireClaimEpoch: true,
      unpoliciedRetry: 'fail',
      maxContextBytes: 1,
      maxOutputBytes: 1,
      webhookUrls: ['https://example.org/hook'],
    },
    clock: {
      now: () => 1_760_000_000_000 + Math.floor(look()),
      monotonic: look,
      setTimeout: () => assert.fail('the rehearsal set a timer'),
      clearTimeout: () => undefined,
    },
    random: Math.random,
    log: untouched<Logger>('log'),
    loader: untouched<Rows>('database'),
    continuityRows: untouched<ContinuityRows>('database'),
    handlers: new Map(),
    webhookSender: untouched<WebhookSender>('webhooks'),
    meter,
    ports: untouched<ShardDeps['ports']>('ports'),
    setImmediate: () => assert.fail('the rehearsal asked for a turn of the shard'),
  };
}

test('instances live and end, and nothing of it is written, counted, logged or sent', async () => {
  const meter = new Meter();
  const lives = await rehearse(depsWith(meter, 0.02)).lives;
  assert.ok(lives >= 2, `${lives} lives`);
  assert.deepEqual(
    COUNTER_NAMES.filter((name) => meter.counter(name) !== 0),
    [],
  );
  const turns = meter.observations('engine_tick_duration_seconds');
  assert.equal(
    turns.buckets.reduce((sum, count) => sum + count, 0),
    0,
  );
});

test('it ends by itself when its time is over, and soon when it is stopped', async () => {
  assert.equal(await rehearse(depsWith(new Meter(), 3)).lives, 0);
  const standing = rehearse(depsWith(new Meter(), 0));
  standing.stop();
  assert.equal(await standing.lives, 0);
});
