/** The semantic diff: what counts as a change, how grave it is, what is no change at all, and its laws. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type ReleaseSide, semanticDiff } from '../../actors/release/core/diff.js';
import { BLOCKS_MAX, type Block } from '../../schema/blocks.js';
import { DIFF_ENTRIES_MAX, SEVERITIES } from '../../schema/diff-entry.js';
import type { SemanticDiff } from '../../schema/release.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { trees } from '../helpers/block-trees.js';
import { byDepth } from '../helpers/depth.js';
import * as player from '../helpers/player.js';
import { check } from '../helpers/properties.js';

const { forEach, http, loop, noop, parallel, race, sleep, tryCatch, work } = player;

const RISK = 'side_effect_risk';

const diff = (before: Block[], after: Block[]): SemanticDiff =>
  semanticDiff({ blocks: before }, { blocks: after });

/** What is said of most entries is left out. */
const SHORT = {
  ...{ behavioral: '', side_effect_risk: 'risk ' },
  ...{ incompatible: 'incompatible ', informational: 'note ' },
};

/** Each entry in a few words. */
function linesOf({ entries }: SemanticDiff): string[] {
  return entries.map(
    ({ severity, category, block_id }) => `${SHORT[severity]}${category} ${block_id ?? '-'}`,
  );
}

type Blocks = Block | Block[];
type Case = readonly [title: string, before: Blocks, after: Blocks, expected: string];

function table(name: string, cases: readonly Case[]): void {
  describe(name, () => {
    for (const [title, before, after, expected] of cases) {
      const found = () => linesOf(diff([before].flat(), [after].flat())).join(', ');
      test(title, () => assert.equal(found(), expected));
    }
  });
}

const step = (id: string, handler: string, fields: object = {}): Block =>
  ({ type: 'step', id, handler, ...fields }) as Block;
const transform = (id: string, params: JsonObject): Block => step(id, 'transform', { params });
const router = (routes: Record<string, Block[]>, rest?: Block[]) => {
  const list = Object.entries(routes).map(([condition, blocks]) => ({ condition, blocks }));
  return { type: 'router', id: 'r', routes: list, ...(rest && { default: rest }) } as Block;
};
const looping = (condition: string, max: number) => loop('l', condition, max, [a]);
const side = (...branches: Block[][]) => parallel('p', ...branches);
const attempt = (...lists: [Block[], Block[], Block[]?]) => tryCatch('t', ...lists);

const [a, b, c] = [noop('a'), noop('b'), noop('c')];
const [x, y] = [step('x', 'log'), step('y', 'log')];
const [first, either, other] = [race('r', [a]), race('r', [a], [b]), race('q', [x])];
const goOn = router({ go: [a], on: [b] });
const succeeding = { ...either, semantics: 'first_to_succeed' } as Block;
const splitting = (weight: number, lists: Block[][] = [[a]], type = 'ab_split') => {
  const [one = [], two = []] = lists;
  const variants = [
    { name: 'one', weight, blocks: one },
    { name: 'two', weight: 1, blocks: two },
  ];
  return { type, id: 'v', variants } as Block;
};
const compensating = (action: Blocks, compensation?: Blocks): Block => ({
  type: 'saga',
  id: 'g',
  steps: [{ id: 's', action, ...(compensation === undefined ? {} : { compensation }) }],
});
const child = (more: object = {}) =>
  ({ type: 'sub_sequence', id: 's', sequence_name: 'n', ...more }) as Block;

table('steps that come and go', [
  ['a built-in that reaches nothing', a, [a, step('n', 'log')], 'block_added n'],
  ['a sleep', a, [a, sleep('n', 5)], 'block_added n'],
  ['a request over HTTP', a, [a, http('n')], 'risk block_added n'],
  ['a step of a worker', a, [a, work('n')], 'risk block_added n'],
  ['a step less, whatever it did', [a, work('n')], a, 'block_removed n'],
  ['a block around a step, which it moves', a, side([a]), 'block_added p, structure_changed a'],
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
    ['wait_for_input', { prompt: 'a' }, { prompt: 'b' }, 'approval_gate_changed s'],
    ['wait_for_input', {}, { approvers: ['legal'] }, 'approval_gate_changed s'],
  ];
  for (const [field, before, after, expected] of WORK) {
    test(`${field} of a worker`, () => {
      const found = diff([work('s', { [field]: before })], [work('s', { [field]: after })]);
      assert.deepEqual(linesOf(found), [expected]);
    });
  }
});

