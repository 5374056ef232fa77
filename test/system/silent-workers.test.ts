/**
 * Silent workers over HTTP: their tasks are offered again. All of them
 * wait for the same silence, and so at the same time.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { eventually, newHandler, step, useApi } from '../helpers/api.js';

/** Long enough for a few calls within a claim, however busy the machine is. */
const STALE_SECS = 3;

const env = {
  ENGINE_WORKER_REAPER_STALE_SECS: String(STALE_SECS),
  ENGINE_WORKER_REAPER_TICK_SECS: '1',
};
const api = useApi({ env: { ENGINE_SHARDS: '2', ...env } });

describe('silence', { concurrency: true }, () => {
  test('A claimed task without heartbeat is offered again: same task id, new worker_id, state claimed; the new worker can complete it', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const id = await tenant.run([step('a', handler)]);
    const silent = await tenant.task(handler, { worker_id: 'silent' });
    const again = await tenant.task(handler, { worker_id: 'lively' });
    assert.deepEqual(
      [again.id, again.worker_id, again.state, again.attempt],
      [silent.id, 'lively', 'claimed', 0],
    );
    const silence = Date.parse(again.claimed_at ?? '') - Date.parse(silent.heartbeat_at ?? '');
    assert.ok(silence >= STALE_SECS * 1_000, `${silence} ms`);
    await tenant.complete(again);
    await tenant.until(id, 'completed');
  });

  describe('Epoch is 1 on the first claim and 2 after reclaim; the old epoch gets 409 even with the same worker_id; attempts show claimed, reclaimed, claimed, stale_mutation_rejected, ... completed', {
    concurrency: true,
  }, () => {
    for (const stale of ['complete', 'fail', 'heartbeat'] as const) {
      test(`with ${stale} as the late call`, async () => {
        const tenant = api.tenant();
        const handler = newHandler();
        const id = await tenant.run([step('a', handler)]);
        const first = await tenant.task(handler);
        assert.equal(first.claim_epoch, 1);
        const second = await tenant.task(handler);
        assert.deepEqual([second.claim_epoch, second.worker_id], [2, first.worker_id]);
        assert.equal(await tenant.call(stale, first, { claim_epoch: 1 }), 409);
        await tenant.complete(second, { by: 'epoch 2' });
        await tenant.until(id, 'completed');
        assert.deepEqual(await tenant.outputsOf(id), { a: { by: 'epoch 2' } });
        assert.deepEqual(await tenant.attempts(first.id), [
          ['claimed', 1],
          ['reclaimed', 1],
          ['claimed', 2],
          ['stale_mutation_rejected', 1],
          ['completed', 2],
        ]);
      });
    }
  });

  test('History of attempts: A reclaim after silence keeps the task and its id; a re-dispatch after a failure is a new task with a new id (the old one is deleted: not offered, not listed, late calls 404/409); the attempts of both stay readable under their ids until retention', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    await tenant.run([step('a', handler)]);
    const first = await tenant.task(handler);
    const reclaimed = await tenant.task(handler);
    assert.deepEqual([reclaimed.id, reclaimed.attempt], [first.id, 0]);
    await tenant.fail(reclaimed, 'busy', true);
    const next = await tenant.task(handler);
    assert.notEqual(next.id, first.id);
    assert.deepEqual([next.attempt, next.claim_epoch], [1, 1]);
    await tenant.complete(next);
    assert.deepEqual(
      (await tenant.tasks(handler)).map((task) => task.id),
      [next.id],
    );
    for (const call of ['complete', 'fail', 'heartbeat'] as const) {
      assert.equal(await tenant.call(call, reclaimed), 404, call);
      assert.equal(await tenant.call(call, reclaimed, { claim_epoch: 2 }), 409, call);
    }
    assert.deepEqual(await tenant.attempts(first.id), [
      ['claimed', 1],
      ['reclaimed', 1],
      ['claimed', 2],
      ['failed', 2],
      ...Array(3).fill(['stale_mutation_rejected', 2]),
    ]);
    assert.deepEqual(await tenant.attempts(next.id), [
      ['claimed', 1],
      ['completed', 1],
    ]);
  });

  test('a heartbeat keeps the claim', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    await tenant.run([step('a', handler)]);
    const task = await tenant.task(handler);
    const until = Date.now() + 1.8 * STALE_SECS * 1_000;
    await eventually(async () => {
      assert.equal(await tenant.call('heartbeat', task), 200);
      assert.ok(Date.now() > until);
    });
    assert.deepEqual(await tenant.poll(handler), []);
    await tenant.complete(task);
  });

  test('a checkpoint is handed to the next try, and to who claims it next', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    await tenant.run([step('a', handler)]);
    const task = await tenant.task(handler);
    const checkpoint = { page: 1 };
    assert.equal(await tenant.call('heartbeat', task, { checkpoint, checkpoint_seq: 0 }), 200);
    await tenant.fail(task, 'later', true);
    const next = await tenant.task(handler);
    const again = await tenant.task(handler, { worker_id: 'w2' });
    assert.equal(again.id, next.id);
    for (const { checkpoint_seq, resume_checkpoint } of [next, again]) {
      assert.deepEqual([checkpoint_seq, resume_checkpoint], [1, checkpoint]);
    }
  });
});
