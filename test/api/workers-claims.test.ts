/** What workers do with a claimed task: complete, fail, heartbeat; whose call counts; the history. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { WorkerAttempt, WorkerTask } from '../../schema/worker.js';
import { eventually, type Json, newHandler, step, useTenant } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';

const tenant = useTenant();

type Call = 'complete' | 'fail' | 'heartbeat';
const NEEDED: Readonly<Record<Call, Json>> = {
  complete: { output: { ok: true } },
  fail: { message: 'no' },
  heartbeat: {},
};

const call = (task: { id: string }, name: Call, body: Json) =>
  tenant.post<Json & { error: string }>(`/workers/tasks/${task.id}/${name}`, {
    ...NEEDED[name],
    ...body,
  });
const attempts = async (task: { id: string }, query = '') =>
  expectStatus(
    await tenant.get<WorkerAttempt[]>(`/workers/tasks/${task.id}/attempts${query}`),
    200,
  );

async function claimed(more: Json = {}, worker = 'w1'): Promise<WorkerTask> {
  const handler = newHandler();
  await tenant.run([step('a', handler, more)]);
  return tenant.task(handler, { worker_id: worker });
}

describe('complete', () => {
  test('it stores the output, merges its keys into context.data, and the instance goes on', async () => {
    const handler = newHandler();
    const id = await tenant.run(
      [step('a', handler), step('b', 'transform', { params: { c: '{{ data.category }}' } })],
      { context: { data: { kept: 1, deep: { x: 1 } } } },
    );
    const task = await tenant.task(handler);
    const output = { category: 'A', deep: { y: 2 } };
    const reply = await call(task, 'complete', { worker_id: 'w1', claim_epoch: 1, output });
    assert.equal(reply.status, 200);
    const record = reply.body as unknown as WorkerTask;
    assert.deepEqual([record.id, record.state, record.output], [task.id, 'completed', output]);
    assert.ok(record.completed_at);
    const done = await tenant.until(id, 'completed');
    assert.deepEqual(done.context.data, { kept: 1, ...output });
    assert.deepEqual(columns(await tenant.outputs(id), 'block_id', 'attempt', 'output'), [
      ['a', 0, output],
      ['b', 0, { c: 'A' }],
    ]);
  });

  test('a second completion is 404 without an epoch, 409 with one, and changes nothing', async () => {
    const task = await claimed();
    await tenant.complete(task, { n: 1 });
    const again = { worker_id: 'w1', output: { n: 2 } };
    assert.equal((await call(task, 'complete', again)).status, 404);
    assert.equal((await call(task, 'complete', { ...again, claim_epoch: 1 })).status, 409);
    const rows = await tenant.outputs(task.instance_id);
    assert.deepEqual(column(rows, 'output'), [{ n: 1 }]);
  });

  test('16 completions at once: exactly one is accepted', async () => {
    const task = await claimed();
    const replies = await Promise.all(
      Array.from({ length: 16 }, (_, n) =>
        call(task, 'complete', { worker_id: 'w1', claim_epoch: 1, output: { n } }),
      ),
    );
    const statuses = replies.map((reply) => reply.status).sort();
    assert.deepEqual(statuses, [200, ...Array(15).fill(409)]);
    assert.equal((await tenant.outputs(task.instance_id)).length, 1);
  });
});

describe('fail', () => {
  test('a permanent failure is never tried again', async () => {
    const task = await claimed({ retry: { max_attempts: 5, initial_backoff: 1 } });
    await tenant.fail(task, 'no', false);
    await tenant.until(task.instance_id, 'failed');
  });
});

describe('heartbeats and checkpoints', () => {
  test('a heartbeat moves heartbeat_at and answers the checkpoint number', async () => {
    const task = await claimed();
    const reply = await eventually(async () => {
      const beat = await call(task, 'heartbeat', { worker_id: 'w1', claim_epoch: 1 });
      const [listed] = (
        await tenant.get<WorkerTask[]>(`/workers/tasks?handler_name=${task.handler_name}`)
      ).body;
      assert.ok((listed?.heartbeat_at ?? '') > (task.heartbeat_at ?? ''));
      return beat;
    });
    assert.deepEqual([reply.status, reply.body], [200, { checkpoint_seq: 0 }]);
  });

  test('checkpoints count up, a wrong number is 409, none is 400', async () => {
    const task = await claimed();
    const beat = (more: Json) => call(task, 'heartbeat', { worker_id: 'w1', ...more });
    const first = await beat({ checkpoint: { page: 1 }, checkpoint_seq: 0 });
    assert.deepEqual([first.status, first.body], [200, { checkpoint_seq: 1 }]);
    const second = await beat({ checkpoint: { page: 2 }, checkpoint_seq: 1 });
    assert.deepEqual(second.body, { checkpoint_seq: 2 });
    assert.equal((await beat({ checkpoint: { page: 9 }, checkpoint_seq: 1 })).status, 409);
    const missing = await beat({ checkpoint: { page: 9 } });
    assert.equal(missing.status, 400);
    assert.match(missing.body.error, /checkpoint_seq/);
    assert.deepEqual((await beat({ checkpoint: null })).body, { checkpoint_seq: 2 });
    const [listed] = (
      await tenant.get<WorkerTask[]>(`/workers/tasks?handler_name=${task.handler_name}`)
    ).body;
    assert.deepEqual([listed?.checkpoint_seq, listed?.resume_checkpoint], [2, { page: 2 }]);
  });

  test('a checkpoint of 256 KiB is taken, one byte more is 413', async () => {
    const task = await claimed();
    const beat = (bytes: number) =>
      call(task, 'heartbeat', {
        worker_id: 'w1',
        checkpoint: { x: 'x'.repeat(bytes - '{"x":""}'.length) },
        checkpoint_seq: 0,
      });
    assert.equal((await beat(262_145)).status, 413);
    assert.equal((await beat(262_144)).status, 200);
  });
});

describe('whose call counts', () => {
  test('what is wrong in a body is 400, and the claim stays', async () => {
    const task = await claimed();
    const bodies: [Call, Json, RegExp][] = [
      ['complete', { output: {} }, /worker_id is required/],
      ['complete', { worker_id: 'w1', output: undefined }, /output is required/],
      ['complete', { worker_id: 'w1', output: null }, /output must be an object/],
      ['complete', { worker_id: 'w1', output: [] }, /output must be an object/],
      ['complete', { worker_id: 'w1', output: 'x' }, /output must be an object/],
      ['complete', { worker_id: 'w1', claim_epoch: 'x' }, /claim_epoch must be an integer/],
      ['complete', { worker_id: 'w1', claim_epoch: -1 }, /claim_epoch must be >= 0/],
      ['fail', { message: 'm' }, /worker_id is required/],
      ['fail', { worker_id: 'w1', message: undefined }, /message is required/],
      ['fail', { worker_id: 'w1', message: 5 }, /message must be a string/],
      ['fail', { worker_id: 'w1', retryable: 'yes' }, /retryable must be a boolean/],
      ['heartbeat', {}, /worker_id is required/],
      ['heartbeat', { worker_id: 'w1', checkpoint: 1, checkpoint_seq: 0 }, /checkpoint must be an/],
      ['heartbeat', { worker_id: 'w1', checkpoint_seq: 0.5 }, /checkpoint_seq must be an integer/],
    ];
    for (const [name, body, says] of bodies) {
      const reply = await call(task, name, body);
      assert.equal(reply.status, 400, `${name} ${JSON.stringify(body)}`);
      assert.match(reply.body.error, says);
    }
    await tenant.complete(task);
  });

  test('an output of more than a mebibyte is 413, and the claim stays', async () => {
    const task = await claimed();
    const output = { x: 'x'.repeat(1024 * 1024) };
    assert.equal((await call(task, 'complete', { worker_id: 'w1', output })).status, 413);
    assert.deepEqual(await tenant.outputs(task.instance_id), []);
    await tenant.complete(task);
    await tenant.until(task.instance_id, 'completed');
  });
});

describe('the history', () => {
  test('rejected calls are kept with the caller’s epoch and worker', async () => {
    const task = await claimed();
    await call(task, 'fail', { worker_id: 'thief', claim_epoch: 1 });
    await call(task, 'heartbeat', { worker_id: 'w1', claim_epoch: 7 });
    await tenant.complete(task);
    const entries = await attempts(task);
    assert.deepEqual(columns(entries, 'event', 'claim_epoch', 'worker_id'), [
      ['claimed', 1, 'w1'],
      ['stale_mutation_rejected', 1, 'thief'],
      ['stale_mutation_rejected', 7, 'w1'],
      ['completed', 1, 'w1'],
    ]);
    assert.ok(entries.every((entry) => entry.task_id === task.id));
    assert.equal(new Set(entries.map((entry) => entry.id)).size, 4);
    const times = entries.map((entry) => entry.created_at);
    assert.deepEqual(times, [...times].sort());
    assert.deepEqual(
      column(await attempts(task, '?offset=1&limit=2'), 'id'),
      entries.slice(1, 3).map((entry) => entry.id),
    );
  });
});