table('handlers and parameters', [
  ['handler', noop('s'), step('s', 'log'), 'risk handler_changed s'],
  ['built-in', transform('s', { n: 1 }), transform('s', { n: 2 }), 'params_changed s'],
  ['null is a value', transform('s', {}), transform('s', { n: null }), 'params_changed s'],
  [
    'params, judged by the handler of the candidate',
    http('s', { params: { n: 1 } }),
    transform('s', { n: 2 }),
    'risk handler_changed s, params_changed s',
  ],
  ['another version of a child', child(), child({ version: 2 }), 'sub_sequence_changed s'],
  ['input of a child', child({ input: {} }), child({ input: { n: 1 } }), 'params_changed s'],
  ['a null of a child', child(), child({ input: null, remark: 'x' }), ''],
]);

describe('what means the same', () => {
  const NULLS = {
    ...{ params: null, retry: null, timeout: null, delay: null, rate_limit_key: null },
    ...{ queue_name: null, send_window: null, output_schema: null, when: null, cancellable: null },
  };
  const limits = { max_iterations: 1_000 };
  const once = { max_attempts: 2 };
  const cases: readonly (readonly [title: string, before: Block, after: object])[] = [
    ['a member that no step has', work('s'), { remark: 'x' }],
    ['a member that no block has', side([a]), { remark: 'x' }],
    ['null and an absent field', work('s'), NULLS],
    ['null and an absent list', attempt([b], []), { finally_block: null }],
    ['null and an absent default', router({ go: [c] }), { default: null }],
    ['a null of a setting', work('s', { retry: once }), { retry: { ...once, retry_if: null } }],
    [
      'null and false of a delay',
      work('s', { delay: { duration: 5 } }),
      { delay: { duration: 5, jitter: null, fire_at_local: false } },
    ],
    ['the default of a race', either, { semantics: 'first_to_resolve' }],
    ['the default of a loop', { type: 'loop', id: 'l', condition: 'go', body: [c] }, limits],
    ['the defaults of a for_each', forEach('f', 'items', [x]), { item_var: 'item', ...limits }],
    ['the default of a step', work('s'), { cancellable: true }],
  ];
  for (const [title, before, after] of cases) {
    test(title, () =>
      assert.deepEqual(linesOf(diff([before], [{ ...before, ...after } as Block])), []),
    );
  }
});

table('composite blocks', [
  ['another type', side([a]), race('p', [a]), 'block_type_changed p'],
  ['a step with an effect', side([]), work('p'), 'risk block_type_changed p'],
  ['loop: condition', looping('data.go', 3), looping('data.on', 3), 'loop_changed l'],
  ['loop: passes', looping('data.go', 3), looping('data.go', 4), 'loop_changed l'],
  [
    'each term of a for_each',
    forEach('f', 'items', [a], { max_iterations: 2 }),
    forEach('f', 'others', [a], { item_var: 'row', max_iterations: 3 }),
    'loop_changed f, loop_changed f, loop_changed f',
  ],
  ['the semantics of a race', either, succeeding, 'race_changed r'],
  ['a guard', side([a]), { ...side([a]), when: 'go' } as Block, 'when_guard_changed p'],
  ['the word of a split', splitting(1), splitting(1, [[a]], 'a_b_split'), ''],
  ['a weight', splitting(1), splitting(2), 'split_changed v'],
  ['a block in another variant', splitting(1), splitting(1, [[], [a]]), 'structure_changed a'],
  ['one block instead of a list of it', compensating([a], b), compensating(a, [b]), ''],
  ['a compensation', compensating(a), compensating(a, b), 'block_added b, saga_changed g'],
  ['a branch without blocks', first, race('r', [a], []), 'structure_changed r'],
  ['a condition', router({ go: [a] }), router({ on: [a] }), 'router_changed r'],
  [
    'a route in front of others, whose blocks stay where they are',
    router({ go: [a] }, [c]),
    router({ on: [b], go: [a] }, [c]),
    'block_added b, router_changed r',
  ],
  ['order of routes', goOn, router({ on: [b], go: [a] }), 'blocks_reordered -, router_changed r'],
  ['from try to catch', attempt([a, b], []), attempt([a], [b]), 'structure_changed b'],
  [
    'a step that moves between branches',
    side([a, b], [c, x, y]),
    side([a], [c, x, y, b]),
    'blocks_reordered -, structure_changed b',
  ],
  ['branches', side([a, b], [c]), side([c], [a, b]), 'blocks_reordered -'],
  ['the order of blocks', [side([a]), other, b], [other, side([a]), b], 'blocks_reordered -'],
]);

