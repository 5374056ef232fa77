/** The queue of one handler, without a database: what it asks for is recorded, and answered by hand. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OpenTaskRow } from '../../actors/loader.js';
import { type Poll, QueueActor } from '../../actors/queue.js';
import type { ReadyTask } from '../../actors/ready-tasks.js';
import { POLL_LIMIT_MAX } from '../../schema/worker.js';
import { LIMITS } from '../../src/config.js';

interface Recorded {
  readonly queue: QueueActor;
  readonly claims: { poll: number; task: string; worker: string }[];
  readonly unclaims: [task: string, epoch: number][];
  readonly replies: { request: number; body: string }[];
  readonly reads: number[];
}

/** A queue whose table is empty and read, unless rows are given. */
function newQueue(rows: readonly OpenTaskRow[] | 'unread' = []): Recorded {
  const claims: Recorded['claims'] = [];
  const unclaims: Recorded['unclaims'] = [];
  const replies: Recorded['replies'] = [];
  const reads: number[] = [];
  const queue = new QueueActor({
    claim: (poll, task, worker) => claims.push({ poll, task: task.id, worker }),
    unclaim: (task, epoch) => unclaims.push([task, epoch]),
    reply: (request, body) => replies.push({ request, body }),
    read: (_after, limit) => reads.push(limit),
    expireAt: () => undefined,
  });
  if (rows !== 'unread') queue.loaded(rows, 0);
  return { queue, claims, unclaims, replies, reads };
}

function poll(request: number, changes: Partial<Poll> = {}): Poll {
  const base = { tenant: 't1', worker: 'w1', queue: undefined, limit: 1, until: 0 };
  return { request, ...base, ...changes };
}

function task(id: string, changes: Partial<ReadyTask> = {}): ReadyTask {
  return { id, instance: `i-${id}`, tenant: 't1', queue: '', rank: 2, createdAt: 1, ...changes };
}

function row(id: string, createdAt: string): OpenTaskRow {
  return {
    task_id: id,
    instance_id: `i-${id}`,
    tenant_id: 't1',
    queue_name: null,
    rank: 2,
    created_at: createdAt,
  };
}

const claimedTasks = (recorded: Recorded) => recorded.claims.map((claim) => claim.task);

test('a poll that finds nothing and may not wait is answered with an empty array', () => {
  const { queue, replies } = newQueue();
  queue.poll(poll(1), 10);
  assert.deepEqual(replies, [{ request: 1, body: '[]' }]);
});

test('tasks are offered by priority, then by age', () => {
  const recorded = newQueue();
  recorded.queue.ready(task('old', { createdAt: 1 }));
  recorded.queue.ready(task('young', { createdAt: 5 }));
  recorded.queue.ready(task('urgent', { createdAt: 9, rank: 0 }));
  recorded.queue.poll(poll(1, { limit: 3 }), 10);
  assert.deepEqual(claimedTasks(recorded), ['urgent', 'old', 'young']);
});

test('a poll of a tenant sees only the tasks of that tenant', () => {
  const recorded = newQueue();
  recorded.queue.ready(task('foreign', { tenant: 't2' }));
  recorded.queue.poll(poll(1), 10);
  assert.deepEqual(recorded.replies, [{ request: 1, body: '[]' }]);
  recorded.queue.poll(poll(2, { tenant: '' }), 10);
  assert.deepEqual(claimedTasks(recorded), ['foreign']);
});

test('a queue poll takes only the tasks of that queue, a plain poll those of every queue', () => {
  const recorded = newQueue();
  recorded.queue.ready(task('plain'));
  recorded.queue.ready(task('named', { queue: 'gpu' }));
  recorded.queue.poll(poll(1, { queue: 'gpu', limit: 5 }), 10);
  assert.deepEqual(claimedTasks(recorded), ['named']);
  recorded.queue.ready(task('named-2', { queue: 'gpu' }));
  recorded.queue.poll(poll(2, { limit: 5 }), 10);
  assert.deepEqual(claimedTasks(recorded), ['named', 'named-2', 'plain']);
});

test('a poll is answered when all of its claims are settled', () => {
  const { queue, claims, replies } = newQueue();
  queue.ready(task('a'));
  queue.ready(task('b'));
  queue.poll(poll(1, { limit: 2 }), 10);
  const number = claims[0]?.poll ?? 0;
  queue.claimed(number, 'a', 1, '{"id":"a"}', 11);
  assert.deepEqual(replies, []);
  queue.claimed(number, 'b', 1, '{"id":"b"}', 11);
  assert.deepEqual(replies, [{ request: 1, body: '[{"id":"a"},{"id":"b"}]' }]);
});

test('a task that is being claimed is not offered again by a repeated hint', () => {
  const recorded = newQueue();
  recorded.queue.ready(task('a'));
  recorded.queue.poll(poll(1), 10);
  recorded.queue.ready(task('a'));
  recorded.queue.poll(poll(2), 10);
  assert.deepEqual(claimedTasks(recorded), ['a']);
});

