/** Delay, retry with back-off, and timeouts of in-process and external steps. */

import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import {
  eventually,
  newHandler,
  type SharedApi,
  sharedApi,
  step,
  type Tenant,
} from '../helpers/api.js';

let api: SharedApi;
let tenant: Tenant;
/** Never answers, so that an http_request to it lasts until it is aborted. */
let silent: Server;
let silentUrl: string;

before(async () => {
  silent = createServer(() => undefined);
  await new Promise<void>((resolve) => {
    silent.listen(0, '127.0.0.1', resolve);
  });
  silentUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`;
  api = await sharedApi();
  tenant = api.tenant();
});
after(async () => {
  await api.stop();
  silent.closeAllConnections();
  silent.close();
});

describe('delay', () => {
  test('the instance is scheduled with the wake as next_fire_at, and runs then', async () => {
    const began = Date.now();
    const id = await tenant.run([
      step('a', 'noop'),
      step('b', 'noop', { delay: { duration: 3_000 } }),
    ]);
    const waiting = await tenant.instance(id);
    assert.equal(waiting.state, 'scheduled');
    const due = Date.parse(waiting.next_fire_at ?? '');
    assert.ok(due >= began + 3_000 && due < began + 60_000);
    assert.equal((await tenant.outputs(id)).length, 1);
    await tenant.until(id, 'completed');
    const rows = await tenant.get<{ created_at: string }[]>(`/instances/${id}/outputs`);
    assert.ok(Date.parse(rows.body[1]?.created_at ?? '') >= due);
  });

  test('a delay before an external step makes no task before its end', async () => {
    const handler = newHandler();
    await tenant.run([step('a', handler, { delay: { duration: 2_000 } })]);
    assert.deepEqual(await tenant.poll(handler), []);
    assert.ok(await tenant.task(handler));
  });

  test('a delay of 0 delays nothing', async () => {
    const id = await tenant.run([step('a', 'noop', { delay: { duration: 0 } })]);
    assert.equal((await tenant.instance(id)).state, 'completed');
  });

  test('it is not served again by the retries of its step', async () => {
    const began = Date.now();
    const id = await tenant.run([
      step('a', 'fail', {
        params: { retryable: true },
        delay: { duration: 2_000 },
        retry: { max_attempts: 3, initial_backoff: 1, max_backoff: 1 },
      }),
    ]);
    await tenant.until(id, 'failed');
    assert.ok(Date.now() - began < 3 * 2_000);
  });
});

describe('retry', () => {
  test('a permanent failure is not tried again, nor one without a policy', async () => {
    for (const more of [
      { params: { retryable: false }, retry: { max_attempts: 5, initial_backoff: 60_000 } },
      { params: { retryable: true } },
    ]) {
      const id = await tenant.run([step('a', 'fail', more)]);
      await tenant.until(id, 'failed');
    }
  });
});

describe('timeout', () => {
  test('an in-process step is aborted and fails retryably', async () => {
    const began = Date.now();
    const id = await tenant.run([
      step('a', 'http_request', { params: { url: silentUrl }, timeout: 200 }),
    ]);
    await tenant.until(id, 'failed');
    assert.ok(Date.now() - began >= 200);
    const error = (await tenant.outputs(id))[0]?.output;
    assert.equal(error?.retryable, true);
    assert.match(String(error?.message), /timed? ?out/i);
  });

  test('a completion in time is not overtaken by the timeout', async () => {
    const handler = newHandler();
    const id = await tenant.run([
      step('a', handler, { timeout: 2_000 }),
      step('b', 'sleep', { params: { duration_ms: 2_500 } }),
    ]);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
    await eventually(async () => assert.equal((await tenant.outputs(id)).length, 2));
  });
});
