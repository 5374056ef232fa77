/** `cancel_on`: which instances an event cancels, and what a creation needs for it. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { EventDetails, EventReceipt, EventReceipts } from '../../schema/event.js';
import type { InstanceExplanation } from '../../schema/explanation.js';
import type { AuditEntry } from '../../schema/instance.js';
import type { SequenceDefinition } from '../../schema/sequence.js';
import { eventually, FAR, type Json, newHandler, step, useSharedApi } from '../helpers/api.js';
import { handedOver, passageOf } from '../helpers/capsules.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';
import { fork, migrate } from '../helpers/edits.js';

const api = useSharedApi();
const tenant = api.tenant();

const newName = () => `order.cancelled-${randomUUID()}`;
const KEY = '{{ data.order }}';
const dataOf = (data: Json) => ({ context: { data } });
const eventOf = (event_name: string, more: Json = {}) => {
  return { event_name, producer_event_id: randomUUID(), ...more };
};

/** A receipt. */
async function send(event_name: string, more: Json = {}, by = tenant): Promise<EventReceipt> {
  return expectStatus(await by.post<EventReceipt>('/events', eventOf(event_name, more)), 201);
}

/** Instances of it wait for a worker that never comes. */
const awaiting = (cancel_on: readonly Json[], more: Json = {}) =>
  tenant.sequence([step('a', newHandler())], { cancel_on, ...more });

async function audited(id: string): Promise<Json | undefined> {
  const entries = expectStatus(await tenant.get<AuditEntry[]>(`/instances/${id}/audit`), 200);
  return entries.find(({ event_type }) => event_type === 'cancelled_by_event')?.details as Json;
}

test('an event cancels the live instances that name it with its key, in whatever state; hooks run, and receipt, event and audit show it', async () => {
  const name = newName();
  const on_cancel = [{ type: 'step', id: 'told', handler: 'log', params: { message: 'over' } }];
  const sequence = await awaiting([{ event: name, key: KEY }], { on_cancel });
  const mine = dataOf({ order: 17 });
  const waiting = await tenant.create(sequence, mine);
  const scheduled = await tenant.create(sequence, { ...mine, next_fire_at: FAR });
  const paused = await tenant.create(sequence, mine);
  const other = await tenant.create(sequence, dataOf({ order: '18' }));
  for (const id of [waiting, paused, other]) await tenant.until(id, 'waiting');
  const explained = await tenant.get<InstanceExplanation>(`/instances/${paused}/explain`);
  assert.deepEqual(expectStatus(explained, 200).cancel_on, [{ event: name, key: '17' }]);
  await tenant.signal(paused, 'pause');
  await tenant.until(paused, 'paused');
  const body = eventOf(name, { correlation_key: '17' });
  const receipt = expectStatus(await tenant.post<EventReceipt>('/events', body), 201);
  assert.deepEqual([receipt.cancelled, receipt.matched, receipt.satisfied], [3, 0, false]);
  for (const id of [waiting, scheduled, paused]) {
    await tenant.until(id, 'cancelled');
    assert.deepEqual(await audited(id), {
      event_id: receipt.event_id,
      event_name: name,
      correlation_key: '17',
    });
  }
  await eventually(async () => assert.ok((await tenant.outputsOf(waiting)).told));
  assert.equal((await tenant.instance(other)).state, 'waiting');
  const path = `/events/${receipt.event_id}`;
  const { cancelled, status } = expectStatus(await tenant.get<EventDetails>(path), 200);
  assert.deepEqual(column(cancelled, 'outcome'), ['cancelled', 'cancelled', 'cancelled']);
  assert.deepEqual(column(cancelled, 'instance_id').sort(), [waiting, scheduled, paused].sort());
  assert.equal(status, 'pending', 'a step that waits later takes it');
  const again = expectStatus(await tenant.post<EventReceipt>('/events', body), 200);
  assert.deepEqual([again.duplicate, again.cancelled], [true, 3]);
});

test('without a key every event with the name cancels; one that was sent before, or by another tenant, does not', async () => {
  const name = newName();
  await send(name);
  const id = await tenant.create(await awaiting([{ event: newName(), key: 'x' }, { event: name }]));
  await tenant.until(id, 'waiting');
  assert.equal((await send(name, {}, api.tenant())).cancelled, undefined);
  assert.equal((await tenant.instance(id)).state, 'waiting');
  const batch = { events: [eventOf(name, { correlation_key: 'any' }), eventOf(newName())] };
  const reply = await tenant.post<EventReceipts>('/events/batch', batch);
  const { outcomes } = expectStatus(reply, 200);
  assert.deepEqual(column(outcomes, 'cancelled'), [1, undefined]);
  await tenant.until(id, 'cancelled');
  assert.equal((await send(name)).cancelled, undefined, 'it is over');
});

