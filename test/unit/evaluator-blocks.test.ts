/** The evaluator on every kind of composite block: one test, or one row, per rule. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import type { BranchesRecord } from '../../src/core/execution.js';
import type { JsonObject } from '../../src/core/json.js';
import {
  failing,
  forEach,
  http,
  loop,
  noop,
  Player,
  parallel,
  play,
  race,
  transform,
  tryCatch,
  work,
} from '../helpers/player.js';
import { lines } from '../helpers/rows.js';

describe('parallel', () => {
  test('starts all branches together and keeps the order within them', () => {
    const player = play([parallel('p', [http('a'), http('b')], [http('c')], [])]);
    assert.deepEqual(player.atWork, ['a', 'c']);
    player.after('ok c', 'ok a').shows({ atWork: ['b'] });
    player.after('ok b').shows({ state: 'completed' });
  });

  test('a failing branch fails it, after the others have finished', () => {
    const player = play([parallel('p', [failing('a'), noop('a2')], [work('b')]), noop('z')]);
    player.shows({ state: 'waiting', tree: { a2: 'skipped' } });
    player.after('ok b').shows({ state: 'failed', tree: { b: 'completed', z: 'skipped' } });
  });

  test('a branch that failed before failures were noted has a reason all the same', () => {
    const player = play([parallel('p', [failing('a')], [work('b')])]);
    delete (player.snapshot.execution.o[0] as BranchesRecord).y;
    player.after('ok b').shows({ state: 'failed', failure: 'parallel p failed' });
    assert.equal(player.snapshot.execution.y?.code, 'unrecorded');
  });

  test('with empty branches only completes at once', () => {
    assert.equal(play([parallel('p', [], [])]).state, 'completed');
  });
});

describe('race', () => {
  test('the first branch to finish wins and the losers are withdrawn', () => {
    const player = play([race('r', [work('a'), noop('a2')], [http('b'), noop('b2')])]);
    player.after('ok b').shows({ state: 'completed' });
    assert.deepEqual(lines(player.last!.withdrawals, 'blockId', 'reason'), ['a cancelled']);
    player.shows({ tree: { a: 'cancelled', a2: 'cancelled', b2: 'completed' } });
  });

  test('first_to_resolve fails with the first failure, first_to_succeed with the last', () => {
    const branches = [[work('a')], [work('b')]];
    const resolve = play([race('r', ...branches)]);
    resolve.after('fail a').shows({ state: 'failed' });
    const succeed: Block = { type: 'race', id: 'r', semantics: 'first_to_succeed', branches };
    const player = play([succeed]);
    player.after('fail a').shows({ state: 'waiting' });
    const other = play([succeed]);
    other.after('fail b', 'ok a').shows({ state: 'completed' });
    player.after('fail b').shows({ state: 'failed' });
  });

  test('a success in the same round as a failure wins', () => {
    for (const branches of [
      [[failing('a')], [noop('b')]],
      [[noop('b')], [failing('a')]],
    ]) {
      assert.equal(play([race('r', ...branches)]).state, 'completed');
    }
    const later = play([race('r', [failing('a')], [noop('b'), noop('c')])]);
    assert.equal(later.state, 'failed');
  });

  test('an empty branch finishes at once, successfully', () => {
    const player = play([race('r', [work('a')], [])]);
    assert.equal(player.state, 'completed');
    assert.deepEqual(player.dispatched, []);
  });

  test('a failure that was caught inside a branch does not count', () => {
    const player = new Player([
      race('r', [tryCatch('t', [failing('x')], [work('y')])], [work('b')]),
    ]);
    player.start();
    assert.equal(player.state, 'waiting');
    player.after('ok y').shows({ state: 'completed' });
  });

  test('the finally list of a loser runs before the race ends', () => {
    const loser = tryCatch('t', [work('a')], [noop('c')], [work('clean')]);
    const player = play([race('r', [loser, noop('never')], [work('b')]), noop('z')]);
    player.after('ok b').shows({ atWork: ['clean'], tree: { a: 'cancelled' } });
    player.after('ok clean').shows({
      state: 'completed',
      done: ['b', 'clean', 'r', 'z'],
      tree: { t: 'cancelled', c: 'cancelled' },
    });
  });
});

describe('router', () => {
  const router = (...conditions: string[]): Block => ({
    type: 'router',
    id: 'r',
    routes: conditions.map((condition, i) => ({ condition, blocks: [noop(`b${i}`)] })),
    default: [noop('d')],
  });

  for (const [conditions, data, expected] of [
    [['plan == pro', 'plan'], { plan: 'pro' }, 'b0'],
    [['plan == pro', 'plan'], { plan: 'free' }, 'b1'],
    [['plan == pro', 'plan'], {}, 'd'],
    [['(((', 'n * 2 > 5'], { n: 3 }, 'b1'],
    [['user.vip'], { user: { vip: true } }, 'b0'],
  ] as const) {
    test(`${conditions.join(' / ')} with ${JSON.stringify(data)} runs ${expected}`, () => {
      play([router(...conditions)], { data: data as JsonObject }).shows({
        done: [expected],
        state: 'completed',
      });
    });
  }

  test('decides once, also when a branch changes what was tested', () => {
    const block: Block = {
      type: 'router',
      id: 'r',
      routes: [{ condition: 'flag', blocks: [work('a'), noop('b')] }],
      default: [noop('c')],
    };
    const player = play([block], { data: { flag: true } });
    player.complete('a', { flag: false });
    player.shows({ done: ['a', 'b'], tree: { c: 'skipped' } });
  });

  test('without a match and without a default completes; a failing child fails it', () => {
    const block: Block = {
      type: 'router',
      id: 'r',
      routes: [{ condition: 'x', blocks: [failing('a')] }],
    };
    assert.equal(play([block]).state, 'completed');
    assert.equal(play([block], { data: { x: 1 } }).state, 'failed');
  });
});

describe('try_catch', () => {
  const cases: [string, Block, string, string[]][] = [
    ['ok', tryCatch('t', [noop('a')], [noop('c')], [noop('f')]), 'completed', ['a', 'f']],
    ['ok, no finally', tryCatch('t', [noop('a')], [noop('c')]), 'completed', ['a']],
    [
      'failed, caught',
      tryCatch('t', [failing('a')], [noop('c')], [noop('f')]),
      'completed',
      ['c', 'f'],
    ],
    ['failed, empty catch', tryCatch('t', [failing('a')], []), 'completed', []],
    ['both failed', tryCatch('t', [failing('a')], [failing('c')], [noop('f')]), 'failed', ['f']],
    ['finally failed', tryCatch('t', [noop('a')], [], [failing('f')]), 'failed', ['a']],
  ];
  for (const [title, block, state, done] of cases) {
    test(`${title}: the instance is ${state}`, () => {
      play([block]).shows({ state, done });
    });
  }

  test('_error names the failed block, and later siblings are skipped', () => {
    const player = play([tryCatch('t', [failing('a'), noop('b')], [noop('c')])]);
    assert.deepEqual(player.snapshot.data._error, {
      failed_blocks: ['a'],
      source: 'try_catch',
      block_id: 't',
      failed_block_id: 'a',
      path: 't/a',
      handler: 'fail',
      attempt: 0,
      code: 'handler_failed',
      message: 'forced failure',
      at: '2023-11-14T22:13:20.000Z',
    });
    assert.equal(player.tree.b, 'skipped');
  });

  test('a nested recovery leaves the outer one untouched', () => {
    const inner = tryCatch('i', [failing('a')], [noop('c')]);
    const player = play([tryCatch('o', [inner, noop('b')], [noop('never')])]);
    assert.deepEqual(player.done, ['c', 'b']);
  });
});

describe('loop', () => {
  test('rows of body steps count over the iterations, its own rows follow each of them', () => {
    const player = play([loop('l', 'true', 3, [noop('a'), noop('b')])]);
    player.shows({
      state: 'completed',
      done: ['a@0', 'b@0', 'l', 'a@1', 'b@1', 'l', 'a@2', 'b@2', 'l'],
    });
    const rows = player.rows.filter(({ blockId }) => blockId === 'a');
    assert.deepEqual(lines(rows, 'attempt', 'tryNumber'), ['0 0', '1 0', '2 0']);
    const own = player.rows.filter(({ blockId }) => blockId === 'l');
    assert.deepEqual(
      own.map(({ attempt, output }) => [attempt, output]),
      [
        [1, { _iterations: 1 }],
        [2, { _iterations: 2 }],
        [3, { _iterations: 3 }],
      ],
    );
  });

  test('tests its condition before each iteration only', () => {
    const player = play([loop('l', 'go', 9, [work('a'), noop('b')])], { data: { go: true } });

    player.complete('a', { go: false });
    assert.deepEqual(player.done, ['a@0', 'b@0', 'l']);
    assert.equal(play([loop('l', 'go', 9, [noop('a')])]).rows.length, 0);
  });

  test('stops with a failure in its body; a try_catch inside keeps it going', () => {
    assert.equal(play([loop('l', 'true', 5, [failing('a')])]).state, 'failed');
    const caught = loop('l', 'true', 5, [tryCatch('t', [failing('a')], [])]);
    const player = play([caught]);
    assert.equal(player.state, 'completed');
    assert.equal(player.rows.filter(({ blockId }) => blockId === 'l').length, 5);
  });

  test('counts tries per iteration', () => {
    const retry = { max_attempts: 2, initial_backoff: 0, max_backoff: 0 };
    const player = play([loop('l', 'true', 2, [work('a', { retry })])]);
    for (let i = 0; i < 2; i += 1) {
      player.after('again a', 'ok a');
    }
    assert.deepEqual(lines(player.dispatched, 'iteration', 'attempt'), [
      '0 0',
      '0 1',
      '1 0',
      '1 1',
    ]);
    assert.equal(player.state, 'completed');
  });

  test('nested loops have a path of counters', () => {
    const player = play([loop('o', 'true', 2, [loop('i', 'true', 2, [noop('a')])])]);
    const paths = player.done.filter((id) => id.startsWith('a'));
    assert.deepEqual(paths, ['a@0.0', 'a@0.1', 'a@1.0', 'a@1.1']);
    const inner = player.rows.filter(({ blockId }) => blockId === 'i');
    assert.deepEqual(lines(inner, 'iteration', 'attempt'), ['0 0', '0 1', '1 2', '1 3']);
  });
});

describe('for_each', () => {
  test('gives each item to templates, conditions and workers, and removes it at the end', () => {
    const body = [
      transform('a', { v: '{{ data.item.v }}' }),
      { ...work('w'), when: 'item.v > 1' } as Block,
    ];
    const data = { items: [{ v: 1 }, { v: 2 }] };
    const player = play([forEach('f', 'items', body)], { data });
    assert.deepEqual(player.dispatched[0]!.overlay, { item: { v: 2 } });
    assert.equal(player.dispatched[0]!.iteration, '1');
    player.after('ok w').shows({ state: 'completed' });
    const seen = player.rows.filter(({ blockId }) => blockId === 'a').map(({ output }) => output);
    assert.deepEqual(seen, [{ v: 1 }, { v: 2 }]);
    assert.equal(player.snapshot.data.item, undefined);
    assert.equal(player.snapshot.snapshots.size, 0);
  });

  test('its own rows carry the index, the first one before any item; the last is what the items gave', () => {
    const player = play([forEach('f', 'xs', [noop('a')])], { data: { xs: [7, 8] } });
    const own = player.rows.filter(({ blockId }) => blockId === 'f');
    assert.deepEqual(
      own.map(({ attempt, output }) => [attempt, (output as JsonObject)._index]),
      [
        [0, 0],
        [1, 1],
        [2, undefined],
      ],
    );
    assert.deepEqual(own.at(-1)!.output, [{}, {}]);
    assert.deepEqual(own[0]!.output, {
      _index: 0,
      _total: 2,
      _item_var: 'item',
      _snapshot_ref: ':f',
    });
  });

  test('the items are frozen, stored once and dropped when all are done', () => {
    const player = play([forEach('f', 'xs', [work('a')], { item_var: 'x' })], {
      data: { xs: [1, 2] },
    });
    assert.deepEqual(player.last!.snapshots, [{ key: ':f', items: [1, 2] }]);
    player.complete('a', { xs: [9, 9, 9, 9] });
    assert.deepEqual(player.dispatched[1]!.overlay, { x: 2 });
    player.complete('a');
    assert.deepEqual(player.last!.droppedSnapshots, [':f']);
    assert.equal(player.state, 'completed');
  });

  test('nested items shadow, and an inner collection may be in an outer item', () => {
    const inner = forEach(
      'i',
      'row.cells',
      [transform('a', { v: '{{ data.cell }}{{ data.row.n }}' })],
      {
        item_var: 'cell',
      },
    );
    const data = {
      rows: [
        { n: 1, cells: ['x', 'y'] },
        { n: 2, cells: ['z'] },
      ],
    };
    const player = play([forEach('o', 'rows', [inner], { item_var: 'row' })], {
      data,
    });
    const seen = player.rows.filter(({ blockId }) => blockId === 'a').map(({ output }) => output);
    assert.deepEqual(seen, [{ v: 'x1' }, { v: 'y1' }, { v: 'z2' }]);
  });

  for (const [title, data, max, state] of [
    ['a missing collection completes', {}, 10, 'completed'],
    ['null completes', { xs: null }, 10, 'completed'],
    ['an empty collection completes', { xs: [] }, 10, 'completed'],
    ['an object fails the block', { xs: { a: 1 } }, 10, 'failed'],
    ['more items than max_iterations fail the block', { xs: [1, 2, 3] }, 2, 'failed'],
  ] as const) {
    test(`${title}, without a row`, () => {
      const block = forEach('f', 'xs', [noop('a')], { max_iterations: max });
      const player = play([block], { data: data as unknown as JsonObject });
      assert.equal(player.state, state);
      assert.deepEqual(player.rows, []);
      assert.equal(player.snapshot.execution.y !== undefined, state === 'failed');
    });
  }

  test('the collection may be a template over outputs', () => {
    const player = play([
      transform('list', { xs: [1, 2] }),
      forEach('f', '{{ outputs.list.xs }}', [noop('a')]),
    ]);
    const seen = player.done.filter((id) => id.startsWith('a'));
    assert.deepEqual(seen, ['a@0', 'a@1']);
  });

  test('the items of one that failed and was caught go with the next iteration', () => {
    const body = [tryCatch('t', [forEach('f', 'xs', [work('a')])], [])];
    const player = play([loop('l', 'true', 2, body)], { data: { xs: [1, 2] } });
    player.fail('a');
    assert.deepEqual([...player.snapshot.snapshots.keys()], ['1:f']);
    player.after('fail a').shows({ state: 'completed' });
    assert.equal(player.snapshot.snapshots.size, 0);
  });
});
