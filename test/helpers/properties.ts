/**
 * Runs properties so that a failure can be repeated: the seed of every run is printed with its test,
 * `FC_SEED` sets it, `FC_PATH` goes straight to the case that a failure named (give the test's name
 * to `--test-name-pattern`, since a path belongs to one property), and `FC_RUNS` multiplies the cases, of which
 * the fast tier tries a fifth.
 */

import type { TestContext } from 'node:test';
import fc from 'fast-check';
import { CASES_SHARE, isDeep } from './depth.js';

const { FC_SEED, FC_PATH, FC_RUNS = String(CASES_SHARE) } = process.env;

/** Whether all cases are run, so that statistics over them mean something. */
export const isWholeRun = FC_PATH === undefined && Number(FC_RUNS) >= 1;

/**
 * Checks `law` on `runs` cases.
 *
 * @param kept the seed of all tiers but the deep one, for cases of which a rare one may be new to the law itself
 * @throws with the smallest counterexample, its seed and its path
 */
export function check<T>(
  t: TestContext,
  runs: number,
  cases: fc.Arbitrary<T>,
  law: (of: T) => void,
  kept?: number,
) {
  const usual = kept === undefined || isDeep ? randomSeed() : kept;
  const seed = FC_SEED === undefined ? usual : Number(FC_SEED);
  t.diagnostic(`FC_SEED=${seed}`);
  fc.assert(fc.property(cases, law), {
    seed,
    includeErrorInReport: true,
    numRuns: Math.ceil(runs * Number(FC_RUNS)),
    ...(FC_PATH === undefined ? {} : { path: FC_PATH }),
  });
}

const randomSeed = (): number => Math.floor(Math.random() * 0x7fff_ffff);
