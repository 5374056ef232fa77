/**
 * One flow through the whole surface, run with 1, 2 and 4 shards, on the second HTTP backend, and on
 * the oldest Postgres that is supported: what a client sees must not depend on any of these.
 */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { TaskInstance } from '../../schema/instance.js';
import {
  type Api,
  type ApiOptions,
  eventually,
  newHandler,
  startApi,
  step,
  type Tenant,
} from '../helpers/api.js';
import { startPostgres, type TestPostgres } from '../helpers/database.js';
import { isDeep } from '../helpers/depth.js';

// The server that other files share has four shards, their own ones have one or two.
if (isDeep) {
  for (const [name, env] of Object.entries<Record<string, string>>({
    '1 shard': { ENGINE_SHARDS: '1' },
    '2 shards': { ENGINE_SHARDS: '2' },
    '4 shards': { ENGINE_SHARDS: '4', ENGINE_WRITER_LANES: '3' },
    'node:http': { ENGINE_SHARDS: '2', ENGINE_HTTP_BACKEND: 'node' },
  })) {
    describe(name, () => flow(() => ({ env })));
  }
}

describe('Postgres 15, node:http, 4 shards with 3 lanes', () => {
  let postgres: TestPostgres;

  before(async () => {
    postgres = await startPostgres({ major: 15 });
  });
  after(() => postgres.stop());
  flow(async () => ({
    database: await postgres.createDatabase({ isMigrated: false }),
    env: { ENGINE_SHARDS: '4', ENGINE_WRITER_LANES: '3', ENGINE_HTTP_BACKEND: 'node' },
  }));
});

