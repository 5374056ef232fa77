/**
 * What operators see of a server from outside, on one that logs at level `debug` and writes spans: metrics, the
 * log, which has nothing in it that is a caller's or a secret, and traces.
 *
 * Cost: 20 s, since it reads the log and the metrics of a server of its own.
 */

import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { SpanKind } from '@opentelemetry/api';
import type { KeyMinted } from '../../schema/api-key.js';
import { type Exposition, parseExposition } from '../../scripts/reference/exposition.js';
import { eventually, newHandler, step, useApi } from '../helpers/api.js';
import { type Client, expectStatus } from '../helpers/client.js';
import { listen } from '../helpers/http-handler.js';
import { portOf } from '../helpers/loopback.js';
import type { WrittenSpan } from '../helpers/otel-preload.js';

const CANARY = 'canary-6f1d2c';
const canary = (what: string) => `${CANARY}-${what}`;
const KEY = canary('root-key');
const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

const folder = mkdtempSync(path.join(tmpdir(), 'engine-spans-'));
const file = path.join(folder, 'spans.jsonl');
/** By path, the header `traceparent` of the requests that arrived. */
const arrived = new Map<string, string>();
/** What steps and webhooks call; it refuses webhooks, so that none is ever sent. */
const called = createServer(({ url = '', headers }, response) => {
  arrived.set(url, String(headers.traceparent));
  const status = url.startsWith('/refuses') ? 500 : 200;
  response.writeHead(status, { 'x-own': canary('answer-header') }).end(canary('answer'));
});
let target: string;

const api = useApi(async () => {
  writeFileSync(file, '');
  target = `http://127.0.0.1:${await portOf(called)}`;
  const webhooks = `${target}/refuses/${canary('path')}?token=${canary('query')}`;
  return {
    apiKey: KEY,
    env: {
      ENGINE_LOG_LEVEL: 'debug',
      ENGINE_SHARDS: '2',
      ENGINE_ALLOW_INTERNAL_URLS: 'true',
      ENGINE_WEBHOOK_URLS: webhooks,
      ENGINE_WEBHOOK_SECRET: canary('webhook-secret'),
      NODE_OPTIONS: `--import=${new URL('../helpers/otel-preload.js', import.meta.url).href}`,
      SPANS_FILE: file,
    },
  };
});
const tenant = api.tenant();

/** Behind the end of the server. */
after(() => {
  called.close();
  called.closeAllConnections();
  rmSync(folder, { recursive: true });
  assertNoLeak();
});

const newTrace = () => `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01`;

const leaksOf = (text: string) => text.split('\n').filter((line) => line.includes(CANARY));

/** After each part, since only the last lines are kept. */
function assertNoLeak(): void {
  assert.deepEqual(leaksOf(api.engine.output()), []);
}

// ---------------------------------------------------------------- metrics

async function scrape(client: Client): Promise<Exposition> {
  const reply = await client.get('/metrics');
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.headers['content-type'], CONTENT_TYPE);
  return parseExposition(reply.text);
}

