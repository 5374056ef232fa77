/** Memory of a server with a long backlog that it has made itself, and how soon a poll of 50 is answered then. */

import { setTimeout as pause } from 'node:timers/promises';
import { EXTERNAL_HANDLER, EXTERNAL_SEQUENCE } from '../base/fixtures.js';
import { readResidentMib } from '../base/process-cpu.js';
import { BenchServer } from '../base/server.js';
import { once } from '../client/loads.js';
import type { Job } from '../job.js';
import { batchesOf } from '../paths/path-table.js';

const TASKS = 300_000;
/** So that the memory of a server that has worked is compared, not that of a new process. */
const FIRST = 2_000;
const SETTLE_MS = 20_000;
/** V8 collects and compacts the heap of a thread some time after that has become idle. */
const IDLE_MS = 60_000;
const POLLED = 50;

export const pendingJob: Job = {
  part: 'load',
  name: 'pending',
  asks: 'What do 300,000 tasks that wait for a worker cost the memory and a poll?',
  isWarmedUp: false,
  rounds: () => 1,
  targets: [
    { contender: 'backlog', column: 'resident MiB', atMost: 300 },
    { contender: 'backlog', column: 'a minute later', atMost: 300 },
    { contender: 'backlog', column: 'bytes/task', atMost: 300 },
  ],
  prepare: async (bench) => {
    const count = bench.options.instances ?? TASKS;
    const server = await BenchServer.open(bench, 'pending');
    const sequence = await server.store(EXTERNAL_SEQUENCE);
    const settle = bench.options.isDurable ? SETTLE_MS : 0;
    const turn = async (ms: number) => {
      await bench.generator.run(once(server.port, batchesOf(sequence, FIRST)));
      await pause(settle);
      const before = readResidentMib(server.pid);
      await bench.generator.run(once(server.port, batchesOf(sequence, count)));
      await pause(settle);
      const after = readResidentMib(server.pid);
      await pause(bench.options.isDurable ? IDLE_MS : 0);
      const idle = readResidentMib(server.pid);
      const worker = { port: server.port, workers: 1, handler: EXTERNAL_HANDLER, ms };
      const drained = { ...worker, kind: 'drain', limit: POLLED, tasks: count } as const;
      const { latency } = await bench.generator.run(drained);
      return {
        'resident MiB': after,
        'a minute later': idle,
        'bytes/task': ((after - before) * 2 ** 20) / count,
        'poll of 50 and completions, p50 ms': latency.request!.p50,
      };
    };
    return { contenders: [{ name: 'backlog', turn }], close: () => server.stop() };
  },
};
