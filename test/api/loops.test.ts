/** Loop, for_each and kinds within kinds, over HTTP. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  forEach,
  type Json,
  loop,
  newHandler,
  parallel,
  race,
  router,
  sleep,
  step,
  transform,
  tryCatch,
  useSharedApi,
} from '../helpers/api.js';
import { column } from '../helpers/columns.js';

const api = useSharedApi();

const noop = (id: string) => step(id, 'noop');
const fail = (id: string) => step(id, 'fail');

/** Runs to the state and counts the rows of each block. */
async function counts(
  state: string,
  blocks: readonly Json[],
  data: Json = {},
): Promise<Record<string, number>> {
  const tenant = api.tenant();
  const rows: Record<string, number> = {};
  for (const id of await tenant.rowsOf(await tenant.runUntil(state, blocks, data))) {
    rows[id] = (rows[id] ?? 0) + 1;
  }
  return rows;
}

describe('Loop: false condition never runs the body; constant true stops at max_iterations and completes; N iterations give N body rows; multi-step bodies; nested loops multiply; failing body fails; try_catch around it survives', () => {
  test('a false condition never runs the body', async () => {
    const blocks = [loop('l', 'go', [noop('a')]), noop('after')];
    assert.deepEqual(await counts('completed', blocks, { go: false }), { after: 1 });
  });

  test('constant true stops at max_iterations and completes', async () => {
    assert.deepEqual(await counts('completed', [loop('l', 'true', [noop('a')], 7)]), {
      a: 7,
      l: 7,
    });
  });

  test('N iterations give N body rows, numbered from 0', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const id = await tenant.run([loop('l', 'go', [step('a', handler)])], {
      context: { data: { go: true } },
    });
    for (const go of [true, true, false]) await tenant.complete(await tenant.task(handler), { go });
    await tenant.until(id, 'completed');
    const body = (await tenant.outputs(id)).filter((row) => row.block_id === 'a');
    assert.deepEqual(column(body, 'attempt'), [0, 1, 2]);
  });

  test('multi-step bodies', async () => {
    const body = [noop('a'), sleep('b', 1), noop('c')];
    const tenant = api.tenant();
    const id = await tenant.runUntil('completed', [loop('l', 'true', body, 2)]);
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'b', 'c', 'l', 'a', 'b', 'c', 'l']);
  });

  test('nested loops multiply', async () => {
    const inner = loop('inner', 'true', [noop('a')], 3);
    assert.deepEqual(await counts('completed', [loop('outer', 'true', [inner], 4)]), {
      a: 12,
      inner: 12,
      outer: 4,
    });
  });

  test('a failing body fails', async () => {
    const blocks = [loop('l', 'true', [noop('a'), fail('b')], 5), noop('after')];
    assert.deepEqual(await counts('failed', blocks), { a: 1, b: 1 });
  });

  test('try_catch around it survives', async () => {
    const blocks = [tryCatch('t', [loop('l', 'true', [fail('b')], 5)], [noop('caught')])];
    assert.deepEqual(await counts('completed', blocks), { b: 1, caught: 1 });
  });
});

test('Loop stops dispatching right after a permanent body failure', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const id = await tenant.run([loop('l', 'true', [step('a', handler)], 5)]);
  await tenant.complete(await tenant.task(handler));
  await tenant.fail(await tenant.task(handler), 'no more');
  await tenant.until(id, 'failed');
  assert.deepEqual(await tenant.poll(handler), []);
  assert.deepEqual(column(await tenant.tasks(handler), 'state'), ['failed', 'completed']);
});

