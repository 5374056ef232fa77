/** What keys of tenants may do and see. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { KeyMinted } from '../../schema/api-key.js';
import { CAPABILITIES, type Capability } from '../../schema/route-row.js';
import { ROUTES } from '../../schema/routes.js';
import { type Json, newHandler, step, type Tenant, useSharedApi } from '../helpers/api.js';
import { type Client, expectStatus } from '../helpers/client.js';
import { noThings, requestTo } from '../helpers/route-requests.js';

const api = useSharedApi();
const mine = api.tenant();
const other = api.tenant();

/** A client with a new key of the tenant. */
async function keyOf(tenant: Tenant, ...capabilities: Capability[]): Promise<Client> {
  const body = { tenant_id: tenant.name, capabilities };
  const { secret } = expectStatus(await api.root.post<KeyMinted>('/api-keys', body), 201);
  return api.root.with({ apiKey: secret, tenant: tenant.name });
}

const statusesOf = async (...replies: Promise<{ status: number }>[]): Promise<number[]> =>
  (await Promise.all(replies)).map(({ status }) => status);

test('Unauthenticated and wrong-key requests get 401; missing tenant header 400; health routes work with no headers', async () => {
  for (const apiKey of [null, 'wrong', `sk_${'0'.repeat(64)}`]) {
    assert.equal((await api.root.with({ apiKey, tenant: 'a' }).get('/instances')).status, 401);
  }
  assert.equal((await api.root.get('/instances')).status, 400);
  const key = await keyOf(mine, 'operator');
  assert.equal((await key.with({ tenant: null }).get('/instances')).status, 400);
  for (const prefix of ['', '/api/v1']) {
    const nobody = api.root.with({ apiKey: null, tenant: null, prefix });
    for (const path of ['/health/live', '/health/ready', '/info']) {
      assert.equal((await nobody.get(path)).status, 200);
    }
  }
});

test('Tenant keys, operator included, get 403 on mint, list and revoke; unknown key id on revoke is 404', async () => {
  const unknown = `ak_${'0'.repeat(32)}`;
  for (const capability of CAPABILITIES) {
    const key = await keyOf(mine, capability);
    const statuses = await statusesOf(
      key.post('/api-keys', { tenant_id: mine.name, capabilities: ['worker'] }),
      key.get(`/api-keys?tenant_id=${mine.name}`),
      key.delete(`/api-keys/${unknown}`),
    );
    assert.deepEqual(statuses, [403, 403, 403], capability);
  }
  assert.equal((await api.root.delete(`/api-keys/${unknown}`)).status, 404);
});

test('Tenant key with another x-tenant-id gets 403; its list calls only return its own tenant even with a foreign tenant_id query', async () => {
  const key = await keyOf(mine, 'operator');
  assert.equal((await key.with({ tenant: other.name }).get('/instances')).status, 403);
  const [handler, theirs] = [newHandler(), newHandler()];
  const id = await mine.run([step('a', handler)]);
  await other.run([step('a', theirs)]);
  await other.task(theirs);
  const query = `tenant_id=${other.name}`;
  const instances = await key.get<{ id: string }[]>(`/instances?${query}`);
  assert.deepEqual(
    instances.body.map((instance) => instance.id),
    [id],
  );
  for (const path of ['/sequences', '/workers/tasks', '/instances/dlq', '/workers']) {
    const reply = await key.get(`${path}?${query}`);
    assert.equal(reply.status, 200, path);
    assert.ok(!reply.text.includes(other.name) && !reply.text.includes(theirs), path);
  }
});

test('Worker key: poll, complete, stats, /handlers allowed; sequences, instances, approvals, keys 403; bogus task id is not 403', async () => {
  const worker = await keyOf(mine, 'worker');
  const handler = newHandler();
  const id = await mine.run([step('a', handler)]);
  const polled = await worker.post<{ id: string; claim_epoch: number }[]>('/workers/tasks/poll', {
    handler_name: handler,
    worker_id: 'w',
  });
  const [task] = expectStatus(polled, 200);
  const done = { worker_id: 'w', claim_epoch: task?.claim_epoch, output: {} };
  const statuses = await statusesOf(
    worker.post(`/workers/tasks/${task?.id}/complete`, done),
    worker.get('/workers/tasks/stats'),
    worker.get('/handlers'),
    worker.get('/sequences'),
    worker.get('/instances'),
    worker.get(`/instances/${id}`),
    worker.get(`/api-keys?tenant_id=${mine.name}`),
    worker.post(`/workers/tasks/${randomUUID()}/complete`, done),
    worker.post('/workers/tasks/not-an-id/complete', done),
  );
  assert.deepEqual(statuses, [200, 200, 200, 403, 403, 403, 403, 404, 400]);
  assert.equal((await worker.get('/approvals')).status, 403);
  await mine.until(id, 'completed');
});

