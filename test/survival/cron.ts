/** Schedules that fire every second. */

import assert from 'node:assert/strict';
import type { CronSchedule, ScheduleCreated } from '../../schema/cron.js';
import { firedInstanceId } from '../../src/base/ids.js';
import { type Api, eventually, newHandler, step } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { subject } from '../helpers/survival.js';

export const cron = subject();
const { survives } = cron;

const SCHEDULES = 3;

interface Fired {
  readonly id: string;
  readonly key: string;
  readonly state: string;
}

async function firedBy({ sql }: Api, schedule: string): Promise<Fired[]> {
  const text =
    'select id, idempotency_key as key, state from instances where cron_schedule_id = $1';
  return (await sql.query<Fired>(text, [schedule])).rows;
}

/** Every instance is the one of its fire time, and no fire time has two. */
async function assertOnce(api: Api, schedule: string): Promise<void> {
  const fired = await firedBy(api, schedule);
  assert.equal(new Set(fired.map(({ key }) => key)).size, fired.length);
  for (const { id, key, state } of fired) {
    const at = Date.parse(key.slice(`cron:${schedule}:`.length));
    assert.deepEqual([id, at % 1_000, state], [firedInstanceId(schedule, at), 0, 'completed']);
  }
}

/** Resolves when the schedule has fired some more. */
async function untilFired(api: Api, schedule: string, more: number): Promise<void> {
  const before = (await firedBy(api, schedule)).length;
  await eventually(async () => {
    assert.ok((await firedBy(api, schedule)).length >= before + more);
  });
}

survives('schedules that fire leave one instance per fire time', async (tenant, api) => {
  const sequence_id = await tenant.sequence([step('a', 'noop')]);
  const body = { tenant_id: tenant.name, namespace: 'n', sequence_id, cron_expr: '* * * * * ? *' };
  const ids = await Promise.all(
    Array.from({ length: SCHEDULES }, async () => {
      return expectStatus(await tenant.post<ScheduleCreated>('/cron', body), 201).id;
    }),
  );
  await Promise.all(ids.map((id) => untilFired(api, id, 1)));
  return async () => {
    await Promise.all(ids.map((id) => untilFired(api, id, 2)));
    for (const id of ids) {
      expectStatus(await tenant.put(`/cron/${id}`, { enabled: false }), 200);
    }
    for (const id of ids) await eventually(() => assertOnce(api, id));
  };
});

survives('a fire that waits for a run outlives a change of its schedule', async (tenant, api) => {
  const sequence_id = await tenant.sequence([step('a', newHandler())]);
  const place = { tenant_id: tenant.name, namespace: 'n', sequence_id };
  const body = { ...place, cron_expr: '* * * * * ? *', overlap_policy: 'buffer_one' };
  const { id } = expectStatus(await tenant.post<ScheduleCreated>('/cron', body), 201);
  const read = async () => (await tenant.get<CronSchedule>(`/cron/${id}`)).body;
  const waiting = await eventually(async () => {
    const { next_fire_at, last_triggered_at } = await read();
    assert.ok(last_triggered_at !== null && Date.parse(next_fire_at ?? '') < Date.now() - 100);
    return next_fire_at;
  });
  expectStatus(await tenant.put(`/cron/${id}`, { metadata: { n: 1 } }), 200);
  return async () => {
    assert.equal((await read()).next_fire_at, waiting);
    const [first] = await firedBy(api, id);
    await tenant.signal(first?.id as string, 'cancel');
    await eventually(async () => {
      const keys = (await firedBy(api, id)).map(({ key }) => key);
      assert.ok(keys.includes(`cron:${id}:${waiting}`), keys.join());
    });
    expectStatus(await tenant.put(`/cron/${id}`, { enabled: false }), 200);
  };
});
