/** What the kinds of blocks decide, loops, for_each and kinds within kinds, over HTTP. */

import assert from 'node:assert/strict';
import { describe } from 'node:test';
import type { InstanceExplanation } from '../../schema/explanation.js';
import type { TreeNode } from '../../schema/instance.js';
import {
  forEach,
  type Json,
  LONG_MS,
  loop,
  newHandler,
  parallel,
  race,
  router,
  sleep,
  step,
  testsOf,
  transform,
  tryCatch,
  useSharedApi,
} from '../helpers/api.js';
import { column } from '../helpers/columns.js';

const api = useSharedApi();
const test = testsOf(api);

const noop = (id: string) => step(id, 'noop');
const fail = (id: string) => step(id, 'fail');
const began = (node: TreeNode | undefined) => Date.parse(node?.started_at ?? '');
const ended = (node: TreeNode | undefined) => Date.parse(node?.completed_at ?? '');

/** Runs to the state and gives the blocks that left a row, in order. */
async function rows(state: string, blocks: readonly Json[], data: Json = {}): Promise<string[]> {
  const tenant = api.tenant();
  return tenant.rowsOf(await tenant.runUntil(state, blocks, data));
}

/** The state that blocks come to, and the rows that they leave. */
async function assertRows(
  cases: readonly (readonly [state: string, blocks: Json[], rows: string[]])[],
): Promise<void> {
  for (const [state, blocks, expected] of cases) {
    assert.deepEqual(await rows(state, blocks), expected, JSON.stringify(blocks));
  }
}

describe('Parallel: branches run concurrently with one output per step; a failed branch fails the instance unless caught; empty branches complete', () => {
  test('every branch leaf has one output, and two in-process sleeps overlap', async (tenant) => {
    const blocks = [parallel('p', [sleep('a', 1_000), noop('c')], [sleep('b', 1_000)], [])];
    const id = await tenant.runUntil('completed', blocks);
    const { a, b } = await tenant.tree(id);
    assert.ok(began(a) < ended(b) && began(b) < ended(a));
    assert.deepEqual((await tenant.rowsOf(id)).sort(), ['a', 'b', 'c']);
  });

  test('one failing branch fails the instance; inside try_catch it is rescued; empty ones complete', async () => {
    const failing = parallel('p', [fail('bad')], [sleep('good', 20), noop('rest')]);
    await assertRows([
      // The other branch is not cancelled by the failure.
      ['failed', [failing, noop('after')], ['bad', 'good', 'rest']],
      ['completed', [tryCatch('t', [failing], [noop('x')])], ['bad', 'good', 'rest', 'x']],
      ['completed', [parallel('p', [], []), noop('after')], ['after']],
    ]);
  });
});

test('Steps within a parallel branch run in order', async () => {
  const branch = (name: string) => [
    sleep(`${name}1`, 20),
    noop(`${name}2`),
    sleep(`${name}3`, 1),
    noop(`${name}4`),
  ];
  const order = await rows('completed', [parallel('p', branch('a'), branch('b'))]);
  for (const name of ['a', 'b']) {
    const own = order.filter((id) => id.startsWith(name));
    assert.deepEqual(own, [`${name}1`, `${name}2`, `${name}3`, `${name}4`]);
  }
});

test('Race: the fast branch wins although the worker of another never answers; it fails if all branches fail; first_to_succeed ignores a fast failure', async (tenant) => {
  const [slow, fast] = [newHandler(), newHandler()];
  const id = await tenant.run([race('r', [[step('slow', slow)], [step('fast', fast)]])]);
  await tenant.task(slow);
  await tenant.complete(await tenant.task(fast));
  await tenant.until(id, 'completed');
  assert.deepEqual(await tenant.rowsOf(id), ['fast', 'r']);
  assert.equal((await tenant.nodeStates(id)).slow, 'cancelled');
});

