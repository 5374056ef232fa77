/** for_each: items side by side, the number of the item, and what its items have given. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Block } from '../../schema/blocks.js';
import { readTree, writeTree } from '../../src/core/continuity/execution-tree.js';
import type { ForEachRecord, StepRecord } from '../../src/core/execution.js';
import type { JsonObject, JsonValue } from '../../src/core/json.js';
import { nodeAt } from '../../src/core/paths.js';
import { compilePlan } from '../../src/core/plan.js';
import { clashOf, remapExecution } from '../../src/core/remap.js';
import { treeOf } from '../../src/core/tree.js';
import {
  failing,
  forEach,
  loop,
  noop,
  type Player,
  parallel,
  planOf,
  play,
  race,
  START,
  sleep,
  transform,
  tryCatch,
  work,
} from '../helpers/player.js';

const XS = { data: { xs: [10, 11, 12, 13, 14] } };

/** What is at work, as `block@iteration`. */
function atWork(player: Player): string[] {
  return [...player.open.values()].map(({ blockId, iteration }) => `${blockId}@${iteration}`);
}

/** The worker at the block in that iteration is done. */
function settle(player: Player, at: string, output: JsonValue | 'failed' = {}): Player {
  const open = [...player.open].find(
    ([, { blockId, iteration }]) => at === `${blockId}@${iteration}`,
  );
  assert.ok(open, `${at} is not at work: ${atWork(player)}`);
  const [key, { node, iteration, attempt, external }] = open;
  player.open.delete(key);
  const outcome =
    output === 'failed'
      ? ({ kind: 'failure', retryable: false, message: `no ${at}` } as const)
      : ({ kind: 'success', output } as const);
  player.send({ kind: 'step.outcome', node, iteration, attempt, outcome, external });
  return player;
}

function rowsOf(player: Player, block: string): JsonValue[] {
  return player.rows.filter(({ blockId }) => blockId === block).map(({ output }) => output);
}

