/** What becomes of events that fire triggers when the server is killed between the two. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import pg from 'pg';
import type { EventReceipt } from '../../schema/event.js';
import type { TaskInstance } from '../../schema/instance.js';
import { eventually, type Json, step, type Tenant, useApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

const api = useApi();

/** Its slug. */
async function trigger(tenant: Tenant, event_name: string): Promise<string> {
  const slug = `t-${randomUUID()}`;
  await tenant.sequence([step('a', 'noop')], { name: slug });
  const body = { slug, tenant_id: tenant.name, namespace: 'test', sequence_name: slug };
  const config = { event_name };
  expectStatus(await tenant.post('/triggers', { ...body, trigger_type: 'event', config }), 201);
  return slug;
}

/** Its id. */
async function send(tenant: Tenant, event_name: string, payload: Json): Promise<string> {
  const body = { event_name, producer_event_id: randomUUID(), payload };
  return expectStatus(await tenant.post<EventReceipt>('/events', body), 201).event_id;
}

const instancesOf = async (tenant: Tenant) =>
  expectStatus(await tenant.get<TaskInstance[]>('/instances'), 200);

const isFired = (id: string) =>
  eventually(async () => {
    const { rows } = await api.sql.query('select fires from events where id = $1', [id]);
    assert.deepEqual(rows, [{ fires: null }]);
  });

test('an event fires its trigger once, whether the server dies before the instance is there or after', async () => {
  const tenant = api.tenant();
  const slug = await trigger(tenant, 'paid');
  const after = await send(tenant, 'paid', { n: 1 });
  await isFired(after);
  const old = await send(tenant, 'nobody', { n: 2 });
  for (const { id } of await instancesOf(tenant)) await tenant.until(id, 'completed');
  // From here on no instance can be made.
  const lock = new pg.Client({ connectionString: api.database.connectionString });
  await lock.connect();
  await lock.query('begin');
  await lock.query('lock table instances in share mode');
  const before = await send(tenant, 'paid', { n: 3 });
  const waiting = "from pg_locks where relation = 'instances'::regclass and not granted";
  await eventually(async () => {
    assert.notEqual((await api.sql.query(`select 1 ${waiting}`)).rowCount, 0);
  });
  await api.engine.kill();
  await api.sql.query(`select pg_terminate_backend(pid) ${waiting}`);
  // As it is when the instance is there and its event does not say so yet; and one that was over long ago.
  const fires = JSON.stringify([slug]);
  await api.sql.query('update events set fires = $1 where id = any($2)', [fires, [after, old]]);
  const text = "update events set status = 'expired', ended_at = now() - interval '30 days'";
  await api.sql.query(`${text} where id = $1`, [old]);
  await lock.end();
  assert.equal((await api.sql.query('select 1 from instances')).rowCount, 1);
  await api.restart();
  for (const id of [before, after, old]) await isFired(id);
  const numbers = (await instancesOf(tenant)).map(({ context }) => context.data.n);
  assert.deepEqual(numbers.sort(), [1, 2, 3]);
});
