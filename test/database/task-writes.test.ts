/** What workers do with a task writes what changed of it, however large the rest is. */

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { TASKS } from '../../actors/instance/old-tables.js';
import type { Json } from '../helpers/api.js';
import { type LocalShard, startShard } from '../helpers/shard.js';

const BEATS = 5;
/** What compression leaves as it is. */
const CHECKPOINT = { page: randomBytes(90_000).toString('base64') };

let shard: LocalShard;
let task: string;

before(async () => {
  shard = await startShard(new Map());
  await shard.create(await shard.sequence([{ type: 'step', id: 'a', handler: 'ship' }]));
  const poll = { handler_name: 'ship', worker_id: 'w', wait_ms: 5_000 };
  const tasks = (await shard.ask('workers.poll', '', poll)) as unknown as Json[];
  task = String(tasks[0]?.id);
});
after(() => shard.stop());

const beat = (more: Json = {}) =>
  shard.ask('workers.heartbeat', task, { worker_id: 'w', claim_epoch: 1, ...more });

async function row(): Promise<Json> {
  const { rows } = await shard.sql.query(`select * from ${TASKS} t where id = $1`, [task]);
  return rows[0] as Json;
}

/** Bytes of the values that are too large for their rows. They grow with each that is written. */
async function storedApart(table = 'worker_tasks'): Promise<number> {
  const { rows } = await shard.sql.query<{ bytes: string }>(
    'select pg_relation_size(reltoastrelid) as bytes from pg_class where relname = $1',
    [table],
  );
  return Number(rows[0]?.bytes);
}

/** The page of the task's row: an update within it changes no index (test/database/explain.test.ts). */
async function page(): Promise<unknown> {
  const { rows } = await shard.sql.query(
    'select (ctid::text::point)[0] as page from worker_tasks where id = $1',
    [task],
  );
  return rows[0].page;
}

test('a claim and a heartbeat leave the row of the task in its page', async () => {
  const before = await page();
  for (let i = 0; i < BEATS; i++) await beat();
  assert.equal(await page(), before);
  const { state, worker_id, claim_epoch } = await row();
  assert.deepEqual([state, worker_id, claim_epoch], ['claimed', 'w', 1]);
});

test('a step that leaves a large context as it is does not write it again', async () => {
  const id = await shard.create(
    await shard.sequence(
      ['a', 'b', 'c'].map((name) => ({ type: 'step', id: name, handler: 'carry' })),
    ),
    { context: { data: { page: randomBytes(90_000).toString('base64') } } },
  );
  const poll = { handler_name: 'carry', worker_id: 'w', wait_ms: 5_000 };
  const bytes = await storedApart('instances');
  for (const output of [{}, {}, {}]) {
    const tasks = (await shard.ask('workers.poll', '', poll)) as unknown as Json[];
    await shard.ask('workers.complete', String(tasks[0]?.id), {
      worker_id: 'w',
      claim_epoch: 1,
      output,
    });
  }
  await shard.until(id, 'completed');
  assert.equal(await storedApart('instances'), bytes);
});

test('a heartbeat writes neither the checkpoint nor the history again', async () => {
  assert.deepEqual(await beat({ checkpoint: CHECKPOINT, checkpoint_seq: 0 }), {
    checkpoint_seq: 1,
  });
  for (let i = 0; i < 100; i++) await assert.rejects(beat({ worker_id: `stranger ${i}` }));
  const [stored, bytes] = [await row(), await storedApart()];
  assert.ok(bytes > 100_000);
  for (let i = 0; i < BEATS; i++) await beat();
  const later = await row();
  const [from, to] = [stored, later].map(({ heartbeat_at }) => heartbeat_at as unknown as Date);
  assert.ok(from !== undefined && to !== undefined && to >= from);
  assert.deepEqual({ ...later, heartbeat_at: 0 }, { ...stored, heartbeat_at: 0 });
  assert.equal(await storedApart(), bytes);
});

test('a checkpoint that is sent once more is counted and not written again', async () => {
  const bytes = await storedApart();
  assert.deepEqual(await beat({ checkpoint: CHECKPOINT, checkpoint_seq: 1 }), {
    checkpoint_seq: 2,
  });
  const { checkpoint_seq, resume_checkpoint } = await row();
  assert.deepEqual([checkpoint_seq, resume_checkpoint], [2, CHECKPOINT]);
  assert.equal(await storedApart(), bytes);
});

test('what other calls write leaves the checkpoint where it is', async () => {
  const bytes = await storedApart();
  const output = { done: true };
  await shard.ask('workers.complete', task, { worker_id: 'w', claim_epoch: 1, output });
  const { state, resume_checkpoint } = await row();
  assert.deepEqual([state, resume_checkpoint], ['completed', CHECKPOINT]);
  assert.ok((await storedApart()) - bytes < 50_000, 'it was written again');
});
