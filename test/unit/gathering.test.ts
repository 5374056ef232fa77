/** A poll over the queues of several shards, each of which answers when the test says so. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Gathering } from '../../actors/queue/gathering.js';
import type { FoundTask, TaskClaim } from '../../actors/runtime/protocol.js';
import { LIMITS } from '../../src/limits.js';

interface Ask {
  readonly shard: number;
  readonly limit: number;
  readonly until: number;
}

class Shards {
  readonly asks: Ask[] = [];
  readonly ended: number[] = [];
  readonly givenBack: TaskClaim[] = [];
  done = 0;
  readonly gathering: Gathering;

  constructor(shards: number, limit: number, until: number) {
    const effects = {
      ask: (shard: number, _: readonly string[], wanted: number, end: number) => {
        this.asks.push({ shard, limit: wanted, until: end });
      },
      end: (shard: number) => this.ended.push(shard),
      giveBack: (claim: TaskClaim) => this.givenBack.push(claim),
      done: () => {
        this.done += 1;
      },
    };
    const all = Array.from({ length: shards }, (_, shard) => [shard, [`h${shard}`]] as const);
    this.gathering = new Gathering(effects, all, limit, until);
    this.gathering.start();
  }

  /** The shard answers what it was asked first. */
  answer(shard: number, count: number, record = '{}'): void {
    const at = this.asks.findIndex((ask) => ask.shard === shard);
    assert.ok(at >= 0, `shard ${shard} was not asked`);
    this.asks.splice(at, 1);
    assert.ok(this.gathering.heard(shard, found(shard, count, record)));
  }
}

let made = 0;
function found(shard: number, count: number, record: string): FoundTask[] {
  return Array.from({ length: count }, () => {
    made += 1;
    return { task: `${shard}-${made}`, epoch: 1, record };
  });
}

test('what is ready is taken from one shard after the other, each asked for what is left', () => {
  const shards = new Shards(3, 5, 1_000);
  assert.deepEqual(shards.asks, [{ shard: 0, limit: 5, until: 0 }]);
  shards.answer(0, 2);
  assert.deepEqual(shards.asks, [{ shard: 1, limit: 3, until: 0 }]);
  shards.answer(1, 3);
  assert.deepEqual([shards.asks, shards.done, shards.gathering.found.length], [[], 1, 5]);
});

test('it waits at all shards when none has anything, and the first that has ends the others', () => {
  const shards = new Shards(3, 5, 1_000);
  for (const shard of [0, 1, 2]) shards.answer(shard, 0);
  assert.deepEqual(
    shards.asks,
    [0, 1, 2].map((shard) => ({ shard, limit: 5, until: 1_000 })),
  );
  shards.answer(1, 4);
  assert.deepEqual(shards.ended, [0, 2]);
  shards.answer(0, 3);
  assert.equal(shards.done, 0, 'the last has yet to say that it does not wait');
  shards.answer(2, 0);
  assert.deepEqual([shards.done, shards.gathering.found.length], [1, 5]);
  assert.equal(shards.givenBack.length, 2, 'what is over the limit is given back');
});

test('one shard is asked to wait at once, and one that may not wait is asked once', () => {
  assert.deepEqual(new Shards(1, 5, 1_000).asks, [{ shard: 0, limit: 5, until: 1_000 }]);
  const shards = new Shards(2, 5, 0);
  shards.answer(0, 0);
  shards.answer(1, 0);
  assert.deepEqual([shards.asks, shards.done], [[], 1]);
});

test('what a shard says that nobody asks is not wanted', () => {
  const shards = new Shards(2, 5, 0);
  assert.equal(shards.gathering.heard(1, found(1, 1, '{}')), false);
});

test('the answer stops at the size limit', () => {
  const shards = new Shards(2, 5, 1_000);
  shards.answer(0, 1, 'x'.repeat(LIMITS.responseBytesMax - 1));
  shards.answer(1, 2);
  assert.deepEqual([shards.gathering.found.length, shards.givenBack.length], [1, 2]);
});

test('whatever the shards answer and when, it ends once, and no task is lost or beyond the limit', () => {
  const steps = fc.array(fc.tuple(fc.nat(9), fc.nat(4)), { maxLength: 40 });
  const law = fc.property(
    fc.integer({ min: 1, max: 4 }),
    fc.integer({ min: 1, max: 6 }),
    fc.constantFrom(0, 1_000, Number.POSITIVE_INFINITY),
    steps,
    (count, limit, until, list) => {
      const shards = new Shards(count, limit, until);
      let claimed = 0;
      const answer = (n: number, wanted: number) => {
        const ask = shards.asks[n % shards.asks.length];
        if (ask === undefined) return;
        const given = Math.min(wanted, ask.limit);
        claimed += given;
        shards.answer(ask.shard, given);
      };
      for (const [n, wanted] of list) {
        if (n === 9) shards.gathering.end();
        else answer(n, wanted);
      }
      shards.gathering.end();
      while (shards.asks.length > 0) answer(0, 0);
      assert.equal(shards.done, 1);
      const kept = shards.gathering.found.length;
      assert.equal(kept + shards.givenBack.length, claimed);
      assert.ok(kept <= limit);
      assert.ok(kept === limit || shards.givenBack.length === 0);
    },
  );
  fc.assert(law, { numRuns: 500 });
});
