/**
 * What is done to single instances outlives SIGKILL. Everything is set up first, then the server is
 * killed, started again, and looked at.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  forEach,
  type Json,
  newHandler,
  parallel,
  step,
  type Tenant,
  transform,
  useApi,
} from '../helpers/api.js';
import { expectStatus, NoReplyError } from '../helpers/client.js';
import { auditOf, fork, inject, migrate, resumeFrom, signalsOf } from '../helpers/edits.js';
import { survival } from '../helpers/survival.js';

const api = useApi({ env: { ENGINE_SHARDS: '2' } });
const survives = survival(api);

/** Versions 1 and 2 of one name. */
async function versions(tenant: Tenant, first: Json[], second: Json[]): Promise<[string, string]> {
  const ids = [first, second].map((blocks, at) =>
    tenant.sequence(blocks, { name: 'versions', version: at + 1 }),
  );
  return (await Promise.all(ids)) as [string, string];
}

survives('injected blocks run after the stored ones, in their places', async (tenant) => {
  const handler = newHandler();
  const id = await tenant.runUntil('waiting', [transform('a', { n: 1 }), step('b', handler)]);
  await inject(tenant, id, [step('x', handler)]);
  await inject(tenant, id, [transform('y', { n: '{{ outputs.a.n }}' })], { position: 0 });
  return async () => {
    assert.deepEqual(Object.keys(await tenant.tree(id)), ['a', 'b', 'y', 'x']);
    await tenant.complete(await tenant.task(handler));
    const task = await tenant.task(handler);
    assert.equal(task.block_id, 'x');
    await inject(tenant, id, [step('z', 'noop')]);
    await tenant.complete(task);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'b', 'y', 'x', 'z']);
    assert.deepEqual((await tenant.outputsOf(id)).y, { n: 1 });
  };
});

survives('blocks that were injected when all stored ones had ended in a pause', async (tenant) => {
  const handler = newHandler();
  const id = await tenant.runUntil('waiting', [step('a', handler)]);
  const task = await tenant.task(handler);
  await tenant.signal(id, 'pause');
  await tenant.complete(task);
  await inject(tenant, id, [step('x', 'noop')]);
  return async () => {
    await tenant.signal(id, 'resume');
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'x']);
  };
});

survives('injected blocks of a failed instance run when it is retried', async (tenant) => {
  const id = await tenant.runUntil('failed', [
    step('a', 'assert', { params: { condition: 'data.ok' } }),
  ]);
  await inject(tenant, id, [step('x', 'noop')]);
  return async () => {
    await tenant.patch(`/instances/${id}/context`, { context: { data: { ok: true } } });
    expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'x']);
  };
});

survives('a claimed task of an instance that went over goes on in the target', async (tenant) => {
  const handler = newHandler();
  const body = (...more: Json[]) => forEach('f', 'items', [...more, step('a', handler)]);
  const [from, to] = await versions(
    tenant,
    [body()],
    [parallel('p', [step('n', 'noop')]), body(step('m', 'noop')), step('z', 'noop')],
  );
  const id = await tenant.create(from, { context: { data: { items: ['x', 'y'] } } });
  const task = await tenant.task(handler);
  await migrate(tenant, id, to);
  return async () => {
    assert.equal((await tenant.instance(id)).sequence_id, to);
    await tenant.complete(task);
    const next = await tenant.task(handler);
    assert.equal(next.context.data.item, 'y');
    await tenant.complete(next);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['f', 'a', 'f', 'm', 'a', 'f', 'z']);
    assert.equal((await tenant.delete(`/sequences/${from}`)).status, 204);
  };
});

survives('the deadline of an instance that went over in a delay', async (tenant) => {
  const delayed = step('a', 'noop', { delay: { duration: 86_400_000 } });
  const [from, to] = await versions(tenant, [delayed], [delayed, step('b', 'noop')]);
  const id = await tenant.create(from);
  const { next_fire_at: due } = await tenant.until(id, 'scheduled');
  await migrate(tenant, id, to);
  return async () => {
    assert.equal((await tenant.instance(id)).next_fire_at, due);
    await tenant.move(id, 'running');
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'b']);
  };
});

survives('an instance that was resumed waits where it did', async (tenant) => {
  const [early, late] = [newHandler(), newHandler()];
  const id = await tenant.runUntil('waiting', [
    step('a', early),
    step('b', 'noop'),
    step('c', late),
  ]);
  const withdrawn = await tenant.task(early);
  await tenant.signal(id, 'pause');
  await resumeFrom(tenant, id, 'c');
  await tenant.until(id, 'waiting');
  return async () => {
    assert.deepEqual(await tenant.nodeStates(id), { a: 'cancelled', b: 'skipped', c: 'waiting' });
    assert.deepEqual(await tenant.poll(early), []);
    assert.equal(await tenant.call('complete', withdrawn), 404);
    await tenant.fail(await tenant.task(late), 'no');
    await tenant.until(id, 'failed');
    expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    await tenant.complete(await tenant.task(late));
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['c']);
  };
});

survives('the signals of a resume, and what they did', async (tenant) => {
  const id = await tenant.runUntil('failed', [step('a', 'fail'), step('b', 'noop')]);
  const signals = [{ signal_type: 'update_context', payload: { n: 2 } }, { signal_type: 'pause' }];
  await resumeFrom(tenant, id, 'b', { context: { n: 1 }, signals });
  return async () => {
    const { state, context } = await tenant.instance(id);
    assert.deepEqual([state, context.data], ['paused', { n: 2 }]);
    assert.deepEqual(await signalsOf(api, id), ['update_context', 'pause']);
    assert.deepEqual(await tenant.deadLetters(), []);
    await tenant.signal(id, 'resume');
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'b']);
  };
});

