/** The root key and the tenant, `--insecure-auth`, optional tenant headers, and credentials. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import type { KeyMinted } from '../../schema/api-key.js';
import type { Credential } from '../../schema/credential.js';
import type { TaskInstance } from '../../schema/instance.js';
import type { RateLimit } from '../../schema/rate.js';
import type { Release } from '../../schema/release.js';
import type { TasksExchanged, WorkerTask } from '../../schema/worker.js';
import type { Json, SharedApi, Tenant } from '../helpers/api.js';
import { newHandler, step, useSharedApi } from '../helpers/api.js';
import { type Client, expectStatus } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';
import { listen } from '../helpers/http-handler.js';
import { Client as RawClient } from '../helpers/raw-client.js';

const api = useSharedApi();
const mine = api.tenant();

test('a batch needs no tenant header: each of its items names its tenant', async () => {
  const client = api.root.with({ apiKey: DEFAULT_API_KEY, tenant: null });
  const empty = await client.post('/instances/batch', { instances: [] });
  assert.deepEqual([empty.status, empty.body], [201, { count: 0, created: 0 }]);
  const items = [];
  for (const tenant of [api.tenant(), api.tenant()]) {
    items.push(tenant.creation(await tenant.sequence([step('a', 'noop')])));
  }
  const both = await client.post('/instances/batch', { instances: items });
  assert.deepEqual([both.status, both.body], [201, { count: 2, created: 2 }]);
  const crossed = { ...items[0], tenant_id: items[1]?.tenant_id };
  assert.equal((await client.post('/instances/batch', { instances: [crossed] })).status, 404);
  const blank = { ...items[0], tenant_id: '' };
  assert.equal((await client.post('/instances/batch', { instances: [blank] })).status, 400);
});

test('a blank tenant_id of a sequence is filled from the header', async () => {
  const id = await mine.sequence([step('a', 'noop')], { tenant_id: '' });
  const stored = await mine.get<{ tenant_id: string }>(`/sequences/${id}`);
  assert.equal(stored.body.tenant_id, mine.name);
});

// ---------------------------------------------------------------- insecure auth

const guarded = useSharedApi('quick');
const open = useSharedApi('open');

/** The output of a request, or the `__error__` row of one that failed. */
async function ask(api: SharedApi, state: string, params: Json, more: Json = {}) {
  const tenant = api.tenant();
  const id = await tenant.runUntil(state, [step('a', 'http_request', { params, ...more })]);
  const { a: row } = await tenant.outputsOf(id);
  return { row, isDead: (await tenant.deadLetters()).includes(id) };
}

describe('`http_request`: 2xx and 3xx succeed with `{status, headers, body, json}`; 408, 425, 429, 5xx and transport errors are retryable, other 4xx permanent, with status and body in the details; objects are sent as JSON; private addresses need `ENGINE_ALLOW_INTERNAL_URLS`, which is true only under `--insecure-auth`', () => {
  test('http_request to 127.0.0.1, 10/8, 192.168/16, 169.254.169.254 fails permanently and lands in the DLQ', async (t) => {
    const { port, connects } = await listen(t, (_, response) => response.end());
    const hosts = ['127.0.0.1', 'localhost', '[::1]', '[::ffff:127.0.0.1]', '2130706433', '0x7f.1'];
    const others = ['10.0.0.1', '10.255.1.2', '192.168.7.7', '169.254.169.254'];
    // A retryable failure would leave the instance scheduled.
    const retry = { max_attempts: 5, initial_backoff: 60_000 };
    for (const host of [...hosts, ...others]) {
      const { row, isDead } = await ask(
        guarded,
        'failed',
        { url: `http://${host}:${port}/` },
        { retry },
      );
      assert.deepEqual([row?.retryable, isDead], [false, true], host);
    }
    assert.equal(connects(), 0);
  });

  test('2xx and 3xx succeed, 4xx fail permanently, 408, 425, 429, 5xx and transport errors retryably', async (t) => {
    const { origin } = await listen(t, ({ url = '' }, response) => {
      if (url === '/cut') response.destroy();
      else response.writeHead(Number(url.slice(1))).end('said');
    });
    for (const status of [200, 201, 204, 299, 300, 301, 304, 399]) {
      const { row } = await ask(open, 'completed', { url: `${origin}/${status}` });
      const body = status === 204 || status === 304 ? '' : 'said';
      assert.deepEqual([row?.status, row?.body], [status, body]);
    }
    for (const status of [400, 404, 408, 425, 429, 499, 500, 503, 599]) {
      const { row } = await ask(open, 'failed', { url: `${origin}/${status}` });
      const details = row?.details as Json;
      assert.deepEqual([details.status, details.body], [status, 'said']);
      assert.equal(row?.retryable, ![400, 404, 499].includes(status), String(status));
    }
    for (const url of [`${origin}/cut`, 'http://127.0.0.1:1/']) {
      assert.equal((await ask(open, 'failed', { url })).row?.retryable, true, url);
    }
  });
});

