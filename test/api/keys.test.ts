/** Keys of tenants: minting, expiry, what they may do, and what a caller is told of its own. */

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { ApiKey, KeyMinted, WhoAmI } from '../../schema/api-key.js';
import { CAPABILITIES, type Capability } from '../../schema/route-row.js';
import { ROUTES, type Route } from '../../schema/routes.js';
import type { Tenant as Listed } from '../../schema/tenant-limits.js';
import type { Json, Tenant } from '../helpers/api.js';
import { beforeWith, eventually, newHandler, step, useSharedApi } from '../helpers/api.js';
import { type Client, expectStatus, type Reply } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';
import { openEvents } from '../helpers/event-stream.js';
import { noThings, requestTo } from '../helpers/route-requests.js';

/** With the root key and no tenant. */
let root: Client;

const api = useSharedApi();

beforeWith(api, async () => {
  root = api.root;
});

async function mint(tenant_id: string, more: Json = {}): Promise<KeyMinted> {
  const body = { tenant_id, capabilities: ['operator'], ...more };
  return expectStatus(await root.post<KeyMinted>('/api-keys', body), 201);
}

const listed = async (tenant: string): Promise<ApiKey[]> =>
  expectStatus(await root.get<ApiKey[]>(`/api-keys?tenant_id=${tenant}`), 200);

const statusWith = async (secret: string, tenant: string): Promise<number> =>
  (await root.with({ apiKey: secret, tenant }).get('/instances')).status;

const newTenant = () => api.tenant().name;

describe('minting', () => {
  test('Creating a key without capabilities is 400; the capabilities given are returned unchanged', async () => {
    const tenant = newTenant();
    const ask = (more: Json) => root.post<{ error: string }>('/api-keys', more);
    for (const capabilities of [undefined, null, []]) {
      const reply = await ask({ tenant_id: tenant, capabilities });
      assert.equal(reply.status, 400, reply.text);
      assert.match(reply.body.error, /capabilities (is required|must)/);
    }
    // Once this made an operator's key of what was meant to be a worker's.
    const slip = await ask({ tenant_id: tenant, capability: ['worker'] });
    assert.equal(slip.status, 400);
    assert.match(slip.body.error, /capability is unknown; did you mean capabilities\?$/);
    assert.deepEqual(await listed(tenant), []);
    const given = ['auditor', 'worker', 'auditor', 'starter'];
    assert.deepEqual((await mint(tenant, { capabilities: given })).capabilities, given);
    assert.deepEqual(column(await listed(tenant), 'capabilities'), [given]);
  });

  test('A key id is ak_ and 32 hex digits, its secret begins with sk_, it expires only if told to, and lists never show the secret', async () => {
    const tenant = newTenant();
    const key = await mint(tenant, { name: 'build machine' });
    const members = 'id tenant_id name capabilities groups secret created_at expires_at';
    assert.equal(Object.keys(key).join(' '), members);
    assert.match(key.id, /^ak_[0-9a-f]{32}$/);
    assert.match(key.secret, /^sk_[0-9a-f]{64}$/);
    assert.deepEqual([key.expires_at, key.name], [null, 'build machine']);
    const reply = await root.get<ApiKey[]>(`/api-keys?tenant_id=${tenant}`);
    assert.deepEqual(reply.body, [
      {
        id: key.id,
        tenant_id: tenant,
        name: 'build machine',
        capabilities: ['operator'],
        groups: [],
        created_at: key.created_at,
        last_used_at: null,
        expires_at: null,
        revoked: false,
      },
    ]);
    assert.ok(!reply.text.includes(key.secret.slice(3)));
    assert.ok(!reply.text.includes(sha256(key.secret)));
  });

  test('what is no minting is 400 that names the field, and nothing is stored', async () => {
    const tenant = newTenant();
    const bad: [Json, RegExp][] = [
      [{}, /tenant_id/],
      [{ tenant_id: '  ' }, /tenant_id/],
      [{ tenant_id: ` ${tenant}` }, /tenant_id must not begin or end with a space/],
      [{ tenant_id: tenant, capabilities: ['Operator'] }, /capabilities/],
      [{ tenant_id: tenant, capabilities: 'operator' }, /capabilities/],
      [{ tenant_id: tenant, scope: 'all' }, /scope is unknown/],
      [{ tenant_id: tenant, expires_at: 'tomorrow' }, /expires_at/],
      [{ tenant_id: tenant, name: 'n'.repeat(256) }, /name/],
    ];
    for (const [body, says] of bad) {
      const given = { capabilities: ['worker'], ...body };
      const reply = await root.post<{ error: string }>('/api-keys', given);
      assert.equal(reply.status, 400, reply.text);
      assert.match(reply.body.error, says);
    }
    assert.deepEqual(await listed(tenant), []);
  });
});

