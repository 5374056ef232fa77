/** The evaluator on cancellation scopes, splits, what races tell, and guards of blocks of every kind. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AbSplitBlock, Block, KindName } from '../../schema/blocks.js';
import { variantOf } from '../../src/core/blocks/ab-split.js';
import type { JsonObject, JsonValue } from '../../src/core/json.js';
import {
  failing,
  forEach,
  loop,
  noop,
  parallel,
  play,
  race,
  sleep,
  transform,
  tryCatch,
  work,
} from '../helpers/player.js';

const scope = (id: string, ...blocks: Block[]): Block => ({
  type: 'cancellation_scope',
  id,
  blocks,
});

describe('cancellation_scope', () => {
  test('runs its blocks in order and fails with the first failure', () => {
    play([scope('s', noop('a'), noop('b')), noop('z')]).shows({ done: ['a', 'b', 'z'] });
    const player = play([scope('s', noop('a'), failing('b'), noop('c')), noop('z')]);
    player.shows({ state: 'failed', done: ['a'], tree: { s: 'failed', c: 'skipped' } });
  });

  test('the signal cancel waits for all of it, and nothing runs behind it', () => {
    const player = play([scope('s', work('a'), parallel('p', [work('b')])), noop('z')]);
    player.after('cancel').shows({ state: 'waiting', atWork: ['a'], withdrawn: [] });
    player.after('ok a').shows({ atWork: ['b'] });
    player.after('ok b').shows({ state: 'cancelled', done: ['a', 'b'], tree: { z: 'cancelled' } });
  });

  test('what stands beside it is cut off', () => {
    const player = play([parallel('p', [scope('s', work('a'))], [work('b')])]);
    player.after('cancel').shows({ atWork: ['a'], withdrawn: ['b'] });
    player.after('ok a').shows({ state: 'cancelled' });
  });

  test('the signal reaches it in a paused instance, too', () => {
    const player = play([scope('s', work('a')), noop('z')]).after('pause', 'cancel');
    player
      .shows({ atWork: ['a'] })
      .after('ok a')
      .shows({ state: 'cancelled', done: ['a'] });
  });

  test('a race and a hard stop cut it off', () => {
    const lost = play([race('r', [scope('s', work('a'), noop('b'))], [work('w')])]);
    lost.after('ok w').shows({ state: 'completed', tree: { s: 'cancelled', a: 'cancelled' } });
    const stopped = play([scope('s', work('a'))]);
    stopped.after({ kind: 'stop', state: 'cancelled' }).shows({ state: 'cancelled', atWork: [] });
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

  test('a retry goes on with the same variant and leaves no other row', () => {
    const player = play([split([1, 1])]);
    const [chosen] = player.atWork;
    player.after(`fail ${chosen!}`, 'retry').shows({ atWork: [chosen!], done: ['s'] });
    player.after(`ok ${chosen!}`).shows({ state: 'completed', done: ['s', chosen!] });
  });

  test('in a loop it has a row for each pass', () => {
    const player = play([loop('l', 'true', 2, [split([1, 0])])]).after('ok b0', 'ok b0');
    const rows = player.rows.filter(({ blockId }) => blockId === 's');
    assert.deepEqual(
      rows.map(({ iteration, attempt }) => [iteration, attempt]),
      [
        ['0', 0],
        ['1', 1],
      ],
    );
  });
});

/** Instance, block, weights, and the variant. */
const VECTORS: readonly [string, string, number[], number][] = [
  ['01890000-0000-7000-8000-000000000001', 's', [1, 1], 1],
  ['01890000-0000-7000-8000-000000000002', 's', [1, 1], 0],
  ['f81d4fae-7dec-11d0-a765-00a0c91e6bf6', 'größe', [50, 30, 20], 1],
  ['ffffffff-ffff-4fff-bfff-ffffffffffff', 'a/b c', [2147483647, 2147483647, 1], 0],
];

