/** The trace that an instance belongs to: taken from requests, stored, and given to what works for it. */

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { SpanKind } from '@opentelemetry/api';
import {
  type Api,
  eventually,
  type Json,
  newHandler,
  type SharedApi,
  sharedApi,
  startApi,
  step,
  type Tenant,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import type { WrittenSpan } from '../helpers/otel-preload.js';

let api: SharedApi;
let server: Server;
let base: string;
/** By path, the headers `traceparent` of the requests that arrived. */
const arrived = new Map<string, (string | undefined)[]>();

before(async () => {
  server = createServer((request, response) => {
    const { url = '', headers } = request;
    const value = headers.traceparent;
    arrived.set(url, [...(arrived.get(url) ?? []), Array.isArray(value) ? value.join() : value]);
    response.end('{}');
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  api = await sharedApi();
});
after(async () => {
  await api.stop();
  server.closeAllConnections();
  server.close();
});

const newTrace = () => `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01`;

async function post(tenant: Tenant, path: string, body: Json, traceparent: string): Promise<Json> {
  const reply = await tenant.request<Json>('POST', path, { body, headers: { traceparent } });
  assert.ok(reply.status < 300, reply.text);
  return reply.body;
}

async function createTraced(
  tenant: Tenant,
  blocks: readonly Json[],
  traceparent: string,
  more: Json = {},
): Promise<string> {
  const body = tenant.creation(await tenant.sequence(blocks), more);
  return String((await post(tenant, '/instances', body, traceparent)).id);
}

async function storedTrace(id: string): Promise<unknown> {
  const { rows } = await api.sql.query('select traceparent from instances where id = $1', [id]);
  return rows[0]?.traceparent;
}

describe('creation', () => {
  test('the trace of the request is stored, and given to the worker with the task', async () => {
    const tenant = api.tenant();
    const [handler, trace] = [newHandler(), newTrace()];
    const id = await createTraced(tenant, [step('a', handler)], trace);
    assert.equal(await storedTrace(id), trace);
    const [listed] = await tenant.tasks(handler);
    assert.equal(listed?.traceparent, trace);
    const task = await tenant.task(handler);
    assert.equal(task.traceparent, trace);
  });

  test('an instance with an idempotency key keeps the trace of its first creation', async () => {
    const tenant = api.tenant();
    const sequence = await tenant.sequence([step('a', newHandler())]);
    // Enough keys for both shards: a keyed creation is handed on to the shard of its key.
    for (const key of ['k1', 'k2', 'k3', 'k4', 'k5', 'k6']) {
      const body = tenant.creation(sequence, { idempotency_key: key });
      const trace = newTrace();
      const { id } = await post(tenant, '/instances', body, trace);
      await post(tenant, '/instances', body, newTrace());
      assert.equal(await storedTrace(String(id)), trace);
    }
  });

  test('the items of a batch belong to the trace of its request', async () => {
    const tenant = api.tenant();
    const [handler, trace] = [newHandler(), newTrace()];
    const item = tenant.creation(await tenant.sequence([step('a', handler)]));
    await post(tenant, '/instances/batch', { instances: [item, item, item] }, trace);
    const traces = await eventually(async () => {
      const tasks = await tenant.tasks(handler);
      assert.equal(tasks.length, 3);
      return tasks.map((task) => task.traceparent);
    });
    assert.deepEqual(traces, [trace, trace, trace]);
  });

  test('a fork belongs to the trace of the request that forks', async () => {
    const tenant = api.tenant();
    const [handler, trace] = [newHandler(), newTrace()];
    const id = await createTraced(tenant, [step('a', handler)], newTrace());
    const body = { from_block_id: 'a', dry_run: false };
    const fork = await post(tenant, `/instances/${id}/fork`, body, trace);
    assert.equal(await storedTrace(String(fork.id)), trace);
  });

  test('without a header, or with a malformed one, there is no trace and no error', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    for (const header of [undefined, 'garbage', `${newTrace()}-more`, newTrace().toUpperCase()]) {
      const blocks = [step('a', handler)];
      const id =
        header === undefined
          ? await tenant.run(blocks)
          : await createTraced(tenant, blocks, header);
      assert.equal(await storedTrace(id), null);
      const task = await tenant.task(handler);
      assert.ok(!('traceparent' in task));
    }
  });
});

describe('signals', () => {
  test('a signal keeps its trace, and the work that follows it belongs to it', async () => {
    const tenant = api.tenant();
    const [first, second] = [newHandler(), newHandler()];
    const [born, signalled] = [newTrace(), newTrace()];
    const id = await createTraced(tenant, [step('a', first), step('b', second)], born);
    const task = await tenant.task(first);
    assert.equal(task.traceparent, born);
    await post(tenant, `/instances/${id}/signals`, { signal_type: 'custom:go' }, signalled);
    await tenant.signal(id, 'custom:untraced');
    await tenant.complete(task);
    assert.equal((await tenant.task(second)).traceparent, signalled);
    const { rows } = await api.sql.query(
      'select traceparent from signals where instance_id = $1 order by seq',
      [id],
    );
    assert.deepEqual(
      rows.map((row) => row.traceparent),
      [signalled, null],
    );
    assert.equal(await storedTrace(id), signalled);
  });

  test('a signal that is refused changes no trace', async () => {
    const tenant = api.tenant();
    const [handler, born] = [newHandler(), newTrace()];
    const id = await createTraced(tenant, [step('a', handler)], born);
    const body = { signal_type: 'update_context', payload: { text: 'x'.repeat(300_000) } };
    const headers = { traceparent: newTrace() };
    const path = `/instances/${id}/signals`;
    expectStatus(await tenant.request('POST', path, { body, headers }), 413);
    assert.equal((await tenant.task(handler)).traceparent, born);
  });

  test('an action on many and a resumption are followed too', async () => {
    const tenant = api.tenant();
    const [handler, acted, resumed] = [newHandler(), newTrace(), newTrace()];
    const id = await createTraced(tenant, [step('a', handler)], newTrace());
    const action = { action: 'cancel', filter: {} };
    await post(tenant, '/instances/batch-action', action, acted);
    await tenant.until(id, 'cancelled');
    assert.equal(await storedTrace(id), acted);
    await post(tenant, `/instances/${id}/resume-from/a`, {}, resumed);
    assert.equal((await tenant.task(handler)).traceparent, resumed);
  });
});

describe('http_request', () => {
  test('sends the trace of its instance, unless the step names one itself', async () => {
    const tenant = api.tenant();
    const [trace, own] = [newTrace(), newTrace()];
    const name = `/${randomBytes(4).toString('hex')}`;
    const call = (id: string, headers: Json) =>
      step(id, 'http_request', { params: { url: `${base}${name}-${id}`, headers } });
    const blocks = [call('a', {}), call('b', { Traceparent: own })];
    await tenant.until(await createTraced(tenant, blocks, trace), 'completed');
    assert.deepEqual(arrived.get(`${name}-a`), [trace]);
    assert.deepEqual(arrived.get(`${name}-b`), [own]);
    const untraced = await tenant.run([call('c', {})]);
    await tenant.until(untraced, 'completed');
    assert.deepEqual(arrived.get(`${name}-c`), [undefined]);
  });
});

describe('with an SDK', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'engine-spans-'));
  const file = path.join(folder, 'spans.jsonl');
  const preload = new URL('../helpers/otel-preload.js', import.meta.url).href;
  let traced: Api;

  before(async () => {
    writeFileSync(file, '');
    traced = await startApi({
      env: {
        ENGINE_SHARDS: '2',
        ENGINE_ALLOW_INTERNAL_URLS: 'true',
        NODE_OPTIONS: `--import=${preload}`,
        SPANS_FILE: file,
      },
    });
  });
  after(async () => {
    await traced.stop();
    rmSync(folder, { recursive: true });
  });

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
    const tenant = traced.tenant();
    const [handler, caller] = [newHandler(), newTrace()];
    const name = `/${randomBytes(4).toString('hex')}`;
    const blocks = [
      step('a', 'http_request', { params: { url: `${base}${name}` } }),
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

    const [sent] = await eventually(() => {
      const headers = arrived.get(name);
      assert.ok(headers);
      return headers;
    });
    const performed = await withId(sent);
    assert.equal(performed.name, 'step http_request');
    assert.deepEqual([performed.traceId, performed.parentId], [callerTrace, request.spanId]);
    assert.equal(performed.attributes['engine.instance.id'], id);
    assert.equal(performed.attributes['engine.step.outcome'], 'success');
    assert.notEqual(performed.threadId, request.threadId);
  });

  test('without a caller’s trace a request begins one, which the instance belongs to', async () => {
    const tenant = traced.tenant();
    const handler = newHandler();
    await tenant.run([step('a', handler)]);
    const request = await withId((await tenant.task(handler)).traceparent);
    assert.equal(request.parentId, undefined);
  });

  test('refusals are spans with their status, probes and unknown paths are none', async () => {
    const tenant = traced.tenant();
    const caller = newTrace();
    const headers = { traceparent: caller };
    const unknown = '/instances/0195ffff-0000-7000-8000-000000000001';
    expectStatus(await tenant.request('GET', unknown, { headers }), 404);
    const refused = await spanOf(({ traceId }) => caller.includes(traceId));
    assert.equal(refused.name, 'instances.get');
    assert.equal(refused.attributes['http.route'], '/instances/{id}');
    assert.equal(refused.attributes['http.response.status_code'], 404);
    await traced.root.get('/health/ready');
    await tenant.get('/no-such-route');
    expectStatus(await tenant.get('/instances'), 200);
    await spanOf(({ name }) => name === 'instances.list');
    const names = new Set(spans().map(({ name }) => name));
    assert.ok(![...names].some((name) => name.startsWith('health')));
    assert.ok(!readFileSync(file, 'utf8').includes('no-such-route'));
  });
});
