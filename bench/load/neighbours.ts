/**
 * What the largest instances cost other tenants: create to completed of one-step instances, one after the other, on an
 * idle server and while giants run, which are started again as long as their neighbours are measured.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { type Client, createClient, expectStatus } from '../../test/helpers/client.js';
import { DEFAULT_API_KEY } from '../../test/helpers/engine.js';
import {
  COMPOSITES,
  deepest,
  endless,
  type Giant,
  heaviest,
  longest,
  widest,
} from '../../test/helpers/giants.js';
import { EXTERNAL_HANDLER, NAMESPACE, NOOP_SEQUENCE } from '../base/fixtures.js';
import { readResidentMib } from '../base/process-cpu.js';
import { BenchServer } from '../base/server.js';
import type { Job } from '../job.js';

const GIANTS: Readonly<Record<string, readonly Giant[]>> = {
  '64 levels of all kinds': [deepest(COMPOSITES)],
  '5,000 blocks in a list': [longest()],
  '5,000 blocks in 256 branches': [widest()],
  '5,000 tasks in 256 branches, a worker': [widest(EXTERNAL_HANDLER)],
  'a loop of 100,000 iterations': [endless()],
  'a context of 256 KiB, a worker': [heaviest(EXTERNAL_HANDLER)],
};
const CONTENDERS = { idle: [], ...GIANTS, 'all of them at once': Object.values(GIANTS).flat() };

const TENANT = 'giants';
/** How often it is asked whether a giant has ended. */
const LOOK_MS = 50;

export const neighboursJob: Job = {
  part: 'load',
  name: 'neighbours',
  asks: 'How long does a one-step instance take while the largest instances run?',
  prepare: async (bench) => {
    const server = await BenchServer.open(bench, 'neighbours');
    const create = await server.createRequest(NOOP_SEQUENCE);
    const { url, port } = server;
    const client = createClient({ url, apiKey: DEFAULT_API_KEY, tenant: TENANT });
    return {
      contenders: Object.entries(CONTENDERS).map(([name, giants]) => ({
        name,
        turn: async (ms) => {
          const crowd = new Crowd(client, server.db, giants);
          const { latency } = await bench.generator.run({ kind: 'complete', port, create, ms });
          const MiB = readResidentMib(server.pid);
          await crowd.stop();
          const { p50, p99, max } = latency.request!;
          return { 'p50 ms': p50, 'p99 ms': p99, 'max ms': max, MiB };
        },
      })),
      close: async () => {
        await client.close();
        await server.stop();
      },
    };
  },
};

/** Keeps one of each giant running, and a worker for their tasks, until it is stopped. */
class Crowd {
  readonly #client: Client;
  readonly #db: pg.Client;
  readonly #work: Promise<unknown>;
  /** The connection takes one query at a time. */
  #asking: Promise<unknown> = Promise.resolve();
  #isStopped = false;

  constructor(client: Client, db: pg.Client, giants: readonly Giant[]) {
    this.#client = client;
    this.#db = db;
    const work = giants.map((giant) => this.#keepRunning(giant));
    if (giants.some(({ handler }) => handler !== undefined)) work.push(this.#serve());
    this.#work = Promise.all(work);
  }

  /** Cancels what runs. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#work;
  }

  async #keepRunning({ blocks, data = {} }: Giant): Promise<void> {
    const place = { tenant_id: TENANT, namespace: NAMESPACE };
    const definition = { ...place, name: crypto.randomUUID(), version: 1, blocks };
    const { id } = await this.#post<{ id: string }>('/sequences', definition, 201);
    const creation = { ...place, sequence_id: id, context: { data } };
    while (!this.#isStopped) {
      const { id: instance } = await this.#post<{ id: string }>('/instances', creation, 201);
      while (!this.#isStopped && !(await this.#hasEnded(instance))) await pause(LOOK_MS);
      // It may have ended meanwhile, which is as good.
      await this.#client.post(`/instances/${instance}/signals`, { signal_type: 'cancel' });
    }
  }

  #hasEnded(instance: string): Promise<boolean> {
    const text = `select from instances where id = $1 and state = 'completed'`;
    const asked = this.#asking.then(() => this.#db.query(text, [instance]));
    this.#asking = asked;
    return asked.then(({ rowCount }) => rowCount === 1);
  }

  async #serve(): Promise<void> {
    const poll = { handler_name: EXTERNAL_HANDLER, worker_id: 'worker', limit: 20, wait_ms: 100 };
    while (!this.#isStopped) {
      const tasks = await this.#post<{ id: string }[]>('/workers/tasks/poll', poll, 200);
      for (const { id } of tasks) {
        // The task of an instance that was cancelled meanwhile is refused.
        const body = { worker_id: 'worker', output: { n: 1 } };
        await this.#client.post(`/workers/tasks/${id}/complete`, body);
      }
    }
  }

  async #post<T>(path: string, body: object, status: number): Promise<T> {
    return expectStatus(await this.#client.post<T>(path, body), status);
  }
}
