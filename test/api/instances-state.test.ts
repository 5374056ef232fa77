/** PATCH state: the whole table of moves, what each move does, retry. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { TaskInstance } from '../../schema/instance.js';
import { beforeWith, eventually, newHandler, step, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

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
  test('a past or null next_fire_at is due now', async () => {
    for (const next_fire_at of ['2001-01-01T00:00:00Z', null]) {
      const id = await instanceIn('paused');
      await patch(id, 'scheduled', { next_fire_at });
      await tenant.until(id, 'waiting');
    }
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
  test('a retry with a later next_fire_at waits for it', async () => {
    const id = await instanceIn('failed');
    const reply = expectStatus(await patch(id, 'scheduled', { next_fire_at: FAR }), 200);
    assert.deepEqual([reply.state, reply.next_fire_at], ['scheduled', FAR]);
    assert.deepEqual((await tenant.instance(id)).next_fire_at, FAR);
    assert.deepEqual(await tenant.outputs(id), []);
  });
});
