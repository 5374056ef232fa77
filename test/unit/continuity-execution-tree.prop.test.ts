/**
 * Laws of what a capsule carries, over random trees and random points of their execution: an instance
 * that goes on from it comes to the same as one that stayed, and does nothing that is done again.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Block } from '../../schema/blocks.js';
import type { TreeEntry } from '../../schema/capsule.js';
import { createValidators } from '../../schema/validators.js';
import { canonicalJson } from '../../src/core/continuity/canonical-json.js';
import { readTree, writeTree } from '../../src/core/continuity/execution-tree.js';
import type { Dispatch } from '../../src/core/evaluator.js';
import type { JsonObject, JsonValue } from '../../src/core/json.js';
import { isEnded } from '../../src/core/states.js';
import { contexts, trees } from '../helpers/block-trees.js';
import { sealTask } from '../helpers/capsule-tasks.js';
import { byDepth } from '../helpers/depth.js';
import { clone, noop, Player } from '../helpers/player.js';
import { check } from '../helpers/properties.js';

const { checkPayload } = createValidators();

/** Lives that are under way when they are looked at: others are drawn again. */
const COMPARED = byDepth(30, 75);

const lives = fc.record({
  tree: trees({}),
  data: contexts,
  /** Which open try ends next, and whether well. */
  ends: fc.array(fc.tuple(fc.nat(20), fc.integer({ min: 0, max: 4 })), { maxLength: 15 }),
  stepBudget: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.constant(500)),
});

interface Life {
  readonly tree: { readonly blocks: Block[] };
  readonly data: JsonObject;
  readonly ends: readonly (readonly [number, number])[];
  readonly stepBudget: number;
}

/** Somewhere on its way, and paused there unless it has ended. */
function livedOf({ tree, data, ends, stepBudget }: Life): Player {
  const player = new Player(tree.blocks, { data: structuredClone(data), env: { stepBudget } });
  player.sendOnce({ kind: 'wake' });
  for (const [pick, luck] of ends) {
    const { atWork } = player;
    const blockId = atWork[pick % Math.max(1, atWork.length)];
    const { wakeAt = null, more } = player.last ?? {};
    if (blockId !== undefined) {
      if (luck > 0) player.complete(blockId, { go: true });
      else player.fail(blockId);
    } else if (more === true) player.sendOnce({ kind: 'wake' });
    else if (wakeAt !== null) player.tick();
  }
  if (!isEnded(player.snapshot.state)) player.sendOnce({ kind: 'pause' });
  return player;
}

/** As what was unsealed is checked. @throws AssertionError with the message of the refusal */
function checked(execution_tree: JsonObject[]): TreeEntry[] {
  const { frame } = sealTask([]);
  const payload = checkPayload({ ...frame, execution_tree });
  assert.ok(payload.ok, payload.ok ? '' : payload.message);
  return payload.value.execution_tree ?? [];
}

/** The same instance where the capsule was brought, as its owner. */
function carry(player: Player, blocks: Block[]): Player {
  const next = new Player(blocks, { env: player.env });
  const { execution, snapshots } = player.snapshot;
  const written = writeTree({ execution, items: snapshots, blocks: [] }, player.plan);
  const read = readTree(checked(JSON.parse(canonicalJson(written)) as JsonObject[]), next.plan);
  assert.ok(read.ok, read.ok ? '' : read.message);
  const items = [...read.value.items] as [string, JsonValue[]][];
  next.snapshot = {
    ...clone(player.snapshot),
    state: 'paused',
    nextFireAt: null,
    execution: read.value.execution,
    snapshots: new Map(items),
  };
  next.now = player.now;
  next.rows = [...player.rows];
  next.send({ kind: 'wake', recovered: true });
  return next;
}

/** Lets everything that is open end well. */
function finish(player: Player): void {
  for (let i = 0; i < 10_000 && !isEnded(player.snapshot.state); i += 1) {
    const [blockId] = player.atWork;
    if (player.state === 'paused') {
      player.after('resume', 'wake');
    } else if (blockId !== undefined) player.complete(blockId);
    else if (player.last?.more === true) player.send({ kind: 'wake' });
    else player.tick();
  }
}

