/** History, checkpoints and context of an instance. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe } from 'node:test';
import type { StepAttempt } from '../../schema/attempt.js';
import type { Checkpoint } from '../../schema/edits.js';
import type { BlockOutput, InstanceContext, Timeline, TreeNode } from '../../schema/instance.js';
import type { Tenant } from '../helpers/api.js';
import {
  forEach,
  loop,
  newHandler,
  step,
  testsOf,
  transform,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';

const api = useSharedApi();
const test = testsOf(api);
const tenant = api.tenant();

const attemptsOf = async (id: string, query = '') => {
  const reply = await tenant.get<StepAttempt[]>(`/instances/${id}/attempts${query}`);
  assert.equal(reply.status, 200, reply.text);
  return reply.body;
};

/** Every page of a list, by its cursors. */
async function pagesOf<T>(path: string): Promise<T[][]> {
  const pages: T[][] = [];
  let cursor: string | string[] | undefined;
  do {
    const place = cursor ? `&cursor=${cursor}` : '';
    const reply = await tenant.get<T[]>(`${path}${place}`);
    assert.equal(reply.status, 200, reply.text);
    pages.push(reply.body);
    cursor = reply.headers['x-next-cursor'];
  } while (cursor);
  return pages;
}

describe('the tries of an instance', () => {
  test('of a worker: each has its inputs, who had it when, and how it ended', async () => {
    const handler = newHandler();
    const retry = { max_attempts: 3, initial_backoff: 1, max_backoff: 1 };
    const params = { order: '{{ data.order }}' };
    const id = await tenant.run([step('charge', handler, { params, retry })], {
      context: { data: { order: 7 } },
    });
    const worker_id = 'cashier';
    const first = await tenant.task(handler, { worker_id });
    const [claimed] = await attemptsOf(id);
    const shown = [claimed?.state, claimed?.worker_id, claimed?.ended_at];
    assert.deepEqual(shown, ['claimed', worker_id, null]);
    await tenant.fail(first, 'no answer', true);
    const second = await tenant.task(handler, { worker_id });
    await tenant.complete(second, { paid: true });
    await tenant.until(id, 'completed');
    const tries = await attemptsOf(id);
    assert.deepEqual(
      columns(tries, 'source', 'block_id', 'attempt', 'state', 'task_id', 'params', 'output'),
      [
        ['task', 'charge', 0, 'failed', first.id, { order: 7 }, null],
        ['task', 'charge', 1, 'completed', second.id, { order: 7 }, { paid: true }],
      ],
    );
    const error = { message: 'no answer', retryable: true };
    assert.deepEqual(column(tries, 'error'), [error, null]);
    for (const { queued_at, started_at, ended_at } of tries) {
      const times = [queued_at, started_at, ended_at].map((time) => Date.parse(time ?? ''));
      const expected = times.toSorted((one, other) => one - other);
      assert.deepEqual(times, expected);
    }
  });

  test('of the process: the last one by its output, those before it by their errors', async () => {
    const retry = { max_attempts: 3, initial_backoff: 1, max_backoff: 1 };
    const params = { message: 'no', retryable: true };
    const id = await tenant.runUntil('failed', [
      transform('a', { n: 1 }),
      step('b', 'fail', { params, retry }),
    ]);
    const tries = await attemptsOf(id);
    // Those of one moment stand in no particular order.
    assert.deepEqual(
      tries
        .map(({ source, block_id, attempt, state, handler_name, error }) => {
          return [source, block_id, attempt, state, handler_name, error?.message] as const;
        })
        .toSorted((one, other) => `${one[1]}${one[2]}`.localeCompare(`${other[1]}${other[2]}`)),
      [
        ['process', 'a', 0, 'completed', 'transform', undefined],
        ['process', 'b', 0, 'failed', 'fail', 'no'],
        ['process', 'b', 1, 'failed', 'fail', 'no'],
        ['process', 'b', 2, 'failed', 'fail', 'no'],
      ],
    );
    assert.deepEqual((await attemptsOf(id, '?state=completed')).length, 1);
    assert.deepEqual((await attemptsOf(id, '?block_id=b&state=failed')).length, 3);
    const [bare] = await attemptsOf(id, '?include_payloads=false');
    assert.ok(bare !== undefined && !('output' in bare));
  });

  test('in a loop: by pages in both orders, and by the passes of the outermost loop', async () => {
    const id = await tenant.runUntil('completed', [
      loop('outer', 'true', [loop('inner', 'true', [step('a', 'noop')], 3)], 20),
    ]);
    const path = `/instances/${id}/attempts?limit=7`;
    const oldest = (await pagesOf<StepAttempt>(path)).flat();
    assert.equal(oldest.length, 60);
    assert.deepEqual(new Set(column(oldest, 'id')).size, 60);
    const newest = (await pagesOf<StepAttempt>(`${path}&order=newest`)).flat();
    assert.deepEqual(column(newest, 'id').reverse(), column(oldest, 'id'));
    const some = await attemptsOf(id, '?block_id=a&iteration_from=4&iteration_to=5');
    assert.deepEqual(column(some, 'iteration'), ['4.0', '4.1', '4.2', '5.0', '5.1', '5.2']);
    assert.equal((await attemptsOf(id, '?block_id=a&iteration=19.2')).length, 1);
    const { status } = await tenant.get(
      `/instances/${id}/attempts?iteration_from=9&iteration_to=3`,
    );
    assert.equal(status, 400);
  });
});

