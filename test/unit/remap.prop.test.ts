/**
 * Laws of the change of plan over random trees and random points of their execution: to go over to
 * the same plan changes nothing, and an instance that gets further blocks on its way comes to the
 * same as one that had them from the start.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Block } from '../../schema/blocks.js';
import type { EngineEvent } from '../../src/core/evaluator.js';
import type { JsonObject } from '../../src/core/json.js';
import { goOnBehindEnd, remapExecution } from '../../src/core/remap.js';
import { isEnded } from '../../src/core/states.js';
import { contexts, trees } from '../helpers/block-trees.js';
import { byDepth } from '../helpers/depth.js';
import { clone, noop, Player, parallel, tryCatch, work } from '../helpers/player.js';
import { check } from '../helpers/properties.js';

const RUNS = byDepth(100, 300);
/** Lives that are still at work when they are looked at: others are drawn again. */
const COMPARED = byDepth(30, 75);

// ---------------------------------------------------------------- random lives

type Move =
  | { readonly kind: 'outcome'; readonly pick: number; readonly ok: boolean }
  | { readonly kind: 'tick' }
  | { readonly kind: 'recover' }
  | { readonly kind: 'event'; readonly event: EngineEvent };

const event = (kind: 'wake' | 'pause' | 'resume' | 'park'): Move => ({
  kind: 'event',
  event: { kind },
});

const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('outcome' as const),
      pick: fc.nat(20),
      ok: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, fc.boolean()),
    }),
  },
  { weight: 4, arbitrary: fc.constant<Move>(event('wake')) },
  { weight: 2, arbitrary: fc.constant<Move>({ kind: 'tick' }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom<Move>(
      { kind: 'recover' },
      event('pause'),
      event('resume'),
      event('park'),
      { kind: 'event', event: { kind: 'reschedule', at: null } },
    ),
  },
);

/** One event each, so that a life can be looked at between the parts of a long turn. */
function make(player: Player, next: Move): void {
  if (next.kind === 'event') player.sendOnce(next.event);
  else if (next.kind === 'recover') player.recover();
  else if (next.kind === 'tick') {
    const wakeAt = player.last?.wakeAt ?? null;
    if (wakeAt !== null) player.tick();
  } else {
    const { atWork } = player;
    const blockId = atWork[next.pick % atWork.length];
    if (blockId === undefined) return;
    if (next.ok) player.complete(blockId, { go: true });
    else player.fail(blockId);
  }
}

/** Lets everything that is open end well. */
function finish(player: Player): void {
  for (let i = 0; i < 10_000 && !isEnded(player.snapshot.state); i += 1) {
    const [blockId] = player.atWork;
    if (player.state === 'paused') player.send({ kind: 'resume' });
    else if (blockId !== undefined) player.complete(blockId);
    else if (player.snapshot.execution.p === 1) player.send({ kind: 'reschedule', at: null });
    else if (player.last?.more === true) player.send({ kind: 'wake' });
    else player.tick();
  }
}

const lives = fc.record({
  tree: trees({}),
  data: contexts,
  before: fc.array(move, { maxLength: 15 }),
  after: fc.array(move, { maxLength: 15 }),
  stepBudget: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.constant(500)),
});

interface Beginning {
  readonly data: JsonObject;
  readonly stepBudget: number;
}

/** The first turn of an instance of these blocks. */
function begin(blocks: Block[], { data, stepBudget }: Beginning): Player {
  const player = new Player(blocks, { data: structuredClone(data), env: { stepBudget } });
  player.sendOnce({ kind: 'wake' });
  return player;
}

// ---------------------------------------------------------------- the change of plan

/** The same instance in the plan of other blocks, as its actor makes it. */
function goOver(player: Player, blocks: Block[]): Player {
  const next = new Player(blocks, { env: player.env });
  const { plan } = player;
  next.snapshot = clone(player.snapshot);
  const execution = remapExecution(next.snapshot.execution, plan, next.plan);
  next.snapshot.execution = isEnded(next.snapshot.state)
    ? execution
    : goOnBehindEnd(execution, next.plan);
  for (const { blockId, output } of player.rows) {
    if (next.plan.nodes[next.plan.indexOf.get(blockId)!]!.isRead) {
      next.snapshot.outputs.set(blockId, output);
    }
  }
  next.now = player.now;
  next.last = player.last;
  next.rows = [...player.rows];
  for (const dispatch of player.open.values()) {
    const node = next.plan.indexOf.get(dispatch.blockId)!;
    const { iteration, attempt } = dispatch;
    next.open.set(`${node}/${iteration}/${attempt}`, { ...dispatch, node });
  }
  return next;
}

const FURTHER: Block[] = [
  work('further1'),
  { type: 'step', id: 'further2', handler: 'transform', params: { all: '{{ outputs.b1 }}' } },
  parallel('further3', [noop('further4')], [tryCatch('further5', [work('further6')], [])]),
];

test('to go over to the same plan changes nothing', (t) => {
  check(t, RUNS, lives, (life) => {
    const player = begin(life.tree.blocks, life);
    for (const next of life.before) {
      make(player, next);
      const { snapshot, plan } = player;
      assert.deepEqual(remapExecution(snapshot.execution, plan, plan), snapshot.execution);
      assert.equal(goOnBehindEnd(snapshot.execution, plan), snapshot.execution);
    }
  });
});

test('an instance that gets further blocks comes to the same as one that had them', (t) => {
  check(t, COMPARED, lives, (life) => {
    const whole = [...life.tree.blocks, ...FURTHER];
    const first = begin(life.tree.blocks, life);
    const reference = begin(whole, life);
    for (const next of life.before) {
      // An ended instance has no use for further blocks, see below.
      fc.pre(!isEnded(first.snapshot.state));
      make(first, next);
      make(reference, next);
    }
    fc.pre(!isEnded(first.snapshot.state));
    const extended = goOver(first, whole);
    for (const next of life.after) {
      make(extended, next);
      make(reference, next);
    }
    finish(extended);
    finish(reference);
    assert.equal(extended.state, reference.state);
    assert.deepEqual(extended.rows, reference.rows);
    assert.deepEqual(extended.tree, reference.tree);
  });
});

test('further blocks change nothing of an instance that has ended, until it is retried', (t) => {
  check(t, RUNS, lives, (life) => {
    const player = begin(life.tree.blocks, life);
    for (const next of life.before) make(player, next);
    finish(player);
    const extended = goOver(player, [...life.tree.blocks, ...FURTHER]);
    extended.after('wake').shows({ state: player.state });
    assert.deepEqual(extended.rows, player.rows);
    if (player.state !== 'failed') return;
    extended.after('retry', 'wake');
    finish(extended);
    assert.ok(extended.state === 'failed' || extended.done.includes('further6'));
  });
});
