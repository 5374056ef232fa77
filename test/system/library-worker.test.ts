/**
 * Worker processes of the library, killed with their server. CHAOS_SEED repeats the choices.
 *
 * Cost: 25 s, since it kills its workers and their server.
 */

import { fork } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { KILLS_ENV, surviveKills } from '../chaos/killed-workers.js';
import { useApi } from '../helpers/api.js';
import { byDepth } from '../helpers/depth.js';

const CHILD = fileURLToPath(new URL('./library-worker.child.js', import.meta.url));
const WORKER_KILLS = byDepth(1, 120);
const SERVER_KILLS = byDepth(1, 30);

const seed = Number(process.env.CHAOS_SEED ?? randomInt(0x1_0000_0000));
const api = useApi({ env: KILLS_ENV });

test(`${WORKER_KILLS} kills of worker processes and ${SERVER_KILLS} of the server: every claim is run once, ends once, and nothing is lost`, (t) =>
  surviveKills(t, {
    api,
    seed,
    workerKills: WORKER_KILLS,
    serverKills: SERVER_KILLS,
    start: (plan) => fork(CHILD, [plan]),
  }));