describe('under --insecure-auth', () => {
  test('no key is looked at, not even a revoked one, and everybody may make keys', async () => {
    const tenant = open.tenant();
    const body = { tenant_id: tenant.name, capabilities: ['worker'] };
    const key = expectStatus(await open.root.post<KeyMinted>('/api-keys', body), 201);
    expectStatus(await open.root.delete(`/api-keys/${key.id}`), 204);
    for (const apiKey of [null, 'nonsense', key.secret]) {
      const client = open.root.with({ apiKey, tenant: 'another' });
      assert.equal((await client.get('/instances')).status, 200);
      assert.equal((await client.get(`/api-keys?tenant_id=${tenant.name}`)).status, 200);
      assert.equal((await client.with({ tenant: null }).get('/instances')).status, 400);
    }
    const headers = { authorization: 'Bearer nonsense' };
    assert.equal((await tenant.request('GET', '/instances', { headers })).status, 200);
  });

  const declared = { 'content-type': 'application/json' };
  // `unit/http-requests` has what else a browser may send.
  for (const [title, headers, status] of [
    ['a foreign page is refused', { origin: 'https://evil.example', ...declared }, 403],
    ['a page of this machine is served', { origin: 'http://localhost:5173', ...declared }, 201],
  ] as const) {
    test(`of what a page makes the browser of the developer send, ${title}: ${status}`, async () => {
      const tenant = open.tenant();
      const definition = JSON.stringify(tenant.definition([step('a', 'noop')]));
      const reply = await send(tenant.name, headers, definition);
      assert.equal(reply.status, status);
      if (status === 201) return;
      assert.equal(typeof JSON.parse(reply.body).error, 'string');
      assert.equal(reply.headers['access-control-allow-origin'], undefined);
      assert.deepEqual(expectStatus(await tenant.get('/sequences'), 200), []);
    });
  }
});

/** A browser sets headers that no client library lets one set. */
async function send(tenant: string, headers: Record<string, string>, body: string) {
  const { host, port } = new URL(open.url);
  const client = await RawClient.open(Number(port));
  const lines = Object.entries({ host, ...headers, 'x-tenant-id': tenant });
  client.send(
    [
      'POST /api/v1/sequences HTTP/1.1',
      ...lines.map(([name, value]) => `${name}: ${value}`),
      `content-length: ${Buffer.byteLength(body)}`,
      '',
      body,
    ].join('\r\n'),
  );
  const reply = await client.reply();
  client.close();
  return reply;
}

// ---------------------------------------------------------------- optional tenant headers

const headerless = useSharedApi('quick');

const LIMIT = { max_count: 1, window_seconds: 60 };

/** An operator's, without a tenant header. */
async function keyOf(tenant: Tenant): Promise<Client> {
  const body = { tenant_id: tenant.name, capabilities: ['operator'] };
  const reply = await headerless.root.post<KeyMinted>('/api-keys', body);
  return headerless.root.with({ apiKey: expectStatus(reply, 201).secret });
}

