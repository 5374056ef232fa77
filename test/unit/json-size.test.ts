/** How large a value is as JSON, found out without writing it where that is not needed. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { bytesBeyond, checkSize } from '../../actors/instance/memory.js';
import type { JsonValue } from '../../src/core/json.js';
import { byDepth } from '../helpers/depth.js';

const bytesOf = (value: JsonValue) => Buffer.byteLength(JSON.stringify(value));

test('the quick look never lets a value pass that is larger as JSON', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), fc.nat({ max: 400 }), (given, max) => {
      const value = given as JsonValue;
      const bytes = bytesOf(value);
      assert.equal(bytesBeyond(value, max), bytes > max ? bytes : undefined);
    }),
    { numRuns: byDepth(500, 20_000) },
  );
});

test('what takes most bytes for its length is measured to the byte', () => {
  for (const value of ['\u0001'.repeat(50), '\ud800'.repeat(50), [-1.234567890123456e-300], {}]) {
    const bytes = bytesOf(value);
    assert.equal(bytesBeyond(value, bytes), undefined);
    assert.equal(bytesBeyond(value, bytes - 1), bytes);
  }
  const refused = { message: /^payload too large: the thing is 7 bytes, the limit is 6$/ };
  assert.throws(() => checkSize('the thing is', 'large', 6), refused);
});
