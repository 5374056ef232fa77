/** How many tasks one worker of the client library does, in this process, with a handler that returns at once. */

import { Client, Worker } from '../../client/src/index.js';
import { DEFAULT_API_KEY } from '../../test/helpers/engine.js';
import { EXTERNAL_HANDLER, EXTERNAL_SEQUENCE, TENANT } from '../base/fixtures.js';
import { BenchServer } from '../base/server.js';
import { once } from '../client/loads.js';
import { OUTPUT } from '../client/worker-loads.js';
import type { Job } from '../job.js';
import { batchesOf } from '../paths/path-table.js';

const TASKS = 10_000;

export const workerJob: Job = {
  part: 'load',
  name: 'worker',
  asks: 'How many tasks does one worker of the library do?',
  prepare: async (bench) => {
    const tasks = Math.min(TASKS, bench.options.backlog);
    const server = await BenchServer.open(bench, 'worker');
    const sequence = await server.store(EXTERNAL_SEQUENCE);
    const client = new Client({ url: server.url, apiKey: DEFAULT_API_KEY, tenant: TENANT });
    const contender = (name: string, options: { readonly concurrency?: number }) => ({
      name,
      turn: async () => {
        await bench.generator.run(once(server.port, batchesOf(sequence, tasks)));
        const startedAt = performance.now();
        const cpu = process.cpuUsage();
        await work(client, tasks, options);
        const { user, system } = process.cpuUsage(cpu);
        const perSecond = (tasks * 1_000) / (performance.now() - startedAt);
        return { 'tasks/s': perSecond, 'worker CPU µs/task': (user + system) / tasks };
      },
    });
    return {
      contenders: [contender('as it comes', {}), contender('10 at once', { concurrency: 10 })],
      close: () => server.stop(),
    };
  },
};

async function work(client: Client, tasks: number, options: { readonly concurrency?: number }) {
  let done = 0;
  const handler = async () => {
    done += 1;
    if (done === tasks) void worker.stop();
    return OUTPUT;
  };
  const worker = new Worker(client, { handlers: { [EXTERNAL_HANDLER]: handler }, ...options });
  await worker.run();
}
