/** The root key and the tenant: how they are said. `sweep.test.ts` has what follows for every route. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { step, useSharedApi } from '../helpers/api.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';

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