test('Approver key: approvals list and signals only; signal to an unknown instance is 404, GET instance is 403', async () => {
  const approver = await keyOf(mine, 'approver');
  const id = await mine.run([step('a', newHandler(), { wait_for_input: { prompt: 'May it?' } })]);
  const listed = await approver.get<{ items: { id: string; prompt: string }[] }>('/approvals');
  const { items } = expectStatus(listed, 200);
  const [asked] = items.filter(({ prompt }) => prompt === 'May it?');
  const answer = { signal_type: 'custom:human_input:a', payload: { value: 'never' } };
  const statuses = await statusesOf(
    approver.post(`/instances/${id}/signals`, answer),
    approver.post(`/instances/${id}/signals`, { signal_type: { custom: 'human_input:a' } }),
    approver.post(`/instances/${randomUUID()}/signals`, answer),
    approver.post(`/instances/${randomUUID()}/signals`, { signal_type: 'cancel' }),
    approver.post(`/instances/${id}/signals`, { signal_type: 'human_input:a' }),
    approver.post(`/instances/${id}/signals`),
    approver.post(`/approvals/${asked?.id}/link`, {}),
    approver.get(`/instances/${id}`),
    approver.get('/instances'),
    approver.post(`/instances/${id}/retry`),
    approver.patch(`/instances/${id}/state`, { state: 'cancelled' }),
    approver.post('/instances', mine.creation(randomUUID())),
  );
  const refused = [403, 403, 403, 403, 403, 403];
  assert.deepEqual(statuses, [201, 201, 404, 404, 403, 400, ...refused]);
  expectStatus(await approver.post(`/approvals/${asked?.id}`, { value: 'no' }), 200);
});

test('Approver key: no signal but an answer, so that it changes no data and stops nothing', async () => {
  const approver = await keyOf(mine, 'approver');
  const both = await keyOf(mine, 'approver', 'starter');
  const id = await mine.run([step('a', newHandler())]);
  const path = `/instances/${id}/signals`;
  for (const signal_type of ['update_context', 'cancel', 'pause', 'resume', 'custom:approved']) {
    const reply = await approver.post(path, { signal_type, payload: { amount: 1 } });
    assert.equal(reply.status, 403, signal_type);
  }
  const custom = { signal_type: { custom: 'approved' } };
  assert.equal((await approver.post(path, custom)).status, 403);
  const { context } = await mine.instance(id);
  assert.deepEqual(context.data, {});
  assert.equal((await both.post(path, custom)).status, 201);
});

test('Starter key: creates and reads instances, sends signals, reads sequences; everything else 403', async () => {
  const starter = await keyOf(mine, 'starter');
  const sequence = await mine.sequence([step('a', newHandler())], { name: 'started' });
  const creation = mine.creation(sequence);
  const created = await starter.post<{ id: string }>('/instances', creation);
  const { id } = expectStatus(created, 201);
  const allowed = new Set([
    'POST /instances',
    'POST /instances/batch',
    'POST /instances/{id}/signals',
    'GET /whoami',
  ]);
  expectStatus(await starter.post('/instances/batch', { instances: [creation] }), 201);
  const signal = { signal_type: 'custom:paid', payload: { amount: 3 } };
  expectStatus(await starter.post(`/instances/${id}/signals`, signal), 201);
  for (const path of [
    '/instances',
    '/instances/dlq',
    `/instances/${id}`,
    `/instances/${id}/outputs`,
    `/instances/${id}/tree`,
    `/instances/${id}/timeline`,
    '/sequences',
    `/sequences/${sequence}`,
    `/sequences/by-name?tenant_id=${mine.name}&namespace=test&name=started`,
    '/sequences/versions?namespace=test&name=started',
  ]) {
    assert.equal((await starter.get(path)).status, 200, path);
  }
  for (const route of Object.values(ROUTES)) {
    if (route.capability === 'public' || allowed.has(`${route.method} ${route.path}`)) continue;
    if (route.method === 'GET' && /^\/(instances|sequences)(\/|$)/.test(route.path)) continue;
    const { method, path, body } = requestTo(route, noThings(mine.name), mine.name, mine.name);
    const reply = await starter.request(method, path, { body });
    assert.equal(reply.status, 403, `${method} ${path}`);
  }
});

