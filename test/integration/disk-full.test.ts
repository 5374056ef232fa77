/**
 * A disk that is really full: the tables of the database lie on a small file system in memory, which another file
 * fills. Mounting it takes root, so it is a long form; outage.test.ts has the same with an error that is made up.
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
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import pg from 'pg';
import { eventually, type Json, newHandler, startApi, step } from '../helpers/api.js';
import { createClient } from '../helpers/client.js';
import { startPostgres } from '../helpers/database.js';
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

test('while the disk is full writes are refused with the reason, and nothing that was acknowledged is lost', {
  skip,
}, async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'small-disk-'));
  const ends: (() => unknown)[] = [];
  t.after(async () => {
    for (const end of ends.toReversed()) await end();
  });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE},mode=0755`, 'tmpfs', folder]);
  ends.push(() => {
    execFileSync('umount', ['-l', folder]);
    rmSync(folder, { recursive: true, force: true });
  });
  const postgres = await startPostgres();
  ends.push(() => postgres.stop());
  const space = path.join(folder, 'space');
  mkdirSync(space);
  const { uid, gid } = statSync(`/proc/${postgres.pid}`);
  chownSync(space, uid, gid);
  const database = await postgres.createDatabase();
  const name = new URL(database.connectionString).pathname.slice(1);
  const elsewhere = new URL(database.connectionString);
  elsewhere.pathname = '/postgres';
  const admin = new pg.Client(elsewhere.href);
  await admin.connect();
  await admin.query(`create tablespace small location '${space}'`);
  await admin.query(`alter database "${name}" set tablespace small`);
  await admin.end();

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
  const refusal = await eventually(async () => {
    if (waiting.size < WAITING_MAX) {
      const written = write().finally(() => waiting.delete(written));
      waiting.add(written);
    }
    const ready = await probe.get<{ reason?: { kind: string } }>('/health/ready');
    assert.equal(ready.status, 503);
    return ready.body;
  });
  assert.equal(refusal.reason?.kind, 'disk-full');
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
    assert.match(reply.text, /its disk is full/);
    assert.match(String(reply.headers['retry-after']), /^\d+$/);
  }
  assert.equal((await tenant.get<Json[]>('/instances')).status, 200);
  for (const id of acknowledged) assert.equal((await tenant.instance(id)).id, id);
  rmSync(filler);
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
