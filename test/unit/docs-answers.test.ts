/** How answers that the manual shows are held against those that its commands gave. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { answersOf, missingIn } from '../helpers/docs.js';

test('an answer stands behind its command, or on lines of its own', () => {
  const block = 'one # → 1\ntwo\n# → {"a":\n# →   2}\n# a remark\nthree\n# → 3\n';
  assert.deepEqual(answersOf(block), ['1', '{"a":\n  2}', '3']);
});

describe('an answer agrees', () => {
  const output = '{"id": "0195", "state": "failed"}\n{"id": "0196"}\n';
  const cases: readonly (readonly [string, readonly string[], string | undefined])[] = [
    ['when it is a part of the output', ['"state":"failed"'], undefined],
    ['whatever its blanks are', ['{"id":"0195",\n   "state":"failed"}'], undefined],
    ['with anything in the place of …', ['{"id":"…","state":"failed"}'], undefined],
    ['when … is nothing', ['{…"id":"0196"…}'], undefined],
    ['not when it says something else', ['"state":"completed"'], '"state":"completed"'],
    ['not when a part is missing', ['"id":"0196",…"state"'], '"id":"0196",…"state"'],
    ['not when it comes before another', ['"id":"0196"', '"state"'], '"state"'],
    ['not as a pattern', ['"id":".*"'], '"id":".*"'],
  ];
  for (const [title, answers, missing] of cases) {
    test(title, () => assert.equal(missingIn(output, answers), missing));
  }
});
