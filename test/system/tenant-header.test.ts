/** A server that needs no tenant header: what is read, polled and changed without one. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { KeyMinted } from '../../schema/api-key.js';
import type { TaskInstance } from '../../schema/instance.js';
import type { RateLimit } from '../../schema/rate.js';
import type { Release } from '../../schema/release.js';
import type { WorkerTask } from '../../schema/worker.js';
import { type Json, newHandler, step, type Tenant, useApi } from '../helpers/api.js';
import { type Client, expectStatus } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';

const api = useApi({
  env: {
    ENGINE_SHARDS: '2',
    ENGINE_REQUIRE_TENANT_HEADER: 'false',
    ENGINE_ALLOW_NO_TENANT_ISOLATION: 'true',
  },
});

const LIMIT = { max_count: 1, window_seconds: 60 };

describe('with a key of a tenant', () => {
  /** An operator's, without a tenant header. */
  async function keyOf(tenant: Tenant): Promise<Client> {
    const body = { tenant_id: tenant.name, capabilities: ['operator'] };
    const reply = await api.root.post<KeyMinted>('/api-keys', body);
    return api.root.with({ apiKey: expectStatus(reply, 201).secret });
  }

  test('it stays within its tenant, by id, in lists, polls and changes of many', async () => {
    const [mine, other] = [api.tenant(), api.tenant()];
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

  test('another header is refused all the same', async () => {
    const key = (await keyOf(api.tenant())).with({ tenant: api.tenant().name });
    assert.equal((await key.get('/instances')).status, 403);
  });
});

test('Cross-tenant GET of an instance with the header is 404; without header (header optional) it is readable', async () => {
  const [mine, other] = [api.tenant(), api.tenant()];
  const id = await mine.run([step('a', newHandler())]);
  assert.equal((await other.get(`/instances/${id}`)).status, 404);
  assert.equal((await api.root.get(`/instances/${id}`)).status, 200);
});

describe('Poll order: Without a tenant header (when it is optional) a poll serves all tenants, and reads and writes by id are unscoped', () => {
  test('a poll serves all tenants, and a list shows all of them', async () => {
    const handler = newHandler();
    const ids = [
      await api.tenant().run([step('a', handler)]),
      await api.tenant().run([step('a', handler)]),
    ];
    const body = { handler_name: handler, worker_id: 'w1', limit: 5 };
    const tasks = await api.root.post<WorkerTask[]>('/workers/tasks/poll', body);
    assert.deepEqual(column(expectStatus(tasks, 200), 'instance_id'), ids);
    const list = expectStatus(await api.root.get<TaskInstance[]>('/instances?limit=1000'), 200);
    assert.ok(ids.every((id) => list.some((instance) => instance.id === id)));
  });

  test('reads and writes by id are unscoped', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const id = await tenant.run([step('a', handler)]);
    const task = await tenant.task(handler);
    const path = `/instances/${id}`;
    assert.equal(expectStatus(await api.root.get<TaskInstance>(path), 200).id, id);
    const update = { signal_type: 'update_context', payload: { n: 1 } };
    expectStatus(await api.root.post(`${path}/signals`, update), 201);
    const done = { worker_id: 'w1', output: {} };
    expectStatus(await api.root.post(`/workers/tasks/${task.id}/complete`, done), 200);
    const { context } = await tenant.until(id, 'completed');
    assert.deepEqual(context.data, { n: 1 });
    // With a header it is a scope, as ever.
    assert.equal((await api.tenant().get(path)).status, 404);
  });
});

for (const [method, path, change] of [
  ['PATCH', 'bulk/state', { state: 'paused' }],
  ['PATCH', 'bulk/reschedule', { offset_secs: 60 }],
  ['POST', 'batch-action', { action: 'pause' }],
] as const) {
  test(`of ${path} the filter has to name one tenant`, async () => {
    const [tenant, other] = [api.tenant(), api.tenant()];
    const far = { next_fire_at: '2100-01-01T00:00:00Z' };
    await tenant.run([step('a', 'noop')], far);
    const theirs = await other.run([step('a', 'noop')], far);
    const before = await other.instance(theirs);
    const ask = (client: Client, filter: Json) =>
      client.request<Json & { error: string }>(method, `/instances/${path}`, {
        body: { filter, ...change },
      });
    const unnamed = await ask(api.root, {});
    assert.equal(unnamed.status, 400);
    assert.match(unnamed.body.error, /tenant_id/);
    assert.equal((await ask(tenant, { tenant_id: other.name })).status, 403);
    const { count, matched } = expectStatus(await ask(api.root, { tenant_id: tenant.name }), 200);
    assert.equal(count ?? matched, 1);
    assert.deepEqual(await other.instance(theirs), before);
  });
}

describe('rate limits', () => {
  test('of all tenants are listed', async () => {
    const names = [api.tenant(), api.tenant()].map(({ name }) => name).sort();
    for (const name of names) {
      for (const key of ['2', '1']) {
        expectStatus(await api.tenant(name).put(`/rate-limits/${key}`, LIMIT), 200);
      }
    }
    const all = expectStatus(await api.root.get<RateLimit[]>('/rate-limits'), 200);
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
    const put = await api.root.put<{ error: string }>('/rate-limits/k', LIMIT);
    const deletion = await api.root.delete<{ error: string }>('/rate-limits/k');
    for (const { status, body } of [put, deletion]) {
      assert.equal(status, 400);
      assert.match(body.error, /tenant/);
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
    expectStatus(await api.root.post<Release>('/releases', body), 201);
  const list = async (client: Client, query: string) =>
    expectStatus(await client.get<Release[]>(`/releases${query}`), 200).map(({ id }) => id);

  test('list scoped by header tenant; newest first; limit honoured; query tenant_id filters when no header', async () => {
    const [mine, other] = [api.tenant(), api.tenant()];
    const ids: string[] = [];
    for (const tenant of [other, mine, mine]) {
      const release = await make({ tenant_id: tenant.name, ...(await ofVersions(tenant)) });
      assert.equal(release.tenant_id, tenant.name);
      for (const client of [tenant, api.root]) {
        assert.deepEqual((await client.get(`/releases/${release.id}`)).body, release);
      }
      ids.unshift(release.id);
    }
    const [newest, older, theirs] = ids;
    assert.deepEqual(await list(mine, `?tenant_id=${other.name}`), [newest, older]);
    assert.deepEqual(await list(mine, '?limit=1'), [newest]);
    assert.deepEqual(await list(api.root, '?limit=3'), [newest, older, theirs]);
    assert.deepEqual(await list(api.root, `?tenant_id=${other.name}`), [theirs]);
    assert.deepEqual(await list(api.root, `?tenant_id=${mine.name}&limit=1`), [newest]);
  });

  test('of nobody named are those of the tenant default', async () => {
    const pair = await ofVersions(api.tenant('default'));
    for (const body of [pair, { ...pair, tenant_id: '' }, { ...pair, tenant_id: null }]) {
      assert.equal((await make(body)).tenant_id, 'default');
    }
    const foreign = await ofVersions(api.tenant());
    assert.equal((await api.root.post('/releases', foreign)).status, 404);
  });
});
