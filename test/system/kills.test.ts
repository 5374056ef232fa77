/**
 * The proof that nothing acknowledged is lost, with one kill of each: of servers and a Postgres under load, for which
 * `npm run chaos` has more, and of worker processes of the library. CHAOS_SEED repeats the choices.
 *
 * Cost: 40 s, since all of them are killed and have to come back.
 */

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { KILLS_ENV, surviveKills } from '../chaos/killed-workers.js';
import { type ChaosServer, startChaosServer } from '../chaos/run.js';
import { useApi } from '../helpers/api.js';
import { byDepth } from '../helpers/depth.js';

const KILLS = byDepth(1, 100);
const CRASHES = byDepth(1, 5);
/** Of each fault that ends by itself. */
const HARDSHIPS = byDepth(0, 10);
/** Of owners that stand still until they are replaced: each takes as long as a lease. */
const TAKE_OVERS = byDepth(0, 5);
const SHARDS = 2;
const CHILD = fileURLToPath(new URL('./library-worker.child.js', import.meta.url));
const WORKER_KILLS = byDepth(1, 120);
const SERVER_KILLS = byDepth(1, 30);

const seed = Number(process.env.CHAOS_SEED ?? randomInt(0x1_0000_0000));

describe('servers and a Postgres', () => {
  let server: ChaosServer;

  before(async () => {
    server = await startChaosServer(SHARDS);
  });

  after(() => server?.stop());

  const skip = HARDSHIPS === 0 && 'npm run test:deep';

  test('faults that end by themselves, kills between them, lose nothing either', {
    skip,
  }, async (t) => {
    t.diagnostic(`seed ${seed}`);
    const summary = await server.round({ seed, cycles: 5, pgCycles: 0, hardships: HARDSHIPS });
    t.diagnostic(`requests: ${JSON.stringify(summary.requests)}`);
    assert.deepEqual(summary.violations, [], `seed ${seed}`);
    const least = 10 * summary.hardships;
    assert.ok(
      summary.requests.acknowledged > least,
      `only ${summary.requests.acknowledged} promises`,
    );
  });

  test('owners that stand still until a standby has taken over write nothing when they go on', {
    skip,
  }, async (t) => {
    t.diagnostic(`seed ${seed}`);
    const summary = await server.round({ seed, cycles: 0, pgCycles: 0, takeOvers: TAKE_OVERS });
    t.diagnostic(`requests: ${JSON.stringify(summary.requests)}`);
    assert.deepEqual(summary.violations, [], `seed ${seed}`);
    assert.ok(summary.requests.acknowledged > 10 * TAKE_OVERS);
  });

  test(`${KILLS} kills of the server and ${CRASHES} crashes of Postgres lose nothing that was acknowledged`, async (t) => {
    t.diagnostic(`seed ${seed}`);
    const summary = await server.round({ seed, cycles: KILLS, pgCycles: CRASHES });
    const { instances, tasks, requests, settleMs } = summary;
    t.diagnostic(
      `${instances} instances, ${tasks} tasks, at rest after ${Math.round(settleMs)} ms`,
    );
    t.diagnostic(`requests: ${JSON.stringify(requests)}`);
    assert.deepEqual(summary.violations, [], `seed ${seed}`);
    // A run in which nothing was promised, or no answer was lost, would prove nothing.
    assert.ok(
      requests.acknowledged > 10 * KILLS,
      `only ${requests.acknowledged} promises were made`,
    );
    assert.ok(requests.unknown > KILLS, `only ${requests.unknown} answers were lost`);
    assert.ok(tasks > 2 * KILLS, `only ${tasks} tasks were taken`);
  });
});

describe('worker processes of the library and their server', () => {
  const api = useApi({ env: KILLS_ENV });

  test(`${WORKER_KILLS} kills of worker processes and ${SERVER_KILLS} of the server: every claim is run once, ends once, and nothing is lost`, (t) =>
    surviveKills(t, {
      api,
      seed,
      workerKills: WORKER_KILLS,
      serverKills: SERVER_KILLS,
      start: (plan) => fork(CHILD, [plan]),
    }));
});
