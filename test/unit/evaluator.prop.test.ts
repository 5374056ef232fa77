/**
 * Laws of the evaluator over random trees, outcomes and signals. `Player` checks after every event
 * that a snapshot goes through JSON unharmed, that the same event leads to the same, that terminal
 * states are not left and that no row is stored twice.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Block } from '../../schema/blocks.js';
import type { EngineEvent } from '../../src/core/evaluator.js';
import { isEnded } from '../../src/core/states.js';
import { Player, sleep } from '../helpers/player.js';

/** `PROPERTY_SEED` repeats a run whose seed was printed; `PROPERTY_RUNS` makes it longer. */
const { PROPERTY_RUNS, PROPERTY_SEED } = process.env;
const RUN = {
  numRuns: Number(PROPERTY_RUNS ?? 400),
  ...(PROPERTY_SEED === undefined ? {} : { seed: Number(PROPERTY_SEED) }),
};

// ---------------------------------------------------------------- random trees

/** A block without its id: ids are given when the tree is complete. */
type Shape = (id: () => string) => Block;

interface Kinds {
  readonly leaf: fc.Arbitrary<Shape>;
  readonly withRace: boolean;
}

function trees({ leaf, withRace }: Kinds): fc.Arbitrary<Block[]> {
  const { list } = fc.letrec<{ block: Shape; list: Shape[]; some: Shape[] }>((tie) => ({
    block: fc.oneof(
      { maxDepth: 3, depthIdentifier: 'tree' },
      leaf,
      branches(tie('list'), 'parallel'),
      withRace ? branches(tie('list'), 'race') : leaf,
      fc.tuple(tie('list'), tie('list'), fc.constantFrom('true', 'data.no')).map(
        ([a, b, condition]): Shape =>
          (id) => ({
            type: 'router',
            id: id(),
            routes: [{ condition, blocks: a.map((shape) => shape(id)) }],
            default: b.map((shape) => shape(id)),
          }),
      ),
      fc.tuple(tie('some'), tie('list'), tie('list')).map(
        ([a, b, c]): Shape =>
          (id) => ({
            type: 'try_catch',
            id: id(),
            try_block: a.map((shape) => shape(id)),
            catch_block: b.map((shape) => shape(id)),
            finally_block: c.map((shape) => shape(id)),
          }),
      ),
      fc.tuple(tie('some'), fc.integer({ min: 1, max: 3 })).map(
        ([body, max]): Shape =>
          (id) => ({
            type: 'loop',
            id: id(),
            condition: 'true',
            max_iterations: max,
            body: body.map((shape) => shape(id)),
          }),
      ),
      tie('some').map(
        (body): Shape =>
          (id) => ({
            type: 'for_each',
            id: id(),
            collection: 'items',
            body: body.map((shape) => shape(id)),
          }),
      ),
    ),
    list: fc.array(tie('block'), { maxLength: 3, depthIdentifier: 'tree' }),
    some: fc.array(tie('block'), { minLength: 1, maxLength: 3, depthIdentifier: 'tree' }),
  }));
  return fc.tuple(leaf, list).map(([first, rest]) => {
    let count = 0;
    const id = () => `b${count++}`;
    return [first, ...rest].map((shape) => shape(id));
  });
}

function branches(list: fc.Arbitrary<Shape[]>, type: 'parallel' | 'race'): fc.Arbitrary<Shape> {
  return fc.array(list, { minLength: 1, maxLength: 3 }).map(
    (lists): Shape =>
      (id) => ({
        type,
        id: id(),
        branches: lists.map((shapes) => shapes.map((shape) => shape(id))),
      }),
  );
}

const step =
  (handler: string, fields: object = {}): Shape =>
  (id) =>
    ({ type: 'step', id: id(), handler, ...fields }) as Block;

const pureLeaf = fc.constantFrom<Shape>(step('noop'), step('noop'), step('fail'));

const anyLeaf = fc.oneof(
  pureLeaf,
  fc.constantFrom<Shape>(
    step('work'),
    step('work', { cancellable: false }),
    step('work', { timeout: 50, retry: { max_attempts: 2, initial_backoff: 20 } }),
    step('http_request', { retry: { max_attempts: 3, initial_backoff: 0 } }),
    step('http_request', { delay: { duration: 30 } }),
    (id) => sleep(id(), 40),
  ),
);

// ---------------------------------------------------------------- random lives

