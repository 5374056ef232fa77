/** How much a sender without a key may send in a second. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SenderLimit, WEBHOOKS_PER_SECOND_MAX } from '../../src/http/sender-limit.js';

test('a sender is refused beyond the limit, and again let in with the next second', () => {
  const limit = new SenderLimit();
  for (let i = 0; i < WEBHOOKS_PER_SECOND_MAX; i += 1) limit.take('a', 5_000 + i);
  assert.throws(() => limit.take('a', 5_999), { status: 429, retryAfterMs: 1_000 });
  limit.take('b', 5_999);
  limit.take('a', 6_000);
});
