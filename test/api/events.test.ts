/** Events and signals: which wait takes which, and what each does in each state. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { EventDetails, EventReceipt, EventReceipts, StoredEvent } from '../../schema/event.js';
import type { InstanceExplanation } from '../../schema/explanation.js';
import type { AuditEntry } from '../../schema/instance.js';
import type { StoredSignal } from '../../schema/signal.js';
import {
  eventually,
  type Json,
  newHandler,
  race,
  sleep,
  step,
  transform,
  useSharedApi,
} from '../helpers/api.js';
import { handedOver, passageOf } from '../helpers/capsules.js';
import { expectStatus } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';
import { fork, migrate, resumeFrom } from '../helpers/edits.js';

const api = useSharedApi();
const tenant = api.tenant();

const newName = () => `order.paid-${randomUUID()}`;
const wait = (name: string, params: Json = {}, more: Json = {}) =>
  step('wait', 'wait_for_event', { params: { name, ...params }, ...more });

/** A receipt. */
async function send(event_name: string, more: Json = {}, by = tenant): Promise<EventReceipt> {
  const body = { event_name, producer_event_id: randomUUID(), ...more };
  return expectStatus(await by.post<EventReceipt>('/events', body), 201);
}

const event = async (id: string) =>
  expectStatus(await tenant.get<EventDetails>(`/events/${id}`), 200);
const signals = async (id: string, query = '') =>
  expectStatus(await tenant.get<StoredSignal[]>(`/instances/${id}/signals${query}`), 200);
const auditOf = async (id: string, type: string) =>
  expectStatus(await tenant.get<AuditEntry[]>(`/instances/${id}/audit`), 200).filter(
    ({ event_type }) => event_type === type,
  );

describe('events', () => {
  test('an event ends every wait for its name and key, and its payload is their output; a number counts as its text', async () => {
    const name = newName();
    const sequence = await tenant.sequence([
      wait(name, { key: '{{ data.order }}' }),
      transform('after', { got: '{{ outputs.wait.amount }}' }),
    ]);
    const ids = await Promise.all(
      ['17', 17, 'o-2'].map((order) => tenant.create(sequence, { context: { data: { order } } })),
    );
    ids.push(await tenant.run([wait(name)]));
    for (const id of ids) await tenant.until(id, 'waiting');
    const [a = '', b = '', other = '', plain = ''] = ids;
    const receipt = await send(name, { correlation_key: '17', payload: { amount: 42 } });
    assert.deepEqual([receipt.duplicate, receipt.satisfied, receipt.matched], [false, true, 2]);
    for (const id of [a, b]) {
      await tenant.until(id, 'completed');
      assert.deepEqual(await tenant.outputsOf(id), { wait: { amount: 42 }, after: { got: 42 } });
    }
    assert.deepEqual((await tenant.instance(a)).context.data, { order: '17' });
    const { status, taken_by } = await event(receipt.event_id);
    assert.equal(status, 'consumed');
    assert.deepEqual(column(taken_by, 'instance_id').sort(), [a, b].sort());
    assert.equal((await send(name)).matched, 1, 'the wait without a key');
    await tenant.until(plain, 'completed');
    assert.deepEqual((await tenant.outputsOf(plain)).wait, null);
    assert.equal((await tenant.instance(other)).state, 'waiting');
  });

  test('an event without a wait is kept, in order, and goes to one wait', async () => {
    const name = newName();
    const early = [await send(name, { payload: 1 }), await send(name, { payload: 2 })];
    assert.deepEqual(column(early, 'satisfied'), [false, false]);
    const first = await tenant.runUntil('completed', [wait(name)]);
    const second = await tenant.runUntil('completed', [wait(name)]);
    await tenant.runUntil('waiting', [wait(name)]);
    assert.deepEqual((await tenant.outputsOf(first)).wait, 1);
    assert.deepEqual((await tenant.outputsOf(second)).wait, 2);
    const { status, matched } = await event(early[0]!.event_id);
    assert.deepEqual([status, matched], ['consumed', 1]);
  });

  test('an event is kept for its time to live and no longer', async () => {
    const name = newName();
    const { event_id } = await send(name, { ttl_seconds: 1 });
    await eventually(async () => assert.equal((await event(event_id)).status, 'expired'));
    const list = await tenant.get<StoredEvent[]>(`/events?event_name=${name}&status=expired`);
    assert.deepEqual(column(list.body, 'id'), [event_id]);
    await tenant.runUntil('waiting', [wait(name)]);
    assert.equal((await event(event_id)).consumed_at, null);
  });

  test('events with the same producer_event_id are one event', async () => {
    const name = newName();
    const producer_event_id = randomUUID();
    const first = await send(name, { producer_event_id, payload: 1 });
    for (const event_name of [name, newName()]) {
      const body = { event_name, producer_event_id, correlation_key: 'k', payload: 2 };
      const again = expectStatus(await tenant.post<EventReceipt>('/events', body), 200);
      assert.deepEqual([again.event_id, again.duplicate], [first.event_id, true]);
    }
    assert.equal((await event(first.event_id)).payload, 1);
    const elsewhere = await send(name, { producer_event_id }, api.tenant());
    assert.notEqual(elsewhere.event_id, first.event_id);
  });

  test('an event sent many times at once under one producer_event_id, to several names, is stored once', async () => {
    const producer_event_id = randomUUID();
    const names = [newName(), newName(), newName()];
    const replies = await Promise.all(
      [...names, ...names, ...names].map((event_name) =>
        tenant.post<EventReceipt>('/events', { event_name, producer_event_id }),
      ),
    );
    assert.equal(replies.filter(({ status }) => status === 201).length, 1);
    assert.equal(replies.filter(({ status }) => status === 200).length, 8);
    assert.equal(new Set(replies.map(({ body }) => body.event_id)).size, 1);
  });

  test('an event of another tenant ends no wait, and is not found', async () => {
    const name = newName();
    const id = await tenant.runUntil('waiting', [wait(name)]);
    const { event_id, matched } = await send(name, {}, api.tenant());
    assert.equal(matched, 0);
    assert.equal((await tenant.get(`/events/${event_id}`)).status, 404);
    assert.equal((await tenant.instance(id)).state, 'waiting');
  });
});

