/** Forks of instances, blocks injected into them, dry runs, and edits while a handler works. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { InstanceForked } from '../../schema/edits.js';
import {
  eventually,
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
import { expectStatus } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';
import {
  auditOf,
  fork,
  inject,
  MIGRATE,
  migrate,
  resumeFrom,
  signalsOf,
} from '../helpers/edits.js';
import { useHeldRequests } from '../helpers/held-requests.js';

const UNKNOWN = '0195ffff-0000-7000-8000-000000000000';

const api = useSharedApi();
const tenant = api.tenant();

const ask = (id: string, body: Json) =>
  tenant.post<InstanceForked & { error: string }>(`/instances/${id}/fork`, body);

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
    const [own, theirs] = [await tenant.outputs(child), await tenant.outputs(id)];
    const copied = (rows: typeof own) =>
      columns(rows.slice(0, -2), 'block_id', 'output', 'attempt', 'output_size');
    assert.deepEqual(copied(own), copied(theirs));
    const ids = column([...own, ...theirs], 'id');
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
    const id = await tenant.create(await tenant.sequence([step('a', 'noop')]), more);
    await tenant.until(id, 'completed');
    const reply = await fork(tenant, id, 'a');
    assert.equal(reply.dry_run, true);
    const child = await tenant.until(reply.id, 'completed');
    const metadata = { team: 'x', forked_from: id, forked_at_block: 'a', sandbox: true };
    assert.deepEqual(child.metadata, metadata);
    assert.equal(child.timezone, 'Europe/Paris');
    assert.deepEqual(child.context.config, { limit: 3 });
    const kept = ['idempotency_key', 'concurrency_key', 'max_concurrency', 'parent_instance_id'];
    assert.ok(!kept.some((field) => field in child));
    assert.deepEqual(await auditOf(tenant, reply.id), ['forked']);
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
    for (const [state, block] of [
      ['running', sleep('a', 600_000)],
      ['failed', step('a', 'fail')],
    ] as const) {
      const id = await tenant.runUntil(state, [block]);
      const before = await everythingOf(id);
      const { rerun_blocks: rerun, state: born } = await fork(tenant, id, 'a');
      assert.deepEqual([rerun[0], born], ['a', 'scheduled']);
      assert.deepEqual(await everythingOf(id), before);
    }
  });

  test('runs again a block that failed, and keeps what was skipped, or caught a failure', async () => {
    const id = await tenant.runUntil('failed', [
      tryCatch('t', [step('x', 'fail')], [step('y', 'noop')]),
      step('s', 'noop', { when: 'data.ok' }),
      step('b', 'assert', { params: { condition: 'data.ok' } }),
      step('c', 'noop'),
    ]);
    const reply = await fork(tenant, id, 'c', { context: { ok: true } });
    assert.deepEqual(reply.copied_blocks, ['t', 's']);
    assert.deepEqual(reply.rerun_blocks, ['b', 'c']);
    await tenant.until(reply.id, 'completed');
    assert.deepEqual(await tenant.rowsOf(reply.id), ['x', 'y', 'b', 'c']);
    const { x, s } = await tenant.nodeStates(reply.id);
    assert.deepEqual([x, s], ['failed', 'skipped']);
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
});

test('signals that are given along take effect before it starts', async () => {
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

describe('what is refused creates nothing', () => {
  const created = async () => (await tenant.get<unknown[]>('/instances?limit=1000')).body.length;

  test('a block that is not top level, a context or signal that is wrong: 400, too large: 413', async () => {
    const blocks = [step('a', 'noop'), parallel('p', [step('b', 'noop')])];
    const id = await tenant.runUntil('completed', blocks);
    const before = await created();
    const big = { big: 'x'.repeat(262_144) };
    const refusals: readonly (readonly [Json, number])[] = [
      [{ from_block_id: 'b' }, 400],
      [{ from_block_id: undefined }, 400],
      [{ context: [] }, 400],
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
});

test('a fork while its source completes has the outputs of exactly the blocks it copied', async () => {
  const handler = newHandler();
  const blocks = [...'abc'].map((id) => step(id, handler));
  const id = await tenant.run([...blocks, step('last', 'noop')]);
  const forks: InstanceForked[] = [];
  for (let n = 0; n < blocks.length; n += 1) {
    const completed = tenant.complete(await tenant.task(handler), { n });
    const signals = [{ signal_type: 'pause' }];
    forks.push(...(await Promise.all([1, 2].map(() => fork(tenant, id, 'last', { signals })))));
    await completed;
  }
  await tenant.until(id, 'completed');
  for (const { id: child, copied_blocks: copied } of forks) {
    assert.deepEqual(await tenant.rowsOf(child), copied);
  }
});

// ---------------------------------------------------------------- injected blocks

const MIB = 1024 * 1024;

const refused = (id: string, body: unknown) =>
  tenant.post<{ error: string }>(`/instances/${id}/inject-blocks`, body);

/** An instance that waits for a worker in its only block. */
async function waiting(handler = newHandler()): Promise<string> {
  const id = await tenant.run([step('a', handler)]);
  await tenant.until(id, 'waiting');
  return id;
}

