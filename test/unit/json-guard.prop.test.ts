/** Laws of the entry check: agrees with JSON.parse, changes nothing, lets no hazard through. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeUtf8, parseJson } from '../../src/core/json-guard.js';
import { byDepth } from '../helpers/depth.js';
import { check } from '../helpers/properties.js';

/** What the entry check promises to keep: well-formed text without NUL, numbers of JSON. */
const safeString = fc
  .string({ unit: 'binary' })
  .filter((text) => !text.includes('\0') && Buffer.from(text).toString() === text);
const safeNumber = fc.oneof(
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).filter((number) => !Object.is(number, -0)),
);

function isRefusedInteger(number: number): boolean {
  return Number.isInteger(number) && /^-?\d+$/.test(`${number}`) && Math.abs(number) > 2 ** 53;
}

const safeJson = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, false),
    safeNumber.filter((number) => !isRefusedInteger(number)),
    safeString,
    fc.array(tie('value'), { maxLength: 5 }),
    fc.dictionary(safeString, tie('value'), { maxKeys: 5 }),
  ),
})).value;

test('any value that can be stored survives bytes, text and parsing unchanged', (t) => {
  check(t, byDepth(600, 2_000), fc.tuple(safeJson, fc.constantFrom(0, 2)), ([value, indent]) => {
    const text = decodeUtf8(Buffer.from(JSON.stringify(value, undefined, indent)));
    const result = parseJson(text ?? '');
    assert.ok(result.ok, result.ok ? '' : result.problem.message);
    // Compared as text: a dictionary of the generator may have no prototype.
    assert.equal(JSON.stringify(result.value), JSON.stringify(value));
  });
});

test('on random JSON the guard and JSON.parse agree about validity', (t) => {
  check(
    t,
    2_000,
    fc.tuple(fc.json({ noUnicodeString: false }), fc.nat(), fc.string()),
    ([json, at, noise]) => {
      const cut = at % (json.length + 1);
      for (const text of [json, json.slice(0, cut) + noise + json.slice(cut)]) {
        const result = parseJson(text);
        const isRefusal = !result.ok && result.problem.kind !== 'syntax';
        assert.ok(isRefusal || result.ok === isJson(text), text);
      }
    },
  );
});

test('an accepted value holds nothing that the database refuses', (t) => {
  const piece = fc.constantFrom('"', '\\', '\\u', 'u', '0000', 'd83d', 'de00', '{', '[', ']', '}');
  const glue = fc.constantFrom(',', ':', '1', '9'.repeat(17), '-', 'e', '999', '.', ' ', 'null');
  check(t, byDepth(1_500, 5_000), fc.array(fc.oneof(piece, glue), { maxLength: 12 }), (pieces) => {
    for (const text of [pieces.join(''), `["${pieces.join('')}"]`, `[${pieces.join('')}]`]) {
      const result = parseJson(text);
      if (!result.ok) continue;
      const written = JSON.stringify(result.value);
      assert.ok(!written.includes('\\u0000') || text.includes('\\\\u0000'), text);
      assert.doesNotMatch(written.replaceAll('\\\\', ''), /\\ud[89a-f]/, text);
    }
  });
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