test('A try_catch inside a race competes like any branch', async () => {
  const rescued = (ms: number) => tryCatch('t', [fail('tried')], [sleep('rescue', ms)]);
  const tenant = api.tenant();
  const other = newHandler();
  const lost = [race('r', [[rescued(60_000)], [step('other', other)]])];
  await assertRows([
    ['completed', [race('r', [[rescued(20)], [sleep('late', 60_000)]])], ['tried', 'rescue', 'r']],
  ]);
  const id = await tenant.run(lost);
  await tenant.complete(await tenant.task(other));
  await tenant.until(id, 'completed');
  assert.deepEqual((await tenant.rowsOf(id)).slice(-2), ['other', 'r']);
});

test('Router: the first matching route runs, else the default, else nothing; conditions take nested paths; a missing or null value does not match; only the selected branch has outputs', async (tenant) => {
  const routes = {
    'user.plan == pro': [noop('pro')],
    'user.plan': [noop('any')],
    'user.trial': [noop('trial')],
  };
  const blocks = [router('r', routes, [noop('default')]), router('s', { 'no.such': [noop('x')] })];
  const cases: readonly [Json, string][] = [
    [{ user: { plan: 'pro', trial: true } }, 'pro'],
    [{ user: { trial: true } }, 'trial'],
    [{}, 'default'],
    [{ user: { plan: null } }, 'default'],
  ];
  for (const [data, chosen] of cases) {
    const id = await tenant.runUntil('completed', blocks, data);
    assert.deepEqual(await tenant.rowsOf(id), [chosen]);
    const { any, x } = await tenant.nodeStates(id);
    assert.deepEqual([any, x], ['skipped', 'skipped']);
  }
});

test('Router conditions evaluate arithmetic such as `count * 2 > threshold`', async () => {
  const blocks = [router('r', { 'count * 2 > threshold': [noop('above')] }, [noop('below')])];
  assert.deepEqual(await rows('completed', blocks, { count: 6, threshold: 11 }), ['above']);
  assert.deepEqual(await rows('completed', blocks, { count: 5, threshold: 11 }), ['below']);
});

describe('try_catch: the catch list runs only after a failure, all of its steps; an empty one swallows the failure, a failing one fails; finally always runs; nesting works', () => {
  const [ok, bad, worse] = [noop('ok'), fail('bad'), fail('worse')];
  const [caught, last] = [noop('caught'), noop('last')];

  test('each list leaves the rows of its steps', () =>
    assertRows([
      ['completed', [tryCatch('t', [ok], [caught], [last])], ['ok', 'last']],
      ['completed', [tryCatch('t', [bad, ok], [caught], [last])], ['bad', 'caught', 'last']],
      ['failed', [tryCatch('t', [bad], [worse], [last])], ['bad', 'worse', 'last']],
      ['completed', [tryCatch('t', [bad], []), ok], ['bad', 'ok']],
      [
        'completed',
        [tryCatch('t', [tryCatch('inner', [bad], [worse])], [caught])],
        ['bad', 'worse', 'caught'],
      ],
    ]));

  test('all catch steps run, and see the failure in context.data._error', async (tenant) => {
    const seen = transform('seen', { error: '{{ data._error }}' });
    const id = await tenant.runUntil('completed', [tryCatch('t', [bad], [seen, caught, last])]);
    const outputs = await tenant.outputsOf(id);
    assert.deepEqual(Object.keys(outputs), ['bad', 'seen', 'caught', 'last']);
    // `tries.test.ts` has its members.
    assert.equal((outputs.seen?.error as Json | undefined)?.path, 't/bad');
  });
});

// ---------------------------------------------------------------- what the kinds of blocks decide

/** Runs to the state and gives the states of the nodes. */
async function nodes(state: string, blocks: Json[], data: Json = {}) {
  const tenant = api.tenant();
  return tenant.nodeStates(await tenant.runUntil(state, blocks, data));
}

