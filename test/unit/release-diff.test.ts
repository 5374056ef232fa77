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

/** What is said of most entries is left out. */
const SHORT = {
  behavioral: '',
  side_effect_risk: 'risk ',
  incompatible: 'incompatible ',
  informational: 'note ',
};

/** Each entry in a few words. */
function linesOf({ entries }: SemanticDiff): string[] {
  return entries.map(
    ({ severity, category, block_id }) => `${SHORT[severity]}${category} ${block_id ?? '-'}`,
  );
}

type Case = readonly [title: string, before: Block[], after: Block[], expected: string];

function table(name: string, cases: readonly Case[]): void {
  describe(name, () => {
    for (const [title, before, after, expected] of cases) {
      test(title, () => assert.equal(linesOf(diff(before, after)).join(', '), expected));
    }
  });
}

const step = (id: string, handler: string, fields: object = {}): Block => ({
  type: 'step',
  id,
  handler,
  ...fields,
});
const transform = (id: string, params: JsonObject): Block => step(id, 'transform', { params });
const router = (routes: Record<string, Block[]>, rest?: Block[]) => {
  const list = Object.entries(routes).map(([condition, blocks]) => ({ condition, blocks }));
  return { type: 'router', id: 'r', routes: list, ...(rest && { default: rest }) } as Block;
};
const looping = (condition: string, max: number) => loop('l', condition, max, [a]);

const a = noop('a');
const b = noop('b');
const c = noop('c');
const guarded = { ...parallel('p', [a]), when: 'go' } as Block;
const splitting = (
  type: 'ab_split' | 'a_b_split',
  weight: number,
  ...[first = [], second = []]: Block[][]
): Block => ({
  type,
  id: 'v',
  variants: [
    { name: 'one', weight, blocks: first },
    { name: 'two', weight: 1, blocks: second },
  ],
});
const compensating = (action: Block | Block[], compensation?: Block | Block[]): Block => ({
  type: 'saga',
  id: 'g',
  steps: [{ id: 's', action, ...(compensation === undefined ? {} : { compensation }) }],
});
const [x, y] = [step('x', 'log'), step('y', 'log')];

table('steps that come and go', [
  ['a built-in that reaches nothing', [a], [a, step('n', 'log')], 'block_added n'],
  ['a sleep', [a], [a, sleep('n', 5)], 'block_added n'],
  ['a request over HTTP', [a], [a, http('n')], 'risk block_added n'],
  ['a step of a worker', [a], [a, work('n')], 'risk block_added n'],
  ['a step less, whatever it did', [a, work('n')], [a], 'block_removed n'],
  [
    'a block around a step, which it moves',
    [a],
    [parallel('p', [a])],
    'block_added p, structure_changed a',
  ],
  [
    'a branch with a step in it',
    [parallel('p', [a])],
    [parallel('p', [a], [http('n')])],
    'risk block_added n, structure_changed p',
  ],
]);

describe('fields of steps', () => {
  const WORK: readonly (readonly [string, before: unknown, after: unknown, expected: string])[] = [
    ['params', undefined, { n: 1 }, 'risk params_changed s'],
    ['retry', undefined, { max_attempts: 2 }, 'retry_changed s'],
    ['timeout', 5, undefined, 'timeout_changed s'],
    ['delay', undefined, { duration: 5 }, 'delay_changed s'],
    ['rate_limit_key', 'k', 'l', 'rate_limit_changed s'],
    ['queue_name', undefined, 'q', 'queue_changed s'],
    ['send_window', { start_hour: 8 }, { start_hour: 9 }, 'send_window_changed s'],
    ['output_schema', undefined, { type: 'object' }, 'output_schema_changed s'],
    ['when', undefined, 'data.go', 'when_guard_changed s'],
    ['cancellable', undefined, false, 'cancellable_changed s'],
  ];
  for (const [field, before, after, expected] of WORK) {
    test(`${field} of a worker`, () => {
      const found = diff([work('s', { [field]: before })], [work('s', { [field]: after })]);
      assert.deepEqual(linesOf(found), [expected]);
    });
  }
});

