/**
 * Kills of a server while it delivers tasks to a worker endpoint that stays: no task is lost, and none is delivered twice
 * under one claim.
 *
 * Cost: 15 s, since its server is killed and has to come back.
 */

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { WorkerTask } from '../../schema/worker.js';
import { KILLS_ENV } from '../chaos/killed-workers.js';
import { eventually, newHandler, step, useApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { byDepth } from '../helpers/depth.js';
import { portOf } from '../helpers/loopback.js';

const KILLS = byDepth(2, 50);
/** Between two kills. */
const DELIVERIES = 20;
/** How long a task takes: some are in flight at each kill. */
const WORK_MS = 20;

const api = useApi({
  env: { ...KILLS_ENV, ENGINE_ALLOW_INTERNAL_URLS: 'true', ENGINE_WORKER_LOST_CLAIMS_MAX: '0' },
});

test(`${KILLS} kills lose no task of an endpoint, and deliver none twice under one claim`, async (t) => {
  const tenant = api.tenant();
  const handler = newHandler();
  const received: string[] = [];
  const server = createServer(async (request, response) => {
    received.push(String(request.headers['webhook-id']));
    let text = '';
    for await (const piece of request) text += piece;
    await pause(WORK_MS);
    const { id, claim_epoch } = JSON.parse(text) as WorkerTask;
    response.end(JSON.stringify({ mark: `${id}_${claim_epoch}` }));
  });
  const port = await portOf(server);
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const endpoint = {
    handlers: [handler],
    url: `http://127.0.0.1:${port}/`,
    secret: 'of the endpoint',
  };
  expectStatus(await tenant.put('/worker-endpoints/e', { ...endpoint, concurrency: 4 }), 200);
  const sequence = await tenant.sequence([step('a', handler), step('b', handler)]);
  const count = (KILLS + 1) * DELIVERIES;
  const ids = await Promise.all(Array.from({ length: count }, () => tenant.create(sequence)));
  for (let kill = 0; kill < KILLS; kill += 1) {
    const until = received.length + DELIVERIES;
    await eventually(() => assert.ok(received.length >= until));
    await api.restart();
  }
  for (const id of ids) {
    await tenant.until(id, 'completed');
    const outputs = await tenant.outputs(id);
    const marks = outputs.map(({ output }) => String(output.mark));
    assert.equal(marks.length, 2);
    for (const mark of marks) assert.ok(received.includes(mark), `${mark} was delivered`);
  }
  assert.equal(new Set(received).size, received.length, 'no claim is delivered twice');
  t.diagnostic(`${count * 2} tasks, ${received.length} deliveries`);
});