test('an instance at rest is carried whole, and comes to the same as if it had stayed', (t) => {
  check(t, COMPARED, lives, (life) => {
    const stayed = livedOf(life);
    while (stayed.state === 'paused' && stayed.atWork.length > 0) {
      stayed.complete(stayed.atWork[0] as string, { go: true });
    }
    fc.pre(stayed.state === 'paused');
    const carried = carry(stayed, life.tree.blocks);
    stayed.send({ kind: 'wake', recovered: true });
    assert.deepEqual(carried.snapshot, stayed.snapshot);
    finish(stayed);
    finish(carried);
    assert.deepEqual(carried.rows, stayed.rows);
    assert.deepEqual(carried.tree, stayed.tree);
    assert.equal(carried.state, stayed.state);
  });
});

test('what was at work is begun again with the same try, and what is done stays', (t) => {
  check(t, COMPARED, lives, (life) => {
    const stayed = livedOf(life);
    fc.pre(stayed.state === 'paused');
    const atWork = [...stayed.open.values()];
    const rows = [...stayed.rows];
    const carried = carry(stayed, life.tree.blocks);
    carried.after('resume', 'wake');
    const again = carried.dispatched.map(tryOf);
    for (const one of atWork) {
      assert.ok(again.includes(tryOf(one)) || isOver(carried, one), tryOf(one));
    }
    finish(carried);
    assert.ok(isEnded(carried.snapshot.state));
    assert.deepEqual(carried.rows.slice(0, rows.length), rows);
    // Counts only with something at work.
    fc.pre(atWork.length > 0);
  });
});

/** The instance has ended, or went on without the try: such as past a race that another branch won. */
function isOver({ snapshot, plan, open }: Player, { blockId, iteration }: Dispatch): boolean {
  const now = [...open.values()].find((other) => other.blockId === blockId);
  const isOpen = snapshot.execution.o[plan.indexOf.get(blockId) ?? -1] !== undefined;
  return isEnded(snapshot.state) || !isOpen || (now !== undefined && now.iteration !== iteration);
}

function tryOf({ blockId, iteration, attempt }: Dispatch): string {
  return `${blockId} ${iteration} ${attempt}`;
}

test('a tree that does not go with the plan, or is malformed, is refused with its place', () => {
  const player = new Player([noop('a'), noop('b')]).start();
  const { plan, snapshot } = player;
  const good = writeTree({ execution: snapshot.execution, items: new Map(), blocks: [] }, plan);
  assert.ok(readTree(good, plan).ok);
  const cases: [JsonObject, RegExp][] = [
    [{ block_id: 'c', done: [0, 0, 0] }, /execution_tree\[0\]\.block_id must be a block/],
    [{ block_id: 'a', done: [9, 0, 0] }, /done/],
    [{ block_id: 'a', done: [0, 'x', 0] }, /done/],
    [{ block_id: 'a', open: { b: 0, p: 'task', a: 0 } }, /open must be the record of an open step/],
    [{ block_id: 'a', open: { b: 0, p: 'ready', a: {} } }, /open/],
    [{ block_id: 'a', open: { p: 'ready' } }, /open/],
    [{ block_id: 'a', kept: { b: [] } }, /kept/],
    [{ block_id: 'a', rows: -1 }, /rows/],
    [{ execution: { t: 0, e: 4 } }, /execution\.e/],
    [{ execution: { t: 0 }, queue: ['c'] }, /queue\[0\]/],
    [{ execution: { t: 0 }, resumed_from: 7 }, /resumed_from/],
    [{ items_key: ':a', items: 'none' }, /items/],
  ];
  for (const [entry, text] of cases) {
    assert.throws(() => {
      const read = readTree(checked([entry]), plan);
      assert.ok(read.ok, read.ok ? '' : read.message);
    }, text);
  }
});
