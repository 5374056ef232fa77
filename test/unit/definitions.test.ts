/** Definitions: how they are compiled, what is refused, and laws of what is told of them. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BLOCKS_MAX, type Block, DEPTH_MAX } from '../../schema/blocks.js';
import type { Finding } from '../../schema/finding.js';
import { CreateSequence as SCHEMA } from '../../schema/sequence.js';
import { createValidators } from '../../schema/validators.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { lintDefinition } from '../../src/core/lint/definition.js';
import { compilePlan } from '../../src/core/plan.js';
import { judgeDefinition } from '../../src/http/definition.js';
import { trees } from '../helpers/block-trees.js';
import { byDepth } from '../helpers/depth.js';
import {
  forEach,
  loop,
  noop,
  parallel,
  planOf,
  transform,
  tryCatch,
  work,
} from '../helpers/player.js';
import { check } from '../helpers/properties.js';

function refusal(blocks: Block[]): string {
  const compiled = compilePlan({ id: 's', blocks });
  return compiled.ok ? '' : compiled.message;
}

function nested(depth: number): Block {
  let block = noop('leaf');
  for (let i = 1; i < depth; i += 1) block = parallel(`p${i}`, [block]);
  return block;
}

describe('what is refused', () => {
  test('an id that is used twice anywhere, or an output_schema that nothing would check', () => {
    assert.match(refusal([noop('a'), noop('a')]), /block id a is not unique/);
    assert.match(refusal([parallel('p', [noop('a')], [loop('a', 'x', 1, [noop('b')])])]), /id a/);
    assert.match(refusal([work('a', { output_schema: {} })]), /output_schema/);
  });

  test('deeper nesting and more blocks than there may be', () => {
    assert.equal(refusal([nested(DEPTH_MAX)]), '');
    assert.match(refusal([nested(DEPTH_MAX + 1)]), /deeper than 64/);
    const many = (n: number) => Array.from({ length: n }, (_, i) => noop(`s${i}`));
    assert.equal(refusal(many(BLOCKS_MAX)), '');
    assert.match(refusal([parallel('p', many(BLOCKS_MAX))]), /at most 5000 blocks/);
  });
});

describe('an action of a saga that may fail behind what it has done', () => {
  const [a, b] = [work('a'), work('b')];
  const http = (id: string, params: object): Block =>
    ({ type: 'step', id, handler: 'http_request', params }) as Block;
  const failing = { type: 'step', id: 'f', handler: 'fail' } as Block;
  const race: Block = { type: 'race', id: 'r', branches: [[a, b], [noop('c')]] };
  const scope: Block = { type: 'cancellation_scope', id: 'c', blocks: [a, b] };
  const cases: readonly [string, Block[], string?][] = [
    ['two that act', [a, b], 'a, b'],
    ['one that acts before a pure one that may fail', [a, failing], 'a, f'],
    ['one that acts before a limit of time', [a, { ...noop('n'), timeout: 5 } as Block], 'a, n'],
    ['a request that changes something', [http('h', { method: 'POST' }), b], 'h, b'],
    ['a scope', [scope], 'a, b'],
    ['branches', [parallel('p', [noop('n'), a], [b])], 'a, b'],
    ['iterations', [forEach('e', 'xs', [a])], 'a, a'],
    ['one that acts', [a]],
    ['one that acts behind others', [noop('n'), a]],
    ['one that acts before what does not fail', [a, noop('n'), transform('t', { x: 1 })]],
    ['a request that reads', [http('h', {}), b]],
    ['what is caught', [tryCatch('t', [a, b], [work('undo'), failing])]],
    ['one before what is caught for good', [a, tryCatch('t', [b], [noop('n')])]],
    ['a race', [race]],
  ];
  const warned = (action: Block[], more: object) => {
    const steps = [{ id: 's', action, ...more }];
    const lint = lintDefinition(SCHEMA, { blocks: [{ type: 'saga', id: 'g', steps }] }, LINT);
    return lint.warnings.filter(({ message }) => message.includes('not compensated'));
  };
  const LINT = { name: 'a sequence' };
  for (const [what, action, pair] of cases) {
    test(`is told where there is a compensation: ${what}: ${pair ?? 'no'}`, () => {
      const found = warned(action, { compensation: work('u') });
      const names = found.map(({ message }) => {
        const [, failing, done] = /^when (\w+) fails.*?, what (\w+)/.exec(message) ?? [];
        return `${done}, ${failing}`;
      });
      assert.deepEqual(names, pair === undefined ? [] : [pair]);
      assert.deepEqual(warned(action, {}), []);
    });
  }
});

test('a key without a template is warned about, with the template that was probably meant', () => {
  const suggested = (key: string, more: (key: string) => object) => {
    const { errors, warnings } = lintDefinition(
      SCHEMA,
      { blocks: [], ...more(key) },
      { name: 'a sequence' },
    );
    assert.deepEqual(errors, []);
    return warnings.map(({ path, suggestion }) => [path, suggestion]);
  };
  const limit = (key: string) => ({ concurrency: { key, limit: 1 } });
  const cancel = (key: string) => ({ cancel_on: [{ event: 'e', key }] });
  for (const [key, meant] of [
    ['customer', '{{ data.customer }}'],
    ['data.customer', '{{ data.customer }}'],
    ['config.region', '{{ config.region }}'],
    ['all customers', undefined],
  ] as const) {
    assert.deepEqual(suggested(key, limit), [['concurrency.key', meant]]);
  }
  assert.deepEqual(suggested('data.order', cancel), [['cancel_on[0].key', '{{ data.order }}']]);
  assert.deepEqual(suggested('everything', cancel), []);
});

test('a blank key is refused', () => {
  const keyed = { concurrency: { key: ' ', limit: 1 }, cancel_on: [{ event: 'e', key: '\t' }] };
  const { errors } = lintDefinition(SCHEMA, { blocks: [], ...keyed }, { name: 'a sequence' });
  assert.deepEqual(errors.map(({ path }) => path).sort(), ['cancel_on[0].key', 'concurrency.key']);
});

test('the plan fills in the defaults, for null as for what is absent', () => {
  const [a, f, none] = planOf([
    work('a', { retry: { max_attempts: 2 } }),
    forEach('f', 'xs', [noop('b')]),
    work('n', { params: null, delay: null, retry: null, timeout: null, when: null }),
  ]).nodes.filter(({ id }) => id !== 'b');
  assert.ok(a?.type === 'step' && f?.type === 'for_each' && none?.type === 'step');
  const { initial_backoff, max_backoff, backoff_multiplier } = a.retry!;
  assert.deepEqual([initial_backoff, max_backoff, backoff_multiplier], [1_000, 60_000, 2]);
  assert.deepEqual([f.itemVar, f.maxIterations], ['item', 1_000]);
  const { delay, retry, timeoutMs, when } = none;
  assert.deepEqual([delay, retry, timeoutMs, when], [undefined, undefined, null, undefined]);
});

describe('outputRefs', () => {
  const step = (fields: object): Block => ({ ...work('x'), ...fields }) as Block;
  const asserting = (condition: string) => step({ handler: 'assert', params: { condition } });
  const cases: [string, Block, string][] = [
    ['no expression', noop('x'), ''],
    ['params', step({ params: { p: '{{ outputs.a.n }}' } }), 'a'],
    ['when', step({ when: 'outputs.a.n > 1 && steps.b' }), 'a,b'],
    ['all outputs', step({ params: { p: '{{ outputs }}' } }), 'all'],
    ['a loop condition', loop('x', 'outputs.a.more', 5, [noop('y')]), 'a'],
    ['a collection', forEach('x', '{{ outputs.a.list }}', [noop('y')]), 'a'],
    ['retry_if', step({ retry: { max_attempts: 2, retry_if: 'outputs.a' } }), 'a'],
    ['assert', asserting('outputs.a.ok'), 'a'],
    ['assert on text that is only known later', asserting('{{ data.c }} == 1'), 'all'],
  ];
  for (const [title, block, expected] of cases) {
    test(`of ${title}`, () => {
      const { outputRefs } = planOf([block]);
      assert.equal(outputRefs === 'all' ? 'all' : [...outputRefs].join(), expected);
    });
  }
});

const validators = createValidators();
const KINDS = {
  ...{ step: 4, parallel: 2, race: 2, router: 2, try_catch: 2, loop: 2, for_each: 2 },
} as const;

/** The trees leave out the address that an `http_request` has to have. */
function sequenceOf(blocks: readonly Block[]): JsonObject {
  const addressed = JSON.parse(JSON.stringify(blocks), (_, value) =>
    value?.handler === 'http_request'
      ? { ...value, params: { ...value.params, url: 'http://x' } }
      : value,
  );
  return { tenant_id: 't', namespace: 'n', name: 'x', version: 1, blocks: addressed };
}

