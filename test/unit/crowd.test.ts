/** Who is alone on the server, and what long reads of one tenant wait for when others are there. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Crowd } from '../../src/crowd.js';
import { ReadPace } from '../../src/db/reads/read-pace.js';
import { LIMITS } from '../../src/limits.js';

const LONG_MS = LIMITS.longReadMs + 1;

function sharedAt(now: number): Crowd {
  const crowd = new Crowd();
  crowd.came('a', now);
  crowd.came('b', now);
  return crowd;
}

describe('a crowd', () => {
  test('is no tenant, one tenant, and requests of nobody', () => {
    const crowd = new Crowd();
    assert.equal(crowd.isShared(0), false);
    for (const tenant of ['a', '', 'a', '']) {
      crowd.came(tenant, 1);
      assert.equal(crowd.isShared(1), false);
    }
  });

  test('is over a while after another tenant was there last', () => {
    const crowd = sharedAt(0);
    assert.equal(crowd.isShared(LIMITS.crowdMs - 1), true);
    assert.equal(crowd.isShared(LIMITS.crowdMs), false);
    crowd.came('b', LIMITS.crowdMs);
    assert.equal(crowd.isShared(LIMITS.crowdMs), false);
    crowd.came('a', LIMITS.crowdMs);
    assert.equal(crowd.isShared(LIMITS.crowdMs), true);
  });
});

describe('the pace of reads', () => {
  test('lets a tenant read as many at once as it may while they are short, or it is alone', () => {
    const short = new ReadPace(sharedAt(0));
    short.begin('a', 0);
    short.took('a', LIMITS.longReadMs, 0);
    assert.equal(short.begin('a', 0), false);
    const alone = new ReadPace(new Crowd());
    alone.begin('a', 0);
    alone.took('a', LONG_MS, 0);
    assert.equal(alone.begin('a', 0), false);
  });

  test('the long reads of a tenant that asks for several wait, with a rest as long as they take', () => {
    const pace = new ReadPace(sharedAt(0));
    pace.begin('a', 0);
    pace.begin('a', 0);
    pace.took('a', LONG_MS, 100);
    pace.end('a');
    assert.equal(pace.begin('a', 100), true);
    assert.equal(pace.restMs('a', 100), LONG_MS);
    assert.equal(pace.restMs('a', 110), LONG_MS - 10);
    assert.equal(pace.begin('b', 100), false);
    assert.equal(pace.restMs('b', 100), 0);
    pace.took('a', 60_000, 200);
    assert.ok(pace.restMs('a', 200) < LIMITS.readWaitMs);
  });

  test('knows nothing of one who asks for one after the other', () => {
    const pace = new ReadPace(sharedAt(0));
    pace.begin('a', 0);
    pace.took('a', LONG_MS, 0);
    pace.end('a');
    assert.equal(pace.begin('a', 0), false);
    assert.equal(pace.restMs('a', 0), 0);
  });
});
