/** The semantic diff: what counts as a change, how grave it is, and what is no change at all. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Type } from '@sinclair/typebox';
import type { Block } from '../../schema/blocks.js';
import { BLOCKS_MAX, DEPTH_MAX } from '../../schema/blocks.js';
import type { SemanticDiff } from '../../schema/release.js';
import type { JsonObject } from '../../src/core/json.js';
import type { PlacedBlock } from '../../src/core/releases/block-tree.js';
import { semanticDiff } from '../../src/core/releases/diff.js';
import { blockChanges } from '../../src/core/releases/diff-blocks.js';
import { DIFF_ENTRIES_MAX } from '../../src/core/releases/diff-entry.js';
import {
  forEach,
  http,
  loop,
  noop,
  parallel,
  race,
  sleep,
  tryCatch,
  work,
} from '../helpers/player.js';

const RISK = 'side_effect_risk';

function diff(before: Block[], after: Block[]): SemanticDiff {
  return semanticDiff({ blocks: before }, { blocks: after });
}

/** Each entry in one line. */
function linesOf({ entries }: SemanticDiff): string[] {
  return entries.map(({ severity, category, block_id }) =>
    [severity, category, block_id ?? '-'].join(' '),
  );
}

type Case = readonly [title: string, before: Block[], after: Block[], expected: string[]];

function table(name: string, cases: readonly Case[]): void {
  describe(name, () => {
    for (const [title, before, after, expected] of cases) {
      test(title, () => assert.deepEqual(linesOf(diff(before, after)), expected));
    }
  });
}

const step = (id: string, handler: string, fields: object = {}): Block => ({
  type: 'step',
  id,
  handler,
  ...fields,
});
const remarked = (block: Block) => ({ ...block, remark: 'x' }) as unknown as Block;
const transform = (id: string, params: JsonObject): Block => step(id, 'transform', { params });
const router = (id: string, routes: [condition: string, blocks: Block[]][], rest?: Block[]) => {
  const list = routes.map(([condition, blocks]) => ({ condition, blocks }));
  return { type: 'router', id, routes: list, ...(rest && { default: rest }) } as Block;
};

const a = noop('a');
const b = noop('b');
const c = noop('c');
const [x, y] = [step('x', 'log'), step('y', 'log')];

table('steps that come and go', [
  ['a built-in that reaches nothing', [a], [a, step('n', 'log')], ['behavioral block_added n']],
  ['a sleep', [a], [a, sleep('n', 5)], ['behavioral block_added n']],
  ['a request over HTTP', [a], [a, http('n')], [`${RISK} block_added n`]],
  ['a step of a worker', [a], [a, work('n')], [`${RISK} block_added n`]],
  ['a step less, whatever it did', [a, work('n')], [a], ['behavioral block_removed n']],
  [
    'a block around a step, which it moves',
    [a],
    [parallel('p', [a])],
    ['behavioral block_added p', 'behavioral structure_changed a'],
  ],
  [
    'a branch with a step in it',
    [parallel('p', [a])],
    [parallel('p', [a], [http('n')])],
    [`${RISK} block_added n`, 'behavioral structure_changed p'],
  ],
]);

table('fields of steps', [
  ['handler', [noop('s')], [step('s', 'log')], [`${RISK} handler_changed s`]],
  [
    'params of a built-in',
    [transform('s', { n: 1 })],
    [transform('s', { n: 2 })],
    ['behavioral params_changed s'],
  ],
  [
    'params of a worker',
    [work('s')],
    [work('s', { params: { n: 1 } })],
    [`${RISK} params_changed s`],
  ],
  [
    'params, judged by the handler of the candidate',
    [http('s', { params: { n: 1 } })],
    [transform('s', { n: 2 })],
    [`${RISK} handler_changed s`, 'behavioral params_changed s'],
  ],
  [
    'params within, where null is a value',
    [transform('s', {})],
    [transform('s', { n: null })],
    ['behavioral params_changed s'],
  ],
  [
    'retry',
    [work('s')],
    [work('s', { retry: { max_attempts: 2 } })],
    ['behavioral retry_changed s'],
  ],
  ['timeout', [work('s', { timeout: 5 })], [work('s')], ['behavioral timeout_changed s']],
  ['delay', [work('s')], [work('s', { delay: { duration: 5 } })], ['behavioral delay_changed s']],
  [
    'rate_limit_key',
    [work('s', { rate_limit_key: 'k' })],
    [work('s', { rate_limit_key: 'l' })],
    ['behavioral rate_limit_changed s'],
  ],
  ['queue_name', [work('s')], [work('s', { queue_name: 'q' })], ['behavioral queue_changed s']],
  [
    'send_window',
    [work('s', { send_window: { start_hour: 8 } })],
    [work('s', { send_window: { start_hour: 9 } })],
    ['behavioral send_window_changed s'],
  ],
  [
    'output_schema',
    [work('s')],
    [work('s', { output_schema: { type: 'object' } })],
    ['behavioral output_schema_changed s'],
  ],
  ['when', [work('s')], [work('s', { when: 'data.go' })], ['behavioral when_guard_changed s']],
  [
    'cancellable',
    [work('s')],
    [work('s', { cancellable: false })],
    ['behavioral cancellable_changed s'],
  ],
]);