test('with a key of a tenant it stays within its tenant, by id, in lists, polls and changes of many', async () => {
  const [mine, other] = [headerless.tenant(), headerless.tenant()];
  const [handler, theirs] = [newHandler(), newHandler()];
  const own = await mine.run([step('a', handler)]);
  const foreign = await other.run([step('a', theirs)]);
  const key = await keyOf(mine);
  assert.equal((await key.get(`/instances/${own}`)).status, 200);
  for (const path of ['', '/tree', '/outputs', '/audit', '/timeline', '/logs', '/checkpoints']) {
    assert.equal((await key.get(`/instances/${foreign}${path}`)).status, 404, path);
  }
  const list = await key.get<{ id: string }[]>(`/instances?tenant_id=${other.name}`);
  assert.deepEqual(column(list.body, 'id'), [own]);
  const poll = { handler_name: theirs, worker_id: 'w', limit: 10 };
  assert.deepEqual((await key.post('/workers/tasks/poll', poll)).body, []);
  const bulk = await key.patch('/instances/bulk/state', { filter: {}, state: 'cancelled' });
  assert.deepEqual(bulk.body, { count: 1, updated: 1 });
  assert.equal((await other.instance(foreign)).state, 'waiting');
  assert.equal((await key.put<Json>('/rate-limits/own', LIMIT)).body.tenant_id, mine.name);
});

test('An instance of another tenant is 404 with the tenant header; without it, where the header is optional, it is readable', async () => {
  const [mine, other] = [headerless.tenant(), headerless.tenant()];
  const id = await mine.run([step('a', newHandler())]);
  assert.equal((await other.get(`/instances/${id}`)).status, 404);
  assert.equal((await headerless.root.get(`/instances/${id}`)).status, 200);
});

describe('Poll order: without the tenant header, where it is optional, a poll serves all tenants, and ids are not scoped', () => {
  test('a poll serves all tenants, and a list shows all of them', async () => {
    const handler = newHandler();
    const namespace = `n-${randomUUID()}`;
    const ids: string[] = [];
    for (const tenant of [headerless.tenant(), headerless.tenant()]) {
      ids.push(await tenant.run([step('a', handler)], { namespace }));
    }
    const body = { handler_name: handler, worker_id: 'w1', limit: 5 };
    const tasks = await headerless.root.post<WorkerTask[]>('/workers/tasks/poll', body);
    assert.deepEqual(column(expectStatus(tasks, 200), 'instance_id'), ids);
    const list = await headerless.root.get<TaskInstance[]>(`/instances?namespace=${namespace}`);
    assert.deepEqual(column(expectStatus(list, 200), 'id').sort(), ids.sort());
  });

  test('reads and writes by id are unscoped', async () => {
    const tenant = headerless.tenant();
    const handler = newHandler();
    const id = await tenant.run([step('a', handler)]);
    const task = await tenant.task(handler);
    const path = `/instances/${id}`;
    assert.equal(expectStatus(await headerless.root.get<TaskInstance>(path), 200).id, id);
    const update = { signal_type: 'update_context', payload: { n: 1 } };
    expectStatus(await headerless.root.post(`${path}/signals`, update), 201);
    const done = { worker_id: 'w1', output: {} };
    expectStatus(await headerless.root.post(`/workers/tasks/${task.id}/complete`, done), 200);
    const { context } = await tenant.until(id, 'completed');
    assert.deepEqual(context.data, { n: 1 });
    // With a header it is a scope, as ever.
    assert.equal((await headerless.tenant().get(path)).status, 404);
  });
});

for (const [method, path, change] of [
  ['PATCH', 'bulk/state', { state: 'paused' }],
  ['PATCH', 'bulk/reschedule', { offset_secs: 60 }],
  ['POST', 'batch-action', { action: 'pause' }],
] as const) {
  test(`of ${path} the filter has to name one tenant`, async () => {
    const [tenant, other] = [headerless.tenant(), headerless.tenant()];
    const far = { next_fire_at: '2100-01-01T00:00:00Z' };
    await tenant.run([step('a', 'noop')], far);
    const theirs = await other.run([step('a', 'noop')], far);
    const before = await other.instance(theirs);
    const ask = (client: Client, filter: Json) =>
      client.request<Json & { error: string }>(method, `/instances/${path}`, {
        body: { filter, ...change },
      });
    const unnamed = await ask(headerless.root, {});
    assert.equal(unnamed.status, 400);
    assert.match(unnamed.body.error, /tenant_id/);
    assert.equal((await ask(tenant, { tenant_id: other.name })).status, 403);
    const { count, matched } = expectStatus(
      await ask(headerless.root, { tenant_id: tenant.name }),
      200,
    );
    assert.equal(count ?? matched, 1);
    assert.deepEqual(await other.instance(theirs), before);
  });
}

