/**
 * The change feed under load: instances over three shards and three writer lanes, whose units are
 * committed in any order, while one reader follows in tiny pages and another one by a stream. Both
 * see every entry of every audit, once, in order; also across a `kill -9`.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import type { TaskInstance } from '../../schema/instance.js';
import { eventually, newHandler, step, type Tenant, useApi } from '../helpers/api.js';
import { assertSame, auditOf, PageReader, StreamReader } from '../helpers/changes.js';
import { expectStatus, NoReplyError, UnexpectedStatusError } from '../helpers/client.js';
import { byDepth } from '../helpers/depth.js';

const CALLERS = 12;
const TENANTS = 3;
/** What each caller does: an instance is created, and every second one moved three times. */
const TURNS = byDepth(10, 25);

const api = useApi({ env: { ENGINE_SHARDS: '3', ENGINE_WRITER_LANES: '3' } });

/** One tenant with its two readers. */
interface Followed {
  readonly tenant: Tenant;
  readonly pages: PageReader;
  readonly stream: StreamReader;
  /** Fails with its steps being tried again; waits for a worker, and is cancelled. */
  readonly sequences: readonly string[];
}

async function follow(): Promise<Followed> {
  const tenant = api.tenant();
  const retry = { max_attempts: 6, initial_backoff: 1, max_backoff: 5 };
  const sequences = [
    await tenant.sequence([step('a', 'fail', { params: { retryable: true }, retry })]),
    await tenant.sequence([step('a', newHandler())]),
  ];
  const stream = new StreamReader(api, tenant.name);
  await stream.open();
  return { tenant, pages: new PageReader(7), stream, sequences };
}

/** What a server that is killed leaves unanswered is no failure, nor that the next one is starting. */
async function attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof NoReplyError) return undefined;
    if (error instanceof UnexpectedStatusError && error.status === 503) return undefined;
    throw error;
  }
}

/** Creates instances and moves them, until told to stop. */
async function act({ tenant, sequences }: Followed, isOver: () => boolean): Promise<void> {
  for (let turn = 0; !isOver(); turn++) {
    await attempt(async () => {
      const body = tenant.creation(sequences[turn % 2] as string);
      const { body: created } = await tenant.post<{ id?: string }>('/instances', body);
      if (turn % 2 === 0 || created.id === undefined) return;
      for (const signal_type of ['pause', 'resume', 'cancel']) {
        await tenant.post(`/instances/${created.id}/signals`, { signal_type });
      }
    });
  }
}

async function readOn({ tenant, pages }: Followed, isOver: () => boolean): Promise<void> {
  while (!isOver()) await attempt(() => pages.drain(tenant));
}

/** Nothing happens any more. */
async function settled(tenant: Tenant): Promise<void> {
  await eventually(async () => {
    const query = '/instances?limit=1000&state=scheduled,running';
    const live = expectStatus(await tenant.get<TaskInstance[]>(query), 200);
    assert.deepEqual(live, []);
  });
}

async function check({ tenant, pages, stream }: Followed): Promise<number> {
  await settled(tenant);
  const expected = await auditOf(tenant);
  await pages.drain(tenant);
  assertSame(pages.seen, expected);
  await stream.until(expected.length);
  assertSame(stream.seen, expected);
  stream.close();
  return expected.length;
}

test('readers in tiny pages and by streams see everything once, while units commit in any order', async () => {
  const followed = await Promise.all(Array.from({ length: TENANTS }, follow));
  let over = 0;
  const isOver = () => over > 0;
  const callers = Array.from({ length: CALLERS }, async (_, index) => {
    const one = followed[index % TENANTS] as Followed;
    let turns = TURNS;
    await act(one, () => turns-- === 0);
  });
  const readers = followed.map((one) => readOn(one, isOver));
  await Promise.all(callers);
  over = 1;
  await Promise.all(readers);
  // At least four entries of each.
  for (const one of followed) assert.ok((await check(one)) > (CALLERS / TENANTS) * TURNS * 4);
});

test('readers go on with their cursors after kill -9', async () => {
  const followed = await follow();
  let isOver = false;
  const callers = Array.from({ length: 6 }, () => act(followed, () => isOver));
  const reader = readOn(followed, () => isOver);
  for (let kills = 0; kills < byDepth(1, 2); kills++) {
    const seen = followed.pages.seen.length;
    await eventually(() => assert.ok(followed.pages.seen.length > seen + byDepth(60, 150)));
    await api.restart('SIGKILL');
  }
  isOver = true;
  await Promise.all([...callers, reader]);
  await check(followed);
});

test('while the database is away pages are 503 and streams wait; both go on by themselves', async () => {
  const followed = await follow();
  let turns = 6;
  await act(followed, () => turns-- === 0);
  const url = new URL(api.database.connectionString);
  const name = url.pathname.slice(1);
  url.pathname = '/postgres';
  const sql = new pg.Client({ connectionString: url.href });
  await sql.connect();
  await sql.query(`alter database "${name}" with allow_connections false`);
  await sql.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [
    name,
  ]);
  const { tenant } = followed;
  await eventually(async () => assert.equal((await tenant.get('/changes')).status, 503));
  await sql.query(`alter database "${name}" with allow_connections true`);
  await sql.end();
  await eventually(async () => assert.equal((await tenant.get('/changes')).status, 200));
  turns = 6;
  await act(followed, () => turns-- === 0);
  assert.ok((await check(followed)) > 20);
});