describe('a kind that the diff has no row for', () => {
  const members = {
    type: Type.Literal('saga'),
    id: Type.String(),
    mode: Type.String(),
    limits: Type.Object({ tries: Type.Integer() }),
    actions: Type.Array(Type.Object({})),
    finish_block: Type.Array(Type.Object({})),
  };
  const saga = (fields: object, ...lists: Block[][]): PlacedBlock => {
    const block = { type: 'saga', id: 's', ...fields } as unknown as Block;
    return { block, members, lists, parent: undefined, list: 0 };
  };
  const one = [a];
  const other = [b, c];
  const actions = (blocks: Block[], undo = 'x') => ({ actions: [{ undo, blocks }] });
  const cases: [title: string, before: PlacedBlock, after: PlacedBlock, expected: string[]][] = [
    ['nothing', saga({ mode: 'x' }), saga({ mode: 'x', limits: null }), []],
    ['what means nothing', saga({}), saga({ remark: 'x' }), []],
    ['a null within settings', saga({ limits: {} }), saga({ limits: { tries: null } }), []],
    ['a member', saga({ mode: 'x' }), saga({ mode: 'y' }), ['params_changed: mode changes']],
    ['blocks inside', saga(actions(one), one), saga(actions(other), other), []],
    [
      'what stands beside blocks',
      saga(actions(one), one),
      saga(actions(one, 'y'), one),
      ['params_changed: actions changes'],
    ],
    [
      'the number of lists',
      saga({ actions: [one] }, one),
      saga({ actions: [one, other] }, one, other),
      ['structure_changed: the number of actions changes from 1 to 2'],
    ],
    [
      'a list',
      saga({}),
      saga({ finish_block: one }, one),
      ['structure_changed: the finish list is added'],
    ],
  ];
  for (const [title, before, after, expected] of cases) {
    test(title, () => {
      const found = blockChanges(before, after);
      const lines = found.map(({ category, summary }) => summary.replace('saga s', category));
      assert.deepEqual(lines, expected);
    });
  }
});

table('what means the same', [
  [
    'a member that no block has',
    [work('s'), parallel('p', [a])],
    [remarked(work('s')), remarked(parallel('p', [a]))],
    [],
  ],
  [
    'the order of keys',
    [transform('s', { m: 1, n: { o: 2, p: 3 } })],
    [{ params: { n: { p: 3, o: 2 }, m: 1 }, handler: 'transform', id: 's', type: 'step' }],
    [],
  ],
  [
    'null and an absent field',
    [
      work('s'),
      loop('l', 'data.go', 3, [a]),
      tryCatch('t', [b], []),
      router('r', [['data.go', [c]]]),
    ],
    [
      work('s', {
        params: null,
        retry: null,
        timeout: null,
        delay: null,
        rate_limit_key: null,
        queue_name: null,
        send_window: null,
        output_schema: null,
        when: null,
        cancellable: null,
      }),
      loop('l', 'data.go', 3, [a]),
      { ...tryCatch('t', [b], []), finally_block: null } as Block,
      { ...router('r', [['data.go', [c]]]), default: null } as Block,
    ],
    [],
  ],
  [
    'null and an absent field of a setting',
    [work('s', { retry: { max_attempts: 2 }, delay: { duration: 5 } })],
    [
      work('s', {
        retry: { max_attempts: 2, retry_if: null },
        delay: { duration: 5, jitter: null, fire_at_local: false },
      }),
    ],
    [],
  ],
  [
    'a default and an absent field',
    [
      race('r', [a], [b]),
      { type: 'loop', id: 'l', condition: 'go', body: [c] },
      forEach('f', 'items', [x]),
      work('s'),
    ],
    [
      { ...race('r', [a], [b]), semantics: 'first_to_resolve' } as Block,
      loop('l', 'go', 1_000, [c]),
      forEach('f', 'items', [x], { item_var: 'item', max_iterations: 1_000 }),
      work('s', { cancellable: true }),
    ],
    [],
  ],
]);