describe('batches', () => {
  test('a batch of events has an outcome for each event, in their order', async () => {
    const name = newName();
    const id = await tenant.runUntil('waiting', [wait(name, { key: 'b' })]);
    const events = ['a', 'b', 'c'].map((correlation_key) => ({
      event_name: name,
      producer_event_id: `${name}-${correlation_key}`,
      correlation_key,
    }));
    const first = expectStatus(await tenant.post<EventReceipts>('/events/batch', { events }), 200);
    assert.deepEqual(column(first.outcomes, 'matched'), [0, 1, 0]);
    await tenant.until(id, 'completed');
    const again = expectStatus(await tenant.post<EventReceipts>('/events/batch', { events }), 200);
    assert.ok(again.outcomes.every(({ duplicate }) => duplicate));
    assert.deepEqual(column(again.outcomes, 'event_id'), column(first.outcomes, 'event_id'));
  });

  test('a batch of events is refused as a whole if one event is invalid', async () => {
    const name = newName();
    const good = { event_name: name, producer_event_id: randomUUID() };
    const foreign = { ...good, tenant_id: 'somebody-else' };
    for (const [events, status] of [
      [[good, { event_name: name }], 400],
      [[good, foreign], 403],
      [[], 400],
      [Array.from({ length: 101 }, () => good), 400],
    ] as const) {
      assert.equal((await tenant.post('/events/batch', { events })).status, status);
    }
    assert.deepEqual((await tenant.get(`/events?event_name=${name}`)).body, []);
  });
});

test('a request that is wrong is refused and names the member', async () => {
  const good = { event_name: 'n', producer_event_id: 'p' };
  const wrong: readonly [Json, RegExp][] = [
    [{ producer_event_id: 'p' }, /event_name/],
    [{ ...good, event_name: ' ' }, /event_name/],
    [{ ...good, producer_event_id: '' }, /producer_event_id/],
    [{ ...good, correlation_key: 5 }, /correlation_key/],
    [{ ...good, ttl_seconds: 1e9 }, /ttl_seconds/],
  ];
  for (const [body, message] of wrong) {
    const reply = await tenant.post<{ error: string }>('/events', body);
    assert.equal(reply.status, 400);
    assert.match(reply.body.error, message);
  }
  assert.equal((await tenant.post('/events', { ...good, tenant_id: 'x' })).status, 403);
  assert.equal((await tenant.get('/events?name=x')).status, 400);
});