type Told = { readonly errors: readonly Finding[]; readonly warnings: readonly Finding[] };

/** As a request does it. */
function judge(body: JsonValue): Told {
  const checked = validators.validateBody('sequences.create', body);
  if (checked.ok) return judgeDefinition('sequences.create', checked.value);
  const shape = validators.describeBody('sequences.create', body);
  assert.notEqual(shape.found.length, 0);
  const judged = judgeDefinition('sequences.create', body, { shape });
  assert.notEqual(judged.errors.length, 0);
  assert.ok(judged.refusal().message.length > 10);
  return judged;
}

/** Every place in a value, by the keys that lead there. */
function placesIn(value: JsonValue, path: readonly string[] = []): string[][] {
  const here = path.length === 0 ? [] : [[...path]];
  if (typeof value !== 'object' || value === null) return here;
  return Object.entries(value).reduce<string[][]>(
    (all, [key, inner]) => all.concat(placesIn(inner, [...path, key])),
    here,
  );
}

function put(body: JsonValue, path: readonly string[], value: JsonValue): void {
  let at = body as Record<string, JsonValue>;
  for (const key of path.slice(0, -1)) at = at[key] as Record<string, JsonValue>;
  at[path.at(-1)!] = value;
}

const odd = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<JsonValue>,
  fc.constantFrom<JsonValue[]>(
    ...[
      '{{ outputs.s.x | uper }}',
      '{{ item[0] }}',
      'length(x) == y',
      'outputs.nothing && steps.a',
    ],
    ...['a == b.c', '{{', 'sleep', 'http_request', 'for_each', 'step', {}, []],
    [{ type: 'loop', id: 'x' }],
    { type: 'step', id: 'inner', handler: 'assert' },
    { max_attempts: 1, timout: 2 },
  ),
);