// `cursors.test.ts` has its pages.
test('the list of keys says when a key was used last', async () => {
  const tenant = newTenant();
  const key = await mint(tenant);
  assert.equal((await listed(tenant))[0]?.last_used_at, null);
  assert.equal(await statusWith(key.secret, tenant), 200);
  const used = (await listed(tenant))[0]?.last_used_at;
  assert.ok(used != null && used >= key.created_at, String(used));
});
test('Revoked and expired keys are 401; a revoked key is listed with revoked: true', async () => {
  const tenant = newTenant();
  const key = await mint(tenant);
  assert.equal(await statusWith(key.secret, tenant), 200);
  expectStatus(await root.delete(`/api-keys/${key.id}`), 204);
  assert.equal(await statusWith(key.secret, tenant), 401);
  assert.deepEqual(columns(await listed(tenant), 'id', 'revoked'), [[key.id, true]]);
  const past = new Date(Date.now() - 60_000).toISOString();
  const expired = await mint(tenant, { expires_at: past });
  assert.equal(expired.expires_at, past);
  assert.equal(await statusWith(expired.secret, tenant), 401);
});

describe('what is open when a key is revoked', () => {
  const openWith = (key: KeyMinted, path: string) =>
    openEvents({
      url: `${api.url}/api/v1${path}`,
      headers: { 'x-api-key': key.secret, 'x-tenant-id': key.tenant_id },
    });

  test('a stream of an instance ends, and one of another key goes on', async () => {
    const tenant = api.tenant();
    const id = await tenant.run([step('a', newHandler())]);
    const [gone, kept] = [await mint(tenant.name), await mint(tenant.name)];
    const path = `/instances/${id}/stream`;
    const [cut, other] = [await openWith(gone, path), await openWith(kept, path)];
    await cut.until(({ events }) => events.length > 0);
    expectStatus(await root.delete(`/api-keys/${gone.id}`), 204);
    await cut.ended;
    assert.equal((await openWith(gone, path)).status, 401);
    await tenant.move(id, 'cancelled');
    await other.until(({ events }) => events.some(({ data }) => data.state === 'cancelled'));
  });

  test('a poll that waits is 401, and the next task is not claimed for it', async () => {
    const [tenant, handler] = [api.tenant(), newHandler()];
    const key = await mint(tenant.name, { capabilities: ['worker'] });
    const worker = root.with({ apiKey: key.secret, tenant: tenant.name });
    const poll = { handler_name: handler, worker_id: 'gone', wait_ms: 30_000 };
    const parked = worker.post<{ error: string }>('/workers/tasks/poll', poll);
    // The worker is known once its poll has been taken up.
    await eventually(async () => {
      const { body } = await tenant.get<{ worker_id: string }[]>('/workers');
      assert.equal(body.length, 1);
    });
    expectStatus(await root.delete(`/api-keys/${key.id}`), 204);
    assert.equal((await parked).status, 401);
    await tenant.run([step('a', handler)]);
    assert.equal((await tenant.task(handler)).claim_epoch, 1);
  });
});