describe('references to outputs', () => {
  const incompatible = ['incompatible missing_output_reference s'];
  const without = (id: string, params: JsonObject, ...others: Block[]) =>
    linesOf(
      diff([noop(id), ...others, transform('s', params)], [...others, transform('s', params)]),
    ).filter((line) => line.includes('missing'));

  for (const text of [
    ...['outputs.gone', '{{ outputs.gone.total }}', '{{ outputs.gone | default(1) }}'],
    'a {{ data.n }} and {{ outputs.a.n }}{{outputs.gone.n}}',
    ...['{{ steps.gone.n }}', 'outputs.a.n == outputs.gone.n'],
  ]) {
    test(`${text} names no block any more`, () =>
      assert.deepEqual(without('gone', { deep: [{ text }] }, a), incompatible));
  }

  for (const text of [
    ...['{{ outputs.a.n }}', '{{ outputs.my step.n }}', '{{outputs.with-hyphen}}'],
    ...['outputs.a-1 > 0', 'The outputs.', 'all outputs. Gone', 'data.outputs.gone'],
    ...['my_outputs.gone', 'see steps.gone', '{{ outputs }}'],
  ]) {
    test(`${text} does not`, () => {
      const others = [a, noop('my step'), noop('with-hyphen')];
      assert.deepEqual(without('gone', { text, 'outputs.gone': 1 }, ...others), []);
    });
  }

  test('a step has one entry, which names them all', () => {
    const params = { one: '{{ outputs.g1.n }}', two: ['{{ outputs.g2.n }} {{ outputs.g1.n }}'] };
    const { entries } = diff([transform('s', {})], [transform('s', params)]);
    const missing = entries.filter(({ category }) => category === 'missing_output_reference');
    assert.equal(missing.length, 1);
    assert.match(missing[0]!.summary, /g1, g2$/);
  });
});