describe('items side by side', () => {
  test('begin in order, as many at once as the concurrency says', () => {
    const player = play([forEach('f', 'xs', [work('a')], { concurrency: 2 })], XS);
    assert.deepEqual(atWork(player), ['a@0', 'a@1']);
    settle(player, 'a@1', { n: 1 });
    assert.deepEqual(atWork(player), ['a@0', 'a@2']);
    settle(player, 'a@2', { n: 2 });
    settle(player, 'a@3', { n: 3 });
    assert.deepEqual(atWork(player), ['a@0', 'a@4']);
    settle(player, 'a@4', { n: 4 });
    assert.deepEqual(atWork(player), ['a@0']);
    settle(player, 'a@0', { n: 0 });
    assert.equal(player.state, 'completed');
    const numbers = [0, 1, 2, 3, 4].map((n) => ({ n }));
    assert.deepEqual(rowsOf(player, 'f').at(-1), numbers);
  });

  test('are seen by their own blocks, with their number', () => {
    const body = [work('a', { params: { x: '{{ data.x }}', at: '{{ data.i }}' } })];
    const more = { concurrency: 3, item_var: 'x', index_var: 'i' };
    const player = play([forEach('f', 'xs', body, more)], XS);
    settle(player, 'a@1');
    const given = player.dispatched.map(({ params, overlay }) => [params, overlay]);
    assert.deepEqual(
      given,
      [0, 1, 2, 3].map((at) => [
        { x: 10 + at, at },
        { x: 10 + at, i: at },
      ]),
    );
  });

  test('number their rows without a gap, and count those that have ended', () => {
    const player = play([forEach('f', 'xs', [work('a')], { concurrency: 3 })], XS);
    for (const item of [2, 0, 3, 1, 4]) settle(player, `a@${item}`, { item });
    const rows = player.rows.filter(({ blockId }) => blockId === 'a');
    assert.deepEqual(
      rows.map(({ iteration, attempt }) => [iteration, attempt]),
      [
        ['2', 0],
        ['0', 1],
        ['3', 2],
        ['1', 3],
        ['4', 4],
      ],
    );
    const own = player.rows.filter(({ blockId }) => blockId === 'f');
    assert.deepEqual(
      own.map(({ attempt }) => attempt),
      [0, 1, 2, 3, 4, 5],
    );
    assert.deepEqual(
      own.slice(0, -1).map(({ output }) => (output as JsonObject)._index),
      [0, 1, 2, 3, 4],
    );
  });

  test('see what their own blocks have given, and not what others have', () => {
    const body = [
      work('a'),
      work('b', { params: { own: '{{ outputs.a.n }}', data: '{{ data.n }}' } }),
    ];
    const player = play([forEach('f', 'xs', body, { concurrency: 2 })], XS);
    settle(player, 'a@0', { n: 'first' });
    settle(player, 'a@1', { n: 'second' });
    settle(player, 'b@0', {});
    const params = player.dispatched
      .filter(({ blockId }) => blockId === 'b')
      .map((one) => one.params);
    assert.deepEqual(params, [
      { own: 'first', data: 'first' },
      { own: 'second', data: 'second' },
    ]);
    assert.equal(player.snapshot.data.n, 'second', 'of the data the last one stays');
  });

  test('see what a person said of them, and not what was said of others', () => {
    const said = { decision: '{{ data.decision }}' };
    const body = [
      work('ask', { wait_for_input: { store_as: 'decision' } }),
      work('pay', { params: said }),
      work('tell', { params: said }),
    ];
    const player = play([forEach('f', 'xs', body, { concurrency: 2 })], XS);
    for (const [slot, value] of ['no', 'yes'].entries()) {
      const node = player.plan.nodes.filter(({ id }) => id === 'ask')[slot]!.index;
      const answer = { value, comment: null, by: null, answerId: null, more: {} };
      player.send({ kind: 'gate.answered', node, iteration: `${slot}`, attempt: 0, answer });
    }
    settle(player, 'ask@0');
    settle(player, 'ask@1');
    settle(player, 'pay@0', { decision: 'paid' });
    const given = player.dispatched.flatMap(({ blockId, iteration, params }) =>
      blockId === 'ask' ? [] : [[`${blockId}@${iteration}`, (params as JsonObject).decision]],
    );
    assert.deepEqual(given, [
      ['pay@0', 'no'],
      ['pay@1', 'yes'],
      ['tell@0', 'paid'],
    ]);
    assert.equal(player.snapshot.data.decision, 'paid');
  });

  test('see what a step of theirs has merged, also when a later pass of it fails', () => {
    const steps = [work('a', { deadline: 100 }), work('b')];
    const body = [tryCatch('t', [loop('l', 'true', 2, steps)], [work('c')])];
    const player = play([forEach('f', 'xs', body, { concurrency: 2 })], XS);
    settle(player, 'a@0.0', { n: 'own' });
    settle(player, 'b@0.0', {});
    player.now += 99;
    settle(player, 'a@1.0', { n: 'of another' });
    player.tick();
    const caught = player.dispatched.find(({ blockId }) => blockId === 'c');
    assert.equal(caught?.iteration, '0');
    assert.equal(caught?.overlay?.n, 'own');
  });

  test('see no errors any more that a retry has dropped', () => {
    const shown = { error: '{{ outputs.b }}' };
    const caught = tryCatch('t', [failing('b')], [work('c', { params: shown })]);
    const player = play([forEach('f', 'xs', [caught, work('d')], { concurrency: 2 })], XS);
    settle(player, 'c@0', 'failed');
    settle(player, 'c@1', 'failed');
    const kept = () =>
      Object.values(player.snapshot.items ?? {}).flatMap(({ own }) =>
        Object.values(own).flatMap((outputs) => outputs.map(({ block }) => block)),
      );
    assert.deepEqual(kept(), ['b', 'b']);
    player.sendOnce({ kind: 'retry' });
    assert.deepEqual(kept(), []);
  });

  test('race each for themselves: what is told is the output of the winner in the same item', () => {
    const cleaning = tryCatch('t', [work('b')], [], [work('z')]);
    const body = [race('r', [work('a')], [cleaning])];
    const player = play([forEach('f', 'xs', body, { concurrency: 2 })], XS);
    settle(player, 'a@0', { n: 0 });
    settle(player, 'a@1', { n: 1 });
    settle(player, 'z@0');
    assert.deepEqual(rowsOf(player, 'r'), [{ winner: 0, output: { n: 0 } }]);
  });

  test('see nothing of the item that was in their slot before', () => {
    const body = [work('a', { params: { n: '{{ outputs.a.n | "none" }}' } })];
    const player = play([forEach('f', 'xs', body, { concurrency: 2 })], XS);
    for (const item of [0, 1, 2]) settle(player, `a@${item}`, { n: item });
    assert.deepEqual(
      player.dispatched.map(({ params }) => params),
      Array.from({ length: 5 }, () => ({ n: 'none' })),
    );
  });

  test('catch their own errors', () => {
    const body = [
      tryCatch(
        't',
        [{ type: 'step', id: 'a', handler: 'fail', params: { message: 'no {{ data.item }}' } }],
        [transform('b', { saw: '{{ data._error.message }}' })],
      ),
    ];
    const player = play([forEach('f', 'xs', body, { concurrency: 5 })], XS);
    assert.equal(player.state, 'completed');
    assert.deepEqual(
      rowsOf(player, 'f').at(-1),
      XS.data.xs.map((x) => ({ saw: `no ${x}` })),
    );
  });

  test('nest: an inner for_each of each outer item runs by itself', () => {
    const inner = forEach(
      'in',
      '{{ data.row }}',
      [work('a', { params: { x: '{{ data.item }}' } })],
      {
        concurrency: 2,
      },
    );
    const outer = forEach('out', 'rows', [inner], { item_var: 'row', concurrency: 2 });
    const player = play([outer], { data: { rows: [[1, 2, 3], [4], [5, 6]] } });
    assert.deepEqual(atWork(player), ['a@0.0', 'a@0.1', 'a@1.0']);
    settle(player, 'a@1.0', { done: 4 });
    assert.deepEqual(atWork(player), ['a@0.0', 'a@0.1', 'a@2.0', 'a@2.1']);
    for (const [at, done] of [
      ['a@0.1', 2],
      ['a@0.2', 3],
      ['a@2.1', 6],
      ['a@2.0', 5],
      ['a@0.0', 1],
    ] as const) {
      settle(player, at, { done });
    }
    assert.equal(player.state, 'completed');
    const ends = [[1, 2, 3], [4], [5, 6]].map((row) => row.map((done) => ({ done })));
    assert.deepEqual(player.outputOf('out'), ends);
    assert.equal(player.snapshot.snapshots.size, 0);
    assert.deepEqual(player.snapshot.items, {});
  });

  test('a loop inside counts its own passes', () => {
    const body = [loop('l', 'data.again != false', 2, [work('a')])];
    const player = play([forEach('f', 'xs', body, { concurrency: 2 })], XS);
    settle(player, 'a@0.0');
    assert.deepEqual(atWork(player), ['a@1.0', 'a@0.1']);
    settle(player, 'a@0.1', { n: 1 });
    assert.deepEqual(atWork(player), ['a@1.0', 'a@2.0']);
    assert.deepEqual(player.snapshot.items?.[':f']?.lasts?.[0], { n: 1 });
  });
});