describe('GET /metrics', () => {
  test('/metrics is Prometheus text with counters of claimed and completed instances and executed steps', async () => {
    const before = await scrape(api.root);
    const names = ['instances_claimed', 'instances_completed', 'steps_executed'];
    const values = ({ value }: Exposition) => names.map((name) => value(`engine_${name}_total`));
    assert.deepEqual(values(before), [0, 0, 0]);
    const sequence = await tenant.sequence([step('a', 'noop'), step('b', 'noop')]);
    for (let i = 0; i < 3; i++) await tenant.create(sequence);
    // What its caller was told of is counted.
    assert.deepEqual(values(await scrape(api.root)), [3, 3, 6]);
  });

  test('it answers at both places with a key and no tenant, and refuses without a key', async () => {
    for (const prefix of ['', '/api/v1']) {
      const root = api.root.with({ prefix, tenant: null });
      const reply = await root.get('/metrics');
      assert.equal(reply.status, 200, prefix);
      assert.equal(reply.headers['content-type'], CONTENT_TYPE);
      assert.equal(reply.headers.deprecation, undefined);
      assert.equal((await root.with({ apiKey: null }).get('/metrics')).status, 401);
      assert.equal((await root.with({ apiKey: 'wrong' }).get('/metrics')).status, 401);
    }
  });

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
    const expected = {
      // When it started, and when its back-off was over.
      engine_instances_claimed_total: 2,
      engine_steps_executed_total: 2,
      engine_steps_failed_total: 2,
      engine_steps_retried_total: 1,
      engine_signals_delivered_total: 1,
      engine_instances_completed_total: 0,
      engine_instances_failed_total: 1,
      engine_step_duration_seconds_count: 2,
      engine_webhooks_sent_total: 0,
    };
    const more = Object.keys(expected).map((name) => [name, now.value(name) - before.value(name)]);
    assert.deepEqual(Object.fromEntries(more), expected);
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

  test('gauges tell what the rows say', async () => {
    await tenant.run([step('a', `metrics-open-${Date.now()}`)]);
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

// ---------------------------------------------------------------- the log

describe('the log at debug level', () => {
  test('the search would find a canary', () => {
    assert.equal(leaksOf(`${api.engine.output()}\n{"msg":"m","key":"${KEY}"}`).length, 1);
  });

  test('logs no key, neither the right one nor a wrong one, nor that of a tenant, live or revoked', async () => {
    for (const wrong of [canary('wrong-key'), `${KEY}x`]) {
      expectStatus(await tenant.with({ apiKey: wrong }).get('/instances'), 401);
      const headers = { authorization: `Bearer ${wrong}` };
      const request = tenant.with({ apiKey: null }).request('GET', '/instances', { headers });
      expectStatus(await request, 401);
    }
    await eventually(() => {
      const lines = api.engine.logs().filter(({ msg }) => msg === 'key refused');
      assert.ok(lines.length > 0);
      assert.ok(lines.every(({ requestId, route }) => requestId && route === 'instances.list'));
    });
    const body = { tenant_id: tenant.name, name: canary('key-name'), capabilities: ['operator'] };
    const reply = await api.root.post<{ id: string; secret: string }>('/api-keys', body);
    const { id, secret } = expectStatus(reply, 201);
    expectStatus(await tenant.with({ apiKey: secret }).get('/instances'), 200);
    expectStatus(await api.root.delete(`/api-keys/${id}`), 204);
    expectStatus(await tenant.with({ apiKey: secret }).get('/instances'), 401);
    assert.ok(!api.engine.output().includes(secret));
    assertNoLeak();
  });

  test('logs nothing of contexts, parameters, outputs, signals, metadata and errors', async () => {
    const [worked, failing] = [newHandler(), newHandler()];
    const blocks = [
      step('t', 'transform', { params: { value: canary('param'), data: '{{ data.secret }}' } }),
      step('l', 'log', { params: { message: canary('message'), level: 'warn' } }),
      step('m', 'log', { params: { message: '{{ data.secret }}' } }),
      step('w', worked, { params: { note: canary('task-param') } }),
      step('x', failing),
    ];
    const id = await tenant.run(blocks, {
      context: { data: { secret: canary('data') }, config: { secret: canary('config') } },
      metadata: { note: canary('metadata') },
      idempotency_key: canary('idempotency-key'),
    });
    await tenant.signal(id, 'custom:hello', { text: canary('signal') });
    await tenant.signal(id, 'update_context', { more: canary('update') });
    const task = await tenant.task(worked);
    const logs = [{ message: canary('worker-log'), level: 'error' }];
    await tenant.call('heartbeat', task, { checkpoint_seq: 0, checkpoint: { at: canary('beat') } });
    await tenant.call('complete', task, { output: { out: canary('output') }, logs });
    await tenant.fail(await tenant.task(failing), canary('worker-error'));
    await tenant.until(id, 'failed');
    const fail = [
      step('f', 'fail', { params: { message: canary('fail'), details: { d: CANARY } } }),
    ];
    await tenant.runUntil('failed', fail);
    const assertion = {
      condition: `data.x == "${canary('condition')}"`,
      message: canary('assert'),
    };
    await tenant.runUntil('failed', [step('a', 'assert', { params: assertion })]);
    assertNoLeak();
  });

  test('logs nothing of what http_request sends, where, and what it is answered', async () => {
    const place = `${new URL(target).host}/${canary('path')}?token=${canary('query')}`;
    const params = {
      url: `http://${place}`,
      method: 'POST',
      headers: { authorization: canary('header'), 'x-own': canary('own-header') },
      body: { text: canary('body') },
    };
    await tenant.runUntil('completed', [step('a', 'http_request', { params })]);
    for (const url of [
      `http://user:${canary('password')}@${place}`,
      `${target}/refuses?${canary('query')}`,
      `http://127.0.0.1:1/${canary('closed')}`,
      `http://${CANARY}.invalid/`,
      `gopher://${CANARY}`,
    ]) {
      await tenant.runUntil('failed', [step('a', 'http_request', { params: { ...params, url } })]);
    }
    assertNoLeak();
  });

  test('logs nothing of requests that are refused', async () => {
    const sequence = await tenant.sequence([step('a', 'noop')], {
      input_schema: { type: 'object', required: [canary('field')] },
    });
    const refused: [path: string, raw: string][] = [
      ['/instances', `{"broken": "${canary('broken')}`],
      ['/instances', JSON.stringify({ [canary('name')]: 1 })],
      [
        '/instances',
        JSON.stringify(tenant.creation(sequence, { context: { data: { a: CANARY } } })),
      ],
      ['/instances', JSON.stringify(tenant.creation(canary('no-uuid')))],
      [
        '/sequences',
        JSON.stringify(tenant.definition([step('a', 'noop', { type: canary('type') })])),
      ],
      [`/instances/${canary('id')}/signals`, '{"signal_type":"resume"}'],
      [`/no/${canary('such-route')}?key=${canary('query')}`, '{}'],
    ];
    for (const [path, raw] of refused) {
      const reply = await tenant.request('POST', path, { raw });
      assert.ok(reply.status >= 400 && reply.status < 500, `${path}: ${reply.status}`);
    }
    const headers = { 'x-tenant-id': canary('t').repeat(200) };
    expectStatus(await api.root.request('GET', '/instances', { headers }), 400);
    assertNoLeak();
  });

  test('has one line for each request, and for a failed instance one with its ids', async () => {
    const id = await tenant.runUntil('failed', [
      step('broken', 'fail', { params: { message: 'x' } }),
    ]);
    const headers = { 'x-request-id': `r-${randomUUID()}` };
    await tenant.request('GET', `/instances/${id}`, { headers });
    await eventually(() => {
      const lines = api.engine.logs();
      const told = lines.filter(({ requestId }) => requestId === headers['x-request-id']);
      assert.equal(told.length, 1);
      const { route, status, instanceId } = told[0] ?? {};
      assert.deepEqual([route, status, instanceId], ['instances.get', 200, id]);
      const [failure, ...more] = lines.filter(
        ({ msg, instanceId }) => msg === 'instance failed' && instanceId === id,
      );
      assert.ok(failure);
      assert.equal(more.length, 0);
      const { level, tenantId, blockId, cause } = failure;
      const seen = [level, tenantId, blockId, cause];
      assert.deepEqual(seen, [40, tenant.name, 'broken', 'step_failed']);
      assert.match(String(failure.sequenceId), /^[0-9a-f-]{36}$/);
      assert.match(String(failure.thread), /^shard-\d$/);
    });
  });
});

// ---------------------------------------------------------------- spans

describe('with an SDK of OpenTelemetry', () => {
  const spans = (): WrittenSpan[] =>
    readFileSync(file, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as WrittenSpan);
  const spanOf = (what: (span: WrittenSpan) => boolean): Promise<WrittenSpan> =>
    eventually(() => {
      const found = spans().find(what);
      assert.ok(found);
      return found;
    });
  const withId = (header: string | undefined) =>
    spanOf(({ traceId, spanId }) => header === `00-${traceId}-${spanId}-01`);

  test('a request is a span under its caller, and the work of the instance is under it', async () => {
    const [handler, caller] = [newHandler(), newTrace()];
    const name = `/${randomBytes(4).toString('hex')}`;
    const blocks = [
      step('a', 'http_request', { params: { url: `${target}${name}` } }),
      step('b', handler),
    ];
    const body = tenant.creation(await tenant.sequence(blocks));
    const headers = { traceparent: caller, tracestate: 'vendor=1' };
    const reply = await tenant.request('POST', '/instances', { body, headers });
    const { id } = expectStatus(reply, 201) as { id: string };
    const [, callerTrace, callerSpan] = caller.split('-');

    const { traceparent } = await tenant.task(handler);
    const request = await withId(traceparent);
    assert.equal(request.name, 'instances.create');
    assert.equal(request.kind, SpanKind.SERVER);
    assert.deepEqual([request.traceId, request.parentId], [callerTrace, callerSpan]);
    assert.equal(request.traceState, 'vendor=1');
    assert.deepEqual(request.attributes, {
      'http.request.method': 'POST',
      'http.route': '/instances',
      'http.response.status_code': 201,
    });

    const performed = await withId(
      await eventually(() => {
        const header = arrived.get(name);
        assert.ok(header);
        return header;
      }),
    );
    assert.equal(performed.name, 'step http_request');
    assert.deepEqual([performed.traceId, performed.parentId], [callerTrace, request.spanId]);
    assert.equal(performed.attributes['engine.instance.id'], id);
    assert.equal(performed.attributes['engine.step.outcome'], 'success');
    assert.notEqual(performed.threadId, request.threadId);
  });

  test('without a caller’s trace a request begins one, which the instance belongs to', async () => {
    const handler = newHandler();
    await tenant.run([step('a', handler)]);
    const request = await withId((await tenant.task(handler)).traceparent);
    assert.equal(request.parentId, undefined);
  });

  test('refusals are spans with their status, probes and unknown paths are none', async () => {
    const caller = newTrace();
    const headers = { traceparent: caller };
    const unknown = '/instances/0195ffff-0000-7000-8000-000000000001';
    expectStatus(await tenant.request('GET', unknown, { headers }), 404);
    const refused = await spanOf(({ traceId }) => caller.includes(traceId));
    assert.equal(refused.name, 'instances.get');
    assert.equal(refused.attributes['http.route'], '/instances/{id}');
    assert.equal(refused.attributes['http.response.status_code'], 404);
    await api.root.get('/health/ready');
    await tenant.get('/no-such-route');
    expectStatus(await tenant.get('/instances'), 200);
    await spanOf(({ name }) => name === 'instances.list');
    assert.doesNotMatch(readFileSync(file, 'utf8'), /"name":"health|no-such-route/);
  });
});
