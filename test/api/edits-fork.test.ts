/** A new instance that goes on from a block of another one. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { InstanceForked } from '../../schema/edits.js';
import {
  forEach,
  type Json,
  newHandler,
  parallel,
  sleep,
  step,
  transform,
  tryCatch,
  useSharedApi,
} from '../helpers/api.js';
import { auditOf, fork, inject, resumeFrom, signalsOf } from '../helpers/edits.js';

const UNKNOWN = '0195ffff-0000-7000-8000-000000000000';

const api = useSharedApi();
const tenant = api.tenant();

const ask = (id: string, body: Json, as = tenant) =>
  as.post<InstanceForked & { error: string }>(`/instances/${id}/fork`, body);

/** Everything that can be read about an instance. */
async function everythingOf(id: string): Promise<unknown[]> {
  const parts = ['', '/outputs', '/tree', '/audit', '/timeline'];
  const replies = await Promise.all(parts.map((part) => tenant.get(`/instances/${id}${part}`)));
  return replies.map((reply) => reply.body);
}

const FOUR = [
  transform('a', { n: '{{ data.n }}' }),
  forEach('f', 'items', [transform('b', { i: '{{ data.item }}' })]),
  transform('c', { sum: '{{ outputs.a.n }}', name: '{{ data.name }}' }),
  step('d', 'noop'),
];
const DATA = { n: 1, items: [7, 8], name: 'old' };

