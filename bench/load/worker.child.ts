/** One worker process, by the library or without it, that does what is there and says how long it took. */

import { Client, Worker } from '../../client/src/index.js';
import { DEFAULT_API_KEY } from '../../test/helpers/engine.js';
import { EXTERNAL_HANDLER, TENANT } from '../fixtures.js';
import { httpSender, startWorker } from './plain-worker.js';
import { OUTPUT } from './worker-jobs.js';

export type WorkerKind = 'library' | 'plain';

export interface WorkerTurn {
  readonly kind: WorkerKind;
  readonly port: number;
  readonly tasks: number;
  /** Undefined: its own default. */
  readonly concurrency: number | undefined;
}

export interface WorkerTurnDone {
  /** From its start until the handler has seen the last task, and its result was taken. */
  readonly ms: number;
  readonly cpuMs: number;
}

process.once('message', async (turn: WorkerTurn) => {
  const startedAt = performance.now();
  const cpu = process.cpuUsage();
  await (turn.kind === 'library' ? byLibrary(turn) : plain(turn));
  const ms = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(cpu);
  process.send?.({ ms, cpuMs: (user + system) / 1_000 } satisfies WorkerTurnDone);
  process.disconnect();
});

async function byLibrary({ port, tasks, concurrency }: WorkerTurn): Promise<void> {
  const client = new Client({
    url: `http://127.0.0.1:${port}`,
    apiKey: DEFAULT_API_KEY,
    tenant: TENANT,
  });
  let done = 0;
  const worker = new Worker(client, {
    handlers: {
      [EXTERNAL_HANDLER]: async () => {
        done += 1;
        if (done === tasks) void worker.stop();
        return OUTPUT;
      },
    },
    ...(concurrency === undefined ? {} : { concurrency }),
  });
  await worker.run();
}

async function plain({ port, tasks, concurrency }: WorkerTurn): Promise<void> {
  const headers = { 'x-api-key': DEFAULT_API_KEY, 'x-tenant-id': TENANT };
  let done = 0;
  await new Promise<void>((resolve) => {
    const worker = startWorker({
      send: httpSender(`http://127.0.0.1:${port}/api/v1`, headers),
      handlers: {
        [EXTERNAL_HANDLER]: async () => {
          done += 1;
          if (done === tasks) void worker.stop().then(resolve);
          return OUTPUT;
        },
      },
      ...(concurrency === undefined ? {} : { concurrency }),
    });
  });
}
