/** The evaluator on sagas: what is compensated, in which order, and what is left behind. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import type { EngineEvent } from '../../src/core/evaluator.js';
import {
  failing,
  forEach,
  loop,
  noop,
  type Player,
  parallel,
  play,
  race,
  transform,
  tryCatch,
  work,
} from '../helpers/player.js';

type Step = readonly [id: string, action: Block | Block[], compensation?: Block | Block[]];

function saga(id: string, ...steps: readonly Step[]): Block {
  return {
    type: 'saga',
    id,
    steps: steps.map(([name, action, compensation]) =>
      compensation === undefined ? { id: name, action } : { id: name, action, compensation },
    ),
  };
}

/** The ids of blocks that left a row, without the number of the run of the saga. */
const ran = (player: Player) => player.done.map((row) => row.split('@')[0]);

describe('a saga', () => {
  const undo = (name: string) => noop(`undo-${name}`);
  const cases: [title: string, Block, state: string, done: string[]][] = [
    ['without steps completes', saga('s'), 'completed', []],
    [
      'whose actions complete compensates nothing',
      saga('s', ['1', noop('a'), undo('a')], ['2', noop('b'), undo('b')]),
      'completed',
      ['a', 'b'],
    ],
    [
      'whose first action fails compensates nothing',
      saga('s', ['1', failing('a'), undo('a')], ['2', noop('b'), undo('b')]),
      'failed',
      [],
    ],
    [
      'compensates the completed steps in reverse order',
      saga(
        's',
        ['1', noop('a'), undo('a')],
        ['2', noop('b'), undo('b')],
        ['3', noop('c')],
        ['4', failing('d'), undo('d')],
        ['5', noop('e'), undo('e')],
      ),
      'failed',
      ['a', 'b', 'c', 'undo-b', 'undo-a'],
    ],
    [
      'goes on behind a compensation that fails',
      saga(
        's',
        ['1', noop('a'), undo('a')],
        ['2', noop('b'), failing('undo-b')],
        ['3', failing('c')],
      ),
      'failed',
      ['a', 'b', 'undo-a'],
    ],
    [
      'does not take a list that failed in the middle for completed',
      saga('s', ['1', noop('a'), undo('a')], ['2', [noop('b'), failing('c')], undo('b')]),
      'failed',
      ['a', 'b', 'undo-a'],
    ],
    [
      'takes lists and composites as actions and compensations',
      saga(
        's',
        ['1', [noop('a'), noop('b')], [noop('x'), parallel('p', [noop('y')], [noop('z')])]],
        ['2', tryCatch('t', [failing('c')], [noop('d')]), [undo('t')]],
        ['3', failing('e')],
      ),
      'failed',
      ['a', 'b', 'd', 'undo-t', 'x', 'y', 'z'],
    ],
    [
      'is recoverable inside of a try_catch',
      tryCatch('t', [saga('s', ['1', noop('a'), undo('a')], ['2', failing('b')])], [noop('c')]),
      'completed',
      ['a', 'undo-a', 'c'],
    ],
    [
      'compensates one within another first',
      saga(
        'o',
        ['1', noop('a'), undo('a')],
        ['2', saga('i', ['3', noop('b'), undo('b')], ['4', failing('c')]), undo('i')],
      ),
      'failed',
      ['a', 'b', 'undo-b', 'undo-a'],
    ],
    [
      'counts a skipped action as completed',
      saga('s', ['1', { ...noop('a'), when: 'false' }, undo('a')], ['2', failing('b')]),
      'failed',
      ['undo-a'],
    ],
    [
      'in a loop begins anew with each pass',
      loop('l', 'true', 2, [
        tryCatch('t', [saga('s', ['1', noop('a'), undo('a')], ['2', failing('b')])], []),
      ]),
      'completed',
      ['a', 'undo-a', 'l', 'a', 'undo-a', 'l'],
    ],
  ];
  for (const [title, block, state, done] of cases) {
    test(title, () => {
      const player = play([block]);
      assert.equal(player.state, state);
      assert.deepEqual(ran(player), done);
    });
  }

  test('tells its compensations what failed', () => {
    const told = transform('undo', { error: '{{ data._error }}' });
    const player = play([saga('s', ['first', noop('a'), told], ['second', failing('b')])]);
    assert.deepEqual(player.outputOf('undo'), {
      error: {
        failed_step: 'second',
        source: 'saga',
        block_id: 's',
        failed_block_id: 'b',
        path: 's[0]/b',
        handler: 'fail',
        attempt: 0,
        code: 'handler_failed',
        message: 'forced failure',
        at: '2023-11-14T22:13:20.000Z',
      },
    });
  });

  test('fails for the reason of its action, and names the compensations that failed', () => {
    const player = play([
      saga(
        's',
        ['first', noop('a'), failing('undo-a')],
        ['second', noop('b'), noop('undo-b')],
        ['third', work('c')],
      ),
    ]);
    player.after('fail c');
    const { block_id, message } = player.snapshot.execution.y!;
    assert.equal(block_id, 'c');
    assert.equal(message, 'broken; compensations failed, too: first');
    const [noted] = player.last!.audit.filter((event) => event.eventType === 'saga_compensated');
    assert.deepEqual(noted?.details, { compensated: ['second'], compensations_failed: ['first'] });
    player.shows({ tree: { s: 'failed', 'undo-a': 'failed', 'undo-b': 'completed' } });
  });

  test('shows in the tree what may still come', () => {
    const player = play([
      saga('s', ['1', work('a'), work('x')], ['2', work('b'), noop('y')], ['3', noop('c')]),
    ]);
    player.shows({ tree: { a: 'waiting', x: 'pending', b: 'pending', y: 'pending' } });
    player.after('ok a', 'fail b');
    player.shows({
      state: 'waiting',
      tree: { s: 'running', a: 'completed', x: 'waiting', b: 'failed', y: 'skipped', c: 'skipped' },
    });
    player.after('ok x').shows({ state: 'failed' });
    const done = play([saga('s', ['1', noop('a'), noop('x')])]);
    done.shows({ state: 'completed', tree: { s: 'completed', x: 'skipped' } });
  });
});

