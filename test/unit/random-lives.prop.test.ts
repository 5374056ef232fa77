/**
 * Laws of what becomes of instances at random points of random lives: of a change of plan, of going back, of being
 * carried to another server, and of replays of what was recorded in the real evaluator.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readTree, writeTree } from '../../actors/continuity/core/execution-tree.js';
import { replayToPosition } from '../../actors/release/core/position.js';
import type { RecordedLife } from '../../actors/release/core/recording.js';
import { replay } from '../../actors/release/core/replay.js';
import type { Block } from '../../schema/blocks.js';
import type { TreeEntry } from '../../schema/capsule.js';
import { isEnded } from '../../schema/states.js';
import { createValidators } from '../../schema/validators.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { advance } from '../../src/core/evaluator.js';
import type { Dispatch, EngineEvent } from '../../src/core/progress.js';
import { continueAfterEnd, remapExecution } from '../../src/core/remap.js';
import { blocksFrom } from '../../src/core/runs-again.js';
import { canonicalJson } from '../../src/core/sealing/canonical-json.js';
import { contexts, type Tree, time, trees, values } from '../helpers/block-trees.js';
import { sealTask } from '../helpers/capsule-tasks.js';
import { byDepth } from '../helpers/depth.js';
import { clone, noop, Player, parallel, planOf, play, tryCatch, work } from '../helpers/player.js';
import { check, isWholeRun } from '../helpers/properties.js';
import { type RecorderOptions, record, recordLife } from '../helpers/recorder.js';

const RUNS = byDepth(100, 300);
/** Lives that are still at work when they are looked at: others are drawn again. */
const COMPARED = byDepth(30, 75);

// ---------------------------------------------------------------- random lives

type Move =
  | { readonly kind: 'outcome'; readonly pick: number; readonly ok: boolean }
  | { readonly kind: 'tick' }
  | { readonly kind: 'recover' }
  | { readonly kind: 'event'; readonly event: EngineEvent };

const event = (event: EngineEvent): Move => ({ kind: 'event', event });

