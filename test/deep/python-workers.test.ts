/** Workers of the Python client and their server are killed again and again. */

import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import path from 'node:path';
import { before } from 'node:test';
import { KILLS_ENV, surviveKills } from '../chaos/killed-workers.js';
import { useApi } from '../helpers/api.js';
import { byDepth } from '../helpers/depth.js';
import { Wheel } from '../system/python/wheel.js';

const wheel = Wheel.use();
const api = useApi({ env: KILLS_ENV });
const seed = Number(process.env.CHAOS_SEED ?? randomInt(0x1_0000_0000));

before(() => wheel.installTests());

wheel.tried('every claim is run once, ends once, and nothing is lost', (t) =>
  surviveKills(t, {
    api,
    seed,
    workerKills: byDepth(2, 60),
    serverKills: byDepth(1, 15),
    start: (plan) =>
      spawn(wheel.python, [path.join(wheel.tests, 'killed_worker.py'), plan], { stdio: 'inherit' }),
  }),
);
