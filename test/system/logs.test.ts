/** The server's log: nothing in it that is a caller's or a secret, and ids where they help. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { type Api, eventually, newHandler, startApi, step, type Tenant } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

const CANARY = 'canary-6f1d2c';
const canary = (what: string) => `${CANARY}-${what}`;
const KEY = canary('root-key');

const leaksOf = (text: string) => text.split('\n').filter((line) => line.includes(CANARY));

describe('a server at debug level', () => {
  let api: Api;
  let tenant: Tenant;
  let server: Server;
  let port: number;

  before(async () => {
    server = createServer((request, response) => {
      const isRefused = request.url?.startsWith('/refuses');
      response.writeHead(isRefused ? 500 : 200, { 'x-own': canary('answer-header') });
      response.end(canary('answer'));
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    port = (server.address() as AddressInfo).port;
    api = await startApi({
      apiKey: KEY,
      env: {
        ENGINE_LOG_LEVEL: 'debug',
        ENGINE_SHARDS: '2',
        ENGINE_ALLOW_INTERNAL_URLS: 'true',
        ENGINE_WEBHOOK_URLS: `http://127.0.0.1:${port}/refuses/${canary('path')}?token=${canary('query')}`,
        ENGINE_WEBHOOK_SECRET: canary('webhook-secret'),
      },
    });
    tenant = api.tenant();
  });
  after(async () => {
    await api.stop();
    server.closeAllConnections();
    server.close();
    assert.deepEqual(leaksOf(api.engine.output()), []);
  });

  /** After each part, since only the last lines are kept. */
  function assertNoLeak(): void {
    assert.deepEqual(leaksOf(api.engine.output()), []);
  }

  test('the search would find a canary', () => {
    const text = `${api.engine.output()}\n{"msg":"m","key":"${KEY}"}`;
    assert.equal(leaksOf(text).length, 1);
  });

  test('logs no key, neither the right one nor a wrong one', async () => {
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
    assertNoLeak();
  });

  test('logs no key of a tenant, live or revoked', async () => {
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
    const place = `127.0.0.1:${port}/${canary('path')}?token=${canary('query')}`;
    const params = {
      url: `http://${place}`,
      method: 'POST',
      headers: { authorization: canary('header'), 'x-own': canary('own-header') },
      body: { text: canary('body') },
    };
    await tenant.runUntil('completed', [step('a', 'http_request', { params })]);
    for (const url of [
      `http://user:${canary('password')}@${place}`,
      `http://127.0.0.1:${port}/refuses?${canary('query')}`,
      `http://127.0.0.1:1/${canary('closed')}`,
      `http://${CANARY}.invalid/`,
      `gopher://${CANARY}`,
    ]) {
      const calls = [step('a', 'http_request', { params: { ...params, url } })];
      await tenant.runUntil('failed', calls);
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
      assert.deepEqual(
        [level, tenantId, blockId, cause],
        [40, tenant.name, 'broken', 'step_failed'],
      );
      assert.match(String(failure.sequenceId), /^[0-9a-f-]{36}$/);
      assert.match(String(failure.thread), /^shard-\d$/);
    });
  });
});
