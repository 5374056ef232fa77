/** Cancel, refused addresses, retry, restart. */

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import {
  eventually,
  type Json,
  newHandler,
  sleep,
  step,
  type Tenant,
  transform,
  tryCatch,
  useApi,
} from '../../helpers/api.js';
import { expectStatus } from '../../helpers/client.js';

const FAR = '2100-01-01T00:00:00.000Z';

// Without ENGINE_ALLOW_INTERNAL_URLS, so that private addresses are refused.
const api = useApi({ env: { ENGINE_SHARDS: '2' } });

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

describe('http_request to 127.0.0.1, 10/8, 192.168/16, 169.254.169.254 fails permanently and lands in the DLQ', () => {
  for (const host of ['127.0.0.1', '10.0.0.1', '10.255.1.2', '192.168.7.7', '169.254.169.254']) {
    test(host, async () => {
      const tenant = api.tenant();
      const id = await tenant.runUntil('failed', [
        step('a', 'http_request', {
          params: { url: `http://${host}/` },
          // A retryable failure would leave the instance scheduled.
          retry: { max_attempts: 5, initial_backoff: 60_000 },
        }),
      ]);
      assert.equal((await tenant.outputsOf(id)).a?.retryable, false);
      assert.deepEqual(await tenant.deadLetters(), [id]);
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

  test('they are empty for a fresh instance', async () => {
    const tenant = api.tenant();
    const id = await tenant.run([step('a', 'noop')], { next_fire_at: FAR });
    assert.deepEqual(await tenant.outputs(id), []);
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

describe('State, outputs, audit, checkpoints, worker tasks survive a server restart; a large context round-trips', () => {
  const handler = newHandler();
  /** With the punctuation around it, just below the 256 KiB that a context may have. */
  const large = { text: 'é'.repeat(130_000) };
  let tenant: Tenant;
  let paths: Readonly<Record<string, string>>;
  let told: Readonly<Record<string, unknown>>;

  const readAll = async () => {
    const entries = Object.entries(paths).map(
      async ([what, path]) => [what, expectStatus(await tenant.get(path), 200)] as const,
    );
    return Object.fromEntries(await Promise.all(entries));
  };

  before(async () => {
    tenant = api.tenant();
    const id = await tenant.run([transform('a', { n: 1 }), step('b', handler), step('c', 'noop')], {
      context: { data: large },
    });
    const task = await tenant.task(handler);
    const checkpoint = { checkpoint: { page: 3 }, checkpoint_seq: 0 };
    assert.equal(await tenant.call('heartbeat', task, checkpoint), 200);
    const checkpoints = `/instances/${id}/checkpoints`;
    for (const page of [1, 2]) {
      expectStatus(await tenant.post(checkpoints, { checkpoint_data: { page } }), 201);
    }
    paths = {
      state: `/instances/${id}`,
      outputs: `/instances/${id}/outputs`,
      audit: `/instances/${id}/audit`,
      checkpoints,
      'worker tasks': `/workers/tasks?handler_name=${handler}`,
    };
    told = await readAll();
    await api.restart('SIGTERM');
  });

  for (const what of ['state', 'outputs', 'audit', 'checkpoints', 'worker tasks']) {
    test(`the ${what}`, async () => {
      assert.deepEqual((await readAll())[what], told[what]);
      assert.notEqual(JSON.stringify(told[what]), '[]');
    });
  }

  test('a large context round-trips', async () => {
    const { context } = (await readAll()).state as { context: { data: Json } };
    assert.deepEqual(context.data, large);
  });

  test('and the run goes on', async () => {
    const [task] = await tenant.tasks(handler);
    assert.ok(task);
    await tenant.complete(task, { done: true });
    await eventually(async () => {
      assert.deepEqual(await tenant.rowsOf(task.instance_id), ['a', 'b', 'c']);
    });
  });
});
