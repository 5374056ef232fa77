/**
 * A clock that a test can set, in one database of a real Postgres: functions of the same names stand
 * before the server's own in the search path.
 */

import type pg from 'pg';

/**
 * For sessions that begin from now on. Returns what sets the clock, ahead of the server's own or
 * behind it.
 */
export async function shadowClock(
  admin: Pick<pg.Client, 'query'>,
  database: string,
): Promise<(aheadMs: number) => Promise<void>> {
  await admin.query(`
    create schema shadow;
    create table shadow.clock (ahead interval not null);
    insert into shadow.clock values ('0');
    create function shadow.clock_timestamp() returns timestamptz volatile language sql
      as 'select pg_catalog.clock_timestamp() + ahead from shadow.clock';
    create function shadow.now() returns timestamptz volatile language sql
      as 'select pg_catalog.now() + ahead from shadow.clock';
  `);
  await admin.query(`alter database ${database} set search_path = shadow, pg_catalog, public`);
  return async (aheadMs) => {
    const interval = `${aheadMs} milliseconds`;
    await admin.query('update shadow.clock set ahead = $1::interval', [interval]);
  };
}