test('an expiry in a century is echoed in UTC, and the key is valid', async () => {
  const tenant = newTenant();
  const key = await mint(tenant, { expires_at: '2125-01-01T00:00:00+02:00' });
  assert.equal(key.expires_at, '2124-12-31T22:00:00.000Z');
  assert.equal(await statusWith(key.secret, tenant), 200);
});

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

// ---------------------------------------------------------------- access

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

test('A missing or wrong key is 401 and a missing tenant header 400; health routes need no headers', async () => {
  // Before everything else that is wrong.
  for (const apiKey of [null, '', 'wrong', `sk_${'0'.repeat(64)}`]) {
    const client = api.root.with({ apiKey, tenant: null });
    const poll = client.post('/workers/tasks/poll', {});
    const statuses = statusesOf(client.get('/instances'), client.post('/instances', {}), poll);
    assert.deepEqual(await statuses, [401, 401, 401]);
  }
  for (const tenant of [null, '', '   ']) {
    const client = api.root.with({ tenant });
    for (const reply of [await client.get('/handlers'), await client.post('/instances', {})]) {
      assert.match(`${reply.status} ${reply.text}`, /^400 .*x-tenant-id/);
    }
  }
  const key = await keyOf(mine, 'operator');
  assert.equal((await key.with({ tenant: null }).get('/instances')).status, 400);
  for (const prefix of ['', '/api/v1']) {
    const nobody = api.root.with({ apiKey: null, tenant: null, prefix });
    for (const path of ['/health/live', '/health/ready', '/info']) {
      assert.equal((await nobody.get(path)).status, 200);
    }
  }
});

