/** Events, those who wait for them, the triggers that they fire, and kept signals. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { EventReceipt } from '../../schema/event.js';
import type { TaskInstance } from '../../schema/instance.js';
import type { StoredSignal } from '../../schema/signal.js';
import { eventually, type Json, newHandler, step, type Tenant } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';
import { stripe } from '../helpers/providers.js';
import { DOWN_MS, subject, untilKilled } from '../helpers/survival.js';

export const events = subject();
const { survives } = events;

const wait = (id: string, name: string, more: Json = {}) =>
  step(id, 'wait_for_event', { params: { name, ...more } });

const send = async (tenant: Tenant, event_name: string, payload: unknown, more: Json = {}) => {
  const body = { event_name, producer_event_id: randomUUID(), payload, ...more };
  return expectStatus(await tenant.post<EventReceipt>('/events', body), 201);
};

survives('a step that waited is ended by an event that comes after the restart', async (tenant) => {
  const id = await tenant.runUntil('waiting', [wait('w', 'n')]);
  return async () => {
    assert.equal((await tenant.instance(id)).state, 'waiting');
    assert.equal((await send(tenant, 'n', 1)).matched, 1);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.outputsOf(id), { w: 1 });
  };
});

survives('the time-out of a wait comes although the server was down', async (tenant) => {
  let id = '';
  return {
    atTheKill: async () => {
      id = await tenant.runUntil('waiting', [wait('w', 'n', { timeout_ms: DOWN_MS })]);
    },
    check: async () => {
      const { failure } = await tenant.until(id, 'failed');
      assert.equal(failure?.code, 'timeout');
    },
  };
});

survives('an event that was kept goes to a step that waits after the restart', async (tenant) => {
  const { event_id } = await send(tenant, 'n', 'kept', { producer_event_id: 'p' });
  return async () => {
    const body = { event_name: 'other', producer_event_id: 'p', payload: 2 };
    const again = await tenant.post<EventReceipt>('/events', body);
    assert.deepEqual([again.status, again.body.event_id], [200, event_id]);
    const id = await tenant.runUntil('completed', [wait('w', 'n')]);
    assert.deepEqual(await tenant.outputsOf(id), { w: 'kept' });
  };
});

survives('what an event was to cancel is cancelled after the restart', async (tenant) => {
  const cancel_on = [{ event: 'gone', key: '{{ data.order }}' }];
  const sequence = await tenant.sequence([step('s', newHandler())], { cancel_on });
  const context = { data: { order: 7 } };
  const later = await tenant.create(sequence, { context: { data: { order: 8 } } });
  const ids: string[] = [];
  return {
    atTheKill: async () => {
      for (let i = 0; i < 20; i++) ids.push(await tenant.create(sequence, { context }));
      const { cancelled } = await send(tenant, 'gone', null, { correlation_key: '7' });
      assert.equal(cancelled, ids.length);
    },
    check: async () => {
      for (const id of ids) await tenant.until(id, 'cancelled');
      assert.equal((await send(tenant, 'gone', null, { correlation_key: '8' })).cancelled, 1);
      await tenant.until(later, 'cancelled');
    },
  };
});

survives(
  'a pattern limits its keys after the restart, with their earlier attempts',
  async (tenant) => {
    const limit = { max_count: 1, window_seconds: 3_600 };
    expectStatus(await tenant.put('/rate-limits/bank:*', limit), 200);
    const call = step('s', 'noop', { rate_limit_key: 'bank:{{ data.customer }}' });
    const sequence = await tenant.sequence([call]);
    const create = (customer: string) =>
      tenant.create(sequence, { context: { data: { customer } } });
    await tenant.until(await create('a'), 'completed');
    return async () => {
      await tenant.until(await create('b'), 'completed');
      const id = await create('a');
      await eventually(async () => {
        const { state, next_fire_at } = await tenant.instance(id);
        assert.ok(state === 'scheduled' && Date.parse(next_fire_at ?? '') > Date.now(), state);
      });
    };
  },
);

survives('signals that were kept are taken after the restart, in their order', async (tenant) => {
  const handler = newHandler();
  const id = await tenant.run([step('s', handler), ...['a', 'b', 'c'].map((at) => wait(at, 'go'))]);
  for (const payload of [1, { two: 2 }]) await tenant.signal(id, 'custom:go', payload);
  return async () => {
    await tenant.complete(await tenant.task(handler));
    await tenant.signal(id, 'custom:go', 3);
    await tenant.until(id, 'completed');
    const { s: _, ...taken } = await tenant.outputsOf(id);
    assert.deepEqual(taken, { a: 1, b: { two: 2 }, c: 3 });
    const { body } = await tenant.get<StoredSignal[]>(`/instances/${id}/signals`);
    assert.deepEqual(column(body, 'status'), ['taken', 'taken', 'taken']);
  };
});

survives(
  'every accepted event reaches every step that waited for it, exactly once',
  async (tenant, { sql }) => {
    const sequence = await tenant.sequence([wait('w', 'all', { key: '{{ data.key }}' })]);
    const ids = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        tenant.create(sequence, { context: { data: { key: `k${n % 20}` } } }),
      ),
    );
    for (const id of ids) await tenant.until(id, 'waiting');
    return {
      atTheKill: () =>
        Promise.all(
          Array.from({ length: 20 }, async (_, n) => {
            const { matched } = await send(tenant, 'all', n, { correlation_key: `k${n}` });
            assert.equal(matched, 2);
          }),
        ),
      check: async () => {
        for (const [at, id] of ids.entries()) {
          await tenant.until(id, 'completed');
          assert.deepEqual(await tenant.outputsOf(id), { w: at % 20 });
        }
        const takes =
          'select targets, (select count(*)::int from event_takes where event_id = e.id) takes ' +
          'from events e where tenant_id = $1';
        await eventually(async () => {
          const { rows } = await sql.query(takes, [tenant.name]);
          assert.deepEqual(rows, Array(20).fill({ targets: null, takes: 2 }));
        });
      },
    };
  },
);

survives('an event fires its trigger once, whenever the server dies', async (tenant, { sql }) => {
  const slug = `t-${randomUUID()}`;
  await tenant.sequence([step('a', 'noop')], { name: slug });
  const trigger = { slug, tenant_id: tenant.name, namespace: 'test', sequence_name: slug };
  const config = { event_name: 'paid' };
  const body = { ...trigger, trigger_type: 'event', config };
  expectStatus(await tenant.post('/triggers', body), 201);
  const untilFired = () =>
    eventually(async () => {
      const text = 'select 1 from events where tenant_id = $1 and fires is not null';
      assert.equal((await sql.query(text, [tenant.name])).rowCount, 0);
    });
  const { event_id: after } = await send(tenant, 'paid', { n: 'after' });
  const { event_id: before } = await send(tenant, 'nobody', { n: 'before' });
  const { event_id: old } = await send(tenant, 'nobody', { n: 'old' });
  await untilFired();
  const accepted = ['after', 'before', 'old'];
  /** The one that is sent while the server dies; it is sent again after the restart. */
  let last = '';
  const pay = async (n: string) => {
    last = n;
    const event = { event_name: 'paid', producer_event_id: n, payload: { n } };
    const { status } = await tenant.post('/events', event);
    assert.ok(status === 201 || status === 200, `${status}`);
    accepted.push(n);
  };
  let work: Promise<unknown>;
  return {
    atTheKill: async () => {
      work = untilKilled(60, (turn) => pay(`${turn}`));
    },
    // The instance is there and its event does not say so yet; the instance is not there yet; and
    // an event that was over long ago.
    whileDown: async () => {
      const text = 'update events set fires = $1 where id = any($2)';
      await sql.query(text, [JSON.stringify([slug]), [after, before, old]]);
      const ended = "update events set status = 'expired', ended_at = now() - interval '30 days'";
      await sql.query(`${ended} where id = $1`, [old]);
    },
    check: async () => {
      await work;
      if (!accepted.includes(last)) await pay(last);
      await untilFired();
      const list = await tenant.get<TaskInstance[]>('/instances?limit=1000');
      const numbers = expectStatus(list, 200).map(({ context }) => context.data.n);
      assert.deepEqual(numbers.sort(), accepted.sort());
    },
  };
});

