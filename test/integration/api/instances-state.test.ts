/** PATCH state: the whole table of moves, what each move does, retry. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { TaskInstance } from '../../../schema/instance.js';
import { beforeWith, eventually, newHandler, step, useSharedApi } from '../../helpers/api.js';
import { expectStatus } from '../../helpers/client.js';

const STATES = [
  'scheduled',
  'running',
  'waiting',
  'paused',
  'failed',
  'completed',
  'cancelled',
] as const;
type State = (typeof STATES)[number];

/** Every other move is 400. */
const ALLOWED: Readonly<Record<State, readonly State[]>> = {
  scheduled: ['running', 'paused', 'cancelled'],
  running: ['scheduled', 'waiting', 'completed', 'failed', 'paused', 'cancelled'],
  waiting: ['running', 'scheduled', 'cancelled', 'failed'],
  paused: ['scheduled', 'cancelled'],
  failed: ['scheduled'],
  completed: [],
  cancelled: [],
};

const FAR = '2100-01-01T00:00:00.000Z';

let external: string;
let handler: string;
let sleeping: string;
let failing: string;

const api = useSharedApi();
const tenant = api.tenant();

beforeWith(api, async () => {
  handler = newHandler();
  external = await tenant.sequence([step('a', handler), step('b', 'noop')]);
  failing = await tenant.sequence([step('a', 'fail')]);
  sleeping = await tenant.sequence([step('a', 'sleep', { params: { duration_ms: 600_000 } })]);
});

const patch = (id: string, state: string, more = {}) =>
  tenant.patch<TaskInstance & { error: string }>(`/instances/${id}/state`, { state, ...more });

async function instanceIn(state: State): Promise<string> {
  const id = await tenant.create(
    state === 'running' ? sleeping : state === 'failed' ? failing : external,
    state === 'scheduled' ? { next_fire_at: FAR } : {},
  );
  if (state === 'paused') await tenant.post(`/instances/${id}/signals`, { signal_type: 'pause' });
  if (state === 'cancelled') expectStatus(await patch(id, 'cancelled'), 200);
  if (state === 'completed') await tenant.complete(await taskOf(id));
  await tenant.until(id, state);
  return id;
}

/** The task of one instance: others of this file wait in the same queue. */
async function taskOf(id: string) {
  return eventually(async () => {
    const tasks = await tenant.poll(handler, { limit: 1_000 });
    const task = tasks.find((candidate) => candidate.instance_id === id);
    assert.ok(task);
    return task;
  });
}

describe('the table of moves', () => {
  for (const from of STATES) {
    for (const to of STATES) {
      const allowed = ALLOWED[from].includes(to);
      test(`${from} → ${to} is ${allowed ? 200 : 400}`, async () => {
        const id = await instanceIn(from);
        const before = await tenant.instance(id);
        const reply = await patch(id, to);
        if (!allowed) {
          assert.equal(reply.status, 400, reply.text);
          assert.match(reply.body.error, new RegExp(`${from}.*${to}`));
          assert.deepEqual(await tenant.instance(id), before);
          return;
        }
        assert.equal(reply.status, 200, reply.text);
        assert.equal(reply.body.id, id);
        assert.equal(reply.body.state, to);
        // To `running` and `scheduled` it goes on at once; the others stay where they were put.
        if (to !== 'running' && to !== 'scheduled') {
          assert.equal((await tenant.instance(id)).state, to);
        }
        // A retried instance may fail anew between the two reads.
        await eventually(async () => {
          const dlq = await tenant.get<TaskInstance[]>('/instances/dlq?limit=1000');
          const isDead = dlq.body.some((item) => item.id === id);
          assert.equal(isDead, (await tenant.instance(id)).state === 'failed');
        });
      });
    }
  }
});

