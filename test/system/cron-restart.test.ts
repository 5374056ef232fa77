/** Schedules that fire every second while their server is killed. `standby.test.ts` has another take over. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ScheduleCreated } from '../../schema/cron.js';
import { firedInstanceId } from '../../src/core/ids.js';
import { eventually, step, useApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { byDepth } from '../helpers/depth.js';

const SCHEDULES = 5;

const api = useApi({ env: { ENGINE_SHARDS: '2' } });

interface Fired {
  readonly id: string;
  readonly key: string;
  readonly state: string;
}

async function firedBy(schedule: string): Promise<Fired[]> {
  const text =
    'select id, idempotency_key as key, state from instances where cron_schedule_id = $1 ' +
    'order by created_at, id';
  return (await api.sql.query<Fired>(text, [schedule])).rows;
}

/** Every instance is the one of its fire time, and no fire time has two. */
async function assertOnce(schedule: string): Promise<void> {
  const fired = await firedBy(schedule);
  const keys = fired.map(({ key }) => key);
  assert.equal(new Set(keys).size, keys.length);
  for (const { id, key, state } of fired) {
    const at = Date.parse(key.slice(`cron:${schedule}:`.length));
    assert.equal(id, firedInstanceId(schedule, at));
    assert.equal(at % 1_000, 0);
    assert.equal(state, 'completed');
  }
}

/** Resolves when each schedule has fired some more. */
async function untilAllFired(schedules: readonly string[], more: number): Promise<void> {
  const before = new Map<string, number>();
  for (const id of schedules) before.set(id, (await firedBy(id)).length);
  for (const id of schedules) {
    await eventually(async () => {
      const fired = await firedBy(id);
      assert.ok(fired.length >= (before.get(id) ?? 0) + more);
    });
  }
}

test('a server that is killed while it fires, and starts again, leaves one instance per fire time', async () => {
  const tenant = api.tenant();
  const sequence_id = await tenant.sequence([step('a', 'noop')]);
  const body = { tenant_id: tenant.name, namespace: 'n', sequence_id, cron_expr: '* * * * * ? *' };
  const schedules: string[] = [];
  for (let i = 0; i < SCHEDULES; i++) {
    schedules.push(expectStatus(await tenant.post<ScheduleCreated>('/cron', body), 201).id);
  }
  for (let kills = 0; kills < byDepth(1, 2); kills++) {
    await untilAllFired(schedules, 2);
    await api.restart();
  }
  await untilAllFired(schedules, 2);
  for (const id of schedules) {
    expectStatus(await tenant.put(`/cron/${id}`, { enabled: false }), 200);
  }
  for (const id of schedules) await eventually(() => assertOnce(id));
});
