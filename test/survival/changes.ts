/**
 * The change feed: instances over all shards and writer lanes, whose units are committed in any
 * order, while one reader follows in tiny pages and another one by a stream. Both see every entry
 * of every audit, once, in order.
 */

import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import type { TaskInstance } from '../../schema/instance.js';
import { type Api, eventually, newHandler, step, type Tenant } from '../helpers/api.js';
import { assertSame, auditOf, PageReader, StreamReader } from '../helpers/changes.js';
import { expectStatus, NoReplyError, UnexpectedStatusError } from '../helpers/client.js';
import { byDepth } from '../helpers/depth.js';
import { subject } from '../helpers/survival.js';

export const changes = subject();
const { survives } = changes;

const CALLERS = 4;
const PAUSE_MS = 80;

/** One tenant with its two readers. */
interface Followed {
  readonly tenant: Tenant;
  readonly pages: PageReader;
  readonly stream: StreamReader;
  /** Fails with its steps being tried again; waits for a worker, and is cancelled. */
  readonly sequences: readonly string[];
}

async function follow(api: Api, tenant: Tenant): Promise<Followed> {
  const retry = { max_attempts: 6, initial_backoff: 1, max_backoff: 5 };
  const sequences = [
    await tenant.sequence([step('a', 'fail', { params: { retryable: true }, retry })]),
    await tenant.sequence([step('a', newHandler())]),
  ];
  const stream = new StreamReader(api, tenant.name);
  await stream.open();
  return { tenant, pages: new PageReader(7), stream, sequences };
}

/** Again and again; a server that is down, just starting or busy is no failure. */
async function repeat(isOver: () => boolean, work: (turn: number) => Promise<void>): Promise<void> {
  for (let turn = 0; !isOver(); turn += 1) {
    try {
      await work(turn);
    } catch (error) {
      const isRefused = error instanceof UnexpectedStatusError && [429, 503].includes(error.status);
      if (!isRefused && !(error instanceof NoReplyError)) throw error;
    }
    await pause(PAUSE_MS);
  }
}

/** Creates an instance; every second one is moved three times. */
async function act({ tenant, sequences }: Followed, turn: number): Promise<void> {
  const body = tenant.creation(sequences[turn % 2] as string);
  const { body: created } = await tenant.post<{ id?: string }>('/instances', body);
  if (turn % 2 === 0 || created.id === undefined) return;
  for (const signal_type of ['pause', 'resume', 'cancel']) {
    await tenant.post(`/instances/${created.id}/signals`, { signal_type });
  }
}

/** When nothing happens any more, both readers have seen the same as the audits. */
async function check({ tenant, pages, stream }: Followed): Promise<number> {
  await eventually(async () => {
    const query = '/instances?limit=1000&state=scheduled,running';
    assert.deepEqual(expectStatus(await tenant.get<TaskInstance[]>(query), 200), []);
  });
  // A busy server refuses lists that wait for too long.
  const expected = await eventually(() => auditOf(tenant));
  await eventually(() => pages.drain(tenant));
  assertSame(pages.seen, expected);
  await stream.until(expected.length);
  assertSame(stream.seen, expected);
  stream.close();
  return expected.length;
}

survives('readers in pages and by streams see everything once, in order', async (tenant, api) => {
  const followed = await follow(api, tenant);
  const { pages } = followed;
  let isOver = false;
  let work: Promise<unknown>;
  const seen = async (more: number) => {
    const before = pages.seen.length;
    await eventually(() => assert.ok(pages.seen.length >= before + more));
  };
  return {
    underWay: async () => {
      const callers = Array.from({ length: CALLERS }, () =>
        repeat(
          () => isOver,
          (turn) => act(followed, turn),
        ),
      );
      work = Promise.all([
        ...callers,
        repeat(
          () => isOver,
          () => pages.drain(tenant),
        ),
      ]);
      await seen(byDepth(60, 600));
    },
    check: async () => {
      await seen(byDepth(60, 600));
      isOver = true;
      await work;
      await check(followed);
    },
  };
});

/** Takes the database away from the server, and gives it back when the work is done. */
export async function withoutDatabase(api: Api, work: () => Promise<unknown>): Promise<void> {
  const url = new URL(api.database.connectionString);
  const name = url.pathname.slice(1);
  url.pathname = '/postgres';
  const sql = new pg.Client({ connectionString: url.href });
  await sql.connect();
  await sql.query(`alter database "${name}" with allow_connections false`);
  const others = 'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1';
  await sql.query(others, [name]);
  await work();
  await sql.query(`alter database "${name}" with allow_connections true`);
  await sql.end();
}

/** Pages are refused while the database is away, and streams wait; both go on by themselves. */
export async function databaseAway(api: Api): Promise<void> {
  const tenant = api.tenant();
  const followed = await follow(api, tenant);
  for (let turn = 0; turn < 6; turn += 1) await act(followed, turn);
  const answers = (status: number) =>
    eventually(async () => assert.equal((await tenant.get('/changes')).status, status));
  // Its own connection is ended, too.
  api.sql.on('error', () => undefined);
  await withoutDatabase(api, () => answers(503));
  await answers(200);
  for (let turn = 0; turn < 6; turn += 1) await act(followed, turn);
  assert.ok((await check(followed)) > 20);
}