table('composite blocks', [
  ['another type', [parallel('p', [a])], [race('p', [a])], ['behavioral block_type_changed p']],
  [
    'a step with an effect in place of a block',
    [parallel('p', [])],
    [work('p')],
    [`${RISK} block_type_changed p`],
  ],
  [
    'the condition of a loop',
    [loop('l', 'data.go', 3, [a])],
    [loop('l', 'data.on', 3, [a])],
    ['behavioral loop_changed l'],
  ],
  [
    'the passes of a loop',
    [loop('l', 'data.go', 3, [a])],
    [loop('l', 'data.go', 4, [a])],
    ['behavioral loop_changed l'],
  ],
  [
    'each term of a for_each',
    [forEach('f', 'items', [a], { max_iterations: 2 })],
    [forEach('f', 'others', [a], { item_var: 'row', max_iterations: 3 })],
    ['behavioral loop_changed f', 'behavioral loop_changed f', 'behavioral loop_changed f'],
  ],
  [
    'the semantics of a race',
    [race('r', [a], [b])],
    [{ ...race('r', [a], [b]), semantics: 'first_to_succeed' } as Block],
    ['behavioral race_changed r'],
  ],
  [
    'a branch without blocks, which wins a race',
    [race('r', [a])],
    [race('r', [a], [])],
    ['behavioral structure_changed r'],
  ],
  [
    'the condition of a route',
    [router('r', [['data.go', [a]]])],
    [router('r', [['data.on', [a]]])],
    ['behavioral router_changed r'],
  ],
  [
    'a route in front of others, whose blocks stay where they are',
    [router('r', [['data.go', [a]]], [c])],
    [
      router(
        'r',
        [
          ['data.on', [b]],
          ['data.go', [a]],
        ],
        [c],
      ),
    ],
    ['behavioral block_added b', 'behavioral router_changed r'],
  ],
  [
    'the order of routes',
    [
      router('r', [
        ['data.go', [a]],
        ['data.on', [b]],
      ]),
    ],
    [
      router('r', [
        ['data.on', [b]],
        ['data.go', [a]],
      ]),
    ],
    ['behavioral blocks_reordered -', 'behavioral router_changed r'],
  ],
  [
    'bodies that change their routes',
    [
      router('r', [
        ['data.go', [a]],
        ['data.on', [b]],
      ]),
    ],
    [
      router('r', [
        ['data.go', [b]],
        ['data.on', [a]],
      ]),
    ],
    [
      'behavioral blocks_reordered -',
      'behavioral structure_changed a',
      'behavioral structure_changed b',
    ],
  ],
  [
    'the default of a router added',
    [router('r', [['data.go', [a]]])],
    [router('r', [['data.go', [a]]], [b])],
    ['behavioral block_added b', 'behavioral structure_changed r'],
  ],
  [
    'the finally list removed',
    [tryCatch('t', [a], [], [b])],
    [tryCatch('t', [a], [])],
    ['behavioral block_removed b', 'behavioral structure_changed t'],
  ],
  [
    'a step that moves from the try list to the catch list',
    [tryCatch('t', [a, b], [])],
    [tryCatch('t', [a], [b])],
    ['behavioral structure_changed b'],
  ],
  [
    'a step that moves between branches',
    [parallel('p', [a, b], [c, x, y])],
    [parallel('p', [a], [c, x, y, b])],
    ['behavioral blocks_reordered -', 'behavioral structure_changed b'],
  ],
  [
    'branches that change their order, which moves no block',
    [parallel('p', [a, b], [c])],
    [parallel('p', [c], [a, b])],
    ['behavioral blocks_reordered -'],
  ],
  [
    'the order of composite blocks, all else being equal',
    [parallel('p', [a]), parallel('q', []), b],
    [parallel('q', []), parallel('p', [a]), b],
    ['behavioral blocks_reordered -'],
  ],
]);

