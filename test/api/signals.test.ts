/** Signals: what each does in each state, their order, refusals. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { TaskInstance } from '../../schema/instance.js';
import { eventually, type Json, newHandler, step, useTenant } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

const FAR = '2100-01-01T00:00:00.000Z';

const tenant = useTenant();

const send = (id: string, signal_type: unknown, payload?: unknown) =>
  tenant.post<{ signal_id: string; error: string }>(`/instances/${id}/signals`, {
    signal_type,
    payload,
  });
const signal = async (id: string, type: unknown, payload?: unknown) =>
  expectStatus(await send(id, type, payload), 201).signal_id;

const asleep = () =>
  tenant.run([step('a', 'sleep', { params: { duration_ms: 600_000 } }), step('b', 'noop')]);
const later = () => tenant.run([step('a', 'noop')], { next_fire_at: FAR });
const external = () => tenant.run([step('a', newHandler()), step('b', 'noop')]);
async function failed(): Promise<string> {
  const id = await tenant.run([step('a', 'fail')]);
  await tenant.until(id, 'failed');
  return id;
}

const SOURCES: readonly [string, () => Promise<string>][] = [
  ['scheduled', later],
  ['running', asleep],
  ['waiting', external],
  ['failed', failed],
];

describe('pause and resume', () => {
  for (const [state, make] of SOURCES) {
    test(`pause makes a ${state} instance paused`, async () => {
      const id = await make();
      await tenant.until(id, state);
      await signal(id, 'pause');
      assert.equal((await tenant.instance(id)).state, 'paused');
      const dlq = await tenant.get<TaskInstance[]>('/instances/dlq?limit=1000');
      assert.ok(!dlq.body.some((item) => item.id === id));
    });
  }

  test('resume in any other state does nothing', async () => {
    for (const [state, make] of SOURCES) {
      const id = await make();
      const before = await tenant.until(id, state);
      await signal(id, 'resume');
      const after = await tenant.instance(id);
      assert.deepEqual([after.state, after.next_fire_at], [before.state, before.next_fire_at]);
    }
  });

  test('a second pause is accepted and changes nothing', async () => {
    const id = await external();
    await signal(id, 'pause');
    await signal(id, 'pause');
    assert.equal((await tenant.instance(id)).state, 'paused');
  });

  test('a pending task of a paused instance can be had again after it', async () => {
    const handler = newHandler();
    const id = await tenant.run([step('a', handler)]);
    await signal(id, 'pause');
    assert.deepEqual(await tenant.poll(handler), []);
    await signal(id, 'resume');
    assert.equal((await tenant.task(handler)).instance_id, id);
  });
});

describe('cancel', () => {
  for (const [state, make] of SOURCES) {
    test(`cancel makes a ${state} instance cancelled`, async () => {
      const id = await make();
      await tenant.until(id, state);
      await signal(id, 'cancel');
      await tenant.until(id, 'cancelled');
      const dlq = await tenant.get<TaskInstance[]>('/instances/dlq?limit=1000');
      assert.ok(!dlq.body.some((item) => item.id === id));
    });
  }

  test('cancel ends a paused instance and withdraws its task', async () => {
    const handler = newHandler();
    const id = await tenant.run([step('a', handler)]);
    await signal(id, 'pause');
    await signal(id, 'cancel');
    await tenant.until(id, 'cancelled');
    assert.deepEqual(await tenant.poll(handler), []);
    assert.deepEqual((await tenant.get(`/workers/tasks?handler_name=${handler}`)).body, []);
  });
});

describe('update_context', () => {
  const update = async (id: string, payload: unknown) => {
    await signal(id, 'update_context', payload);
    return (await tenant.instance(id)).context.data;
  };

  test('each top-level key replaces the one of context.data, others stay', async () => {
    const id = await tenant.run([step('a', newHandler())], {
      context: { data: { a: 1, b: { x: 1 } }, config: { c: 1 } },
    });
    assert.deepEqual(await update(id, { b: { y: 2 }, d: [3] }), { a: 1, b: { y: 2 }, d: [3] });
    assert.deepEqual((await tenant.instance(id)).context.config, { c: 1 });
  });

  test('it is merged in every state but the terminal ones, and moves nothing', async () => {
    for (const [state, make] of SOURCES) {
      const id = await make();
      const before = await tenant.until(id, state);
      assert.deepEqual(await update(id, { n: state }), { n: state });
      const after = await tenant.instance(id);
      assert.deepEqual([after.state, after.next_fire_at], [before.state, before.next_fire_at]);
    }
  });

  test('a payload that is no object is accepted and ignored', async () => {
    const id = await external();
    for (const payload of [undefined, null, 1, 'x', [1], true]) {
      assert.deepEqual(await update(id, payload), {});
    }
  });

  test('later steps see it', async () => {
    const handler = newHandler();
    const id = await tenant.run([
      step('a', handler),
      step('b', 'transform', { params: { seen: '{{ data.n }}' } }),
    ]);
    const task = await tenant.task(handler);
    await update(id, { n: 7 });
    await tenant.complete(task);
    await tenant.until(id, 'completed');
    assert.deepEqual((await tenant.outputs(id))[1]?.output, { seen: 7 });
  });

  test('50 at once are all merged', async () => {
    const id = await external();
    await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        signal(id, 'update_context', { [`k${index}`]: index }),
      ),
    );
    assert.equal(Object.keys((await tenant.instance(id)).context.data).length, 50);
  });

  test('the last of several wins', async () => {
    const id = await external();
    for (let index = 0; index < 10; index++) await signal(id, 'update_context', { n: index });
    assert.deepEqual((await tenant.instance(id)).context.data, { n: 9 });
  });
});

describe('custom signals', () => {
  test('the string and the object form are accepted, with any JSON as payload', async () => {
    const id = await external();
    const ids = new Set<string>();
    for (const payload of [undefined, null, {}, [1], 'x', 4]) {
      ids.add(await signal(id, 'custom:approved', payload));
      ids.add(await signal(id, { custom: 'approved' }, payload));
    }
    assert.equal(ids.size, 12);
    assert.equal((await tenant.instance(id)).state, 'waiting');
  });

  test('a custom signal does not start a delayed instance early', async () => {
    const id = await later();
    await signal(id, 'custom:go');
    const instance = await tenant.instance(id);
    assert.deepEqual([instance.state, instance.next_fire_at], ['scheduled', FAR]);
  });
});

describe('refusals', () => {
  test('an unknown or malformed signal_type is 400 and stores nothing', async () => {
    const id = await external();
    const before = await tenant.instance(id);
    for (const type of [
      'stop',
      'PAUSE',
      '',
      'custom:',
      'custom: ',
      null,
      5,
      {},
      { custom: 5 },
      [],
    ]) {
      const reply = await send(id, type);
      assert.equal(reply.status, 400, JSON.stringify(type));
      assert.match(reply.body.error, /signal_type/);
    }
    const none = await tenant.post(`/instances/${id}/signals`, { payload: {} });
    assert.equal(none.status, 400);
    assert.deepEqual(await tenant.instance(id), before);
  });

  test('a signal sent before the end and one after it: the first counts, the second is 400', async () => {
    const id = await external();
    const types = ['cancel', ...Array<string>(20).fill('update_context')];
    const replies = await Promise.all(types.map((type) => send(id, type, { n: 1 } as Json)));
    const statuses = new Set(replies.map((reply) => reply.status));
    assert.equal(replies[0]?.status, 201);
    assert.ok([...statuses].every((status) => status === 201 || status === 400));
    await eventually(async () => assert.equal((await tenant.instance(id)).state, 'cancelled'));
    assert.equal((await send(id, 'cancel')).status, 400);
  });
});
