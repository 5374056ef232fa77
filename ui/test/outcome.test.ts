/** Whoever does something is told whether it may have been done when it was not answered as it should be. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EngineError } from 'durable-workflow-engine-client';
import { actionErrorOf, outcomeOf, unreachable } from '../src/api/outcome.ts';

const UNKNOWN = 'unavailable: the connection was lost; the outcome is unknown';

for (const [status, code, message, outcome] of [
  [0, 'CLIENT_UNREACHABLE', 'nobody', 'not-sent'],
  [0, 'CLIENT_NETWORK', 'no answer', 'unclear'],
  [0, 'CLIENT_TIMEOUT', 'no answer in time', 'unclear'],
  [503, 'ENG_STANDBY', 'another engine owns the database', 'not-sent'],
  [503, 'ENG_DATABASE_DOWN', 'the database cannot be reached', 'not-sent'],
  [503, 'ENG_DATABASE_DOWN', UNKNOWN, 'unclear'],
  [503, 'ENG_SHARD_RESTARTING', 'a part is restarted', 'unclear'],
  [502, 'HTTP_502', 'a gateway', 'unclear'],
  [504, 'HTTP_504', 'a gateway', 'unclear'],
  [503, 'ENG_NO_KEYS', 'no key', 'refused'],
  [502, 'ENG_DELIVERY_FAILED', 'not taken', 'refused'],
  [409, 'ENG_CONFLICT', 'not now', 'refused'],
  [429, 'ENG_TENANT_SHARE', 'wait', 'refused'],
  [400, 'ENG_VALIDATION', 'wrong', 'refused'],
] as const) {
  test(`an action that ends with ${status} ${code} (${message}) is ${outcome}`, () => {
    const error = new EngineError({ status, code, message });
    assert.equal(outcomeOf(error), outcome);
    const told = actionErrorOf(error) as Error;
    const words = {
      refused: message,
      'not-sent': 'The request was not sent, ',
      unclear: 'The outcome is unknown: ',
    };
    assert.ok(told.message.startsWith(words[outcome]), told.message);
  });
}

test('what is no answer of the engine is told as it is, and what is not begun is not sent', () => {
  const own = new SyntaxError('The data must be a JSON object.');
  assert.equal(actionErrorOf(own), own);
  assert.equal(outcomeOf(unreachable()), 'not-sent');
});
