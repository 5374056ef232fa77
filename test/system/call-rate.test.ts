/** `ENGINE_HTTP_RATE_PER_TENANT` in a server with several shards: what steps and webhooks call is counted together. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { type Api, startApi, step } from '../helpers/api.js';

const PER_SECOND = 20;
const INSTANCES = 20;

let arrivals: string[] = [];
let notify: () => void = () => undefined;
const target = createServer((request, response) => {
  arrivals.push(request.url ?? '');
  request.resume();
  response.end('{}');
  notify();
});
let api: Api;
let origin: string;

before(async () => {
  target.listen(0, '127.0.0.1');
  await once(target, 'listening');
  origin = `http://127.0.0.1:${(target.address() as AddressInfo).port}`;
  api = await startApi({
    env: {
      ENGINE_SHARDS: '3',
      ENGINE_ALLOW_INTERNAL_URLS: 'true',
      ENGINE_WEBHOOK_URLS: `${origin}/webhook`,
      ENGINE_HTTP_RATE_PER_TENANT: String(PER_SECOND),
    },
  });
});

after(async () => {
  await api?.stop();
  target.close();
  target.closeAllConnections();
});

const arrived = (count: number) =>
  new Promise<void>((resolve) => {
    notify = () => {
      if (arrivals.length >= count) resolve();
    };
    notify();
  });

test('calls and webhooks of a tenant are spread over the seconds, and none of them fails', async () => {
  const tenant = api.tenant();
  const sequence = await tenant.sequence([
    step('call', 'http_request', { params: { url: `${origin}/call` } }),
  ]);
  arrivals = [];
  const beganAt = performance.now();
  const ids = await Promise.all(Array.from({ length: INSTANCES }, () => tenant.create(sequence)));
  const all = 2 * INSTANCES;
  await arrived(all);
  const tookMs = performance.now() - beganAt;
  // The first one, and those of a tenth of a second at once.
  const freeMax = 1 + PER_SECOND / 10;
  assert.ok(tookMs >= ((all - freeMax) / PER_SECOND) * 1_000, `${all} calls within ${tookMs} ms`);
  for (const id of ids) await tenant.until(id, 'completed');
  assert.deepEqual(
    [arrivals.filter((path) => path === '/call').length, arrivals.length],
    [INSTANCES, all],
  );
});
