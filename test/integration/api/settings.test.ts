/** Environment variables that change what a client sees. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newHandler, step, useApi } from '../../helpers/api.js';

const api = useApi({
  env: {
    ENGINE_SHARDS: '1',
    ENGINE_REQUIRE_CLAIM_EPOCH: 'true',
    ENGINE_UNPOLICIED_RETRY: 'fail',
    ENGINE_MAX_BODY_BYTES: '4096',
    ENGINE_MAX_CONTEXT_BYTES: '1024',
  },
});
const tenant = api.tenant();

describe('ENGINE_REQUIRE_CLAIM_EPOCH', () => {
  test('complete, fail and heartbeat without claim_epoch are 400, and the claim stays', async () => {
    const handler = newHandler();
    const id = await tenant.run([step('a', handler)]);
    const task = await tenant.task(handler);
    for (const [call, body] of [
      ['complete', { output: {} }],
      ['fail', { message: 'm' }],
      ['heartbeat', {}],
    ] as const) {
      const path = `/workers/tasks/${task.id}/${call}`;
      for (const claim_epoch of [undefined, null]) {
        const reply = await tenant.post<{ error: string }>(path, {
          ...body,
          worker_id: 'w1',
          claim_epoch,
        });
        assert.equal(reply.status, 400, call);
        assert.match(reply.body.error, /claim_epoch is required/);
      }
      const wrong = await tenant.post(path, { ...body, worker_id: 'w1', claim_epoch: 7 });
      assert.equal(wrong.status, 409, call);
    }
    await tenant.complete(task);
    await tenant.until(id, 'completed');
  });
});

describe('`ENGINE_UNPOLICIED_RETRY=fail` makes it a step failure', () => {
  test('With ENGINE_UNPOLICIED_RETRY=fail retryable true without a policy fails at once', async () => {
    const handler = newHandler();
    const id = await tenant.run([step('a', handler)]);
    const task = await tenant.task(handler);
    await tenant.fail(task, 'later', true);
    assert.equal((await tenant.instance(id)).state, 'failed');
    const [listed] = await tenant.tasks(handler);
    assert.deepEqual([listed?.id, listed?.state], [task.id, 'failed']);
    assert.deepEqual(await tenant.poll(handler), []);
    assert.deepEqual(await tenant.deadLetters(), [id]);
  });

  test('a policy still counts', async () => {
    const handler = newHandler();
    const retry = { max_attempts: 2, initial_backoff: 1 };
    const id = await tenant.run([step('a', handler, { retry })]);
    await tenant.fail(await tenant.task(handler), 'later', true);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
  });
});

describe('sizes', () => {
  test('ENGINE_MAX_BODY_BYTES bounds every body', async () => {
    const sequence = await tenant.sequence([step('a', 'noop')]);
    const body = tenant.creation(sequence);
    const rest = JSON.stringify({ ...body, pad: '' }).length;
    const create = (bytes: number) =>
      tenant.post('/instances', { ...body, pad: 'x'.repeat(bytes - rest) });
    assert.equal((await create(4_096)).status, 201);
    assert.equal((await create(4_097)).status, 413);
  });

  test('ENGINE_MAX_CONTEXT_BYTES bounds the context, also as it grows by outputs', async () => {
    const handler = newHandler();
    const sequence = await tenant.sequence([step('a', handler)]);
    const data = { x: 'x'.repeat(900) };
    const id = await tenant.create(sequence, { context: { data } });
    const more = { context: { data: { x: 'x'.repeat(1_100) } } };
    assert.equal((await tenant.post('/instances', tenant.creation(sequence, more))).status, 413);
    const task = await tenant.task(handler);
    const { worker_id, claim_epoch } = task;
    const large = { worker_id, claim_epoch, output: { y: 'y'.repeat(200) } };
    const reply = await tenant.post(`/workers/tasks/${task.id}/complete`, large);
    assert.equal(reply.status, 413);
    assert.deepEqual((await tenant.instance(id)).context.data, data);
    await tenant.complete(task, { y: 'y' });
    await tenant.until(id, 'completed');
  });
});
