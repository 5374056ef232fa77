/** Sequences that collect creations: `debounce` and `batch` (docs/concurrency.md). */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe } from 'node:test';
import type { CronSchedule, ScheduleCreated, ScheduleRun } from '../../schema/cron.js';
import type { EventDetails, EventReceipt } from '../../schema/event.js';
import type { AuditEntry, InstanceCreated, TaskInstance } from '../../schema/instance.js';
import type { PendingStart } from '../../schema/pending-start.js';
import type { TriggerFired } from '../../schema/trigger.js';
import {
  eventually,
  type Json,
  LONG_MS,
  newHandler,
  step,
  type Tenant,
  testsOf,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';

const api = useSharedApi();
const test = testsOf(api);
const quick = testsOf(useSharedApi('quick'));

const NOOP = [step('a', 'noop')];
const LONG = { wait_ms: LONG_MS };
const PENDING = '/pending-starts';

/** A sequence that collects creations; resolves with its name. */
async function sequence(tenant: Tenant, more: Json): Promise<string> {
  const name = `s-${randomUUID()}`;
  await tenant.sequence(NOOP, { name, ...more });
  return name;
}

const bodyOf = (tenant: Tenant, sequence: string, data: Json, more: Json = {}) => ({
  ...{ tenant_id: tenant.name, namespace: 'test', sequence, context: { data } },
  ...more,
});

async function collect(tenant: Tenant, sequence: string, data: Json, more: Json = {}) {
  const body = bodyOf(tenant, sequence, data, more);
  return expectStatus(await tenant.post<InstanceCreated>('/instances', body), 202);
}

async function pending(tenant: Tenant): Promise<PendingStart[]> {
  return expectStatus(await tenant.get<PendingStart[]>(PENDING), 200);
}

async function startNow(tenant: Tenant, id: string): Promise<TaskInstance> {
  expectStatus(await tenant.post(`${PENDING}/${id}/start`), 200);
  return tenant.until(id, 'completed');
}

describe('debounce', () => {
  test('only the last creation of a key starts, under the id that all were told', async (tenant) => {
    const name = await sequence(tenant, {
      debounce: { key: '{{ data.order }}', ...LONG },
    });
    const told: InstanceCreated[] = [];
    for (let n = 1; n <= 3; n++) {
      const more = { priority: 'high', metadata: { n } };
      told.push(await collect(tenant, name, { order: 7, n }, more));
    }
    const other = await collect(tenant, name, { order: 8 });
    const [first] = told;
    assert.ok(first?.collected && first.starts_at !== undefined);
    assert.deepEqual(new Set(column(told, 'id')), new Set([first.id]));
    assert.notEqual(other.id, first.id);
    const started = await startNow(tenant, first.id);
    assert.deepEqual(started.context.data, { order: 7, n: 3 });
    assert.deepEqual([started.priority, started.metadata], ['High', { n: 3 }]);
    await startNow(tenant, other.id);
    assert.deepEqual(await pending(tenant), []);
    const list = expectStatus(await tenant.get<TaskInstance[]>('/instances'), 200);
    assert.equal(list.length, 2);
    const later = await collect(tenant, name, { order: 7 });
    assert.notEqual(later.id, first.id);
  });

  test('a start that is not put off happens after wait_ms', async (tenant) => {
    const name = await sequence(tenant, { debounce: { wait_ms: 1 } });
    const { id } = await collect(tenant, name, {});
    await tenant.until(id, 'completed');
  });

  test('max_wait_ms bounds the time from the first creation', async (tenant) => {
    const debounce = { wait_ms: LONG_MS, max_wait_ms: LONG_MS };
    const name = await sequence(tenant, { debounce });
    const first = await collect(tenant, name, {});
    const second = await collect(tenant, name, {});
    assert.equal(second.starts_at, first.starts_at);
    const [start] = await pending(tenant);
    const { created_at = '', starts_at = '' } = start ?? {};
    assert.equal(Date.parse(starts_at) - Date.parse(created_at), LONG_MS);
  });

  test('before it starts, an instance is listed, answers 404 or 409 with its time, can be started now or dropped, and is not seen by others', async (tenant) => {
    const name = await sequence(tenant, { debounce: { key: '{{ data.a }}', ...LONG } });
    const { id, starts_at } = await collect(tenant, name, { a: 'x' }, { idempotency_key: 'k1' });
    await collect(tenant, name, { a: 'x' });
    const [start, ...others] = await pending(tenant);
    assert.deepEqual(others, []);
    const { created_at: _, starts_at: at, ...facts } = start ?? assert.fail();
    assert.deepEqual(facts, {
      ...{ id, tenant_id: tenant.name, namespace: 'test', sequence: name },
      ...{ kind: 'debounce', key: 'x', count: 2, cancelled: 0, error: null },
    });
    assert.ok(at >= (starts_at ?? ''));
    assert.deepEqual(expectStatus(await tenant.get(`${PENDING}/${id}`), 200), start);
    const { body } = await tenant.get<{ error: string }>(`/instances/${id}`);
    assert.match(body.error, new RegExp(`it collects creations until ${at}`));
    const stranger = api.tenant();
    assert.deepEqual(await pending(stranger), []);
    const unseen = await stranger.get<{ error: string }>(`/instances/${id}`);
    assert.match(expectStatus(unseen, 404).error, new RegExp(`instance ${id}$`));
    for (const [method, path, sent] of [
      ['PATCH', 'state', { state: 'cancelled' }],
      ['PATCH', 'context', { context: { data: {} } }],
      ['POST', 'signals', { signal_type: 'pause' }],
      ['POST', 'retry', {}],
      ['POST', 'fork', { from_block_id: 'a' }],
    ] as const) {
      const request = (by: Tenant) =>
        by.request<{ error: string }>(method, `/instances/${id}/${path}`, { body: sent });
      const { error } = expectStatus(await request(tenant), 409);
      const why = `instance ${id} has not started: it collects creations until ${at}`;
      assert.match(error, new RegExp(`${why}; start or drop it at /pending-starts/${id}`));
      expectStatus(await request(stranger), 404);
    }
    for (const reply of [
      await stranger.get(`${PENDING}/${id}`),
      await stranger.post(`${PENDING}/${id}/start`),
      await stranger.delete(`${PENDING}/${id}`),
    ]) {
      expectStatus(reply, 404);
    }
    expectStatus(await tenant.delete(`${PENDING}/${id}`), 204);
    expectStatus(await tenant.get(`${PENDING}/${id}`), 404);
    // Its keys are free again.
    const again = await collect(tenant, name, { a: 'x' }, { idempotency_key: 'k1' });
    assert.equal(again.deduplicated, false);
    const started = await startNow(tenant, again.id);
    assert.deepEqual(started.context.data, { a: 'x' });
    expectStatus(await tenant.delete(`${PENDING}/${again.id}`), 404);
  });
});

describe('batch', () => {
  test('one instance starts with the list of `size` creations, in their order, with config and metadata of the first', async (tenant) => {
    const name = await sequence(tenant, {
      batch: { key: '{{ data.to }}', size: 3, ...LONG },
      input_schema: { type: 'object', required: ['to', 'n'] },
    });
    const told: InstanceCreated[] = [];
    for (let n = 1; n <= 4; n++) {
      const body = bodyOf(tenant, name, { to: 'a', n }, { metadata: { n } });
      body.context = { ...body.context, ...{ config: { n } } };
      told.push(expectStatus(await tenant.post<InstanceCreated>('/instances', body), 202));
    }
    const [first, , third, fourth] = told;
    assert.equal(first?.id, third?.id);
    assert.notEqual(third?.id, fourth?.id);
    const started = await tenant.until(first?.id ?? '', 'completed');
    assert.deepEqual(started.context.data, { items: [1, 2, 3].map((n) => ({ to: 'a', n })) });
    assert.deepEqual([started.context.config, started.metadata], [{ n: 1 }, { n: 1 }]);
    const [left] = await pending(tenant);
    assert.deepEqual([left?.id, left?.count], [fourth?.id, 1]);
    const invalid = bodyOf(tenant, name, { to: 'a' });
    const refused = await tenant.post<{ error: string }>('/instances', invalid);
    assert.match(expectStatus(refused, 422).error, /context\.data .*n/);
    assert.equal((await pending(tenant))[0]?.count, 1);
  });

  test('what there is starts wait_ms after the first creation', async (tenant) => {
    const name = await sequence(tenant, { batch: { size: 1_000, wait_ms: 100 } });
    const { id } = await collect(tenant, name, { n: 1 });
    const started = await tenant.until(id, 'completed');
    assert.deepEqual(started.context.data, { items: [{ n: 1 }] });
  });

  quick('starts early when the next creation does not fit into a context', async (tenant) => {
    const name = await sequence(tenant, { batch: { size: 1_000, ...LONG } });
    const text = 'é'.repeat(800);
    const ids: string[] = [];
    for (let n = 1; n <= 3; n++) ids.push((await collect(tenant, name, { n, text })).id);
    assert.deepEqual([ids[0] === ids[1], ids[1] === ids[2]], [true, false]);
    const started = await tenant.until(ids[0] ?? '', 'completed');
    assert.deepEqual(column(started.context.data.items as Json[], 'n'), [1, 2]);
  });

  test('every one of many concurrent creations is in exactly one instance', async (tenant) => {
    const name = await sequence(tenant, { batch: { size: 7, wait_ms: 100 } });
    const ns = Array.from({ length: 100 }, (_, n) => n);
    const told = await Promise.all(ns.map((n) => collect(tenant, name, { n })));
    const ids = [...new Set(column(told, 'id'))];
    const all = await Promise.all(ids.map((id) => tenant.until(id, 'completed')));
    const items = all.flatMap(({ context }) => context.data.items as { n: number }[]);
    assert.deepEqual(
      column(items, 'n').sort((a, b) => a - b),
      ns,
    );
    assert.ok(all.every(({ context }) => (context.data.items as Json[]).length <= 7));
    for (const [n, { id }] of told.entries()) {
      const { context } = all.find((instance) => instance.id === id) ?? assert.fail();
      assert.ok((context.data.items as { n: number }[]).some((item) => item.n === n));
    }
  });
});

describe('an idempotency key', () => {
  test('is used once by collected and other creations, before and after the start', async (tenant) => {
    const name = await sequence(tenant, { batch: { size: 100, ...LONG } });
    const plain = await tenant.sequence(NOOP);
    const keyed = (idempotency_key: string) => ({ idempotency_key });
    const { id } = await collect(tenant, name, { n: 1 }, keyed('a'));
    const [same, other] = await Promise.all([
      collect(tenant, name, { n: 2 }, keyed('a')),
      collect(tenant, name, { n: 3 }, keyed('b')),
    ]);
    assert.deepEqual([same.id, same.deduplicated, same.collected], [id, true, true]);
    assert.deepEqual([other.id, other.deduplicated], [id, false]);
    // A repetition succeeds whatever has become of the sequence, as does an item of a batch.
    const nameless = bodyOf(tenant, 'unknown', {}, keyed('a'));
    const early = expectStatus(await tenant.post<InstanceCreated>('/instances', nameless), 202);
    assert.deepEqual([early.id, early.deduplicated], [id, true]);
    const items = { instances: [nameless, bodyOf(tenant, 'unknown', {}, keyed('b'))] };
    const none = expectStatus(await tenant.post('/instances/batch', items), 201);
    assert.deepEqual(none, { count: 2, created: 0 });
    const creationOf = async (body: Json) =>
      expectStatus(await tenant.post<InstanceCreated>('/instances', body), 201);
    const { context } = await startNow(tenant, id);
    assert.deepEqual(context.data, { items: [{ n: 1 }, { n: 3 }] });
    // The instance has started: both keys lead to it, whatever is created with them.
    const repeated = await creationOf(bodyOf(tenant, name, { n: 4 }, keyed('b')));
    assert.deepEqual(repeated, { id, deduplicated: true });
    const ordinary = await creationOf(tenant.creation(plain, keyed('a')));
    assert.deepEqual(ordinary, { id, deduplicated: true });
    const batch = { instances: [tenant.creation(plain, keyed('a')), tenant.creation(plain)] };
    const made = expectStatus(await tenant.post('/instances/batch', batch), 201);
    assert.deepEqual(made, { count: 2, created: 1 });
    const first = await creationOf(tenant.creation(plain, keyed('c')));
    const after = await creationOf(bodyOf(tenant, name, { n: 5 }, keyed('c')));
    assert.deepEqual(after, { id: first.id, deduplicated: true });
    assert.deepEqual(await pending(tenant), []);
  });

  quick(
    'makes one instance when a collecting sequence and another one get it at the same moment, alone or in a batch',
    async (tenant) => {
      const name = await sequence(tenant, { batch: { size: 100, ...LONG } });
      const plain = await tenant.sequence(NOOP);
      const keys = Array.from({ length: 40 }, (_, n) => `k${n}`);
      for (const [n, idempotency_key] of keys.entries()) {
        const creation = tenant.creation(plain, { idempotency_key });
        const [path, body] =
          n % 2 === 0 ? ['/instances', creation] : ['/instances/batch', { instances: [creation] }];
        const collected = bodyOf(tenant, name, { n }, { idempotency_key });
        await Promise.all([tenant.post('/instances', collected), tenant.post(path, body)]);
      }
      const instances = expectStatus(await tenant.get<TaskInstance[]>('/instances?limit=100'), 200);
      const [start] = await pending(tenant);
      assert.equal(instances.length + (start?.count ?? 0), keys.length);
      // What each key leads to is there.
      for (const idempotency_key of keys) {
        const repeat = tenant.creation(plain, { idempotency_key });
        const { body } = await tenant.post<InstanceCreated>('/instances', repeat);
        assert.equal(body.deduplicated, true);
        assert.ok(body.id === start?.id || instances.some(({ id }) => id === body.id));
      }
    },
  );
});

describe('an event of cancel_on', () => {
  const EVENT = 'order.cancelled';

  async function send(tenant: Tenant, key?: string): Promise<EventReceipt> {
    const event = { event_name: EVENT, producer_event_id: randomUUID(), correlation_key: key };
    return expectStatus(await tenant.post<EventReceipt>('/events', event), 201);
  }

  const outcomesOf = async (tenant: Tenant, { event_id }: EventReceipt) =>
    (await tenant.get<EventDetails>(`/events/${event_id}`)).body.cancelled.map(
      ({ instance_id, outcome }) => [instance_id, outcome],
    );

  test('cancels a debounced creation before it starts: the instance is cancelled, its key is used, and a later creation is collected anew', async (tenant) => {
    const name = await sequence(tenant, {
      debounce: { key: '{{ data.customer }}', ...LONG },
      cancel_on: [{ event: EVENT, key: '{{ data.order }}' }],
      on_cancel: [step('told', 'noop')],
    });
    const keyed = { idempotency_key: 'k' };
    const first = await collect(tenant, name, { customer: 'a', order: 'A1' });
    const { id } = await collect(tenant, name, { customer: 'a', order: 'A2' }, keyed);
    const other = await collect(tenant, name, { customer: 'b', order: 'B1' });
    assert.equal(first.id, id);
    assert.equal((await send(tenant, 'A1')).cancelled, undefined, 'it was replaced');
    const receipt = await send(tenant, 'A2');
    assert.equal(receipt.cancelled, 1);
    const cancelled = await tenant.until(id, 'cancelled');
    assert.deepEqual(cancelled.context.data, { customer: 'a', order: 'A2' });
    assert.deepEqual(Object.keys(await tenant.outputsOf(id)), ['told']);
    assert.deepEqual(await outcomesOf(tenant, receipt), [[id, 'cancelled']]);
    const audit = expectStatus(await tenant.get<AuditEntry[]>(`/instances/${id}/audit`), 200);
    const entry = audit.find(({ event_type }) => event_type === 'cancelled_by_event');
    const { event_id } = receipt;
    const details = { event_id, event_name: EVENT, correlation_key: 'A2' };
    assert.deepEqual(entry?.details, details);
    const body = bodyOf(tenant, name, { customer: 'a', order: 'A2' }, keyed);
    const again = expectStatus(await tenant.post<InstanceCreated>('/instances', body), 201);
    assert.deepEqual(again, { id, deduplicated: true });
    const later = await collect(tenant, name, { customer: 'a', order: 'A2' });
    assert.notEqual(later.id, id);
    assert.deepEqual(column(await pending(tenant), 'id'), [other.id, later.id]);
    await startNow(tenant, other.id);
  });

  test('takes the creations that it names out of a batch, and cancels the instance when none is left', async (tenant) => {
    const name = await sequence(tenant, {
      batch: { size: 4, ...LONG },
      cancel_on: [{ event: EVENT, key: '{{ data.items.0.order }}' }],
    });
    const told: InstanceCreated[] = [];
    for (const [n, order] of ['A', 'B', 'A'].entries()) {
      told.push(await collect(tenant, name, { n, order }, { idempotency_key: `k${n}` }));
    }
    const id = told[0]?.id ?? '';
    const receipt = await send(tenant, 'A');
    assert.equal(receipt.cancelled, 1);
    await eventually(async () => {
      const [start] = await pending(tenant);
      assert.deepEqual([start?.id, start?.count, start?.cancelled], [id, 1, 2]);
    });
    assert.deepEqual(await outcomesOf(tenant, receipt), [[id, 'withdrawn']]);
    const again = await collect(tenant, name, { n: 9, order: 'A' }, { idempotency_key: 'k0' });
    assert.deepEqual([again.id, again.deduplicated], [id, true]);
    // Of the same batch, and after the event.
    for (const n of [3, 4]) await collect(tenant, name, { n, order: 'A' });
    await collect(tenant, name, { n: 5, order: 'C' });
    const started = await tenant.until(id, 'completed');
    assert.deepEqual(column(started.context.data.items as Json[], 'n'), [1, 3, 4, 5]);
    const next = await collect(tenant, name, { n: 6, order: 'D' });
    await collect(tenant, name, { n: 7, order: 'E' });
    await Promise.all([send(tenant, 'D'), send(tenant, 'E')]);
    await tenant.until(next.id, 'cancelled');
    assert.deepEqual(await pending(tenant), []);
  });

  test('that was answered before the start is carried out before it, also with the id of the instance as its key', async (tenant) => {
    const name = await sequence(tenant, {
      debounce: LONG,
      cancel_on: [{ event: EVENT, key: '{{ instance_id }}' }],
    });
    for (let round = 0; round < 10; round++) {
      const { id } = await collect(tenant, name, { round });
      assert.equal((await send(tenant, id)).cancelled, 1);
      await tenant.post(`${PENDING}/${id}/start`);
      await tenant.until(id, 'cancelled');
      assert.deepEqual(await tenant.outputsOf(id), {});
    }
  });

  test('that meets the start of an instance cancels it either before or after', async (tenant) => {
    const name = await sequence(tenant, {
      debounce: { key: '{{ data.order }}', wait_ms: 1 },
      cancel_on: [{ event: EVENT, key: '{{ data.order }}' }],
      blocks: [step('a', newHandler())],
    });
    const rounds = Array.from({ length: 30 }, async (_, round) => {
      const order = `o${round}`;
      const { id } = await collect(tenant, name, { order });
      assert.equal((await send(tenant, order)).cancelled, 1);
      await tenant.until(id, 'cancelled');
    });
    await Promise.all(rounds);
  });

  test('leaves what was dropped alone', async (tenant) => {
    const name = await sequence(tenant, {
      batch: { size: 9, ...LONG },
      cancel_on: [{ event: EVENT }],
    });
    const { id } = await collect(tenant, name, {});
    expectStatus(await tenant.delete(`${PENDING}/${id}`), 204);
    assert.equal((await send(tenant)).cancelled, undefined);
  });
});

describe('the ways in', () => {
  test('by id, and by a pinned version, are collected apart from those by name; a dry run starts at once', async (tenant) => {
    const name = `s-${randomUUID()}`;
    const id = await tenant.sequence(NOOP, { name, debounce: LONG });
    const byName = await collect(tenant, name, {});
    const pinned = await collect(tenant, name, {}, { version: 1 });
    const body = tenant.creation(id);
    const byId = expectStatus(await tenant.post<InstanceCreated>('/instances', body), 202);
    assert.equal(new Set(column([byName, pinned, byId], 'id')).size, 3);
    const dry = { ...body, dry_run: true };
    const run = expectStatus(await tenant.post<InstanceCreated>('/instances', dry), 201);
    await tenant.until(run.id, 'completed');
  });

  test('dry runs and children of a batch have the list of their one item, which input_schema checks', async (tenant) => {
    const name = await sequence(tenant, {
      batch: { size: 9, ...LONG },
      concurrency: { key: '{{ data.items.0.n }}', limit: 5 },
      input_schema: {
        type: 'object',
        required: ['n'],
        properties: { n: {} },
        additionalProperties: false,
      },
    });
    const data = { items: [{ n: 1 }] };
    const dry = { dry_run: true };
    for (const more of [dry, { ...dry, idempotency_key: 'd1' }]) {
      const body = bodyOf(tenant, name, { n: 1 }, more);
      const { id } = expectStatus(await tenant.post<InstanceCreated>('/instances', body), 201);
      assert.deepEqual((await tenant.until(id, 'completed')).context.data, data);
    }
    const many = { instances: [bodyOf(tenant, name, { n: 1 }, { ...dry, metadata: { many: 1 } })] };
    expectStatus(await tenant.post('/instances/batch', many), 201);
    const made = (await tenant.get<TaskInstance[]>('/instances')).body.find(
      ({ metadata }) => metadata?.many === 1,
    );
    assert.deepEqual(made?.context.data, data);
    const list = bodyOf(tenant, name, { n: 1, ...data }, dry);
    const refused = await tenant.post<{ error: string }>('/instances', list);
    assert.match(expectStatus(refused, 422).error, /context\.data/);
    const child = { type: 'sub_sequence', id: 'c', sequence_name: name, input: { n: 1 } };
    const parent = await tenant.create(await tenant.sequence([child]));
    await tenant.until(parent, 'completed');
    const children = expectStatus(
      await tenant.get<TaskInstance[]>(`/instances/${parent}/children`),
      200,
    );
    assert.deepEqual(column(column(children, 'context'), 'data'), [data]);
    assert.deepEqual(await pending(tenant), []);
  });

  test('a batch of creations is refused, naming the item', async (tenant) => {
    const name = await sequence(tenant, { debounce: LONG });
    const plain = await tenant.sequence(NOOP);
    const instances = [tenant.creation(plain), bodyOf(tenant, name, {})];
    const refused = await tenant.post<{ error: string }>('/instances/batch', { instances });
    assert.match(
      expectStatus(refused, 400).error,
      /instances\[1\]: sequence .* collects creations/,
    );
    assert.deepEqual(expectStatus(await tenant.get('/instances'), 200), []);
  });

  test('triggers, events and schedules are collected, and say so', async (tenant) => {
    const name = await sequence(tenant, { batch: { size: 100, ...LONG } });
    const place = { tenant_id: tenant.name, namespace: 'test' };
    const slug = randomUUID();
    const trigger = { slug, ...place, sequence_name: name };
    expectStatus(await tenant.post('/triggers', trigger), 201);
    const fired = await tenant.post<TriggerFired>(`/triggers/${slug}/fire`, { by: 'fire' });
    const { instance_id = '', collected } = expectStatus(fired, 202);
    assert.equal(collected, true);
    const config = { event_name: slug };
    const ofEvents = { ...trigger, slug: randomUUID(), trigger_type: 'event', config };
    expectStatus(await tenant.post('/triggers', ofEvents), 201);
    const event = { event_name: slug, producer_event_id: 'e1', payload: { by: 'event' } };
    expectStatus(await tenant.post('/events', event), 201);
    const schedule = { ...place, sequence: name, context: { data: { by: 'schedule' } } };
    const cron = { ...schedule, cron_expr: '* * * * * * *', enabled: false };
    const { id } = expectStatus(await tenant.post<ScheduleCreated>('/cron', cron), 201);
    const asked = { idempotency_key: 'r1' };
    const runs: ScheduleRun[] = [];
    for (let n = 0; n < 2; n++) {
      runs.push(expectStatus(await tenant.post<ScheduleRun>(`/cron/${id}/run`, asked), 202));
    }
    assert.deepEqual(column(runs, 'instance_id'), [instance_id, instance_id]);
    assert.deepEqual(column(runs, 'deduplicated'), [false, true]);
    expectStatus(await tenant.put(`/cron/${id}`, { enabled: true }), 200);
    await eventually(async () => {
      const { last_triggered_at } = (await tenant.get<CronSchedule>(`/cron/${id}`)).body;
      assert.notEqual(last_triggered_at, null);
    });
    expectStatus(await tenant.delete(`/cron/${id}`), 204);
    await eventually(async () => assert.ok(((await pending(tenant))[0]?.count ?? 0) >= 4));
    const { context } = await startNow(tenant, instance_id);
    const by = column(context.data.items as { by: string }[], 'by');
    assert.deepEqual(new Set(by), new Set(['fire', 'event', 'schedule']));
  });

  test('a name that leads nowhere when it is to start is shown and tried again; nothing is lost', async (tenant) => {
    const name = `s-${randomUUID()}`;
    const id = await tenant.sequence(NOOP, { name, debounce: LONG });
    const told = await collect(tenant, name, { n: 1 });
    expectStatus(await tenant.delete(`/sequences/${id}`), 204);
    expectStatus(await tenant.post(`${PENDING}/${told.id}/start`), 200);
    await eventually(async () => {
      const [start] = await pending(tenant);
      assert.match(start?.error ?? '', new RegExp(`not found: sequence ${name}`));
    });
    expectStatus(await tenant.delete(`${PENDING}/${told.id}`), 204);
  });
});

test('a definition with a key that cannot be read, with both members or with a bad time is refused, and a creation without its key changes nothing', async (tenant) => {
  const cases: readonly (readonly [Json, RegExp])[] = [
    [{ debounce: { key: '{{ secrets.a }}', ...LONG } }, /debounce\.key/],
    [
      { debounce: { wait_ms: 10, max_wait_ms: 5 } },
      /debounce\.max_wait_ms must be at least wait_ms/,
    ],
    [{ debounce: LONG, batch: { size: 2, ...LONG } }, /batch must be absent beside debounce/],
    [{ debounce: { wait_ms: 0 } }, /debounce\.wait_ms/],
    [
      { batch: { key: `${'x'.repeat(510)}{{ data.a }}yyy`, size: 2, ...LONG } },
      /batch\.key must come to at most 512 characters/,
    ],
    [{ batch: { size: 0, ...LONG } }, /batch\.size/],
  ];
  for (const [more, expected] of cases) {
    const reply = await tenant.post<{ error: string }>('/sequences', tenant.definition(NOOP, more));
    assert.match(expectStatus(reply, 400).error, expected);
  }
  const name = await sequence(tenant, { debounce: { key: 'o-{{ data.order.id }}', ...LONG } });
  for (const data of [{}, { order: { id: null } }]) {
    const refused = await tenant.post<{ error: string }>('/instances', bodyOf(tenant, name, data));
    assert.match(expectStatus(refused, 422).error, /debounce\.key must not come to null/);
  }
  assert.deepEqual(await pending(tenant), []);
});

test('a key with the instance id is warned about, since no two instances share it, or there is none yet', async (tenant) => {
  const warned = async (more: Json) => {
    const reply = await tenant.post<{ warnings: readonly { path: string; message: string }[] }>(
      '/sequences/validate',
      tenant.definition(NOOP, more),
    );
    const [{ path, message } = assert.fail(), ...others] = expectStatus(reply, 200).warnings;
    assert.deepEqual(others, []);
    return `${path} ${message}`;
  };
  const key = 'k-{{ instance_id }}';
  const unique = 'key has the instance id: no two instances have the same key';
  const empty = 'key has the instance id, which is empty here: the instance does not exist yet';
  assert.equal(await warned({ concurrency: { key, limit: 1 } }), `concurrency.${unique}`);
  assert.equal(await warned({ throttle: { key, limit: 1, per_ms: 10 } }), `throttle.${unique}`);
  assert.equal(await warned({ debounce: { key, ...LONG } }), `debounce.${empty}`);
  assert.equal(await warned({ batch: { key, size: 2, ...LONG } }), `batch.${empty}`);
  // On purpose: those without a customer are not limited.
  const optional = { key: '{{ data.customer | instance_id }}', limit: 1 };
  const reply = await tenant.post<Json>(
    '/sequences/validate',
    tenant.definition(NOOP, { throttle: { ...optional, per_ms: 10 } }),
  );
  assert.deepEqual(expectStatus(reply, 200).warnings, []);
});
