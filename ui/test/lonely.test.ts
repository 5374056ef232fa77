/** Points that a line does not show. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lonely } from '../src/lib/lonely.ts';

test('a value between gaps is drawn as a point, since a line needs two', () => {
  assert.deepEqual(lonely([1, null, 2, 3, null, 4, undefined, 0]), [0, 5, 7]);
  assert.deepEqual(lonely([1, 2]), []);
});
