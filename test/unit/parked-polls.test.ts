/** What a poll that waits is given of tasks that are not committed yet. */

import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import type { Json } from '../helpers/api.js';
import { HandShard, sequenceOf } from '../helpers/hand-shard.js';

const STEPS: Json[] = ['a', 'b'].map((id) => ({ type: 'step', id, handler: 'ship' }));

let shard: HandShard;

beforeEach(async () => {
  shard = new HandShard(sequenceOf(STEPS));
  await shard.start();
  poll('first', { wait_ms: 0 });
  await shard.run();
  // What a start and a first poll write.
  await shard.ack();
});
afterEach(() => shard.shard.stop());

function poll(worker_id: string, more: Json = {}): number {
  const body = { handler_name: 'ship', worker_id, limit: 1, wait_ms: 10_000, ...more };
  return shard.ask('workers.poll', '', body);
}

function tasksOf(request: number): Json[] | undefined {
  const reply = shard.replies.get(request);
  return reply === undefined || 'error' in reply ? undefined : JSON.parse(reply.body);
}

/** A poll waits, and its worker is in the registry. */
async function parked(worker = 'w'): Promise<number> {
  const request = poll(worker);
  await shard.run();
  await shard.ack();
  assert.equal(tasksOf(request), undefined);
  return request;
}

test('a new task is committed with its claim by the poll that waits', async () => {
  const waiting = await parked();
  shard.create();
  await shard.run();
  assert.equal(shard.units.length, 2, 'the task and its claim leave together');
  assert.equal(tasksOf(waiting), undefined, 'nothing is told before it is durable');
  await shard.ack();
  assert.deepEqual(
    tasksOf(waiting)?.map(({ block_id, claim_epoch, worker_id }) => [
      block_id,
      claim_epoch,
      worker_id,
    ]),
    [['a', 1, 'w']],
  );
});

test('the task of the next step is committed with the completion and the claim', async () => {
  const first = await parked();
  shard.create();
  await shard.run();
  await shard.ack();
  const [task] = tasksOf(first)!;
  const second = await parked();
  const claim = { worker_id: 'w', claim_epoch: task!.claim_epoch };
  const completed = shard.ask('workers.complete', String(task!.id), { ...claim, output: {} });
  await shard.run();
  assert.equal(shard.units.length, 2);
  await shard.ack();
  assert.equal(shard.answer(completed), 200);
  assert.equal(tasksOf(second)?.[0]?.block_id, 'b');
});

test('of a task that the database refused nobody hears, and the poll waits on', async () => {
  const waiting = await parked();
  const refused = shard.create();
  await shard.run();
  const [first] = shard.units;
  await shard.ack(({ seq }) =>
    seq === first!.seq
      ? { seq, outcome: 'refused', sqlState: '22P05', reason: 'no such character' }
      : { seq, outcome: 'suffix' },
  );
  assert.equal(shard.answer(refused), 'ENG_REFUSED_DATA');
  assert.equal(tasksOf(waiting), undefined);
  shard.create();
  await shard.run();
  await shard.ack();
  assert.equal(tasksOf(waiting)?.length, 1);
});

test('what a key has created before gives a waiting poll nothing', async () => {
  const waiting = await parked();
  shard.create({ idempotency_key: 'k' });
  await shard.run();
  assert.equal(
    shard.units.length,
    1,
    'the claim is made when it is known that the instance is new',
  );
  await shard.ack(({ seq }) => ({ seq, outcome: 'exists' }));
  assert.equal(tasksOf(waiting), undefined);
});

test('a poll whose client goes away meanwhile gives the task back', async () => {
  const waiting = await parked();
  shard.create();
  await shard.run();
  shard.shard.receiveRequests({ kind: 'requests', requests: [], aborted: [waiting] });
  await shard.run();
  await shard.ack();
  assert.equal(tasksOf(waiting), undefined);
  await shard.ack();
  const next = poll('other');
  await shard.run();
  await shard.ack();
  assert.equal(tasksOf(next)?.[0]?.claim_epoch, 2);
});