test('every instance whose creation was answered before an event was sent is cancelled', async () => {
  const name = newName();
  const sequence = await awaiting([{ event: name }]);
  const answered: string[] = [];
  const creating = Array.from({ length: 60 }, async () => {
    answered.push(await tenant.create(sequence));
  });
  await eventually(async () => assert.ok(answered.length >= 10));
  const before = [...answered];
  const { event_id, cancelled = 0 } = await send(name);
  await Promise.all(creating);
  assert.ok(cancelled >= before.length, `${cancelled} of ${before.length}`);
  for (const id of before) await tenant.until(id, 'cancelled');
  const shown = async () =>
    expectStatus(await tenant.get<EventDetails>(`/events/${event_id}`), 200).cancelled;
  await eventually(async () =>
    assert.deepEqual(new Set(column(await shown(), 'outcome')), new Set(['cancelled'])),
  );
  assert.equal((await shown()).length, cancelled);
});

test('a key that comes to null or a blank text refuses the creation by whatever way, and changes nothing', async () => {
  const sequence_name = `keyed-${randomUUID()}`;
  const cancel_on = [{ event: newName() }, { event: newName(), key: 'order-{{ data.order }}' }];
  const sequence = await awaiting(cancel_on, { name: sequence_name });
  const blank = await awaiting([{ event: newName(), key: KEY }]);
  const nothing = /422|cancel_on\[1\]\.key must not come to null, and \{\{ data\.order \}\} does/;
  const creation = tenant.creation(sequence);
  for (const reply of [
    await tenant.post<{ error: string }>('/instances', creation),
    await tenant.post<{ error: string }>('/instances', { ...creation, idempotency_key: 'k' }),
    await tenant.post<{ error: string }>('/instances', { ...creation, dry_run: true }),
    await tenant.post<{ error: string }>('/instances/batch', {
      instances: [tenant.creation(sequence, dataOf({ order: 1 })), creation],
    }),
  ]) {
    assert.match(expectStatus(reply, 422).error, nothing);
  }
  const empty = await tenant.post<{ error: string }>(
    '/instances',
    tenant.creation(blank, dataOf({ order: ' ' })),
  );
  assert.match(expectStatus(empty, 422).error, /cancel_on\[0\]\.key must not come to a blank text/);
  const list = await tenant.get<Json[]>(`/instances?sequence_id=${sequence}`);
  assert.deepEqual(expectStatus(list, 200), []);
  const child = { type: 'sub_sequence', id: 'child', sequence_name };
  const parent = await tenant.runUntil('failed', [child]);
  const { failure } = await tenant.instance(parent);
  assert.equal(failure?.code, 'child_not_started');
  assert.match(failure?.message ?? '', nothing);
  const cron = { tenant_id: tenant.name, namespace: 'test', sequence_id: sequence };
  const made = await tenant.post<{ id: string }>('/cron', {
    ...cron,
    cron_expr: '0 0 0 1 1 ? 2099',
  });
  const run = await tenant.post<{ error: string }>(`/cron/${expectStatus(made, 201).id}/run`, {});
  assert.match(expectStatus(run, 422).error, nothing);
  const source = await tenant.create(sequence, dataOf({ order: 1 }));
  await tenant.until(source, 'waiting');
  for (const dry_run of [false, true]) {
    const forked = await tenant.post<{ error: string }>(`/instances/${source}/fork`, {
      from_block_id: 'a',
      dry_run,
      context: { order: null },
    });
    assert.match(expectStatus(forked, 422).error, nothing);
  }
});

test('a failed instance is not cancelled, and a retried one is', async () => {
  const name = newName();
  const handler = newHandler();
  const sequence = await tenant.sequence([step('a', handler)], { cancel_on: [{ event: name }] });
  const id = await tenant.create(sequence);
  await tenant.fail(await tenant.task(handler), 'no', false);
  await tenant.until(id, 'failed');
  assert.equal((await send(name)).cancelled, undefined);
  expectStatus(await tenant.post(`/instances/${id}/retry`, {}), 200);
  await tenant.task(handler);
  assert.equal((await send(name)).cancelled, 1);
  await tenant.until(id, 'cancelled');
});