describe('parts of what an instance left', () => {
  test('the tree of one block, and of so many levels', async () => {
    const body = [loop('inner', 'true', [step('a', 'noop')], 2)];
    const id = await tenant.runUntil('completed', [
      step('first', 'noop'),
      loop('outer', 'true', body, 3),
    ]);
    const tree = async (query: string) => {
      const reply = await tenant.get<TreeNode[]>(`/instances/${id}/tree${query}`);
      assert.equal(reply.status, 200, reply.text);
      return reply.body.map(({ block_id }) => block_id);
    };
    assert.deepEqual(await tree(''), ['first', 'outer', 'inner', 'a']);
    assert.deepEqual(await tree('?depth=0'), ['first', 'outer']);
    assert.deepEqual(await tree('?block_id=outer&depth=1'), ['outer', 'inner']);
    assert.equal((await tenant.get(`/instances/${id}/tree?block_id=none`)).status, 404);
    const { body: nodes } = await tenant.get<TreeNode[]>(`/instances/${id}/tree?block_id=a`);
    assert.equal(nodes[0]?.output_count, 6);
  });

  test('outputs and timeline of one block and some passes, with the pass that each is of', async () => {
    const items = Array.from({ length: 30 }, (_, at) => at);
    const blocks = [forEach('each', 'items', [transform('t', { n: '{{ data.item }}' })])];
    const id = await tenant.runUntil('completed', blocks, { items });
    const path = `/instances/${id}/outputs?block_id=t`;
    const { body } = await tenant.get<BlockOutput[]>(`${path}&iteration=3`);
    assert.deepEqual(columns(body, 'iteration', 'output'), [['3', { n: 3 }]]);
    const small = await pagesOf<BlockOutput>(`${path}&max_bytes=1500`);
    assert.ok(small.length > 2, `${small.length} pages`);
    assert.equal(small.flat().length, 30);
    const timeline = `/instances/${id}/timeline?block_id=t&limit=10`;
    const cursor = (await tenant.get<Timeline>(timeline)).headers['x-next-cursor'];
    const second = await tenant.get<Timeline>(`${timeline}&cursor=${cursor}`);
    const seen = second.body.entries.map(({ iteration }) => Number(iteration));
    assert.deepEqual(seen, items.slice(10, 20));
  });
});

// ---------------------------------------------------------------- checkpoints

/** The limit of a checkpoint. */
const BYTES_MAX = 262_144;

const waiting = (tenant: Tenant) => tenant.runUntil('waiting', [step('a', newHandler())]);

const post = (tenant: Tenant, id: string, checkpoint_data: unknown) =>
  tenant.post<{ id: string; error: string }>(`/instances/${id}/checkpoints`, { checkpoint_data });

const save = async (tenant: Tenant, id: string, data: unknown) =>
  expectStatus(await post(tenant, id, data), 201).id;

