/** Blocks that one instance alone runs after those of its sequence. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type Json,
  loop,
  newHandler,
  parallel,
  step,
  transform,
  tryCatch,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { auditOf, inject, resumeFrom } from '../helpers/edits.js';

const UNKNOWN = '0195ffff-0000-7000-8000-000000000000';
const MIB = 1024 * 1024;

const api = useSharedApi();
const tenant = api.tenant();

const refused = (id: string, body: unknown, as = tenant) =>
  as.post<{ error: string }>(`/instances/${id}/inject-blocks`, body);

/** An instance that waits for a worker in its only block. */
async function waiting(handler = newHandler()): Promise<string> {
  const id = await tenant.run([step('a', handler)]);
  await tenant.until(id, 'waiting');
  return id;
}

describe('Inject-blocks: empty array rejected, unknown instance 404, accepted on failed and completed instances', () => {
  test('empty array rejected', async () => {
    const id = await waiting();
    assert.equal((await refused(id, { blocks: [] })).status, 400);
  });

  test('unknown instance 404', async () => {
    assert.equal((await refused(UNKNOWN, { blocks: [step('x', 'noop')] })).status, 404);
  });

  test('accepted on failed instances: the blocks run when it is retried', async () => {
    const id = await tenant.runUntil('failed', [
      step('a', 'assert', { params: { condition: 'data.ok' } }),
    ]);
    const reply = await inject(tenant, id, [step('x', 'noop')]);
    assert.deepEqual(reply, { injected_block_ids: ['x'], position: 0, total_injected: 1 });
    assert.equal((await tenant.instance(id)).state, 'failed');
    await tenant.patch(`/instances/${id}/context`, { context: { data: { ok: true } } });
    expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'x']);
  });

  test('accepted on completed and cancelled instances, which stay as they are', async () => {
    const done = await tenant.runUntil('completed', [step('a', 'noop')]);
    const cut = await waiting();
    await tenant.signal(cut, 'cancel');
    for (const id of [done, cut]) {
      const { state } = await tenant.instance(id);
      const rows = await tenant.rowsOf(id);
      await inject(tenant, id, [step('x', 'noop')]);
      assert.equal((await tenant.instance(id)).state, state);
      assert.deepEqual(await tenant.rowsOf(id), rows);
      await resumeFrom(tenant, id, 'x');
      await tenant.until(id, 'completed');
      assert.deepEqual(await tenant.rowsOf(id), [...rows, 'x']);
    }
  });
});

describe('injected blocks', () => {
  test('run after the stored ones, also when they come while the last of these runs', async () => {
    const handler = newHandler();
    const id = await waiting(handler);
    await inject(tenant, id, [transform('x', { from: '{{ outputs.a.n }}' }), step('y', handler)]);
    await tenant.complete(await tenant.task(handler), { n: 7 });
    const last = await tenant.task(handler);
    assert.equal(last.block_id, 'y');
    await tenant.complete(last);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'x', 'y']);
    assert.deepEqual((await tenant.outputsOf(id)).x, { from: 7 });
  });

  test('may read what stored blocks gave before they came', async () => {
    const handler = newHandler();
    const id = await tenant.run([transform('a', { n: 3 }), step('b', handler)]);
    const task = await tenant.task(handler);
    await inject(tenant, id, [transform('x', { sum: '{{ outputs.a.n }}' })]);
    await tenant.complete(task);
    await tenant.until(id, 'completed');
    assert.deepEqual((await tenant.outputsOf(id)).x, { sum: 3 });
  });

  test('of every kind run like stored ones, and are in the tree', async () => {
    const handler = newHandler();
    const id = await waiting(handler);
    await inject(tenant, id, [
      tryCatch('t', [step('b', 'fail')], [loop('l', 'true', [step('e', 'noop')], 2)]),
      parallel('p', [step('c', 'noop')], [step('d', 'noop')]),
    ]);
    assert.equal((await tenant.nodeStates(id)).t, 'pending');
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
    const { t, b, l, p, c, d } = await tenant.nodeStates(id);
    assert.deepEqual(
      [t, b, l, p, c, d],
      ['completed', 'failed', 'completed', 'completed', 'completed', 'completed'],
    );
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'b', 'e', 'l', 'e', 'l', 'c', 'd']);
  });

  test('run when the stored ones ended during a pause', async () => {
    const handler = newHandler();
    const id = await waiting(handler);
    const task = await tenant.task(handler);
    await tenant.signal(id, 'pause');
    await tenant.complete(task);
    await inject(tenant, id, [step('x', 'noop')]);
    assert.equal((await tenant.instance(id)).state, 'paused');
    await tenant.signal(id, 'resume');
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'x']);
  });

  test('belong to one instance: the stored sequence and its other instances never change', async () => {
    const handler = newHandler();
    const sequence = await tenant.sequence([step('a', handler)]);
    const [one, other] = [await tenant.create(sequence), await tenant.create(sequence)];
    const stored = await tenant.get(`/sequences/${sequence}`);
    await inject(tenant, one, [step('x', 'noop')]);
    assert.deepEqual((await tenant.get(`/sequences/${sequence}`)).body, stored.body);
    assert.deepEqual(Object.keys(await tenant.tree(other)), ['a']);
    for (const _ of [one, other]) await tenant.complete(await tenant.task(handler));
    for (const id of [one, other, await tenant.create(sequence)]) {
      if (id !== one && id !== other) await tenant.complete(await tenant.task(handler));
      await tenant.until(id, 'completed');
    }
    assert.deepEqual(await tenant.rowsOf(one), ['a', 'x']);
    assert.deepEqual(await tenant.rowsOf(other), ['a']);
  });

  test('leave an entry in the audit and change updated_at', async () => {
    const id = await waiting();
    const before = await tenant.instance(id);
    await inject(tenant, id, [step('x', 'noop')]);
    assert.deepEqual(await auditOf(tenant, id), ['blocks_injected']);
    assert.notEqual((await tenant.instance(id)).updated_at, before.updated_at);
  });
});

