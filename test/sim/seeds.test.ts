/**
 * The simulation in `npm test`: the seeds that once failed, and then the same 2,000 every time. For
 * others see `npm run test:sim`.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canPatch, INSTANCE_STATES, isTerminal } from '../../src/core/states.js';
import { SIGNALS } from './clients.js';
import { FAULTS, PEER_KINDS } from './faults.js';
import { KEPT_SEEDS } from './kept-seeds.js';
import { runSeeds, seedsFrom } from './many-seeds.js';
import { MOVES } from './release-oracle.js';
import { simulate } from './simulate.js';

const SEEDS = 2_000;

/** With so many failures something is wrong with all of them, and a few tell enough. */
const FAILURES_MAX = 5;

let counts: ReadonlyMap<string, number> = new Map();

for (const { seed, found } of KEPT_SEEDS) {
  test(`seed ${seed}, which once found: ${found}`, async () => {
    const { failures } = await runSeeds({ seeds: [seed], failuresMax: 1 });
    assert.deepEqual(failures, []);
  });
}

test('a seed is the same run each time', async () => {
  for (const seed of seedsFrom(1, 10)) {
    const [first, second] = [await simulate(seed), await simulate(seed)];
    assert.equal(second.hash, first.hash, `seed ${seed}`);
    assert.equal(second.events, first.events, `seed ${seed}`);
  }
});

test(`seeds 1 to ${SEEDS}: nothing promised is lost, nothing happens twice, everything ends`, async (t) => {
  const result = await runSeeds({ seeds: seedsFrom(1, SEEDS), failuresMax: FAILURES_MAX });
  counts = result.counts;
  t.diagnostic(`seeds 1 to ${SEEDS}: ${result.events} events, ${Math.round(result.ms)} ms`);
  t.diagnostic(
    [...counts]
      .sort()
      .map((one) => one.join(': '))
      .join(', '),
  );
  assert.equal(result.failures.length, 0, result.failures.join('\n'));
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

/** That many times over all seeds, at the least. */
function expectEach(names: readonly string[], times: number): void {
  const rare = names.filter((name) => (counts.get(name) ?? 0) < times);
  assert.deepEqual(
    rare.map((name) => `${name}: ${counts.get(name) ?? 0}`),
    [],
  );
}
