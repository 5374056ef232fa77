/**
 * A clock that a test can set, in one database of a real Postgres: functions of its own stand where the
 * server's were.
 */

import type pg from 'pg';

/**
 * For sessions that begin from now on, whatever their search path. Returns what sets the clock, ahead of
 * the server's own or behind it.
 */
export async function shadowClock(
  admin: Pick<pg.Client, 'query'>,
): Promise<(aheadMs: number) => Promise<void>> {
  await admin.query(`
    create schema shadow;
    create table shadow.clock (ahead interval not null);
    insert into shadow.clock values ('0');
    grant usage on schema shadow to public;
    grant select on shadow.clock to public;
    alter function pg_catalog.clock_timestamp() rename to server_clock_timestamp;
    alter function pg_catalog.now() rename to server_now;
    create function pg_catalog.clock_timestamp() returns timestamptz volatile language sql
      as 'select server_clock_timestamp() + ahead from shadow.clock';
    create function pg_catalog.now() returns timestamptz volatile language sql
      as 'select server_now() + ahead from shadow.clock';
  `);
  return async (aheadMs) => {
    await admin.query('update shadow.clock set ahead = $1::interval', [`${aheadMs} milliseconds`]);
  };
}
