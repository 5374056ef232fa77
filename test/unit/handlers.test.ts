/** The parameters of built-in handlers: what refuses a definition fails every such step. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { BUILTIN_HANDLERS, type BuiltinName } from '../../schema/handlers.js';
import { checkParams } from '../../schema/params-check.js';
import { PURE_HANDLERS, sleepDuration } from '../../src/core/builtin.js';
import type { JsonObject, JsonValue } from '../../src/core/json.js';
import { parseHttpParams } from '../../src/handlers/http-params.js';
import { byDepth } from '../helpers/depth.js';
import { check } from '../helpers/properties.js';

const value = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<JsonValue>,
  fc.constantFrom<JsonValue[]>(0, -1, 1.5, 100, 86_400_001, 4e12, '', 'post', 'http://x', null, {}),
);
const params = fc.dictionary(
  fc.constantFrom('duration_ms', 'url', 'method', 'headers', 'body', 'timeout_ms', 'condition'),
  value,
) as fc.Arbitrary<JsonObject>;

const isFatal = (handler: BuiltinName, given: JsonObject) =>
  checkParams(handler, given).some((problem) => problem.isFatal);

test('what refuses the parameters of a definition is what fails every such step', (t) => {
  check(t, byDepth(2_000, 20_000), params, (given) => {
    assert.equal(isFatal('sleep', given), !sleepDuration(given).ok);
    assert.equal(isFatal('http_request', given), !parseHttpParams(given).ok);
    assert.equal(isFatal('assert', given), given.condition === undefined);
    for (const handler of ['noop', 'log', 'fail', 'transform'] as const) {
      assert.equal(isFatal(handler, given), false);
    }
  });
});

test('a template stands for any value, and text with braces that are not closed for itself', () => {
  const problems = (duration: string) => checkParams('sleep', { duration_ms: duration }).length;
  assert.equal(problems('{{ data.ms }}'), 0);
  assert.equal(problems('1{{ data.zeros }}'), 0);
  assert.equal(problems('{{ data.ms'), 1);
});

test('every built-in handler has a row of parameters', () => {
  const acting = ['sleep', 'wait_for_event', 'http_request'];
  assert.deepEqual([...PURE_HANDLERS.keys(), ...acting].sort(), [...BUILTIN_HANDLERS].sort());
});
