/** `GET /metrics` of the real server: who may scrape, what is counted, and that it always answers. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import type { KeyMinted } from '../../schema/api-key.js';
import { eventually, step, useApi } from '../helpers/api.js';
import { type Client, createClient, expectStatus } from '../helpers/client.js';
import { createTestDatabase } from '../helpers/database.js';
import { type Engine, startEngine } from '../helpers/engine.js';
import { type Exposition, parseExposition } from '../helpers/exposition.js';
import { listen } from '../helpers/http-handler.js';
import { FaultProxy } from '../helpers/proxy.js';

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** A name that no test in this file counts. */
const UNTOUCHED = 'engine_webhooks_sent_total';

async function scrape(client: Client): Promise<Exposition> {
  const reply = await client.get('/metrics');
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.headers['content-type'], CONTENT_TYPE);
  return parseExposition(reply.text);
}

/** Of an engine that may not be ready: with its key, without a tenant. */
async function scrapeEngine(engine: Engine): Promise<Exposition> {
  const client = createClient({ url: engine.url, apiKey: engine.apiKey });
  try {
    return await scrape(client);
  } finally {
    await client.close();
  }
}

async function assertNeedsKey(engine: Engine): Promise<void> {
  const client = createClient({ url: engine.url, apiKey: null });
  try {
    assert.equal((await client.get('/metrics')).status, 401);
  } finally {
    await client.close();
  }
}

