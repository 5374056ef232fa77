/** Creations that sequences collect, over a kill of the server. */

import assert from 'node:assert/strict';
import type { EventReceipt } from '../../schema/event.js';
import type { InstanceCreated } from '../../schema/instance.js';
import { type Json, LONG_MS, step, type Tenant } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';
import { DOWN_MS, subject } from '../helpers/survival.js';

export const collectedCreations = subject();
const { survives } = collectedCreations;

const NOOP = [step('a', 'noop')];

async function collect(tenant: Tenant, sequence: string, data: Json, key?: string) {
  const more = key === undefined ? {} : { idempotency_key: key };
  const body = tenant.creation(sequence, { context: { data }, ...more });
  return expectStatus(await tenant.post<InstanceCreated>('/instances', body), 202);
}

survives(
  'acknowledged creations of a batch start once, although the server was down when they were due',
  async (tenant) => {
    const sequence = await tenant.sequence(NOOP, { batch: { size: 100, wait_ms: DOWN_MS } });
    let told: InstanceCreated[] = [];
    return {
      atTheKill: async () => {
        const all = Array.from({ length: 20 }, (_, n) => collect(tenant, sequence, { n }, `k${n}`));
        told = await Promise.all(all);
      },
      check: async () => {
        const ids = [...new Set(column(told, 'id'))];
        const started = await Promise.all(ids.map((id) => tenant.until(id, 'completed')));
        const items = started.flatMap(({ context }) => context.data.items as { n: number }[]);
        const ns = column(items, 'n').sort((a, b) => a - b);
        assert.deepEqual(ns, [...told.keys()]);
        const body = tenant.creation(sequence, { context: { data: {} }, idempotency_key: 'k7' });
        const again = await tenant.post<InstanceCreated>('/instances', body);
        const expected = { id: told[7]?.id, deduplicated: true };
        assert.deepEqual(expectStatus(again, 201), expected);
      },
    };
  },
);

survives(
  'a debounce goes on with the creations of before, and knows their keys',
  async (tenant) => {
    const sequence = await tenant.sequence(NOOP, { debounce: { wait_ms: LONG_MS } });
    const { id } = await collect(tenant, sequence, { n: 1 }, 'a');
    return async () => {
      const [same, next] = [
        await collect(tenant, sequence, { n: 2 }, 'a'),
        await collect(tenant, sequence, { n: 3 }),
      ];
      assert.deepEqual([same.id, same.deduplicated, next.id], [id, true, id]);
      expectStatus(await tenant.post(`/pending-starts/${id}/start`), 200);
      assert.deepEqual((await tenant.until(id, 'completed')).context.data, { n: 3 });
    };
  },
);

survives('an acknowledged event takes out the creations that it names', async (tenant) => {
  const cancel_on = [{ event: 'dropped', key: '{{ data.items.0.key }}' }];
  const sequence = await tenant.sequence(NOOP, {
    batch: { size: 100, wait_ms: LONG_MS },
    cancel_on,
  });
  let id = '';
  return {
    atTheKill: async () => {
      for (const [n, key] of ['a', 'b', 'a'].entries()) {
        id = (await collect(tenant, sequence, { n, key })).id;
      }
      const event = { event_name: 'dropped', producer_event_id: 'e1', correlation_key: 'a' };
      const sent = await tenant.post<EventReceipt>('/events', event);
      assert.equal(expectStatus(sent, 201).cancelled, 1);
    },
    check: async () => {
      expectStatus(await tenant.post(`/pending-starts/${id}/start`), 200);
      const { context } = await tenant.until(id, 'completed');
      assert.deepEqual(context.data, { items: [{ n: 1, key: 'b' }] });
    },
  };
});