describe('waits', () => {
  test('a waiting step times out by its params or its own timeout, and a retry creates a new wait', async () => {
    for (const block of [
      wait(newName(), { timeout_ms: 50 }),
      wait(newName(), { timeout_ms: 600_000 }, { timeout: 50 }),
    ]) {
      const { failure } = await tenant.instance(await tenant.runUntil('failed', [block]));
      assert.deepEqual([failure?.code, failure?.message], ['timeout', 'timed out after 50 ms']);
    }
    const name = newName();
    const retry = { max_attempts: 100, initial_backoff: 1, max_backoff: 1 };
    const id = await tenant.run([wait(name, { timeout_ms: 50 }, { retry })]);
    await eventually(async () => assert.ok((await auditOf(id, 'step_retried')).length > 0));
    await send(name, { payload: 'at last' });
    await tenant.until(id, 'completed');
  });

  test('a waiting step ignores a payload that violates its schema, and the audit records it', async () => {
    const name = newName();
    const schema = { type: 'object', required: ['amount'] };
    const id = await tenant.runUntil('waiting', [wait(name, { schema })]);
    const refused = await send(name, { payload: { sum: 1 } });
    await eventually(async () => {
      const [entry] = await auditOf(id, 'event_refused');
      assert.equal(entry?.block_id, 'wait');
      assert.equal((entry?.details as Json | undefined)?.event_id, refused.event_id);
    });
    assert.equal((await tenant.instance(id)).state, 'waiting');
    await tenant.signal(id, `custom:${name}`, 'neither');
    const taken = await send(name, { payload: { amount: 1 } });
    await tenant.until(id, 'completed');
    const outcomes = async ({ event_id }: EventReceipt) =>
      (await event(event_id)).taken_by.map(({ outcome }) => outcome);
    assert.deepEqual(await outcomes(refused), ['refused']);
    assert.deepEqual(await outcomes(taken), ['taken']);
    assert.deepEqual(column(await signals(id), 'status'), ['refused']);
  });

  test('a waiting step that loses a race, or whose instance is cancelled, waits no more', async () => {
    const [name, other] = [newName(), newName()];
    const raced = await tenant.run([
      race('r', [[wait(name)], [step('w', 'wait_for_event', { params: { name: other } })]]),
    ]);
    const cancelled = await tenant.run([wait(name)]);
    for (const id of [raced, cancelled]) await tenant.until(id, 'waiting');
    await send(other);
    await tenant.until(raced, 'completed');
    await tenant.signal(cancelled, 'cancel');
    await eventually(async () => {
      const text = 'select 1 from event_waits where instance_id = any($1)';
      assert.equal((await api.sql.query(text, [[raced, cancelled]])).rowCount, 0);
    });
    assert.equal((await send(name)).matched, 0);
  });

  test('a waiting step of a paused instance gets its event when the instance resumes', async () => {
    const name = newName();
    const id = await tenant.runUntil('waiting', [wait(name), step('b', 'noop')]);
    await tenant.signal(id, 'pause');
    await send(name, { payload: 1 });
    assert.equal((await tenant.instance(id)).state, 'paused');
    await tenant.signal(id, 'resume');
    await tenant.until(id, 'completed');
    assert.deepEqual((await tenant.outputsOf(id)).wait, 1);
  });

  test('a waiting step is explained with the event and the requests that end the wait', async () => {
    const name = newName();
    const id = await tenant.runUntil('waiting', [wait(name, { key: 'k', timeout_ms: 600_000 })]);
    const { body } = await tenant.get<InstanceExplanation>(`/instances/${id}/explain`);
    const [found] = body.waiting_for;
    assert.deepEqual([found?.kind, found?.name, found?.key], ['event', name, 'k']);
    assert.ok(found?.until && found.since);
    const action = body.next.find(({ path }) => path === '/events');
    expectStatus(await tenant.post('/events', action?.body as Json), 201);
    await tenant.until(id, 'completed');
  });

  test('a waiting step survives a migration to another version', async () => {
    const name = newName();
    const named = { name: `s-${randomUUID()}` };
    const sequence = await tenant.sequence([wait(name)], named);
    const next = await tenant.sequence([wait(name), step('b', 'noop')], { ...named, version: 2 });
    const id = await tenant.create(sequence);
    await tenant.until(id, 'waiting');
    await migrate(tenant, id, next);
    assert.equal((await send(name, { payload: 1 })).matched, 1);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['wait', 'b']);
  });
});

test('an instance that is handed over takes its waits and kept signals along', async () => {
  const name = newName();
  const id = await tenant.run([
    wait(name, { timeout_ms: 600_000 }),
    step('go', 'wait_for_event', { params: { name: 'go' } }),
  ]);
  await tenant.signal(id, 'custom:go', { n: 1 });
  await tenant.until(id, 'waiting');
  await tenant.signal(id, 'pause');
  const instance = await handedOver(await passageOf(tenant, id));
  assert.equal((await send(name, { payload: 'there' })).matched, 1);
  await tenant.until(instance, 'completed');
  assert.deepEqual(await tenant.outputsOf(instance), { wait: 'there', go: { n: 1 } });
  assert.deepEqual(await tenant.rowsOf(id), []);
});