describe('Race: `semantics` is honoured, and defaults to `first_to_resolve`', () => {
  /** A race of two workers, the first of whom fails. */
  async function lostBy(semantics?: string) {
    const tenant = api.tenant();
    const [one, two] = [newHandler(), newHandler()];
    const id = await tenant.run([race('r', [[step('a', one)], [step('b', two)]], semantics)]);
    const second = await tenant.task(two);
    await tenant.fail(await tenant.task(one), 'no');
    return { tenant, id, second };
  }

  test('first_to_resolve, the default: the first branch to finish wins by failing', async () => {
    for (const semantics of [undefined, 'first_to_resolve']) {
      const { tenant, id, second } = await lostBy(semantics);
      await tenant.until(id, 'failed');
      assert.equal(await tenant.call('complete', second, { claim_epoch: 1 }), 409);
    }
  });

  test('first_to_succeed: failures are ignored until every branch has failed', async () => {
    const won = await lostBy('first_to_succeed');
    assert.equal((await won.tenant.instance(won.id)).state, 'waiting');
    await won.tenant.complete(won.second);
    await won.tenant.until(won.id, 'completed');
    const lost = await lostBy('first_to_succeed');
    await lost.tenant.fail(lost.second, 'no');
    await lost.tenant.until(lost.id, 'failed');
  });
});

describe('Blocks after a failed one are `skipped`; blocks cut off by a race, a cancel or the end of the instance are `cancelled`', () => {
  test('siblings are skipped, and a race cuts off', async () => {
    const list = [noop('before'), fail('bad'), noop('behind')];
    const lists: readonly [string, Json][] = [
      ['failed', router('r', { yes: list })],
      ['completed', tryCatch('t', list, [noop('x')])],
      ['failed', tryCatch('t', [noop('x')], [], list)],
      ['failed', forEach('f', 'items', list)],
    ];
    for (const [state, block] of lists) {
      const { before, bad, behind } = await nodes(state, [block], { yes: true, items: [1, 2] });
      assert.deepEqual([before, bad, behind], ['completed', 'failed', 'skipped']);
    }
    const loser = [sleep('open', LONG_MS), noop('later')];
    const { won, open, later } = await nodes('completed', [race('r', [loser, [noop('won')]])]);
    assert.deepEqual([won, open, later], ['completed', 'cancelled', 'cancelled']);
  });

  test('a cancel and the end of the instance cut off: cancelled', async () => {
    const open = [sleep('open', LONG_MS), noop('later')];
    const failed = [fail('bad'), noop('behind')];
    const blocks = [noop('done'), parallel('p', open, failed), noop('after')];
    for (const end of ['cancel', 'failed']) {
      const tenant = api.tenant();
      const id = await tenant.run(blocks);
      await (end === 'cancel' ? tenant.signal(id, end) : tenant.move(id, end));
      const { done, bad, behind, ...rest } = await tenant.nodeStates(id);
      assert.deepEqual([done, bad, behind], ['completed', 'failed', 'skipped']);
      const cut = 'cancelled';
      assert.deepEqual(rest, { p: cut, open: cut, later: cut, after: cut });
    }
  });
});

test('A router decides once and stores its choice; neither the route nor a retry changes it', async () => {
  const [tenant, handler] = [api.tenant(), newHandler()];
  const route = [step('l1', handler), noop('l2'), step('l3', handler)];
  const blocks = [router('r', { 'way == left': route }, [noop('right')])];
  const id = await tenant.run(blocks, { context: { data: { way: 'left' } } });
  await tenant.complete(await tenant.task(handler), { way: 'right' });
  await tenant.fail(await tenant.task(handler), 'no');
  await tenant.until(id, 'failed');
  await tenant.post(`/instances/${id}/retry`);
  await tenant.complete(await tenant.task(handler));
  await tenant.until(id, 'completed');
  assert.deepEqual(await tenant.rowsOf(id), ['l1', 'l2', 'l3']);
  assert.equal((await tenant.nodeStates(id)).right, 'skipped');
});