describe('a fork', () => {
  test('has the finished blocks before the block with their outputs, and runs on from there', async () => {
    const id = await tenant.runUntil('completed', FOUR, DATA, { priority: 'high' });
    const before = await everythingOf(id);
    const reply = await fork(tenant, id, 'c', { context: { name: 'new' }, dry_run: false });
    const { id: child, ...rest } = reply;
    assert.deepEqual(rest, {
      forked_from: id,
      state: 'scheduled',
      copied_blocks: ['a', 'f'],
      rerun_blocks: ['c', 'd'],
      dry_run: false,
    });
    const record = await tenant.until(child, 'completed');
    assert.deepEqual(record.context.data, { ...DATA, name: 'new' });
    assert.equal(record.priority, 'High');
    assert.deepEqual((await tenant.outputsOf(child)).c, { sum: 1, name: 'new' });
    const rows = async (of: string) =>
      (await tenant.outputs(of))
        .filter((row) => row.block_id !== 'c' && row.block_id !== 'd')
        .map(({ block_id, output, attempt, output_size }) => [
          block_id,
          output,
          attempt,
          output_size,
        ]);
    assert.deepEqual(await rows(child), await rows(id));
    const ids = [...(await tenant.outputs(child)), ...(await tenant.outputs(id))].map(
      (it) => it.id,
    );
    assert.equal(new Set(ids).size, ids.length);
    assert.deepEqual(await everythingOf(id), before, 'the source has changed');
  });

  test('carries where it comes from in its metadata, and neither keys nor parent', async () => {
    const more = {
      metadata: { team: 'x', sandbox: 'mine' },
      idempotency_key: 'k',
      concurrency_key: 'c',
      max_concurrency: 1,
      timezone: 'Europe/Paris',
      context: { config: { limit: 3 } },
    };
    const id = await tenant.run([step('a', 'noop')], more);
    await tenant.until(id, 'completed');
    const reply = await fork(tenant, id, 'a');
    assert.equal(reply.dry_run, true);
    const child = await tenant.until(reply.id, 'completed');
    assert.deepEqual(child.metadata, {
      team: 'x',
      forked_from: id,
      forked_at_block: 'a',
      sandbox: true,
    });
    assert.equal(child.timezone, 'Europe/Paris');
    assert.deepEqual(child.context.config, { limit: 3 });
    const kept = ['idempotency_key', 'concurrency_key', 'max_concurrency', 'parent_instance_id'];
    assert.deepEqual(
      kept.filter((field) => field in child),
      [],
    );
    assert.deepEqual(await auditOf(tenant, reply.id), ['forked']);
  });

  test('is a dry run unless it says otherwise: its steps are not performed', async () => {
    const handler = newHandler();
    const id = await tenant.runUntil('waiting', [step('a', 'noop'), step('b', handler)]);
    const { id: child } = await fork(tenant, id, 'b');
    const { context } = await tenant.until(child, 'completed');
    assert.equal(context.runtime.dry_run, true);
    assert.equal((await tenant.outputsOf(child)).b?.dry_run, true);
    assert.deepEqual((await tenant.tasks(handler)).length, 1, 'that of the source');
    assert.equal((await tenant.instance(id)).state, 'waiting');
  });

  test('of a waiting instance runs again what is not finished, and leaves its tasks alone', async () => {
    const handler = newHandler();
    const blocks = [step('a', 'noop'), step('b', handler), step('c', 'noop'), step('d', 'noop')];
    const id = await tenant.runUntil('waiting', blocks);
    const task = await tenant.task(handler);
    const reply = await fork(tenant, id, 'd', { dry_run: false });
    assert.deepEqual(reply.copied_blocks, ['a']);
    assert.deepEqual(reply.rerun_blocks, ['b', 'c', 'd']);
    await tenant.until(reply.id, 'waiting');
    await tenant.complete(task);
    await tenant.until(id, 'completed');
    const own = await tenant.task(handler);
    assert.equal(own.instance_id, reply.id);
    await tenant.complete(own);
    await tenant.until(reply.id, 'completed');
    assert.deepEqual(await tenant.rowsOf(reply.id), ['a', 'b', 'c', 'd']);
  });

  test('of every other state', async () => {
    const far = { next_fire_at: '2100-01-01T00:00:00Z' };
    const blocks = [step('a', 'noop'), step('b', newHandler())];
    const sources: Record<string, string> = {
      scheduled: await tenant.run([step('a', 'noop')], far),
      running: await tenant.run([sleep('a', 600_000)]),
      paused: await tenant.runUntil('waiting', blocks),
      cancelled: await tenant.runUntil('waiting', blocks),
      failed: await tenant.run([step('a', 'fail')]),
    };
    await tenant.signal(sources.paused ?? '', 'pause');
    await tenant.signal(sources.cancelled ?? '', 'cancel');
    for (const [state, id] of Object.entries(sources)) {
      await tenant.until(id, state);
      const before = await everythingOf(id);
      const { rerun_blocks: rerun, state: born } = await fork(tenant, id, 'a');
      assert.deepEqual([rerun[0], born], ['a', 'scheduled']);
      assert.deepEqual(await everythingOf(id), before);
    }
  });

  test('runs again a block that failed, and keeps what caught its failure', async () => {
    const id = await tenant.runUntil('failed', [
      tryCatch('t', [step('x', 'fail')], [step('y', 'noop')]),
      step('b', 'assert', { params: { condition: 'data.ok' } }),
      step('c', 'noop'),
    ]);
    const reply = await fork(tenant, id, 'c', { context: { ok: true } });
    assert.deepEqual(reply.copied_blocks, ['t']);
    assert.deepEqual(reply.rerun_blocks, ['b', 'c']);
    await tenant.until(reply.id, 'completed');
    assert.deepEqual(await tenant.rowsOf(reply.id), ['x', 'y', 'b', 'c']);
    assert.equal((await tenant.nodeStates(reply.id)).x, 'failed');
  });

  test('copies skipped blocks as skipped', async () => {
    const blocks = [step('a', 'noop', { when: 'data.go' }), step('b', 'noop')];
    const id = await tenant.runUntil('completed', blocks);
    const reply = await fork(tenant, id, 'b', { context: { go: true } });
    assert.deepEqual(reply.copied_blocks, ['a']);
    await tenant.until(reply.id, 'completed');
    assert.deepEqual(await tenant.nodeStates(reply.id), { a: 'skipped', b: 'completed' });
  });

  test('carries the injected blocks of its source, and can be changed by itself', async () => {
    const id = await tenant.runUntil('completed', [step('a', 'noop')]);
    await inject(tenant, id, [step('x', 'noop'), step('y', 'noop')]);
    const reply = await fork(tenant, id, 'x');
    assert.deepEqual(reply.rerun_blocks, ['x', 'y']);
    await tenant.until(reply.id, 'completed');
    assert.deepEqual(await tenant.rowsOf(reply.id), ['a', 'x', 'y']);
    await inject(tenant, reply.id, [step('z', 'noop')]);
    await resumeFrom(tenant, reply.id, 'y');
    await tenant.until(reply.id, 'completed');
    assert.deepEqual(await tenant.rowsOf(reply.id), ['a', 'x', 'y', 'z']);
    assert.deepEqual(Object.keys(await tenant.tree(id)), ['a', 'x', 'y']);
  });

  test('of a fork, with the blocks of loops counted on', async () => {
    const id = await tenant.runUntil('completed', FOUR, DATA);
    const first = await fork(tenant, id, 'd');
    await tenant.until(first.id, 'completed');
    const second = await fork(tenant, first.id, 'c');
    await tenant.until(second.id, 'completed');
    assert.deepEqual(await tenant.rowsOf(second.id), await tenant.rowsOf(id));
    assert.equal((await tenant.instance(second.id)).metadata.forked_from, first.id);
  });
});

