/** Slots of concurrency keys, and who waits for one. */

import assert from 'node:assert/strict';
import { eventually, type Json, race, sleep, step } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { assertNeverMore, aWhile, lineOf, untilAll } from '../helpers/slots.js';
import { subject } from '../helpers/survival.js';

export const slots = subject();
const { survives } = slots;

/** Never over within a test. */
const LONG_MS = 600_000;

survives('who had a slot has it, who waited waits, and all complete', async (_tenant, api) => {
  const line = await lineOf(api, 3);
  const { tenant, handler, key } = line;
  const task = step('a', handler);
  const run = (block: Json, more: Json = {}) => tenant.run([block], { ...key, ...more });
  const failed = await run(task);
  await tenant.fail(await tenant.task(handler), 'no');
  const retry = { max_attempts: 2, initial_backoff: LONG_MS, max_backoff: LONG_MS };
  const inBackOff = await run(step('a', handler, { retry }));
  await tenant.fail(await tenant.task(handler), 'busy', true);
  const paused = await run(task);
  await tenant.until(paused, 'waiting');
  await tenant.signal(paused, 'pause');
  const later = await run(task, { next_fire_at: '2100-01-01T00:00:00.000Z' });
  const waits = await run(task);
  await tenant.until(waits, 'waiting');
  const runs = await run(race('r', [[sleep('s', LONG_MS)], [task]]));
  await tenant.until(runs, 'running');
  const ids = [failed, inBackOff, paused, later, waits, runs, await run(task), await run(task)];
  const states = async () => {
    const all = await Promise.all(ids.map((id) => tenant.instance(id)));
    return all.map(({ state, next_fire_at }) => [state, next_fire_at]);
  };
  const before = await states();
  return async () => {
    await aWhile(api);
    assert.deepEqual(await states(), before);
    expectStatus(await tenant.post(`/instances/${failed}/retry`), 200);
    await tenant.signal(paused, 'resume');
    assert.equal((await tenant.move(later, 'running')).state, 'scheduled');
    // Between its tries it has kept its slot.
    assert.equal((await tenant.move(inBackOff, 'running')).state, 'running');
    for (const _ of ids) await line.serve();
    await untilAll(tenant, ids, 'completed');
    await eventually(() => assertNeverMore(3, tenant, ids));
  };
});

survives('never more than the maximum, while slots change hands', async (_tenant, api) => {
  const line = await lineOf(api, 2, () => [sleep('a', 20), step('b', 'noop')]);
  const { tenant, sequence, ids } = line;
  return {
    underWay: async () => {
      await Promise.all(Array.from({ length: 40 }, () => line.add()));
      const path = `/instances?sequence_id=${sequence}&state=completed`;
      await eventually(async () => {
        assert.notDeepEqual(expectStatus(await tenant.get(path), 200), []);
      });
    },
    check: async () => {
      await untilAll(tenant, ids, 'completed');
      await eventually(() => assertNeverMore(2, tenant, ids));
    },
  };
});