describe('a failed item', () => {
  const blocks = [forEach('f', 'xs', [work('a')], { concurrency: 3 })];

  test('lets those in flight end, begins no other, and fails the block with its reason', () => {
    const player = play(blocks, XS);
    settle(player, 'a@1', 'failed');
    assert.deepEqual(atWork(player), ['a@0', 'a@2']);
    settle(player, 'a@2', 'failed');
    assert.equal(player.state, 'waiting');
    settle(player, 'a@0', { n: 0 });
    player.shows({ state: 'failed', failure: 'no a@1', tree: { f: 'failed', a: 'failed' } });
    assert.equal(player.snapshot.execution.y?.path, 'f[1]/a');
  });

  test('is all that a retry does again, before the items to come', () => {
    const player = play(blocks, XS);
    settle(player, 'a@1', 'failed');
    settle(player, 'a@2', { n: 2 });
    settle(player, 'a@0', { n: 0 });
    player.after('retry', 'wake');
    assert.deepEqual(atWork(player), ['a@1', 'a@3', 'a@4']);
    for (const n of [1, 3, 4]) settle(player, `a@${n}`, { n });
    assert.equal(player.state, 'completed');
    assert.deepEqual(
      player.outputOf('f'),
      [0, 1, 2, 3, 4].map((n) => ({ n })),
    );
  });

  test('caught around the block: the rest goes on', () => {
    const player = play([tryCatch('t', blocks, [noop('c')])], { data: { xs: [1, 2] } });
    settle(player, 'a@0', 'failed');
    settle(player, 'a@1');
    player.shows({ state: 'completed', tree: { t: 'completed', f: 'failed', c: 'completed' } });
    assert.equal((player.snapshot.data._error as JsonObject).path, 't/f[0]/a');
  });

  test('of pure blocks: the first in order is the reason', () => {
    const player = play([forEach('f', 'xs', [failing('a')], { concurrency: 3 })], XS);
    assert.equal(player.state, 'failed');
    assert.equal(player.snapshot.execution.y?.path, 'f[0]/a');
    assert.equal(player.rows.filter(({ blockId }) => blockId === 'a').length, 3);
  });
});

