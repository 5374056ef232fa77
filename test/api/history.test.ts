/** What an instance left behind, read by pages: tries, parts of the tree, outputs and the timeline of one block. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { StepAttempt } from '../../schema/attempt.js';
import type { BlockOutput, Timeline, TreeNode } from '../../schema/instance.js';
import { forEach, loop, newHandler, step, transform, useSharedApi } from '../helpers/api.js';

const api = useSharedApi();
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
    const poll = { handler_name: handler, worker_id, wait_ms: 10_000 };
    const [first] = (await tenant.post<{ id: string }[]>('/workers/tasks/poll', poll)).body;
    assert.ok(first !== undefined);
    const [claimed] = await attemptsOf(id);
    assert.deepEqual(
      [claimed?.state, claimed?.worker_id, claimed?.ended_at],
      ['claimed', worker_id, null],
    );
    const failure = { worker_id, message: 'no answer', retryable: true };
    await tenant.post(`/workers/tasks/${first.id}/fail`, failure);
    const [second] = (await tenant.post<{ id: string }[]>('/workers/tasks/poll', poll)).body;
    await tenant.post(`/workers/tasks/${second?.id}/complete`, {
      worker_id,
      output: { paid: true },
    });
    await tenant.until(id, 'completed');
    const tries = await attemptsOf(id);
    assert.deepEqual(
      tries.map(({ source, block_id, attempt, state, task_id, params, output, error }) => {
        return { source, block_id, attempt, state, task_id, params, output, error };
      }),
      [
        {
          source: 'task',
          block_id: 'charge',
          attempt: 0,
          state: 'failed',
          task_id: first.id,
          params: { order: 7 },
          output: null,
          error: { message: 'no answer', retryable: true },
        },
        {
          source: 'task',
          block_id: 'charge',
          attempt: 1,
          state: 'completed',
          task_id: second?.id,
          params: { order: 7 },
          output: { paid: true },
          error: null,
        },
      ],
    );
    for (const { queued_at, started_at, ended_at } of tries) {
      const times = [queued_at, started_at, ended_at].map((time) => Date.parse(time ?? ''));
      assert.deepEqual(
        times,
        times.toSorted((one, other) => one - other),
      );
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
    assert.deepEqual(new Set(oldest.map(({ id }) => id)).size, 60);
    const newest = (await pagesOf<StepAttempt>(`${path}&order=newest`)).flat();
    assert.deepEqual(
      newest.map(({ id }) => id).reverse(),
      oldest.map(({ id }) => id),
    );
    const some = await attemptsOf(id, '?block_id=a&iteration_from=4&iteration_to=5');
    assert.deepEqual(
      some.map(({ iteration }) => iteration),
      ['4.0', '4.1', '4.2', '5.0', '5.1', '5.2'],
    );
    assert.equal((await attemptsOf(id, '?block_id=a&iteration=19.2')).length, 1);
    const { status } = await tenant.get(
      `/instances/${id}/attempts?iteration_from=9&iteration_to=3`,
    );
    assert.equal(status, 400);
  });

  test('an instance of another tenant has none to show', async () => {
    const id = await tenant.runUntil('completed', [step('a', 'noop')]);
    assert.equal((await api.tenant().get(`/instances/${id}/attempts`)).status, 404);
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
    assert.deepEqual(
      body.map(({ iteration, output }) => [iteration, output]),
      [['3', { n: 3 }]],
    );
    const small = await pagesOf<BlockOutput>(`${path}&max_bytes=1500`);
    assert.ok(small.length > 2, `${small.length} pages`);
    assert.equal(small.flat().length, 30);
    const timeline = `/instances/${id}/timeline?block_id=t&limit=10`;
    const first = await tenant.get<Timeline>(timeline);
    const cursor = first.headers['x-next-cursor'];
    const second = await tenant.get<Timeline>(`${timeline}&cursor=${cursor}`);
    assert.deepEqual(
      second.body.entries.map(({ iteration }) => Number(iteration)),
      items.slice(10, 20),
    );
  });
});
