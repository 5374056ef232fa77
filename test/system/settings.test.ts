/** Environment variables that change what a client sees. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newHandler, step, useApi } from '../helpers/api.js';

const api = useApi({
  env: {
    ENGINE_SHARDS: '1',
    ENGINE_REQUIRE_CLAIM_EPOCH: 'true',
    ENGINE_UNPOLICIED_RETRY: 'fail',
    ENGINE_MAX_BODY_BYTES: '4096',
    ENGINE_MAX_CONTEXT_BYTES: '1024',
    ENGINE_MAX_OUTPUT_BYTES: '2048',
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

  test('ENGINE_MAX_CONTEXT_BYTES bounds the context of a creation', async () => {
    const sequence = await tenant.sequence([step('a', 'noop')]);
    const more = { context: { data: { x: 'x'.repeat(1_100) } } };
    assert.equal((await tenant.post('/instances', tenant.creation(sequence, more))).status, 413);
  });

  test('ENGINE_MAX_OUTPUT_BYTES bounds what one worker gives: 413, and it may complete with less', async () => {
    const handler = newHandler();
    const id = await tenant.run([step('a', handler, { merge_output: false })]);
    const task = await tenant.task(handler);
    const { worker_id, claim_epoch } = task;
    const large = { worker_id, claim_epoch, output: { y: 'y'.repeat(2_048) } };
    const reply = await tenant.post<{ error: string }>(`/workers/tasks/${task.id}/complete`, large);
    assert.equal(reply.status, 413);
    assert.match(reply.body.error, /output is 2056 bytes, the limit is 2048/);
    await tenant.complete(task, { y: 'y'.repeat(2_040) });
    await tenant.until(id, 'completed');
  });

  test('a worker that is done is never told 413 for the context: the step fails for good, and its output is kept', async () => {
    const handler = newHandler();
    const sequence = await tenant.sequence([step('a', handler, { retry: { max_attempts: 3 } })]);
    const data = { x: 'x'.repeat(900) };
    const id = await tenant.create(sequence, { context: { data } });
    const output = { y: 'y'.repeat(200) };
    await tenant.complete(await tenant.task(handler), output);
    await tenant.until(id, 'failed');
    assert.deepEqual((await tenant.instance(id)).context.data, data);
    assert.deepEqual(
      (await tenant.outputs(id)).map((row) => [row.block_id, row.output]),
      [['a', output]],
    );
    assert.deepEqual(await tenant.poll(handler), []);
  });

  test('an output with merge_output: false stays out of the context, and later steps can read it', async () => {
    const handler = newHandler();
    const blocks = [
      step('a', handler, { merge_output: false }),
      step('b', 'transform', { params: { size: '{{outputs.a.n}}' } }),
    ];
    const sequence = await tenant.sequence(blocks);
    const data = { x: 'x'.repeat(900) };
    const id = await tenant.create(sequence, { context: { data } });
    await tenant.complete(await tenant.task(handler), { n: 7, y: 'y'.repeat(1_000) });
    await tenant.until(id, 'completed');
    assert.deepEqual((await tenant.instance(id)).context.data, data);
    assert.deepEqual((await tenant.outputs(id)).at(-1)?.output, { size: 7 });
  });
});