const list = async (tenant: Tenant, id: string) =>
  expectStatus(await tenant.get<Checkpoint[]>(`/instances/${id}/checkpoints`), 200);

const latest = (tenant: Tenant, id: string) =>
  tenant.get<Checkpoint>(`/instances/${id}/checkpoints/latest`);

const prune = async (tenant: Tenant, id: string, keep: number) => {
  const path = `/instances/${id}/checkpoints/prune`;
  return expectStatus(await tenant.post<{ count: number }>(path, { keep }), 200).count;
};

const dataOf = async (tenant: Tenant, id: string) =>
  (await list(tenant, id)).map((checkpoint) => checkpoint.checkpoint_data);

describe('Checkpoints are returned unchanged; latest is the newest, or 404 without any; prune keeps N, or none with 0', () => {
  test('they round-trip, whatever JSON they are, and latest is the newest', async (tenant) => {
    const id = await waiting(tenant);
    const values = [{ page: 7, of: [1, 'zwei', null] }, 'text', 0, false, null, [], '"\\\u2028'];
    const ids: string[] = [];
    for (const value of values) ids.push(await save(tenant, id, value));
    const checkpoints = await list(tenant, id);
    const seen = columns(checkpoints, 'id', 'checkpoint_data', 'instance_id');
    assert.deepEqual(seen, values.map((value, index) => [ids[index], value, id]).reverse());
    const [newest] = checkpoints;
    assert.ok(Math.abs(Date.parse(newest?.created_at ?? '') - Date.now()) < 60_000);
    assert.deepEqual(expectStatus(await latest(tenant, id), 200), newest);
  });

  test('prune keeps the newest N and says how many went, a dry run would; prune 0 clears', async (tenant) => {
    const id = await waiting(tenant);
    const other = await waiting(tenant);
    await save(tenant, other, 'kept');
    assert.deepEqual([await list(tenant, id), (await latest(tenant, id)).status], [[], 404]);
    for (let page = 1; page <= 5; page++) await save(tenant, id, page);
    assert.equal(await prune(tenant, id, 7), 0);
    const dry = { keep: 1, dry_run: true };
    const reply = await tenant.post(`/instances/${id}/checkpoints/prune`, dry);
    assert.deepEqual([reply.status, reply.body], [200, { count: 4, dry_run: true }]);
    assert.equal(await prune(tenant, id, 3), 2);
    assert.deepEqual(await dataOf(tenant, id), [5, 4, 3]);
    assert.equal(await prune(tenant, id, 0), 3);
    assert.deepEqual(await dataOf(tenant, id), []);
    assert.equal((await latest(tenant, id)).status, 404);
    assert.equal(await prune(tenant, id, 0), 0);
    assert.deepEqual(await dataOf(tenant, other), ['kept']);
  });
});

test('counts of prunes are exact among saves that are under way', async (tenant) => {
  const id = await waiting(tenant);
  const saves = Array.from({ length: 30 }, (_, index) => save(tenant, id, index));
  const prunes = Array.from({ length: 5 }, () => prune(tenant, id, 1));
  const more = Array.from({ length: 30 }, (_, index) => save(tenant, id, index));
  await Promise.all([...saves, ...more]);
  const pruned = (await Promise.all(prunes)).reduce((sum, count) => sum + count, 0);
  assert.equal((await list(tenant, id)).length + pruned, 60);
  assert.equal((await prune(tenant, id, 0)) + pruned, 60);
});

test('every state takes them, and saving one changes nothing else', async (tenant) => {
  const cancelled = await waiting(tenant);
  await tenant.signal(cancelled, 'cancel');
  for (const id of [
    await tenant.run([step('a', 'noop')], { next_fire_at: '2100-01-01T00:00:00Z' }),
    cancelled,
    await tenant.runUntil('failed', [step('a', 'fail')]),
  ]) {
    const before = await tenant.instance(id);
    await save(tenant, id, { state: before.state });
    assert.deepEqual(await dataOf(tenant, id), [{ state: before.state }]);
    assert.deepEqual(await tenant.instance(id), before);
  }
});

