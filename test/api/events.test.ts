/** Events and the steps that wait for them: which wait takes which event, and what is kept meanwhile. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type {
  EventDetails,
  EventReceipt,
  EventReceipts,
  StoredEvent,
} from '../../schema/event.js';
import type { InstanceExplanation } from '../../schema/explanation.js';
import type { AuditEntry, StoredSignal } from '../../schema/instance.js';
import {
  eventually,
  forEach,
  type Json,
  loop,
  parallel,
  race,
  sleep,
  step,
  transform,
  tryCatch,
  useSharedApi,
} from '../helpers/api.js';
import { handedOver, passageOf } from '../helpers/capsules.js';
import { expectStatus } from '../helpers/client.js';

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
  test('an event ends every wait for its name and key, and its payload is their output', async () => {
    const name = newName();
    const sequence = await tenant.sequence([
      wait(name, { key: '{{ data.order }}' }),
      transform('after', { got: '{{ outputs.wait.amount }}' }),
    ]);
    const [a, b, other] = await Promise.all(
      ['o-1', 'o-1', 'o-2'].map((order) =>
        tenant.create(sequence, { context: { data: { order } } }),
      ),
    );
    for (const id of [a, b, other]) await tenant.until(id!, 'waiting');
    const receipt = await send(name, { correlation_key: 'o-1', payload: { amount: 42 } });
    assert.deepEqual([receipt.duplicate, receipt.satisfied, receipt.matched], [false, true, 2]);
    for (const id of [a, b]) {
      await tenant.until(id!, 'completed');
      assert.deepEqual(await tenant.outputsOf(id!), { wait: { amount: 42 }, after: { got: 42 } });
      assert.deepEqual((await tenant.instance(id!)).context.data, { order: 'o-1' });
    }
    assert.equal((await tenant.instance(other!)).state, 'waiting');
    const { status, taken_by } = await event(receipt.event_id);
    assert.equal(status, 'consumed');
    assert.deepEqual(taken_by.map(({ instance_id }) => instance_id).sort(), [a, b].sort());
  });

  test('an event without a key is for waits without one, and a key that is a number counts as its text', async () => {
    const name = newName();
    const plain = await tenant.run([wait(name)]);
    const numbered = await tenant.run([wait(name, { key: 17 })]);
    for (const id of [plain, numbered]) await tenant.until(id, 'waiting');
    assert.equal((await send(name, { correlation_key: '17' })).matched, 1);
    await tenant.until(numbered, 'completed');
    assert.equal((await tenant.instance(plain)).state, 'waiting');
    assert.equal((await send(name)).matched, 1);
    await tenant.until(plain, 'completed');
    assert.deepEqual((await tenant.outputsOf(plain)).wait, null);
  });

  test('an event that comes first is kept, in order, and each goes to one wait', async () => {
    const name = newName();
    const early = [await send(name, { payload: 1 }), await send(name, { payload: 2 })];
    assert.deepEqual(
      early.map(({ satisfied }) => satisfied),
      [false, false],
    );
    const first = await tenant.runUntil('completed', [wait(name)]);
    const second = await tenant.runUntil('completed', [wait(name)]);
    const third = await tenant.run([wait(name)]);
    await tenant.until(third, 'waiting');
    assert.deepEqual((await tenant.outputsOf(first)).wait, 1);
    assert.deepEqual((await tenant.outputsOf(second)).wait, 2);
    const { status, matched } = await event(early[0]!.event_id);
    assert.deepEqual([status, matched], ['consumed', 1]);
  });

  test('an event is kept for its time to live and not longer', async () => {
    const name = newName();
    const { event_id } = await send(name, { ttl_seconds: 1 });
    await eventually(async () => assert.equal((await event(event_id)).status, 'expired'));
    const list = await tenant.get<StoredEvent[]>(`/events?event_name=${name}&status=expired`);
    assert.deepEqual(
      list.body.map(({ id }) => id),
      [event_id],
    );
    const id = await tenant.run([wait(name)]);
    await tenant.until(id, 'waiting');
    assert.equal((await tenant.instance(id)).state, 'waiting');
    assert.equal((await event(event_id)).consumed_at, null);
  });

  test('an event with the same producer_event_id is the same event, whatever else it says', async () => {
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
    const id = await tenant.run([wait(name)]);
    await tenant.until(id, 'waiting');
    const stranger = api.tenant();
    const { event_id, matched } = await send(name, {}, stranger);
    assert.equal(matched, 0);
    assert.equal((await tenant.get(`/events/${event_id}`)).status, 404);
    assert.deepEqual((await tenant.get(`/events?event_name=${name}`)).body, []);
    assert.equal((await tenant.instance(id)).state, 'waiting');
  });

  test('an event whose only wait was over goes to the next one', async () => {
    const name = newName();
    const id = await tenant.run([wait(name)]);
    await tenant.until(id, 'waiting');
    await Promise.all([tenant.signal(id, 'cancel'), send(name, { payload: 'late' })]);
    const [taken] = await tenant.rowsOf(id);
    // Either the first took it before it was cancelled, or it is there for the second.
    if (taken !== undefined) return;
    const next = await tenant.run([wait(name)]);
    await tenant.until(next, 'completed');
  });
});

describe('batches', () => {
  test('a batch of events has an outcome for each event, in their order', async () => {
    const name = newName();
    const id = await tenant.run([wait(name, { key: 'b' })]);
    await tenant.until(id, 'waiting');
    const events = ['a', 'b', 'c'].map((correlation_key) => ({
      event_name: name,
      producer_event_id: `${name}-${correlation_key}`,
      correlation_key,
    }));
    const first = expectStatus(await tenant.post<EventReceipts>('/events/batch', { events }), 200);
    assert.deepEqual(
      first.outcomes.map(({ matched }) => matched),
      [0, 1, 0],
    );
    await tenant.until(id, 'completed');
    const again = expectStatus(await tenant.post<EventReceipts>('/events/batch', { events }), 200);
    assert.ok(again.outcomes.every(({ duplicate }) => duplicate));
    const ids = ({ outcomes }: EventReceipts) => outcomes.map(({ event_id }) => event_id);
    assert.deepEqual(ids(again), ids(first));
  });

  test('a batch of events is refused as a whole when one of its events is wrong', async () => {
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

describe('a request that is wrong', () => {
  const good = { event_name: 'n', producer_event_id: 'p' };
  const WRONG: readonly [Json, RegExp][] = [
    [{ producer_event_id: 'p' }, /event_name/],
    [{ event_name: 'n' }, /producer_event_id/],
    [{ ...good, event_name: ' ' }, /event_name/],
    [{ ...good, producer_event_id: '' }, /producer_event_id/],
    [{ ...good, correlation_key: ' ' }, /correlation_key/],
    [{ ...good, correlation_key: 5 }, /correlation_key/],
    [{ ...good, ttl_seconds: 0 }, /ttl_seconds/],
    [{ ...good, ttl_seconds: 1e9 }, /ttl_seconds/],
  ];
  for (const [body, message] of WRONG) {
    test(`${JSON.stringify(body)} is answered 400 and names the member`, async () => {
      const reply = await tenant.post<{ error: string }>('/events', body);
      assert.equal(reply.status, 400);
      assert.match(reply.body.error, message);
    });
  }

  test('a tenant in the body that is not the one of the header is refused', async () => {
    assert.equal((await tenant.post('/events', { ...good, tenant_id: 'x' })).status, 403);
  });

  test('an unknown filter of the list is refused', async () => {
    assert.equal((await tenant.get('/events?name=x')).status, 400);
  });
});

describe('waits', () => {
  test('a waiting step times out as the params or the step say, and is tried again with a new wait', async () => {
    for (const block of [
      wait(newName(), { timeout_ms: 50 }),
      wait(newName(), { timeout_ms: 600_000 }, { timeout: 50 }),
    ]) {
      const id = await tenant.runUntil('failed', [block]);
      const { failure } = await tenant.instance(id);
      assert.deepEqual([failure?.code, failure?.message], ['timeout', 'timed out after 50 ms']);
    }
    const name = newName();
    const retry = { max_attempts: 100, initial_backoff: 1, max_backoff: 1 };
    const id = await tenant.run([wait(name, { timeout_ms: 50 }, { retry })]);
    await eventually(async () => assert.ok((await auditOf(id, 'step_retried')).length > 0));
    await send(name, { payload: 'at last' });
    await tenant.until(id, 'completed');
  });

  test('a waiting step goes on waiting when the payload does not conform to its schema, and that is audited', async () => {
    const name = newName();
    const schema = { type: 'object', required: ['amount'] };
    const id = await tenant.run([wait(name, { schema })]);
    await tenant.until(id, 'waiting');
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
    assert.deepEqual(
      (await signals(id)).map(({ status }) => status),
      ['refused'],
    );
  });

  test('a waiting step in each pass of a loop takes another event', async () => {
    const name = newName();
    for (const payload of [1, 2]) await send(name, { payload });
    const id = await tenant.run([forEach('each', 'items', [wait(name)])], {
      context: { data: { items: ['a', 'b', 'c'] } },
    });
    const taken = async () => (await tenant.rowsOf(id)).filter((block) => block === 'wait').length;
    await eventually(async () => assert.equal(await taken(), 2));
    await tenant.until(id, 'waiting');
    await send(name, { payload: 3 });
    await tenant.until(id, 'completed');
    const rows = (await tenant.outputs(id)).filter(({ block_id }) => block_id === 'wait');
    assert.deepEqual(
      rows.map(({ output }) => output as unknown),
      [1, 2, 3],
    );
  });

  test('a waiting step stands beside others that wait for the same event', async () => {
    const name = newName();
    const both = ['a', 'b'].map((id) => [step(id, 'wait_for_event', { params: { name } })]);
    const id = await tenant.run([parallel('p', ...both)]);
    await tenant.until(id, 'waiting');
    assert.equal((await send(name, { payload: 1 })).matched, 2);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.outputsOf(id), { a: 1, b: 1 });
  });

  test('a waiting step that loses a race waits no more', async () => {
    const [name, other] = [newName(), newName()];
    const id = await tenant.run([
      race('r', [[wait(name)], [step('w', 'wait_for_event', { params: { name: other } })]]),
    ]);
    await tenant.until(id, 'waiting');
    await send(other);
    await tenant.until(id, 'completed');
    await eventually(async () => {
      const text = 'select 1 from event_waits where instance_id = $1';
      assert.equal((await api.sql.query(text, [id])).rowCount, 0);
    });
    assert.equal((await send(name)).matched, 0);
  });

  test('a waiting step of an instance that is cancelled waits no more', async () => {
    const name = newName();
    const id = await tenant.run([wait(name)]);
    await tenant.until(id, 'waiting');
    await tenant.signal(id, 'cancel');
    await tenant.until(id, 'cancelled');
    await eventually(async () => assert.equal((await send(name)).matched, 0));
  });

  test('a waiting step of a paused instance has its event when the instance is resumed', async () => {
    const name = newName();
    const id = await tenant.run([wait(name), step('b', 'noop')]);
    await tenant.until(id, 'waiting');
    await tenant.signal(id, 'pause');
    await send(name, { payload: 1 });
    assert.equal((await tenant.instance(id)).state, 'paused');
    await tenant.signal(id, 'resume');
    await tenant.until(id, 'completed');
    assert.deepEqual((await tenant.outputsOf(id)).wait, 1);
  });

  test('a waiting step is caught when it fails, and runs again with the instance', async () => {
    const name = newName();
    const caught = await tenant.runUntil('completed', [
      tryCatch('t', [wait(name, { timeout_ms: 20 })], [step('c', 'noop')]),
    ]);
    assert.deepEqual(await tenant.rowsOf(caught), ['wait', 'c']);
    const patient = [wait(name, { timeout_ms: '{{ data.ms }}' })];
    const id = await tenant.runUntil('failed', patient, { ms: 20 });
    await tenant.signal(id, 'update_context', { ms: 600_000 });
    await send(name, { payload: 'kept' });
    expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    await tenant.until(id, 'completed');
    assert.deepEqual((await tenant.outputsOf(id)).wait, 'kept');
  });

  test('a waiting step waits for nothing in a dry run', async () => {
    const id = await tenant.run([wait(newName(), { key: 'k' })], { dry_run: true });
    await tenant.until(id, 'completed');
    const { wait: output } = await tenant.outputsOf(id);
    assert.deepEqual([output?.dry_run, output?.handler], [true, 'wait_for_event']);
  });

  test('a waiting step fails for good when its params are wrong once they are known', async () => {
    for (const key of [{ a: 1 }, '  ', true]) {
      const id = await tenant.run([wait('n', { key: '{{ data.key }}' })], {
        context: { data: { key } },
      });
      await tenant.until(id, 'failed');
      assert.equal((await tenant.instance(id)).failure?.code, 'invalid_params');
    }
  });

  test('a waiting step is explained with the event and the requests that end the wait', async () => {
    const name = newName();
    const id = await tenant.run([wait(name, { key: 'k', timeout_ms: 600_000 })]);
    await tenant.until(id, 'waiting');
    const { body } = await tenant.get<InstanceExplanation>(`/instances/${id}/explain`);
    const [found] = body.waiting_for;
    assert.deepEqual([found?.kind, found?.name, found?.key], ['event', name, 'k']);
    assert.ok(found?.until && found.since);
    const action = body.next.find(({ path }) => path === '/events');
    expectStatus(await tenant.post('/events', action?.body as Json), 201);
    await tenant.until(id, 'completed');
  });

  test('a waiting step is stored only with params that can be right', async () => {
    for (const [params, message] of [
      [{}, /params\.name/],
      [{ name: '' }, /params\.name/],
      [{ name: 'n', key: [] }, /params\.key/],
      [{ name: 'n', timeout_ms: 0 }, /params\.timeout_ms/],
      [{ name: 'n', schema: { type: 'nothing' } }, /params\.schema/],
      [{ name: 'n', schema: { const: '{{ data.x }}' } }, /params\.schema/],
      [{ name: 'n', schema: 'x' }, /params\.schema/],
    ] as const) {
      const definition = tenant.definition([step('a', 'wait_for_event', { params })]);
      const reply = await tenant.post<{ error: string }>('/sequences', definition);
      assert.equal(reply.status, 400, JSON.stringify(params));
      assert.match(reply.body.error, message);
    }
  });

  test('a waiting step is kept by an instance that goes over to another version', async () => {
    const name = newName();
    const named = { name: `s-${randomUUID()}` };
    const sequence = await tenant.sequence([wait(name)], named);
    const next = await tenant.sequence([wait(name), step('b', 'noop')], { ...named, version: 2 });
    const id = await tenant.create(sequence);
    await tenant.until(id, 'waiting');
    const migration = { instance_id: id, target_sequence_id: next };
    expectStatus(await tenant.post('/sequences/migrate-instance', migration), 200);
    assert.equal((await send(name, { payload: 1 })).matched, 1);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['wait', 'b']);
  });
});

test('an instance that is handed over takes its waits along, and the signals that it keeps', async () => {
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

  test('a custom signal is kept until a wait for its name takes it, in order', async () => {
    const id = await tenant.run([
      sleep('s', 150),
      waitFor('a', 'go'),
      waitFor('b', 'go'),
      waitFor('c', 'other'),
    ]);
    for (const payload of [1, { n: 2 }, 3]) await tenant.signal(id, 'custom:go', payload);
    await tenant.until(id, 'waiting');
    assert.deepEqual(await tenant.outputsOf(id), { s: { slept_ms: 150 }, a: 1, b: { n: 2 } });
    await tenant.signal(id, 'custom:other', 'x');
    await tenant.until(id, 'completed');
    const told = (await signals(id)).map(({ signal_type, status, taken_by, payload }) => [
      signal_type,
      payload,
      status,
      taken_by,
    ]);
    assert.deepEqual(told, [
      ['custom:go', 1, 'taken', 'a'],
      ['custom:go', { n: 2 }, 'taken', 'b'],
      ['custom:go', 3, 'kept', null],
      ['custom:other', 'x', 'taken', 'c'],
    ]);
    const kept = await signals(id, '?status=kept');
    assert.deepEqual(
      kept.map(({ payload }) => payload),
      [3],
    );
  });

  test('a custom signal is listed with all others of the instance, page by page', async () => {
    const id = await tenant.run([sleep('s', 600_000)]);
    await tenant.signal(id, 'update_context', { a: 1 });
    for (const n of [1, 2, 3]) await tenant.signal(id, 'custom:n', n);
    const first = await tenant.get<StoredSignal[]>(`/instances/${id}/signals?limit=3`);
    assert.deepEqual(
      first.body.map(({ status }) => status),
      ['applied', 'kept', 'kept'],
    );
    const cursor = first.headers['x-next-cursor'];
    const second = await signals(id, `?limit=3&cursor=${cursor}`);
    assert.deepEqual(
      second.map(({ payload }) => payload),
      [3],
    );
    assert.equal((await tenant.get(`/instances/${randomUUID()}/signals`)).status, 404);
    assert.equal((await api.tenant().get(`/instances/${id}/signals`)).status, 404);
  });

  test('a custom signal ends a wait whatever its key, and of one instance only', async () => {
    const name = newName();
    const [a, b] = [
      await tenant.run([wait(name, { key: 'k' })]),
      await tenant.run([wait(name, { key: 'k' })]),
    ];
    for (const id of [a, b]) await tenant.until(id, 'waiting');
    await tenant.signal(a, `custom:${name}`, 1);
    await tenant.until(a, 'completed');
    assert.equal((await tenant.instance(b)).state, 'waiting');
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
    assert.match(refused.body.error, /1000 is the most/);
    await tenant.signal(id, 'pause');
    assert.equal((await signals(id, '?limit=1000')).length, 1_000);
  });

  test('a custom signal that comes with a resume-from or a fork is there for the wait', async () => {
    const name = newName();
    const id = await tenant.runUntil('failed', [step('a', 'noop'), wait(name, { timeout_ms: 1 })]);
    const given = { signals: [{ signal_type: `custom:${name}`, payload: 'now' }] };
    const fork = await tenant.post<{ id: string }>(`/instances/${id}/fork`, {
      from_block_id: 'wait',
      dry_run: false,
      ...given,
    });
    expectStatus(await tenant.post(`/instances/${id}/resume-from/wait`, given), 200);
    for (const one of [id, expectStatus(fork, 201).id]) {
      await tenant.until(one, 'completed');
      assert.deepEqual((await tenant.outputsOf(one)).wait, 'now');
    }
  });
});

describe('loops', () => {
  test('a loop of waits goes on with each event until its condition is over', async () => {
    const name = newName();
    const id = await tenant.run([loop('l', "outputs.wait != 'stop'", [wait(name)], 10)]);
    for (const payload of ['go', 'go', 'stop']) await send(name, { payload });
    await tenant.until(id, 'completed');
    const rows = (await tenant.outputs(id)).filter(({ block_id }) => block_id === 'wait');
    assert.equal(rows.length, 3);
  });
});