describe('references to outputs', () => {
  const incompatible = ['incompatible missing_output_reference s'];
  const without = (id: string, params: JsonObject, ...others: Block[]) =>
    linesOf(
      diff([noop(id), ...others, transform('s', params)], [...others, transform('s', params)]),
    ).filter((line) => line.includes('missing'));

  for (const text of [
    'outputs.gone',
    '{{ outputs.gone.total }}',
    '{{ outputs.gone | default(1) }}',
    'a {{ data.n }} and {{ outputs.a.n }}{{outputs.gone.n}}',
    '{{ steps.gone.n }}',
    'outputs.a.n == outputs.gone.n',
  ]) {
    test(`${text} names no block any more`, () => {
      assert.deepEqual(without('gone', { deep: [{ text }] }, a), incompatible);
    });
  }

  for (const text of [
    '{{ outputs.a.n }}',
    '{{ outputs.my step.n }}',
    '{{outputs.with-hyphen}}',
    'outputs.a-1 > 0',
    'The outputs.',
    'all outputs. Gone',
    'data.outputs.gone',
    'my_outputs.gone',
    'see steps.gone',
    '{{ outputs }}',
  ]) {
    test(`${text} does not`, () => {
      const others = [a, noop('my step'), noop('with-hyphen')];
      assert.deepEqual(without('gone', { text }, ...others), []);
    });
  }

  test('keys name nothing', () => {
    assert.deepEqual(without('gone', { 'outputs.gone': 1 }), []);
  });

  test('a step has one entry, which names them all', () => {
    const params = { one: '{{ outputs.g1.n }}', two: ['{{ outputs.g2.n }} {{ outputs.g1.n }}'] };
    const { entries } = diff([transform('s', {})], [transform('s', params)]);
    const missing = entries.filter(({ category }) => category === 'missing_output_reference');
    assert.equal(missing.length, 1);
    assert.match(missing[0]!.summary, /g1, g2$/);
  });

  test('between equal definitions nothing has got lost', () => {
    const broken = [transform('s', { text: '{{ outputs.gone.n }}' })];
    assert.deepEqual(linesOf(diff(broken, broken)), []);
  });
});

test('a step within parameters is no step', () => {
  const params = { list: [{ type: 'step', id: 'inner', handler: 'http_request' }] };
  assert.deepEqual(linesOf(diff([transform('s', {})], [transform('s', params)])), [
    'behavioral params_changed s',
  ]);
});

describe('the sequence as a whole', () => {
  const withSchema = (input_schema?: JsonObject | null) => ({
    blocks: [a],
    ...(input_schema === undefined ? {} : { input_schema }),
  });
  const compare = (before: JsonObject | null | undefined, after: JsonObject | null | undefined) =>
    linesOf(semanticDiff(withSchema(before), withSchema(after)));
  const changed = ['behavioral input_schema_changed -'];
  const narrowed = ['incompatible input_schema_narrowed -'];

  test('a demand that was not there before', () => {
    assert.deepEqual(compare(undefined, { required: ['n'] }), narrowed);
    assert.deepEqual(
      compare({ required: ['n'] }, { required: ['m', 'n'], type: 'object' }),
      narrowed,
    );
  });

  test('any other change of input_schema', () => {
    assert.deepEqual(compare({ required: ['n', 'm'] }, { required: ['n'] }), changed);
    assert.deepEqual(compare({ type: 'object' }, undefined), changed);
  });

  test('no change of input_schema', () => {
    assert.deepEqual(compare(null, undefined), []);
    assert.deepEqual(compare({ type: 'object', title: 't' }, { title: 't', type: 'object' }), []);
  });

  test('credentials that were not needed before', () => {
    const using = (...ids: string[]) => [
      http('s', { params: { headers: ids.map((id) => `Bearer {{ credentials://${id} }}`) } }),
    ];
    const { entries } = diff(using('one'), using('one', 'two/key'));
    assert.deepEqual(
      entries.map(({ severity, category, block_id }) => [severity, category, block_id]),
      [
        [RISK, 'params_changed', 's'],
        ['behavioral', 'credential_requirement_added', undefined],
      ],
    );
    assert.match(entries[1]!.summary, /: two\/key$/);
    assert.deepEqual(linesOf(diff(using('one', 'two'), using('two'))), [
      `${RISK} params_changed s`,
    ]);
  });
});