describe('the output of a race', () => {
  const cases: [title: string, winner: Block[], output: JsonValue][] = [
    ['is that of the last block', [transform('a', { n: 1 }), transform('b', { n: 2 })], { n: 2 }],
    [
      'is that of the last block that ran',
      [transform('a', { n: 1 }), { ...noop('b'), when: 'false' }],
      { n: 1 },
    ],
    [
      'is found in blocks that have none themselves',
      [parallel('p', [transform('a', { n: 1 })], [transform('b', { n: 2 })])],
      { n: 2 },
    ],
    [
      'is that of the catch list when that ran',
      [tryCatch('t', [transform('a', { n: 1 }), failing('x')], [transform('b', { n: 3 })])],
      { n: 3 },
    ],
    [
      'of a for_each is that of its items',
      [forEach('f', 'xs', [transform('a', { x: '{{ data.item }}' })])],
      [{ x: 7 }, { x: 8 }],
    ],
    [
      'of a race in it is that of the inner one',
      [race('i', [transform('a', { n: 1 })])],
      { winner: 0, output: { n: 1 } },
    ],
    ['is null when nothing has one', [{ ...noop('a'), when: 'false' }], null],
    ['is null for an empty branch', [], null],
  ];
  for (const [title, winner, output] of cases) {
    test(title, () => {
      const player = play([race('r', [work('slow')], winner)], { data: { xs: [7, 8] } });
      player.shows({ state: 'completed' });
      assert.deepEqual(player.outputOf('r'), { winner: 1, output });
    });
  }

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

  test('is that of the present pass only', () => {
    const once = { ...transform('a', { n: 1 }), when: 'data.item == 1' } as Block;
    const player = play([forEach('f', 'xs', [race('r', [once])])], { data: { xs: [1, 2] } });
    const rows = player.rows.filter(({ blockId }) => blockId === 'r');
    assert.deepEqual(
      rows.map(({ output }) => (output as JsonObject).output),
      [{ n: 1 }, null],
    );
  });

  test('is left out when it is large', () => {
    const player = play([race('r', [work('a')])], { env: { outputBytesBudget: 1e9 } });
    player.complete('a', { text: 'x'.repeat(1024 * 1024) });
    assert.deepEqual(player.outputOf('r'), { winner: 0, output_omitted: true });
  });

  test('of one that failed there is none', () => {
    const player = play([race('r', [failing('a')], [sleep('b', 50)])]);
    player.shows({ state: 'failed', done: [] });
  });
});

describe('when', () => {
  const inner = [noop('in')];
  /** A block of each kind with a step inside that leaves a trace; what a child does is its own. */
  const KINDS: Readonly<Record<Exclude<KindName, 'sub_sequence'>, Block>> = {
    step: noop('in'),
    parallel: parallel('b', inner),
    race: race('b', inner),
    router: { type: 'router', id: 'b', routes: [{ condition: 'true', blocks: inner }] },
    try_catch: tryCatch('b', inner, []),
    loop: loop('b', 'true', 1, inner),
    for_each: forEach('b', 'xs', inner),
    cancellation_scope: scope('b', ...inner),
    saga: { type: 'saga', id: 'b', steps: [{ id: 's', action: inner }] },
    ab_split: {
      type: 'ab_split',
      id: 'b',
      variants: [
        { name: 'x', weight: 1, blocks: inner },
        { name: 'y', weight: 0, blocks: [] },
      ],
    },
  };
  const data = { xs: [1], on: true };
  for (const [kind, block] of Object.entries(KINDS)) {
    test(`a ${kind} runs when it holds, and is skipped with all in it when it does not`, () => {
      const runs = play([{ ...block, when: 'data.on' } as Block, noop('z')], { data });
      assert.ok(
        runs.done.some((row) => row.split('@')[0] === 'in'),
        `${runs.done}`,
      );
      for (const when of ['data.off', '', 'xs.1', '1 > 2']) {
        const player = play([{ ...block, when } as Block, noop('z')], { data });
        player.shows({ state: 'completed', done: ['z'] });
        player.shows({ tree: { [block.id]: 'skipped', in: 'skipped' } });
      }
    });

    test(`a ${kind} whose when does not parse fails for good`, () => {
      const player = play([{ ...block, when: 'a b (' } as Block, noop('z')], { data });
      player.shows({ state: 'failed', done: [] });
      const { code, block_id } = player.snapshot.execution.y!;
      assert.deepEqual({ code, block_id }, { code: 'expression_error', block_id: block.id });
    });
  }

  test('is asked where the block stands, with the item and the outputs of that place', () => {
    const guarded = { ...parallel('p', [noop('a')]), when: 'item > outputs.t.least' } as Block;
    const player = play([transform('t', { least: 1 }), forEach('f', 'ns', [guarded])], {
      data: { ns: [1, 2] },
    });
    assert.deepEqual(
      player.done.filter((row) => row.startsWith('a')),
      ['a@1'],
    );
  });

  test('is not asked again of a block that had begun when the instance failed', () => {
    const guarded = { ...parallel('p', [work('a'), work('b')]), when: 'data.go' } as Block;
    const player = play([guarded], { data: { go: true } });
    player.complete('a', { go: false });
    player.after('fail b', 'retry').shows({ atWork: ['b'] });
    player.after('ok b').shows({ state: 'completed' });
    assert.deepEqual(player.snapshot.execution.k ?? {}, {});
  });

  test('a branch that is skipped has ended well', () => {
    const player = play([race('r', [work('a')], [{ ...noop('b'), when: 'false' } as Block])]);
    player.shows({ state: 'completed', done: ['r'] });
  });
});
