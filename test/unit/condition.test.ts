/**
 * Conditions: the two short forms, the expression language, and its bounds on hostile texts.
 *
 * Cost: 2 s, since its property compares thousands of expressions.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { evaluateCondition, parseCondition } from '../../src/core/condition.js';
import { isTruthy, occurrences } from '../../src/core/expression/operators.js';
import { cpuMsOf } from '../helpers/cpu-time.js';
import { byDepth } from '../helpers/depth.js';
import { check } from '../helpers/properties.js';
import { scopeOf } from '../helpers/scopes.js';

const AROUND = {
  config: { region: 'eu', holidays: [] },
  runtime: { attempt: 2 },
  instanceId: '01890000-0000-7000-8000-000000000000',
  now: Date.UTC(2024, 1, 29, 12, 30, 5, 7),
  random: () => 0.5,
};

function evaluate(text: string, data: JsonObject = {}, outputs: JsonObject = {}): JsonValue {
  const parsed = parseCondition(text);
  assert.ok(parsed.ok, parsed.ok ? '' : parsed.message);
  return evaluateCondition(parsed.value, scopeOf(data, { ...AROUND, outputs }));
}

function assertAll(data: JsonObject, expected: Record<string, JsonValue>, outputs?: JsonObject) {
  for (const [text, value] of Object.entries(expected)) {
    assert.deepEqual(evaluate(text, data, outputs), value, text);
  }
}

test('`path` alone is a truthiness check and `path == value` is equality', () => {
  const data = { plan: 'pro', user: { tier: 'gold', age: 30 }, flag: true, zero: 0, none: null };
  assertAll(data, {
    plan: 'pro',
    'user.tier': 'gold',
    missing: null,
    'plan == pro': true,
    'plan==pro': true,
    'plan == "pro"': true,
    "plan == 'pro'": true,
    'user.age == 30': true,
    'user.age == "30"': false,
    'flag == true': true,
    'flag == "true"': false,
    'zero == false': false,
    'none == null': true,
    'missing == null': true,
    '{{ plan == pro }}': true,
  });
});

test('the right side of `path == value` is the text that stands there, whatever keys exist', () => {
  const data = { plan: 'pro', pro: 'basic', wanted: 'pro', empty: null, zip: '01234', b: 7 };
  assertAll(
    {
      ...data,
      mail: 'a@b.io:25',
      state: 'in progress',
      at: '12:30',
      path: '/a/b',
      url: 'http://x.y/z',
    },
    {
      'plan == pro': true,
      'plan == wanted': false,
      'plan != wanted': true,
      'missing == empty': false,
      'missing == null': true,
      'mail == a@b.io:25': true,
      'zip == 01234': true,
      'state == in progress': true,
      'state == "in progress"': true,
      "state == 'in progress' && b == 7": true,
      'at == 12:30': true,
      'url == http://x.y/z': true,
      'plan == config': false,
      'plan == Jo (admin)': false,
    },
  );
});

test('the right side is a path only when it begins with a root and a dot', () => {
  const outputs = { fetch: { plan: 'pro' }, 'my-step': { plan: 'pro' } };
  assertAll(
    { plan: 'pro', b: 'pro', n: 7, half: 3.5, region: 'eu', odd: 'data.', list: [1] },
    {
      'plan == data.b': true,
      'plan == outputs.fetch.plan': true,
      'plan == outputs.my-step.plan': true,
      'region == config.region': true,
      'plan == data.nothing': false,
      'nothing == data.nothing': true,
      'odd == data.': true,
      '"config.nothing" == config.nothing': false,
      '"eu" == config.region': true,
      // What computes is no text.
      'n == data.half * 2': true,
      'list == [1]': true,
      'n == len("1234567")': true,
      'plan == pro ? n : half': 7,
      // Beside a value that was computed, a word may be a path.
      'half * 2 == n': true,
      '"x" == (nothing)': false,
    },
    outputs,
  );
});

test('data comes before the roots, and the roots are found after it', () => {
  const outputs = { fetch: { status: 200, list: [{ id: 7 }] }, 'my-step': { ok: true } };
  assertAll(
    { config: { region: 'us' }, input: { n: 1 } },
    {
      'config.region == us': true,
      'context.config.region': 'eu',
      'data.input.n': 1,
      'runtime.attempt > 1': true,
      instance_id: '01890000-0000-7000-8000-000000000000',
      'outputs.fetch.status': 200,
      'steps.fetch.status == 200': true,
      'outputs.fetch.list.0.id': 7,
      'outputs.fetch.list.00.id': null,
      'outputs.fetch.list.length': null,
      'context.audit': null,
    },
    outputs,
  );
});

test('operators follow their documented precedence', () => {
  const data = { count: 6, threshold: 10, name: 'ann', items: [1, 2], price: 12.5 };
  assertAll(data, {
    'count * 2 > threshold': true,
    '1 + 2 * 3': 7,
    '(1 + 2) * 3': 9,
    '10 - 2 - 3': 5,
    '8 / 2 / 2': 2,
    '!count': false,
    '!!count': true,
    'count > 5 && name == ann': true,
    'false || true && false': false,
    'count > 100 ? "big" : count > 5 ? "mid" : "small"': 'mid',
    '2 in items': true,
    '"a" in name': false,
    'name in ["bob", "ann"]': true,
    'price >= 12.5': true,
  });
});

test('arithmetic converts numeric texts and booleans and gives null for the rest', () => {
  assertAll(
    { n: '5', word: 'abc', yes: true },
    {
      'n + 1': 6,
      'n * yes': 5,
      'word + 1': null,
      '"a" + "b"': 'ab',
      'n + n': '55',
      '1 / 0': null,
      '1e308 * 10': null,
      '"0x10" * 1': null,
      '" 7 " * 1': 7,
    },
  );
});

test('order holds between numbers and between texts by code point, never across types', () => {
  assertAll(
    { high: '😀', low: '\uff5e' },
    {
      '"a" < "b"': true,
      '"B" < "a"': true,
      'high > low': true,
      '"ab" > "a"': true,
      '1 < "2"': false,
      'null <= null': false,
      'true > false': false,
    },
  );
});

test('equality is deep, by value, and blind to the order of keys', () => {
  const data = { a: { x: 1, y: [1, { z: null }] }, b: { y: [1, { z: null }], x: 1 }, c: { x: 1 } };
  assertAll(data, { 'a == data.b': true, 'a == data.c': false, 'a != data.c': true });
});

test('only null, false, zero and empty texts and arrays are false', () => {
  for (const value of [null, false, 0, -0, '', []]) assert.equal(isTruthy(value), false);
  for (const value of [true, 1, -1, 'false', '0', [0], {}]) assert.equal(isTruthy(value), true);
});

test('functions of lists, texts and numbers', () => {
  const data = {
    list: [3, 1, 2, 1],
    texts: ['b', 'a'],
    user: { b: 1, a: 2 },
    twin: { a: 2, b: 1 },
    name: 'größe',
  };
  assertAll(data, {
    'len(list)': 4,
    'len(user)': 2,
    'len(name)': 7,
    'len(missing)': null,
    'abs(-2)': 2,
    'json(user)': '{"b":1,"a":2}',
    'keys(user)': ['b', 'a'],
    'values(user)': [1, 2],
    'contains(list, 2)': true,
    'contains(name, "öß")': true,
    'contains(user, "a")': true,
    'contains(user, "constructor")': false,
    'starts_with(name, "gr")': true,
    'ends_with(name, "x")': false,
    'sum(list)': 7,
    'avg(list)': 1.75,
    'min(list)': 1,
    'max(list)': 3,
    'max([])': null,
    'avg([])': null,
    'sum(texts)': null,
    'first(list)': 3,
    'last(list)': 1,
    'slice(list, 1, 3)': [1, 2],
    'slice(name, -2)': 'ße',
    'sort(list)': [1, 1, 2, 3],
    'sort(texts, "desc")': ['b', 'a'],
    'unique(list)': [3, 1, 2],
    'unique([[1], [1], 2, "2"])': [[1], 2, '2'],
    'len(unique([user, twin]))': 1,
    'count(list)': 4,
    'change_pct(50, 75)': 50,
    'change_pct(0, 75)': null,
    'clamp(15, 0, 10)': 10,
    'nothing_like_it(1)': null,
    'constructor(1)': null,
    'toString()': null,
  });
});

test('functions of time and chance use what the scope hands in', () => {
  const data = { at: '2024-02-29T23:05:09.120+02:00' };
  assertAll(data, {
    'now()': '2024-02-29T12:30:05.007Z',
    'random(1, 9)': 5,
    'random(0, 0.5)': 0.25,
    'uuid()': '88888888-8888-4888-a888-888888888888',
    'day_of_week(at)': 3,
    'day_of_week("nothing")': null,
    'day_of_week("10:00")': null,
    'format_date(at, "%Y-%m-%d %H:%M:%S %A %b %j %p %z %%")':
      '2024-02-29 23:05:09 Thursday Feb 060 PM +0200 %',
    'format_date("2024-01-05", "%d.%m.%y %T %Z %q")': '05.01.24 00:00:00 UTC %q',
    'format_date("x", "%Y")': null,
  });
});

test('a text that does not parse gives a message that says where', () => {
  const wrong = ['a ==', '== b', '(a', 'a b', 'a == b == c', '"open', 'a..b > 1', 'a % 2'];
  for (const text of [...wrong, '1e999 > 1']) {
    const parsed = parseCondition(text);
    assert.equal(parsed.ok, false, text);
    assert.ok(!parsed.ok && parsed.message.length > 10, text);
  }
});

test('nesting is bounded at 64 and the length at 32 KiB', () => {
  assert.equal(evaluate(`${'('.repeat(64)}1${')'.repeat(64)}`), 1);
  for (const text of [`${'('.repeat(65)}1${')'.repeat(65)}`, `${'!'.repeat(65)}a`]) {
    assert.equal(parseCondition(text).ok, false);
  }
  assert.equal(evaluate(`1${'+1'.repeat(16_000)}`), 16_001);
  assert.equal(evaluate(`a${' && a'.repeat(6_000)}`, { a: 1 }), true);
  assert.equal(parseCondition('a'.repeat(32 * 1024 + 1)).ok, false);
});

test('work is bounded on hostile data', () => {
  const half = 'a'.repeat(60_000);
  const data = {
    text: half.repeat(4),
    needle: `${half}b${half}`,
    big: Array.from({ length: 100_000 }, (_, i) => [i]),
  };
  const hostile = [
    'contains(text, needle)',
    `contains(text, needle)${' || contains(text, needle)'.repeat(500)}`,
    'unique(big) == 1',
    `json(big)${' + json(big)'.repeat(1_000)}`,
    `big == [1]${' || sort(big) == 1'.repeat(1_000)}`,
  ];
  for (const text of hostile) {
    const ms = cpuMsOf(() => {
      assert.equal(isTruthy(evaluate(text, data)), false, text.slice(0, 30));
    });
    assert.ok(ms < 4_000, text.slice(0, 30));
  }
});

test('the outputs that a condition can read are known beforehand', () => {
  const reads = (text: string) => {
    const parsed = parseCondition(text);
    assert.ok(parsed.ok);
    return parsed.value.outputs;
  };
  assert.deepEqual(reads('a == b'), new Set());
  const seen = reads('outputs.s1.x > 1 && len(steps.s2) == outputs.s3');
  assert.deepEqual(seen, new Set(['s1', 's2', 's3']));
  assert.equal(reads('len(outputs) > 1'), 'all');
});

const OUTPUTS: JsonObject = { s: { n: 1, list: [1, 'a', null] } };

const fragment = fc.oneof(
  fc.constantFrom(...`a b.c outputs.s.n in null true 1 2.5e1 "x" 'y' {{`.split(' ')),
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
    const value = evaluateCondition(
      parsed.value,
      scopeOf({ a, b }, { ...AROUND, outputs: OUTPUTS }),
    );
    assert.notEqual(JSON.stringify(value), undefined);
    assert.equal(typeof isTruthy(value), 'boolean');
  });
});

test('S12: a random text of any length up to the cap is parsed in bounded time', (t) => {
  const long = fc.array(fragment, { minLength: 1_000, maxLength: 8_000 }).map((it) => it.join(''));
  check(t, 30, long, (source) => assert.ok(cpuMsOf(() => parseCondition(source)) < 1_000));
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

test('no path through a prototype finds anything', (t) => {
  const name = fc.constantFrom('__proto__', 'constructor', 'prototype', 'toString', 'length');
  check(t, 100, fc.array(name, { minLength: 1, maxLength: 4 }), (names) => {
    for (const start of ['', 'a.', 'list.', 'data.', 'outputs.', 'runtime.', 'instance_id.']) {
      const parsed = parseCondition(start + names.join('.'));
      assert.ok(parsed.ok);
      assert.equal(evaluateCondition(parsed.value, scopeOf({ a: {}, list: [], s: 'text' })), null);
    }
  });
});

test('the linear search finds what the built-in one finds', (t) => {
  const letters = fc.array(fc.constantFrom('a', 'b'), { minLength: 1, maxLength: 12 });
  const cases = fc.tuple(letters, fc.nat(40), fc.array(letters, { maxLength: 60 }));
  check(t, 100, cases, ([unit, times, rest]) => {
    const word = unit.join('');
    const needle = word.repeat(times + 1).padStart(251, word);
    const haystack = rest.map((part) => part.join('')).join(needle) + needle.slice(1);
    const expected: number[] = [];
    for (let at = 0; haystack.indexOf(needle, at) >= 0; at += needle.length) {
      at = haystack.indexOf(needle, at);
      expected.push(at);
    }
    assert.deepEqual(occurrences(haystack, needle), expected);
  });
});
