/** What blocks do that hold others, items side by side and children, beyond what the model says. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { readTree, writeTree } from '../../actors/continuity/core/execution-tree.js';
import type { AbSplitBlock, Block } from '../../schema/blocks.js';
import type { ForEachRecord, StepRecord } from '../../schema/execution.js';
import { childInstanceId, routeOf } from '../../src/base/ids.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { variantOf } from '../../src/core/blocks/choices.js';
import { putData } from '../../src/core/loop-items.js';
import { nodeAt } from '../../src/core/paths.js';
import { compilePlan } from '../../src/core/plan.js';
import type { ChildEnd, ChildStart, EngineEvent } from '../../src/core/progress.js';
import { clashOf, remapExecution } from '../../src/core/remap.js';
import { treeOf } from '../../src/core/tree.js';
import { column, lines } from '../helpers/columns.js';
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
  sleep,
  transform,
  tryCatch,
  work,
} from '../helpers/player.js';
import { check } from '../helpers/properties.js';

test('a router passes over a condition that does not parse', () => {
  const routes = ['(((', 'n * 2 > 5'].map((condition, i) => ({
    condition,
    blocks: [noop(`b${i}`)],
  }));
  play([{ type: 'router', id: 'r', routes }], { data: { n: 3 } }).shows({ done: ['b1'] });
});

describe('race', () => {
  test('a success in the same round as a failure wins', () => {
    for (const branches of [
      [[failing('a')], [noop('b')]],
      [[noop('b')], [failing('a')]],
    ]) {
      assert.equal(play([race('r', ...branches)]).state, 'completed');
    }
    assert.equal(play([race('r', [failing('a')], [noop('b'), noop('c')])]).state, 'failed');
  });
});

describe('try_catch', () => {
  test('_error names the failed block, and later siblings are skipped', () => {
    const player = play([tryCatch('t', [failing('a'), noop('b')], [work('c')])]);
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
});

describe('for_each', () => {
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

  test('the items of one that failed and was caught go with the next iteration', () => {
    const body = [tryCatch('t', [forEach('f', 'xs', [work('a')])], [])];
    const player = play([loop('l', 'true', 2, body)], { data: { xs: [1, 2] } });
    player.fail('a');
    assert.deepEqual([...player.snapshot.snapshots.keys()], ['1:f']);
    player.after('fail a').shows({ state: 'completed' });
    assert.equal(player.snapshot.snapshots.size, 0);
  });
});

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

describe('a saga', () => {
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

  test('lets an action that is not cancellable end before a cancel, and takes it back', () => {
    const seen = ({ cancellable }: { cancellable: boolean }) => {
      const told = transform('undo', {
        step: '{{ data._error.failed_step }}',
        why: '{{ data._error.code }}',
      });
      const player = play([
        saga('s', ['first', work('a', { cancellable }), told], ['next', work('b')]),
      ]);
      player.after('cancel', ...(cancellable ? [] : (['ok a'] as const)));
      return player.shows({ state: 'cancelled', atWork: [] }).outputOf('undo');
    };
    assert.deepEqual(seen({ cancellable: false }), { step: null, why: 'cancelled' });
    assert.equal(seen({ cancellable: true }), undefined);
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
});

describe('ab_split', () => {
  const split = (weights: readonly number[], type: AbSplitBlock['type'] = 'ab_split'): Block => ({
    type,
    id: 's',
    variants: weights.map((weight, i) => ({ name: `v${i}`, weight, blocks: [work(`b${i}`)] })),
  });

  test('the variant is that of the hash of the two ids', () => {
    // By another implementation: int.from_bytes(sha256(uuid.bytes + b"\\0" + id)[:8], "big") % total
    for (const [instance, block, weights, variant] of VECTORS) {
      assert.equal(variantOf(instance, block, weights), variant);
    }
  });

  test('every variant comes in about its share, and one without weight never', () => {
    const counts = [0, 0, 0];
    for (let i = 0; i < 3_000; i += 1) {
      const id = `01890000-0000-7000-8000-${i.toString(16).padStart(12, '0')}`;
      counts[variantOf(id, 'split', [1, 0, 3])]! += 1;
    }
    assert.equal(counts[1], 0);
    assert.ok(counts[0]! > 600 && counts[0]! < 900, `${counts}`);
  });

  for (const type of ['ab_split', 'a_b_split'] as const) {
    test(`${type} runs one variant, whose name its row has`, () => {
      const player = play([split([0, 5], type), noop('z')]);
      player.shows({ atWork: ['b1'], tree: { b0: 'skipped', s: 'running' } });
      assert.deepEqual(player.outputOf('s'), { variant: 'v1', variant_index: 1 });
      player.after('ok b1').shows({ state: 'completed', done: ['s', 'b1', 'z'] });
      assert.equal(player.plan.nodes[0]?.type, 'ab_split');
    });
  }
});

/** Instance, block, weights, and the variant. */
const VECTORS: readonly [string, string, number[], number][] = [
  ['01890000-0000-7000-8000-000000000001', 's', [1, 1], 1],
  ['01890000-0000-7000-8000-000000000002', 's', [1, 1], 0],
  ['f81d4fae-7dec-11d0-a765-00a0c91e6bf6', 'größe', [50, 30, 20], 1],
  ['ffffffff-ffff-4fff-bfff-ffffffffffff', 'a/b c', [2147483647, 2147483647, 1], 0],
];