test('children of either way, batches and forks are cancelled by the events of their own sequence, and children with their parent', async () => {
  const [name, parents] = [newName(), newName()];
  const sequence_name = `child-${randomUUID()}`;
  const sequence = await awaiting([{ event: name, key: KEY }], { name: sequence_name });
  const child = { type: 'sub_sequence', id: 'child', sequence_name, input: { order: KEY } };
  const outer = await tenant.sequence([child], { cancel_on: [{ event: parents }] });
  const [a, b] = await Promise.all([
    tenant.create(outer, dataOf({ order: 'a' })),
    tenant.create(outer, dataOf({ order: 'b' })),
  ]);
  const childOf = (id: string) =>
    eventually(async () => {
      const list = await tenant.get<{ id: string }[]>(`/instances/${id}/children`);
      const [only] = expectStatus(list, 200);
      assert.ok(only);
      await tenant.until(only.id, 'waiting');
      return only.id;
    });
  const [ofA, ofB] = [await childOf(a), await childOf(b)];
  const instances = [1, 2].map(() => tenant.creation(sequence, dataOf({ order: 'a' })));
  expectStatus(await tenant.post('/instances/batch', { instances }), 201);
  const { id: copy } = await fork(tenant, ofA, 'a', { dry_run: false });
  await tenant.until(copy, 'waiting');
  assert.equal((await send(name, { correlation_key: 'a' })).cancelled, 4);
  for (const id of [ofA, copy]) await tenant.until(id, 'cancelled');
  await tenant.until(a, 'failed');
  assert.equal((await send(parents)).cancelled, 1);
  for (const id of [b, ofB]) await tenant.until(id, 'cancelled');
});

test('a dry run is not cancelled, and an instance keeps the events of its creation in another version', async () => {
  const [old, now] = [newName(), newName()];
  const name = `versions-${randomUUID()}`;
  const blocks = [step('a', newHandler())];
  const one = await tenant.sequence(blocks, { name, version: 1, cancel_on: [{ event: old }] });
  const two = await tenant.sequence(blocks, { name, version: 2, cancel_on: [{ event: now }] });
  const dry = await tenant.create(one, { dry_run: true, next_fire_at: FAR });
  const id = await tenant.create(one);
  await tenant.until(id, 'waiting');
  await migrate(tenant, id, two);
  assert.equal((await send(now)).cancelled, undefined);
  assert.equal((await send(old)).cancelled, 1);
  await tenant.until(id, 'cancelled');
  assert.equal((await tenant.instance(dry)).state, 'scheduled');
});

test('an instance that was handed over is cancelled where it went, by the event of its creation', async () => {
  const name = newName();
  const id = await tenant.create(await awaiting([{ event: name, key: KEY }]), dataOf({ order: 1 }));
  await tenant.until(id, 'waiting');
  await tenant.signal(id, 'pause');
  const instance = await handedOver(await passageOf(tenant, id));
  assert.equal((await send(name, { correlation_key: '1' })).cancelled, 1);
  await tenant.until(instance, 'cancelled');
});

test('cancel_on is shown as it was stored, and a template that can only be null is a finding', async () => {
  const cancel_on = [{ event: 'order.cancelled', key: KEY }];
  const id = await awaiting(cancel_on);
  const stored = expectStatus(await tenant.get<SequenceDefinition>(`/sequences/${id}`), 200);
  assert.deepEqual(stored.cancel_on, cancel_on);
  const findings = async (more: Json) => {
    const body = tenant.definition([step('a', newHandler())], more);
    const reply = await tenant.post<{ warnings?: Json[]; errors?: Json[] }>(
      '/sequences/validate',
      body,
    );
    return [
      reply.status,
      ...column([...(reply.body.errors ?? []), ...(reply.body.warnings ?? [])], 'path'),
    ];
  };
  const at = async (key: unknown) => findings({ cancel_on: [{ event: 'e', key }] });
  assert.deepEqual(await at(KEY), [200]);
  for (const key of ['{{ order }}', '{{ outputs.a }}']) {
    assert.deepEqual(await at(key), [200, 'cancel_on[0].key'], key);
  }
  assert.deepEqual(await at('{{ secrets.bank }}'), [400, 'cancel_on[0].key']);
  assert.deepEqual(await at(7), [400, 'cancel_on[0].key']);
  assert.deepEqual(await findings({ cancel_on: [{ key: 'k' }] }), [400, 'cancel_on[0].event']);
  // The keys of limits are rendered at the same time.
  const limited = async (key: string) => findings({ concurrency: { key, limit: 1 } });
  assert.deepEqual(await limited(KEY), [200]);
  for (const key of ['{{ order }}', '{{ outputs.a }}', 'fixed']) {
    assert.deepEqual(await limited(key), [200, 'concurrency.key'], key);
  }
  assert.deepEqual(await limited('{{ secrets.key }}'), [400, 'concurrency.key']);
  const waiting = (reply: string) =>
    tenant.definition([
      step('w', 'wait_for_event', { params: { name: 'e' }, reply }),
      step('z', 'noop'),
    ]);
  for (const [reply, warned] of [
    ['{{ outputs.w }}', 0],
    ['{{ outputs.z }}', 1],
  ] as const) {
    const sent = await tenant.post<{ warnings?: Json[] }>('/sequences/validate', waiting(reply));
    assert.equal(sent.body.warnings?.length ?? 0, warned, reply);
  }
});
