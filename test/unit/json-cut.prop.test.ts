/** Laws of parsing a piece at a time: it makes of any text what parsing the whole does. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cutJson } from '../../src/core/json-cut.js';
import { BODY_JSON_LIMITS, type JsonLimits, parseJson } from '../../src/core/json-guard.js';
import { byDepth } from '../helpers/depth.js';
import { check } from '../helpers/properties.js';

const LIMITS: JsonLimits = { ...BODY_JSON_LIMITS, maxDepth: 5, maxValues: 40 };

function cut(text: string, limits: JsonLimits | undefined, runLength?: number) {
  const pieces = cutJson(text, limits, runLength);
  for (let yields = 0; ; yields += 1) {
    const { done, value } = pieces.next();
    if (done === true) return { ...value, yields };
  }
}

/** Compared as text: order counts, and so do members that only look like properties. */
function textOf(value: unknown): string {
  return JSON.stringify(value);
}

const key = fc.constantFrom('a', 'b', 'c', '"', '\\', ':{', '__proto__', '1', '0', 'é', '😀', ' ');
const text = fc.oneof(key, fc.constantFrom(',', '[]', ']', '{"a":1}', '\u0000', '\ud800'));
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 6, depthSize: 'large', withCrossShrink: true },
    fc.constantFrom(null, true, 0, -1.5, 1e300, 2 ** 53 + 2),
    text,
    fc.array(tie('value'), { maxLength: 6 }),
    fc.dictionary(key, tie('value'), { maxKeys: 6 }),
  ),
}));
const noise = fc.constantFrom(
  '',
  ...['"', ',', ':', '[', ']', '{', '}', ' ', '\n', '0', '1e999', 'x', '"a":1,', '"a":', '[],'],
  ...['\\u0000', '\\', '-', 'null', ',,', '9007199254740993', '{"a":[1,2]}', '\ufeff'],
);

test('a text that is cut anywhere gives what the whole text gives, or is refused with it', (t) => {
  const gap = fc.constantFrom(undefined, 1, '\t', ' \n\r');
  const cases = fc.tuple(value, gap, fc.nat(), noise, fc.nat(3), fc.integer({ min: 1, max: 40 }));
  check(t, byDepth(3_000, 20_000), cases, ([json, indent, place, sign, left, runLength]) => {
    const plain = JSON.stringify(json, undefined, indent);
    const at = place % (plain.length + 1);
    for (const given of [plain, plain.slice(0, at) + sign + plain.slice(at + left)]) {
      // The count is only for long texts where the whole is parsed.
      for (const limits of [LIMITS, { ...LIMITS, maxValues: 100_000 }]) {
        const whole = parseJson(given, limits);
        const pieces = cut(given, limits, runLength);
        assert.equal(pieces.ok, whole.ok, given);
        if (pieces.ok && whole.ok) assert.equal(textOf(pieces.value), textOf(whole.value), given);
      }
      const lenient = cut(given, undefined, runLength);
      let expected: string | undefined;
      try {
        expected = textOf(JSON.parse(given));
      } catch {
        expected = undefined;
      }
      assert.equal(lenient.ok ? textOf(lenient.value) : undefined, expected, given);
    }
  });
});

test('whatever a long text is made of, it is cut in pieces that are not much longer than a run', () => {
  const run = 100;
  const wide = Array.from({ length: 1_000 }, (_, at) => at);
  const deep = (levels: number): unknown =>
    levels === 0 ? [] : ['x'.repeat(90), deep(levels - 1), 1];
  const rows: readonly (readonly [string, unknown])[] = [
    ['a list', wide],
    ['members', Object.fromEntries(wide.map((at) => [`k${at}`, at]))],
    ['a list far inside', { a: [{ b: { c: wide } }] }],
    ['many short ones', wide.map((at) => ({ a: [at] }))],
    ['long ones, each in the last place', deep(100)],
  ];
  for (const [name, given] of rows) {
    const json = JSON.stringify(given);
    const longest: number[] = [];
    const parse = JSON.parse;
    JSON.parse = (piece: string) => {
      longest.push(piece.length);
      return parse(piece);
    };
    try {
      const result = cut(json, { ...BODY_JSON_LIMITS }, run);
      assert.ok(result.ok && result.yields >= Math.floor(json.length / (3 * run)), name);
    } finally {
      JSON.parse = parse;
    }
    assert.ok(Math.max(...longest) <= 3 * run, `${name}: ${Math.max(...longest)}`);
  }
});

test('more values than there may be are told apart from all else that is wrong', () => {
  const limits = { ...BODY_JSON_LIMITS, maxValues: 1_000 };
  const empties = `[${Array(2_000).fill('[]').join()}`;
  const broken = `[${Array(900).fill('[]').join()}`;
  const told = [empties, broken].map((given) => {
    const result = cut(given, limits, 50);
    return !result.ok && result.hasTooMany;
  });
  assert.deepEqual(told, [true, false]);
});
