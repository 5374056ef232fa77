/** Timers that run on, or stand still, while the server is down. */

import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { newHandler, parallel, sleep, step } from '../helpers/api.js';
import { DOWN_MS, subject } from '../helpers/survival.js';

export const timers = subject();
const { survives } = timers;

survives(
  '`sleep` is a durable timer and survives a restart with its deadline',
  async (tenant, api) => {
    const durationMs = 2 * DOWN_MS;
    let id = '';
    return {
      atTheKill: async () => {
        id = await tenant.run([sleep('a', durationMs)]);
      },
      check: async () => {
        const { created_at } = await tenant.until(id, 'completed');
        const [row] = await tenant.outputs(id);
        assert.deepEqual(row?.output, { slept_ms: durationMs });
        const endedAt = Date.parse(row?.created_at ?? '');
        const slept = endedAt - Date.parse(created_at);
        assert.ok(slept >= durationMs, `slept for ${slept} ms`);
        // One that began anew would take all of its time from there on.
        const ready = api.engine.logs().find(({ msg }) => msg === 'ready');
        const left = endedAt - Date.parse(String(ready?.time));
        assert.ok(left < durationMs, `slept for ${left} ms after the start`);
      },
    };
  },
);

survives(
  '`timeout` of a step is durable: it passes while the server is down, as do delays, back-offs and starts',
  async (tenant) => {
    const soon = 0.8 * DOWN_MS;
    const worked = (more: object) => [step('a', newHandler(), { ...more })];
    const ids: Record<string, string> = {};
    return {
      atTheKill: async () => {
        ids.delayed = await tenant.run([step('a', 'noop', { delay: { duration: soon } })]);
        const next_fire_at = new Date(Date.now() + soon).toISOString();
        ids.started = await tenant.run([step('a', 'noop')], { next_fire_at });
        const retry = { max_attempts: 2, initial_backoff: soon };
        ids.retried = await tenant.run([step('a', 'fail', { params: { retryable: true }, retry })]);
        const handler = newHandler();
        ids.timed = await tenant.run([step('a', handler, { timeout: soon })]);
        await tenant.task(handler);
        ids.unclaimed = await tenant.run(worked({ queue_timeout: soon }));
        ids.late = await tenant.run(worked({ deadline: soon }));
        ids.blocked = await tenant.run([{ ...parallel('p', worked({})), timeout: soon }]);
        ids.whole = await tenant.run(worked({}), { timeout: soon });
        const again = { max_attempts: 2, initial_backoff: 1 };
        ids.retriedInTime = await tenant.run(worked({ queue_timeout: soon, retry: again }));
      },
      check: async () => {
        const { delayed = '', started = '', ...others } = ids;
        for (const id of [delayed, started]) await tenant.until(id, 'completed');
        for (const id of Object.values(others)) await tenant.until(id, 'failed');
        assert.equal((await tenant.outputs(ids.retried ?? ''))[0]?.attempt, 1);
      },
    };
  },
);

survives('a pause: no tasks are offered, and limits stand still', async (tenant) => {
  const timeout = 2 * DOWN_MS;
  const handler = newHandler();
  const id = await tenant.run([{ ...parallel('p', [step('a', handler)]), timeout }]);
  await tenant.signal(id, 'pause');
  const over = pause(timeout);
  return async () => {
    assert.deepEqual(await tenant.poll(handler), []);
    await over;
    assert.equal((await tenant.instance(id)).state, 'paused');
    await tenant.signal(id, 'resume');
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
  };
});
