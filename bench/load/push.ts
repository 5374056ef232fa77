/** How many tasks the engine delivers to a worker endpoint in this process, which answers at once. */

import { once as heard } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { EXTERNAL_HANDLER, EXTERNAL_SEQUENCE } from '../base/fixtures.js';
import { BenchServer } from '../base/server.js';
import { once } from '../client/loads.js';
import { OUTPUT } from '../client/worker-loads.js';
import type { Job } from '../job.js';
import { batchesOf } from '../paths/path-table.js';

const TASKS = 10_000;
const TASKS_PER_SECOND = 1_000;

export const pushJob: Job = {
  part: 'load',
  name: 'push',
  asks: 'How many tasks are delivered to a worker endpoint?',
  targets: [{ contender: '64 at once', column: 'tasks/s', atLeast: TASKS_PER_SECOND }],
  prepare: async (bench) => {
    const tasks = Math.min(TASKS, bench.options.backlog);
    const env = { ENGINE_ALLOW_INTERNAL_URLS: 'true' };
    const server = await BenchServer.open(bench, 'push', { env });
    const sequence = await server.store(EXTERNAL_SEQUENCE);
    const receiver = new Receiver();
    const url = await receiver.listen();
    const contender = (concurrency: number) => ({
      name: `${concurrency} at once`,
      turn: async () => {
        const endpoint = { handlers: [EXTERNAL_HANDLER], url, secret: 'of the bench', concurrency };
        await server.ask(200, 'PUT', '/worker-endpoints/bench', { ...endpoint, enabled: false });
        await bench.generator.run(once(server.port, batchesOf(sequence, tasks)));
        const startedAt = performance.now();
        const done = receiver.until(tasks);
        await server.ask(200, 'PUT', '/worker-endpoints/bench', endpoint);
        await done;
        return { 'tasks/s': (tasks * 1_000) / (performance.now() - startedAt) };
      },
    });
    return {
      contenders: [contender(64), contender(10)],
      close: async () => {
        receiver.close();
        await server.stop();
      },
    };
  },
};

class Receiver {
  readonly #server = createServer((request, response) => {
    request.resume();
    response.end(ANSWER);
    this.#left -= 1;
    if (this.#left === 0) this.#server.emit('done');
  });
  #left = 0;

  async listen(): Promise<string> {
    await heard(this.#server.listen(0, '127.0.0.1'), 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  async until(tasks: number): Promise<void> {
    this.#left = tasks;
    await heard(this.#server, 'done');
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

const ANSWER = JSON.stringify(OUTPUT);