describe('items in flight', () => {
  const each = forEach('f', 'xs', [work('a'), sleep('s', 1_000)], { concurrency: 3 });

  test('are cut off with the instance', () => {
    const player = play([each], XS);
    settle(player, 'a@0');
    player.send({ kind: 'cancel' });
    assert.equal(player.state, 'cancelled');
    assert.deepEqual(
      player.last?.withdrawals.map(({ blockId, iteration }) => `${blockId}@${iteration}`),
      ['a@1', 'a@2'],
    );
  });

  test('are cut off when the block loses a race', () => {
    const player = play([race('r', [each], [work('b')])], XS);
    player.complete('b');
    player.shows({ state: 'completed', tree: { f: 'cancelled', a: 'cancelled', b: 'completed' } });
  });

  test('end while the instance is paused, and others begin when it goes on', () => {
    const player = play([each], XS);
    player.send({ kind: 'pause' });
    settle(player, 'a@0');
    assert.deepEqual(atWork(player), ['a@1', 'a@2']);
    player.after('resume', 'wake');
    player.tick();
    assert.deepEqual(atWork(player), ['a@1', 'a@2', 'a@3']);
  });

  test('wait for times of their own', () => {
    const player = play([forEach('f', 'xs', [sleep('s', 1_000)], { concurrency: 2 })], XS);
    player.shows({ wakeAt: START + 1_000 });
    player.tick().tick();
    player.shows({ state: 'running' }).tick();
    assert.equal(player.state, 'completed');
    assert.equal(player.now, START + 3_000);
  });

  test('are tried again, each with tries of its own', () => {
    const retry = { max_attempts: 2, initial_backoff: 1_000 };
    const player = play([forEach('f', 'xs', [work('a', { retry })], { concurrency: 2 })], XS);
    player.fail('a', true);
    settle(player, 'a@1');
    assert.deepEqual(atWork(player), ['a@2']);
    player.tick();
    const [, last] = [...player.open.values()];
    assert.deepEqual([last?.iteration, last?.attempt], ['0', 1]);
  });

  test('are counted in the tree, where a block is shown once', () => {
    const player = play([each], XS);
    settle(player, 'a@0');
    settle(player, 'a@1');
    player.shows({ tree: { f: 'running', a: 'waiting', s: 'running' } });
    player.tick();
    const nodes = treeOf(player.plan, player.snapshot.execution, player.snapshot.id);
    assert.deepEqual(
      nodes.map(({ block_id, items, branch_index }) => [block_id, items, branch_index]),
      [
        ['f', { total: 5, running: 3, ended: 2 }, null],
        ['a', undefined, null],
        ['s', undefined, null],
      ],
    );
    for (const item of [2, 3, 4]) settle(player, `a@${item}`);
    while (player.state !== 'completed') player.tick();
    player.shows({ tree: { f: 'completed', a: 'completed', s: 'completed' } });
    assert.equal(Object.keys(player.snapshot.execution.d).length, 3, 'of one slot alone');
  });
});

