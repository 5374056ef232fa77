/**
 * Instances that ask for too much: outputs, templates and conditions that blow up. Each meets a limit
 * that fails only itself, with a reason in the dead letter queue, and its neighbours never wait for it.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BatchActionResult } from '../../schema/edits.js';
import { beforeWith, forEach, loop, newHandler, step, transform, useApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { auditOf } from '../helpers/edits.js';
import { startNeighbour } from '../helpers/neighbour.js';

const KIB = 1024;
const MIB = 1024 * KIB;

let sequenceOfNeighbours: string;
const neighbours = () => api.tenant('neighbours');
const guilty = () => api.tenant('guilty');

const api = useApi({ env: { ENGINE_SHARDS: '1' } });

beforeWith(api, async () => {
  sequenceOfNeighbours = await neighbours().sequence([step('a', 'noop')]);
});

/** Does the work while neighbours come and go, at least so many of them. */
async function amongNeighbours<T>(work: () => Promise<T>, least = 1): Promise<T> {
  const neighbour = startNeighbour(neighbours(), sequenceOfNeighbours);
  const result = await work().finally(() => neighbour.stop());
  const { length } = neighbour.latenciesMs;
  assert.ok(length >= least, `${length} neighbours instead of ${least}`);
  return result;
}

type Blocks = Parameters<ReturnType<typeof guilty>['run']>[0];

async function runUntil(state: string, blocks: Blocks, data: object): Promise<string> {
  const id = await guilty().run(blocks, { context: { data } });
  await guilty().until(id, state);
  return id;
}

/** Runs the blocks until their instance has failed; resolves with the reason and its rows by block. */
async function failing(blocks: Blocks, data: object = {}) {
  return amongNeighbours(async () => {
    const id = await runUntil('failed', blocks, data);
    const { rows } = await api.sql.query('select reason from dead_letters where instance_id = $1', [
      id,
    ]);
    assert.ok((await guilty().deadLetters()).includes(id));
    return { reason: String(rows[0]?.reason), rows: await countRows(id) };
  });
}

async function countRows(id: string): Promise<Record<string, number>> {
  const { rows } = await api.sql.query<{ block_id: string; n: number }>(
    `select block_id, count(*)::int as n from block_outputs
     where instance_id = $1 and output_ref is null group by block_id order by block_id`,
    [id],
  );
  return Object.fromEntries(rows.map(({ block_id, n }) => [block_id, n]));
}

/** Runs the blocks until their instance has completed; resolves with its rows by block. */
async function completing(blocks: Blocks, data: object = {}): Promise<Record<string, number>> {
  return amongNeighbours(async () => countRows(await runUntil('completed', blocks, data)));
}

test('an output of 9 MiB is refused with 413, and its task stays with its worker', () =>
  amongNeighbours(async () => {
    const handler = newHandler();
    const id = await guilty().run([step('a', handler)]);
    const task = await guilty().task(handler);
    const body = {
      worker_id: task.worker_id,
      claim_epoch: task.claim_epoch,
      output: { x: 'x'.repeat(9 * MIB) },
    };
    const reply = await guilty().post(`/workers/tasks/${task.id}/complete`, body);
    assert.equal(reply.status, 413);
    assert.equal((await guilty().instance(id)).state, 'waiting');
    assert.deepEqual(await guilty().poll(handler), []);
    await guilty().complete(task, { x: 'x' });
    await guilty().until(id, 'completed');
  }));

test('steps that double what the one before gave end at 16 MiB', async () => {
  const doubling = (i: number) =>
    transform(`t${i}`, { a: `{{outputs.t${i - 1}}}`, b: `{{outputs.t${i - 1}}}` });
  const blocks = [
    transform('t0', { x: '{{data.x}}' }),
    ...Array.from({ length: 20 }, (_, i) => doubling(i + 1)),
  ];
  const { reason, rows } = await failing(blocks, { x: 'x'.repeat(128 * KIB) });
  assert.match(reason, /larger than 16 MiB/);
  // 128 KiB doubled six times is 8 MiB; the seventh time is a little over 16.
  assert.deepEqual(Object.keys(rows), ['t0', 't1', 't2', 't3', 't4', 't5', 't6']);
});

test('a template that shows a large value many times ends at 16 MiB, before anything is stored', async () => {
  const template = '{{json(data)}}'.repeat(80);
  const { reason, rows } = await failing([transform('a', { template })], {
    x: 'x'.repeat(250 * KIB),
  });
  assert.match(reason, /larger than 16 MiB/);
  assert.deepEqual(rows, {});
});

