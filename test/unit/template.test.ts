/**
 * Templates: roots, fallbacks, filters and types, what fails a step, and laws over random texts.
 *
 * Cost: 2 s, since its properties render thousands of texts.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import type { Scope } from '../../src/core/expression/scope.js';
import { compileTemplate, renderTemplate } from '../../src/core/template.js';
import { cpuMsOf } from '../helpers/cpu-time.js';
import { byDepth } from '../helpers/depth.js';
import { check } from '../helpers/properties.js';
import { scopeOf } from '../helpers/scopes.js';

const outputs: JsonObject = {
  fetch: { status: 200, items: ['x', { id: 7 }], body: null },
  'my-step': { ok: true },
};
const data: JsonObject = {
  name: 'Ann',
  n: 5,
  price: 2.345,
  flag: false,
  none: null,
  empty: '',
  list: ['a', 1, null],
  user: { city: 'Köln', tags: [] },
  item: 'i1',
  input: { order: 9 },
  padded: '  Hi There ',
};
const scope = scopeOf(data, {
  config: { region: 'eu' },
  outputs,
  runtime: { attempt: 1 },
  instanceId: 'id-1',
});

function render(value: JsonValue, world: Scope = scope): JsonValue {
  const result = renderTemplate(compileTemplate(value), world);
  assert.ok(result.ok, result.ok ? '' : `${JSON.stringify(value)}: ${result.message}`);
  return result.value;
}

function problemOf(value: JsonValue, world: Scope = scope): string {
  const result = renderTemplate(compileTemplate(value), world);
  assert.ok(!result.ok, `rendered ${JSON.stringify(value).slice(0, 80)}`);
  return result.message;
}

function assertAll(expected: Record<string, JsonValue>) {
  for (const [text, value] of Object.entries(expected)) assert.deepEqual(render(text), value, text);
}

test('a string that is one expression keeps the type of its value', () => {
  assertAll({
    '{{data.n}}': 5,
    '{{ context.data.flag }}': false,
    '{{data.none}}': null,
    '{{data.list}}': ['a', 1, null],
    '{{data.user}}': { city: 'Köln', tags: [] },
    '{{data.name}}': 'Ann',
  });
});

test('inside other text values become text: strings raw, others as compact JSON', () => {
  assertAll({
    'Hello {{data.name}}!': 'Hello Ann!',
    'n={{data.n}} none={{data.none}} gone={{data.gone}}': 'n=5 none=null gone=null',
    '{{data.list}} {{data.user}}': '["a",1,null] {"city":"Köln","tags":[]}',
    ' {{data.n}}': ' 5',
    '{{data.n}}{{data.n}}': '55',
    '{"a":{{data.n}}}': '{"a":5}',
    '{{{data.n}}}': '{5}',
  });
});

test('every root can be read', () => {
  assertAll({
    '{{context.config.region}}': 'eu',
    '{{config.region}}': 'eu',
    '{{outputs.fetch.status}}': 200,
    '{{steps.fetch.status}}': 200,
    '{{outputs.my-step.ok}}': true,
    '{{input.order}}': 9,
    '{{runtime.attempt}}': 1,
    '{{instance_id}}': 'id-1',
    '{{state.anything}}': null,
  });
  assert.deepEqual(render('{{outputs}}'), outputs);
});

test('an array takes its index as a segment, brackets resolve to nothing', () => {
  assertAll({
    '{{outputs.fetch.items.1.id}}': 7,
    '{{outputs.fetch.items[1].id}}': null,
    '{{outputs.fetch.items.9}}': null,
    '{{data.user.city.0}}': null,
  });
});

test('an unknown root, or an expression that begins with no path, fails with a message', () => {
  assert.match(problemOf('{{item}}'), /unknown template root "item"/);
  assert.match(problemOf({ a: ['x {{ vault.key }}'] }), /"vault"/);
  assert.match(problemOf('{{context.audit}}'), /context\.audit/);
  assert.match(problemOf('{{context}}'), /"context"/);
  assert.match(problemOf('{{len(nothing.x)}}'), /"nothing"/);
  for (const text of ['{{"x"}}', '{{5}}', '{{true}}', '{{}}', '{{ | data.n}}', '{{foo(data.n)}}']) {
    assert.ok(problemOf(text).length > 10, text);
  }
});

test('fallbacks go left to right and end in a typed literal', () => {
  assertAll({
    '{{data.none | data.gone | data.n}}': 5,
    '{{data.gone | "x y"}}': 'x y',
    "{{data.gone | 'a | b'}}": 'a | b',
    '{{data.gone | 5.5}}': 5.5,
    '{{data.gone | true}}': true,
    '{{data.gone | null | data.n}}': null,
    '{{data.gone | basic}}': 'basic',
    '{{data.gone | foo.bar}}': 'foo.bar',
    '{{data.flag | true}}': false,
    '{{data.empty | "x"}}': '',
    '{{data.gone | "}}"}}': '}}',
    '{{data.gone | json(data.list)}}': '["a",1,null]',
  });
  assert.match(problemOf('{{data.a || data.b}}'), /empty fallback/);
});

test('filters are chained from left to right', () => {
  assertAll({
    '{{data.padded | trim | upper}}': 'HI THERE',
    '{{data.name | lower()}}': 'ann',
    '{{data.gone | "abc" | upper}}': 'ABC',
    '{{data.n | upper}}': '',
    '{{data.user.city | url_encode}}': 'K%C3%B6ln',
    '{{data.user.city | base64}}': 'S8O2bG4=',
    '{{data.user.city | base64 | base64_decode}}': 'Köln',
    '{{data.name | replace("n", "--")}}': 'A----',
    '{{data.list | replace(",", ";")}}': '["a";1;null]',
    '{{data.empty | default("d")}}': 'd',
    '{{data.gone | default(3)}}': 3,
    '{{data.flag | default(3)}}': false,
    '{{data.name | truncate(2)}}': 'An',
    '{{data.name | truncate(2, "…")}}': 'An…',
    '{{data.name | truncate(3, "…")}}': 'Ann',
    '{{data.list | join("-")}}': 'a-1-null',
    '{{data.name | split("n")}}': ['A', '', ''],
    '{{data.price | round(2)}}': 2.35,
    '{{data.n | round}}': 5,
    '{{data.gone | round}}': 'round',
    '{{data.n | abs}}': 5,
    '{{data.name | hash(sha256)}}':
      '17239b6e250110330eda64a29c610bf146f89883371fab093feda03bec61b646',
  });
});

test('functions give the JSON text and the length of a value', () => {
  assertAll({
    '{{json(data.list)}}': '["a",1,null]',
    '{{json(data.gone)}}': 'null',
    '{{len(data.list)}}': 3,
    '{{len(data.user)}}': 2,
    '{{len(data.user.city)}}': 5,
    '{{len(data.n)}}': null,
  });
});

test('a filter that cannot work, or decodes what a row cannot hold, fails the step', () => {
  for (const filter of [
    ...['base64_decode', 'hash(md5)', 'round(x)', 'round(-1)', 'truncate(x)', 'shout(1)'],
    ...['replace("", "x")', 'replace("n")', 'split()'],
  ]) {
    assert.match(problemOf(`{{data.name | ${filter}}}`), /filter/, filter);
  }
  const world = { ...scope, data: { nul: 'AAA=', half: '7aC9', noise: '/w==' } };
  for (const key of ['nul', 'half', 'noise']) {
    assert.match(problemOf(`{{data.${key} | base64_decode}}`, world), /not text/, key);
  }
});

test('a result over 4 MiB fails the step', () => {
  const world = { ...scope, data: { text: 'a'.repeat(300_000), list: Array(200_000).fill(1) } };
  assert.match(problemOf(`{{data.text | replace("a", "${'b'.repeat(20)}")}}`, world), /4 MiB/);
  assert.match(problemOf(`{{data.list | join("${'-'.repeat(50)}")}}`, world), /4 MiB/);
});

test('braces that are never closed stay as they are', () => {
  assertAll({
    'a {{ data.n': 'a {{ data.n',
    'a }} b': 'a }} b',
    '{{ then {{data.n}}': '{{ then 5',
    '{{ "}} ': '{{ "}} ',
    "Don't {{data.n}}": "Don't 5",
  });
});

test('params are rendered at every depth in their order, keys are no templates, and nothing is changed', () => {
  const params = { '{{data.n}}': ['{{data.n}}', { deep: ['x{{data.n}}', 1] }], fixed: { a: [1] } };
  const before = JSON.stringify([params, data]);
  const rendered = render(params) as JsonObject;
  assert.equal(JSON.stringify(rendered), '{"{{data.n}}":[5,{"deep":["x5",1]}],"fixed":{"a":[1]}}');
  assert.equal(JSON.stringify([params, data]), before);
  assert.equal(rendered.fixed, params.fixed, 'what has no expression is shared');
  const constant = { a: [1, 'x }}', { b: null }], c: true };
  assert.equal(compileTemplate(constant).root.kind, 'constant');
  assert.equal(render(constant), constant);
  assert.notEqual(compileTemplate({ n: '{{data.n}}' }).root.kind, 'constant');
});

test('__proto__ in params stays an own property', () => {
  const params = JSON.parse('{"__proto__":"{{data.user}}","constructor":"{{data.n}}"}');
  const rendered = render(params) as JsonObject;
  assert.ok(Object.hasOwn(rendered, '__proto__'));
  assert.equal(Object.getPrototypeOf(rendered), Object.prototype);
  assert.equal(render('{{data.__proto__}}'), null);
  assert.equal(render('{{data.list.constructor}}'), null);
});

test('a value that would nest too deep or grow too large fails the step', () => {
  let deep: JsonValue = 1;
  for (let i = 0; i < 256; i += 1) deep = [deep];
  assert.deepEqual(render('{{data.deep}}', { ...scope, data: { deep } }), deep);
  assert.match(problemOf(['{{data.deep}}'], { ...scope, data: { deep } }), /256 levels/);
  let doubled: JsonValue = 'x';
  for (let i = 0; i < 60; i += 1) doubled = [doubled, doubled];
  assert.match(problemOf('{{data.doubled}}', { ...scope, data: { doubled } }), /16 MiB/);
  assert.match(problemOf('a {{json(data.doubled)}}', { ...scope, data: { doubled } }), /16 MiB/);
});

test('a long hostile string is compiled in linear time', () => {
  for (const unit of ['{{', "{{'", '{{ data.n | ', '}}', '{{a}}', '{{"}}"', '{{data.x|upper(']) {
    assert.ok(cpuMsOf(() => compileTemplate(unit.repeat(50_000))) < 5_000, unit);
  }
});

test('the outputs that a template can read are known beforehand', () => {
  const reads = (value: JsonValue) => compileTemplate(value).outputs;
  assert.deepEqual(reads({ a: 'x', b: '{{data.n}}' }), new Set());
  const seen = reads({ a: ['{{outputs.s1.x | steps.s2}}'], b: 'x {{len(outputs.s3)}}' });
  assert.deepEqual(seen, new Set(['s1', 's2', 's3']));
  assert.equal(reads(['{{outputs}}']), 'all');
});

const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<JsonValue>;

const piece = fc.oneof(
  fc.constantFrom('{{', '}}', '{', '}', '|', '"', "'", '(', ')', ',', ' ', '.', 'data', 'data.x'),
  fc.constantFrom('outputs.a', 'upper', 'base64_decode', 'truncate(2)', 'join(",")', 'split("")'),
  fc.constantFrom('json(data)', 'len(data.x)', 'url_encode', 'round(1)', 'hash(sha256)', '5'),
  fc.string({ unit: 'binary', maxLength: 5 }),
);
const text = fc.array(piece, { maxLength: 14 }).map((pieces) => pieces.join(''));

test('compiling and rendering never throw, whatever the text', (t) => {
  check(t, byDepth(2_500, 10_000), fc.tuple(text, json), ([source, x]) => {
    const result = renderTemplate(compileTemplate([source, { [source]: source }]), scopeOf({ x }));
    if (result.ok) assert.notEqual(JSON.stringify(result.value), undefined);
    else assert.ok(result.message.length > 0);
  });
});

test('a value is given as it is, of any type, or carried inside text as JSON; one without braces renders to itself', (t) => {
  const render = (template: JsonValue, x: JsonValue) => {
    const result = renderTemplate(compileTemplate(template), scopeOf({ x }));
    assert.ok(result.ok);
    return result.value;
  };
  check(t, 200, json, (x) => {
    assert.equal(render('{{ data.x }}', x), x);
    const text = String(render('[{{ json(data.x) }}]', x));
    assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify([x])));
    if (JSON.stringify(x).includes('{{')) return;
    assert.equal(compileTemplate(x).root.kind, 'constant');
    assert.equal(render(x, null), x);
  });
});

test('splitting and joining, encoding and decoding give the text back', (t) => {
  const chains = [
    '{{ data.x | split(",") | join(",") }}',
    '{{ data.x | split("") | join("") }}',
    '{{ data.x | base64 | base64_decode }}',
  ];
  const words = fc.string({ unit: 'grapheme' }).filter((word) => !word.includes('\0'));
  check(t, 100, words, (x) => {
    for (const chain of chains) {
      const result = renderTemplate(compileTemplate(chain), scopeOf({ x }));
      assert.deepEqual(result, { ok: true, value: x });
    }
  });
});
