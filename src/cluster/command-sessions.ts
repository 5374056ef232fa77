/** Sessions of a command that moves a tenant: they hold locks that engines wait for, and delete the copied rows. */

import type pg from 'pg';
import { withSettings } from '../db/database-url.js';
import { type ConnectionOptions, createClient } from '../db/pool.js';

/** The server ends the session within half a minute when the machine of the command is lost. */
const SETTINGS =
  '-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3 -c tcp_user_timeout=25000';

/**
 * A deletion in one cell must not overtake the replicas of the other, whatever the role has set. Any setting but `off`
 * waits for the disk.
 */
const DURABLE = `select set_config('synchronous_commit', coalesce(
  nullif(current_setting('synchronous_commit'), 'off'), 'on'), false)`;

/** A query of a lost session rejects. */
export async function connectCommand(
  options: Omit<ConnectionOptions, 'applicationName'>,
): Promise<pg.Client> {
  const client = createClient({
    ...options,
    connectionString: withSettings(options.connectionString, SETTINGS),
    applicationName: 'tenants move',
  });
  client.on('error', () => undefined);
  await client.connect();
  await client.query(DURABLE);
  return client;
}

export async function transaction<Result>(
  client: pg.ClientBase,
  work: () => Promise<Result>,
): Promise<Result> {
  await client.query('begin');
  try {
    const result = await work();
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
}