test('a claim of unknown outcome offers the task again, a refused one does not', () => {
  const recorded = newQueue();
  recorded.queue.ready(task('unknown'));
  recorded.queue.ready(task('gone', { createdAt: 2 }));
  recorded.queue.poll(poll(1, { limit: 2 }), 10);
  const number = recorded.claims[0]?.poll ?? 0;
  recorded.queue.claimed(number, 'gone', 0, '', 11);
  recorded.queue.claimed(number, 'unknown', -1, '', 11);
  assert.deepEqual(claimedTasks(recorded), ['unknown', 'gone', 'unknown']);
});

test('a long poll waits and gets the task that comes', () => {
  const recorded = newQueue();
  recorded.queue.poll(poll(1, { until: 1_000 }), 10);
  assert.deepEqual(recorded.replies, []);
  recorded.queue.ready(task('a'));
  assert.deepEqual(claimedTasks(recorded), ['a']);
});

test('a long poll whose time is over is answered with an empty array', () => {
  const { queue, replies } = newQueue();
  queue.poll(poll(1, { until: 1_000 }), 10);
  queue.expire(999);
  assert.deepEqual(replies, []);
  queue.expire(1_000);
  assert.deepEqual(replies, [{ request: 1, body: '[]' }]);
});

test('what a poll claimed is given back when its client has gone', () => {
  const { queue, claims, unclaims, replies } = newQueue();
  queue.ready(task('a'));
  queue.ready(task('b'));
  queue.poll(poll(1, { limit: 2 }), 10);
  const number = claims[0]?.poll ?? 0;
  queue.claimed(number, 'a', 1, '{}', 11);
  queue.abort(1);
  queue.claimed(number, 'b', 3, '{}', 11);
  assert.deepEqual(unclaims.sort(), [
    ['a', 1],
    ['b', 3],
  ]);
  assert.deepEqual(replies, []);
});

test('an aborted long poll takes no task', () => {
  const recorded = newQueue();
  recorded.queue.poll(poll(1, { until: 1_000 }), 10);
  recorded.queue.abort(1);
  recorded.queue.ready(task('a'));
  assert.deepEqual(recorded.claims, []);
});

test('a poll that comes before the table is read waits for it', () => {
  const recorded = newQueue('unread');
  recorded.queue.poll(poll(1), 10);
  assert.deepEqual(recorded.replies, []);
  recorded.queue.loaded([row('a', '2025-01-01T00:00:00.000Z')], 10);
  assert.deepEqual(claimedTasks(recorded), ['a']);
});

test('a hint that comes during a read is not lost, although its place is behind the horizon', () => {
  const recorded = newQueue('unread');
  recorded.queue.ready(task('a', { createdAt: Date.parse('2025-01-02T00:00:00Z') }));
  recorded.queue.loaded([row('b', '2025-01-01T00:00:00.000Z')], 10);
  recorded.queue.poll(poll(1, { limit: 2 }), 10);
  assert.deepEqual(claimedTasks(recorded), ['b', 'a']);
});

test('a full page leaves the rest in the table until memory runs low', () => {
  const rows = Array.from({ length: LIMITS.recoveryPageRows }, (_, index) =>
    row(`t-${String(index).padStart(6, '0')}`, '2025-01-01T00:00:00.000Z'),
  );
  const recorded = newQueue('unread');
  recorded.queue.loaded(rows, 10);
  recorded.queue.ready(task('late', { createdAt: Date.parse('2025-01-02T00:00:00Z') }));
  recorded.queue.poll(poll(1, { limit: POLL_LIMIT_MAX }), 10);
  assert.equal(recorded.claims.length, POLL_LIMIT_MAX);
  assert.ok(!claimedTasks(recorded).includes('late'));
  assert.equal(recorded.reads.length, 2, 'the next page was asked for');
});

test('the answer to a poll stops at the size limit and gives the rest back', () => {
  const { queue, claims, unclaims, replies } = newQueue();
  queue.ready(task('a'));
  queue.ready(task('b'));
  queue.poll(poll(1, { limit: 2 }), 10);
  const number = claims[0]?.poll ?? 0;
  const large = 'x'.repeat(LIMITS.responseBytesMax);
  queue.claimed(number, 'a', 1, large, 11);
  queue.claimed(number, 'b', 1, large, 11);
  assert.deepEqual(unclaims, [['b', 1]]);
  assert.equal(replies[0]?.body, `[${large}]`);
});

test('when the engine stops, parked polls are answered with an empty array', () => {
  const { queue, replies } = newQueue();
  queue.poll(poll(1, { until: 1_000 }), 10);
  queue.answerParked();
  assert.deepEqual(replies, [{ request: 1, body: '[]' }]);
});
