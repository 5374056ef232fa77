/** Laws of conditions over random texts and values: total, by value, blind to prototypes. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  evaluateCondition,
  isTruthy,
  parseCondition,
  type Scope,
} from '../../src/core/condition.js';
import { occurrences } from '../../src/core/expression/bounds.js';
import type { JsonObject, JsonValue } from '../../src/core/json.js';
import { cpuMsOf } from '../helpers/cpu-time.js';
import { byDepth } from '../helpers/depth.js';
import { check } from '../helpers/properties.js';

function scopeOf(data: JsonObject): Scope {
  const outputs: JsonObject = { s: { n: 1, list: [1, 'a', null] } };
  return {
    data,
    config: {},
    outputs: {
      get: (id) => (Object.hasOwn(outputs, id) ? outputs[id] : undefined),
      all: () => outputs,
    },
    runtime: {},
    instanceId: 'i',
    now: 0,
    random: () => 0.25,
  };
}

const fragment = fc.oneof(
  fc.constantFrom(
    'a',
    'b.c',
    'outputs.s.n',
    'in',
    'null',
    'true',
    '1',
    '2.5e1',
    '"x"',
    "'y'",
    '{{',
  ),
  fc.constantFrom('==', '!=', '>', '<=', '&&', '||', '?', ':', '+', '-', '*', '/', '!', ',', '}}'),
  fc.constantFrom('(', ')', '[', ']', 'len(', 'sort(', 'json(', 'format_date(', '__proto__', '.'),
);
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.array(fragment, { maxLength: 24 }).map((parts) => parts.join(' ')),
  fc.array(fragment, { maxLength: 24 }).map((parts) => parts.join('')),
);
const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<JsonValue>;

test('parsing and evaluating never throw and give JSON', (t) => {
  check(t, byDepth(4_000, 20_000), fc.tuple(text, json, json), ([source, a, b]) => {
    const parsed = parseCondition(source);
    if (!parsed.ok) return;
    const value = evaluateCondition(parsed.value, scopeOf({ a, b }));
    assert.notEqual(JSON.stringify(value), undefined);
    assert.equal(typeof isTruthy(value), 'boolean');
  });
});

test('S12: a random text of any length up to the cap is parsed in bounded time', (t) => {
  const long = fc
    .array(fragment, { minLength: 1_000, maxLength: 8_000 })
    .map((parts) => parts.join(''));
  check(t, 30, long, (source) => {
    assert.ok(cpuMsOf(() => parseCondition(source)) < 1_000);
  });
});

test('numbers compare by value however they are written', (t) => {
  check(t, 100, fc.double({ noNaN: true, noDefaultInfinity: true }), (n) => {
    const value = n === 0 ? 0 : n;
    for (const written of [`${value}`, value.toExponential()]) {
      const parsed = parseCondition(`a == ${written}`);
      assert.ok(parsed.ok, written);
      assert.equal(evaluateCondition(parsed.value, scopeOf({ a: value })), true, written);
    }
  });
});

test('a value equals its copy, and != is the negation of ==', (t) => {
  check(t, 100, fc.tuple(json, json), ([a, b]) => {
    const world = scopeOf({ a, b, copy: JSON.parse(JSON.stringify(a)) });
    const run = (source: string) => {
      const parsed = parseCondition(source);
      assert.ok(parsed.ok);
      return evaluateCondition(parsed.value, world);
    };
    assert.equal(run('a == data.copy'), true);
    assert.equal(run('a != data.b'), !run('a == data.b'));
  });
});

test('no path through a prototype finds anything', (t) => {
  const name = fc.constantFrom('__proto__', 'constructor', 'prototype', 'toString', 'length');
  check(t, 100, fc.array(name, { minLength: 1, maxLength: 4 }), (names) => {
    for (const start of ['', 'a.', 'list.', 'data.', 'outputs.', 'runtime.', 'instance_id.']) {
      const parsed = parseCondition(start + names.join('.'));
      assert.ok(parsed.ok);
      const value = evaluateCondition(parsed.value, scopeOf({ a: {}, list: [], s: 'text' }));
      assert.equal(value, null);
    }
  });
});

test('the linear search finds what the built-in one finds', (t) => {
  const letters = fc.array(fc.constantFrom('a', 'b'), { minLength: 1, maxLength: 12 });
  check(
    t,
    100,
    fc.tuple(letters, fc.nat(40), fc.array(letters, { maxLength: 60 })),
    ([unit, times, rest]) => {
      const needle = unit
        .join('')
        .repeat(times + 1)
        .padStart(251, unit.join(''));
      const haystack = rest.map((part) => part.join('')).join(needle) + needle.slice(1);
      const expected: number[] = [];
      for (
        let at = haystack.indexOf(needle);
        at >= 0;
        at = haystack.indexOf(needle, at + needle.length)
      ) {
        expected.push(at);
      }
      assert.deepEqual(occurrences(haystack, needle), expected);
    },
  );
});
