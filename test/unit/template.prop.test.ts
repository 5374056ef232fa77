/** Laws of templates over random texts and values: total, type-keeping, and reversible. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Scope } from '../../src/core/condition.js';
import type { JsonObject, JsonValue } from '../../src/core/json.js';
import { compileTemplate, renderTemplate } from '../../src/core/template.js';
import { byDepth } from '../helpers/depth.js';
import { check } from '../helpers/properties.js';

const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<JsonValue>;

function scopeOf(data: JsonObject): Scope {
  return {
    data,
    config: {},
    outputs: { get: () => undefined, all: () => ({}) },
    runtime: {},
    instanceId: 'i',
    now: 0,
    random: () => 0,
  };
}

const piece = fc.oneof(
  fc.constantFrom('{{', '}}', '{', '}', '|', '"', "'", '(', ')', ',', ' ', '.', 'data', 'data.x'),
  fc.constantFrom('outputs.a', 'upper', 'base64_decode', 'truncate(2)', 'join(",")', 'split("")'),
  fc.constantFrom(
    'json(data)',
    'len(data.x)',
    'url_encode',
    'round(1)',
    'hash(sha256)',
    '5',
    'null',
  ),
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

test('a whole-string expression gives the very value, of any type', (t) => {
  check(t, 100, json, (x) => {
    const result = renderTemplate(compileTemplate('{{ data.x }}'), scopeOf({ x }));
    assert.ok(result.ok);
    assert.equal(result.value, x);
  });
});

test('a value without braces renders to itself', (t) => {
  const plain = json.filter((value) => !JSON.stringify(value).includes('{{'));
  check(t, 100, plain, (value) => {
    const template = compileTemplate(value);
    assert.equal(template.isConstant, true);
    assert.deepEqual(renderTemplate(template, scopeOf({})), { ok: true, value });
  });
});

test('any value can be carried inside text as JSON and read back', (t) => {
  check(t, 100, json, (x) => {
    const result = renderTemplate(compileTemplate('[{{ json(data.x) }}]'), scopeOf({ x }));
    assert.ok(result.ok);
    assert.deepEqual(JSON.parse(String(result.value)), JSON.parse(JSON.stringify([x])));
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
      assert.deepEqual(renderTemplate(compileTemplate(chain), scopeOf({ x })), {
        ok: true,
        value: x,
      });
    }
  });
});