describe('the position', () => {
  test('counts within the injected blocks, is clamped, and is the end by default', async () => {
    const id = await waiting();
    const at = async (block: string, position?: number) =>
      (await inject(tenant, id, [step(block, 'noop')], { position })).position;
    assert.equal(await at('x1'), 0);
    assert.equal(await at('x2', 99), 1);
    assert.equal(await at('x3', 0), 0);
    assert.equal(await at('x4', 1), 1);
    assert.deepEqual(Object.keys(await tenant.tree(id)), ['a', 'x3', 'x4', 'x1', 'x2']);
    const two = await inject(tenant, id, [step('x5', 'noop'), step('x6', 'noop')]);
    assert.deepEqual(two, { injected_block_ids: ['x5', 'x6'], position: 4, total_injected: 6 });
  });

  test('is no earlier than behind the block that runs, so that every block runs', async () => {
    const handler = newHandler();
    const id = await waiting(handler);
    await inject(tenant, id, [step('x1', handler), step('x2', 'noop')]);
    await tenant.complete(await tenant.task(handler));
    const task = await tenant.task(handler);
    assert.equal(task.block_id, 'x1');
    const { position } = await inject(tenant, id, [step('x3', 'noop')], { position: 0 });
    assert.equal(position, 1);
    await tenant.complete(task);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'x1', 'x3', 'x2']);
  });

  test('before a block that failed is taken: a retry runs it first', async () => {
    const handler = newHandler();
    const id = await waiting(handler);
    await inject(tenant, id, [step('x1', 'assert', { params: { condition: 'outputs.x2.n' } })]);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'failed');
    const { position } = await inject(tenant, id, [transform('x2', { n: 1 })], { position: 0 });
    assert.equal(position, 0);
    expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'x2', 'x1']);
  });

  test('below zero or not whole is 400', async () => {
    const id = await waiting();
    for (const position of [-1, 0.5, '1']) {
      const reply = await refused(id, { blocks: [step('x', 'noop')], position });
      assert.equal(reply.status, 400);
    }
  });
});

describe('what is refused changes nothing', () => {
  const CASES: readonly (readonly [title: string, blocks: unknown, status: number, RegExp])[] = [
    ['no array', { type: 'step' }, 400, /blocks/],
    ['a bad block', [{ type: 'nothing', id: 'x' }], 400, /blocks\[0\]/],
    ['an unsupported field', [step('x', 'noop', { cache_key: 'k' })], 400, /not supported/],
    ['an id twice', [step('x', 'noop'), step('x', 'noop')], 400, /block id x is not unique/],
    [
      'an id of a stored block',
      [parallel('p', [step('a', 'noop')])],
      400,
      /block id a is not unique/,
    ],
    ['an id of an injected block', [step('first', 'noop')], 400, /block id first is not unique/],
    [
      'more than 5,000 blocks in all',
      Array.from({ length: 4_999 }, (_, n) => step(`x${n}`, 'noop')),
      400,
      /at most 5000 blocks/,
    ],
    ['blocks nested deeper than 64', [nested(65)], 400, /deeper than 64/],
    ['more than a MiB', [transform('x', { text: 'x'.repeat(MIB) })], 413, /injected blocks are/],
  ];
  for (const [title, blocks, status, message] of CASES) {
    test(`${title}: ${status}`, async () => {
      const id = await waiting();
      await inject(tenant, id, [step('first', 'noop')]);
      const before = await tenant.instance(id);
      const reply = await refused(id, { blocks });
      assert.equal(reply.status, status, reply.text);
      assert.match(reply.body.error, message);
      assert.deepEqual(await tenant.instance(id), before);
      assert.deepEqual(Object.keys(await tenant.tree(id)), ['a', 'first']);
    });
  }

  test('the limit of a MiB is on all that was injected, not on one call', async () => {
    const id = await waiting();
    const half = (block: string) => [transform(block, { text: 'x'.repeat(MIB / 2) })];
    await inject(tenant, id, half('x1'));
    assert.equal((await refused(id, { blocks: half('x2') })).status, 413);
  });

  test('an instance of another tenant: 404, with the text of a missing one', async () => {
    const id = await waiting();
    const body = { blocks: [step('x', 'noop')] };
    const reply = await refused(id, body, api.tenant());
    assert.equal(reply.status, 404);
    const missing = await refused(UNKNOWN, body);
    assert.equal(reply.body.error.replace(id, UNKNOWN), missing.body.error);
    assert.deepEqual(Object.keys(await tenant.tree(id)), ['a']);
  });
});

function nested(depth: number): Json {
  const inner = depth === 1 ? step('d1', 'noop') : nested(depth - 1);
  return depth === 1 ? inner : parallel(`d${depth}`, [inner]);
}

test('calls at the same time all take effect, each with a place of its own', async () => {
  const id = await waiting();
  const names = Array.from({ length: 20 }, (_, n) => `x${n}`);
  const replies = await Promise.all(names.map((name) => inject(tenant, id, [step(name, 'noop')])));
  assert.deepEqual(
    replies.map(({ total_injected: total }) => total).sort((a, b) => a - b),
    names.map((_, n) => n + 1),
  );
  assert.deepEqual(Object.keys(await tenant.tree(id)).sort(), ['a', ...names].sort());
});
