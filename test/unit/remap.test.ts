/** Executions that go over to another plan, case by case. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import { COMPLETED, type Execution, SKIPPED } from '../../src/core/execution.js';
import { clashOf, goOnBehindEnd, passedRoots, remapExecution } from '../../src/core/remap.js';
import {
  failing,
  forEach,
  loop,
  noop,
  Player,
  parallel,
  planOf,
  race,
  sleep,
  tryCatch,
  work,
} from '../helpers/player.js';

function router(id: string, ...lists: Block[][]): Block {
  const routes = lists.map((blocks) => ({ condition: 'data.never', blocks }));
  return { type: 'router', id, routes, default: [work(`${id}-default`)] };
}

/** An instance of these blocks that runs until it waits. */
const started = (...blocks: Block[]) => new Player(blocks, { data: { items: [1, 2] } }).start();

const clash = ({ snapshot, plan }: Player, ...blocks: Block[]) =>
  clashOf(snapshot.execution, plan, planOf(blocks));

/** The player's execution in the plan of other blocks, with what is done or open by block. */
function moved({ snapshot, plan }: Player, ...blocks: Block[]) {
  const to = planOf(blocks);
  const execution = remapExecution(snapshot.execution, plan, to);
  const named = (entries: object) => Object.keys(entries).map((index) => to.nodes[+index]!.id);
  const { o, d, q = [] } = execution;
  return { execution, to, open: named(o), done: named(d), queued: q.map((i) => to.nodes[i]!.id) };
}

describe('what is open has to be in the target', () => {
  const a = () => started(work('a'), work('z'));

  const CASES: readonly (readonly [title: string, player: Player, target: Block[], string])[] = [
    ['a step that is gone', a(), [work('z')], 'a is open and is not in the target'],
    [
      'a step with another handler',
      a(),
      [{ ...work('a'), handler: 'other' } as Block],
      'a is open and has the handler other in the target',
    ],
    [
      'a block of another kind',
      a(),
      [parallel('a', [work('b')])],
      'a is open and is a parallel in the target',
    ],
    [
      'a step that was wrapped',
      a(),
      [tryCatch('t', [work('a')], [])],
      'a is open and is at another place in the target',
    ],
    [
      'a step in another branch',
      started(parallel('p', [work('a')], [work('b')])),
      [parallel('p', [work('b')], [work('a')])],
      'a is open and is at another place in the target',
    ],
    [
      'a step under another parent',
      started(tryCatch('t', [tryCatch('u', [work('a')], [])], [])),
      [tryCatch('u', [tryCatch('t', [work('a')], [])], [])],
      't is open and is at another place in the target',
    ],
    [
      'a parallel with a further branch',
      started(parallel('p', [work('a')])),
      [parallel('p', [work('a')], [work('b')])],
      'p is open and has another number of branches in the target',
    ],
    [
      'a race with a branch less',
      started(race('r', [work('a')], [work('b')])),
      [race('r', [work('a')])],
      'r is open and has another number of branches in the target',
    ],
    [
      'a router whose default has moved',
      started(router('r', [work('a')])),
      [router('r', [work('a')], [work('b')])],
      'r-default is open and is at another place in the target',
    ],
    [
      'a deferred step',
      started(work('a', { delay: { duration: 60_000 } })),
      [work('b')],
      'a is open and is not in the target',
    ],
    ['a sleep', started(sleep('s', 5_000)), [noop('s')], 's is open and has the handler noop'],
    [
      'a loop that has become a for_each',
      started(loop('l', 'true', 3, [work('a')])),
      [forEach('l', 'items', [work('a')])],
      'l is open and is a for_each in the target',
    ],
  ];
  for (const [title, player, target, message] of CASES) {
    test(title, () =>
      assert.match(clash(player, ...target) ?? '', new RegExp(`^block ${message}`)),
    );
  }

  test('a block that is queued but not begun', () => {
    const player = new Player([noop('a'), noop('b')], { env: { stepBudget: 1 } });
    player.sendOnce({ kind: 'wake' });
    assert.equal(clash(player, noop('a')), 'block b is open and is not in the target');
  });

  test('what a retry goes on from: the counter of a loop and the choice of a router', () => {
    const looped = started(loop('l', 'true', 3, [work('a')]));
    looped.after('ok a', 'fail a');
    looped.sendOnce({ kind: 'retry' });
    assert.match(clash(looped, noop('x')) ?? '', /^block l is open and is not in the target/);

    const routed = started(parallel('p', [router('r', [work('a')])]));
    routed.fail('r-default');
    routed.sendOnce({ kind: 'retry' });
    const target = router('r', [work('a')], [work('b')]);
    assert.match(clash(routed, parallel('p', [target])) ?? '', /^block r is open and has another/);
  });

  test('what a retry goes on from, under other blocks than before', () => {
    const nested = (id: string) =>
      parallel('p', [tryCatch(id, [loop('l', 'true', 3, [work('a')])], [failing('c')])]);
    const player = started(nested('t'));
    player.after('ok a', 'fail a');
    player.sendOnce({ kind: 'retry' });
    assert.equal(clash(player, nested('t')), undefined);
    assert.match(clash(player, nested('u')) ?? '', /^block l is open and is at another place/);
  });

  test('everything else may differ', () => {
    const player = started(noop('x'), tryCatch('t', [work('a', { timeout: 9_000 })], [work('c')]));
    const target = [noop('n'), tryCatch('t', [noop('m'), work('a', { retry: undefined })], [])];
    assert.equal(clash(player, ...target), undefined);
  });

  test('an instance that has not begun fits anywhere', () => {
    assert.equal(clash(new Player([work('a')]), work('b')), undefined);
  });
});

