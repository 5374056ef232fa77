/** The evaluator on steps that have asked their rate limit for a grant, and on lost questions. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Player, parallel, START, work } from '../helpers/player.js';

const AGAIN_MS = 2_000;
const env = { isRateLimited: () => true };
const step = { node: 0, iteration: '', attempt: 0 };
const blocks = [work('a', { rate_limit_key: 'k', timeout: 500 })];

describe('a step that asks its rate limit', () => {
  test('keeps the instance running, with a time to ask again', () => {
    const player = new Player(blocks, { env }).start();
    assert.equal(player.state, 'running');
    assert.equal(player.last!.wakeAt, START + AGAIN_MS);
    assert.equal(player.tree.a, 'running');
  });

  test('asks again for the same try when no answer has come, as often as it takes', () => {
    const player = new Player(blocks, { env }).start();
    for (let times = 2; times <= 4; times += 1) {
      player.tick();
      assert.equal(player.now, START + (times - 1) * AGAIN_MS);
      assert.equal(player.state, 'running');
      assert.deepEqual(player.asked, Array(times).fill({ ...step, blockId: 'a', key: 'k' }));
      assert.equal(player.last!.wakeAt, player.now + AGAIN_MS);
    }
    assert.equal(player.last!.counts.stepsExecuted, 0);
  });

  test('does not ask again before that time', () => {
    const player = new Player(blocks, { env }).start();
    player.now += AGAIN_MS - 1;
    player.send({ kind: 'wake' });
    assert.equal(player.asked.length, 1);
  });

  test('takes a late answer to the first question, and ignores the second answer', () => {
    const player = new Player(blocks, { env }).start().tick();
    player.send({ kind: 'rate.granted', ...step });
    assert.deepEqual(player.atWork, ['a']);
    assert.equal(player.last!.wakeAt, player.now + 500, 'only the time-out of the try is left');
    assert.equal(player.send({ kind: 'rate.granted', ...step }).stale, true);
    assert.equal(player.dispatched.length, 1);
  });

  test('has no time to ask again once it is put off', () => {
    const player = new Player(blocks, { env }).start();
    player.send({ kind: 'rate.deferred', ...step, until: START + 60_000 });
    assert.equal(player.last!.wakeAt, START + 60_000);
    assert.equal(player.state, 'scheduled');
  });

  test('asks nothing while the instance is paused, and again after it', () => {
    const player = new Player(blocks, { env }).start();
    player.send({ kind: 'pause' });
    assert.equal(player.last!.wakeAt, null);
    player.now += 2 * AGAIN_MS;
    player.send({ kind: 'wake' });
    assert.equal(player.asked.length, 1);
    player.send({ kind: 'resume' });
    assert.equal(player.asked.length, 2);
    assert.equal(player.state, 'running');
  });

  test('asks again beside a branch that waits for its worker', () => {
    const player = new Player([parallel('p', [work('b')], blocks)], { env }).start();
    assert.equal(player.state, 'running');
    player.tick();
    assert.equal(player.asked.length, 2);
    assert.deepEqual(player.atWork, ['b']);
  });

  test('asks no more when it is cut off', () => {
    const player = new Player(blocks, { env }).start();
    player.send({ kind: 'cancel' });
    assert.equal(player.state, 'cancelled');
    assert.equal(player.last!.wakeAt, null);
  });
});