describe('what the items have given', () => {
  const cases: [what: string, body: Block[], more: object, output: JsonValue][] = [
    ['is that of a step', [transform('a', { x: '{{ data.item }}' })], {}, [{ x: 1 }, { x: 2 }]],
    [
      'is that of the last step',
      [noop('z'), transform('a', { x: '{{ data.item }}' })],
      { concurrency: 2 },
      [{ x: 1 }, { x: 2 }],
    ],
    [
      'is that of the last block with an output',
      [transform('a', { x: '{{ data.item }}' }), { ...noop('b'), when: 'data.item == 2' } as Block],
      {},
      [{ x: 1 }, {}],
    ],
    [
      'is null where nothing gave an output',
      [{ ...noop('b'), when: 'data.item == 2' } as Block],
      {},
      [null, {}],
    ],
    [
      'leaves out errors',
      [tryCatch('t', [noop('a'), failing('b')], [])],
      { concurrency: 2 },
      [{}, {}],
    ],
    [
      'is the last one of a parallel',
      [parallel('p', [transform('a', { a: 1 })], [transform('b', { b: '{{ data.item }}' })])],
      {},
      [{ b: 1 }, { b: 2 }],
    ],
  ];
  for (const [what, body, more, output] of cases) {
    test(what, () => {
      const after = transform('after', { got: '{{ outputs.f }}' });
      const player = play([forEach('f', 'xs', body, more), after], { data: { xs: [1, 2] } });
      assert.equal(player.state, 'completed');
      assert.deepEqual(player.outputOf('f'), output);
      assert.deepEqual(player.outputOf('after'), { got: output });
    });
  }

  test('is told by its count alone when it is too large', () => {
    const body = [transform('a', { text: '{{ data.item }}' })];
    for (const concurrency of [1, 3]) {
      const xs = Array.from({ length: 5 }, () => 'x'.repeat(250_000));
      const player = play([forEach('f', 'xs', body, { concurrency })], { data: { xs } });
      assert.deepEqual(player.outputOf('f'), { count: 5 });
    }
    // In bytes, not in characters.
    const xs = Array.from({ length: 5 }, () => 'é'.repeat(150_000));
    assert.deepEqual(play([forEach('f', 'xs', body)], { data: { xs } }).outputOf('f'), {
      count: 5,
    });
  });

  test('is nothing when there are no items', () => {
    const player = play([forEach('f', 'none', [noop('a')], { concurrency: 4 })], XS);
    assert.equal(player.state, 'completed');
    assert.deepEqual(player.rows, []);
  });
});

test('with any concurrency the rows and outputs of pure items are the same', () => {
  const pure: [fc.Arbitrary<number>, fc.Arbitrary<number>, fc.Arbitrary<number>] = [
    fc.integer({ min: 1, max: 9 }),
    fc.integer({ min: 1, max: 7 }),
    fc.integer({ min: 1, max: 60 }),
  ];
  const body = [
    transform('a', { x: '{{ data.item }}', i: '{{ data.i }}' }),
    tryCatch(
      't',
      [{ ...failing('bad'), when: 'item > 6' } as Block],
      [transform('c', { e: '{{ data._error.path }}' })],
    ),
    forEach('g', '{{ outputs.a }}', [noop('never')], {
      collection: 'pair',
      concurrency: 2,
      item_var: 'y',
    }),
    loop('l', 'item > 3', 2, [transform('d', { from: '{{ outputs.a.x }}' })]),
    { ...transform('e', { same: '{{ data.item }}' }), when: 'item in [1, 7, 16]' } as Block,
  ];
  fc.assert(
    fc.property(...pure, (concurrency, count, stepBudget) => {
      const data = { xs: Array.from({ length: count }, (_, at) => at * 3 - 2), pair: [1, 2, 3] };
      const run = (side: number) => {
        const block = forEach('f', 'xs', body, { concurrency: side, index_var: 'i' });
        const player = play([block], { data, env: { stepBudget } });
        assert.equal(player.state, 'completed');
        const rows = player.rows.map(({ blockId, iteration, output }) =>
          JSON.stringify([blockId, iteration, output]),
        );
        return { rows: rows.sort(), output: player.outputOf('f') };
      };
      assert.deepEqual(run(concurrency), run(1));
    }),
    { numRuns: 60 },
  );
});

