/** What the builder writes is what the engine reads: texts of conditions and templates against its own parsers. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Expression, Untyped } from '../../client/src/builder/expressions.js';
import { refTo, rendered } from '../../client/src/builder/expressions.js';
import { BUILTIN_NAMES } from '../../client/src/builder/members.js';
import { filter, fn, raw, sequence, t } from '../../client/src/index.js';
import { BUILTIN_HANDLERS } from '../../schema/handlers.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { evaluateCondition, parseCondition } from '../../src/core/condition.js';
import { FILTER_NAMES } from '../../src/core/expression/filters.js';
import { FUNCTION_NAMES } from '../../src/core/expression/functions.js';
import type { Scope } from '../../src/core/expression/scope.js';
import type { ComparisonOperator, Expression as Tree } from '../../src/core/expression/syntax.js';
import { TEMPLATE_FUNCTIONS } from '../../src/core/expression/template-syntax.js';
import { compileTemplate, renderTemplate } from '../../src/core/template.js';
import { byDepth } from '../helpers/depth.js';
import { check } from '../helpers/properties.js';

interface Order {
  readonly name: string;
  readonly total: number;
  readonly paid: boolean;
  readonly note?: string;
  readonly tags: readonly string[];
  readonly lines: readonly { readonly sku: string; readonly count: number }[];
  readonly 'order-id': string;
}

const data = {
  name: 'Ada "the" O\'Brien',
  total: 120,
  paid: true,
  tags: ['new', 'a|b'],
  lines: [{ sku: 'tea', count: 2 }],
  'order-id': 'A-1',
};

const world = (outputs: JsonObject): Scope => ({
  data,
  config: { region: 'eu' },
  outputs: { get: (id) => outputs[id], all: () => outputs },
  runtime: { attempt: 1, instance_id: 'i-1' },
  instanceId: 'i-1',
  now: 0,
  random: () => 0.25,
});
const scope = world({ pay: { receipt: 'r-17', amount: 5 } });

const input = refTo<Order>(['data']);
const pay = refTo<{ readonly receipt: string; readonly amount: number }>(['outputs', 'pay']);
const instanceId = refTo<string>(['instance_id']);

function textOf(condition: unknown): string {
  const { blocks } = sequence('s').step('a', { handler: 'noop', when: condition as Untyped });
  return String(blocks[0]?.when);
}

function outcomeOf(condition: unknown): JsonValue {
  const parsed = parseCondition(textOf(condition));
  assert.ok(parsed.ok, textOf(condition));
  return evaluateCondition(parsed.value, scope);
}

function renderedOf(value: unknown): JsonValue {
  const outcome = renderTemplate(compileTemplate(rendered(value) as JsonValue), scope);
  assert.ok(outcome.ok, JSON.stringify(rendered(value)));
  return outcome.value;
}

// ---------------------------------------------------------------- conditions

/** A term as the builder has it, and the tree that it stands for. */
interface Pair {
  readonly term: Expression<Untyped> | string | number | boolean | null | readonly unknown[];
  readonly tree: Tree;
}

const PATHS: readonly Pair[] = [
  { term: input.name as Untyped, tree: { kind: 'path', path: ['data', 'name'] } },
  { term: input.total as Untyped, tree: { kind: 'path', path: ['data', 'total'] } },
  { term: input.note as Untyped, tree: { kind: 'path', path: ['data', 'note'] } },
  { term: input.tags.at(1) as Untyped, tree: { kind: 'path', path: ['data', 'tags', '1'] } },
  { term: pay.amount as Untyped, tree: { kind: 'path', path: ['outputs', 'pay', 'amount'] } },
  { term: instanceId as Untyped, tree: { kind: 'path', path: ['instance_id'] } },
];

const literal = fc
  .oneof(
    fc.string({ unit: 'binary', maxLength: 12 }),
    fc.constantFrom('', '"', `it's "so"`, '{{ x }}', 'a && b', 'data.name', '-', 'true', ' ? : '),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer({ min: -9, max: 9 }),
    fc.boolean(),
    fc.constant(null),
  )
  .map((value): Pair => ({ term: value, tree: { kind: 'literal', value } }));