table('handlers and parameters', [
  ['handler', [noop('s')], [step('s', 'log')], 'risk handler_changed s'],
  ['built-in', [transform('s', { n: 1 })], [transform('s', { n: 2 })], 'params_changed s'],
  ['null is a value', [transform('s', {})], [transform('s', { n: null })], 'params_changed s'],
  [
    'params, judged by the handler of the candidate',
    [http('s', { params: { n: 1 } })],
    [transform('s', { n: 2 })],
    'risk handler_changed s, params_changed s',
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

describe('what means the same', () => {
  const NULLS = {
    ...{ params: null, retry: null, timeout: null, delay: null, rate_limit_key: null },
    ...{ queue_name: null, send_window: null, output_schema: null, when: null, cancellable: null },
  };
  const limits = { max_iterations: 1_000 };
  const cases: readonly (readonly [title: string, before: Block, after: object])[] = [
    ['a member that no step has', work('s'), { remark: 'x' }],
    ['a member that no block has', parallel('p', [a]), { remark: 'x' }],
    [
      'the order of keys',
      transform('s', { m: 1, n: { o: 2, p: 3 } }),
      { params: { n: { p: 3, o: 2 }, m: 1 } },
    ],
    ['null and an absent field', work('s'), NULLS],
    ['null and an absent list', tryCatch('t', [b], []), { finally_block: null }],
    ['null and an absent default', router({ go: [c] }), { default: null }],
    [
      'null and an absent field of a setting',
      work('s', { retry: { max_attempts: 2 }, delay: { duration: 5 } }),
      {
        retry: { max_attempts: 2, retry_if: null },
        delay: { duration: 5, jitter: null, fire_at_local: false },
      },
    ],
    ['the default of a race', race('r', [a], [b]), { semantics: 'first_to_resolve' }],
    ['the default of a loop', { type: 'loop', id: 'l', condition: 'go', body: [c] }, limits],
    ['the defaults of a for_each', forEach('f', 'items', [x]), { item_var: 'item', ...limits }],
    ['the default of a step', work('s'), { cancellable: true }],
  ];
  for (const [title, before, after] of cases) {
    test(title, () =>
      assert.deepEqual(linesOf(diff([before], [{ ...before, ...after } as Block])), []),
    );
  }

  test('the order of the members of a block', () => {
    const turned = Object.fromEntries(Object.entries(work('s', { timeout: 5 })).reverse());
    assert.deepEqual(linesOf(diff([work('s', { timeout: 5 })], [turned as unknown as Block])), []);
  });
});

table('composite blocks', [
  ['another type', [parallel('p', [a])], [race('p', [a])], 'block_type_changed p'],
  ['a step with an effect', [parallel('p', [])], [work('p')], 'risk block_type_changed p'],
  ['loop: condition', [looping('data.go', 3)], [looping('data.on', 3)], 'loop_changed l'],
  ['loop: passes', [looping('data.go', 3)], [looping('data.go', 4)], 'loop_changed l'],
  [
    'each term of a for_each',
    [forEach('f', 'items', [a], { max_iterations: 2 })],
    [forEach('f', 'others', [a], { item_var: 'row', max_iterations: 3 })],
    'loop_changed f, loop_changed f, loop_changed f',
  ],
  [
    'the semantics of a race',
    [race('r', [a], [b])],
    [{ ...race('r', [a], [b]), semantics: 'first_to_succeed' } as Block],
    'race_changed r',
  ],
  ['a guard of a composite', [parallel('p', [a])], [guarded], 'when_guard_changed p'],
  ['the word of a split', [splitting('ab_split', 1, [a])], [splitting('a_b_split', 1, [a])], ''],
  ['a weight', [splitting('ab_split', 1, [a])], [splitting('ab_split', 2, [a])], 'split_changed v'],
  [
    'a block that goes over to another variant',
    [splitting('ab_split', 1, [a])],
    [splitting('ab_split', 1, [], [a])],
    'structure_changed a',
  ],
  ['one block instead of a list of it', [compensating([a], b)], [compensating(a, [b])], ''],
  [
    'a compensation added',
    [compensating(a)],
    [compensating(a, b)],
    'block_added b, saga_changed g',
  ],
  [
    'an action that becomes the compensation',
    [compensating([a, b], c)],
    [compensating([a], [b, c])],
    'structure_changed b',
  ],
  ['a branch without blocks', [race('r', [a])], [race('r', [a], [])], 'structure_changed r'],
  ['a condition', [router({ go: [a] })], [router({ on: [a] })], 'router_changed r'],
  [
    'a route in front of others, whose blocks stay where they are',
    [router({ go: [a] }, [c])],
    [router({ on: [b], go: [a] }, [c])],
    'block_added b, router_changed r',
  ],
  [
    'the order of routes',
    [router({ go: [a], on: [b] })],
    [router({ on: [b], go: [a] })],
    'blocks_reordered -, router_changed r',
  ],
  [
    'bodies that change their routes',
    [router({ go: [a], on: [b] })],
    [router({ go: [b], on: [a] })],
    'blocks_reordered -, structure_changed a, structure_changed b',
  ],
  [
    'the default of a router added',
    [router({ go: [a] })],
    [router({ go: [a] }, [b])],
    'block_added b, structure_changed r',
  ],
  [
    'the finally list removed',
    [tryCatch('t', [a], [], [b])],
    [tryCatch('t', [a], [])],
    'block_removed b, structure_changed t',
  ],
  [
    'from try to catch',
    [tryCatch('t', [a, b], [])],
    [tryCatch('t', [a], [b])],
    'structure_changed b',
  ],
  [
    'a step that moves between branches',
    [parallel('p', [a, b], [c, x, y])],
    [parallel('p', [a], [c, x, y, b])],
    'blocks_reordered -, structure_changed b',
  ],
  ['branches', [parallel('p', [a, b], [c])], [parallel('p', [c], [a, b])], 'blocks_reordered -'],
  [
    'the order of composite blocks, all else being equal',
    [parallel('p', [a]), parallel('q', []), b],
    [parallel('q', []), parallel('p', [a]), b],
    'blocks_reordered -',
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
    test(`${text} names no block any more`, () =>
      assert.deepEqual(without('gone', { deep: [{ text }] }, a), incompatible));
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
    'params_changed s',
  ]);
});

describe('the sequence as a whole', () => {
  const withSchema = (input_schema?: JsonObject | null) => ({
    blocks: [a],
    ...(input_schema === undefined ? {} : { input_schema }),
  });
  const compare = (before: JsonObject | null | undefined, after: JsonObject | null | undefined) =>
    linesOf(semanticDiff(withSchema(before), withSchema(after)));
  const changed = ['input_schema_changed -'];
  const narrowed = ['incompatible input_schema_narrowed -'];

  test('a demand that was not there before', () => {
    assert.deepEqual(compare(undefined, { required: ['n'] }), narrowed);
    const seen = compare({ required: ['n'] }, { required: ['m', 'n'], type: 'object' });
    assert.deepEqual(seen, narrowed);
  });

  test('hooks are compared as a whole', () => {
    const hook = (handler: 'log' | 'http_request', fields: object = {}) =>
      ({ type: 'step', id: 'h', handler, ...fields }) as const;
    const between = (before: object, after: object) =>
      linesOf(semanticDiff({ blocks: [a], ...before }, { blocks: [a], ...after }));
    const log = { on_failure: [hook('log')] };
    assert.deepEqual(between(log, { on_failure: [hook('log', { when: null })] }), []);
    assert.deepEqual(between({}, { on_cancel: null, on_failure: [] }), []);
    assert.deepEqual(between({}, log), ['hooks_changed -']);
    assert.deepEqual(between(log, { on_cancel: [hook('http_request')] }), [
      'risk hooks_changed -',
      'hooks_changed -',
    ]);
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
    const found = linesOf({ entries });
    assert.deepEqual(found, ['risk params_changed s', 'credential_requirement_added -']);
    assert.match(entries[1]!.summary, /: two\/key$/);
    assert.deepEqual(linesOf(diff(using('one', 'two'), using('two'))), ['risk params_changed s']);
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
      'risk block_added h',
      'risk params_changed w',
      'block_added Z',
      'block_added z',
      'block_added é',
      'block_removed B',
      'block_removed a',
      'blocks_reordered -',
      'retry_changed w',
      'timeout_changed w',
    ]);
    assert.equal(found.max_severity, 'incompatible');
  });

  test('of equal definitions is empty', () => {
    assert.deepEqual(diff([a, work('w')], [a, work('w')]), { entries: [] });
  });

  test('tells what the author of the candidate was warned of', () => {
    const { candidate_lint } = diff([a], [step('s', 'http_reqest')]);
    assert.deepEqual(candidate_lint, [
      'blocks[0].handler: the handler http_reqest is left to external workers; did you mean http_request?',
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
    assert.deepEqual(linesOf(diff(nested(a), nested(b))), ['block_added b', 'block_removed a']);
  });

  test('the work grows with the number of blocks, not with its square', () => {
    const pair = (count: number): [Block[], Block[]] => {
      const split = (blocks: Block[]) => [
        parallel('p', ...blocks.slice(0, count / 2).map((block) => [block])),
        router(Object.fromEntries(blocks.slice(count / 2).map((block, i) => [`k${i}`, [block]]))),
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
    const [small, large] = [pair(BLOCKS_MAX / 10), pair((BLOCKS_MAX * 2) / 5)];
    const costs = Array.from({ length: 5 }, () => [costOf(small), costOf(large)] as const);
    const ratio =
      Math.min(...costs.map(([, cost]) => cost)) / Math.min(...costs.map(([cost]) => cost));
    // Of the processor, for four times as many blocks: 4 to 6 when it is linear, 16 if quadratic.
    assert.ok(ratio < 10, `${ratio}`);
  });
});
