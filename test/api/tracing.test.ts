/** Traces, probes, unknown routes, request ids, HEAD and CORS of the real server. */

import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe } from 'node:test';
import { ROUTES } from '../../schema/routes.js';
import { MIGRATIONS_DIR, readMigrations } from '../../src/db/migrate.js';
import type { Json, Tenant } from '../helpers/api.js';
import { eventually, newHandler, step, testsOf, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { listen } from '../helpers/http-handler.js';
import { noThings, requestTo } from '../helpers/route-requests.js';

const api = useSharedApi();
const test = testsOf(api);

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
  test('the trace of the request is stored, and given to the worker with the task', async (tenant) => {
    const [handler, trace] = [newHandler(), newTrace()];
    const id = await createTraced(tenant, [step('a', handler)], trace);
    assert.equal(await storedTrace(id), trace);
    assert.equal((await tenant.instance(id)).traceparent, trace);
    const [listed] = await tenant.tasks(handler);
    assert.equal(listed?.traceparent, trace);
    assert.equal((await tenant.task(handler)).traceparent, trace);
  });

  test('an instance with an idempotency key keeps the trace of its first creation', async (tenant) => {
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

  test('the items of a batch belong to the trace of its request', async (tenant) => {
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

  test('a fork belongs to the trace of the request that forks', async (tenant) => {
    const [handler, trace] = [newHandler(), newTrace()];
    const id = await createTraced(tenant, [step('a', handler)], newTrace());
    const body = { from_block_id: 'a', dry_run: false };
    const fork = await post(tenant, `/instances/${id}/fork`, body, trace);
    assert.equal(await storedTrace(String(fork.id)), trace);
  });
});

describe('signals', () => {
  test('a signal keeps its trace, and the work that follows it belongs to it', async (tenant) => {
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
    const seen = rows.map((row) => row.traceparent);
    assert.deepEqual(seen, [signalled, null]);
    assert.equal(await storedTrace(id), signalled);
  });

  test('a signal that is refused changes no trace', async (tenant) => {
    const [handler, born] = [newHandler(), newTrace()];
    const id = await createTraced(tenant, [step('a', handler)], born);
    const body = { signal_type: 'update_context', payload: { text: 'x'.repeat(300_000) } };
    const headers = { traceparent: newTrace() };
    expectStatus(await tenant.request('POST', `/instances/${id}/signals`, { body, headers }), 413);
    assert.equal((await tenant.task(handler)).traceparent, born);
  });

  test('an action on many and a resumption are followed too', async (tenant) => {
    const [handler, acted, resumed] = [newHandler(), newTrace(), newTrace()];
    const id = await createTraced(tenant, [step('a', handler)], newTrace());
    await post(tenant, '/instances/batch-action', { action: 'cancel', filter: {} }, acted);
    await tenant.until(id, 'cancelled');
    assert.equal(await storedTrace(id), acted);
    await post(tenant, `/instances/${id}/resume-from/a`, {}, resumed);
    assert.equal((await tenant.task(handler)).traceparent, resumed);
  });
});

test('http_request sends the trace of its instance, unless the step names one itself', async (_, t) => {
  const arrived = new Map<string, unknown>();
  const { origin } = await listen(t, ({ url = '', headers }, response) => {
    arrived.set(url, headers.traceparent);
    response.end('{}');
  });
  const tenant = api.tenant();
  const [trace, own] = [newTrace(), newTrace()];
  const call = (id: string, headers: Json) =>
    step(id, 'http_request', { params: { url: `${origin}/${id}`, headers } });
  const blocks = [call('a', {}), call('b', { Traceparent: own })];
  await tenant.until(await createTraced(tenant, blocks, trace), 'completed');
  await tenant.runUntil('completed', [call('c', {})]);
  assert.deepEqual(
    [...arrived],
    [
      ['/a', trace],
      ['/b', own],
      ['/c', undefined],
    ],
  );
});

// ---------------------------------------------------------------- health and errors

const tenant = api.tenant();

test('/health/live and /health/ready return 200', async () => {
  for (const prefix of ['', '/api/v1']) {
    const anyone = api.root.with({ prefix, apiKey: null, tenant: null });
    for (const path of ['/health/live', '/health/ready']) {
      const { status, body, headers } = await anyone.get(path);
      assert.deepEqual([status, body], [200, { status: 'ok' }], prefix + path);
      assert.equal(headers.deprecation, undefined);
    }
  }
});

test('GET /info tells the version of the package, without key and tenant', async () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  const reply = await api.root
    .with({ apiKey: null, tenant: null })
    .get<{ version: string; storage_schema_version: number }>('/info');
  assert.equal(reply.status, 200);
  assert.equal(reply.body.version, version);
  const newest = readMigrations(MIGRATIONS_DIR).at(-1);
  assert.equal(reply.body.storage_schema_version, newest?.version);
});

describe('routes', () => {
  test('an unknown route is 404, and a wrong method is 405 and names the right ones', async () => {
    const unknown = await tenant.get<{ error: string }>('/nothing/here');
    assert.equal(unknown.status, 404);
    assert.match(unknown.body.error, /^not found: /);
    const { status, headers } = await tenant.put('/instances', {});
    assert.equal(status, 405);
    assert.deepEqual(String(headers.allow).split(', ').sort(), ['GET', 'HEAD', 'POST']);
    const head = await tenant.request('HEAD', '/instances');
    assert.deepEqual([head.status, head.text], [200, '']);
  });

  test('an id that is no UUID is 400 and says so, in every route with an id', async () => {
    const things = { ...noThings(tenant.name), sequence: 'x', instance: 'x', task: 'x' };
    const routes = Object.values(ROUTES).filter(({ path }) =>
      /^\/(sequences|instances|workers\/tasks)\/\{id\}/.test(path),
    );
    assert.ok(routes.length >= 17, `only ${routes.length} routes`);
    for (const route of routes) {
      const { method, path, body } = requestTo(route, things, tenant.name, tenant.name);
      const reply = await tenant.request<{ error: string }>(method, path, { body });
      assert.equal(reply.status, 400, `${method} ${path}`);
      assert.match(reply.body.error, /id must be a UUID/, `${method} ${path}`);
    }
  });

  test('a bare path is the same route and says that it is deprecated', async () => {
    const bare = tenant.with({ prefix: '' });
    for (const [path, status] of [
      ['/instances?limit=1', 200],
      [`/instances/${randomUUID()}`, 404],
    ] as const) {
      const reply = await bare.get(path);
      assert.equal(reply.status, status);
      assert.equal(reply.headers.deprecation, '@1767225600');
      assert.equal(reply.headers.sunset, 'Sat, 01 Jan 2028 00:00:00 GMT');
      assert.ok(
        String(reply.headers.link).includes(`</api/v1${path}>; rel="successor-version"`),
        String(reply.headers.link),
      );
    }
    const refused = await bare.with({ apiKey: null, prefix: '' }).get('/instances');
    assert.deepEqual([refused.status, refused.headers.deprecation], [401, '@1767225600']);
    const prefixed = await tenant.get('/instances');
    for (const name of ['deprecation', 'sunset', 'link']) {
      assert.equal(prefixed.headers[name], undefined);
    }
  });
});

test('a body that is no JSON object in UTF-8 is 400', async () => {
  const bytes = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]);
  for (const raw of ['', '{', '{"a":1}x', '\ufeff{}', 'null', '[]', bytes]) {
    const reply = await tenant.request('POST', '/instances', { raw });
    assert.equal(reply.status, 400, JSON.stringify(raw));
  }
});

test('CORS: a listed origin is answered, another one is not', async () => {
  const allowed = async (origin: string) => {
    const reply = await tenant.request('GET', '/instances', { headers: { origin } });
    return reply.headers['access-control-allow-origin'];
  };
  assert.equal(await allowed('https://console.example'), 'https://console.example');
  assert.equal(await allowed('https://evil.example'), undefined);
});