describe('signals that are given along', () => {
  test('take effect before it starts', async () => {
    const id = await tenant.runUntil('completed', FOUR, DATA);
    const signals = [
      { signal_type: 'update_context', payload: { name: 'signalled' } },
      { signal_type: 'pause' },
    ];
    const { id: child } = await fork(tenant, id, 'c', { signals });
    assert.equal((await tenant.instance(child)).state, 'paused');
    assert.deepEqual(await signalsOf(api, child), ['update_context', 'pause']);
    assert.deepEqual(await signalsOf(api, id), []);
    await tenant.signal(child, 'resume');
    await tenant.until(child, 'completed');
    assert.equal((await tenant.outputsOf(child)).c?.name, 'signalled');
  });

  test('may cancel it', async () => {
    const id = await tenant.runUntil('completed', FOUR, DATA);
    const { id: child } = await fork(tenant, id, 'c', { signals: [{ signal_type: 'cancel' }] });
    assert.equal((await tenant.instance(child)).state, 'cancelled');
  });
});

describe('what is refused creates nothing', () => {
  const created = async () => (await tenant.get<unknown[]>('/instances?limit=1000')).body.length;

  test('a block that is not top level, or missing: 400', async () => {
    const id = await tenant.runUntil('completed', [parallel('p', [step('a', 'noop')])]);
    const before = await created();
    for (const body of [{ from_block_id: 'a' }, { from_block_id: 'none' }, {}]) {
      assert.equal((await ask(id, body)).status, 400);
    }
    assert.equal(await created(), before);
  });

  test('a context or signal that is wrong: 400, too large: 413', async () => {
    const id = await tenant.runUntil('completed', [step('a', 'noop')]);
    const before = await created();
    const big = { big: 'x'.repeat(262_144) };
    const refusals: readonly (readonly [Json, number])[] = [
      [{ context: [] }, 400],
      [{ dry_run: 'yes' }, 400],
      [{ signals: [{ signal_type: 'nothing' }] }, 400],
      [{ signals: [{ signal_type: 'cancel' }, { signal_type: 'resume' }] }, 400],
      [{ context: big }, 413],
      [{ signals: [{ signal_type: 'update_context', payload: big }] }, 413],
    ];
    for (const [body, status] of refusals) {
      const reply = await ask(id, { from_block_id: 'a', ...body });
      assert.equal(reply.status, status, reply.text);
    }
    assert.equal(await created(), before);
  });

  test('more outputs than one commit takes: 413', async () => {
    const text = 'x'.repeat(1024 * 1024);
    const blocks = [
      forEach('f', 'items', [transform('a', { text: '{{ data.text }}', also: text })]),
      step('b', 'noop'),
    ];
    const data = { items: Array.from({ length: 17 }, (_, n) => n), text: 'x' };
    const id = await tenant.runUntil('completed', blocks, data);
    const reply = await ask(id, { from_block_id: 'b' });
    assert.equal(reply.status, 413);
    assert.match(reply.body.error, /the outputs to copy are \d+ bytes/);
  });

  test('a source that is not there, or of another tenant: 404', async () => {
    const id = await tenant.runUntil('completed', [step('a', 'noop')]);
    const other = api.tenant();
    const foreign = await ask(id, { from_block_id: 'a' }, other);
    const missing = await ask(UNKNOWN, { from_block_id: 'a' });
    assert.deepEqual([foreign.status, missing.status], [404, 404]);
    assert.equal(foreign.body.error.replace(id, UNKNOWN), missing.body.error);
    assert.deepEqual((await other.get('/instances')).body, []);
  });
});

test('a fork while its source completes has the outputs of exactly the blocks it copied', async () => {
  const handler = newHandler();
  const blocks = [...'abcdef'].map((id) => step(id, handler));
  const id = await tenant.run([...blocks, step('last', 'noop')]);
  const forks: InstanceForked[] = [];
  for (let n = 0; n < blocks.length; n += 1) {
    const task = await tenant.task(handler);
    const completed = tenant.complete(task, { n });
    const signals = [{ signal_type: 'pause' }];
    forks.push(...(await Promise.all([1, 2].map(() => fork(tenant, id, 'last', { signals })))));
    await completed;
  }
  await tenant.until(id, 'completed');
  for (const { id: child, copied_blocks: copied } of forks) {
    assert.deepEqual(await tenant.rowsOf(child), copied);
  }
});
