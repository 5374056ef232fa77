/** Going back to a top-level block: what is forgotten, what stays, and how the instance goes on. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { advance, type Progress } from '../../src/core/evaluator.js';
import type { JsonObject } from '../../src/core/json.js';
import { blocksFrom } from '../../src/core/rewind.js';
import { isEnded } from '../../src/core/states.js';
import { contexts, type Tree, trees } from '../helpers/block-trees.js';
import {
  failing,
  forEach,
  http,
  loop,
  noop,
  Player,
  parallel,
  play,
  sleep,
  tryCatch,
  work,
} from '../helpers/player.js';
import { check } from '../helpers/properties.js';
import { column, lines } from '../helpers/rows.js';

/** Goes back as an actor does: the rows of the forgotten blocks are gone with it. */
function rewind(player: Player, blockId: string): Progress {
  const { plan, snapshot, now } = player;
  const node = plan.indexOf.get(blockId)!;
  const progress = advance(
    plan,
    snapshot,
    { kind: 'rewind', node },
    {
      now,
      random: () => 0.5,
      unpoliciedRetry: 'redispatch',
      stepBudget: 500,
      outputBytesBudget: 1_000_000,
    },
  );
  const forgotten = new Set(blocksFrom(plan, node));
  player.rows = player.rows.filter((row) => !forgotten.has(row.blockId));
  player.open.clear();
  player.last = progress;
  return progress;
}

/** Goes back, and on. */
function resumeFrom(player: Player, blockId: string): Player {
  rewind(player, blockId);
  player.send({ kind: 'wake' });
  return player;
}

const failed = () => play([noop('a'), failing('b'), work('c'), noop('d')]);

describe('an instance that goes back', () => {
  test('is scheduled for now, with everything from the block on forgotten', () => {
    const player = play([noop('a'), parallel('p', [noop('b')], [noop('c')]), noop('d')]);

    assert.equal(player.state, 'completed');
    const progress = rewind(player, 'p');
    player.shows({ state: 'scheduled', nextFireAt: player.now });
    assert.equal(progress.more, true);
    assert.deepEqual(player.tree, {
      a: 'completed',
      p: 'pending',
      b: 'pending',
      c: 'pending',
      d: 'pending',
    });
    assert.deepEqual(player.done, ['a']);
    player.after('wake').shows({ state: 'completed', done: ['a', 'b', 'c', 'd'] });
  });

  test('says so in its audit, with the block', () => {
    const { audit } = rewind(failed(), 'c');
    assert.deepEqual(
      audit.map(({ eventType, blockId, fromState, toState }) =>
        [eventType, blockId, fromState, toState].filter((it) => it !== undefined).join(' '),
      ),
      ['resumed_from c', 'state_transition failed scheduled'],
    );
  });

  test('leaves a failed block before it as it is, and goes on behind it', () => {
    const player = resumeFrom(failed(), 'c');
    assert.deepEqual(player.tree, { a: 'completed', b: 'failed', c: 'waiting', d: 'pending' });
    player.after('ok c').shows({ state: 'completed' });
  });

  test('is retried from there: what was left behind is not started again', () => {
    const player = resumeFrom(failed(), 'c');
    player.after('fail c').shows({ state: 'failed' });
    player.after('retry', 'wake').shows({ atWork: ['c'], tree: { b: 'failed' } });
  });

  test('may go back further later on', () => {
    const player = resumeFrom(resumeFrom(failed(), 'c'), 'a');
    assert.deepEqual(player.tree, { a: 'completed', b: 'failed', c: 'skipped', d: 'skipped' });
  });

  test('skips what it had not come to before the block', () => {
    const player = play([work('a'), noop('b'), noop('c')]);
    player.send({ kind: 'pause' });
    const { withdrawals } = rewind(player, 'c');
    assert.deepEqual(column(withdrawals, 'blockId'), ['a']);
    assert.deepEqual(player.tree, { a: 'cancelled', b: 'skipped', c: 'pending' });
    player.after('wake').shows({ state: 'completed', done: ['c'] });
  });

  test('begins at the block when it had not begun', () => {
    const player = new Player([work('a'), noop('b')]);
    player.sendOnce({ kind: 'cancel' });
    resumeFrom(player, 'b');
    assert.deepEqual([player.state, player.done], ['completed', ['b']]);
    assert.ok(player.snapshot.runtime.started_at);
  });

  test('cuts off all that is open: tasks, handlers and sleeps', () => {
    const player = play([parallel('p', [work('a')], [http('b')], [sleep('c', 900)])]);
    player.send({ kind: 'pause' });
    const { withdrawals, wakeAt } = rewind(player, 'p');
    assert.deepEqual(lines(withdrawals, 'blockId', 'external'), ['a true', 'b false']);
    assert.equal(wakeAt, player.now);
    assert.deepEqual(player.snapshot.execution.o, {});
  });

  test('counts tries, iterations and the rows of loops afresh', () => {
    const body = [work('a', { retry: { max_attempts: 2, initial_backoff: 0 } })];
    const player = play([loop('l', 'true', 5, body)]);
    player.after('ok a', 'again a', 'again a').shows({ state: 'failed' });
    resumeFrom(player, 'l');
    const [dispatch] = [...player.open.values()];
    assert.deepEqual([dispatch?.iteration, dispatch?.attempt], ['0', 0]);
    player.complete('a');
    assert.deepEqual(lines(player.rows, 'blockId', 'attempt'), ['a 0', 'l 1']);
  });

  test('takes the items of a for_each anew, and decides routers and loops anew', () => {
    const player = play([forEach('f', 'items', [work('a')])], { data: { items: [1, 2] } });
    player.fail('a');
    player.snapshot.data = { items: [7] };
    const progress = rewind(player, 'f');
    assert.deepEqual(progress.droppedSnapshots, [':f']);
    player.send({ kind: 'wake' });
    assert.deepEqual([...player.open.values()][0]?.overlay, { item: 7 });
    player.after('ok a').shows({ state: 'completed' });
  });

  test('begins a loop anew that a retry would have gone on with', () => {
    const player = play([noop('x'), loop('l', 'true', 3, [work('a')])]);
    player.after('ok a', 'fail a');
    player.sendOnce({ kind: 'retry' });
    player.sendOnce({ kind: 'pause' });
    resumeFrom(player, 'x');
    assert.equal([...player.open.values()][0]?.iteration, '0');
  });

  test('forgets a cancel that was under way, and a retry that a pause stood for', () => {
    const cleaning = play([tryCatch('t', [work('a')], [], [work('f')]), noop('b')]);
    cleaning.after('cancel', 'pause');
    assert.deepEqual(resumeFrom(cleaning, 'b').state, 'completed');

    const player = failed();
    player.send({ kind: 'pause' });
    resumeFrom(player, 'd');
    assert.deepEqual([player.state, player.tree.b], ['completed', 'failed']);
  });

  test('reads the outputs of earlier blocks, not those that it forgot', () => {
    const reads = (id: string, path: string) =>
      ({ type: 'step', id, handler: 'transform', params: { x: `{{ ${path} }}` } }) as const;
    const player = play([reads('a', 'data.n'), reads('b', 'outputs.a.x'), failing('c')], {
      data: { n: 1 },
    });
    assert.deepEqual([...player.snapshot.outputs.keys()], ['a']);
    resumeFrom(player, 'b');
    assert.deepEqual(player.outputOf('b'), { x: 1 });
    rewind(player, 'a');
    assert.deepEqual([...player.snapshot.outputs.keys()], []);
  });
});