describe('a saga that is cut off', () => {
  const blocks = [
    saga('s', ['1', noop('a'), work('x')], ['2', work('b'), noop('y')], ['3', noop('c')]),
    noop('z'),
  ];

  test('by the signal cancel compensates what completed, and the instance is cancelled', () => {
    const player = play(blocks);
    player.after('cancel').shows({ state: 'waiting', atWork: ['x'], withdrawn: ['b'] });
    player.after('cancel').shows({ atWork: ['x'] });
    player.after('ok x');
    player.shows({ state: 'cancelled', tree: { s: 'cancelled', b: 'cancelled', z: 'cancelled' } });
    assert.deepEqual(ran(player), ['a', 'x']);
  });

  test('while it compensates goes on with it', () => {
    const player = play(blocks);
    player.after('fail b', 'cancel').shows({ atWork: ['x'] });
    player.after('ok x').shows({ state: 'cancelled' });
  });

  test('with nothing to compensate ends at once', () => {
    const player = play([saga('s', ['1', work('a'), noop('x')])]);
    player.after('cancel').shows({ state: 'cancelled', done: [] });
  });

  test('behind a block that is protected compensates that, too', () => {
    const player = play([saga('s', ['1', work('a', { cancellable: false }), noop('x')])]);
    player.after('cancel').shows({ state: 'waiting', atWork: ['a'] });
    player.after('ok a').shows({ state: 'cancelled' });
    assert.deepEqual(ran(player), ['a', 'x']);
  });

  test('by a race compensates before the race ends', () => {
    const player = play([race('r', blocks, [work('w')]), noop('end')]);
    player.after('ok w').shows({ state: 'waiting', atWork: ['x'] });
    player.after('ok x').shows({ state: 'completed', tree: { s: 'cancelled', x: 'completed' } });
    assert.deepEqual(ran(player), ['a', 'w', 'x', 'r', 'end']);
  });

  test('hard runs nothing more', () => {
    const player = play(blocks);
    const stop: EngineEvent = { kind: 'stop', state: 'cancelled' };
    player.after(stop).shows({ state: 'cancelled', atWork: [] });
    assert.deepEqual(ran(player), ['a']);
  });
});

describe('a retry of the instance', () => {
  test('runs the whole saga again, as another run with rows and tries of its own', () => {
    const player = play(
      [saga('s', ['1', work('a'), noop('x')], ['2', forEach('f', 'xs', [work('b')])]), noop('z')],
      { data: { xs: [1, 2] } },
    );
    player.after('ok a', 'ok b', 'fail b').shows({ state: 'failed' });
    player.after('retry').shows({ atWork: ['a'], tree: { x: 'pending', b: 'pending' } });
    player.after('ok a', 'ok b', 'ok b').shows({ state: 'completed' });
    const rows = player.rows.filter(({ blockId }) => blockId === 'a');
    assert.deepEqual(
      rows.map(({ iteration, attempt }) => [iteration, attempt]),
      [
        ['0', 0],
        ['1', 1],
      ],
    );
    assert.deepEqual([...player.snapshot.snapshots], []);
  });
});