test('the newest 100 are listed', async (tenant) => {
  const id = await waiting(tenant);
  await Promise.all(Array.from({ length: 120 }, (_, index) => save(tenant, id, index)));
  const checkpoints = await list(tenant, id);
  assert.equal(checkpoints.length, 100);
  const ids = checkpoints.map((checkpoint) => checkpoint.id);
  assert.deepEqual(ids, [...ids].sort().reverse());
});

test('what is too large is 413, what is wrong 400, and nothing is kept', async (tenant) => {
  const id = await waiting(tenant);
  const fits = 'x'.repeat(BYTES_MAX - 2);
  assert.equal((await post(tenant, id, `${fits}x`)).status, 413);
  // Bytes count, not characters.
  assert.equal((await post(tenant, id, 'ä'.repeat(BYTES_MAX / 2))).status, 413);
  const path = `/instances/${id}/checkpoints`;
  assert.equal((await tenant.post(path, {})).status, 400);
  assert.equal((await tenant.post(path, '{')).status, 400);
  for (const keep of [undefined, -1, 'all', 2 ** 31]) {
    assert.equal((await tenant.post(`${path}/prune`, { keep })).status, 400, String(keep));
  }
  assert.deepEqual(await list(tenant, id), []);
  await save(tenant, id, fits);
  assert.deepEqual(await dataOf(tenant, id), [fits]);
});

// ---------------------------------------------------------------- context

const patch = (id: string, context: unknown) =>
  tenant.patch<{ context: InstanceContext; error: string }>(`/instances/${id}/context`, {
    context,
  });
const contextOf = async (id: string) => (await tenant.instance(id)).context;

test('PATCH context replaces all of data, on running and completed instances; an unknown instance is 404', async () => {
  const more = { context: { data: { a: 1, b: 2 }, config: { c: 3 } } };
  for (const state of ['completed', 'scheduled', 'running', 'paused', 'cancelled']) {
    const id = await tenant.inState(state, more);
    const { context } = expectStatus(await patch(id, { data: { state } }), 200);
    assert.deepEqual([context.data, context.config], [{ state }, { c: 3 }]);
    const after = await tenant.instance(id);
    assert.deepEqual([after.state, after.context], [state, context]);
  }
  assert.equal((await patch(randomUUID(), { data: {} })).status, 404);
});

test('config and audit are replaced only when they are sent, and runtime never', async () => {
  const id = await tenant.run([step('a', newHandler())], { context: { data: { a: 1 } } });
  const { runtime } = await contextOf(id);
  await patch(id, { config: { c: 1 }, audit: [{ who: 'me' }], runtime: { attempt: 77 } });
  await patch(id, { data: null, config: null });
  const context = await contextOf(id);
  assert.deepEqual(context, { data: { a: 1 }, config: { c: 1 }, audit: [{ who: 'me' }], runtime });
});

test('what is no context is 400, and nothing changes', async () => {
  const id = await tenant.run([step('a', newHandler())], { context: { data: { a: 1 } } });
  const before = await contextOf(id);
  for (const context of [undefined, 'x', { data: [] }, { audit: {} }]) {
    const reply = await patch(id, context);
    assert.equal(reply.status, 400, JSON.stringify(context));
    assert.match(reply.body.error, /context/);
  }
  assert.deepEqual(await contextOf(id), before);
});

test('a running step sees the context of its dispatch, a later one the new context', async () => {
  const handler = newHandler();
  const id = await tenant.run(
    [
      step('a', handler, { params: { n: '{{ data.n }}' } }),
      step('b', 'transform', { params: { n: '{{ data.n }}', c: '{{ config.c }}' } }),
    ],
    { context: { data: { n: 1 }, config: { c: 'x' } } },
  );
  const task = await tenant.task(handler);
  assert.deepEqual(task.params, { n: 1 });
  assert.deepEqual(task.context, { data: { n: 1 }, config: { c: 'x' } });
  await patch(id, { data: { n: 2 } });
  await tenant.complete(task);
  await tenant.until(id, 'completed');
  assert.deepEqual((await tenant.outputs(id))[1]?.output, { n: 2, c: 'x' });
});
