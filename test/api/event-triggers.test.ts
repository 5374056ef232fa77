/** Triggers that events fire: which event fires which, once, and what their instances are told. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { EventReceipt, EventReceipts } from '../../schema/event.js';
import type { TaskInstance } from '../../schema/instance.js';
import type { Trigger } from '../../schema/trigger.js';
import { eventually, type Json, step, type Tenant, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

const api = useSharedApi();

/** Of a new sequence, fired by events with the name. */
async function trigger(tenant: Tenant, event_name: string, more: Json = {}, config: Json = {}) {
  const sequence_name = `s-${randomUUID()}`;
  await tenant.sequence([step('a', 'noop')], { name: sequence_name });
  const reply = await tenant.post<Trigger>('/triggers', {
    slug: `t-${randomUUID()}`,
    tenant_id: tenant.name,
    namespace: 'test',
    sequence_name,
    trigger_type: 'event',
    config: { event_name, ...config },
    ...more,
  });
  return expectStatus(reply, 201).slug;
}

const send = (tenant: Tenant, event_name: string, more: Json = {}) =>
  tenant.post<EventReceipt>('/events', { event_name, producer_event_id: randomUUID(), ...more });

/** What was started in the tenant, once there is as much of it. */
const started = (tenant: Tenant, count: number) =>
  eventually(async () => {
    const list = expectStatus(await tenant.get<TaskInstance[]>('/instances'), 200);
    assert.equal(list.length, count);
    for (const { state } of list) assert.equal(state, 'completed');
    return list;
  });

const slugsOf = (instances: readonly TaskInstance[]) =>
  instances.map(({ metadata }) => metadata._trigger).sort();

describe('triggers of events', () => {
  test('an event fires every trigger with its name, which starts an instance with the payload', async () => {
    const tenant = api.tenant();
    const slugs = [await trigger(tenant, 'paid'), await trigger(tenant, 'paid')];
    await trigger(tenant, 'other');
    const more = { correlation_key: 'A-17', payload: { amount: 12 } };
    const receipt = expectStatus(await send(tenant, 'paid', more), 201);
    assert.deepEqual([receipt.triggers, receipt.matched, receipt.satisfied], [2, 0, false]);
    const instances = await started(tenant, 2);
    assert.deepEqual(slugsOf(instances), slugs.sort());
    for (const { context, metadata, priority } of instances) {
      assert.deepEqual([context.data, priority], [{ amount: 12 }, 'Normal']);
      assert.deepEqual(metadata, {
        _trigger: metadata._trigger,
        _trigger_type: 'event',
        _trigger_event: {
          source: 'event',
          event_id: receipt.event_id,
          event_name: 'paid',
          correlation_key: 'A-17',
        },
      });
    }
    // It is kept for steps like any other, and nothing shows what it has fired.
    const event = expectStatus(await tenant.get<Json>(`/events/${receipt.event_id}`), 200);
    assert.deepEqual([event.status, Object.hasOwn(event, 'fires')], ['pending', false]);
  });

  test('an event with a payload that is no object fires with that as its member payload', async () => {
    const tenant = api.tenant();
    await trigger(tenant, 'paid');
    await send(tenant, 'paid', { payload: [1, 2] });
    await send(tenant, 'paid');
    const data = (await started(tenant, 2)).map(({ context }) => JSON.stringify(context.data));
    assert.deepEqual(data.sort(), ['{"payload":[1,2]}', '{"payload":null}']);
  });

  test('an event fires a trigger with a correlation_key only if it has that key', async () => {
    const tenant = api.tenant();
    const plain = await trigger(tenant, 'paid');
    const keyed = await trigger(tenant, 'paid', {}, { correlation_key: 'A-17' });
    const keys = [undefined, 'A-18', 'A-17'];
    const counts: unknown[] = [];
    for (const correlation_key of keys) {
      counts.push((await send(tenant, 'paid', { correlation_key })).body.triggers);
    }
    assert.deepEqual(counts, [1, 1, 2]);
    assert.deepEqual(slugsOf(await started(tenant, 4)), [plain, plain, plain, keyed].sort());
  });

  test('an event fires nothing that is switched off, and nothing of another tenant', async () => {
    const [mine, other] = [api.tenant(), api.tenant()];
    const off = await trigger(mine, 'paid', { enabled: false });
    await trigger(other, 'paid');
    assert.equal(expectStatus(await send(mine, 'paid'), 201).triggers, undefined);
    await mine.patch(`/triggers/${off}`, { enabled: true });
    assert.equal(expectStatus(await send(mine, 'paid'), 201).triggers, 1);
    assert.equal((await started(mine, 1)).length, 1);
    await mine.patch(`/triggers/${off}`, { config: { event_name: 'settled' } });
    assert.equal(expectStatus(await send(mine, 'paid'), 201).triggers, undefined);
    assert.deepEqual(expectStatus(await other.get('/instances'), 200), []);
  });

  test('an event that is sent twice fires once', async () => {
    const tenant = api.tenant();
    await trigger(tenant, 'paid');
    const event = { producer_event_id: 'settlement-4711' };
    const replies = await Promise.all([1, 2, 3].map(() => send(tenant, 'paid', event)));
    replies.push(await send(tenant, 'paid', event));
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 200, 200, 201]);
    const told = replies.map(({ body }) => `${body.duplicate} ${body.triggers}`).sort();
    assert.deepEqual(told, [...Array(3).fill('true undefined'), 'false 1'].sort());
    await send(tenant, 'paid');
    await started(tenant, 2);
  });

  test('an event of a batch fires like any other, and those beside it that fire nothing do not', async () => {
    const tenant = api.tenant();
    await trigger(tenant, 'paid');
    const names = Array.from({ length: 60 }, (_, n) => (n % 2 === 0 ? 'paid' : 'other'));
    const events = names.map((event_name, n) => ({
      event_name,
      producer_event_id: `e-${n}`,
      payload: { n },
    }));
    const { outcomes } = expectStatus(
      await tenant.post<EventReceipts>('/events/batch', { events }),
      200,
    );
    assert.deepEqual(
      outcomes.map(({ triggers }) => triggers),
      names.map((name) => (name === 'paid' ? 1 : undefined)),
    );
    const numbers = (await started(tenant, 30)).map(({ context }) => Number(context.data.n));
    assert.deepEqual(
      numbers.sort((a, b) => a - b),
      Array.from({ length: 30 }, (_, n) => 2 * n),
    );
  });

  test('an event that cannot start the instance of one trigger fires the others', async () => {
    const tenant = api.tenant();
    const name = `s-${randomUUID()}`;
    const input_schema = { type: 'object', required: ['amount'] };
    await tenant.sequence([step('a', 'noop')], { name, input_schema });
    await trigger(tenant, 'paid', { slug: `a-${randomUUID()}`, sequence_name: name });
    const fired = await trigger(tenant, 'paid', { slug: `b-${randomUUID()}` });
    const { event_id, triggers } = expectStatus(await send(tenant, 'paid'), 201);
    assert.equal(triggers, 2);
    assert.deepEqual(slugsOf(await started(tenant, 1)), [fired]);
    await eventually(async () => {
      const text = 'select 1 from events where id = $1 and fires is not null';
      assert.equal((await api.sql.query(text, [event_id])).rowCount, 0);
    });
  });
});
