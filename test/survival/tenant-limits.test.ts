/** The limits of a tenant, as the root key sets them and its requests meet them. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyMinted } from '../../schema/api-key.js';
import type { TenantLimits } from '../../schema/tenant-limits.js';
import { eventually, type Json, newHandler, step, type Tenant, useApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { survival } from '../helpers/survival.js';

const api = useApi({ env: { ENGINE_SHARDS: '2' } });
const survives = survival(api);

const pathOf = ({ name }: Tenant) => `/tenants/${name}/limits`;

const put = async (tenant: Tenant, limits: Json): Promise<TenantLimits> =>
  expectStatus(await api.root.put<TenantLimits>(pathOf(tenant), limits), 200);

const SEVEN_DAILY = { cron_expr: '0 7 * * *', timezone: 'UTC' };

async function schedule(tenant: Tenant, sequence_id: string) {
  return tenant.post<{ id: string; error?: string }>('/cron', {
    tenant_id: tenant.name,
    namespace: 'n',
    sequence_id,
    ...SEVEN_DAILY,
  });
}

survives('Limits of a tenant hold from their answer on, and after SIGKILL', async (tenant) => {
  const told = await put(tenant, { schedules_max: 2, rows_per_second: 1_000 });
  const sequence = await tenant.sequence([step('a', 'noop')]);
  expectStatus(await schedule(tenant, sequence), 201);
  return async () => {
    const read = expectStatus(await api.root.get<TenantLimits>(pathOf(tenant)), 200);
    assert.deepEqual(read, told);
    const { body: second } = await schedule(tenant, sequence);
    const refused = await schedule(tenant, sequence);
    assert.equal(refused.status, 409, 'those from before the kill count');
    assert.match(String(refused.body.error), /as many schedules as it may have: 2/);
    expectStatus(await tenant.delete(`/cron/${second.id}`), 204);
    expectStatus(await schedule(tenant, sequence), 201);
  };
});

test('a creation beyond the depth of the queue is 429 with the number, until a task has ended', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const sequence_id = await tenant.sequence([step('a', handler)]);
  const create = () =>
    tenant.post<{ error: string }>('/instances', {
      sequence_id,
      tenant_id: tenant.name,
      namespace: 'n',
    });
  await put(tenant, { queue_depth_max: 2 });
  for (let n = 0; n < 2; n += 1) assert.equal((await create()).status, 201);
  const refused = await create();
  assert.equal(refused.status, 429, refused.text);
  assert.match(refused.body.error, /may have 2 open tasks \(queue_depth_max\)/);
  assert.equal(refused.headers['retry-after'], '1');
  await tenant.complete(await tenant.task(handler), {});
  assert.equal((await create()).status, 201);
  expectStatus(await api.root.delete(pathOf(tenant)), 204);
  assert.equal((await create()).status, 201);
});

test('at a full queue a repeated creation is answered by the instance that is there', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const sequence_id = await tenant.sequence([step('a', handler)]);
  const item = (idempotency_key: string) => ({
    sequence_id,
    tenant_id: tenant.name,
    namespace: 'n',
    idempotency_key,
  });
  const create = (key: string) => tenant.post<{ id: string }>('/instances', item(key));
  const batch = (...keys: string[]) =>
    tenant.post<Json>('/instances/batch', { instances: keys.map(item) });
  const first = expectStatus(await create('one'), 201);
  expectStatus(await create('two'), 201);
  await put(tenant, { queue_depth_max: 2 });
  assert.equal((await create('three')).status, 429);
  const again = await create('one');
  assert.deepEqual([again.status < 300, again.body.id], [true, first.id], again.text);
  assert.equal((await batch('one', 'two')).status < 300, true);
  assert.equal((await batch('one', 'four')).status, 429);
  const dry = await tenant.post('/instances', { ...item('one'), dry_run: true });
  assert.equal(dry.status, 429, 'a dry run has keys of its own');
  await put(tenant, { queue_depth_max: 3 });
  assert.equal((await batch('one', 'two', 'four')).status < 300, true, 'one of them is new');
  assert.equal((await batch('one', 'two', 'four')).status < 300, true);
  // Items with keys become tasks after the answer.
  let number = 0;
  await eventually(async () => {
    number += 1;
    assert.equal((await create(`five ${number}`)).status, 429);
  });
});

test('a unit that is used up is 429 with its name, its bound and the wait, and nothing is done', async () => {
  const tenant = api.tenant();
  await put(tenant, { blocks_per_second: 1, blocks_burst: 2 });
  const blocks = ['a', 'b'].map((id) => step(id, 'noop'));
  await tenant.sequence(blocks);
  const body = { tenant_id: tenant.name, namespace: 'n', name: 'more', version: 1, blocks };
  const refused = await tenant.post<{ error: string }>('/sequences', body);
  assert.equal(refused.status, 429, refused.text);
  assert.match(
    refused.body.error,
    /used up its blocks: 1 a second, at most 2 at once; this takes 2/,
  );
  assert.match(String(refused.headers['retry-after']), /^[12]$/);
  const other = api.tenant();
  await other.sequence(blocks);
});

test('limits are read and changed with the root key alone, and are refused unless all of them are right', async () => {
  const tenant = api.tenant();
  const path = pathOf(tenant);
  const mint = { tenant_id: tenant.name, capabilities: ['operator'] };
  const { secret } = expectStatus(await api.root.post<KeyMinted>('/api-keys', mint), 201);
  const own = api.root.with({ apiKey: secret, tenant: tenant.name });
  for (const reply of [await own.get(path), await own.put(path, {}), await own.delete(path)]) {
    assert.equal(reply.status, 403, reply.text);
  }
  const none = expectStatus(await api.root.get<TenantLimits>(path), 200);
  assert.deepEqual(
    [none.rows_per_second, none.queue_depth_max, none.updated_at],
    [null, null, null],
  );
  for (const wrong of [
    { rows_per_second: 0 },
    { schedules_max: -1 },
    { bytes_burst: 'x' },
    { row: 1 },
  ]) {
    const reply = await api.root.put<{ error: string }>(path, wrong);
    assert.equal(reply.status, 400, reply.text);
    assert.match(reply.body.error, new RegExp(Object.keys(wrong)[0] as string));
  }
  assert.deepEqual(expectStatus(await api.root.get(path), 200), none);
  assert.equal((await api.root.delete(path)).status, 404);
  await put(tenant, { rows_per_second: 5 });
  const replaced = await put(tenant, { queue_depth_max: 0 });
  assert.deepEqual([replaced.rows_per_second, replaced.queue_depth_max], [null, 0]);
});