test('filters end at 4 MiB', async () => {
  const data = { x: 'x'.repeat(100 * KIB), list: Array(50_000).fill(1) };
  const long = 'y'.repeat(100);
  for (const template of [
    `{{data.x | replace('x', '${long}')}}`,
    `{{data.list | join('${long}')}}`,
  ]) {
    const { reason } = await failing([transform('a', { v: template })], data);
    assert.match(reason, /gives more than 4 MiB/);
  }
  const fits = transform('a', { v: `{{data.x | replace('x', '${'y'.repeat(40)}')}}` });
  assert.deepEqual(await completing([fits], data), { a: 1 });
});

test('a condition nested deeper than its limit fails its step, and one at the limit holds', async () => {
  const nested = (depth: number) => `${'('.repeat(depth)}true${')'.repeat(depth)}`;
  const { reason } = await failing([step('a', 'noop', { when: nested(5_000) })]);
  assert.match(reason, /when does not parse/);
  assert.deepEqual(await completing([step('a', 'noop', { when: nested(60) })]), { a: 1 });
});

test('a loop whose condition is as costly as one can be leaves every turn to others', async () => {
  const condition = 'len(sort(big)) > 0';
  const big = Array.from({ length: 60_000 }, (_, i) => i % 100);
  const blocks = [loop('l', condition, [step('a', 'noop')], 100)];
  // In one turn it would take a second, and one or two neighbours would have seen the end of it.
  const rows = await amongNeighbours(
    async () => countRows(await runUntil('completed', blocks, { big })),
    6,
  );
  assert.deepEqual(rows, { a: 100, l: 100 });
});

test('a loop that writes 64 KiB in each pass goes on among the others', async () => {
  const body = [transform('a', { x: '{{data.x}}' })];
  const rows = await completing([loop('l', 'true', body, 300)], { x: 'x'.repeat(64 * KIB) });
  assert.deepEqual(rows, { a: 300, l: 300 });
});

test('a for_each over a context of 20,000 keys goes on among the others', async () => {
  const keys = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`k${i}`, 1]));
  const data = { items: Array(2_000).fill(1), ...keys };
  const body = [transform('a', { v: '{{data.item}}' })];
  const rows = await completing([forEach('f', 'items', body, { max_iterations: 2_000 })], data);
  assert.deepEqual(rows, { a: 2_000, f: 2_001 });
});

test('a for_each over more than it may fails before its first item', async () => {
  const items = Array.from({ length: 1_001 }, (_, i) => i);
  const { reason, rows } = await failing([forEach('f', 'items', [step('a', 'noop')])], { items });
  assert.match(reason, /1001 items are more than max_iterations, 1000/);
  assert.deepEqual(rows, {});
});

test('a failure whose message is cut inside of a character is stored', async () => {
  const handler = newHandler();
  const id = await guilty().run([step('a', handler)]);
  await guilty().fail(await guilty().task(handler), `${'x'.repeat(499)}🙂 and more`);
  await guilty().until(id, 'failed');
});

test('what the database refuses of a change of many is counted as failed, and leaves the instance as it was', async () => {
  const tenant = api.tenant();
  const ids = [
    await tenant.runUntil('waiting', [step('a', newHandler())]),
    await tenant.runUntil('completed', [step('a', 'noop')]),
  ];
  await api.sql.query(
    "alter table signals add constraint refused check (signal_type <> 'custom:refused')",
  );
  const act = async (body: object) => {
    const reply = await tenant.post<BatchActionResult>('/instances/batch-action', {
      filter: {},
      ...body,
    });
    const { matched, applied, skipped, failed } = expectStatus(reply, 200);
    return [matched, applied, skipped, failed];
  };
  const states = () => Promise.all(ids.map(async (id) => (await tenant.instance(id)).state));
  assert.deepEqual(await act({ action: 'signal', signal_type: 'refused' }), [2, 0, 1, 1]);
  assert.deepEqual(await states(), ['waiting', 'completed']);
  assert.deepEqual(await auditOf(tenant, ids[0] ?? ''), []);
  assert.deepEqual(await act({ action: 'pause' }), [2, 1, 1, 0]);
  assert.deepEqual(await states(), ['paused', 'completed']);
});
