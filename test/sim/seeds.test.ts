/**
 * The simulation: the seeds that once failed, and others, in their brief form or, in the deep tier, at length.
 * SIM_SEED is the first of the others. More of them: `npm run test:sim`.
 *
 * Cost: 20 s, since 100 fresh seeds take a tenth of a second each, and those that once failed a second in all.
 */

import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { before, describe, test } from 'node:test';
import { canPatch, INSTANCE_STATES, isTerminal } from '../../schema/states.js';
import { byTier, isDeep } from '../helpers/depth.js';
import { SIGNALS } from './clients.js';
import { FAULTS, PEER_KINDS } from './faults.js';
import { KEPT_SEEDS } from './kept-seeds.js';
import { runSeeds, seedsFrom } from './many-seeds.js';
import { MOVES } from './release-oracle.js';

const SEEDS = byTier({ fast: 100, full: 500, deep: 10_000 });
const isBrief = !isDeep;
/** The fast tier tries others each time. */
const FIRST_SEED = Number(
  process.env.SIM_SEED ?? byTier({ fast: randomInt(1e9), full: 1, deep: 1 }),
);

/** With so many failures something is wrong with all of them, and a few tell enough. */
const FAILURES_MAX = 5;

let counts: ReadonlyMap<string, number> = new Map();

describe('a seed which once found:', () => {
  let failures: ReadonlyMap<number, string>;

  before(async () => {
    const run = (isBrief: boolean) => {
      const kept = KEPT_SEEDS.filter((one) => (one.isBrief ?? false) === isBrief);
      const seeds = kept.map(({ seed }) => seed);
      return runSeeds({ seeds, failuresMax: seeds.length, isBrief });
    };
    failures = new Map([...(await run(false)).failures, ...(await run(true)).failures]);
  });

  for (const { seed, found } of KEPT_SEEDS) {
    test(`${found} (${seed})`, () => assert.equal(failures.get(seed), undefined));
  }
});

test('a seed is the same run each time', async () => {
  const task = { seeds: seedsFrom(1, 10), failuresMax: FAILURES_MAX, isBrief, isCovered: true };
  const [first, second] = [await runSeeds(task), await runSeeds(task)];
  assert.equal(first.hashes.length, task.seeds.length);
  assert.deepEqual(second.hashes, first.hashes);
});

test(`${SEEDS} seeds: nothing promised is lost, nothing happens twice, everything ends`, async (t) => {
  const last = FIRST_SEED + SEEDS - 1;
  t.diagnostic(`seeds ${FIRST_SEED} to ${last}`);
  const seeds = seedsFrom(FIRST_SEED, SEEDS);
  const result = await runSeeds({ seeds, failuresMax: FAILURES_MAX, isBrief });
  counts = result.counts;
  assert.equal(result.failures.size, 0, [...result.failures.values()].join('\n'));
});

/** So few do not meet everything. */
const skip = SEEDS < 500 && 'npm run test:full';

describe('together the seeds', { skip }, () => {
  test('have met every fault', () => {
    expectEach(FAULTS, 20);
  });

  test('have lost every kind of message between shards, and delivered each twice', () => {
    expectEach(
      PEER_KINDS.map((kind) => `lost ${kind}`),
      3,
    );
    expectEach(
      PEER_KINDS.map((kind) => `twice ${kind}`),
      3,
    );
  });

  test('have sent every signal in every state, and made every move of PATCH state', () => {
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

  test('have made every move of releases, and sent creations to either side', () => {
    expectEach(
      Object.entries(MOVES).flatMap(([move, actors]) =>
        actors.map((actor) => `release ${move.replace(' ', ' to ')} by ${actor}`),
      ),
      5,
    );
    expectEach(['creation routed to baseline', 'creation routed to candidate'], 100);
  });

  test('have answered questions in every way, sent events, ended children and sagas', () => {
    const ends = ['answered', 'timed_out', 'escalated', 'withdrawn'].map(
      (end) => `question ${end}`,
    );
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
    expectEach(['seen by a step', 'seen of an error', 'key of a try'], 500);
  });

  test('have delivered tasks to worker endpoints', () => {
    expectEach(['deliveries to endpoints'], 500);
  });

  test('have kept records of instances, and held them against what was committed', () => {
    expectEach(['record kept'], 500);
  });
});

/** Each so many times over 2,000 seeds; in their brief form a share of that, all together. */
function expectEach(names: readonly string[], times: number): void {
  const met = names.map((name) => ({ name, count: counts.get(name) ?? 0 }));
  if (isBrief) {
    const together = met.reduce((sum, { count }) => sum + Math.min(count, times), 0);
    const least = (times * names.length * SEEDS) / 2_000 / 2;
    assert.ok(together >= least, `${together} of at least ${least}: ${JSON.stringify(met)}`);
    return;
  }
  const rare = met.filter(({ count }) => count < times);
  assert.deepEqual(rare, []);
}
