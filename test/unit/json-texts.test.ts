/** The texts of sections as a caller wrote them: when they are taken, and that they are their values. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { givenTexts, givenTextsOfItems } from '../../actors/instance/given-texts.js';
import { newRecord, wholeRow } from '../../actors/instance/record.js';
import type { JsonObject } from '../../src/core/json.js';
import { newInstance } from '../helpers/instances.js';

const NONE = { data: undefined, config: undefined, metadata: undefined };

/** The body of a creation, and what is taken out of it. */
const BODIES: readonly (readonly [string, ReturnType<typeof givenTexts>])[] = [
  ['{}', NONE],
  ['{"sequence_id":"s","priority":null,"timeout":1.5e3}', NONE],
  ['{"metadata":{"a":"}\\"{"},"x":[1,{"data":2}]}', { ...NONE, metadata: '{"a":"}\\"{"}' }],
  [
    '{"context":{"data":{"a":[1,[]]},"config":{}}}',
    { ...NONE, data: '{"a":[1,[]]}', config: '{}' },
  ],
  ['{"context":{"other":{"data":1},"data":{"__proto__":1}}}', { ...NONE, data: '{"__proto__":1}' }],
  ['{"context":null,"metadata":null}', { ...NONE, metadata: 'null' }],
  // The last one counts, as a whole.
  [
    '{"context":{"data":{"a":1},"config":{"b":1}},"context":{"data":{"c":1}}}',
    { ...NONE, data: '{"c":1}' },
  ],
  ['{"metadata":{"a":1},"metadata":{"b":1}}', { ...NONE, metadata: '{"b":1}' }],
  // A name may be written otherwise, and space is not kept.
  ['{"meta\\u0064ata":{"a":1}}', undefined],
  ['{ "metadata":{}}', undefined],
  ['{"metadata":{"a": 1}}', undefined],
  ['{"context":{"data":{}} }', undefined],
  ['{"sequence_id": "s","metadata":{}}', undefined],
];

test('sections of a compact body are taken as they came, of any other one not', () => {
  for (const [text, expected] of BODIES) {
    assert.deepEqual(givenTexts(text), expected, text);
    const items = givenTextsOfItems(`{"n":[],"instances":[${text},${text}]}`);
    assert.deepEqual(items, expected === undefined ? [] : [expected, expected], text);
  }
  assert.deepEqual(givenTextsOfItems('{"instances":[{}],"instances":[]}'), []);
});

test('what is taken is the value of the section, whatever is in it', () => {
  const object = fc.dictionary(fc.string(), fc.jsonValue());
  fc.assert(
    fc.property(object, object, object, fc.jsonValue(), (data, config, metadata, other) => {
      const body = { other, metadata, context: { other, data, config } };
      const texts = givenTexts(JSON.stringify(body))!;
      const taken = [texts.data, texts.config, texts.metadata].map(
        (text) => text && JSON.parse(text),
      );
      assert.deepEqual(taken, JSON.parse(JSON.stringify([data, config, metadata])));
    }),
  );
});

test('a row has the text of a section until its value is replaced', () => {
  const text = '{"metadata":{"m":1.0},"context":{"data":{"d":1.0},"config":{"c":1.0}}}';
  const body = JSON.parse(text) as JsonObject;
  const record = newRecord({ ...newInstance('i', body), texts: givenTexts(text) }, 0);
  assert.match(
    wholeRow(record),
    /"metadata":\{"m":1\.0\},"data":\{"d":1\.0\},"config":\{"c":1\.0\}/,
  );
  record.snapshot.data = { ...record.snapshot.data };
  assert.match(wholeRow(record), /"data":\{"d":1\},"config":\{"c":1\.0\}/);
});