describe('the execution in the new plan', () => {
  test('open and finished blocks keep what they are at', () => {
    const player = started(noop('a'), parallel('p', [noop('b'), work('c')], [work('d')]));
    player.complete('d');
    const { snapshot, plan } = player;
    const before = snapshot.execution;
    const to = planOf([
      noop('new'),
      noop('a'),
      parallel('p', [noop('b'), work('c'), noop('e')], [work('d')]),
    ]);
    const after = remapExecution(before, plan, to);
    for (const id of ['a', 'p', 'b', 'c', 'd']) {
      const [from, there] = [plan.indexOf.get(id)!, to.indexOf.get(id)!];
      assert.deepEqual([after.o[there], after.d[there]], [before.o[from], before.d[from]], id);
    }
  });

  test('the old execution is left alone', () => {
    const player = started(loop('l', 'true', 3, [work('a')]));
    const before = structuredClone(player.snapshot.execution);
    const { execution } = moved(player, loop('l', 'true', 3, [work('a')]));
    Object.assign(execution.o[0]!, { i: 7 });
    assert.deepEqual(player.snapshot.execution, before);
  });

  test('blocks that the target puts before an open one are skipped, at every level', () => {
    const player = started(noop('a'), tryCatch('t', [work('b')], []));
    const { execution, done } = moved(
      player,
      noop('new1'),
      noop('a'),
      tryCatch('t', [noop('new2'), work('b')], [noop('c')]),
      noop('new3'),
    );
    assert.deepEqual(done, ['new1', 'a', 'new2']);
    assert.equal(execution.d[0]?.[0], SKIPPED);
    assert.equal(execution.d[3]?.[0], SKIPPED);
  });

  test('finished blocks that the target has not are forgotten', () => {
    assert.deepEqual(moved(started(noop('a'), work('b')), work('b')).done, []);
  });

  test('a finished block stays finished where it is moved to, unless into or out of a loop', () => {
    const player = started(noop('a'), noop('b'), work('c'));
    const target = [work('c'), parallel('p', [noop('a')]), loop('l', 'true', 2, [noop('b')])];
    assert.deepEqual(moved(player, ...target).done, ['a']);

    const inLoop = started(loop('l', 'true', 2, [noop('a'), work('b')]), noop('c'));
    assert.deepEqual(moved(inLoop, loop('l', 'true', 2, [work('b')]), noop('a')).done, []);
  });

  test('what is queued, counted and kept goes over too', () => {
    const player = started(noop('x'), loop('l', 'true', 3, [noop('a'), work('b')]), noop('y'));
    player.after('ok b', 'fail b');
    player.sendOnce({ kind: 'retry' });
    const { execution, queued } = moved(
      player,
      loop('l', 'true', 9, [noop('a'), work('b'), noop('c')]),
    );
    assert.deepEqual(queued, ['l']);
    assert.deepEqual(execution.c, { 1: 2, 2: 1 });
    assert.deepEqual(execution.k, { 0: { b: 0, i: 1 } });
  });

  test('where a caller resumed from goes over too', () => {
    const player = started(failing('a'), work('b'));
    player.snapshot.execution = { t: 1, o: {}, d: { 0: [1, 0, 0] }, q: [1], s: 1 };
    assert.equal(moved(player, noop('new'), failing('a'), work('b')).execution.s, 2);
    assert.equal(moved(player, failing('a')).execution.s, undefined);
  });

  test('a kept record of another kind is dropped', () => {
    const player = started(tryCatch('t', [loop('l', 'true', 3, [failing('a')])], [work('c')]));
    const { execution, to } = moved(player, tryCatch('t', [noop('l')], [work('c')]));
    assert.equal(execution.d[to.indexOf.get('l')!]?.length, 3);
    const same = moved(player, tryCatch('t', [loop('l', 'true', 1, [failing('a')])], [work('c')]));
    assert.equal(same.execution.d[same.to.indexOf.get('l')!]?.length, 4);
  });
});