describe('Inject-blocks rejects an empty array and accepts failed and completed instances; an unknown instance is 404', () => {
  test('empty array rejected, unknown instance 404', async () => {
    assert.equal((await refused(await waiting(), { blocks: [] })).status, 400);
    assert.equal((await refused(UNKNOWN, { blocks: [step('x', 'noop')] })).status, 404);
  });

  test('accepted on failed instances: the blocks run when it is retried', async () => {
    const id = await tenant.runUntil('failed', [
      step('a', 'assert', { params: { condition: 'data.ok' } }),
    ]);
    const reply = await inject(tenant, id, [step('x', 'noop')]);
    assert.ok((await auditOf(tenant, id)).includes('blocks_injected'));
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

  test('belong to one instance: the stored sequence and its other instances never change', async () => {
    const handler = newHandler();
    const sequence = await tenant.sequence([step('a', handler)]);
    const [one, other] = [await tenant.create(sequence), await tenant.create(sequence)];
    const stored = await tenant.get(`/sequences/${sequence}`);
    await inject(tenant, one, [step('x', 'noop')]);
    assert.deepEqual((await tenant.get(`/sequences/${sequence}`)).body, stored.body);
    assert.deepEqual(Object.keys(await tenant.tree(other)), ['a']);
    for (const _ of [one, other]) await tenant.complete(await tenant.task(handler));
    for (const id of [one, other]) await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(one), ['a', 'x']);
    assert.deepEqual(await tenant.rowsOf(other), ['a']);
  });
});

test('the position counts within the injected blocks, is clamped, and is the end by default; -1 is 400', async () => {
  const id = await waiting();
  const at = async (block: string, position?: number) =>
    (await inject(tenant, id, [step(block, 'noop')], { position })).position;
  assert.equal(await at('x1'), 0);
  assert.equal(await at('x2', 99), 1);
  assert.equal(await at('x3', 0), 0);
  assert.equal(await at('x4', 1), 1);
  assert.deepEqual(Object.keys(await tenant.tree(id)), ['a', 'x3', 'x4', 'x1', 'x2']);
  assert.equal((await refused(id, { blocks: [step('x', 'noop')], position: -1 })).status, 400);
  const two = await inject(tenant, id, [step('x5', 'noop'), step('x6', 'noop')]);
  assert.deepEqual(two, { injected_block_ids: ['x5', 'x6'], position: 4, total_injected: 6 });
});

const text = 'x'.repeat(MIB);
const CASES: readonly (readonly [title: string, blocks: unknown, status: number, RegExp])[] = [
  ['a bad block', [{ type: 'nothing', id: 'x' }], 400, /blocks\[0\]/],
  ['an id twice', [step('x', 'noop'), step('x', 'noop')], 400, /block id x is not unique/],
  ['an id of a stored block', [parallel('p', [step('a', 'noop')])], 400, /id a is not unique/],
  ['an id of an injected block', [step('first', 'noop')], 400, /id first is not unique/],
  [
    'more than 5,000 blocks in all',
    Array.from({ length: 4_999 }, (_, n) => step(`x${n}`, 'noop')),
    400,
    /at most 5000 blocks/,
  ],
  ['more than a MiB', [transform('x', { text })], 413, /injected blocks are/],
];
test('injected blocks that are refused change nothing, and the reason is named', async () => {
  const id = await waiting();
  await inject(tenant, id, [step('first', 'noop')]);
  const before = await tenant.instance(id);
  for (const [title, blocks, status, message] of CASES) {
    const reply = await refused(id, { blocks });
    assert.equal(reply.status, status, `${title}: ${reply.text}`);
    assert.match(reply.body.error, message);
  }
  assert.deepEqual(await tenant.instance(id), before);
  assert.deepEqual(Object.keys(await tenant.tree(id)), ['a', 'first']);
});

test('calls at the same time all take effect, each with a place of its own', async () => {
  const id = await waiting();
  const names = Array.from({ length: 20 }, (_, n) => `x${n}`);
  const replies = await Promise.all(names.map((name) => inject(tenant, id, [step(name, 'noop')])));
  const seen = replies.map(({ total_injected: total }) => total).sort((a, b) => a - b);
  const expected = names.map((_, n) => n + 1);
  assert.deepEqual(seen, expected);
  assert.deepEqual(Object.keys(await tenant.tree(id)).sort(), ['a', ...names].sort());
});

// ---------------------------------------------------------------- dry runs

const DRY = { dry_run: true };

test('a dry run stays one through a retry and a resume', async () => {
  const id = await tenant.runUntil('failed', [step('a', 'fail'), step('b', newHandler())], {}, DRY);
  expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
  await tenant.until(id, 'failed');
  await resumeFrom(tenant, id, 'b');
  const { context } = await tenant.until(id, 'completed');
  assert.equal(context.runtime.dry_run, true);
});

describe('idempotency keys of dry runs', () => {
  type Created = { readonly id: string; readonly deduplicated: boolean };
  const create = async (sequence: string, more: Json) =>
    expectStatus(await tenant.post<Created>('/instances', tenant.creation(sequence, more)), 201);

  test('are not those of real runs, and each kind has its own', async () => {
    const sequence = await tenant.sequence([step('a', 'noop')]);
    const key = { idempotency_key: 'order-1' };
    const dry = await create(sequence, { ...key, ...DRY });
    const real = await create(sequence, key);
    assert.notEqual(dry.id, real.id);
    assert.deepEqual([dry.deduplicated, real.deduplicated], [false, false]);
    assert.deepEqual(await create(sequence, { ...key, ...DRY }), { ...dry, deduplicated: true });
    assert.deepEqual(await create(sequence, key), { ...real, deduplicated: true });
    assert.equal((await tenant.instance(dry.id)).idempotency_key, 'dryrun:order-1');
    assert.equal((await tenant.instance(real.id)).idempotency_key, 'order-1');
    const items = [key, { ...key, ...DRY }, { idempotency_key: 'order-2', ...DRY }];
    const instances = items.map((more) => tenant.creation(sequence, more));
    const reply = await tenant.post('/instances/batch', { instances });
    assert.deepEqual(expectStatus(reply, 201), { count: 3, created: 1 });
  });

  test('a real run is never taken for done because of a dry one: 409', async () => {
    const sequence = await tenant.sequence([step('a', 'noop')]);
    await create(sequence, { idempotency_key: 'order-3', ...DRY });
    const real = tenant.creation(sequence, { idempotency_key: 'dryrun:order-3' });
    assert.equal((await tenant.post('/instances', real)).status, 409);
  });
});

// ---------------------------------------------------------------- handlers of the process

const { call, request } = useHeldRequests();

test('blocks are injected, and the answer continues into them', async () => {
  const id = await tenant.run([call('a', '/inject')]);
  const response = await request('/inject');
  await inject(tenant, id, [step('x', 'noop')]);
  response.end('late');
  await tenant.until(id, 'completed');
  assert.deepEqual(await tenant.rowsOf(id), ['a', 'x']);
});

test('a resume aborts it and begins anew; what the first call gave is ignored', async () => {
  const id = await tenant.run([call('a', '/resume')]);
  const first = await request('/resume');
  await tenant.signal(id, 'pause');
  await resumeFrom(tenant, id, 'a');
  const second = await request('/resume', 2);
  first.end('first');
  second.end('second');
  await tenant.until(id, 'completed');
  const seen = (await tenant.outputs(id)).map((row) => [row.block_id, row.output.body]);
  assert.deepEqual(seen, [['a', 'second']]);
});

test('a migration is refused, also in a pause, until the answer is there', async () => {
  const name = `s-${randomUUID()}`;
  const from = await tenant.sequence([call('a', '/migrate')], { name, version: 1 });
  const blocks = [step('n', 'noop'), call('a', '/migrate'), step('b', 'noop')];
  const to = await tenant.sequence(blocks, { name, version: 2 });
  const id = await tenant.create(from);
  const response = await request('/migrate');
  const body = { instance_id: id, target_sequence_id: to };
  assert.equal((await tenant.post(MIGRATE, body)).status, 409);
  await tenant.signal(id, 'pause');
  const refused = await tenant.post<{ error: string }>(MIGRATE, body);
  assert.equal(refused.status, 409);
  assert.match(refused.body.error, /block a .* is running/);
  response.end('now');
  await eventually(async () => assert.deepEqual(await tenant.rowsOf(id), ['a']));
  await migrate(tenant, id, to);
  await tenant.signal(id, 'resume');
  await tenant.until(id, 'completed');
  assert.deepEqual(await tenant.rowsOf(id), ['a', 'b']);
});