type Move =
  | {
      readonly kind: 'outcome';
      readonly pick: number;
      readonly ok: boolean;
      readonly again: boolean;
    }
  | { readonly kind: 'tick' }
  | { readonly kind: 'recover' }
  | { readonly kind: 'event'; readonly event: EngineEvent };

const outcomes: fc.Arbitrary<Move> = fc.record({
  kind: fc.constant('outcome' as const),
  pick: fc.nat(20),
  ok: fc.boolean(),
  again: fc.boolean(),
});

const soft: fc.Arbitrary<Move> = fc.oneof(
  { weight: 12, arbitrary: outcomes },
  { weight: 4, arbitrary: fc.constant<Move>({ kind: 'tick' }) },
  {
    weight: 3,
    arbitrary: fc.constantFrom<Move>(
      { kind: 'recover' },
      { kind: 'event', event: { kind: 'wake' } },
      { kind: 'event', event: { kind: 'pause' } },
      { kind: 'event', event: { kind: 'resume' } },
      { kind: 'event', event: { kind: 'park' } },
      { kind: 'event', event: { kind: 'retry' } },
      { kind: 'event', event: { kind: 'reschedule', at: null } },
    ),
  },
  { weight: 1, arbitrary: fc.constant<Move>({ kind: 'event', event: { kind: 'cancel' } }) },
);

function play(player: Player, moves: readonly Move[]): void {
  player.start();
  for (const move of moves) make(player, move);
}

function make(player: Player, move: Move): void {
  if (move.kind === 'event') player.send(move.event);
  else if (move.kind === 'recover') player.recover();
  else if (move.kind === 'tick') {
    if (player.last!.wakeAt !== null) player.tick();
  } else {
    const atWork = player.atWork;
    const blockId = atWork[move.pick % atWork.length];
    if (blockId === undefined) return;
    if (move.ok) player.complete(blockId, { by: blockId });
    else player.fail(blockId, move.again);
  }
  if (isEnded(player.snapshot.state)) {
    assert.deepEqual(player.atWork, [], 'work is left when the instance has ended');
    assert.equal(player.last!.wakeAt, null);
    assert.equal(player.last!.more, false);
    assert.deepEqual(player.snapshot.execution.o, {});
  }
}

/** Lets everything that is open end well, and says what the instance came to. */
function finish(player: Player): string {
  for (let i = 0; i < 10_000 && !isEnded(player.snapshot.state); i += 1) {
    const [blockId] = player.atWork;
    if (player.state === 'paused') player.send({ kind: 'resume' });
    else if (blockId !== undefined) player.complete(blockId);
    else if (player.snapshot.execution.p === 1) player.send({ kind: 'reschedule', at: null });
    else player.tick();
  }
  return player.state;
}

const DATA = { items: [1, 2] };
const lives = fc.tuple(trees({ leaf: anyLeaf, withRace: true }), fc.array(soft, { maxLength: 40 }));

test('every instance ends once its work does, whatever has happened before', () => {
  fc.assert(
    fc.property(lives, fc.integer({ min: 1, max: 20 }), ([blocks, moves], stepBudget) => {
      const player = new Player(blocks, { data: DATA, env: { stepBudget } });
      play(player, moves);
      assert.ok(['completed', 'failed', 'cancelled'].includes(finish(player)));
    }),
    RUN,
  );
});

test('a finally list has run when its block is done, also in losers and under cancel', () => {
  fc.assert(
    fc.property(lives, ([blocks, moves]) => {
      const player = new Player(blocks, { data: DATA });
      play(player, moves);
      finish(player);
      const { d } = player.snapshot.execution;
      for (const node of player.plan.nodes) {
        const first = node.type === 'try_catch' ? node.lists[2]![0] : undefined;
        if (first !== undefined && d[node.index] !== undefined) {
          assert.ok(d[first] !== undefined, `the finally list of ${node.id} has not run`);
        }
      }
    }),
    RUN,
  );
});

