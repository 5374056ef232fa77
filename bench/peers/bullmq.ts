/**
 * BullMQ: one worker with much concurrency, which takes the next job with the completion of the one before. Queue
 * and worker have connections of their own, as its manual asks for.
 */

import { createBody, SEQUENCE_ID } from '../base/fixtures.js';
import { loadPeer } from './packages.js';
import type { Peer, Where, Work } from './peer.js';

const QUEUE = 'bench';
const JOB = 'job';
const CONCURRENCY = 100;

interface Queue {
  add(name: string, data: object): Promise<unknown>;
  addBulk(jobs: readonly { name: string; data: object }[]): Promise<unknown>;
  close(): Promise<void>;
}

interface Worker {
  once(event: 'completed', listener: () => void): void;
  on(event: 'completed' | 'error', listener: () => void): void;
  waitUntilReady(): Promise<unknown>;
  close(force: boolean): Promise<void>;
}

interface Bull {
  readonly Queue: new (name: string, options: object) => Queue;
  readonly Worker: new (name: string, process: () => Promise<void>, options: object) => Worker;
}

export async function openBullMq(where: Where, work: Work): Promise<Peer> {
  const Bull = loadPeer<Bull>(where.folder, 'bullmq');
  const connection = { host: '127.0.0.1', port: where.port, maxRetriesPerRequest: null };
  const queue = new Bull.Queue(QUEUE, { connection });
  const data = createBody(SEQUENCE_ID);
  let worker: Worker | undefined;
  return {
    create: () => queue.add(JOB, data),
    createMany: (count) =>
      queue.addBulk(Array.from({ length: count }, () => ({ name: JOB, data }))),
    createAndWait: async () => {
      const done = new Promise<void>((resolve) => worker!.once('completed', resolve));
      await queue.add(JOB, data);
      await done;
    },
    work: async (onDone) => {
      // A worker of ours that takes batches has as many tasks at once, so this one need not stop at their number.
      const concurrency = work.name === 'rounds' ? work.at : CONCURRENCY;
      worker = new Bull.Worker(QUEUE, async () => undefined, { connection, concurrency });
      worker.on('error', () => undefined);
      worker.on('completed', () => onDone(1));
      await worker.waitUntilReady();
    },
    close: async () => {
      await worker?.close(true);
      await queue.close();
    },
  };
}
