/**
 * Runs seeds in a thread of their own: in the thread of a test every promise is tracked by the test
 * runner, and the runs are made of promises.
 */

import { parentPort, workerData } from 'node:worker_threads';
import { Counts } from './faults.js';
import { readableFailure } from './report.js';
import { simulate } from './simulate.js';

/** Which seeds, and after how many failures to stop. */
export interface SeedsTask {
  readonly seeds: readonly number[];
  readonly failuresMax: number;
  readonly isBrief?: boolean;
  /** Whether it counts for the coverage. */
  readonly isCovered?: boolean;
}

export interface SeedsResult {
  /** By seed: what is wrong with it, to be read. */
  readonly failures: ReadonlyMap<number, string>;
  /** Of everything that happened in each seed, in their order. */
  readonly hashes: readonly string[];
  readonly counts: ReadonlyMap<string, number>;
  readonly events: number;
  /** Of the processor. */
  readonly ms: number;
}

const { seeds, failuresMax, isBrief = false } = workerData as SeedsTask;
const counts = new Counts();
const failures = new Map<number, string>();
const hashes: string[] = [];
let events = 0;
const startedAt = process.cpuUsage();
for (const seed of seeds) {
  if (failures.size === failuresMax) break;
  const outcome = await simulate(seed, { isBrief });
  events += outcome.events;
  counts.addAll(outcome.counts);
  hashes.push(`${outcome.hash} ${outcome.events}`);
  if (outcome.violation !== undefined) failures.set(seed, await readableFailure(seed, isBrief));
}
const { user, system } = process.cpuUsage(startedAt);
const result: SeedsResult = {
  failures,
  hashes,
  counts: counts.byName,
  events,
  ms: (user + system) / 1_000,
};
parentPort?.postMessage(result);
