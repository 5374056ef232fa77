/** Requests that wait: creations for the end of their instance, signals for a step that takes them. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { InstanceResult } from '../../schema/instance.js';
import type { SignalAnswer } from '../../schema/signal.js';
import {
  type Json,
  LONG_MS,
  newHandler,
  sleep,
  step,
  transform,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

const api = useSharedApi();
const tenant = api.tenant();

const WAIT = `wait_ms=${LONG_MS}`;
const begin = async (blocks: Json[], more: Json = {}, query = WAIT) =>
  tenant.post<InstanceResult>(
    `/instances?${query}`,
    tenant.creation(await tenant.sequence(blocks), more),
  );
const newName = () => `paid-${randomUUID()}`;
const signalling = (id: string, name: string, payload: unknown = {}, query = WAIT) =>
  tenant.post<SignalAnswer>(`/instances/${id}/signals?${query}`, {
    signal_type: `custom:${name}`,
    payload,
  });

describe('a creation with wait_ms', () => {
  test('is answered 200 with the outputs of an instance that ends in its creation', async () => {
    const data = { n: 2 };
    const reply = await begin(
      [transform('a', { n: '{{ data.n }}' }), transform('b', { m: '{{ outputs.a.n }}' })],
      { context: { data } },
    );
    const { id, ...rest } = expectStatus(reply, 200);
    assert.deepEqual(rest, {
      deduplicated: false,
      state: 'completed',
      outputs: { a: { n: 2 }, b: { m: 2 } },
      failure: null,
    });
    assert.deepEqual(await tenant.outputsOf(id), rest.outputs);
  });

  test('is answered when a worker has completed the last step, with the outputs of all steps', async () => {
    const handler = newHandler();
    const waiting = begin([transform('a', { n: 1 }), step('b', handler)]);
    await tenant.complete(await tenant.task(handler), { done: true });
    const { state, outputs, failure } = expectStatus(await waiting, 200);
    assert.deepEqual([state, failure], ['completed', null]);
    assert.deepEqual(outputs, { a: { n: 1 }, b: { done: true } });
  });

  test('says how an instance failed or was cancelled', async () => {
    const failing = await begin([step('a', 'fail', { params: { message: 'no' } })]);
    const { state, failure } = expectStatus(failing, 200);
    assert.deepEqual([state, failure?.block_id, failure?.message], ['failed', 'a', 'no']);

    const handler = newHandler();
    const waiting = begin([step('a', handler)]);
    await tenant.signal((await tenant.task(handler)).instance_id, 'cancel');
    assert.equal(expectStatus(await waiting, 200).state, 'cancelled');
  });

  test('is answered 202 with the state when the time is over, at once with wait_ms=0', async () => {
    for (const wait of [0, 20]) {
      const reply = await begin([sleep('a', LONG_MS)], {}, `wait_ms=${wait}`);
      const { id, ...rest } = expectStatus(reply, 202);
      assert.deepEqual(rest, { deduplicated: false, state: 'running', failure: null });
      assert.equal((await tenant.instance(id)).state, 'running');
    }
  });

  test('that is repeated waits for the same instance', async () => {
    const handler = newHandler();
    const sequence = await tenant.sequence([step('a', handler)]);
    const create = () =>
      tenant.post<InstanceResult>(
        `/instances?${WAIT}`,
        tenant.creation(sequence, { idempotency_key: 'order-1' }),
      );
    const waiting = [create(), create()];
    const task = await tenant.task(handler);
    waiting.push(create());
    await tenant.complete(task, { ok: 1 });
    const results = (await Promise.all(waiting)).map((reply) => expectStatus(reply, 200));
    results.push(expectStatus(await create(), 200));
    assert.deepEqual(results.map(({ deduplicated }) => deduplicated).sort(), [
      false,
      true,
      true,
      true,
    ]);
    for (const { id, state, outputs } of results) {
      assert.deepEqual([id, state, outputs], [task.instance_id, 'completed', { a: { ok: 1 } }]);
    }
  });

  test('waits for nothing that is scheduled for later than it asks, and for an instance on another shard', async () => {
    const sequence = await tenant.sequence([transform('a', { n: 1 })]);
    const keys = Array.from({ length: 8 }, () => randomUUID());
    const replies = await Promise.all(
      keys.map((idempotency_key) =>
        tenant.post<InstanceResult>(
          `/instances?${WAIT}`,
          tenant.creation(sequence, {
            idempotency_key,
            next_fire_at: new Date(Date.now() + 50).toISOString(),
          }),
        ),
      ),
    );
    for (const reply of replies) assert.equal(expectStatus(reply, 200).state, 'completed');
  });

  test('under a key waits wherever the key is served, and is told at once that it was skipped', async () => {
    const handler = newHandler();
    const concurrency = { key: '{{ data.k }}', limit: 1, when_full: 'skip' };
    const sequence = await tenant.sequence([step('a', handler)], { concurrency });
    const create = (k: string, more: Json = {}) =>
      tenant.post<InstanceResult>(
        `/instances?${WAIT}`,
        tenant.creation(sequence, { context: { data: { k } }, ...more }),
      );
    for (const k of ['a', 'b', 'c', 'd', 'e', 'f']) {
      const own = { idempotency_key: randomUUID() };
      const waiting = [create(k, own)];
      const task = await tenant.task(handler);
      waiting.push(create(k, own));
      const { id, skipped, state } = expectStatus(await create(k), 200);
      assert.deepEqual([id, skipped, state], [task.instance_id, true, undefined]);
      await tenant.complete(task, { k });
      for (const reply of await Promise.all(waiting)) {
        assert.deepEqual(expectStatus(reply, 200).outputs, { a: { k } });
      }
    }
  });

  test('leaves out outputs that are together larger than 1 MiB', async () => {
    const text = 'x'.repeat(400_000);
    const big = (id: string) => transform(id, { text });
    const { state, outputs } = expectStatus(await begin([big('a'), big('b'), big('c')]), 200);
    assert.deepEqual([state, outputs], ['completed', undefined]);
  });

  test('is 400 for a wait that is no number, creates nothing then, and is unknown for batches', async () => {
    const sequence = await tenant.sequence([transform('a', {})]);
    const body = tenant.creation(sequence);
    for (const [path, sent] of [
      ['/instances?wait_ms=soon', body],
      ['/instances?wait_ms=-1', body],
      ['/instances/batch?wait_ms=5', { instances: [body] }],
    ] as const) {
      const { error } = expectStatus(await tenant.post<{ error: string }>(path, sent), 400);
      assert.match(error, /wait_ms/);
    }
    const listed = await tenant.get<unknown[]>(`/instances?sequence_id=${sequence}`);
    assert.deepEqual(listed.body, []);
  });

  test('whose caller goes away leaves its instance running', async () => {
    const handler = newHandler();
    const body = tenant.creation(await tenant.sequence([step('a', handler)]));
    const leaving = new AbortController();
    const waiting = tenant.post(`/instances?${WAIT}`, body, leaving.signal);
    const task = await tenant.task(handler);
    leaving.abort();
    await assert.rejects(waiting);
    await tenant.complete(task);
    await tenant.until(task.instance_id, 'completed');
  });
});

describe('a signal with wait_ms', () => {
  const wait = (name: string, more: Json = {}, params: Json = {}) =>
    step('wait', 'wait_for_event', { params: { name, ...params }, ...more });

  test('is answered with the reply of the step that takes it, rendered with what it took', async () => {
    const name = newName();
    const id = await tenant.run(
      [
        wait(name, { reply: { seen: '{{ outputs.wait.amount }}', by: '{{ data.who }}' } }),
        sleep('b', LONG_MS),
      ],
      { context: { data: { who: 'shop' } } },
    );
    await tenant.until(id, 'waiting');
    const { signal_id, ...answer } = expectStatus(await signalling(id, name, { amount: 5 }), 200);
    assert.match(signal_id, /^[0-9a-f-]{36}$/);
    assert.deepEqual(answer, { taken: true, block_id: 'wait', reply: { seen: 5, by: 'shop' } });
  });

  test('waits for a step that comes later', async () => {
    const [name, handler] = [newName(), newHandler()];
    const id = await tenant.run([step('a', handler), wait(name, { reply: '{{ outputs.a.n }}' })]);
    const waiting = signalling(id, name);
    await tenant.complete(await tenant.task(handler), { n: 7 });
    const { signal_id: _, ...answer } = expectStatus(await waiting, 200);
    assert.deepEqual(answer, { taken: true, block_id: 'wait', reply: 7 });
  });

  test('gets its reply however the units of its instance follow one another', async () => {
    const [name, handler] = [newName(), newHandler()];
    const sequence = await tenant.sequence([
      step('a', handler),
      wait(name, { reply: '{{ data.n }}' }),
    ]);
    const answers = Array.from({ length: 40 }, async (_, n) => {
      const id = await tenant.create(sequence, { context: { data: { n } } });
      const sending = signalling(id, name);
      await tenant.complete(await tenant.task(handler));
      return expectStatus(await sending, 200).reply;
    });
    assert.deepEqual(
      await Promise.all(answers),
      Array.from({ length: 40 }, (_, n) => n),
    );
  });

  test('says that a step refused it, and without a reply only who took it', async () => {
    const name = newName();
    const schema = { type: 'object', required: ['ok'] };
    const id = await tenant.run([wait(name, {}, { schema })]);
    await tenant.until(id, 'waiting');
    const refused = expectStatus(await signalling(id, name, { no: 1 }), 200);
    assert.deepEqual([refused.taken, refused.block_id], [false, 'wait']);
    const taken = expectStatus(await signalling(id, name, { ok: 1 }), 200);
    assert.deepEqual(Object.keys(taken), ['signal_id', 'taken', 'block_id']);
    await tenant.until(id, 'completed');
  });

  test('is answered 202 when no step takes it in time, or the instance ends first', async () => {
    const id = await tenant.run([sleep('a', LONG_MS)]);
    const late = expectStatus(await signalling(id, 'x', {}, 'wait_ms=20'), 202);
    assert.equal(late.taken, false);
    const waiting = signalling(id, 'y');
    await tenant.until(id, 'running');
    await tenant.signal(id, 'cancel');
    const { status, body } = await waiting;
    // It may also come after the cancel.
    if (status !== 400) assert.deepEqual([status, body.taken], [202, false]);
  });

  test('is answered by a person’s gate with its answer, and by the engine for its own signals', async () => {
    const gate = { choices: [{ label: 'Yes', value: 'yes' }], store_as: 'ok' };
    const id = await tenant.run([
      step('ask', 'noop', { wait_for_input: gate, reply: 'noted: {{ data.ok }}' }),
      sleep('b', LONG_MS),
    ]);
    await tenant.until(id, 'waiting');
    const asked = await signalling(id, 'human_input:ask', { value: 'yes' });
    const { signal_id: _, ...answer } = expectStatus(asked, 200);
    assert.deepEqual(answer, { taken: true, block_id: 'ask', reply: 'noted: yes' });
    const paused = await tenant.post<SignalAnswer>(`/instances/${id}/signals?${WAIT}`, {
      signal_type: 'pause',
    });
    assert.equal(expectStatus(paused, 200).taken, true);
  });

  test('gets null as the reply of a template that cannot be evaluated, and the flow goes on', async () => {
    const name = newName();
    const id = await tenant.run([wait(name, { reply: "{{ to_number('x') }}" })]);
    await tenant.until(id, 'waiting');
    const { reply, taken } = expectStatus(await signalling(id, name), 200);
    assert.deepEqual([taken, reply], [true, null]);
    await tenant.until(id, 'completed');
  });
});
