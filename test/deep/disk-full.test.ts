/**
 * A disk that is really full: the tables of the database, or its log, lie on a small file system in memory, which
 * another file fills. Mounting it takes root, so it is a long form; database.test.ts has the same with an error that is made up.
 */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chownSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  statSync,
  symlinkSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { startCrashablePostgres } from '../chaos/postgres.js';
import { eventually, type Json, newHandler, startApi, step } from '../helpers/api.js';
import { createClient } from '../helpers/client.js';
import { startPostgres, type TestDatabase, withAdmin } from '../helpers/database.js';
import { isDeep } from '../helpers/depth.js';

const SIZE = '160M';
const PIECE = Buffer.alloc(65_536);
/** Of one context, which nothing makes smaller: it needs more room than is left in pages that are there. */
const TEXT = randomBytes(75_000).toString('base64');
/** Writes that wait for room at once. */
const WAITING_MAX = 8;

const skip =
  (!isDeep && 'npm run test:deep') ||
  ((process.platform !== 'linux' || process.getuid?.() !== 0) && 'only root may mount');

/** A file system in memory that is full when it has so many bytes. */
function mountSmall(ends: Ends): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'small-disk-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE},mode=0755`, 'tmpfs', folder]);
  ends.push(() => {
    execFileSync('umount', ['-l', folder]);
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

type Ends = (() => unknown)[];

interface SmallDisk {
  readonly folder: string;
  readonly database: TestDatabase;
  /** Why nothing can be written while it is full. */
  readonly kinds: readonly string[];
  readonly refusal: RegExp;
  /** It answers what only reads. */
  readonly isRead: boolean;
  /** What somebody has to do when there is room again. */
  revive(): Promise<void>;
}

async function withTables(ends: Ends): Promise<SmallDisk> {
  const folder = mountSmall(ends);
  const postgres = await startPostgres();
  ends.push(() => postgres.stop());
  const space = path.join(folder, 'space');
  mkdirSync(space);
  const { uid, gid } = statSync(`/proc/${postgres.pid}`);
  chownSync(space, uid, gid);
  const database = await postgres.createDatabase();
  const elsewhere = new URL(database.connectionString);
  elsewhere.pathname = '/postgres';
  await withAdmin(elsewhere.href, async (admin) => {
    await admin.query(`create tablespace small location '${space}'`);
    await admin.query(`alter database "${database.name}" set tablespace small`);
  });
  return {
    folder,
    database,
    kinds: ['disk-full'],
    isRead: true,
    refusal: /its disk is full/,
    revive: async () => undefined,
  };
}

/** Postgres itself ends then, since it can promise nothing more. */
async function withLog(ends: Ends): Promise<SmallDisk> {
  const folder = mountSmall(ends);
  const postgres = await startCrashablePostgres();
  ends.push(() => postgres.remove());
  const { rows } = await withAdmin(postgres.url, (admin) =>
    admin.query<{ data_directory: string }>('show data_directory'),
  );
  const log = path.join(rows[0]?.data_directory ?? '', 'pg_wal');
  await postgres.crash();
  execFileSync('cp', ['-a', `${log}/.`, folder]);
  rmSync(log, { recursive: true });
  symlinkSync(folder, log);
  await postgres.start();
  return {
    folder,
    database: { name: 'postgres', connectionString: postgres.url, drop: async () => undefined },
    kinds: ['disk-full', 'unreachable'],
    isRead: false,
    refusal: /unavailable: /,
    revive: () => postgres.start(),
  };
}

for (const [what, prepare] of [
  ['its tables', withTables],
  ['its log', withLog],
] as const)
  test(`while the disk of ${what} is full writes are refused with the reason, and nothing that was acknowledged is lost`, {
    skip,
  }, async (t) => {
    const ends: Ends = [];
    t.after(async () => {
      for (const end of ends.toReversed()) await end();
    });
    const { folder, database, kinds, refusal, isRead, revive } = await prepare(ends);

    const api = await startApi({ database });
    ends.push(() => api.stop());
    // The contract of readiness is the operator's: its refusals say more than those of requests.
    const probe = createClient({ url: api.url });
    ends.push(() => probe.close());
    const { pid } = api.engine;
    const tenant = api.tenant();
    const sequence = await tenant.sequence([step('a', 'noop')]);
    const handler = newHandler();
    const known = await tenant.create(await tenant.sequence([step('b', handler)]));
    const task = await tenant.task(handler);
    const body = tenant.creation(sequence, { context: { data: { text: TEXT } } });
    const acknowledged = [known, await tenant.create(sequence)];
    const filler = path.join(folder, 'filler');
    fill(filler);
    // Until no page has room any more. What waits for room is answered when there is some again, or its time is over.
    const waiting = new Set<Promise<void>>();
    const write = async () => {
      const reply = await tenant.post<{ id: string }>('/instances', body);
      if (reply.status === 201) acknowledged.push(reply.body.id);
      else assert.equal(reply.status, 503, reply.text);
    };
    const told = await eventually(async () => {
      if (waiting.size < WAITING_MAX) {
        const written = write().finally(() => waiting.delete(written));
        waiting.add(written);
      }
      const ready = await probe.get<{ reason?: { kind: string } }>('/health/ready');
      assert.equal(ready.status, 503);
      return ready.body;
    });
    assert.ok(kinds.includes(told.reason?.kind ?? ''), JSON.stringify(told));
    for (const reply of [
      await tenant.post('/instances', body),
      await tenant.post('/instances/batch', { instances: [body] }),
      await tenant.post(`/workers/tasks/${task.id}/complete`, {
        worker_id: task.worker_id,
        claim_epoch: task.claim_epoch,
        output: {},
      }),
    ]) {
      assert.equal(reply.status, 503, reply.text);
      assert.match(reply.text, refusal);
      assert.match(String(reply.headers['retry-after']), /^\d+$/);
    }
    if (isRead) {
      assert.equal((await tenant.get<Json[]>('/instances')).status, 200);
      for (const id of acknowledged) assert.equal((await tenant.instance(id)).id, id);
    }
    rmSync(filler);
    await revive();
    await eventually(async () => assert.equal((await probe.get('/health/ready')).status, 200));
    await Promise.all(waiting);
    await tenant.complete(task, {});
    assert.equal((await tenant.until(known, 'completed')).id, known);
    acknowledged.push(await tenant.create(sequence));
    for (const id of acknowledged) assert.equal((await tenant.instance(id)).id, id);
    assert.equal(api.engine.pid, pid, 'the same process serves');
  });

function fill(file: string): void {
  const handle = openSync(file, 'w');
  try {
    for (;;) writeSync(handle, PIECE);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(handle);
  }
}