describe('kept signals', () => {
  const waitFor = (id: string, name: string) => step(id, 'wait_for_event', { params: { name } });

  test('a custom signal is kept, in order, until a wait takes it', async () => {
    const handler = newHandler();
    const waits = [waitFor('a', 'go'), waitFor('b', 'go'), waitFor('c', 'other')];
    const id = await tenant.run([step('s', handler), ...waits]);
    await tenant.signal(id, 'update_context', { a: 1 });
    for (const payload of [1, { n: 2 }, 3]) await tenant.signal(id, 'custom:go', payload);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'waiting');
    assert.deepEqual(await tenant.outputsOf(id), { s: {}, a: 1, b: { n: 2 } });
    await tenant.signal(id, 'custom:other', 'x');
    await tenant.until(id, 'completed');
    const told = columns(await signals(id), 'signal_type', 'payload', 'status', 'taken_by');
    assert.deepEqual(told, [
      ['update_context', { a: 1 }, 'applied', null],
      ['custom:go', 1, 'taken', 'a'],
      ['custom:go', { n: 2 }, 'taken', 'b'],
      ['custom:go', 3, 'kept', null],
      ['custom:other', 'x', 'taken', 'c'],
    ]);
    assert.deepEqual(column(await signals(id, '?status=kept'), 'payload'), [3]);
  });

  test('a custom signal is refused when too many are kept', async () => {
    const id = await tenant.run([sleep('s', 600_000)]);
    const send = (payload: unknown) =>
      tenant.post<{ error: string }>(`/instances/${id}/signals`, {
        signal_type: 'custom:n',
        payload,
      });
    const replies = await Promise.all(Array.from({ length: 1_000 }, (_, n) => send(n)));
    assert.ok(replies.every(({ status }) => status === 201));
    const refused = await send('one more');
    assert.equal(refused.status, 409);
    assert.match(refused.body.error, /the limit is 1000/);
    await tenant.signal(id, 'pause');
    assert.equal((await signals(id, '?limit=1000')).length, 1_000);
  });

  test('a custom signal that comes with a resume-from or a fork is there for the wait', async () => {
    const name = newName();
    const id = await tenant.runUntil('failed', [step('a', 'noop'), wait(name, { timeout_ms: 1 })]);
    const given = { signals: [{ signal_type: `custom:${name}`, payload: 'now' }] };
    const forked = await fork(tenant, id, 'wait', { dry_run: false, ...given });
    await resumeFrom(tenant, id, 'wait', given);
    for (const one of [id, forked.id]) {
      await tenant.until(one, 'completed');
      assert.deepEqual((await tenant.outputsOf(one)).wait, 'now');
    }
  });
});

// ---------------------------------------------------------------- signals

const sendSignal = (id: string, signal_type: unknown, payload?: unknown) =>
  tenant.post<{ signal_id: string; error: string }>(`/instances/${id}/signals`, {
    signal_type,
    payload,
  });
const signal = async (id: string, type: unknown, payload?: unknown) =>
  expectStatus(await sendSignal(id, type, payload), 201).signal_id;

/** Beside failed ones, which are in `requested-states.test.ts`. */
const SOURCES = ['scheduled', 'running', 'waiting'];

test('resume in any state but paused does nothing', async () => {
  for (const state of SOURCES) {
    const id = await tenant.inState(state);
    const before = await tenant.instance(id);
    await signal(id, 'resume');
    const after = await tenant.instance(id);
    assert.deepEqual([after.state, after.next_fire_at], [before.state, before.next_fire_at]);
  }
});

describe('update_context', () => {
  const update = async (id: string, payload: unknown) => {
    await signal(id, 'update_context', payload);
    return (await tenant.instance(id)).context.data;
  };

  test('it is merged in every state but the terminal ones, and moves nothing', async () => {
    for (const state of SOURCES) {
      const id = await tenant.inState(state);
      const before = await tenant.instance(id);
      assert.deepEqual(await update(id, { n: state }), { n: state });
      const after = await tenant.instance(id);
      assert.deepEqual([after.state, after.next_fire_at], [before.state, before.next_fire_at]);
    }
  });

  test('a payload that is no object is accepted and ignored', async () => {
    const id = await tenant.inState('waiting');
    for (const payload of [undefined, null, 1, 'x', [1], true]) {
      assert.deepEqual(await update(id, payload), {});
    }
  });
});

test('custom signals are accepted in the string and the object form, with any JSON as payload', async () => {
  const id = await tenant.inState('waiting');
  const ids = new Set<string>();
  for (const payload of [undefined, null, {}, [1], 'x', 4]) {
    ids.add(await signal(id, 'custom:approved', payload));
    ids.add(await signal(id, { custom: 'approved' }, payload));
  }
  assert.equal(ids.size, 12);
  assert.equal((await tenant.instance(id)).state, 'waiting');
});