// ---------------------------------------------------------------- random lives

interface Outcome {
  readonly pick: number;
  readonly ok: boolean;
}

const lives = fc.record({
  tree: trees({}),
  data: contexts,
  outcomes: fc.array(fc.record({ pick: fc.nat(9), ok: fc.boolean() }), { maxLength: 20 }),
  from: fc.nat(9),
});

interface Life {
  readonly tree: Tree;
  readonly data: JsonObject;
  readonly outcomes: readonly Outcome[];
}

function live({ tree, data, outcomes }: Life): Player {
  const player = play(tree.blocks, { data: structuredClone(data) });
  for (const { pick, ok } of outcomes) {
    const { atWork } = player;
    const blockId = atWork[pick % atWork.length];
    if (blockId === undefined) break;
    if (ok) player.complete(blockId, { go: true });
    else player.fail(blockId);
  }
  return player;
}

function finish(player: Player): void {
  for (let i = 0; i < 10_000 && !isEnded(player.snapshot.state); i += 1) {
    const [blockId] = player.atWork;
    if (blockId !== undefined) player.complete(blockId);
    else player.tick();
  }
}

test('from any point an instance goes back to any root, runs on and ends', (t) => {
  check(t, 300, lives, (life) => {
    const player = live(life);
    const { plan, snapshot } = player;
    const root = plan.roots[life.from % plan.roots.length]!;
    const before = new Set(plan.nodes.slice(0, root).map(({ id }) => id));
    const kept = player.rows.filter(({ blockId }) => before.has(blockId));
    rewind(player, plan.nodes[root]!.id);
    const { t: _t, s: _s, c = {}, d, ...rest } = snapshot.execution;
    assert.deepEqual(rest, { q: [root], o: {} });
    assert.ok(Object.keys({ ...c, ...d }).every((index) => Number(index) < root));
    player.send({ kind: 'wake' });
    finish(player);
    assert.ok(isEnded(snapshot.state));
    assert.deepEqual(player.rows.slice(0, kept.length), kept);
    assert.ok(player.rows.slice(kept.length).every(({ blockId }) => !before.has(blockId)));
  });
});
