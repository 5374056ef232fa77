/** What becomes of events, of those who wait for them and of kept signals when the server is killed. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { EventReceipt } from '../../schema/event.js';
import type { StoredSignal } from '../../schema/instance.js';
import { eventually, type Json, sleep, step, type Tenant, useApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { survival } from '../helpers/survival.js';

const api = useApi();
const survives = survival(api);

const wait = (id: string, name: string, more: Json = {}) =>
  step(id, 'wait_for_event', { params: { name, ...more } });

const body = (event_name: string, payload: unknown, producer_event_id: string = randomUUID()) => ({
  event_name,
  producer_event_id,
  payload,
});
const send = async (tenant: Tenant, ...event: Parameters<typeof body>) =>
  expectStatus(await tenant.post<EventReceipt>('/events', body(...event)), 201);

survives('a step that waited is ended by an event that comes after the restart', async (tenant) => {
  const id = await tenant.run([wait('w', 'n')]);
  await tenant.until(id, 'waiting');
  return async () => {
    assert.equal((await tenant.instance(id)).state, 'waiting');
    assert.equal((await send(tenant, 'n', 1)).matched, 1);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.outputsOf(id), { w: 1 });
  };
});

survives('the time-out of a wait comes although the server was down', async (tenant) => {
  const id = await tenant.run([wait('w', 'n', { timeout_ms: 3_000 })]);
  await tenant.until(id, 'waiting');
  return async () => {
    await tenant.until(id, 'failed');
    assert.equal((await tenant.instance(id)).failure?.code, 'timeout');
  };
});

survives('an event that was kept goes to a step that waits after the restart', async (tenant) => {
  const { event_id } = await send(tenant, 'n', 'kept', 'p');
  return async () => {
    const again = await tenant.post<EventReceipt>('/events', body('other', 2, 'p'));
    assert.deepEqual([again.status, again.body.event_id], [200, event_id]);
    const id = await tenant.runUntil('completed', [wait('w', 'n')]);
    assert.deepEqual(await tenant.outputsOf(id), { w: 'kept' });
  };
});

survives('signals that were kept are taken after the restart, in their order', async (tenant) => {
  const id = await tenant.run([
    sleep('s', 4_000),
    wait('a', 'go'),
    wait('b', 'go'),
    wait('c', 'go'),
  ]);
  for (const payload of [1, { two: 2 }]) await tenant.signal(id, 'custom:go', payload);
  return async () => {
    await tenant.until(id, 'waiting');
    await tenant.signal(id, 'custom:go', 3);
    await tenant.until(id, 'completed');
    const { s: _, ...taken } = await tenant.outputsOf(id);
    assert.deepEqual(taken, { a: 1, b: { two: 2 }, c: 3 });
    const { body: list } = await tenant.get<StoredSignal[]>(`/instances/${id}/signals`);
    assert.deepEqual(
      list.map(({ status }) => status),
      ['taken', 'taken', 'taken'],
    );
  };
});

// The last one, so that the server is killed while these are under way.
survives(
  'every event that was accepted reaches each step that waited for it, once',
  async (tenant) => {
    const sequence = await tenant.sequence([wait('w', 'all', { key: '{{ data.key }}' })]);
    const keys = Array.from({ length: 40 }, (_, n) => `k${n % 20}`);
    const ids = await Promise.all(
      keys.map((key) => tenant.create(sequence, { context: { data: { key } } })),
    );
    for (const id of ids) await tenant.until(id, 'waiting');
    const accepted = await Promise.all(
      Array.from({ length: 20 }, (_, n) => {
        const event = { ...body('all', n), correlation_key: `k${n}` };
        return tenant.post<EventReceipt>('/events', event);
      }),
    );
    assert.ok(accepted.every(({ status, body: { matched } }) => status === 201 && matched === 2));
    return async () => {
      for (const [at, id] of ids.entries()) {
        await tenant.until(id, 'completed');
        assert.deepEqual(await tenant.outputsOf(id), { w: at % 20 });
      }
      await eventually(async () => {
        const open = await api.sql.query('select 1 from events where targets is not null');
        assert.equal(open.rowCount, 0);
      });
      const takes = await api.sql.query(
        'select 1 from event_takes t join events e on e.id = t.event_id where event_name = $1',
        ['all'],
      );
      assert.equal(takes.rowCount, 40);
    };
  },
);
