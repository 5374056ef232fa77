/**
 * The simulation in `npm test`: the seeds that once failed, and then the same 2,000 every time, in their
 * brief form, or in depth in their long one. For others see `npm run test:sim`.
 */

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { canPatch, INSTANCE_STATES, isTerminal } from '../../src/core/states.js';
import { isDeep } from '../helpers/depth.js';
import { SIGNALS } from './clients.js';
import { FAULTS, PEER_KINDS } from './faults.js';
import { KEPT_SEEDS } from './kept-seeds.js';
import { runSeeds, seedsFrom } from './many-seeds.js';
import { MOVES } from './release-oracle.js';

const SEEDS = 2_000;
const isBrief = !isDeep;

/** With so many failures something is wrong with all of them, and a few tell enough. */
const FAILURES_MAX = 5;

let counts: ReadonlyMap<string, number> = new Map();

describe('a seed which once found:', () => {
  let failures: ReadonlyMap<number, string>;

  before(async () => {
    const seeds = KEPT_SEEDS.map(({ seed }) => seed);
    failures = (await runSeeds({ seeds, failuresMax: seeds.length })).failures;
  });

  for (const { seed, found } of KEPT_SEEDS) {
    test(`${found} (${seed})`, () => assert.equal(failures.get(seed), undefined));
  }
});

test('a seed is the same run each time', async () => {
  const task = { seeds: seedsFrom(1, 5), failuresMax: FAILURES_MAX, isBrief };
  const [first, second] = [await runSeeds(task), await runSeeds(task)];
  assert.equal(first.hashes.length, task.seeds.length);
  assert.deepEqual(second.hashes, first.hashes);
});

test(`seeds 1 to ${SEEDS}: nothing promised is lost, nothing happens twice, everything ends`, async (t) => {
  const task = { seeds: seedsFrom(1, SEEDS), failuresMax: FAILURES_MAX, isBrief };
  const result = await runSeeds(task);
  counts = result.counts;
  t.diagnostic(`seeds 1 to ${SEEDS}: ${result.events} events, ${Math.round(result.ms)} ms`);
  t.diagnostic(
    [...counts]
      .sort()
      .map((one) => one.join(': '))
      .join(', '),
  );
  assert.equal(result.failures.size, 0, [...result.failures.values()].join('\n'));
});

test('the seeds have met every fault', () => {
  expectEach(FAULTS, 20);
});

test('every kind of message between shards was lost, and was heard twice', () => {
  expectEach(
    PEER_KINDS.map((kind) => `lost ${kind}`),
    3,
  );
  expectEach(
    PEER_KINDS.map((kind) => `twice ${kind}`),
    3,
  );
});

test('every signal was accepted in every state, and every move of PATCH state was made', () => {
  const open = INSTANCE_STATES.filter((state) => !isTerminal(state));
  const signals = open.flatMap((state) =>
    Object.keys(SIGNALS).map((signal) => `signal ${signal} in ${state}`),
  );
  const moves = open.flatMap((from) =>
    INSTANCE_STATES.filter((to) => canPatch(from, to)).map((to) => `patch ${from} to ${to}`),
  );
  expectEach(signals, 5);
  expectEach(moves, 5);
});

test('releases made every move that is theirs to make, and sent creations to either side', () => {
  expectEach(
    Object.entries(MOVES).flatMap(([move, actors]) =>
      actors.map((actor) => `release ${move.replace(' ', ' to ')} by ${actor}`),
    ),
    5,
  );
  expectEach(['creation routed to baseline', 'creation routed to candidate'], 100);
});

test('people answered in every way, events came, children and sagas ended', () => {
  const ends = ['answered', 'timed_out', 'escalated', 'withdrawn'].map((end) => `question ${end}`);
  const words = ['cancel', 'pause', 'resume', 'completed', 'failed', 'cancelled'];
  expectEach([...ends, 'event taken', 'event refused', 'signal for an event'], 20);
  expectEach(
    words.map((word) => `kin told ${word}`),
    20,
  );
  expectEach(
    [0, 1, 2].map((step) => `compensation of step ${step}`),
    20,
  );
});

test('records of instances were kept, and held against what was committed', () => {
  expectEach(['record kept'], 500);
});

/** Each so many times over all seeds; in their brief form half of that, all together. */
function expectEach(names: readonly string[], times: number): void {
  const met = names.map((name) => ({ name, count: counts.get(name) ?? 0 }));
  if (isBrief) {
    const together = met.reduce((sum, { count }) => sum + Math.min(count, times), 0);
    const least = (times * names.length) / 2;
    assert.ok(together >= least, `${together} of at least ${least}: ${JSON.stringify(met)}`);
    return;
  }
  const rare = met.filter(({ count }) => count < times);
  assert.deepEqual(rare, []);
}