describe('A loop tests its condition before each iteration only; all conditions may read `outputs.*`', () => {
  test('tested before each iteration only, and it may read outputs: a body goes on to its end', async () => {
    const [tenant, handler] = [api.tenant(), newHandler()];
    const body = [step('a', handler), noop('b')];
    const id = await tenant.run([loop('l', 'outputs.a.done != true', body)]);
    for (const done of [false, true]) await tenant.complete(await tenant.task(handler), { done });
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'b', 'l', 'a', 'b', 'l']);
  });

  test('so may those of routers, guards, assertions and retries', async (tenant) => {
    const read = 'outputs.first.kind == "x"';
    const retry = { max_attempts: 2, initial_backoff: 1, retry_if: read };
    const id = await tenant.runUntil('failed', [
      transform('first', { kind: 'x' }),
      router('r', { [read]: [noop('seen')] }),
      step('guarded', 'noop', { when: read }),
      step('asserted', 'assert', { params: { condition: read } }),
      step('flaky', 'fail', { params: { retryable: true }, retry }),
    ]);
    const { seen, guarded, asserted } = await tenant.nodeStates(id);
    assert.deepEqual([seen, guarded, asserted], Array(3).fill('completed'));
    assert.equal((await tenant.outputs(id)).at(-1)?.attempt, 1);
  });
});

test('`for_each`: a missing or empty collection completes at once; a collection that is not an array, or longer than max_iterations, fails the block before the first item', async (tenant) => {
  const block = forEach('f', 'items', [noop('a')], { max_iterations: 3 });
  const blocks = [tryCatch('t', [block, noop('after')], [noop('caught')])];
  const item = ['a', 'f'];
  const cases: readonly [Json, string[]][] = [
    [{}, ['after']],
    [{ items: null }, ['after']],
    [{ items: { 0: 'x' } }, ['caught']],
    [{ items: 'text' }, ['caught']],
    [{ items: [1, 2, 3, 4] }, ['caught']],
    [{ items: [1, 2, 3] }, ['f', ...item, ...item, ...item, 'after']],
  ];
  for (const [data, rows] of cases) {
    const id = await tenant.runUntil('completed', blocks, data);
    assert.deepEqual(await tenant.rowsOf(id), rows, JSON.stringify(data));
  }
});

test('Race: branches finish in the order of events; an empty branch succeeds at once; a caught failure does not fail its branch', async () => {
  const slow = [sleep('a', LONG_MS)];
  const empty = await nodes('completed', [race('r', [slow, []])]);
  assert.deepEqual([empty.r, empty.a], ['completed', 'cancelled']);
  const caught = tryCatch('t', [fail('bad')], [noop('caught')]);
  const { r, t, last } = await nodes('completed', [race('r', [[caught, noop('last')], slow])]);
  assert.deepEqual([r, t, last], ['completed', 'completed', 'completed']);
});

// ---------------------------------------------------------------- loops

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

describe('Loop: a false condition never runs the body; max_iterations ends the loop, which completes; bodies have any number of steps and nest; a failing body fails the loop; try_catch around it recovers', () => {
  const cases: readonly [string, string, Json[], Record<string, number>][] = [
    [
      'a false condition never runs the body',
      'completed',
      [loop('l', 'no.such', [noop('a')]), noop('after')],
      { after: 1 },
    ],
    [
      'constant true stops at max_iterations and completes, with multi-step bodies too',
      'completed',
      [loop('l', 'true', [noop('a'), sleep('b', 1)], 7)],
      { a: 7, b: 7, l: 7 },
    ],
    [
      'nested loops multiply',
      'completed',
      [loop('outer', 'true', [loop('inner', 'true', [noop('a')], 3)], 4)],
      { a: 12, inner: 12, outer: 4 },
    ],
    [
      'try_catch around it survives',
      'completed',
      [tryCatch('t', [loop('l', 'true', [fail('b')], 5)], [noop('caught')])],
      { b: 1, caught: 1 },
    ],
  ];
  for (const [what, state, blocks, expected] of cases) {
    test(what, async () => assert.deepEqual(await counts(state, blocks), expected));
  }

  test('N iterations give N body rows, numbered from 0', async () => {
    const [tenant, handler] = [api.tenant(), newHandler()];
    const id = await tenant.run([loop('l', 'go', [step('a', handler)])], {
      context: { data: { go: true } },
    });
    for (const go of [true, true, false]) await tenant.complete(await tenant.task(handler), { go });
    await tenant.until(id, 'completed');
    const body = (await tenant.outputs(id)).filter((row) => row.block_id === 'a');
    assert.deepEqual(column(body, 'attempt'), [0, 1, 2]);
  });
});

