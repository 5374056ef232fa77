/** Laws of the canonical text: one text for equal values, another for different ones. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  canonicalJson,
  canonicalSha256,
  sha256Hex,
} from '../../src/core/continuity/canonical-json.js';
import { check } from '../helpers/properties.js';

const key = fc.oneof(
  fc.constantFrom('a', 'b', '__proto__', 'constructor', 'toJSON', '1', '', '\uffff', '😀', 'é'),
  fc.string({ unit: 'binary', maxLength: 4 }),
);
const json = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom(null, true, false),
    fc.double({ noNaN: true, noDefaultInfinity: true }).filter((number) => !Object.is(number, -0)),
    fc.string({ unit: 'binary' }),
    fc.array(tie('value'), { maxLength: 5 }),
    fc.array(fc.tuple(key, tie('value')), { maxLength: 5 }).map(Object.fromEntries),
  ),
})).value;

/** The same value with the members of every object the other way round. */
function reversed(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(reversed);
  const members = Object.entries(value).reverse();
  return Object.fromEntries(members.map(([name, inner]) => [name, reversed(inner)]));
}

test('parsing the canonical text gives the value back', (t) => {
  check(t, 500, json, (value) => {
    assert.deepEqual(JSON.parse(canonicalJson(value)), value);
  });
});

test('the order of keys changes nothing, and the text of the text is the text', (t) => {
  check(t, 500, json, (value) => {
    const text = canonicalJson(value);
    assert.equal(canonicalJson(reversed(value)), text);
    assert.equal(canonicalJson(JSON.parse(text)), text);
  });
});

test('different values have different texts', (t) => {
  check(t, 500, fc.tuple(json, json), ([a, b]) => {
    const isSame = JSON.stringify(reversed(a)) === JSON.stringify(reversed(b));
    if (canonicalJson(a) === canonicalJson(b)) assert.deepEqual(a, b);
    else assert.ok(!isSame);
  });
});

test('keys stand in the order of code points at every level, not in that of UTF-16 units', () => {
  const value = { '😀': 1, '\uffff': 2, b: { z: [{ y: 1, x: 2 }], a: null }, B: '', é: 3 };
  const seen = canonicalJson(value);
  assert.equal(seen, '{"B":"","b":{"a":null,"z":[{"x":2,"y":1}]},"é":3,"\uffff":2,"😀":1}');
});

test('there are no spaces, and characters beyond ASCII are not escaped', () => {
  assert.equal(canonicalJson({ a: ['ü', '日本', '\n'] }), '{"a":["ü","日本","\\n"]}');
  assert.equal(canonicalJson({ a: undefined, b: 1 }), '{"b":1}');
});

test('what JSON cannot say is refused, and so is what nests too deeply', () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, undefined, 1n, () => 1]) {
    assert.throws(() => canonicalJson([value]), TypeError);
  }
  let deep: unknown = 1;
  for (let i = 0; i < 512; i += 1) deep = [deep];
  assert.equal(canonicalJson(deep).length, 1_025);
  assert.throws(() => canonicalJson([deep]), RangeError);
  let chain: unknown = 1;
  for (let i = 0; i < 513; i += 1) chain = { n: chain };
  assert.throws(() => canonicalJson(chain), RangeError);
});

test('hashes are SHA-256 of the UTF-8 text in lower-case digits', () => {
  assert.equal(sha256Hex(''), 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  assert.equal(sha256Hex('é'), sha256Hex(Buffer.from('c3a9', 'hex')));
  assert.equal(canonicalSha256({ b: 1, a: 2 }), sha256Hex('{"a":2,"b":1}'));
});
