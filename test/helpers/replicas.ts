/** A server whose commits wait for a replica that never comes. */

import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import type pg from 'pg';
import { withClient } from '../../src/db/pool.js';

/**
 * Commits wait from now on: when one does, since the server takes its time after it has read the setting.
 * @param connectionString of the database that `admin` is connected to, as superuser
 */
export async function confirmNone(admin: pg.Client, connectionString: string): Promise<void> {
  await admin.query(`alter system set synchronous_standby_names = 'nobody'`);
  await admin.query('select pg_reload_conf()');
  const options = { connectionString, applicationName: 'probe' };
  const probing = withClient(options, async (client) => {
    await client.query('set synchronous_commit = on');
    for (;;) await client.query(`select pg_logical_emit_message(true, 'probe', '')`);
  });
  await Promise.all([
    waiting(admin, 'probe').then((id) => admin.query('select pg_terminate_backend($1::int)', [id])),
    assert.rejects(probing),
  ]);
}

/** Those that wait go on. */
export async function confirmAll(admin: pg.Client): Promise<void> {
  await admin.query('alter system reset synchronous_standby_names');
  await admin.query('select pg_reload_conf()');
}

/** The process of that name that waits for a replica, once there is another one than `before`. */
export async function waiting(
  admin: pg.Client,
  applicationName: string,
  before?: number,
): Promise<number> {
  for (;;) {
    const { rows } = await admin.query<{ pid: number }>(
      `select pid from pg_stat_activity where application_name = $1 and wait_event = 'SyncRep'`,
      [applicationName],
    );
    const found = rows.find(({ pid }) => pid !== before);
    if (found !== undefined) return found.pid;
    await wait(10);
  }
}