test('Tenant keys, operator included, cannot create, list or revoke keys: 403; revoking an unknown key is 404', async () => {
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

test('A tenant key with another x-tenant-id is 403, and lists only its own tenant even with a foreign tenant_id in the query', async () => {
  const key = await keyOf(mine, 'operator');
  assert.equal((await key.with({ tenant: other.name }).get('/instances')).status, 403);
  const [handler, theirs] = [newHandler(), newHandler()];
  const id = await mine.run([step('a', handler)]);
  await other.run([step('a', theirs)]);
  await other.task(theirs);
  const query = `tenant_id=${other.name}`;
  const instances = await key.get<{ id: string }[]>(`/instances?${query}`);
  assert.deepEqual(column(instances.body, 'id'), [id]);
  for (const path of ['/sequences', '/workers/tasks', '/instances/dlq', '/workers']) {
    const reply = await key.get(`${path}?${query}`);
    assert.equal(reply.status, 200, path);
    assert.ok(!reply.text.includes(other.name) && !reply.text.includes(theirs), path);
  }
});

test('A worker key polls, completes, and reads statistics and /handlers; sequences, instances, approvals and keys are 403; an unknown task is 404, not 403', async () => {
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

test('An approver key lists approvals and signals instances; a signal to an unknown instance is 404, reading an instance 403', async () => {
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
  assert.deepEqual(statuses, [201, 201, 404, 404, 403, 400, ...[403, 403, 403, 403, 403, 403]]);
  expectStatus(await approver.post(`/approvals/${asked?.id}`, { value: 'no' }), 200);
});

test('An approver key sends no signal other than an answer, so it cannot change data or stop an instance', async () => {
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

/** Of every route that the key must not use, save the given ones. */
async function expectRefused(key: Client, isAllowed: (route: Route) => boolean): Promise<void> {
  for (const route of Object.values(ROUTES)) {
    if (route.capability === 'public' || isAllowed(route)) continue;
    const { method, path, body } = requestTo(route, noThings(mine.name), mine.name, mine.name);
    assert.equal((await key.request(method, path, { body })).status, 403, `${method} ${path}`);
  }
}

test('A key with events sends events and nothing else, and reads nothing', async () => {
  const sender = await keyOf(mine, 'events');
  const event = { event_name: 'paid', producer_event_id: 'e-1' };
  expectStatus(await sender.post('/events', event), 201);
  expectStatus(await sender.post('/events/batch', { events: [event] }), 200);
  const who = expectStatus(await sender.get<{ capabilities: string[] }>('/whoami'), 200);
  assert.deepEqual(who.capabilities, ['events']);
  await expectRefused(sender, ({ id }) => /^(events\.send|whoami)/.test(id));
});

test('A starter key creates and reads instances and pending starts, sends signals and events, and reads sequences; everything else is 403', async () => {
  const starter = await keyOf(mine, 'starter');
  const sequence = await mine.sequence([step('a', newHandler())], { name: 'started' });
  const creation = mine.creation(sequence);
  const { id } = expectStatus(await starter.post<{ id: string }>('/instances', creation), 201);
  expectStatus(await starter.post('/instances/batch', { instances: [creation] }), 201);
  const signal = { signal_type: 'custom:paid', payload: { amount: 3 } };
  expectStatus(await starter.post(`/instances/${id}/signals`, signal), 201);
  for (const signal_type of ['custom:human_input:a', { custom: 'human_input:a' }]) {
    const answer = { signal_type, payload: { value: 'yes' } };
    const { body } = await starter.post<{ error: string }>(`/instances/${id}/signals`, answer);
    assert.match(body.error, /^forbidden: .* takes a key with approver or operator$/);
  }
  for (const path of [
    '/instances',
    '/instances/dlq',
    `/instances/${id}`,
    `/instances/${id}/outputs`,
    `/instances/${id}/tree`,
    `/instances/${id}/timeline`,
    '/pending-starts',
    '/sequences',
    `/sequences/${sequence}`,
    `/sequences/by-name?tenant_id=${mine.name}&namespace=test&name=started`,
    '/sequences/versions?namespace=test&name=started',
    '/search?q=started',
  ]) {
    assert.equal((await starter.get(path)).status, 200, path);
  }
  const event = { event_name: 'paid', producer_event_id: 'e-2' };
  expectStatus(await starter.post('/events', event), 201);
  const allowed = /^(instances\.(create|createBatch|signal)|events\.send|search|whoami)/;
  await expectRefused(
    starter,
    ({ id, method, path }) =>
      allowed.test(id) ||
      (method === 'GET' && /^\/(instances|pending-starts|sequences)(\/|$)/.test(path)),
  );
});

test('An auditor key reads everything and writes nothing; a publisher key manages sequences, releases and plugins, not instances', async () => {
  const auditor = await keyOf(mine, 'auditor');
  const handler = newHandler();
  const sequence = await mine.sequence([step('a', handler)], { name: 'audited' });
  const id = await mine.create(sequence);
  const task = await mine.task(handler);
  for (const path of [
    `/instances/${id}/audit`,
    `/sequences/by-name?tenant_id=${mine.name}&namespace=test&name=audited`,
    `/workers/tasks/${task.id}/attempts`,
    '/rate-limits',
  ]) {
    assert.equal((await auditor.get(path)).status, 200, path);
    assert.equal((await auditor.request('HEAD', path)).status, 200, path);
  }
  // `sweep.test.ts` asks every route.
  assert.equal((await auditor.post(`/sequences/${sequence}/deprecate`)).status, 403);
  const publisher = await keyOf(mine, 'publisher');
  const statuses = await statusesOf(
    publisher.post('/sequences', mine.definition([step('a', 'noop')])),
    publisher.get('/sequences'),
    publisher.post(`/sequences/${sequence}/deprecate`),
    publisher.get(`/sequences/${sequence}/steps`),
    publisher.get(`/instances/slowest?sequence_id=${sequence}`),
    publisher.get('/instances'),
    publisher.get(`/instances/${id}`),
    publisher.post('/instances', mine.creation(sequence)),
  );
  assert.deepEqual(statuses, [201, 200, 204, 200, 403, 403, 403, 403]);
});

// ---------------------------------------------------------------- whoami

const open = useSharedApi('open');
const headerless = useSharedApi('quick');

const whoami = async (client: Pick<typeof api.root, 'get'>): Promise<WhoAmI> =>
  expectStatus(await client.get<WhoAmI>('/whoami'), 200);

test('the root key is told that it may do everything, for any tenant', async () => {
  const everything: WhoAmI = {
    is_root: true,
    is_insecure: false,
    tenant_id: null,
    requires_tenant: true,
    capabilities: [...CAPABILITIES],
    key: null,
  };
  assert.deepEqual(await whoami(api.root), everything);
  assert.deepEqual(await whoami(api.root.with({ tenant: 'acme' })), everything);
  assert.deepEqual(await whoami(headerless.root), { ...everything, requires_tenant: false });
  assert.deepEqual(await whoami(open.root), { ...everything, is_insecure: true });
});

test('a key of a tenant is told its tenant and what it may do, whatever that is', async () => {
  const expires_at = '2199-01-01T00:00:00.000Z';
  const tenant_id = api.tenant().name;
  for (const capability of CAPABILITIES) {
    const body = { tenant_id, name: 'n', capabilities: [capability], expires_at };
    const { id, secret } = expectStatus(await api.root.post<KeyMinted>('/api-keys', body), 201);
    const key = api.root.with({ apiKey: secret, tenant: null });
    assert.deepEqual(await whoami(key), {
      is_root: false,
      is_insecure: false,
      tenant_id,
      requires_tenant: true,
      capabilities: [capability],
      key: { id, name: 'n', groups: [], expires_at },
    });
    assert.equal((await key.get('/tenants')).status, 403);
    expectStatus(await api.root.delete(`/api-keys/${id}`), 204);
    assert.equal((await key.get('/whoami')).status, 401);
  }
  assert.equal((await api.root.with({ apiKey: null }).get('/whoami')).status, 401);
});

// Where keys are not asked for, anyone may list tenants. Few files use that server, so the pages are few.
test('the tenants that have anything are listed by their names, page by page', async () => {
  const prefix = `0-${randomUUID()}-`;
  const names = ['a-sequence', 'b-key', 'c-limits', 'd "quoted"', 'z'].map((it) => prefix + it);
  const [instance = '', key = '', limits = '', quoted = '', sequence = ''] = names;
  for (const name of [instance, quoted]) await open.tenant(name).run([step('a', 'noop')]);
  await open.tenant(sequence).sequence([step('a', 'noop')]);
  const body = { tenant_id: key, capabilities: ['worker'] };
  expectStatus(await open.root.post('/api-keys', body), 201);
  expectStatus(await open.root.put(`/tenants/${limits}/limits`, { schedules_max: 1 }), 200);
  const listed: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const query = cursor === undefined ? '' : `&cursor=${cursor}`;
    const reply: Reply<Listed[]> = await open.root.get<Listed[]>(`/tenants?limit=2${query}`);
    const page = expectStatus(reply, 200);
    assert.ok(page.length <= 2);
    listed.push(...column(page, 'tenant_id'));
    const next = reply.headers['x-next-cursor'];
    if (next === undefined) break;
    cursor = String(next);
  }
  const ours = (found: readonly string[]) => found.filter((name) => name.startsWith(prefix));
  assert.deepEqual(ours(listed), names);
  assert.equal(new Set(listed).size, listed.length, 'none is given twice');
  const all = expectStatus(await open.root.get<Listed[]>('/tenants'), 200);
  assert.deepEqual(ours(column(all, 'tenant_id')), names);
  assert.equal((await open.root.get('/tenants?limit=0')).text, '[]');
  assert.equal((await open.root.get('/tenants?cursor=none')).status, 400);
  assert.equal((await open.root.get('/tenants?name=a')).status, 400);
});
