/** Credentials over HTTP, and the secrets that steps are called with. */

import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import type { KeyMinted } from '../../schema/api-key.js';
import type { Credential } from '../../schema/credential.js';
import { type Json, newHandler, step, type Tenant, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';
import { listen } from '../helpers/http-handler.js';

const api = useSharedApi();
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
    for (const reply of [
      await tenant.get(path),
      await tenant.patch(path, {}),
      await tenant.delete(path),
    ]) {
      expectStatus(reply, 404);
    }
  });

  test('belongs to its tenant, and another may have one with the same id', async () => {
    const [one, two] = [api.tenant(), api.tenant()];
    await keep(one);
    for (const reply of [
      await two.get('/credentials/stripe'),
      await two.delete('/credentials/stripe'),
    ]) {
      expectStatus(reply, 404);
    }
    await keep(two);
    expectStatus(await two.delete('/credentials/stripe'), 204);
    expectStatus(await one.get('/credentials/stripe'), 200);
  });

  test('is refused with the member that is wrong, and changes nothing', async () => {
    const tenant = api.tenant();
    await keep(tenant);
    const cases: readonly (readonly [Json, number, RegExp])[] = [
      [{ id: 'stripe', value: 'v' }, 409, /credential stripe exists/],
      [{ value: 'v' }, 400, /id or name is required/],
      [{ name: 'with spaces', value: 'v' }, 400, /name must have letters.*or id must be sent/],
      [{ id: 'a/b', value: 'v' }, 400, /id/],
      [{ id: 'a' }, 400, /value/],
      [{ id: 'a', value: '' }, 400, /value/],
      [{ id: 'a', value: 'v', kind: 'magic' }, 400, /kind/],
      [{ id: 'a', value: 'v', refresh_url: 'https://auth.example/t' }, 400, /refresh_token/],
      [
        { id: 'a', value: 'v', refresh_url: 'ftp://auth.example', refresh_token: 't' },
        400,
        /refresh_url/,
      ],
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
    assert.equal(failure?.code, 'secret_missing');
    assert.match(failure?.message ?? '', /secret stripe does not exist/);
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
  });

  test('comes with the task to a worker whose key says so, and to no other', async () => {
    const tenant = api.tenant();
    await keep(tenant);
    const handler = newHandler();
    const params = { token: 'Bearer {{ secrets.stripe }}', n: 1 };
    const poll = { handler_name: handler, worker_id: 'w', wait_ms: 5_000 };
    for (const [capabilities, token] of [
      [['worker', 'secrets'], `Bearer ${SECRET}`],
      [['worker'], 'Bearer {{secrets.stripe}}'],
    ] as const) {
      const id = await tenant.run([step('a', handler, { params })]);
      const asked = { tenant_id: tenant.name, capabilities };
      const { secret: apiKey } = expectStatus(
        await api.root.post<KeyMinted>('/api-keys', asked),
        201,
      );
      const worker = api.root.with({ apiKey, tenant: tenant.name });
      const [task] = expectStatus(await worker.post<Task[]>('/workers/tasks/poll', poll), 200);
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
    const tenant = api.tenant();
    const handler = newHandler();
    const id = await tenant.run([
      step('a', handler, { params: { token: '{{ secrets.gone }}' }, retry: { max_attempts: 3 } }),
    ]);
    await tenant.until(id, 'waiting');
    const poll = { handler_name: handler, worker_id: 'w' };
    assert.deepEqual(expectStatus(await tenant.post('/workers/tasks/poll', poll), 200), []);
    await tenant.until(id, 'failed');
    assert.equal((await tenant.instance(id)).failure?.code, 'secret_missing');
  });

  test('is refused where only the engine would see it', async () => {
    const tenant = api.tenant();
    const blocks = [step('a', 'transform', { params: { x: '{{ secrets.stripe }}' } })];
    const body = { tenant_id: tenant.name, namespace: 'n', name: 's', version: 1, blocks };
    const reply = await tenant.post<{ error: string }>('/sequences', body);
    assert.equal(reply.status, 400);
    assert.match(reply.body.error, /names a secret/);
  });
});

interface Task {
  readonly id: string;
  readonly params: Json;
  readonly claim_epoch: number;
}
