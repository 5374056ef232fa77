/** Sessions of a command that moves a tenant. */

import type pg from 'pg';
import { withSettings } from '../db/database-url.js';
import { type ConnectionOptions, createClient } from '../db/pool.js';

/** If the machine of the command is lost, the server releases the locks, for which engines wait, within 30 seconds. */
const SETTINGS =
  '-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3 -c tcp_user_timeout=25000';

/** Waits for the disk, whatever the role has set: a deletion in one cell must not overtake the copy in the other. */
const DURABLE = `select set_config('synchronous_commit', coalesce(
  nullif(current_setting('synchronous_commit'), 'off'), 'on'), false)`;

export async function connectCommand(options: Omit<ConnectionOptions, 'applicationName'>) {
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

export async function transaction<Result>(client: pg.ClientBase, work: () => Promise<Result>) {
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