survives('a checkpoint that a resume forgot', async (tenant) => {
  const handler = newHandler();
  const id = await tenant.run([step('a', handler, { retry: { max_attempts: 2 } })]);
  const task = await tenant.task(handler);
  const beat = { worker_id: task.worker_id, checkpoint: { page: 3 }, checkpoint_seq: 0 };
  expectStatus(await tenant.post(`/workers/tasks/${task.id}/heartbeat`, beat), 200);
  await tenant.fail(task, 'once', true);
  await tenant.signal(id, 'pause');
  await resumeFrom(tenant, id, 'a', { signals: [{ signal_type: 'pause' }] });
  return async () => {
    await tenant.signal(id, 'resume');
    const next = await tenant.task(handler);
    assert.deepEqual([next.attempt, next.resume_checkpoint], [0, undefined]);
  };
});

survives('a fork, with its outputs and its injected blocks', async (tenant) => {
  const handler = newHandler();
  const id = await tenant.runUntil('completed', [transform('a', { n: 4 }), step('b', 'noop')]);
  await inject(tenant, id, [transform('x', { n: '{{ outputs.a.n }}' }), step('y', handler)]);
  const { id: child } = await fork(tenant, id, 'b', { dry_run: false });
  await tenant.until(child, 'waiting');
  return async () => {
    await tenant.complete(await tenant.task(handler));
    const { metadata } = await tenant.until(child, 'completed');
    assert.equal(metadata.forked_from, id);
    assert.deepEqual(await tenant.rowsOf(child), ['a', 'b', 'x', 'y']);
    assert.deepEqual((await tenant.outputsOf(child)).x, { n: 4 });
    assert.deepEqual(await auditOf(tenant, child), ['forked']);
  };
});

survives('a dry run and its key', async (tenant) => {
  const handler = newHandler();
  const sequence = await tenant.sequence([step('a', handler)]);
  const dry = { dry_run: true, idempotency_key: 'k' };
  const id = await tenant.create(sequence, { ...dry, next_fire_at: '2100-01-01T00:00:00Z' });
  return async () => {
    assert.equal(await tenant.create(sequence, dry), id);
    await tenant.move(id, 'running');
    const { context } = await tenant.until(id, 'completed');
    assert.equal(context.runtime.dry_run, true);
    assert.deepEqual(await tenant.tasks(handler), []);
  };
});

survives('what was answered just before the kill goes on after it', async (tenant) => {
  const blocks = [step('a', 'noop'), step('b', 'sleep', { params: { duration_ms: 50 } })];
  const ids = await Promise.all(
    Array.from({ length: 10 }, () => tenant.runUntil('completed', blocks)),
  );
  const resumed = await Promise.all(ids.map((id) => resumeFrom(tenant, id, 'b')));
  const forks = await Promise.all(ids.map((id) => fork(tenant, id, 'b')));
  return async () => {
    for (const { id } of [...resumed, ...forks]) {
      await tenant.until(id, 'completed');
      assert.deepEqual(await tenant.rowsOf(id), ['a', 'b']);
    }
  };
});

test('in the middle of many operations a kill loses none that was answered', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const [from, to] = await versions(
    tenant,
    [step('a', 'noop'), step('b', handler)],
    [step('n', 'noop'), step('a', 'noop'), step('b', handler)],
  );
  const ids = await Promise.all(Array.from({ length: 40 }, () => tenant.create(from)));
  await Promise.all(ids.map((id) => tenant.until(id, 'waiting')));
  const injected: [id: string, block: string][] = [];
  const moved: string[] = [];
  const forks: [id: string, copied: string[]][] = [];
  let answered = 0;
  let hasEnough = (): void => undefined;
  const enough = new Promise<void>((resolve) => {
    hasEnough = resolve;
  });
  const unlessKilled = (operation: Promise<void>) =>
    operation.then(
      () => {
        answered += 1;
        if (answered === ids.length) hasEnough();
      },
      (error: unknown) => assert.ok(error instanceof NoReplyError, String(error)),
    );
  const work = ids.flatMap((id, n) => [
    inject(tenant, id, [step(`x${n}`, 'noop')]).then(() => void injected.push([id, `x${n}`])),
    migrate(tenant, id, to).then(() => void moved.push(id)),
    fork(tenant, id, 'b').then((it) => void forks.push([it.id, it.copied_blocks])),
    inject(tenant, id, [step(`y${n}`, 'noop')]).then(() => void injected.push([id, `y${n}`])),
  ]);
  const all = work.map(unlessKilled);
  await enough;
  await api.restart();
  await Promise.all(all);
  for (const [id, block] of injected) assert.ok(block in (await tenant.tree(id)), block);
  for (const id of moved) assert.equal((await tenant.instance(id)).sequence_id, to);
  for (const [id, copied] of forks) {
    await tenant.until(id, 'completed');
    const rows = await tenant.rowsOf(id);
    // One that was migrated before has skipped `n`.
    const expected = copied.filter((block) => block !== 'n');
    assert.deepEqual(rows.slice(0, expected.length), expected);
    assert.equal(new Set(rows).size, rows.length);
  }
  for (let n = 0; n < ids.length; n += 1) await tenant.complete(await tenant.task(handler));
  for (const id of ids) await tenant.until(id, 'completed');
});