describe('for_each: N items give N body rows; numbers, strings, objects with nested fields; custom item_var; empty or missing collection completes with no body rows; snapshot semantics; try_catch around or inside works', () => {
  /** What the body saw, item by item. */
  async function seen(items: unknown, template: string, more: Json = {}): Promise<unknown[]> {
    const tenant = api.tenant();
    const block = forEach('f', 'items', [transform('a', { saw: template })], more);
    const id = await tenant.runUntil('completed', [block], { items });
    const rows = (await tenant.outputs(id)).filter((row) => row.block_id === 'a');
    return rows.map((row) => row.output.saw);
  }

  for (const [what, items] of [
    ['numbers', [3, 1, 2.5]],
    ['strings', ['x', '', 'é']],
    ['objects', [{ a: 1 }, {}, { a: [null] }]],
  ] as const) {
    test(`${what}: N items give N body rows`, async () => {
      assert.deepEqual(await seen(items, '{{ data.item }}'), items);
    });
  }

  test('objects with nested fields', async () => {
    const items = [{ user: { name: 'Ada' } }, { user: { name: 'Bob' } }];
    assert.deepEqual(await seen(items, 'hello {{ data.item.user.name }}'), [
      'hello Ada',
      'hello Bob',
    ]);
  });

  test('a custom item_var', async () => {
    assert.deepEqual(await seen([1, 2], '{{ data.each }}', { item_var: 'each' }), [1, 2]);
  });

  test('an empty or missing collection completes with no body rows', async () => {
    const block = forEach('f', 'items', [noop('a')]);
    for (const data of [{ items: [] }, {}, { items: null }]) {
      assert.deepEqual(await counts('completed', [block, noop('after')], data), { after: 1 });
    }
  });

  test('snapshot semantics: a change of the array has no effect on a run that has begun', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const body = step('a', handler, { params: { item: '{{ data.item }}' } });
    const id = await tenant.run([forEach('f', 'items', [body])], {
      context: { data: { items: ['x', 'y'] } },
    });
    const items: unknown[] = [];
    for (let index = 0; index < 2; index++) {
      const task = await tenant.task(handler);
      items.push((task.params as Json).item);
      await tenant.complete(task, { items: ['other', 'things', 'now'] });
    }
    await tenant.until(id, 'completed');
    assert.deepEqual(items, ['x', 'y']);
  });

  const items = [1, 2, 3];
  const second = step('b', 'fail', { when: 'item == 2' });

  test('try_catch around it works: the items behind the failure are not run', async () => {
    const blocks = [tryCatch('t', [forEach('f', 'items', [noop('a'), second])], [noop('caught')])];
    const { a, b, caught } = await counts('completed', blocks, { items });
    assert.deepEqual([a, b, caught], [2, 1, 1]);
  });

  test('try_catch inside it works: every item is run', async () => {
    const body = [noop('a'), tryCatch('t', [second], [noop('caught')])];
    const { a, b, caught } = await counts('completed', [forEach('f', 'items', body)], { items });
    assert.deepEqual([a, b, caught], [3, 1, 1]);
  });
});

describe('parallel in loop, parallel in for_each, loop in for_each, router in loop, race in parallel, three-deep nesting all finish', () => {
  const data = { items: [1, 2, 3], go: true };
  const pair = parallel('p', [noop('a')], [sleep('b', 1)]);
  const cases: readonly [string, Json, Record<string, number>][] = [
    ['parallel in loop', loop('l', 'go', [pair], 2), { a: 2, b: 2, l: 2 }],
    ['parallel in for_each', forEach('f', 'items', [pair]), { a: 3, b: 3, f: 4 }],
    [
      'loop in for_each',
      forEach('f', 'items', [loop('l', 'go', [noop('a')], 2)]),
      { a: 6, l: 6, f: 4 },
    ],
    [
      'router in loop',
      loop('l', 'go', [router('r', { 'no.such': [noop('x')] }, [noop('a')])], 3),
      { a: 3, l: 3 },
    ],
    [
      'race in parallel',
      parallel('p', [race('r', [[sleep('fast', 1)], [sleep('slow', 60_000)]])], [noop('a')]),
      { a: 1, fast: 1, r: 1 },
    ],
    [
      'three-deep nesting',
      forEach('f', 'items', [
        loop('l', 'go', [parallel('p', [tryCatch('t', [fail('x')], [noop('a')])], [noop('b')])], 2),
      ]),
      { a: 6, b: 6, x: 6, l: 6, f: 4 },
    ],
  ];
  for (const [what, block, expected] of cases) {
    test(what, async () => {
      assert.deepEqual(await counts('completed', [block, noop('end')], data), {
        ...expected,
        end: 1,
      });
    });
  }
});