describe('the report', () => {
  test('is sorted by severity, category and block, whole sequences first', () => {
    const before = [noop('B'), noop('a'), work('w'), noop('k'), noop('l')];
    const after = [
      noop('l'),
      noop('k'),
      work('w', { timeout: 1, retry: { max_attempts: 2 }, params: { t: '{{ outputs.B.n }}' } }),
      noop('é'),
      noop('z'),
      noop('Z'),
      http('h'),
    ];
    const found = diff(before, after);
    assert.deepEqual(linesOf(found), [
      'incompatible missing_output_reference w',
      `${RISK} block_added h`,
      `${RISK} params_changed w`,
      'behavioral block_added Z',
      'behavioral block_added z',
      'behavioral block_added é',
      'behavioral block_removed B',
      'behavioral block_removed a',
      'behavioral blocks_reordered -',
      'behavioral retry_changed w',
      'behavioral timeout_changed w',
    ]);
    assert.equal(found.max_severity, 'incompatible');
  });

  test('of equal definitions is empty', () => {
    assert.deepEqual(diff([a, work('w')], [a, work('w')]), { entries: [] });
  });

  test('tells what the author of the candidate was warned of', () => {
    const { candidate_lint } = diff([a], [step('s', 'http_reqest')]);
    assert.deepEqual(candidate_lint, [
      'step s has the handler http_reqest, which is left to external workers; was http_request meant?',
    ]);
  });

  test('says in every summary what has become of which block', () => {
    const before = [parallel('p', [a, b], [c]), work('w', { timeout: 5 })];
    const after = [
      parallel('p', [a], [c, b]),
      work('w', { retry: { max_attempts: 2 } }),
      http('h'),
    ];
    assert.deepEqual(
      diff(before, after).entries.map(({ summary }) => summary),
      [
        'step h with the handler http_request is added to the root list',
        'blocks change their order: c stands where b stood',
        'step w: retry changes from none to {"max_attempts":2}',
        'step b moves from branch 1 of parallel p to branch 2 of parallel p',
        'step w: timeout changes from 5 to none',
      ],
    );
  });

  test('never shows values of parameters', () => {
    const found = diff(
      [transform('s', { key: 'old-secret' })],
      [transform('s', { key: 'secret' })],
    );
    assert.deepEqual(found.entries[0]?.summary, 'step s: params change: key');
  });
});

describe('large definitions', () => {
  const many = (count: number, block: (id: string) => Block, from = 0) =>
    Array.from({ length: count }, (_, i) => block(`s${from + i}`));

  test(`of entries beyond ${DIFF_ENTRIES_MAX} the least severe are left out`, () => {
    const after = many(BLOCKS_MAX, (id) =>
      work(id, { timeout: 5, params: { n: 1 }, retry: { max_attempts: 2 } }),
    );
    const found = diff(many(BLOCKS_MAX, work), after);
    assert.equal(found.entries.length, DIFF_ENTRIES_MAX);
    assert.equal(found.entries_omitted, 3 * BLOCKS_MAX - DIFF_ENTRIES_MAX);
    assert.equal(found.entries.filter(({ severity }) => severity === RISK).length, BLOCKS_MAX);
  });

  test('blocks may nest as deep as they can be stored', () => {
    const nested = (leaf: Block) => {
      let block = leaf;
      for (let i = 1; i < DEPTH_MAX; i += 1) block = parallel(`p${i}`, [block]);
      return [block];
    };
    assert.deepEqual(linesOf(diff(nested(a), nested(b))), [
      'behavioral block_added b',
      'behavioral block_removed a',
    ]);
  });

  test('the work grows with the number of blocks, not with its square', () => {
    const pair = (count: number): [Block[], Block[]] => {
      const split = (blocks: Block[]) => [
        parallel('p', ...blocks.slice(0, count / 2).map((block) => [block])),
        router(
          'r',
          blocks.slice(count / 2).map((block, i) => [`data.k${i}`, [block]]),
        ),
      ];
      const refer = (id: string) => work(id, { params: { n: '{{ outputs.none.n }}' } });
      return [split(many(count - 2, work)), split(many(count - 2, refer).reverse())];
    };
    const costOf = ([before, after]: [Block[], Block[]]) => {
      const start = process.cpuUsage();
      diff(before, after);
      const { user, system } = process.cpuUsage(start);
      return user + system;
    };
    const [small, large] = [pair(BLOCKS_MAX / 4), pair(BLOCKS_MAX)];
    const costs = Array.from({ length: 7 }, () => [costOf(small), costOf(large)] as const);
    const ratio =
      Math.min(...costs.map(([, cost]) => cost)) / Math.min(...costs.map(([cost]) => cost));
    // Of the processor, for four times as many blocks: 4 to 6 when it is linear, 16 if quadratic.
    assert.ok(ratio < 10, `${ratio}`);
  });
});