describe('the sequence as a whole', () => {
  const compare = (...schemas: [JsonObject | null | undefined, JsonObject | null | undefined]) => {
    const [before, after] = schemas.map((input_schema) => {
      return { blocks: [a], ...(input_schema === undefined ? {} : { input_schema }) };
    });
    return linesOf(semanticDiff(before!, after!)).join();
  };

  test('a change of input_schema is one, and a demand that was not there before narrows it', () => {
    const [changed, narrowed] = ['input_schema_changed -', 'incompatible input_schema_narrowed -'];
    assert.equal(compare(undefined, { required: ['n'] }), narrowed);
    assert.equal(compare({ required: ['n'] }, { required: ['m', 'n'], type: 'object' }), narrowed);
    assert.equal(compare({ required: ['n', 'm'] }, { required: ['n'] }), changed);
    assert.equal(compare({ type: 'object' }, undefined), changed);
    assert.equal(compare(null, undefined), '');
    assert.equal(compare({ type: 'object', title: 't' }, { title: 't', type: 'object' }), '');
  });

  test('hooks are compared as a whole', () => {
    const hook = (handler: string, fields: object = {}) => [step('h', handler, fields)];
    const between = (before: object, after: object) =>
      linesOf(semanticDiff({ blocks: [a], ...before }, { blocks: [a], ...after })).join();
    const log = { on_failure: hook('log') };
    assert.equal(between(log, { on_failure: hook('log', { when: null }) }), '');
    assert.equal(between({}, { on_cancel: null, on_failure: [] }), '');
    assert.equal(between({}, log), 'hooks_changed -');
    const other = { on_cancel: hook('http_request') };
    assert.equal(between(log, other), 'risk hooks_changed -,hooks_changed -');
    const cancelled = { cancel_on: [{ event: 'cancelled', key: null }] };
    assert.equal(between({}, cancelled), 'cancel_on_changed -');
    assert.equal(between(cancelled, { cancel_on: [{ event: 'cancelled' }] }), '');
  });

  test('how creations are collected: a list of them is other data', () => {
    const between = (before: object, after: object) =>
      linesOf(semanticDiff({ blocks: [a], ...before }, { blocks: [a], ...after })).join();
    const debounce = { wait_ms: 1 };
    assert.equal(between({ debounce }, { debounce: { ...debounce, key: null } }), '');
    assert.equal(between({}, { debounce }), 'collecting_changed -');
    const batch = { size: 2, wait_ms: 1 };
    assert.equal(between({ batch }, { batch: { ...batch, size: 3 } }), 'collecting_changed -');
    const changed = semanticDiff({ blocks: [a] }, { blocks: [a], batch });
    assert.equal(changed.max_severity, 'incompatible');
  });

  test('the members by which instances are found', () => {
    const between = (before: object, after: object) =>
      semanticDiff({ blocks: [a], ...before }, { blocks: [a], ...after });
    const searchable = ['order', 'customer.email'];
    assert.deepEqual(between({ searchable }, { searchable: searchable.toReversed() }).entries, []);
    assert.deepEqual(linesOf(between({}, { searchable })), ['note searchable_changed -']);
    assert.equal(between({}, { searchable }).max_severity, 'informational');
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
      ...['é', 'z', 'Z'].map((id) => noop(id)),
      http('h'),
    ];
    const found = diff(before, after);
    assert.equal(
      linesOf(found).join(', '),
      'incompatible missing_output_reference w, risk block_added h, risk params_changed w, ' +
        'block_added Z, block_added z, block_added é, block_removed B, block_removed a, ' +
        'blocks_reordered -, retry_changed w, timeout_changed w',
    );
    assert.equal(found.max_severity, 'incompatible');
  });

  test('tells what the author of the candidate was warned of', () => {
    const { candidate_lint } = diff([a], [step('s', 'http_reqest')]);
    assert.deepEqual(candidate_lint, [
      'blocks[0].handler: the handler http_reqest is left to external workers; did you mean http_request?',
    ]);
  });

  test('says in every summary what has become of which block', () => {
    const before = [parallel('p', [a, b], [c]), work('w', { timeout: 5 })];
    const retried = work('w', { retry: { max_attempts: 2 } });
    const after = [parallel('p', [a], [c, b]), retried, http('h')];
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
});

// ---------------------------------------------------------------- laws

const RUNS = byDepth(125, 500);

const schemas: fc.Arbitrary<Pick<ReleaseSide, 'input_schema'>> = fc.constantFrom(
  {},
  { input_schema: null },
  { input_schema: { required: ['n'] } },
  { input_schema: { type: 'object' } },
);
const anySide: fc.Arbitrary<ReleaseSide> = fc
  .record({ tree: trees({}), schema: schemas })
  .map(({ tree, schema }) => ({ blocks: tree.blocks, ...schema }));
const pair = fc.tuple(anySide, anySide);

const copyOf = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

/** The same JSON with the keys of every object the other way round. */
function turned<T>(value: T): T {
  const turn = (json: JsonValue): JsonValue => {
    if (typeof json !== 'object' || json === null) return json;
    if (Array.isArray(json)) return json.map(turn);
    const members = Object.entries(json).map(([key, inner]) => [key, turn(inner)] as const);
    return Object.fromEntries(members.reverse());
  };
  return turn(value as JsonValue) as T;
}

/** Without what is the default. */
function textOf(blocks: readonly Block[]): string {
  return JSON.stringify(blocks, (_, value) =>
    value === 'first_to_resolve' || value === 'item' ? undefined : value,
  );
}

test('equal definitions do not differ, and different ones the same way every time, unchanged by it', (t) => {
  check(t, RUNS, pair, ([one, other]) => {
    const before = JSON.stringify([one, other]);
    assert.deepEqual(semanticDiff(one, turned(one)).entries, []);
    const found = semanticDiff(one, other);
    assert.deepEqual(semanticDiff(turned(one), copyOf(other)), found);
    assert.deepEqual(copyOf(found), found);
    assert.equal(JSON.stringify([one, other]), before);
  });
});

test('different definitions differ, and the first entry is as severe as any', (t) => {
  check(t, RUNS, pair, ([one, other]) => {
    const { entries, max_severity } = semanticDiff(one, other);
    if (entries.length === 0) assert.equal(textOf(one.blocks), textOf(other.blocks));
    assert.equal(entries[0]?.severity, max_severity);
    const ranks = entries.map(({ severity }) => SEVERITIES.indexOf(severity));
    const sorted = ranks.toSorted((a, b) => b - a);
    assert.deepEqual(ranks, sorted);
  });
});
