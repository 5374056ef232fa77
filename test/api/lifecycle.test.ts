/** Cancel, outputs, retry. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type Json,
  newHandler,
  sleep,
  step,
  transform,
  tryCatch,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

const api = useSharedApi();

// Cancellation scopes are a kind of block that is not built: the finally list stands for both.
describe('Cancel during finally or a cancellation scope is deferred; the protected node completes; the instance then is cancelled; the next root step never runs', () => {
  const guarded = (last: Json) => [
    tryCatch('t', [step('tried', 'noop')], [], [last, step('tidy', 'noop')]),
    step('next', newHandler()),
  ];

  test('during an external step of a finally list', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const id = await tenant.run(guarded(step('last', handler)));
    const task = await tenant.task(handler);
    await tenant.signal(id, 'cancel');
    assert.equal((await tenant.instance(id)).state, 'waiting');
    assert.equal((await tenant.nodeStates(id)).last, 'waiting');
    await tenant.complete(task, { cleaned: true });
    await tenant.until(id, 'cancelled');
    assert.deepEqual(await tenant.rowsOf(id), ['tried', 'last', 'tidy']);
    const { last, tidy, next } = await tenant.nodeStates(id);
    assert.deepEqual([last, tidy, next], ['completed', 'completed', 'cancelled']);
  });

  test('during a sleep of a finally list, which lasts to its end', async () => {
    const tenant = api.tenant();
    const id = await tenant.run(guarded(sleep('last', 500)));
    await tenant.signal(id, 'cancel');
    await tenant.until(id, 'cancelled');
    assert.deepEqual(await tenant.rowsOf(id), ['tried', 'last', 'tidy']);
    assert.equal((await tenant.nodeStates(id)).next, 'cancelled');
  });
});

describe('Non-cancellable step with cancel still reaches a terminal state', () => {
  for (const call of ['complete', 'fail'] as const) {
    test(`when its worker calls ${call}`, async () => {
      const tenant = api.tenant();
      const handler = newHandler();
      const id = await tenant.run([step('a', handler, { cancellable: false }), step('b', 'noop')]);
      const task = await tenant.task(handler);
      await tenant.signal(id, 'cancel');
      assert.equal((await tenant.instance(id)).state, 'waiting');
      assert.equal(await tenant.call(call, task), 200);
      await tenant.until(id, 'cancelled');
      assert.deepEqual(await tenant.rowsOf(id), call === 'complete' ? ['a'] : []);
    });
  }
});

describe('Outputs are visible while later steps still run; empty for a fresh instance; a completed block is not run again after a retry of the instance', () => {
  test('outputs are visible while later steps still run', async () => {
    const tenant = api.tenant();
    const id = await tenant.run([transform('a', { n: 1 }), sleep('b', 600_000)]);
    assert.deepEqual(await tenant.outputsOf(id), { a: { n: 1 } });
    assert.equal((await tenant.instance(id)).state, 'running');
  });

  test('a completed block is not run again after a retry of the instance', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const id = await tenant.run([
      step('a', handler),
      step('b', 'assert', { params: { condition: 'ok' } }),
    ]);
    await tenant.complete(await tenant.task(handler), { n: 1 });
    await tenant.until(id, 'failed');
    const [first] = await tenant.outputs(id);
    await tenant.signal(id, 'update_context', { ok: true });
    expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    await tenant.until(id, 'completed');
    assert.deepEqual((await tenant.outputs(id))[0], first);
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'b']);
    assert.deepEqual(await tenant.poll(handler), []);
  });
});