test('nothing is dispatched in a block that is done, nor while the instance is paused', () => {
  fc.assert(
    fc.property(lives, ([blocks, moves]) => {
      const player = new Player(blocks, { data: DATA });
      player.start();
      for (const move of moves) {
        const before = player.dispatched.length;
        make(player, move);
        const { o } = player.snapshot.execution;
        for (const { node } of player.dispatched.slice(before)) {
          if (player.state === 'paused') assert.fail('dispatched while paused');
          // What was dispatched in this event is open, unless the event went on to cut it off.
          if (o[node] === undefined) continue;
          for (let up = player.plan.nodes[node]!.parent; up >= 0; ) {
            assert.ok(o[up] !== undefined, 'dispatched below a block that is done');
            up = player.plan.nodes[up]!.parent;
          }
        }
      }
    }),
    RUN,
  );
});

test('the work that an actor knows of is exactly the work that is open', () => {
  fc.assert(
    fc.property(lives, ([blocks, moves]) => {
      const player = new Player(blocks, { data: DATA });
      player.start();
      for (const move of moves) {
        make(player, move);
        const open = Object.entries(player.snapshot.execution.o)
          .filter(([, record]) => 'a' in record && (record.p === 'run' || record.p === 'task'))
          .map(([node]) => Number(node));
        const known = new Set([...player.open.values()].map(({ node }) => node));
        for (const node of open) assert.ok(known.has(node), 'an open try was never dispatched');
        assert.equal(known.size, open.length, 'a try was not withdrawn');
      }
    }),
    RUN,
  );
});

test('after a hard stop nothing runs any more', () => {
  fc.assert(
    fc.property(
      lives,
      fc.constantFrom('completed', 'failed', 'cancelled'),
      ([blocks, moves], to) => {
        const player = new Player(blocks, { data: DATA });
        play(player, moves);
        player.send({ kind: 'stop', state: to as 'failed' });
        const { length } = player.rows;
        player.send({ kind: 'wake' });
        player.recover();
        assert.equal(player.rows.length, length);
        assert.deepEqual(player.atWork, []);
        assert.ok(isEnded(player.snapshot.state));
      },
    ),
    RUN,
  );
});

test('the size of a turn does not change what an instance comes to', () => {
  const pure = trees({ leaf: pureLeaf, withRace: true });
  fc.assert(
    fc.property(pure, fc.integer({ min: 1, max: 5 }), (blocks, stepBudget) => {
      const whole = new Player(blocks, { data: DATA }).start();
      const parts = new Player(blocks, { data: DATA, env: { stepBudget } }).start();
      assert.equal(parts.state, whole.state);
      assert.deepEqual(parts.rows, whole.rows);
    }),
    RUN,
  );
});

// ---------------------------------------------------------------- a second reading of the rules

/** What a list of pure blocks comes to, and the real rows of its steps, read off the rules. */
function read(blocks: readonly Block[], rows: string[], path: readonly number[]): boolean {
  return blocks.every((block) => readBlock(block, rows, path));
}

function readBlock(block: Block, rows: string[], path: readonly number[]): boolean {
  switch (block.type) {
    case 'step':
      if (block.handler === 'fail') return false;
      rows.push(`${block.id}@${path.join('.')}`);
      return true;
    case 'parallel':
      return block.branches.map((branch) => read(branch, rows, path)).every((ok) => ok);
    case 'router':
      return read(
        (block.routes![0]!.condition === 'true' ? block.routes![0]!.blocks : block.default) ?? [],
        rows,
        path,
      );
    case 'try_catch': {
      const ok = read(block.try_block, rows, path) || read(block.catch_block, rows, path);
      return read(block.finally_block ?? [], rows, path) && ok;
    }
    case 'loop':
    case 'for_each': {
      const times = block.type === 'loop' ? block.max_iterations! : DATA.items.length;
      for (let i = 0; i < times; i += 1) if (!read(block.body, rows, [...path, i])) return false;
      return true;
    }
    case 'race':
      throw new Error('what a race comes to depends on time');
  }
}

test('pure trees come to what a recursive reading of the rules says', () => {
  fc.assert(
    fc.property(trees({ leaf: pureLeaf, withRace: false }), (blocks) => {
      const player = new Player(blocks, { data: DATA }).start();
      const rows: string[] = [];
      assert.equal(player.state, read(blocks, rows, []) ? 'completed' : 'failed');
      const steps = player.rows.filter(({ blockId, outputRef }) => {
        const node = player.plan.nodes[player.plan.indexOf.get(blockId)!]!;
        return node.type === 'step' && outputRef === null;
      });
      const stored = steps.map(({ blockId, iteration }) => `${blockId}@${iteration}`);
      assert.deepEqual(stored.sort(), rows.sort());
    }),
    RUN,
  );
});
