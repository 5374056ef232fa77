/** The queues of one shard: what they keep in memory, and which of it they let go. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Queues, type QueuesDeps } from '../../actors/queue/queues.js';
import type { ReadyTask } from '../../actors/queue/ready-tasks.js';
import { CommitLog } from '../../actors/runtime/commit-log.js';
import type { OpenTaskRow, PollScope, TaskPlace } from '../../actors/runtime/rows.js';
import type { Effect } from '../../actors/runtime/turn.js';
import { isoTime } from '../../src/core/time.js';
import { LIMITS } from '../../src/limits.js';
import { select } from '../helpers/queue-table.js';
import { column } from '../helpers/rows.js';

/** The queues of a shard on a table of tasks of the handler `h`, with turns that the test takes. */
function newQueues(table: readonly ReadyTask[]) {
  const work: (() => void)[] = [];
  const reads: PollScope[] = [];
  const claims: string[] = [];
  const loader = {
    readyTasks(scope: PollScope, after: TaskPlace, limit: number): Promise<OpenTaskRow[]> {
      reads.push(scope);
      const rows = select(table, scope, after, limit).map((task) => ({
        task_id: task.id,
        instance_id: task.instance,
        tenant_id: task.tenant,
        queue_name: task.queue || null,
        rank: task.rank,
        created_at: isoTime(task.createdAt),
      }));
      return Promise.resolve(rows);
    },
  };
  const queues = new Queues({
    shard: 0,
    shards: 1,
    commits: new CommitLog(),
    loader,
    now: () => 1,
    release: (effects: readonly Effect[]) => {
      for (const effect of effects) {
        if (effect.kind === 'peer' && effect.message.kind === 'claim')
          claims.push(effect.message.task);
      }
    },
    schedule: (item: () => void) => work.push(item),
    expireAt: () => undefined,
  } as unknown as QueuesDeps);
  const poll = async (request: number, tenant: string) => {
    const asked = { request, tenant, worker: 'w', handlers: ['h'], queues: [''], limit: 1 };
    queues.poll({ ...asked, until: 0, answer: () => undefined });
    await new Promise(setImmediate);
    for (const item of work.splice(0)) item();
  };
  return { queues, reads, claims, poll };
}

test('of the tasks of many tenants, those that were polled for last stay in memory', async () => {
  const count = LIMITS.readyTasksMax / 10 + 1_000;
  const tenants = Array.from({ length: 10 }, (_, n) => `t${n}`);
  const table: ReadyTask[] = [];
  const { queues, reads, claims, poll } = newQueues(table);
  for (const tenant of tenants) await poll(0, tenant);
  for (const tenant of tenants) {
    for (let n = 0; n < count; n++) {
      const id = `${tenant}-${n}`;
      const task = { id, instance: id, tenant, queue: '', rank: 0, createdAt: n };
      const { id: _, ...hint } = { ...task, task: id };
      queues.ready({ kind: 'task.ready', handler: 'h', ...hint });
      if (n === 0) table.push(task);
    }
  }
  assert.equal(reads.length, 10, 'each was read once');
  await poll(1, 't9');
  await poll(2, 't0');
  assert.deepEqual(claims, ['t9-0', 't0-0']);
  assert.deepEqual(column(reads.slice(10), 'tenant'), ['t0']);
});

test('a claim that was not committed is offered again, also of a task that names secrets', async () => {
  const task = { id: 'a', instance: 'a', tenant: 't', queue: '', rank: 0, createdAt: 1 };
  const { queues, claims, poll } = newQueues([task]);
  await poll(1, 't');
  const refused = { poll: 1, task: 'a', epoch: -1, record: '' };
  const secrets = { tenant: 't', texts: [] };
  queues.claimed({ kind: 'claimed', handler: 'h', ...refused, secrets });
  await poll(2, 't');
  assert.deepEqual(claims, ['a', 'a']);
});