describe('rate limits', () => {
  test('of all tenants are listed', async () => {
    const names = [headerless.tenant(), headerless.tenant()].map(({ name }) => name).sort();
    for (const name of names) {
      for (const key of ['2', '1']) {
        expectStatus(await headerless.tenant(name).put(`/rate-limits/${key}`, LIMIT), 200);
      }
    }
    const all = expectStatus(await headerless.root.get<RateLimit[]>('/rate-limits'), 200);
    assert.deepEqual(
      columns(
        all.filter((limit) => names.includes(limit.tenant_id)),
        'tenant_id',
        'key',
      ),
      names.flatMap((name) => [
        [name, '1'],
        [name, '2'],
      ]),
    );
  });

  test('of no tenant can be neither set nor taken away: 400', async () => {
    for (const reply of [
      await headerless.root.put<{ error: string }>('/rate-limits/k', LIMIT),
      await headerless.root.delete<{ error: string }>('/rate-limits/k'),
    ]) {
      assert.match(expectStatus(reply, 400).error, /tenant/);
    }
  });
});

describe('releases', () => {
  const ofVersions = async (tenant: Tenant) => {
    const name = `s-${randomUUID()}`;
    const blocks = [step('a', 'noop')];
    return {
      baseline_sequence_id: await tenant.sequence(blocks, { name, version: 1 }),
      candidate_sequence_id: await tenant.sequence(blocks, { name, version: 2 }),
    };
  };
  const make = async (body: Json) =>
    expectStatus(await headerless.root.post<Release>('/releases', body), 201);
  const list = async (client: Client, query: string) =>
    expectStatus(await client.get<Release[]>(`/releases${query}`), 200).map(({ id }) => id);

  test('The list of releases is scoped by the tenant header, or else by tenant_id, newest first, with limit', async () => {
    const [mine, other] = [headerless.tenant(), headerless.tenant()];
    const ids: string[] = [];
    for (const tenant of [other, mine, mine]) {
      const release = await make({ tenant_id: tenant.name, ...(await ofVersions(tenant)) });
      assert.equal(release.tenant_id, tenant.name);
      for (const client of [tenant, headerless.root]) {
        assert.deepEqual((await client.get(`/releases/${release.id}`)).body, release);
      }
      ids.unshift(release.id);
    }
    const [newest, older, theirs] = ids;
    assert.deepEqual(await list(mine, `?tenant_id=${other.name}`), [newest, older]);
    assert.deepEqual(await list(mine, '?limit=1'), [newest]);
    const told = (await list(headerless.root, '?limit=1000')).filter((id) => ids.includes(id));
    assert.deepEqual(told, ids);
    assert.equal((await list(headerless.root, '?limit=2')).length, 2);
    assert.deepEqual(await list(headerless.root, `?tenant_id=${other.name}`), [theirs]);
    assert.deepEqual(await list(headerless.root, `?tenant_id=${mine.name}&limit=1`), [newest]);
  });

  test('of nobody named are those of the tenant default', async () => {
    const pair = await ofVersions(headerless.tenant('default'));
    for (const body of [pair, { ...pair, tenant_id: '' }, { ...pair, tenant_id: null }]) {
      assert.equal((await make(body)).tenant_id, 'default');
    }
    const foreign = await ofVersions(headerless.tenant());
    assert.equal((await headerless.root.post('/releases', foreign)).status, 404);
  });
});

// ---------------------------------------------------------------- credentials

const SECRET = 'sk_live_0123456789';

async function keep(tenant: Tenant, more: Json = {}): Promise<Credential> {
  const body = { id: 'stripe', value: SECRET, ...more };
  return expectStatus(await tenant.post<Credential>('/credentials', body), 201);
}

