/** The root key and the tenant header: who is refused, what of another tenant can be seen. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { type Api, newHandler, startApi, step, useSharedApi } from '../../helpers/api.js';
import { createTestDatabase, type TestDatabase } from '../../helpers/database.js';
import { DEFAULT_API_KEY } from '../../helpers/engine.js';

describe('with a root key', () => {
  const api = useSharedApi();
  const mine = api.tenant();
  const other = api.tenant();

  test('a missing or wrong key is 401, before everything else that is wrong', async () => {
    for (const apiKey of [null, '', 'wrong', `${DEFAULT_API_KEY}x`]) {
      const client = api.root.with({ apiKey, tenant: null });
      for (const reply of [
        await client.get('/instances'),
        await client.get('/instances/not-a-uuid'),
        await client.post('/instances', { wrong: true }),
        await client.post('/workers/tasks/poll', {}),
      ]) {
        assert.equal(reply.status, 401);
      }
    }
  });

  test('the key may be a bearer token; x-api-key wins over it', async () => {
    const ask = async (headers: Record<string, string>) =>
      (
        await api.root
          .with({ apiKey: null, tenant: mine.name })
          .request('GET', '/instances', { headers })
      ).status;
    assert.equal(await ask({ authorization: `Bearer ${DEFAULT_API_KEY}` }), 200);
    assert.equal(await ask({ authorization: `bearer ${DEFAULT_API_KEY}` }), 200);
    assert.equal(await ask({ authorization: `Basic ${DEFAULT_API_KEY}` }), 401);
    assert.equal(await ask({ authorization: 'Bearer wrong' }), 401);
    const [right, wrong] = [DEFAULT_API_KEY, 'wrong'];
    assert.equal(await ask({ authorization: `Bearer ${wrong}`, 'x-api-key': right }), 200);
    assert.equal(await ask({ authorization: `Bearer ${right}`, 'x-api-key': wrong }), 401);
  });

  test('a missing or blank tenant header is 400, before the body is looked at', async () => {
    for (const tenant of [null, '', '   ']) {
      const client = api.root.with({ apiKey: DEFAULT_API_KEY, tenant });
      for (const reply of [
        await client.get<{ error: string }>('/instances'),
        await client.get<{ error: string }>('/workers/tasks/stats'),
        await client.get<{ error: string }>('/handlers'),
        await client.post<{ error: string }>('/instances', { wrong: true }),
      ]) {
        assert.equal(reply.status, 400);
        assert.match(reply.body.error, /x-tenant-id/);
      }
    }
  });

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
    const refused = await client.post('/instances/batch', { instances: [crossed] });
    assert.equal(refused.status, 404);
    const blank = { ...items[0], tenant_id: '' };
    assert.equal((await client.post('/instances/batch', { instances: [blank] })).status, 400);
  });

  test('everything of another tenant is 404 with the text of a missing row', async () => {
    const handler = newHandler();
    const sequence = await mine.sequence([step('a', handler)]);
    const id = await mine.create(sequence);
    const task = await mine.task(handler);
    const unknown = randomUUID();
    const asks: [string, (id: string) => string, string, unknown?][] = [
      ['GET', (x) => `/sequences/${x}`, sequence],
      ['DELETE', (x) => `/sequences/${x}`, sequence],
      ['POST', (x) => `/sequences/${x}/deprecate`, sequence],
      ['GET', (x) => `/instances/${x}`, id],
      ['GET', (x) => `/instances/${x}/tree`, id],
      ['GET', (x) => `/instances/${x}/outputs`, id],
      ['GET', (x) => `/instances/${x}/children`, id],
      ['GET', (x) => `/instances/${x}/audit`, id],
      ['GET', (x) => `/instances/${x}/timeline`, id],
      ['POST', (x) => `/instances/${x}/retry`, id],
      ['PATCH', (x) => `/instances/${x}/state`, id, { state: 'cancelled' }],
      ['PATCH', (x) => `/instances/${x}/context`, id, { context: { data: { x: 1 } } }],
      ['POST', (x) => `/instances/${x}/signals`, id, { signal_type: 'cancel' }],
      ['POST', (x) => `/workers/tasks/${x}/complete`, task.id, { worker_id: 'w1', output: {} }],
      ['POST', (x) => `/workers/tasks/${x}/fail`, task.id, { worker_id: 'w1', message: 'm' }],
      ['POST', (x) => `/workers/tasks/${x}/heartbeat`, task.id, { worker_id: 'w1' }],
      ['GET', (x) => `/workers/tasks/${x}/attempts`, task.id],
    ];
    for (const [method, path, target, body] of asks) {
      const reply = await other.request<{ error: string }>(method, path(target), { body });
      const missing = await other.request<{ error: string }>(method, path(unknown), { body });
      assert.equal(reply.status, 404, `${method} ${path(target)}`);
      assert.equal(missing.status, 404, `${method} ${path(unknown)}`);
      assert.equal(
        reply.body.error.replaceAll(target, 'ID'),
        missing.body.error.replaceAll(unknown, 'ID'),
      );
    }
    const after = await mine.instance(id);
    assert.equal(after.state, 'waiting');
    assert.deepEqual(after.context.data, {});
  });

  test('lists show the header’s tenant only, whatever the query says', async () => {
    const handler = newHandler();
    const sequence = await mine.sequence([step('a', handler)], { name: 'listed' });
    await mine.create(sequence);
    for (const path of [
      `/instances?tenant_id=${mine.name}`,
      `/instances/dlq?tenant_id=${mine.name}`,
      `/sequences?tenant_id=${mine.name}`,
      `/sequences/versions?tenant_id=${mine.name}&namespace=test&name=listed`,
      `/workers/tasks?tenant_id=${mine.name}`,
    ]) {
      assert.deepEqual((await other.get(path)).body, [], path);
    }
    const named = `tenant_id=${mine.name}&namespace=test&name=listed`;
    assert.equal((await other.get(`/sequences/by-name?${named}`)).status, 404);
    const own = await mine.get(
      `/sequences/by-name?tenant_id=${other.name}&namespace=test&name=listed`,
    );
    assert.equal(own.status, 200);
    assert.deepEqual(await other.poll(handler), []);
  });

  test('a body with another tenant than the header is 403', async () => {
    const sequence = await mine.sequence([step('a', 'noop')]);
    const body = mine.creation(sequence);
    const replies = [
      await other.post('/instances', body),
      await other.post('/instances/batch', { instances: [body] }),
      await other.post('/sequences', {
        tenant_id: mine.name,
        namespace: 'n',
        name: 'n',
        version: 1,
        blocks: [step('a', 'noop')],
      }),
      await other.request('PATCH', '/instances/bulk/state', {
        body: { filter: { tenant_id: mine.name }, state: 'cancelled' },
      }),
    ];
    assert.deepEqual(
      replies.map((reply) => reply.status),
      [403, 403, 403, 403],
    );
  });

  test('an instance of another tenant’s sequence cannot be created: 404', async () => {
    const sequence = await mine.sequence([step('a', 'noop')]);
    assert.equal((await other.post('/instances', other.creation(sequence))).status, 404);
  });

  test('a missing or blank body tenant_id on creation is 400 although the header is there', async () => {
    const sequence = await mine.sequence([step('a', 'noop')]);
    for (const tenant_id of [undefined, null, '', '  ']) {
      const reply = await mine.post<{ error: string }>(
        '/instances',
        mine.creation(sequence, { tenant_id }),
      );
      assert.equal(reply.status, 400, String(tenant_id));
      assert.match(reply.body.error, /tenant_id/);
    }
  });

  test('a blank tenant_id of a sequence is filled from the header', async () => {
    const id = await mine.sequence([step('a', 'noop')], { tenant_id: '' });
    const stored = await mine.get<{ tenant_id: string }>(`/sequences/${id}`);
    assert.equal(stored.body.tenant_id, mine.name);
  });
});

describe('with --insecure-auth and an optional tenant header', () => {
  let database: TestDatabase;
  let api: Api;

  before(async () => {
    database = await createTestDatabase();
    api = await startApi({
      database,
      apiKey: null,
      env: { ENGINE_REQUIRE_TENANT_HEADER: 'false' },
    });
  });
  after(async () => {
    await api.stop();
    await database.drop();
  });

  test('no key is asked for and any Authorization is ignored', async () => {
    const reply = await api
      .tenant('a')
      .request('GET', '/instances', { headers: { authorization: 'Bearer nonsense' } });
    assert.equal(reply.status, 200);
  });

  test('without a header reads by id are unscoped, lists and polls span tenants', async () => {
    const handler = newHandler();
    const nobody = api.root;
    const ids = [];
    for (const tenant of [api.tenant(), api.tenant()]) {
      ids.push(await tenant.run([step('a', handler)]));
    }
    for (const id of ids) assert.equal((await nobody.get(`/instances/${id}`)).status, 200);
    const list = await nobody.get<{ id: string }[]>('/instances');
    assert.ok(ids.every((id) => list.body.some((item) => item.id === id)));
    const polled = await nobody.post<{ instance_id: string }[]>('/workers/tasks/poll', {
      handler_name: handler,
      worker_id: 'w',
      limit: 10,
    });
    assert.deepEqual(polled.body.map((task) => task.instance_id).sort(), ids.sort());
  });

  test('without a header a bulk change needs filter.tenant_id', async () => {
    const reply = await api.root.patch<{ error: string }>('/instances/bulk/state', {
      filter: {},
      state: 'cancelled',
    });
    assert.equal(reply.status, 400);
    assert.match(reply.body.error, /tenant_id/);
    const named = await api.root.patch('/instances/bulk/state', {
      filter: { tenant_id: 'nobody' },
      state: 'cancelled',
    });
    assert.deepEqual(named.body, { count: 0, updated: 0 });
  });

  test('without a header an empty batch is created, and items carry their tenants', async () => {
    const empty = await api.root.post('/instances/batch', { instances: [] });
    assert.equal(empty.status, 201);
    const [a, b] = [api.tenant(), api.tenant()];
    const items = [];
    for (const tenant of [a, b]) {
      items.push(tenant.creation(await tenant.sequence([step('a', 'noop')])));
    }
    const reply = await api.root.post('/instances/batch', { instances: items });
    assert.deepEqual(reply.body, { count: 2, created: 2 });
    assert.equal((await a.get<unknown[]>('/instances')).body.length, 1);
    assert.equal((await b.get<unknown[]>('/instances')).body.length, 1);
  });
});