test('Auditor key: all GETs 200; every write 403; Publisher key: sequences, releases, plugins; instances 403', async () => {
  const auditor = await keyOf(mine, 'auditor');
  const handler = newHandler();
  const sequence = await mine.sequence([step('a', handler)], { name: 'audited' });
  const id = await mine.create(sequence);
  const task = await mine.task(handler);
  for (const path of [
    '/instances',
    '/instances/dlq',
    `/instances/${id}`,
    `/instances/${id}/tree`,
    `/instances/${id}/audit`,
    '/sequences',
    `/sequences/${sequence}`,
    `/sequences/by-name?tenant_id=${mine.name}&namespace=test&name=audited`,
    '/workers',
    '/workers/tasks',
    '/workers/tasks/stats',
    `/workers/tasks/${task.id}/attempts`,
    '/rate-limits',
    '/handlers',
  ]) {
    assert.equal((await auditor.get(path)).status, 200, path);
    assert.equal((await auditor.request('HEAD', path)).status, 200, path);
  }
  for (const route of Object.values(ROUTES)) {
    if (route.method === 'GET' || route.capability === 'public') continue;
    const { method, path, body } = requestTo(route, noThings(mine.name), mine.name, mine.name);
    const reply = await auditor.request(method, path, { body });
    assert.equal(reply.status, 403, `${method} ${path}`);
  }
  const publisher = await keyOf(mine, 'publisher');
  const statuses = await statusesOf(
    publisher.post('/sequences', mine.definition([step('a', 'noop')])),
    publisher.get('/sequences'),
    publisher.post(`/sequences/${sequence}/deprecate`),
    publisher.get('/instances'),
    publisher.get(`/instances/${id}`),
    publisher.post('/instances', mine.creation(sequence)),
  );
  assert.deepEqual(statuses, [201, 200, 204, 403, 403, 403]);
});

test('a key with several capabilities may do what any of them allows', async () => {
  const key = await keyOf(mine, 'worker', 'publisher');
  const statuses = await statusesOf(
    key.get('/handlers'),
    key.get('/sequences'),
    key.get('/instances'),
  );
  assert.deepEqual(statuses, [200, 200, 403]);
});

test('a body that names another tenant than the key is 403, and stores nothing', async () => {
  const key = await keyOf(mine, 'operator');
  const sequence = await other.sequence([step('a', 'noop')]);
  const before = await other.get<unknown[]>('/instances');
  const bulk = { filter: { tenant_id: other.name }, state: 'cancelled' };
  for (const tenant of [mine.name, null]) {
    const client = key.with({ tenant });
    const batch = { instances: [other.creation(sequence)] };
    assert.equal((await client.post('/instances/batch', batch)).status, 403, String(tenant));
  }
  const statuses = await statusesOf(
    key.post('/instances', other.creation(sequence)),
    key.post('/sequences', other.definition([step('a', 'noop')])),
    key.patch('/instances/bulk/state', bulk),
  );
  assert.deepEqual(statuses, [403, 403, 403]);
  assert.deepEqual((await other.get<unknown[]>('/instances')).body, before.body);
});

test('a batch without a header is the key’s tenant’s', async () => {
  const key = await keyOf(mine, 'operator');
  const sequence = await mine.sequence([step('a', 'noop')]);
  const body = { instances: [mine.creation(sequence)] };
  const reply = await key.with({ tenant: null }).post<Json>('/instances/batch', body);
  assert.deepEqual([reply.status, reply.body], [201, { count: 1, created: 1 }]);
});
