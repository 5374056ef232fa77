/**
 * The default number of lanes of the writer. Two concurrent transactions cost more processor time than two
 * sequential ones; that pays only where cores idle while the disk makes a commit durable. So the number of
 * cores decides first, then the time of a commit.
 */

import { availableParallelism } from 'node:os';
import { performance } from 'node:perf_hooks';
import { allowCustomPlans } from '../../src/db/distributed.js';
import { type DbLog, withClient } from '../../src/db/pool.js';
import { WRITER_SETTINGS } from '../../src/db/statements.js';

/** `lanes` needs a row for each; more would only share the same disk. */
export const LANES_MAX = 4;
/** An additional lane for batches, whose flushes take longer than others should wait. */
export const BATCH_LANES = 1;
/** With two cores, a second lane took 19 to 29 % more processor time per task of 16 workers. */
const CORES_OF_ONE_LANE = 2;
/** A commit of this length leaves time for another transaction while it waits for the disk. */
const SLOW_COMMIT_MS = 1;
const VERY_SLOW_COMMIT_MS = 4;
/** The first commits on a new connection, during a start, are not representative. */
const COMMITS_BEFORE = 10;
const COMMITS_MEASURED = 12;

/** A lock is written into its row, which Postgres makes durable like a change. */
const MEASURE = {
  name: 'measure_commit',
  text: 'select from lanes where lane = 0 for no key update',
};

/**
 * 1 where sync is fast, 2 to 4 where a durable commit takes a millisecond or more. Other load on the disk
 * lengthens some commits, so the faster ones count.
 * @param measure returns the milliseconds of one durable commit
 */
export async function chooseLanes(measure: () => Promise<number>): Promise<number> {
  for (let i = 0; i < COMMITS_BEFORE; i++) await measure();
  const times: number[] = [];
  for (let i = 0; i < COMMITS_MEASURED; i++) times.push(await measure());
  const commitMs = times.sort((a, b) => a - b)[COMMITS_MEASURED >> 2]!;
  if (commitMs < SLOW_COMMIT_MS) return 1;
  return commitMs < VERY_SLOW_COMMIT_MS ? 2 : LANES_MAX;
}

/** @throws Error when the database is unavailable */
export async function measuredLanes(
  connectionString: string,
  log: DbLog,
  cores = availableParallelism(),
): Promise<number> {
  const isSmall = cores <= CORES_OF_ONE_LANE;
  const chosen = isSmall ? { lanes: 1 } : await measured(connectionString);
  log.info({ ...chosen, cores }, 'number of lanes chosen by cores and the time of a commit');
  return chosen.lanes;
}

function measured(connectionString: string): Promise<{ lanes: number; commitMs: number }> {
  return withClient({ connectionString, applicationName: 'engine measure' }, async (client) => {
    await client.query(WRITER_SETTINGS);
    await allowCustomPlans(client);
    let commitMs = 0;
    const lanes = await chooseLanes(async () => {
      const startedAt = performance.now();
      await client.query(MEASURE);
      commitMs = performance.now() - startedAt;
      return commitMs;
    });
    return { lanes, commitMs };
  });
}