test('A loop stops immediately when its body fails permanently', async () => {
  const [tenant, handler] = [api.tenant(), newHandler()];
  const id = await tenant.run([loop('l', 'true', [step('a', handler)], 5)]);
  await tenant.complete(await tenant.task(handler));
  await tenant.fail(await tenant.task(handler), 'no more');
  await tenant.until(id, 'failed');
  assert.deepEqual(await tenant.poll(handler), []);
  assert.deepEqual(column(await tenant.tasks(handler), 'state'), ['failed', 'completed']);
});

describe('for_each: the body runs once per item of a snapshot of the collection; items are of any type; item_var is configurable; an empty or missing collection completes; try_catch works around and inside', () => {
  /** What the body saw, item by item. */
  async function seen(items: unknown, template: string, more: Json = {}): Promise<unknown[]> {
    const tenant = api.tenant();
    const block = forEach('f', 'items', [transform('a', { saw: template })], more);
    const id = await tenant.runUntil('completed', [block], { items });
    const rows = (await tenant.outputs(id)).filter((row) => row.block_id === 'a');
    return rows.map((row) => row.output.saw);
  }

  test('numbers, strings and objects with nested fields, under a custom item_var', async () => {
    const items = [3, 2.5, 'é', '', { user: { name: 'Ada' } }, { a: [null] }];
    assert.deepEqual(await seen(items, '{{ data.each }}', { item_var: 'each' }), items);
    assert.deepEqual(await seen([items[4]], 'hello {{ data.item.user.name }}'), ['hello Ada']);
  });

  test('snapshot semantics: a change of the array has no effect on a run that has begun', async () => {
    const [tenant, handler] = [api.tenant(), newHandler()];
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

  test('try_catch around it leaves the items behind a failure, inside it none', async () => {
    const around = [tryCatch('t', [forEach('f', 'items', [noop('a'), second])], [noop('caught')])];
    const { a, b, caught } = await counts('completed', around, { items });
    assert.deepEqual([a, b, caught], [2, 1, 1]);
    const body = [noop('a'), tryCatch('t', [second], [noop('caught')])];
    const inside = await counts('completed', [forEach('f', 'items', body)], { items });
    assert.deepEqual([inside.a, inside.b, inside.caught], [3, 1, 1]);
  });
});

describe('Blocks nest: parallel in loop and for_each, loop in for_each, router in loop, race in parallel, three levels deep', () => {
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
      assert.deepEqual(await counts('completed', [block, noop('z')], data), { ...expected, z: 1 });
    });
  }
});

// ---------------------------------------------------------------- items at once

const numbers = (count: number) => Array.from({ length: count }, (_, at) => at);

test('the tree counts items, and what waits is named with its item', async () => {
  const [tenant, handler] = [api.tenant(), newHandler()];
  const block = forEach('orders', 'xs', [step('charge', handler)], { concurrency: 3 });
  const id = await tenant.runUntil('waiting', [block], { xs: numbers(7) });
  await tenant.complete(await tenant.task(handler));
  await tenant.until(id, 'waiting');
  const { orders, charge } = await tenant.tree(id);
  assert.deepEqual(orders?.items, { total: 7, running: 3, ended: 1 });
  assert.equal(charge?.state, 'waiting');
  const { body } = await tenant.get<InstanceExplanation>(`/instances/${id}/explain`);
  const paths = ['orders[3]/charge', 'orders[1]/charge', 'orders[2]/charge'];
  assert.deepEqual(column(body.waiting_for, 'path'), paths);
});
