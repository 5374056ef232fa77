/**
 * Kills a server right before or right after one of its commits, which is recognised by a table that
 * it writes. Before: the write is held up by a lock and its session ended. After: the database itself
 * says that it has committed, which the server may not yet have been told.
 */

import assert from 'node:assert/strict';
import type pg from 'pg';
import { type Api, eventually } from './api.js';
import { withAdmin } from './database.js';

export type Moment = 'before' | 'after';

/**
 * Has the server do something, and kills it with SIGKILL at the commit of what it writes into the
 * table; it is running again when this resolves. What the caller of `act` was told does not matter.
 */
export async function killAt(
  moment: Moment,
  api: Api,
  table: string,
  act: () => Promise<unknown>,
): Promise<void> {
  const kill = moment === 'before' ? killBefore : killAfter;
  await withAdmin(api.database.connectionString, (session) => kill(session, api, table, act));
}

const WAITING =
  'select pid from pg_locks where not granted and relation = $1::regclass and database = ' +
  '(select oid from pg_database where datname = current_database())';

async function killBefore(
  session: pg.Client,
  api: Api,
  table: string,
  act: () => Promise<unknown>,
): Promise<void> {
  await session.query('begin');
  // Reads pass.
  await session.query(`lock table ${table} in exclusive mode`);
  const acting = act().catch(() => undefined);
  const pid = await eventually(async () => {
    const { rows } = await session.query<{ pid: number }>(WAITING, [table]);
    assert.equal(rows.length, 1, `one write to ${table} waits`);
    return rows[0]?.pid;
  }, HELD_UP_MS);
  await api.engine.kill('SIGKILL');
  // Its session has the commit at hand, and would carry it out for a server that is gone.
  await session.query('select pg_terminate_backend($1, 10000)', [pid]);
  await session.query('rollback');
  await acting;
  await api.restart();
}

async function killAfter(session: pg.Client, api: Api, table: string, act: () => Promise<unknown>) {
  await session.query(TELL);
  await session.query(
    `create trigger told after insert or update on ${table} ` +
      'for each statement execute function tell_commit()',
  );
  const committed = new Promise((resolve) => session.once('notification', resolve));
  await session.query('listen committed');
  const acting = act().catch(() => undefined);
  await committed;
  await api.engine.kill('SIGKILL');
  await acting;
  await session.query(`drop trigger told on ${table}`);
  await api.restart();
}

/** Notifications are delivered by the commit. */
const TELL =
  'create or replace function tell_commit() returns trigger language plpgsql as ' +
  "$$ begin perform pg_notify('committed', ''); return null; end $$";

const HELD_UP_MS = 300_000;
