/**
 * pg-boss: jobs are fetched and completed in batches, and one by one in `rounds`, always by `fetch` and
 * `complete`, since a worker of `work` polls only every half second. In `idle` a worker is woken by
 * `notifyWorker`, as its manual has it for low latency.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { createBody, SEQUENCE_ID } from '../base/fixtures.js';
import { loadPeer } from './packages.js';
import { BATCH, BULK, type Peer, type Where, type Work } from './peer.js';

const QUEUE = 'bench';
const POOL_MAX = 20;
/** An empty queue is looked at again after this. */
const EMPTY_MS = 2;
const BATCH_WORKERS = 4;

interface Boss {
  on(event: 'error', listener: (error: Error) => void): void;
  start(): Promise<unknown>;
  stop(options: { graceful: boolean; wait: boolean }): Promise<void>;
  createQueue(name: string): Promise<void>;
  send(name: string, data: object): Promise<string | null>;
  insert(jobs: readonly { name: string; data: object }[]): Promise<void>;
  fetch(name: string, options: { batchSize: number }): Promise<readonly { id: string }[]>;
  complete(name: string, ids: string | readonly string[]): Promise<unknown>;
  work(
    name: string,
    options: { pollingIntervalSeconds: number },
    handler: () => Promise<void>,
  ): Promise<string>;
  notifyWorker(id: string): void;
  getJobById(name: string, id: string): Promise<{ state: string } | null>;
}

type BossClass = new (options: { connectionString: string; max: number }) => Boss;

export async function openPgBoss(where: Where, work: Work): Promise<Peer> {
  const Class = loadPeer<BossClass>(where.folder, 'pg-boss');
  const boss = new Class({ connectionString: where.databaseUrl, max: POOL_MAX });
  let failed: Error | undefined;
  boss.on('error', (error) => {
    failed = error;
  });
  await boss.start();
  await boss.createQueue(QUEUE);
  const data = createBody(SEQUENCE_ID);
  let worker = '';
  let isClosed = false;
  const running: Promise<void>[] = [];
  const take = async (batchSize: number, onDone: (jobs: number) => void) => {
    while (!isClosed) {
      const jobs = await boss.fetch(QUEUE, { batchSize });
      if (jobs.length === 0) await pause(EMPTY_MS);
      else {
        await boss.complete(QUEUE, batchSize === 1 ? jobs[0]!.id : jobs.map(({ id }) => id));
        onDone(jobs.length);
      }
    }
  };
  return {
    create: () => boss.send(QUEUE, data),
    createMany: (count) =>
      boss.insert(Array.from({ length: count }, () => ({ name: QUEUE, data }))),
    createAndWait: async () => {
      const id = await boss.send(QUEUE, data);
      boss.notifyWorker(worker);
      while ((await boss.getJobById(QUEUE, id!))?.state !== 'completed') {
        if (failed !== undefined) throw failed;
      }
    },
    work: async (onDone) => {
      if (work.name === 'idle') {
        worker = await boss.work(QUEUE, { pollingIntervalSeconds: 0.5 }, async () => undefined);
        return;
      }
      const [loops, size] =
        work.name === 'created'
          ? [BATCH_WORKERS, BULK]
          : work.name === 'batches'
            ? [work.at, BATCH]
            : [work.at, 1];
      for (let at = 0; at < loops; at += 1) running.push(take(size, onDone));
    },
    close: async () => {
      isClosed = true;
      await Promise.all(running);
      await boss.stop({ graceful: false, wait: false });
    },
  };
}