test('a right definition has no errors, and hears the same again', (t) => {
  check(t, byDepth(100, 1_000), trees(KINDS), ({ blocks }) => {
    const body = sequenceOf(blocks);
    const { errors, warnings } = judge(body);
    assert.deepEqual(errors, []);
    assert.deepEqual(judge(body).warnings, warnings);
  });
});

test('whatever is put anywhere, an answer is found, and what is accepted compiles', (t) => {
  const changes = fc.array(fc.tuple(fc.nat(), odd), { minLength: 1, maxLength: 4 });
  check(t, byDepth(1_000, 20_000), fc.tuple(trees(KINDS), changes), ([{ blocks }, puts]) => {
    const body = sequenceOf(blocks);
    for (const [place, value] of puts) {
      const places = placesIn(body.blocks as JsonValue, ['blocks']);
      put(body, places[place % places.length]!, structuredClone(value));
    }
    const { errors, warnings } = judge(body);
    for (const { path, message } of [...errors, ...warnings]) {
      assert.ok(path.length < 5_000 && message.length < 10_000);
    }
    if (errors.length > 0) return;
    const compiled = compilePlan(
      { id: 's', blocks: body.blocks as unknown as Block[] },
      () => () => undefined,
    );
    assert.ok(compiled.ok, compiled.ok ? '' : compiled.message);
  });
});