test('items in flight are carried to another server, each in its slot', () => {
  const inner = forEach('g', '{{ data.row }}', [work('a'), work('b')], { concurrency: 2 });
  const blocks = [forEach('f', 'rows', [inner], { item_var: 'row', concurrency: 2 })];
  const player = play(blocks, { data: { rows: [[1, 2], [3], [4, 5]] } });
  for (const at of ['a@0.1', 'a@1.0', 'b@1.0']) settle(player, at, { at });
  const { execution, snapshots } = player.snapshot;
  const written = writeTree({ execution, items: snapshots, blocks: [] }, player.plan);
  const read = readTree(JSON.parse(JSON.stringify(written)), player.plan);
  assert.ok(read.ok, read.ok ? '' : read.message);
  // What a worker was at is begun again there.
  const before = structuredClone(execution);
  for (const record of Object.values(before.o) as StepRecord[]) {
    if (record.p === 'task') record.p = 'run';
  }
  assert.deepEqual(read.value.execution, before);
});

describe('a version with another concurrency', () => {
  const plan = (concurrency: number) =>
    planOf([forEach('f', 'xs', [work('a'), work('b')], { concurrency })]);
  const record = (player: Player) => player.snapshot.execution.o[0] as ForEachRecord;

  test('that runs fewer items keeps those in flight together', () => {
    const player = play([forEach('f', 'xs', [work('a'), work('b')], { concurrency: 4 })], XS);
    for (const at of ['a@1', 'a@3', 'b@1', 'a@2', 'b@2', 'a@4', 'b@4']) settle(player, at);
    assert.deepEqual(record(player).s, [0, -1, -1, 3]);
    const target = plan(2);
    const { execution } = player.snapshot;
    assert.match(
      clashOf(execution, player.plan, plan(1)) ?? '',
      /^block f is at 2 items, of which the target runs 1 at once$/,
    );
    assert.equal(clashOf(execution, player.plan, target), undefined);
    const moved = remapExecution(execution, player.plan, target);
    assert.deepEqual((moved.o[0] as ForEachRecord).s, [0, 3]);
    const [first, second] = target.nodes[0]!.lists;
    assert.deepEqual(
      Object.keys(moved.o).map(Number),
      [0, first?.[0], second?.[1]],
      'item 3 is at its second block',
    );
    assert.equal(nodeAt(target, moved, 'b', '3')?.index, second?.[1]);
    assert.equal(nodeAt(target, moved, 'b', '1'), undefined);
  });

  test('that runs more items takes others up when it goes on', () => {
    const player = play([forEach('f', 'xs', [work('a'), work('b')])], XS);
    settle(player, 'a@0');
    const target = plan(3);
    const moved = remapExecution(player.snapshot.execution, player.plan, target);
    const { i, s, m } = moved.o[0] as ForEachRecord;
    assert.deepEqual([i, s, m, moved.q], [1, [0, -1, -1], 0, [0]]);
  });
});

describe('a plan', () => {
  test('without concurrency has one node for each block', () => {
    const player = play([forEach('f', 'xs', [noop('a')])], XS);
    assert.equal(player.plan.nodes.length, 2);
    assert.equal((player.snapshot.execution.o[0] as ForEachRecord | undefined)?.s, undefined);
  });

  const body = Array.from({ length: 100 }, (_, at) => noop(`a${at}`));
  const inner = forEach('g', 'xs', body, { concurrency: 20 });
  const refused: [what: string, block: Block, message: RegExp][] = [
    [
      'nested concurrency',
      forEach('f', 'xs', [inner], { concurrency: 16 }),
      /^for_each g: with its concurrency the sequence has more than 20000 blocks/,
    ],
    [
      'an index under the name of the item',
      forEach('f', 'xs', [noop('a')], { item_var: 'x', index_var: 'x' }),
      /^for_each f: index_var x is the name of the item$/,
    ],
    [
      'an index under the name that the item has by default',
      forEach('f', 'xs', [noop('a')], { index_var: 'item' }),
      /index_var item is the name of the item/,
    ],
  ];
  for (const [what, block, message] of refused) {
    test(`is refused for ${what}`, () => {
      const compiled = compilePlan({ id: 's', blocks: [block] });
      assert.ok(!compiled.ok);
      assert.match(compiled.message, message);
    });
  }
});