describe('a server', () => {
  const api = useApi({ env: { ENGINE_SHARDS: '2', ENGINE_ALLOW_INTERNAL_URLS: 'true' } });
  const tenant = api.tenant();

  test('/metrics is Prometheus text and names instances_claimed, instances_completed and steps_executed counters after some work', async () => {
    const before = await scrape(api.root);
    const names = ['instances_claimed', 'instances_completed', 'steps_executed'];
    const values = ({ value }: Exposition) => names.map((name) => value(`engine_${name}_total`));
    assert.deepEqual(values(before), [0, 0, 0]);
    const sequence = await tenant.sequence([step('a', 'noop'), step('b', 'noop')]);
    for (let i = 0; i < 3; i++) await tenant.create(sequence);
    // What its caller was told of is counted.
    assert.deepEqual(values(await scrape(api.root)), [3, 3, 6]);
  });

  for (const prefix of ['', '/api/v1']) {
    test(`it answers under "${prefix}" with a key and no tenant, and refuses without a key`, async () => {
      const root = api.root.with({ prefix, tenant: null });
      const reply = await root.get('/metrics');
      assert.equal(reply.status, 200);
      assert.equal(reply.headers['content-type'], CONTENT_TYPE);
      assert.equal(reply.headers.deprecation, undefined);
      assert.equal((await root.with({ apiKey: null }).get('/metrics')).status, 401);
      assert.equal((await root.with({ apiKey: 'wrong' }).get('/metrics')).status, 401);
    });
  }

  test('attempts, failures, retries, signals and dead letters are counted one by one', async () => {
    const before = await scrape(api.root);
    const handler = `metrics-${Date.now()}`;
    const retry = { max_attempts: 2, initial_backoff: 10, max_backoff: 10 };
    const id = await tenant.run([step('a', handler, { retry })]);
    await tenant.signal(id, 'custom:ping');
    await tenant.fail(await tenant.task(handler), 'no', true);
    await tenant.fail(await tenant.task(handler), 'no', true);
    await tenant.until(id, 'failed');
    const now = await scrape(api.root);
    const more = (name: string) => now.value(name) - before.value(name);
    assert.deepEqual(
      {
        claimed: more('engine_instances_claimed_total'),
        executed: more('engine_steps_executed_total'),
        failedSteps: more('engine_steps_failed_total'),
        retried: more('engine_steps_retried_total'),
        signals: more('engine_signals_delivered_total'),
        completed: more('engine_instances_completed_total'),
        failed: more('engine_instances_failed_total'),
        steps: more('engine_step_duration_seconds_count'),
        untouched: more(UNTOUCHED),
      },
      // Claimed when it started, and when its back-off was over.
      {
        claimed: 2,
        executed: 2,
        failedSteps: 2,
        retried: 1,
        signals: 1,
        completed: 0,
        failed: 1,
        steps: 2,
        untouched: 0,
      },
    );
  });

  test('ends are counted by sequence and attempts by handler, and keys of tenants see no names', async () => {
    const [flow, handler] = [`flow-${Date.now()}`, `metrics-named-${Date.now()}`];
    const sequence = await tenant.sequence([step('a', handler)], { name: flow });
    const ids = [await tenant.create(sequence), await tenant.create(sequence)];
    await tenant.complete(await tenant.task(handler));
    await tenant.fail(await tenant.task(handler), 'no', false);
    await eventually(async () => {
      const states = await Promise.all(ids.map((id) => tenant.instance(id)));
      assert.deepEqual(states.map(({ state }) => state).sort(), ['completed', 'failed']);
    });
    const named = (text: string) =>
      text.split('\n').filter((line) => line.includes(flow) || line.includes(handler));
    const counts = named((await api.root.get('/metrics')).text).filter(
      (line) => !line.includes('_seconds_'),
    );
    assert.deepEqual(counts.sort(), [
      `engine_handler_attempts_failed_total{handler="${handler}"} 1`,
      `engine_handler_attempts_succeeded_total{handler="${handler}"} 1`,
      `engine_sequence_instances_completed_total{sequence="${flow}"} 1`,
      `engine_sequence_instances_failed_total{sequence="${flow}"} 1`,
    ]);
    const body = { tenant_id: tenant.name, capabilities: ['operator'] };
    const key = expectStatus(await api.root.post<KeyMinted>('/api-keys', body), 201);
    const reply = await api.root.with({ apiKey: key.secret, tenant: null }).get('/metrics');
    assert.equal(reply.status, 200);
    assert.deepEqual(named(reply.text), []);
  });

  test('each time that a rate limit puts a step off is counted', async () => {
    const limit = { max_count: 1, window_seconds: 3_600 };
    assert.equal((await tenant.put('/rate-limits/metrics', limit)).status, 200);
    const sequence = await tenant.sequence([step('a', 'noop', { rate_limit_key: 'metrics' })]);
    const before = await scrape(api.root);
    for (let i = 0; i < 3; i++) await tenant.create(sequence);
    await eventually(async () => {
      const now = await scrape(api.root);
      const name = 'engine_rate_limits_exceeded_total';
      assert.equal(now.value(name) - before.value(name), 2);
    });
  });

  test('a future start is not claimed before its time', async () => {
    const sequence = await tenant.sequence([step('a', 'noop')]);
    const before = await scrape(api.root);
    const id = await tenant.create(sequence, { next_fire_at: '2099-01-01T00:00:00Z' });
    const claimed = async () =>
      (await scrape(api.root)).value('engine_instances_claimed_total') -
      before.value('engine_instances_claimed_total');
    assert.equal(await claimed(), 0);
    await tenant.move(id, 'running');
    await tenant.until(id, 'completed');
    assert.equal(await claimed(), 1);
  });

  test('gauges tell what the rows say', async () => {
    const handler = `metrics-open-${Date.now()}`;
    await tenant.run([step('a', handler)]);
    await eventually(async () => {
      const { value } = await scrape(api.root);
      assert.ok(value('engine_open_tasks') >= 1);
      assert.ok(value('engine_dead_letters') >= 1);
      assert.deepEqual([value('engine_ready'), value('engine_database_up')], [1, 1]);
      assert.ok(value('process_resident_memory_bytes') > 0);
      assert.ok(value('engine_writer_flush_seconds_count') > 0);
    });
  });

  test('work that a crash cut off is counted as recovered, and is in flight until it ends', async (t) => {
    const { origin, server } = await listen(t, () => undefined);
    const asked = once(server, 'request');
    await tenant.run([step('a', 'http_request', { params: { url: origin } })]);
    await asked;
    await eventually(async () => {
      const { value } = await scrape(api.root);
      assert.deepEqual([value('engine_active_tasks'), value('engine_instances_in_flight')], [1, 1]);
    });
    const again = once(server, 'request');
    await api.restart('SIGKILL');
    await again;
    const { value } = await scrape(api.root);
    assert.equal(value('engine_recovery_stale_instances_total'), 1);
    assert.equal(value('engine_instances_completed_total'), 0);
  });
});

describe('an engine that does not serve', () => {
  test('answers without a database, once it is away and before it was ever there', async () => {
    const database = await createTestDatabase();
    const { proxy, url: databaseUrl } = await FaultProxy.before(database.connectionString);
    const states = async (engine: Engine) => {
      const { value } = await scrapeEngine(engine);
      return [value('engine_ready'), value('engine_database_up')];
    };
    const engine = await startEngine({ databaseUrl });
    let late: Engine | undefined;
    try {
      assert.deepEqual(await states(engine), [1, 1]);
      proxy.refuse();
      await eventually(async () => assert.deepEqual(await states(engine), [0, 0]));
      await assertNeedsKey(engine);
      late = await startEngine({ databaseUrl, waitFor: 'listening' });
      assert.deepEqual(await states(late), [0, 0]);
      await assertNeedsKey(late);
      proxy.resume();
      await eventually(async () => assert.deepEqual(await states(engine), [1, 1]));
    } finally {
      await late?.kill();
      await engine.kill();
      await proxy.stop();
      await database.drop();
    }
  });
});
