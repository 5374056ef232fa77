/** Schedules that fire every second while their server is killed, or another takes over. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import type { ScheduleCreated } from '../../../schema/cron.js';
import { firedInstanceId } from '../../../src/core/ids.js';
import { eventually, startApi, step } from '../../helpers/api.js';
import { createClient, expectStatus } from '../../helpers/client.js';
import { createTestDatabase, type TestDatabase } from '../../helpers/database.js';
import { startEngine } from '../../helpers/engine.js';

const TENANT = 'cron-restart';
/** A take-over lasts some seconds, and longer on a slow machine. */
const TAKE_OVER_MS = 150_000;
const SCHEDULES = 5;

let database: TestDatabase;
let sql: pg.Client;

before(async () => {
  database = await createTestDatabase();
  sql = new pg.Client({ connectionString: database.connectionString });
  await sql.connect();
});
after(async () => {
  await sql?.end();
  await database?.drop();
});

interface Fired {
  readonly id: string;
  readonly key: string;
  readonly state: string;
}

async function firedBy(schedule: string): Promise<Fired[]> {
  const text =
    'select id, idempotency_key as key, state from instances where cron_schedule_id = $1 ' +
    'order by created_at, id';
  return (await sql.query<Fired>(text, [schedule])).rows;
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
    }, TAKE_OVER_MS);
  }
}

/** Disabled by their rows' owner, and at rest. */
async function stopAndCheck(
  schedules: readonly string[],
  disable: (id: string) => Promise<{ readonly status: number }>,
): Promise<void> {
  for (const id of schedules) assert.equal((await disable(id)).status, 200);
  for (const id of schedules) await eventually(() => assertOnce(id));
}

test('a server that is killed while it fires, and starts again, leaves one instance per fire time', async () => {
  const api = await startApi({ database, env: { ENGINE_SHARDS: '2' } });
  try {
    const tenant = api.tenant(TENANT);
    const sequence_id = await tenant.sequence([step('a', 'noop')]);
    const body = { tenant_id: TENANT, namespace: 'n', sequence_id, cron_expr: '* * * * * ? *' };
    const schedules: string[] = [];
    for (let i = 0; i < SCHEDULES; i++) {
      schedules.push(expectStatus(await tenant.post<ScheduleCreated>('/cron', body), 201).id);
    }
    for (let kills = 0; kills < 2; kills++) {
      await untilAllFired(schedules, 2);
      await api.restart();
    }
    await untilAllFired(schedules, 2);
    await stopAndCheck(schedules, (id) => tenant.put(`/cron/${id}`, { enabled: false }));
  } finally {
    await api.stop();
  }
});

test('a standby that takes over goes on with the schedules', async () => {
  const start = (waitFor: 'ready' | 'listening') =>
    startEngine({ databaseUrl: database.connectionString, waitFor });
  const owner = await start('ready');
  const standby = await start('listening');
  const clients = [owner, standby].map(({ url, apiKey }) =>
    createClient({ url, apiKey, tenant: TENANT }),
  );
  const [first, second] = clients as [(typeof clients)[0], (typeof clients)[0]];
  try {
    const place = { tenant_id: TENANT, namespace: 'n' };
    const sequence = { ...place, name: 'standby', version: 1, blocks: [step('a', 'noop')] };
    const { id: sequence_id } = expectStatus(
      await first.post<{ id: string }>('/sequences', sequence),
      201,
    );
    const body = { ...place, sequence_id, cron_expr: '* * * * * ? *' };
    const { id } = expectStatus(await first.post<ScheduleCreated>('/cron', body), 201);
    await untilAllFired([id], 2);
    await owner.kill('SIGKILL');
    await standby.waitReady(TAKE_OVER_MS);
    await untilAllFired([id], 2);
    await stopAndCheck([id], (schedule) => second.put(`/cron/${schedule}`, { enabled: false }));
  } finally {
    await Promise.all(clients.map((client) => client.close()));
    await standby.stop();
    await owner.stop();
  }
});
