/** When refusals are told: at once while they are few, later in a loop of them. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RefusalPace } from '../../src/http/refusal-pace.js';
import { LIMITS } from '../../src/limits.js';

const { refusalsAtOnce, refusalsPerSecond, refusalHeldMsMax } = LIMITS;

describe('the pace of refusals', () => {
  test('holds none back while they are few', () => {
    const pace = new RefusalPace();
    for (let at = 0; at < refusalsAtOnce; at += 1) assert.equal(pace.holdMs('a', 429, 0), 0);
  });

  test('holds back those beyond, each for longer than the one before, up to a bound', () => {
    const pace = new RefusalPace();
    const held = Array.from({ length: 1_000 }, () => pace.holdMs('a', 503, 0));
    const later = held.slice(refusalsAtOnce);
    assert.equal(later[0], 1_000 / refusalsPerSecond);
    for (let at = 1; at < later.length; at += 1) assert.ok(later[at]! >= later[at - 1]!);
    assert.equal(Math.max(...held), refusalHeldMsMax);
  });

  test('forgets with time', () => {
    const pace = new RefusalPace();
    for (let at = 0; at < 1_000; at += 1) pace.holdMs('a', 413, 0);
    const over = refusalHeldMsMax + (1_000 * refusalsAtOnce) / refusalsPerSecond;
    assert.equal(pace.holdMs('a', 413, over), 0);
  });

  test('is of each tenant, and about load only', () => {
    const pace = new RefusalPace();
    for (let at = 0; at < 1_000; at += 1) pace.holdMs('a', 429, 0);
    assert.equal(pace.holdMs('b', 429, 0), 0);
    for (const status of [200, 400, 401, 404, 409, 500]) {
      assert.equal(pace.holdMs('a', status, 0), 0);
    }
  });
});