describe('a credential', () => {
  test('is made, read, listed, changed and deleted, and never shows its secrets', async () => {
    const tenant = api.tenant();
    const refresh = {
      kind: 'oauth2',
      refresh_url: 'https://auth.example/t',
      refresh_token: 'rt-77',
    };
    const made = await keep(tenant, { name: 'Stripe, live', ...refresh });
    assert.deepEqual(
      [made.id, made.tenant_id, made.name, made.kind, made.enabled, made.has_refresh_token],
      ['stripe', tenant.name, 'Stripe, live', 'oauth2', true, true],
    );
    const path = '/credentials/stripe';
    assert.deepEqual(expectStatus(await tenant.get(path), 200), made);
    const other = await keep(tenant, { id: undefined, name: 'mail' });
    assert.deepEqual([other.id, other.kind, other.has_refresh_token], ['mail', 'api_key', false]);
    const list = expectStatus(await tenant.get<Credential[]>('/credentials'), 200);
    assert.deepEqual(list, [made, other]);
    const ofKind = await tenant.get<Credential[]>('/credentials?kind=oauth2');
    assert.deepEqual(column(expectStatus(ofKind, 200), 'id'), ['stripe']);
    const change = { value: 'sk_live_next', enabled: false, description: 'rotated' };
    const changed = expectStatus(await tenant.patch<Credential>(path, change), 200);
    assert.deepEqual([changed.enabled, changed.description], [false, 'rotated']);
    for (const reply of [made, other, list, changed]) {
      assert.doesNotMatch(JSON.stringify(reply), /sk_live|rt-77|"value"|"refresh_token"/);
    }
    expectStatus(await tenant.delete(path), 204);
    expectStatus(await tenant.get(path), 404);
    expectStatus(await tenant.patch(path, {}), 404);
    expectStatus(await tenant.delete(path), 404);
  });

  test('is refused with the member that is wrong, and changes nothing', async () => {
    const tenant = api.tenant();
    await keep(tenant);
    const refreshed = { id: 'a', value: 'v', refresh_token: 't' };
    const cases: readonly (readonly [Json, number, RegExp])[] = [
      [{ id: 'stripe', value: 'v' }, 409, /credential stripe exists/],
      [{ value: 'v' }, 400, /id or name is required/],
      [{ name: 'with spaces', value: 'v' }, 400, /name must have letters.*or id must be sent/],
      [{ name: '..', value: 'v' }, 400, /name must not be \. or \.\..*or id must be sent/],
      [{ id: 'a b', value: 'v' }, 400, /id must have letters, digits, dots, _ and - only/],
      [{ id: 'a', value: '' }, 400, /value/],
      [{ id: 'a', value: 'v', kind: 'magic' }, 400, /kind/],
      [{ id: 'a', value: 'v', refresh_url: 'https://auth.example/t' }, 400, /refresh_token/],
      [{ ...refreshed, refresh_url: 'ftp://auth.example' }, 400, /refresh_url/],
      [{ id: 'a', value: 'é'.repeat(150_000) }, 413, /value is 300000 bytes/],
      [{ id: 'a', value: 'v', tenant_id: 'another' }, 403, /tenant_id/],
    ];
    for (const [body, status, message] of cases) {
      const reply = await tenant.post<{ error: string }>('/credentials', body);
      assert.equal(reply.status, status, JSON.stringify(body).slice(0, 100));
      assert.match(reply.body.error, message);
    }
    const list = expectStatus(await tenant.get<Credential[]>('/credentials'), 200);
    assert.deepEqual(column(list, 'id'), ['stripe']);
    assert.equal((await keep(api.tenant())).id, 'stripe', 'another tenant has ids of its own');
  });
});

/** A server outside that says back what it was sent. */
async function echo(t: TestContext): Promise<{ origin: string; seen: string[] }> {
  const seen: string[] = [];
  const { origin } = await listen(t, async (request: IncomingMessage, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    seen.push(`${request.headers.authorization} ${body}`);
    response.end(`you said ${seen.at(-1)}`);
  });
  return { origin, seen };
}

