/** Batches: their bounds, all or nothing, keys in them, and that everything in them runs. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { eventually, type Json, step, type Tenant, useSharedApi } from '../helpers/api.js';
import { byDepth } from '../helpers/depth.js';

interface Count {
  readonly count: number;
  readonly created: number;
}

const api = useSharedApi();

const batch = (tenant: Tenant, instances: unknown[]) =>
  tenant.post<Count & { error: string }>('/instances/batch', { instances });

async function total(tenant: Tenant, query = ''): Promise<number> {
  let sum = 0;
  for (;;) {
    const page = await tenant.get<unknown[]>(`/instances?limit=1000&offset=${sum}${query}`);
    sum += page.body.length;
    if (page.body.length < 1000) return sum;
  }
}

const MANY = byDepth(2_000, 10_000);

test(`${MANY} instances are created, and all of them run to their end`, async () => {
  const tenant = api.tenant();
  const sequence = await tenant.sequence([step('a', 'noop')]);
  const reply = await batch(tenant, Array(MANY).fill(tenant.creation(sequence)));
  assert.deepEqual([reply.status, reply.body], [201, { count: MANY, created: MANY }]);
  await eventually(async () => assert.equal(await total(tenant, '&state=completed'), MANY));
});

test('what needs nothing from outside is complete when the batch is answered, and tasks are offered', async () => {
  const tenant = api.tenant();
  const pure = await tenant.sequence([step('a', 'noop')]);
  const external = await tenant.sequence([step('a', 'batch_worker')]);
  const reply = await batch(tenant, [
    tenant.creation(pure),
    tenant.creation(external),
    tenant.creation(pure, { context: { data: { text: 'Zoë Marković', number: 1.5 } } }),
  ]);
  assert.deepEqual(reply.body, { count: 3, created: 3 });
  assert.equal(await total(tenant, '&state=completed'), 2);
  const tasks = await tenant.post<unknown[]>('/workers/tasks/poll', {
    handler_name: 'batch_worker',
    worker_id: 'w',
    limit: 10,
  });
  assert.equal(tasks.body.length, 1);
});

test('without the list, or with something else in its place, it is 400', async () => {
  const tenant = api.tenant();
  for (const body of [{}, { instances: null }, { instances: {} }, { instances: [1] }, []]) {
    assert.equal((await tenant.post('/instances/batch', body)).status, 400, JSON.stringify(body));
  }
});

test('one bad item refuses all of them and is named', async () => {
  const tenant = api.tenant();
  const sequence = await tenant.sequence([step('a', 'noop')]);
  const good = tenant.creation(sequence);
  const unknown = randomUUID();
  const bad: [Json, number, RegExp][] = [
    [{ ...good, namespace: '' }, 400, /instances\[2\]\.namespace/],
    [{ ...good, tenant_id: ' ' }, 400, /instances\[2\]\.tenant_id/],
    [{ ...good, tenant_id: 'other' }, 403, /instances\[2\]/],
    [{ ...good, sequence_id: unknown }, 404, new RegExp(`instances\\[2\\].*${unknown}`)],
    [{ ...good, context: { data: { x: 'x'.repeat(262_144) } } }, 413, /instances\[2\]/],
  ];
  for (const [item, status, says] of bad) {
    const reply = await batch(tenant, [good, good, item, good]);
    assert.equal(reply.status, status, reply.text);
    assert.match(reply.body.error, says);
  }
  assert.equal(await total(tenant), 0);
});

test('items whose key matches are deduplicated each and counted as accepted', async () => {
  const tenant = api.tenant();
  const sequence = await tenant.sequence([step('a', 'noop')]);
  const keyed = (idempotency_key: string) => tenant.creation(sequence, { idempotency_key });
  const existing = await tenant.create(sequence, { idempotency_key: 'a' });
  const reply = await batch(tenant, [keyed('a'), keyed('b'), keyed('b'), keyed('c'), keyed('')]);
  assert.deepEqual(reply.body, { count: 5, created: 3 });
  const again = await batch(tenant, [keyed('a'), keyed('b'), keyed('c')]);
  assert.deepEqual(again.body, { count: 3, created: 0 });
  assert.equal(await total(tenant), 4);
  const single = await tenant.post<{ id: string; deduplicated: boolean }>('/instances', keyed('b'));
  assert.equal(single.body.deduplicated, true);
  assert.notEqual(single.body.id, existing);
});

test('batches and single creations with the same keys at once make one instance each', async () => {
  const tenant = api.tenant();
  const sequence = await tenant.sequence([step('a', 'noop')]);
  const items = Array.from({ length: 50 }, (_, index) =>
    tenant.creation(sequence, { idempotency_key: `k${index}` }),
  );
  const batches = Array.from({ length: 4 }, () => batch(tenant, items));
  const singles = items.map((item) =>
    tenant.post<{ id: string; deduplicated: boolean }>('/instances', item),
  );
  const counts = await Promise.all(batches);
  const replies = await Promise.all(singles);
  assert.ok(
    counts.every((reply) => reply.body.count === 50),
    JSON.stringify(counts[0]?.text),
  );
  const born = counts.reduce((sum, reply) => sum + reply.body.created, 0);
  const fresh = replies.filter((reply) => !reply.body.deduplicated).length;
  assert.equal(born + fresh, 50);
  assert.equal(await total(tenant), 50);
});

test('items with a later next_fire_at stay scheduled', async () => {
  const tenant = api.tenant();
  const sequence = await tenant.sequence([step('a', 'noop')]);
  await batch(tenant, [
    tenant.creation(sequence),
    tenant.creation(sequence, { next_fire_at: '2100-01-01T00:00:00Z' }),
  ]);
  await eventually(async () => assert.equal(await total(tenant, '&state=completed'), 1));
  assert.equal(await total(tenant, '&state=scheduled'), 1);
});