const COMPARISONS: readonly (readonly [string, ComparisonOperator])[] = [
  ['eq', '=='],
  ['ne', '!='],
  ['lt', '<'],
  ['le', '<='],
  ['gt', '>'],
  ['ge', '>='],
  ['in', 'in'],
];
const SUMS = [
  ['plus', '+'],
  ['minus', '-'],
  ['times', '*'],
  ['dividedBy', '/'],
] as const;

const ask = (pair: Pair, method: string, ...others: readonly Pair[]) =>
  (pair.term as Untyped)[method](...others.map(({ term }) => term)) as Expression<Untyped>;

const { term: anyTerm } = fc.letrec<{ term: Pair; operand: Pair }>((tie) => {
  const operand = fc.oneof({ depthSize: 'small' }, literal, tie('operand'), tie('term'));
  const list = fc.array(literal, { maxLength: 3 }).map(
    (items): Pair => ({
      term: items.map(({ term }) => term),
      tree: { kind: 'array', items: items.map(({ tree }) => tree) },
    }),
  );
  const term = tie('term');
  return {
    operand: fc.oneof(literal, list, term),
    term: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom(...PATHS),
      fc.tuple(term, fc.constantFrom(...COMPARISONS), operand).map(
        ([left, [method, operator], right]): Pair => ({
          term: ask(left, method, right),
          tree: { kind: 'compare', operator, left: left.tree, right: right.tree },
        }),
      ),
      fc.tuple(term, fc.constantFrom(...SUMS), operand).map(
        ([left, [method, operator], right]): Pair => ({
          term: ask(left, method, right),
          tree: { kind: 'arithmetic', first: left.tree, rest: [{ operator, operand: right.tree }] },
        }),
      ),
      fc.tuple(term, fc.constantFrom('and', 'or'), term).map(
        ([left, kind, right]): Pair => ({
          term: ask(left, kind, right),
          tree: { kind: kind as 'and' | 'or', operands: [left.tree, right.tree] },
        }),
      ),
      term.map((it): Pair => ({ term: ask(it, 'not'), tree: { kind: 'not', operand: it.tree } })),
      fc.tuple(term, operand, operand).map(
        ([test_, yes, no]): Pair => ({
          term: fn.choose(test_.term as Untyped, yes.term as Untyped, no.term as Untyped),
          tree: { kind: 'choose', test: test_.tree, yes: yes.tree, no: no.tree },
        }),
      ),
      operand.map(
        (pair): Pair => ({
          term: fn.json(pair.term as Untyped),
          tree: { kind: 'call', name: 'json', args: [pair.tree] },
        }),
      ),
    ),
  };
});

test('a condition of any operators has the value that they have in the engine', (run) => {
  check(run, byDepth(2_000, 20_000), anyTerm, ({ term, tree }) => {
    // As JSON, which knows no negative zero.
    const meant = JSON.stringify(evaluateCondition({ expression: tree }, scope));
    assert.equal(JSON.stringify(outcomeOf(term)), meant, textOf(term));
  });
});

test('conditions read as people write them', () => {
  assert.equal(textOf(input.total.gt(100)), 'context.data.total > 100');
  assert.equal(
    textOf(input.paid.and(input.total.plus(1).times(2).ge(9)).or(input.note.eq(null))),
    'context.data.paid && (context.data.total + 1) * 2 >= 9 || context.data.note == null',
  );
  assert.equal(textOf(input.paid.not()), '!context.data.paid');
  assert.equal(textOf(input.name.in(['a', 'b'])), 'context.data.name in ["a", "b"]');
  assert.equal(textOf(pay.receipt.eq(input.name)), 'outputs.pay.receipt == context.data.name');
  assert.equal(textOf(input.name.eq(instanceId)), 'context.data.name == runtime.instance_id');
  assert.equal(textOf(fn.len(input.tags).gt(3)), 'len(context.data.tags) > 3');
  assert.equal(textOf(raw('data.x > 1')), '(data.x > 1)');
});

