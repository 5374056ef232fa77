/** PATCH context: sections that are sent replace the stored ones, in every state. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceContext } from '../../schema/instance.js';
import { newHandler, step, useTenant } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

const tenant = useTenant();

const patch = (id: string, context: unknown) =>
  tenant.patch<{ context: InstanceContext; error: string }>(`/instances/${id}/context`, {
    context,
  });
const contextOf = async (id: string) => (await tenant.instance(id)).context;

test('data is replaced wholly, and the answer is the new context', async () => {
  const id = await tenant.run([step('a', newHandler())], {
    context: { data: { a: 1, b: 2 }, config: { c: 3 } },
  });
  const { context } = expectStatus(await patch(id, { data: { d: 4 } }), 200);
  assert.deepEqual(context.data, { d: 4 });
  assert.deepEqual(context.config, { c: 3 });
  assert.deepEqual(await contextOf(id), context);
});

test('config and audit are replaced only when they are sent', async () => {
  const id = await tenant.run([step('a', newHandler())], { context: { data: { a: 1 } } });
  await patch(id, { config: { c: 1 }, audit: [{ who: 'me' }] });
  const { data, config, audit } = await contextOf(id);
  assert.deepEqual([data, config, audit], [{ a: 1 }, { c: 1 }, [{ who: 'me' }]]);
  await patch(id, {});
  await patch(id, { data: null, config: null });
  assert.deepEqual((await contextOf(id)).config, { c: 1 });
});

test('runtime belongs to the engine', async () => {
  const id = await tenant.run([step('a', newHandler())]);
  const { runtime } = await contextOf(id);
  await patch(id, { runtime: { attempt: 77, current_step: 'x' }, data: {} });
  assert.deepEqual((await contextOf(id)).runtime, runtime);
});

test('it works in every state, terminal ones included, and moves nothing', async () => {
  const external = await tenant.sequence([step('a', newHandler())]);
  const sleeping = await tenant.sequence([
    step('a', 'sleep', { params: { duration_ms: 600_000 } }),
  ]);
  const ids: Record<string, string> = {
    completed: await tenant.run([step('a', 'noop')]),
    failed: await tenant.run([step('a', 'fail')]),
    scheduled: await tenant.create(external, { next_fire_at: '2100-01-01T00:00:00Z' }),
    waiting: await tenant.create(external),
    running: await tenant.create(sleeping),
    paused: await tenant.create(external),
    cancelled: await tenant.create(external),
  };
  await tenant.post(`/instances/${ids.paused}/signals`, { signal_type: 'pause' });
  await tenant.post(`/instances/${ids.cancelled}/signals`, { signal_type: 'cancel' });
  for (const [state, id] of Object.entries(ids)) {
    await tenant.until(id, state);
    expectStatus(await patch(id, { data: { state } }), 200);
    const instance = await tenant.instance(id);
    assert.deepEqual([instance.state, instance.context.data], [state, { state }]);
  }
});

test('what is no context is 400, and nothing changes', async () => {
  const id = await tenant.run([step('a', newHandler())], { context: { data: { a: 1 } } });
  const before = await contextOf(id);
  for (const context of [undefined, null, 1, 'x', [], { data: 1 }, { data: [] }, { audit: {} }]) {
    const reply = await patch(id, context);
    assert.equal(reply.status, 400, JSON.stringify(context));
    assert.match(reply.body.error, /context/);
  }
  assert.deepEqual(await contextOf(id), before);
});

test('a running step sees the context of its dispatch, a later one the new context', async () => {
  const handler = newHandler();
  const id = await tenant.run(
    [
      step('a', handler, { params: { n: '{{ data.n }}' } }),
      step('b', 'transform', { params: { n: '{{ data.n }}', c: '{{ config.c }}' } }),
    ],
    { context: { data: { n: 1 }, config: { c: 'x' } } },
  );
  const task = await tenant.task(handler);
  assert.deepEqual(task.params, { n: 1 });
  assert.deepEqual(task.context, { data: { n: 1 }, config: { c: 'x' } });
  await patch(id, { data: { n: 2 } });
  await tenant.complete(task);
  await tenant.until(id, 'completed');
  assert.deepEqual((await tenant.outputs(id))[1]?.output, { n: 2, c: 'x' });
});

test('values come back as they were given', async () => {
  const data = {
    text: 'Grüße 🙂 \u2028 "quoted" \\ /',
    numbers: [0, -0.5, 1e-7, 1.7976931348623157e308, 9007199254740991, -9007199254740991],
    nested: { list: [[], [[]], {}, { '': null }], yes: true, no: false },
    'key with spaces': { 'a.b': 1 },
  };
  const id = await tenant.run([step('a', newHandler())]);
  await patch(id, { data });
  assert.deepEqual((await contextOf(id)).data, data);
  const listed = await tenant.get<{ id: string; context: InstanceContext }[]>('/instances');
  assert.deepEqual(listed.body.find((item) => item.id === id)?.context.data, data);
});