survives(
  'a delivery of a provider has one effect, whenever the server dies',
  async (tenant, api) => {
    const secret = 'a secret of the provider';
    const slug = `p-${randomUUID()}`;
    const publish = { event: 'paid', key: '{{ body.order }}', payload: '{{ body.order }}' };
    const trigger = { slug, tenant_id: tenant.name, publish, verify: { scheme: 'stripe', secret } };
    expectStatus(await tenant.post('/triggers', trigger), 201);
    const wanted = { key: '{{ data.key }}' };
    const sequence = await tenant.sequence([
      wait('w', 'paid', wanted),
      wait('never', 'paid', wanted),
    ]);
    const orders = Array.from({ length: 40 }, (_, n) => `o-${n}`);
    const ids = await Promise.all(
      orders.map((key) => tenant.create(sequence, { context: { data: { key } } })),
    );
    for (const id of ids) await tenant.until(id, 'waiting');
    /** As the provider does, which repeats what it has no answer to. */
    const deliver = async (order: string) => {
      const raw = JSON.stringify({ id: `evt_${order}`, order });
      const headers = stripe(secret, raw);
      expectStatus(await tenant.request('POST', `/webhooks/${slug}`, { raw, headers }), 202);
    };
    let work: Promise<unknown>;
    return {
      atTheKill: async () => {
        work = untilKilled(orders.length, (turn) => deliver(orders[turn] ?? ''));
      },
      check: async () => {
        await work;
        for (const order of orders) await deliver(order);
        for (const [at, id] of ids.entries()) {
          await eventually(async () =>
            assert.deepEqual(await tenant.outputsOf(id), { w: orders[at] }),
          );
        }
        const text = 'select count(*)::int as events from events where tenant_id = $1';
        const { rows } = await api.sql.query(text, [tenant.name]);
        assert.deepEqual(rows, [{ events: orders.length }]);
      },
    };
  },
);
