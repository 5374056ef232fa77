/** What people type is sent as it stands, or refused with the reason. */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { jsonOf, readJson } from '../src/lib/json-text.ts';
import { type NumberLimits, numberOf, readNumber } from '../src/lib/numbers.ts';

const TYPED: readonly (readonly [
  text: string,
  read: number | string | undefined,
  NumberLimits?,
])[] = [
  ['1.05', 1.05],
  [' -0.5 ', -0.5],
  ['5e-7', 5e-7],
  ['9007199254740992', 2 ** 53],
  ['', undefined],
  ['0,05', 'Use a decimal point: 0.05'],
  ['1.', 'Must be a number, such as 1.05'],
  ['0x10', 'Must be a number, such as 1.05'],
  ['true', 'Must be a number, such as 1.05'],
  ['9007199254740993', 'the integer 9007199254740993, which is beyond 2^53 is not accepted'],
  ['1e400', 'the number 1e400, which is beyond the range of a double is not accepted'],
  ['1.5', 'Must be a whole number', { isInteger: true }],
  ['0', 'Must be at least 1', { min: 1 }],
];

for (const [text, expected, limits] of TYPED) {
  test(`"${text}" is ${typeof expected === 'number' ? 'that number' : `refused: ${expected}`}`, () => {
    const read = readNumber(text, limits);
    assert.equal(read?.wrong ?? (read as { value?: number } | undefined)?.value, expected);
    if (typeof expected === 'number') assert.equal(numberOf('It', text, limits), expected);
    else assert.throws(() => numberOf('It', text, limits), RangeError);
  });
}

test('a text of JSON is refused for what the engine would refuse, in its words and with the place', () => {
  for (const [text, wrong, at] of [
    ['{"a": 1, "a": 2}', /^the name "a" for a second member of one object is not accepted/, 9],
    ['{"a": [1e400]}', /beyond the range of a double is not accepted, at a\[0\]/, 7],
    ['{"a": "\\u0000"}', /U\+0000 is not accepted/, 7],
    ['{"a": ', /^invalid JSON/, undefined],
  ] as const) {
    const read = readJson(text);
    assert.match(read.wrong ?? '', wrong);
    assert.equal('at' in read ? read.at : 'read', at);
    assert.throws(() => jsonOf('The data', text), /^SyntaxError: The data is not valid: /);
  }
  assert.deepEqual(jsonOf('The data', '{"a": 1.05}'), { a: 1.05 });
});

/** What is built into browsers for these drops or guesses what was typed, or names no zone. */
const OWN_FIELDS = /type="(?:number|datetime-local|time|range)"|<form\b|onWheel/;

test('forms have the fields that keep what is typed, and mark all of their mistakes', () => {
  const root = path.resolve(import.meta.dirname, '../../ui/src');
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' });
  const found = files.filter(
    (file) => file.endsWith('.tsx') && OWN_FIELDS.test(readFileSync(path.join(root, file), 'utf8')),
  );
  assert.deepEqual(found.sort(), [
    'components/field.tsx',
    // One field, which says by itself what is wrong with it.
    'pages/instance/block-attempts.tsx',
    // By `FilterField`, which names the zone.
    'pages/instances/filter-bar.tsx',
  ]);
});
