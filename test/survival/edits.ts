/** What is done to single instances beside their normal course. */

import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { Json, Tenant } from '../helpers/api.js';
import { forEach, newHandler, parallel, step, transform } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { auditOf, fork, inject, migrate, resumeFrom } from '../helpers/edits.js';
import { versions } from '../helpers/routed.js';
import { subject, untilKilled } from '../helpers/survival.js';

export const edits = subject();
const { survives } = edits;

/** Versions 1 and 2 of one name. */
const twoVersions = async (tenant: Tenant, first: Json[], second: Json[]) =>
  (await versions(tenant, { blocks: first }, { blocks: second })) as [string, string];

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

survives('a claimed task of an instance that went over goes on in the target', async (tenant) => {
  const handler = newHandler();
  const body = (...more: Json[]) => forEach('f', 'items', [...more, step('a', handler)]);
  const [from, to] = await twoVersions(
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

survives('an instance that was resumed waits where it did', async (tenant) => {
  const [early, late] = [newHandler(), newHandler()];
  const blocks = [step('a', early), step('b', 'noop'), step('c', late)];
  const id = await tenant.runUntil('waiting', blocks);
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

survives('a checkpoint that a resume forgot', async (tenant) => {
  const handler = newHandler();
  const id = await tenant.run([step('a', handler, { retry: { max_attempts: 2 } })]);
  const task = await tenant.task(handler);
  const checkpoint = { checkpoint: { page: 3 }, checkpoint_seq: 0 };
  assert.equal(await tenant.call('heartbeat', task, checkpoint), 200);
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

survives('of many operations under way, none that was answered is lost', async (tenant) => {
  const handler = newHandler();
  const rest = [step('a', 'noop'), step('b', handler)];
  const [from, to] = await twoVersions(tenant, rest, [step('n', 'noop'), ...rest]);
  const ids = await Promise.all(Array.from({ length: 8 }, () => tenant.create(from)));
  await Promise.all(ids.map((id) => tenant.until(id, 'waiting')));
  const injected: [id: string, block: string][] = [];
  const moved: string[] = [];
  const forks: [id: string, copied: string[]][] = [];
  const edit = async (id: string, turn: number) => {
    await inject(tenant, id, [step(`x${turn}`, 'noop')]);
    injected.push([id, `x${turn}`]);
    if (turn % 3 !== ids.indexOf(id) % 3) return;
    if (moved.includes(id)) {
      const forked = await fork(tenant, id, 'b');
      forks.push([forked.id, forked.copied_blocks]);
    } else {
      await migrate(tenant, id, to);
      moved.push(id);
    }
    await pause(10);
  };
  let work: Promise<unknown>;
  return {
    atTheKill: async () => {
      work = Promise.all(ids.map((id) => untilKilled(12, (turn) => edit(id, turn))));
    },
    check: async () => {
      await work;
      for (const [id, block] of injected) assert.ok(block in (await tenant.tree(id)), block);
      for (const id of moved) assert.equal((await tenant.instance(id)).sequence_id, to);
      for (const [id, copied] of forks) {
        await tenant.until(id, 'completed');
        const rows = await tenant.rowsOf(id);
        // It was migrated, and has skipped `n`.
        const expected = copied.filter((block) => block !== 'n');
        assert.deepEqual(rows.slice(0, expected.length), expected);
        assert.equal(new Set(rows).size, rows.length);
      }
      for (const _ of ids) await tenant.complete(await tenant.task(handler));
      for (const id of ids) await tenant.until(id, 'completed');
    },
  };
});