describe('a secret', () => {
  test('reaches the server outside, and neither output, list, audit nor tree', async (t) => {
    const tenant = api.tenant();
    const { origin, seen } = await echo(t);
    await keep(tenant);
    await keep(tenant, { id: 'login', value: '{"user": "ada", "password": "lovelace"}' });
    const params = {
      url: origin,
      method: 'POST',
      headers: { authorization: 'Bearer {{ secrets.stripe }}' },
      body: '{{ secrets.login.user }} {{ secrets.login.password | base64 }} {{ data.forged }}',
    };
    const data = { forged: '{{secrets.stripe}}' };
    const id = await tenant.runUntil('completed', [step('a', 'http_request', { params })], data);
    assert.deepEqual(seen, [`Bearer ${SECRET} ada bG92ZWxhY2U= {{secrets.stripe}}`]);
    const { a } = await tenant.outputsOf(id);
    assert.equal(a?.body, 'you said Bearer [REDACTED] ada [REDACTED] {{secrets.stripe}}');
    for (const path of ['', '/outputs', '/tree', '/audit', '/explain', '/effects']) {
      const reply = expectStatus(await tenant.get(`/instances/${id}${path}`), 200);
      assert.doesNotMatch(JSON.stringify(reply), /sk_live|lovelace|bG92/, path);
    }
  });

  test('has its new value with the next call, and fails the step while it is not there', async (t) => {
    const tenant = api.tenant();
    const { origin, seen } = await echo(t);
    const params = { url: origin, headers: { authorization: '{{ secrets.stripe }}' } };
    const id = await tenant.runUntil('failed', [step('a', 'http_request', { params })]);
    const { failure } = await tenant.instance(id);
    assert.match(`${failure?.code} ${failure?.message}`, /^secret_missing .*stripe does not exist/);
    await keep(tenant);
    expectStatus(await tenant.patch('/credentials/stripe', { value: 'the new one' }), 200);
    expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    await tenant.until(id, 'completed');
    assert.deepEqual(seen, ['the new one ']);
    for (const change of [
      { enabled: false },
      { enabled: true, expires_at: '2020-01-01T00:00:00Z' },
    ]) {
      expectStatus(await tenant.patch('/credentials/stripe', change), 200);
      await tenant.runUntil('failed', [step('a', 'http_request', { params })]);
    }
    assert.equal(seen.length, 1);
    const open = { expires_at: null, enabled: null };
    expectStatus(await tenant.patch('/credentials/stripe', open), 200);
    await tenant.runUntil('completed', [step('a', 'http_request', { params })]);
    assert.equal(seen.length, 2);
  });

  test('comes with the task to a worker whose key says so, and to no other', async () => {
    const tenant = api.tenant();
    await keep(tenant);
    const handler = newHandler();
    const params = { token: 'Bearer {{ secrets.stripe }}', n: 1 };
    const exchanged = { handlers: [handler], wait_ms: 5_000 };
    const [given, none] = [`Bearer ${SECRET}`, 'Bearer {{secrets.stripe}}'];
    for (const [capabilities, path, token] of [
      [['worker', 'secrets'], 'poll', given],
      [['worker', 'secrets'], 'exchange', given],
      [['worker'], 'poll', none],
      [['worker'], 'exchange', none],
    ] as const) {
      const id = await tenant.run([step('a', handler, { params })]);
      const asked = { tenant_id: tenant.name, capabilities };
      const { secret: apiKey } = expectStatus(
        await api.root.post<KeyMinted>('/api-keys', asked),
        201,
      );
      const worker = api.root.with({ apiKey, tenant: tenant.name });
      const { text } = await worker.post(`/workers/tasks/${path}`, {
        worker_id: 'w',
        ...(path === 'poll' ? { handler_name: handler, wait_ms: 5_000 } : { poll: exchanged }),
      });
      const answer = JSON.parse(text) as WorkerTask[] & TasksExchanged;
      const [task] = path === 'poll' ? answer : answer.tasks;
      assert.deepEqual(task?.params, { token, n: 1 });
      const done = { worker_id: 'w', claim_epoch: task?.claim_epoch, output: { ok: true } };
      const reply = await worker.post(`/workers/tasks/${task?.id}/complete`, done);
      assert.doesNotMatch(JSON.stringify(expectStatus(reply, 200)), /sk_live/);
      await tenant.until(id, 'completed');
    }
    const tasks = expectStatus(await tenant.get('/workers/tasks'), 200);
    assert.doesNotMatch(JSON.stringify(tasks), /sk_live/);
  });

  test('that is not there when a worker polls fails the step for good', async () => {
    const [tenant, handler] = [api.tenant(), newHandler()];
    const id = await tenant.run([
      step('a', handler, { params: { token: '{{ secrets.gone }}' }, retry: { max_attempts: 3 } }),
    ]);
    await tenant.until(id, 'waiting');
    assert.deepEqual(await tenant.poll(handler), []);
    assert.equal((await tenant.until(id, 'failed')).failure?.code, 'secret_missing');
  });

  test('is refused where only the engine would see it', async () => {
    const blocks = [step('a', 'transform', { params: { x: '{{ secrets.stripe }}' } })];
    const tenant = api.tenant();
    const reply = await tenant.post<{ error: string }>('/sequences', tenant.definition(blocks));
    assert.equal(reply.status, 400);
    assert.match(reply.body.error, /names a secret/);
  });
});