test('there is a function and a filter for each that the engine has, and its handlers are known', () => {
  assert.deepEqual(Object.keys(fn).toSorted(), [...FUNCTION_NAMES, 'choose'].toSorted());
  const seen = Object.keys(filter).toSorted();
  assert.deepEqual(seen, [...FILTER_NAMES, ...TEMPLATE_FUNCTIONS].toSorted());
  assert.deepEqual([...BUILTIN_NAMES].toSorted(), [...BUILTIN_HANDLERS].toSorted());
});

// ---------------------------------------------------------------- templates

test('a path alone keeps its type, and text around it makes it text', () => {
  assert.equal(rendered(input.total), '{{ data.total }}');
  assert.deepEqual([renderedOf(input.total), renderedOf(t`${input.total} EUR`)], [120, '120 EUR']);
  assert.deepEqual(renderedOf({ all: input, tags: [input.tags, 1], none: undefined }), {
    all: data,
    tags: [data.tags, 1],
  });
  assert.equal(renderedOf(input['order-id']), 'A-1');
});

test('fallbacks, filters and texts in texts give what the engine makes of them', () => {
  assert.equal(renderedOf(input.note.orElse('none')), 'none');
  assert.equal(renderedOf(input.note.orElse(pay.receipt)), 'r-17');
  assert.equal(renderedOf(input.note.orElse(7)), 7);
  assert.equal(renderedOf(filter.upper(input.note.orElse("it's"))), "IT'S");
  assert.equal(renderedOf(filter.truncate(input.name, 3, '…')), 'Ada…');
  assert.equal(renderedOf(filter.join(input.tags, ' | ')), 'new | a|b');
  assert.equal(renderedOf(filter.round(input.total, 0)), 120);
  assert.match(String(renderedOf(filter.hash(input.name, 'sha256'))), /^[0-9a-f]{64}$/);
  assert.equal(renderedOf(filter.json(input.lines)), '[{"sku":"tea","count":2}]');
  assert.equal(renderedOf(filter.len(input.lines)), 1);
  const inner = t`<${input.lines.at(0).sku.orElse('-')}>`;
  assert.equal(renderedOf(t`a ${inner} b ${1} {c}`), 'a <tea> b 1 {c}');
});

test('a member that is called like an operator is reached by at, and nothing waits for a path', async () => {
  const odd = refTo<{ readonly eq: string; readonly then: number }>(['data']);
  assert.equal(rendered(odd.at('eq')), '{{ data.eq }}');
  assert.equal(await odd.as<unknown>(), odd.as<unknown>());
  assert.equal(rendered(odd.at('then')), '{{ data.then }}');
});

test('what the engine would read as something else is refused', () => {
  const cases: readonly (() => unknown)[] = [
    () => rendered('{{ data.name }}'),
    () => rendered(t`${input.name} {{ x }}`),
    () => rendered(t`${input.name}`),
    () => `Order ${input.name}`,
    () => rendered(refTo<Untyped>(['data', 'a b'])),
    () => textOf(input['order-id'].eq('x')),
    () => rendered({ at: new Date() }),
    () => rendered({ many: 1n }),
    () => rendered({ none: Number.NaN }),
    () => rendered(input.note.orElse(`it's "so"`)),
    () => rendered(filter.upper(t`a ${input.name}`)),
    () => rendered(filter.json(raw('data.name'))),
    () => textOf(filter.upper(input.name)),
    () => textOf({}),
  ];
  for (const make of cases) assert.throws(make, TypeError, String(make));
});

test('a condition reads the input as it is, whatever names its members have', () => {
  const named = refTo<{ data: { total: number }; total: number; config: { plan: string } }>([
    'data',
  ]);
  const parsed = (condition: unknown) => {
    const read = parseCondition(textOf(condition));
    assert.ok(read.ok);
    return evaluateCondition(read.value, {
      ...scope,
      data: { data: { total: 7 }, total: 3, config: { plan: 'theirs' }, instance_id: 'theirs' },
      config: { plan: 'ours' },
    });
  };
  assert.deepEqual([parsed(named.total.eq(3)), parsed(named.data.total.eq(7))], [true, true]);
  assert.equal(parsed(named.config.plan.eq('theirs')), true);
  assert.equal(parsed(refTo<{ plan: string }>(['config']).plan.eq('ours')), true);
  assert.equal(parsed(instanceId.eq(scope.instanceId)), true);
});
