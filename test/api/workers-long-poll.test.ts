/** Long polls: woken by a task, ended by time, given back when their client goes away. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { WorkerTask } from '../../schema/worker.js';
import { eventually, newHandler, step, useSharedApi } from '../helpers/api.js';
import { NoReplyError } from '../helpers/client.js';

const api = useSharedApi();
const tenant = api.tenant();

test('a parked poll is woken by a new task, long before its time is up', async () => {
  const handler = newHandler();
  const sequence = await tenant.sequence([step('a', handler)]);
  await tenant.poll(handler);
  const began = Date.now();
  const parked = tenant.poll(handler, { wait_ms: 10_000 });
  const id = await tenant.create(sequence);
  const [task] = await parked;
  assert.equal(task?.instance_id, id);
  assert.ok(Date.now() - began < 5_000);
});

test('a poll that waits in vain is answered [] when its time is up', async () => {
  const began = Date.now();
  assert.deepEqual(await tenant.poll(newHandler(), { wait_ms: 300 }), []);
  const waited = Date.now() - began;
  assert.ok(waited >= 295 && waited < 60_000, `${waited} ms`);
});

test('of many parked polls each task wakes exactly one', async () => {
  const handler = newHandler();
  const sequence = await tenant.sequence([step('a', handler)]);
  const parked = Array.from({ length: 10 }, (_, index) =>
    tenant.poll(handler, { worker_id: `w${index}`, wait_ms: 10_000, limit: 5 }),
  );
  const ids = new Set<string>();
  for (let index = 0; index < 4; index++) ids.add(await tenant.create(sequence));
  const answers = (await Promise.all(parked)).flat();
  assert.deepEqual(new Set(answers.map((task) => task.instance_id)), ids);
  assert.equal(answers.length, 4);
});

test('a parked poll of one tenant is not woken by another tenant’s task', async () => {
  const handler = newHandler();
  const other = api.tenant();
  const parked = tenant.poll(handler, { wait_ms: 400 });
  await other.run([step('a', handler)]);
  assert.deepEqual(await parked, []);
  assert.equal((await other.poll(handler)).length, 1);
});

test('a parked queue poll is woken by its queue only', async () => {
  const handler = newHandler();
  const poll = (queue_name: string, wait_ms: number) =>
    tenant.post<WorkerTask[]>('/workers/tasks/poll/queue', {
      handler_name: handler,
      worker_id: 'w',
      queue_name,
      wait_ms,
    });
  const [wrong, right] = [poll('other', 500), poll('mine', 10_000)];
  await tenant.run([step('a', handler, { queue_name: 'mine' })]);
  assert.equal((await right).body.length, 1);
  assert.deepEqual((await wrong).body, []);
});

test('an abandoned parked poll takes no task', async () => {
  const handler = newHandler();
  const sequence = await tenant.sequence([step('a', handler)]);
  for (let round = 0; round < 10; round++) {
    const gone = new AbortController();
    const parked = tenant.post(
      '/workers/tasks/poll',
      { handler_name: handler, worker_id: 'gone', wait_ms: 30_000 },
      gone.signal,
    );
    const failure = assert.rejects(parked, NoReplyError);
    await tenant.get('/health/live');
    gone.abort();
    await failure;
    const id = await tenant.create(sequence);
    const task = await tenant.task(handler);
    assert.equal(task.instance_id, id);
    await tenant.complete(task);
  }
});

test('a poll that is abandoned around its claim is un-claimed at once, not after 60 s', async () => {
  const handler = newHandler();
  const sequence = await tenant.sequence([step('a', handler)]);
  const rounds = 60;
  let crossed = 0;
  for (let round = 0; round < rounds; round++) {
    const gone = new AbortController();
    const parked = tenant
      .post<WorkerTask[]>(
        '/workers/tasks/poll',
        { handler_name: handler, worker_id: 'gone', wait_ms: 30_000 },
        gone.signal,
      )
      .catch((error: unknown) => {
        assert.ok(error instanceof NoReplyError);
        return undefined;
      });
    const created = tenant.create(sequence);
    // The abort comes at another moment of the claim in each round.
    for (let turn = 0; turn < round % 20; turn++) await new Promise(setImmediate);
    gone.abort();
    const [reply] = [await parked, await created];
    const delivered = reply?.body[0] ?? (await offeredAgain(handler));
    if (delivered === undefined) crossed += 1;
    await tenant.complete(delivered ?? (await claimedByGone(handler)));
  }
  // An answer that had reached the client's machine when it turned away cannot be taken back.
  assert.ok(crossed <= rounds / 6, `${crossed} of ${rounds} answers crossed the abort on the wire`);
  await eventually(async () => {
    const open = await tenant.get<unknown[]>(
      `/workers/tasks?state=pending,claimed&handler_name=${handler}`,
    );
    assert.deepEqual(open.body, []);
  });
});

/** The task that was given back, within the time of a long poll; else undefined. */
async function offeredAgain(handler: string): Promise<WorkerTask | undefined> {
  const [task] = await tenant.poll(handler, { wait_ms: 1_000 });
  return task;
}

async function claimedByGone(handler: string): Promise<WorkerTask> {
  const { body } = await tenant.get<WorkerTask[]>(
    `/workers/tasks?state=claimed&handler_name=${handler}`,
  );
  assert.equal(body[0]?.worker_id, 'gone');
  return body[0] as WorkerTask;
}