describe('the output of a race', () => {
  test('is null when nothing has one', () => {
    const player = play([race('r', [work('slow')], [{ ...noop('a'), when: 'false' } as Block])]);
    assert.deepEqual(player.outputOf('r'), { winner: 1, output: null });
  });

  test('can be read by later blocks, and is told once the losers have cleaned up', () => {
    const loser = tryCatch('t', [work('a')], [], [work('clean')]);
    const read = transform('z', {
      by: '{{ outputs.r.winner }}',
      gave: '{{ outputs.r.output.ok }}',
    });
    const player = play([race('r', [loser], [work('w')]), read]);
    player.complete('w', { ok: true });
    assert.equal(player.outputOf('r'), undefined);
    player.after('ok clean').shows({ state: 'completed' });
    assert.deepEqual(player.outputOf('z'), { by: 1, gave: true });
  });

  test('is left out when it is large', () => {
    const player = play([race('r', [work('a')])], { env: { outputBytesBudget: 1e9 } });
    player.complete('a', { text: 'x'.repeat(1024 * 1024) });
    assert.deepEqual(player.outputOf('r'), { winner: 0, output_omitted: true });
  });
});

const XS = { data: { xs: [10, 11, 12, 13, 14] } };

/** What is at work, as `block@iteration`. */
const atWork = (player: Player): string[] =>
  [...player.open.values()].map(({ blockId, iteration }) => `${blockId}@${iteration}`);

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

describe('items side by side', () => {
  test('number their rows without a gap, and count those that have ended', () => {
    const player = play([forEach('f', 'xs', [work('a')], { concurrency: 3 })], XS);
    for (const item of [2, 0, 3, 1, 4]) settle(player, `a@${item}`, { item });
    const rowsOf = (block: string) => player.rows.filter(({ blockId }) => blockId === block);
    assert.equal(lines(rowsOf('a'), 'iteration', 'attempt').join(), '2 0,0 1,3 2,1 3,4 4');
    assert.deepEqual(column(rowsOf('f'), 'attempt'), [0, 1, 2, 3, 4, 5]);
    const counted = column(rowsOf('f'), 'output').slice(0, -1);
    assert.deepEqual(column(counted as JsonObject[], '_index'), [0, 1, 2, 3, 4]);
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
    // That of the last item in their order stands.
    assert.equal(player.snapshot.data.decision, 'yes');
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
    assert.deepEqual([caught?.iteration, caught?.overlay?.n], ['0', 'own']);
  });

  test('see the item around them, whatever they merge and callers change under its names', () => {
    const body = [work('a'), work('b', { params: { at: '{{ data.at }}' } })];
    const inner = forEach('f', 'xs', body, { concurrency: 2 });
    const outer = forEach('o', 'xs', [inner], { index_var: 'at' });
    const player = play([outer], { data: { xs: [1, 2] } });
    settle(player, 'a@0.0', { at: 'merged' });
    const { plan, snapshot } = player;
    putData(plan, snapshot, { ...snapshot.data, at: 'changed' });
    settle(player, 'a@0.1');
    const seen = player.dispatched.filter(({ blockId }) => blockId === 'b');
    assert.deepEqual(column(seen, 'params'), [{ at: 0 }, { at: 0 }]);
    assert.equal(player.snapshot.data.at, 'changed');
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
    const seen = player.outputOf('f');
    assert.deepEqual(
      seen,
      [0, 1, 2, 3, 4].map((n) => ({ n })),
    );
  });

  describe('sees in a retry, also of what another item has merged,', () => {
    const body = [work('a', { params: { n: '{{ data.n }}' } })];
    const each = forEach('f', 'xs', body, { concurrency: 2 });
    const failed = (...around: Block[]) => {
      const player = play([parallel('p', [each], around)], { data: { xs: [1, 2], n: 'old' } });
      settle(player, 'a@0', 'failed');
      return settle(player, 'a@1', { n: 'of another' });
    };
    const seesNew = (player: Player) => {
      player.send({ kind: 'retry' });
      assert.deepEqual(player.dispatched.at(-1)?.params, { n: 'new' });
      assert.equal(player.dispatched.at(-1)?.iteration, '0');
    };

    test('what has been changed from outside meanwhile', () => {
      const player = failed();
      const { plan, snapshot } = player;
      assert.equal(player.state, 'failed');
      putData(plan, snapshot, { ...snapshot.data, n: 'new' });
      seesNew(player);
    });

    test('what a block beside the for_each has merged meanwhile', () => {
      const player = failed(work('b'));
      player.complete('b', { n: 'new' });
      assert.equal(player.state, 'failed');
      seesNew(player);
    });
  });
});