function flow(options: () => ApiOptions | Promise<ApiOptions>): void {
  let api: Api;
  let tenant: Tenant;

  before(async () => {
    api = await startApi(await options());
    tenant = api.tenant();
  });
  after(() => api.stop());

  const count = async (query: string) =>
    (await tenant.get<unknown[]>(`/instances?limit=1000&${query}`)).body.length;

  test('an order is fulfilled by two workers over all block kinds', async () => {
    const [charge, ship] = [newHandler(), newHandler()];
    const id = await tenant.run(
      [
        step('start', 'log', { params: { message: 'order {{ data.order }}' } }),
        {
          type: 'try_catch',
          id: 'guarded',
          try_block: [step('charge', charge, { retry: { max_attempts: 2, initial_backoff: 1 } })],
          catch_block: [step('refund', 'noop')],
          finally_block: [step('audit', 'noop')],
        },
        {
          type: 'router',
          id: 'route',
          routes: [{ condition: 'paid == yes', blocks: [step('pack', 'noop')] }],
          default: [step('abandon', 'noop')],
        },
        {
          type: 'parallel',
          id: 'both',
          branches: [
            [step('ship', ship)],
            [step('mail', 'sleep', { params: { duration_ms: 20 } })],
          ],
        },
        {
          type: 'race',
          id: 'first',
          branches: [[step('quick', 'noop')], [step('never', newHandler())]],
        },
        {
          type: 'for_each',
          id: 'items',
          collection: 'items',
          body: [step('item', 'transform', { params: { name: '{{ data.item }}' } })],
        },
        {
          type: 'loop',
          id: 'loop',
          condition: 'paid',
          max_iterations: 2,
          body: [step('tick', 'noop')],
        },
        step('end', 'transform', { params: { parcel: '{{ data.parcel }}' } }),
      ],
      { context: { data: { order: 7, items: ['a', 'b'] } } },
    );
    const first = await tenant.task(charge);
    await tenant.fail(first, 'card reader away', true);
    const second = await tenant.task(charge);
    assert.equal(second.attempt, 1);
    await tenant.complete(second, { paid: 'yes' });
    await tenant.complete(await tenant.task(ship), { parcel: 'P1' });
    const done = await tenant.until(id, 'completed');
    assert.deepEqual(done.context.data, {
      order: 7,
      items: ['a', 'b'],
      paid: 'yes',
      parcel: 'P1',
    });
    const rows = (await tenant.outputs(id)).filter((row) => row.output_ref === null);
    const names = rows
      .map((row) => row.block_id)
      .filter((name) => !['first', 'items', 'loop'].includes(name));
    assert.deepEqual(names.sort(), [
      ...['audit', 'charge', 'end', 'item', 'item', 'mail', 'pack', 'quick', 'ship', 'start'],
      ...['tick', 'tick'],
    ]);
    assert.deepEqual(rows.find((row) => row.block_id === 'end')?.output, { parcel: 'P1' });
  });

  test('keys lead to one instance from any shard, alone and in batches', async () => {
    const sequence = await tenant.sequence([step('a', 'noop')]);
    const body = (n: number) => tenant.creation(sequence, { idempotency_key: `k${n}` });
    const twice = await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        tenant.post<{ id: string; deduplicated: boolean }>('/instances', body(n % 50)),
      ),
    );
    assert.equal(new Set(twice.map((reply) => reply.body.id)).size, 50);
    assert.equal(twice.filter((reply) => !reply.body.deduplicated).length, 50);
    const instances = Array.from({ length: 60 }, (_, n) => body(n));
    const batch = await tenant.post('/instances/batch', { instances });
    assert.deepEqual(batch.body, { count: 60, created: 10 });
    await eventually(async () =>
      assert.equal(await count(`sequence_id=${sequence}&state=completed`), 60),
    );
  });

  test('workers drain a batch: every task once, every instance to its end', async () => {
    const handlers = Array.from({ length: 5 }, newHandler);
    const sequence = await tenant.sequence(handlers.map((name, index) => step(`s${index}`, name)));
    await tenant.post('/instances/batch', {
      instances: Array(40).fill(tenant.creation(sequence)),
    });
    const seen: string[] = [];
    await Promise.all(
      handlers.map(async (handler, index) => {
        let served = 0;
        await eventually(async () => {
          const more = { worker_id: `w${index}`, limit: 10, wait_ms: 200 };
          const tasks = await tenant.poll(handler, more);
          seen.push(...tasks.map((task) => task.id));
          served += tasks.length;
          await Promise.all(tasks.map((task) => tenant.complete(task, { [handler]: 1 })));
          assert.equal(served, 40);
        });
      }),
    );
    assert.equal(new Set(seen).size, 200);
    assert.equal(seen.length, 200);
    await eventually(async () =>
      assert.equal(await count(`sequence_id=${sequence}&state=completed`), 40),
    );
  });

  test('signals, moves, bulk and retry reach their instances wherever these live', async () => {
    const handler = newHandler();
    const sequence = await tenant.sequence([step('a', handler)]);
    const ids: string[] = [];
    for (let index = 0; index < 8; index++) ids.push(await tenant.create(sequence));
    for (const id of ids) {
      await tenant.post(`/instances/${id}/signals`, { signal_type: 'pause' });
      assert.equal((await tenant.instance(id)).state, 'paused');
    }
    const bulk = (state: string) =>
      tenant.patch('/instances/bulk/state', { filter: { sequence_id: sequence }, state });
    assert.deepEqual((await bulk('failed')).body, { count: 8, updated: 8 });
    const dlq = await tenant.get<TaskInstance[]>(`/instances/dlq?sequence_id=${sequence}`);
    assert.deepEqual(dlq.body.map((item) => item.id).sort(), [...ids].sort());
    for (const id of ids) {
      assert.equal((await tenant.post(`/instances/${id}/retry`)).status, 200);
      await tenant.until(id, 'waiting');
    }
    const tasks = await tenant.poll(handler, { limit: 100 });
    assert.equal(tasks.length, 8);
    assert.deepEqual((await bulk('cancelled')).body, { count: 8, updated: 8 });
  });

  test('a deleted sequence is gone for every shard', async () => {
    const handler = newHandler();
    const sequence = await tenant.sequence([step('a', handler)]);
    const ids: string[] = [];
    for (let index = 0; index < 8; index++) ids.push(await tenant.create(sequence));
    assert.equal((await tenant.delete(`/sequences/${sequence}`)).status, 409);
    for (const id of ids) await tenant.patch(`/instances/${id}/state`, { state: 'cancelled' });
    assert.equal((await tenant.delete(`/sequences/${sequence}`)).status, 204);
    for (const id of ids) assert.equal((await tenant.get(`/instances/${id}`)).status, 404);
    for (let index = 0; index < 8; index++) {
      assert.equal((await tenant.post('/instances', tenant.creation(sequence))).status, 404);
    }
  });

  test('all of it is there after a kill', async () => {
    const before = await tenant.get<TaskInstance[]>('/instances?limit=1000');
    await api.restart();
    const after = await tenant.get<TaskInstance[]>('/instances?limit=1000');
    assert.deepEqual(after.body, before.body);
  });
}