const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('outcome' as const),
      pick: fc.nat(20),
      ok: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, fc.boolean()),
    }),
  },
  { weight: 4, arbitrary: fc.constant(event({ kind: 'wake' })) },
  { weight: 2, arbitrary: fc.constant<Move>({ kind: 'tick' }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom<Move>(
      { kind: 'recover' },
      ...(['pause', 'resume', 'park'] as const).map((kind) => event({ kind })),
      event({ kind: 'reschedule', at: null }),
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

interface Life {
  readonly tree: Tree;
  readonly data: JsonObject;
  readonly before: readonly Move[];
  readonly stepBudget: number;
}

/** The first turn of an instance of these blocks. */
function begin(blocks: Block[], { data, stepBudget }: Pick<Life, 'data' | 'stepBudget'>): Player {
  const player = new Player(blocks, { data: structuredClone(data), env: { stepBudget } });
  player.sendOnce({ kind: 'wake' });
  return player;
}

// ---------------------------------------------------------------- the change of plan

/** The same instance in the plan of other blocks, as its actor makes it. */
function switchPlan(player: Player, blocks: Block[]): Player {
  const next = new Player(blocks, { env: player.env });
  const { plan } = player;
  next.snapshot = clone(player.snapshot);
  const execution = remapExecution(next.snapshot.execution, plan, next.plan);
  next.snapshot.execution = isEnded(next.snapshot.state)
    ? execution
    : continueAfterEnd(execution, next.plan);
  for (const { blockId, iteration, output } of player.rows) {
    if (next.plan.nodes[next.plan.indexOf.get(blockId)!]!.isRead) {
      next.snapshot.outputs.set(blockId, { iteration, output });
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
      assert.equal(continueAfterEnd(snapshot.execution, plan), snapshot.execution);
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
    const extended = switchPlan(first, whole);
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
    const extended = switchPlan(player, [...life.tree.blocks, ...FURTHER]);
    extended.after('wake').shows({ state: player.state });
    assert.deepEqual(extended.rows, player.rows);
    if (player.state !== 'failed') return;
    extended.after('retry', 'wake');
    finish(extended);
    assert.ok(extended.state === 'failed' || extended.done.includes('further6'));
  });
});

// ---------------------------------------------------------------- going back

test('from any point an instance goes back to any root, runs on and ends', (t) => {
  check(t, 300, fc.tuple(lives, fc.nat(9)), ([{ tree, data, before: moves }, from]) => {
    const player = play(tree.blocks, { data: structuredClone(data) });
    for (const next of moves) if (next.kind === 'outcome') make(player, next);
    const { plan, snapshot, now } = player;
    const root = plan.roots[from % plan.roots.length]!;
    const forgotten = new Set(blocksFrom(plan, root));
    const kept = player.rows.filter(({ blockId }) => !forgotten.has(blockId));
    const env = { unpoliciedRetry: 'redispatch', stepBudget: 500, outputBytesBudget: 1e6 } as const;
    const event = { kind: 'rewind', node: root } as const;
    player.last = advance(plan, snapshot, event, { now, random: () => 0.5, ...env });
    // As an actor does.
    player.rows = [...kept];
    player.open.clear();
    const { t: _t, s: _s, v: _v, c = {}, d, ...rest } = snapshot.execution;
    assert.deepEqual(rest, { q: [root], o: {} });
    assert.ok(Object.keys({ ...c, ...d }).every((index) => Number(index) < root));
    player.send({ kind: 'wake' });
    finish(player);
    assert.ok(isEnded(snapshot.state));
    assert.deepEqual(player.rows.slice(0, kept.length), kept);
    const before = new Set(plan.nodes.slice(0, root).map(({ id }) => id));
    assert.ok(player.rows.slice(kept.length).every(({ blockId }) => !before.has(blockId)));
  });
});

// ---------------------------------------------------------------- the way to another server

const { checkPayload } = createValidators();

/** Somewhere on its way, and paused there unless it has ended. */
function livedOf(life: Life): Player {
  const player = begin(life.tree.blocks, life);
  for (const next of life.before) {
    const { wakeAt = null, more } = player.last ?? {};
    if (player.atWork.length > 0) make(player, next.kind === 'outcome' ? next : WELL);
    else if (more === true) player.sendOnce({ kind: 'wake' });
    else if (wakeAt !== null) player.tick();
  }
  if (!isEnded(player.snapshot.state)) player.sendOnce({ kind: 'pause' });
  return player;
}

const WELL: Move = { kind: 'outcome', pick: 0, ok: true };

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
  const written = writeTree({ execution, items: new Map(snapshots), blocks: [] }, player.plan);
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

test('an instance at rest is carried whole, and comes to the same as if it had stayed', (t) => {
  check(t, COMPARED, lives, (life) => {
    const stayed = livedOf(life);
    while (stayed.state === 'paused' && stayed.atWork.length > 0) make(stayed, WELL);
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

const tryOf = ({ blockId, iteration, attempt }: Dispatch): string =>
  `${blockId} ${iteration} ${attempt}`;

test('a tree that does not go with the plan, or is malformed, is refused with its place', () => {
  const { plan, snapshot } = new Player([noop('a'), noop('b')]).start();
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

// ---------------------------------------------------------------- replays

interface Recording {
  readonly tree: Tree;
  readonly data: JsonObject;
  readonly merges: { readonly after: number; readonly values: JsonObject }[];
  readonly unpoliciedRetry: 'redispatch' | 'fail';
  /** After which an open one is looked at. */
  readonly turns: number;
}

const recordings: fc.Arbitrary<Recording> = fc
  .record({
    tree: trees({}),
    data: contexts,
    merges: fc.array(fc.record({ after: time, values }), { maxLength: 3 }),
    unpoliciedRetry: fc.constantFrom('redispatch', 'fail'),
    turns: fc.integer({ min: 0, max: 12 }),
  })
  .map((life) => {
    life.merges.sort((a, b) => a.after - b.after);
    // Through JSON, as all of it comes: records of fast-check may have no prototype.
    return JSON.parse(JSON.stringify(life)) as Recording;
  });

/** Tries from this number on succeed, so that every life that is recorded to its end has one. */
const TRIES_MAX = 5;

const answerOf =
  ({ tree }: Recording, triesMax: number): NonNullable<RecorderOptions['answer']> =>
  ({ blockId, iteration, attempt }) => {
    const answers = tree.answers[blockId] ?? [];
    const passes = iteration.split('.').reduce((sum, counter) => sum + Number(counter), 0);
    const answer = answers[(passes + attempt) % Math.max(1, answers.length)] ?? {};
    return attempt < triesMax ? answer : { ...answer, kind: 'success' };
  };

function ended(recording: Recording) {
  const { tree, turns: _turns, ...options } = recording;
  return record(tree.blocks, { ...options, answer: answerOf(recording, TRIES_MAX) });
}

function open(recording: Recording): RecordedLife | undefined {
  const { tree, ...options } = recording;
  return recordLife(tree.blocks, { ...options, answer: answerOf(recording, Infinity) });
}

const ADDED: fc.Arbitrary<Block> = fc
  .constantFrom('noop', 'work', 'http_request', 'sleep')
  .map((handler) => ({ type: 'step', id: 'added', handler }));

test('a run replays as a match with the definition that it had, and is left as it is', (t) => {
  check(t, byDepth(150, 600), recordings, (recording) => {
    const { blocks } = recording.tree;
    const run = ended(recording);
    const before = JSON.stringify(run);
    assert.deepEqual(replay(planOf(blocks), planOf(blocks), run, recording), { kind: 'match' });
    assert.equal(JSON.stringify(run), before);
  });
});

test('a step that nobody recorded is never proven right', (t) => {
  const cases = fc.tuple(recordings, ADDED, fc.boolean());
  check(t, byDepth(100, 300), cases, ([recording, step, isLast]) => {
    const { blocks } = recording.tree;
    const added: Block = { ...step, timeout: 5 };
    const run = ended(recording);
    const changed = isLast ? [...blocks, added] : [added, ...blocks];
    const verdict = replay(planOf(changed), planOf(blocks), run, recording);
    // The steps before it may fail in the replay as they did, so that it is not reached.
    if (isLast && run.state === 'failed') return;
    assert.ok(verdict.kind === 'divergence', verdict.kind);
    assert.deepEqual(verdict.divergence.blocks_added, ['added']);
  });
});

function judge(life: RecordedLife, recording: Recording, target: Block[], isSame: boolean) {
  const [sourceData, targetData] = [life.data, life.data];
  const plans = { source: planOf(recording.tree.blocks), target: planOf(target), isSame };
  const whole = { life, sourceData, targetData, hasTransforms: false, receipts: [] };
  return replayToPosition({ ...plans, ...whole }, recording);
}

test('with the definition that it has, an instance replays at any position', (t) => {
  let replayed = 0;
  check(t, byDepth(200, 600), recordings, (recording) => {
    const life = open(recording);
    if (life === undefined) return;
    replayed += life.outputs.length > 0 ? 1 : 0;
    // Also where it is not known that nothing differs, and the place has to be reached.
    for (const isSame of [true, false]) {
      assert.deepEqual(judge(life, recording, recording.tree.blocks, isSame), { passed: true });
    }
  });
  if (isWholeRun)
    assert.ok(replayed > byDepth(20, 100), `only ${replayed} lives had come to anything`);
});

test('a step that nobody recorded is never passed by', (t) => {
  check(t, byDepth(100, 300), fc.tuple(recordings, ADDED), ([recording, added]) => {
    const life = open(recording);
    if (life === undefined || life.outputs.length === 0) return;
    assert.equal(judge(life, recording, [added, ...recording.tree.blocks], false).passed, false);
  });
});