describe('items in flight', () => {
  const each = forEach('f', 'xs', [work('a'), sleep('s', 1_000)], { concurrency: 3 });

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
  const told = transform('a', { x: '{{ data.item }}' });
  const second = { ...noop('b'), when: 'data.item == 2' } as Block;
  const cases: [what: string, body: Block[], output: JsonValue][] = [
    ['is that of the last block with an output', [told, second], [{ x: 1 }, {}]],
    ['is null where nothing gave an output', [second], [null, {}]],
  ];
  for (const [what, body, output] of cases) {
    test(what, () => {
      const after = transform('after', { got: '{{ outputs.f }}' });
      const player = play([forEach('f', 'xs', body), after], { data: { xs: [1, 2] } });
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
      assert.deepEqual(player.outputOf('f'), { count: 5, truncated: true });
      const told = player.last?.audit.map(({ eventType }) => eventType) ?? [];
      assert.ok(told.includes('output_truncated'));
    }
    // In bytes, not in characters.
    const xs = Array.from({ length: 5 }, () => 'é'.repeat(150_000));
    assert.deepEqual(play([forEach('f', 'xs', body)], { data: { xs } }).outputOf('f'), {
      count: 5,
      truncated: true,
    });
  });
});

test('with any concurrency the rows and outputs of pure items are the same', (t) => {
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
  check(t, 60, fc.tuple(...pure), ([concurrency, count, stepBudget]) => {
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
  });
});

test('items in flight are carried to another server, each in its slot', () => {
  const inner = forEach('g', '{{ data.row }}', [work('a'), work('b')], { concurrency: 2 });
  const blocks = [forEach('f', 'rows', [inner], { item_var: 'row', concurrency: 2 })];
  const player = play(blocks, { data: { rows: [[1, 2], [3], [4, 5]] } });
  for (const at of ['a@0.1', 'a@1.0', 'b@1.0']) settle(player, at, { at });
  const { execution, snapshots } = player.snapshot;
  const written = writeTree({ execution, items: new Map(snapshots), blocks: [] }, player.plan);
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
    const seen = clashOf(execution, player.plan, plan(1)) ?? '';
    assert.match(seen, /^block f is at 2 items, of which the target runs 1 at once$/);
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
    const moved = remapExecution(player.snapshot.execution, player.plan, plan(3));
    const { i, s, m } = moved.o[0] as ForEachRecord;
    assert.deepEqual([i, s, m, moved.q], [1, [0, -1, -1], 0, [0]]);
  });
});

