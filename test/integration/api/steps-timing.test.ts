/** Delay, retry with back-off, and timeouts of in-process and external steps. */

import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { WorkerAttempt, WorkerTask } from '../../../schema/worker.js';
import {
  eventually,
  newHandler,
  type SharedApi,
  sharedApi,
  step,
  type Tenant,
} from '../../helpers/api.js';

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

  test('jitter stays within its bounds around the duration', async () => {
    const sequence = await tenant.sequence([
      step('a', 'noop', { delay: { duration: 100_000, jitter: 50_000 } }),
    ]);
    const offsets = new Set<number>();
    for (let index = 0; index < 10; index++) {
      const instance = await tenant.instance(await tenant.create(sequence));
      const offset = Date.parse(instance.next_fire_at ?? '') - Date.parse(instance.created_at);
      assert.ok(offset >= 50_000 && offset <= 150_000, String(offset));
      offsets.add(offset);
    }
    assert.ok(offsets.size > 1);
  });

  test('business days: the wake is moved past the weekend in the zone of the instance', async () => {
    const sequence = await tenant.sequence([
      step('a', 'noop', { delay: { duration: 86_400_000, business_days_only: true } }),
    ]);
    const zone = 'Pacific/Auckland';
    const id = await tenant.create(sequence, { timezone: zone });
    const { next_fire_at } = await tenant.instance(id);
    const weekday = new Intl.DateTimeFormat('en', { weekday: 'short', timeZone: zone });
    assert.doesNotMatch(weekday.format(new Date(next_fire_at ?? '')), /Sat|Sun/);
  });
});

describe('retry', () => {
  test('an in-process step is tried max_attempts times in total, then fails', async () => {
    const id = await tenant.run([
      step('a', 'fail', {
        params: { message: 'flaky', retryable: true },
        retry: { max_attempts: 3, initial_backoff: 10, max_backoff: 20 },
      }),
    ]);
    await tenant.until(id, 'failed');
    const rows = await tenant.outputs(id);
    assert.equal(rows.length, 1);
    assert.equal(rows[0]?.attempt, 2);
    const { body } = await tenant.get<{ entries: { is_sentinel: boolean }[] }>(
      `/instances/${id}/timeline`,
    );
    assert.ok(body.entries.every((entry) => entry.is_sentinel));
  });

  test('the waits grow by the multiplier up to the maximum', async () => {
    const id = await tenant.run([
      step('a', 'fail', {
        params: { retryable: true },
        retry: { max_attempts: 4, initial_backoff: 100, max_backoff: 250, backoff_multiplier: 2 },
      }),
    ]);
    const began = Date.now();
    await tenant.until(id, 'failed');
    const took = Date.now() - began;
    assert.ok(took >= 500 && took < 60_000, `${took} ms`);
  });

  test('during the wait the instance is scheduled at its end', async () => {
    const id = await tenant.run([
      step('a', 'fail', {
        params: { retryable: true },
        retry: { max_attempts: 2, initial_backoff: 60_000 },
      }),
    ]);
    const { state, next_fire_at } = await tenant.instance(id);
    assert.equal(state, 'scheduled');
    const wait = Date.parse(next_fire_at ?? '') - Date.now();
    assert.ok(wait > 50_000 && wait <= 60_000, String(wait));
    assert.deepEqual(await tenant.outputs(id), []);
  });

  test('a permanent failure is not tried again, nor one without a policy', async () => {
    for (const more of [
      { params: { retryable: false }, retry: { max_attempts: 5, initial_backoff: 60_000 } },
      { params: { retryable: true } },
    ]) {
      const id = await tenant.run([step('a', 'fail', more)]);
      await tenant.until(id, 'failed');
    }
  });

  test('retry_if and non_retryable_codes decide over a retryable failure', async () => {
    const retry = { max_attempts: 3, initial_backoff: 1, max_backoff: 1 };
    const run = (more: object, message: string) =>
      tenant.run([
        step('a', 'fail', { params: { message, retryable: true }, retry: { ...retry, ...more } }),
      ]);
    const tries = async (id: string) => {
      await tenant.until(id, 'failed');
      return (await tenant.outputs(id))[0]?.attempt;
    };
    const retry_if = "contains(_error.message, 'busy')";
    assert.equal(await tries(await run({ retry_if }, 'busy')), 2);
    assert.equal(await tries(await run({ retry_if }, 'gone')), 0);
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

  test('with a policy it is tried again', async () => {
    const id = await tenant.run([
      step('a', 'http_request', {
        params: { url: silentUrl },
        timeout: 50,
        retry: { max_attempts: 3, initial_backoff: 1, max_backoff: 1 },
      }),
    ]);
    await tenant.until(id, 'failed');
    assert.equal((await tenant.outputs(id))[0]?.attempt, 2);
  });

  test('a sleep that is too long for its timeout fails at the timeout', async () => {
    const began = Date.now();
    const id = await tenant.run([
      step('a', 'sleep', { params: { duration_ms: 600_000 }, timeout: 100 }),
    ]);
    await tenant.until(id, 'failed');
    assert.ok(Date.now() - began < 300_000);
  });

  test('an external step fails finally without a policy; its late call is refused', async () => {
    const handler = newHandler();
    const id = await tenant.run([step('a', handler, { timeout: 200 })]);
    const task = await tenant.task(handler);
    assert.equal(task.timeout_ms, 200);
    await tenant.until(id, 'failed');
    const late = { worker_id: 'w1', output: {} };
    const complete = `/workers/tasks/${task.id}/complete`;
    assert.equal((await tenant.post(complete, late)).status, 404);
    assert.equal((await tenant.post(complete, { ...late, claim_epoch: 1 })).status, 409);
    const [listed] = (await tenant.get<WorkerTask[]>(`/workers/tasks?handler_name=${handler}`))
      .body;
    assert.equal(listed?.state, 'failed');
    assert.match(listed?.error_message ?? '', /timed out/);
    const { body } = await tenant.get<WorkerAttempt[]>(`/workers/tasks/${task.id}/attempts`);
    assert.deepEqual(
      body.map((entry) => entry.event),
      ['claimed', 'timed_out', 'stale_mutation_rejected'],
    );
  });

  test('an external step that nobody claims times out as well', async () => {
    const handler = newHandler();
    const id = await tenant.run([step('a', handler, { timeout: 100 })]);
    await tenant.until(id, 'failed');
    assert.deepEqual(await tenant.poll(handler), []);
  });

  test('an external step with a policy gets a new task after its timeout', async () => {
    const handler = newHandler();
    const id = await tenant.run([
      step('a', handler, {
        timeout: 2_000,
        retry: { max_attempts: 2, initial_backoff: 1, max_backoff: 1 },
      }),
    ]);
    const first = await tenant.task(handler);
    const second = await tenant.task(handler);
    assert.notEqual(second.id, first.id);
    assert.equal(second.attempt, 1);
    await tenant.complete(second);
    await tenant.until(id, 'completed');
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
