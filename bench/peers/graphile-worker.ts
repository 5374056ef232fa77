/**
 * graphile-worker as its page on performance has it: a local queue of jobs that are fetched together, and
 * completions that are sent together. In `idle` both are off, and LISTEN/NOTIFY wakes the worker. A
 * job is counted when its event comes, a little before its completion is committed.
 */

import { EventEmitter } from 'node:events';
import { createBody, SEQUENCE_ID } from '../base/fixtures.js';
import { loadPeer } from './packages.js';
import { BULK, type Peer, type Where, type Work } from './peer.js';

const TASK = 'bench';
const POOL_MAX = 20;
/** As many as its own benchmark takes. */
const CONCURRENCY = 24;

interface Utils {
  migrate(): Promise<void>;
  addJob(task: string, payload: object): Promise<unknown>;
  addJobs(jobs: readonly { identifier: string; payload: object }[]): Promise<unknown>;
  release(): Promise<void>;
}

interface Runner {
  stop(): Promise<void>;
}

interface Graphile {
  readonly Logger: new (factory: () => () => void) => object;
  makeWorkerUtils(options: object): Promise<Utils>;
  run(options: object): Promise<Runner>;
}

export async function openGraphileWorker(where: Where, work: Work): Promise<Peer> {
  const { makeWorkerUtils, run, Logger } = loadPeer<Graphile>(where.folder, 'graphile-worker');
  const logger = new Logger(() => () => undefined);
  const connection = { connectionString: where.databaseUrl, maxPoolSize: POOL_MAX, logger };
  const utils = await makeWorkerUtils(connection);
  await utils.migrate();
  const payload = createBody(SEQUENCE_ID);
  const events = new EventEmitter();
  let runner: Runner | undefined;
  return {
    create: () => utils.addJob(TASK, payload),
    createMany: (count) =>
      utils.addJobs(Array.from({ length: count }, () => ({ identifier: TASK, payload }))),
    createAndWait: async () => {
      const done = new Promise((resolve) => events.once('job:success', resolve));
      await utils.addJob(TASK, payload);
      await done;
    },
    work: async (onDone) => {
      const isAlone = work.name === 'idle';
      const concurrency = work.name === 'created' ? CONCURRENCY : work.at;
      const size = work.name === 'rounds' ? concurrency + 1 : BULK;
      events.on('job:success', () => onDone(1));
      runner = await run({
        ...connection,
        events,
        noHandleSignals: true,
        taskList: { [TASK]: async () => undefined },
        preset: {
          worker: {
            concurrentJobs: concurrency,
            ...(isAlone ? {} : { localQueue: { size }, completeJobBatchDelay: 0 }),
          },
        },
        concurrency,
      });
    },
    close: async () => {
      await runner?.stop();
      await utils.release();
    },
  };
}