describe('what a move does', () => {
  test('scheduled with a later next_fire_at waits for it; without one it goes on now', async () => {
    const id = await instanceIn('paused');
    const later = expectStatus(await patch(id, 'scheduled', { next_fire_at: FAR }), 200);
    assert.deepEqual([later.state, later.next_fire_at], ['scheduled', FAR]);
    assert.equal((await tenant.instance(id)).next_fire_at, FAR);
    await patch(id, 'paused');
    const now = expectStatus(await patch(id, 'scheduled'), 200);
    assert.equal(now.state, 'scheduled');
    await tenant.until(id, 'waiting');
  });

  test('a past or null next_fire_at is due now', async () => {
    for (const next_fire_at of ['2001-01-01T00:00:00Z', null]) {
      const id = await instanceIn('paused');
      await patch(id, 'scheduled', { next_fire_at });
      await tenant.until(id, 'waiting');
    }
  });

  test('running lets a scheduled instance start before its time', async () => {
    const id = await instanceIn('scheduled');
    const reply = expectStatus(await patch(id, 'running'), 200);
    assert.notEqual(reply.next_fire_at, FAR);
    await tenant.until(id, 'waiting');
  });

  test('waiting → scheduled keeps the open task, and its completion counts', async () => {
    const id = await instanceIn('waiting');
    const task = await taskOf(id);
    expectStatus(await patch(id, 'scheduled'), 200);
    await tenant.until(id, 'waiting');
    await tenant.complete(task, { x: 1 });
    const done = await tenant.until(id, 'completed');
    assert.deepEqual(done.context.data, { x: 1 });
  });

  for (const to of ['cancelled', 'failed'] as const) {
    test(`waiting → ${to} withdraws the open task`, async () => {
      const id = await instanceIn('waiting');
      const task = await taskOf(id);
      expectStatus(await patch(id, to), 200);
      const { worker_id, claim_epoch } = task;
      const late = await tenant.post(`/workers/tasks/${task.id}/complete`, {
        worker_id,
        claim_epoch,
        output: {},
      });
      assert.equal(late.status, 409);
      const plain = await tenant.post(`/workers/tasks/${task.id}/complete`, {
        worker_id,
        output: {},
      });
      assert.equal(plain.status, 404);
      const open = await tenant.get<{ instance_id: string }[]>(
        '/workers/tasks?state=pending,claimed&limit=1000',
      );
      assert.ok(!open.body.some((item) => item.instance_id === id));
      const tree = await tenant.get<{ state: string }[]>(`/instances/${id}/tree`);
      assert.deepEqual(
        tree.body.map((node) => node.state),
        ['cancelled', 'cancelled'],
      );
    });
  }

  test('running → waiting parks a sleeping instance until a move wakes it', async () => {
    const quick = await tenant.sequence([step('a', 'sleep', { params: { duration_ms: 2_000 } })]);
    const id = await tenant.create(quick);
    expectStatus(await patch(id, 'waiting'), 200);
    const other = await tenant.create(quick);
    await tenant.until(other, 'completed');
    assert.equal((await tenant.instance(id)).state, 'waiting');
    expectStatus(await patch(id, 'running'), 200);
    await tenant.until(id, 'completed');
  });

  test('an unknown state word, no state and a bad next_fire_at are 400 and change nothing', async () => {
    const id = await instanceIn('paused');
    const before = await tenant.instance(id);
    for (const body of [
      { state: 'done' },
      { state: 'Scheduled' },
      {},
      { state: null },
      { state: 'scheduled', next_fire_at: 'x' },
      { state: 'scheduled', next_fire_at: 5 },
    ]) {
      const reply = await tenant.patch(`/instances/${id}/state`, body);
      assert.equal(reply.status, 400, JSON.stringify(body));
    }
    assert.deepEqual(await tenant.instance(id), before);
  });

  test('of 32 equal moves at once exactly one is accepted', async () => {
    const id = await instanceIn('scheduled');
    const replies = await Promise.all(Array.from({ length: 32 }, () => patch(id, 'paused')));
    const accepted = replies.filter((reply) => reply.status === 200);
    assert.equal(accepted.length, 1);
    assert.ok(replies.every((reply) => reply.status === 200 || reply.status === 400));
  });
});

describe('retry', () => {
  test('only a failed instance can be retried', async () => {
    for (const state of STATES) {
      if (state === 'failed') continue;
      const id = await instanceIn(state);
      const reply = await tenant.post<{ error: string }>(`/instances/${id}/retry`);
      assert.equal(reply.status, 400, state);
    }
  });

  for (const how of ['POST retry', 'PATCH state'] as const) {
    test(`${how} runs the failed step again, keeps what was done, and counts attempts afresh`, async () => {
      const own = newHandler();
      const id = await tenant.run([
        step('first', 'noop'),
        step('second', own, {
          retry: { max_attempts: 2, initial_backoff: 1, max_backoff: 1 },
        }),
      ]);
      for (const attempt of [0, 1]) {
        const task = await tenant.task(own);
        assert.equal(task.attempt, attempt);
        await tenant.fail(task, 'again', true);
      }
      await tenant.until(id, 'failed');
      if (how === 'POST retry') {
        const reply = await tenant.post(`/instances/${id}/retry`);
        assert.deepEqual([reply.status, reply.body], [200, { id, state: 'scheduled' }]);
      } else {
        assert.equal(expectStatus(await patch(id, 'scheduled'), 200).state, 'scheduled');
      }
      const task = await tenant.task(own);
      assert.equal(task.attempt, 0);
      await tenant.fail(task, 'again', true);
      const last = await tenant.task(own);
      assert.equal(last.attempt, 1);
      await tenant.complete(last, { ok: true });
      await tenant.until(id, 'completed');
      assert.deepEqual(
        (await tenant.outputs(id)).map((row) => [row.block_id, row.output]),
        [
          ['first', {}],
          ['second', { ok: true }],
        ],
      );
    });
  }

  test('a retry with a later next_fire_at waits for it', async () => {
    const id = await instanceIn('failed');
    const reply = expectStatus(await patch(id, 'scheduled', { next_fire_at: FAR }), 200);
    assert.deepEqual([reply.state, reply.next_fire_at], ['scheduled', FAR]);
    assert.deepEqual((await tenant.instance(id)).next_fire_at, FAR);
    assert.deepEqual(await tenant.outputs(id), []);
  });

  test('a retry keeps the context and removes the error row of the step', async () => {
    const id = await tenant.run([step('a', 'assert', { params: { condition: 'ok' } })]);
    await tenant.until(id, 'failed');
    assert.equal((await tenant.outputs(id)).length, 1);
    await tenant.patch(`/instances/${id}/context`, { context: { data: { ok: true } } });
    await tenant.post(`/instances/${id}/retry`);
    const done = await tenant.until(id, 'completed');
    assert.deepEqual(done.context.data, { ok: true });
    const rows = await tenant.outputs(id);
    assert.deepEqual(
      rows.map((row) => row.output),
      [{ condition: 'ok', passed: true }],
    );
  });
});
