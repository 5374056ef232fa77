/** The evaluator on steps that have asked their rate limit for a grant, and on lost questions. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parallel, play, START, work } from '../helpers/player.js';

const AGAIN_MS = 2_000;
const env = { isRateLimited: () => true };
const step = { node: 0, iteration: '', attempt: 0 };
const blocks = [work('a', { rate_limit_key: 'k', timeout: 500 })];

describe('a step that asks its rate limit', () => {
  test('keeps the instance running, with a time to ask again', () => {
    play(blocks, { env }).shows({
      state: 'running',
      wakeAt: START + AGAIN_MS,
      tree: { a: 'running' },
    });
  });

  test('asks again for the same try when no answer has come, as often as it takes', () => {
    const player = play(blocks, { env });
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
    const player = play(blocks, { env });
    player.now += AGAIN_MS - 1;
    player.after('wake').shows({ asked: 1 });
  });

  test('takes a late answer to the first question, and ignores the second answer', () => {
    const player = play(blocks, { env }).tick();
    player.send({ kind: 'rate.granted', ...step });
    assert.deepEqual(player.atWork, ['a']);
    assert.equal(player.last!.wakeAt, null, 'no time to ask again is left');
    assert.equal(player.send({ kind: 'rate.granted', ...step }).stale, true);
    assert.equal(player.dispatched.length, 1);
  });

  test('has no time to ask again once it is put off', () => {
    const player = play(blocks, { env });
    player.send({ kind: 'rate.deferred', ...step, until: START + 60_000 });
    player.shows({ wakeAt: START + 60_000, state: 'scheduled' });
  });

  test('asks nothing while the instance is paused, and again after it', () => {
    const player = play(blocks, { env });
    player.after('pause').shows({ wakeAt: null });
    player.now += 2 * AGAIN_MS;
    player.after('wake').shows({ asked: 1 });
    player.after('resume').shows({ asked: 2, state: 'running' });
  });

  test('asks again beside a branch that waits for its worker', () => {
    const player = play([parallel('p', [work('b')], blocks)], { env });
    assert.equal(player.state, 'running');
    player.after('tick').shows({ asked: 2, atWork: ['b'] });
  });

  test('asks no more when it is cut off', () => {
    play(blocks, { env }).after('cancel').shows({ state: 'cancelled', wakeAt: null });
  });
});