describe('a plan', () => {
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

const child = (id = 'child', more: object = {}): Block =>
  ({ type: 'sub_sequence', id, sequence_name: 'other', ...more }) as Block;

/** The children that were asked for in the last turn. */
const startsOf = (player: Player) => (player.last!.children ?? []) as ChildStart[];

function make(player: Player, { node, iteration, attempt, child }: ChildStart): ChildStart {
  player.send({ kind: 'child.made', node, iteration, attempt, child });
  return { kind: 'start', node, iteration, attempt, child } as ChildStart;
}

/** The child that was asked for last, as made. */
function made(player: Player): ChildStart {
  const start = player.children.findLast(({ kind }) => kind === 'start') as ChildStart;
  make(player, start);
  return start;
}

const end = (player: Player, { node, iteration, attempt }: ChildStart, how: ChildEnd) =>
  player.send({ kind: 'child.ended', node, iteration, attempt, end: how });

const DONE: ChildEnd = { kind: 'completed', output: [] };
const FAILED: ChildEnd = { kind: 'failed', code: 'child_failed', message: 'no' };

test('a block asks for a child by name with its input, and waits', () => {
  const blocks = [child('child', { version: 3, input: { n: '{{ data.n }}' } })];
  const player = play(blocks, { data: { n: 5 } });
  const { sequence, version, input, blockId, child: id } = made(player);
  assert.deepEqual([sequence, version, input, blockId], ['other', 3, { n: 5 }, 'child']);
  const { plan, snapshot } = player;
  assert.equal(id, childInstanceId(snapshot.id, 'child', '', 0));
  assert.equal(player.state, 'waiting');
  assert.equal(treeOf(plan, snapshot.execution, snapshot.id)[0]!.child_instance_id, id);
});

test('an instance waits for a child from when there is one, is at work until then, and stays parked', () => {
  for (const isParked of [false, true]) {
    const player = play([child(), noop('after')]);
    const [start] = startsOf(player) as [ChildStart];
    const seen = [player.state, player.last!.more, player.last!.wakeAt];
    assert.deepEqual(seen, ['running', false, null]);
    player.send({ kind: isParked ? 'park' : 'wake' });
    make(player, start);
    assert.deepEqual([player.state, player.snapshot.execution.p === 1], ['waiting', isParked]);
    make(player, { ...start, attempt: 7 });
    assert.equal(player.last!.stale, true);
  }
});

test('items side by side have children of their own, and each takes the end of its own once', () => {
  const items = { type: 'for_each', id: 'f', collection: 'xs', concurrency: 2 };
  const each = child('child', { input: { n: '{{ data.item }}' } });
  const player = play([{ ...items, body: [each] } as unknown as Block], { data: { xs: [7, 8] } });
  const [first, second] = startsOf(player) as [ChildStart, ChildStart];
  assert.deepEqual([first.iteration, first.input, second.input], ['0', { n: 7 }, { n: 8 }]);
  for (const start of [first, second]) make(player, start);
  assert.notEqual(first.child, second.child);
  assert.equal(end(player, { ...second, attempt: 7 }, DONE).stale, true);
  end(player, second, DONE);
  assert.equal(player.state, 'waiting');
  assert.equal(end(player, second, DONE).stale, true);
  end(player, first, DONE);
  assert.equal(player.state, 'completed');
});

test('a retry asks for another child, and a completed one is not asked for again', () => {
  const player = play([child('first'), child('second')]);
  end(player, made(player), DONE);
  const failed = made(player);
  end(player, failed, FAILED);
  assert.deepEqual([player.state, player.snapshot.execution.y?.code], ['failed', 'child_failed']);
  player.after('retry', 'wake');
  const again = made(player);
  assert.equal(again.blockId, 'second');
  assert.notEqual(again.child, failed.child);
  end(player, again, DONE);
  assert.equal(player.state, 'completed');
});

test('passes of a loop have children with different ids', () => {
  const player = play([
    { type: 'loop', id: 'l', condition: 'true', max_iterations: 3, body: [child()] } as Block,
  ]);
  const ids = [0, 1, 2].map(() => {
    const start = made(player);
    end(player, start, DONE);
    return start.child;
  });
  assert.deepEqual([new Set(ids).size, new Set(ids.map(routeOf)).size], [3, 3]);
});

const CUTS: readonly (readonly [string, EngineEvent])[] = [
  ['the signal cancel', { kind: 'cancel' }],
  ['a hard stop', { kind: 'stop', state: 'cancelled' }],
  ['a rewind', { kind: 'rewind', node: 0 }],
];
for (const [what, event] of CUTS) {
  test(`${what} takes the child back, and so does a race that it loses`, () => {
    const player = play([race('r', [child()], [work('w')])]);
    const { child: id } = made(player);
    const [order] = player.sendOnce(event).children ?? [];
    assert.deepEqual([order?.kind, order?.child], ['cancel', id]);
    const losing = play([race('r', [child()], [work('w')])]);
    made(losing);
    assert.deepEqual(column(losing.complete('w').children ?? [], 'kind'), ['cancel']);
    assert.equal(losing.state, 'completed');
  });
}

test('a child that is cut off in the turn in which it is asked for, or is not wanted, is never asked for', () => {
  const lost = play([race('r', [child()], [noop('n')])]);
  assert.deepEqual([lost.last!.children, lost.state], [[], 'completed']);
  const skipped = play([child('child', { when: 'data.on' })]);
  assert.deepEqual([skipped.last!.children, skipped.state], [undefined, 'completed']);
});

test('after a crash a child that was not made is asked for with the same id, one that was is looked at', () => {
  const player = play([child()]);
  const [before] = startsOf(player) as [ChildStart];
  player.recover();
  assert.equal(made(player).child, before.child);
  const [order] = player.recover().children ?? [];
  assert.deepEqual([order?.kind, order?.child], ['look', before.child]);
});

test('an instance that goes over to another version keeps its child', () => {
  const player = play([child()]);
  const { child: id } = made(player);
  const target = planOf([noop('new'), child(), noop('after')]);
  const { execution } = player.snapshot;
  assert.equal(clashOf(execution, player.plan, target), undefined);
  assert.equal((remapExecution(execution, player.plan, target).o[1] as StepRecord).c, id);
  const other = planOf([child('child', { sequence_name: 'third' })]);
  assert.match(clashOf(execution, player.plan, other)!, /starts the sequence third/);
});