describe('how far the list of the root has come', () => {
  const passed = ({ snapshot, plan }: Player) => passedRoots(snapshot.execution, plan);

  test('up to the present block, done or not', () => {
    assert.equal(passed(new Player([noop('a'), noop('b')])), 0);
    assert.equal(passed(started(noop('a'), work('b'), noop('c'))), 2);
    assert.equal(passed(started(noop('a'), noop('b'))), 2);
  });

  test('a block that is queued is passed', () => {
    const player = new Player([noop('a'), noop('b'), noop('c')], { env: { stepBudget: 1 } });
    player.sendOnce({ kind: 'wake' });
    assert.equal(passed(player), 2);
  });

  test('after a failure nothing is passed, but what a caller resumed behind', () => {
    const player = started(noop('a'), failing('b'), noop('c'));
    assert.equal(passed(player), 0);
    player.snapshot.execution.s = 1;
    assert.equal(passed(player), 2);
  });
});

describe('a list of the root that has ended', () => {
  const longer = planOf([noop('a'), noop('b'), noop('c')]);
  const ended: Execution = { t: 1, o: {}, d: { 0: [COMPLETED, 0, 0] }, e: COMPLETED };

  test('goes on with what the plan has got behind its end', () => {
    const { e, q } = goOnBehindEnd(ended, longer);
    assert.deepEqual({ e, q }, { e: undefined, q: [1] });
  });

  test('stays ended when there is nothing, or when it failed', () => {
    assert.equal(goOnBehindEnd(ended, planOf([noop('a')])), ended);
    const { execution } = started(failing('a')).snapshot;
    assert.equal(goOnBehindEnd(execution, longer), execution);
  });

  test('skips what the plan has got before its end', () => {
    const last: Execution = { ...ended, d: { 1: [COMPLETED, 0, 0] } };
    const { d, q } = goOnBehindEnd(last, longer);
    assert.deepEqual([d[0]?.[0], q], [SKIPPED, [2]]);
  });
});
