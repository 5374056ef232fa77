/**
 * How many lanes the writer gets when the operator does not say: measured, because it depends on
 * how long the disk takes to make a commit durable.
 */

import { performance } from 'node:perf_hooks';
import { createClient, type DbLog } from '../../src/db/pool.js';
import { WRITER_SETTINGS } from '../../src/db/statements.js';

/** The most that are chosen; `lanes` needs a row for each. More would only share the same disk. */
export const LANES_MAX = 4;

/** Where a commit takes so long, waiting for the disk leaves room for another transaction. */
const SLOW_COMMIT_MS = 1;
const VERY_SLOW_COMMIT_MS = 4;

/** The median of so many; the first ones on a new connection are slower than the rest. */
const COMMITS_MEASURED = 9;

/** A lock is written into its row, which Postgres makes durable like any other change. */
const MEASURE = {
  name: 'measure_commit',
  text: 'select from lanes where lane = 0 for no key update',
};

/**
 * 1 where sync is fast, 2 to 4 where a durable commit takes a millisecond or more.
 * @param measure milliseconds of one durable commit
 */
export async function chooseLanes(measure: () => Promise<number>): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < COMMITS_MEASURED; i++) times.push(await measure());
  const median = times.sort((a, b) => a - b)[COMMITS_MEASURED >> 1]!;
  if (median < SLOW_COMMIT_MS) return 1;
  return median < VERY_SLOW_COMMIT_MS ? 2 : LANES_MAX;
}

/** `chooseLanes` for this database, which the caller owns. @throws Error when it is away */
export async function measuredLanes(connectionString: string, log: DbLog): Promise<number> {
  const client = createClient({ connectionString, applicationName: 'engine measure' });
  // A connection that breaks fails the query under way.
  client.on('error', () => undefined);
  await client.connect();
  try {
    await client.query(WRITER_SETTINGS);
    let commitMs = 0;
    const lanes = await chooseLanes(async () => {
      const startedAt = performance.now();
      await client.query(MEASURE);
      commitMs = performance.now() - startedAt;
      return commitMs;
    });
    log.info({ lanes, commitMs }, 'number of lanes chosen by the time of a commit');
    return lanes;
  } finally {
    await client.end();
  }
}
