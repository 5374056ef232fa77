/**
 * What the largest instances cost the others: create to completed of one-step instances of another
 * tenant, one after the other, on an idle server and while giants run. Giants are started anew as long
 * as their neighbours are measured; idle and busy take turns, so that their ratio can be trusted.
 */

import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
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
import { EXTERNAL_HANDLER, NAMESPACE } from '../fixtures.js';
import type { BenchOptions } from '../options.js';
import { median, type PartResult, renderTable, round } from '../report.js';
import type { LoadContext } from './run.js';
import type { Latency } from './samples.js';
import { type BenchServer, startServer } from './server.js';

const GIANTS: Readonly<Record<string, readonly Giant[]>> = {
  '64 levels of all kinds': [deepest(COMPOSITES)],
  '5,000 blocks in a list': [longest()],
  '5,000 blocks in 256 branches': [widest()],
  '5,000 tasks in 256 branches, a worker': [widest(EXTERNAL_HANDLER)],
  'a loop of 100,000 iterations': [endless()],
  'a context of 256 KiB, a worker': [heaviest(EXTERNAL_HANDLER)],
};

const ALL_AT_ONCE = Object.values(GIANTS).flat();

const TENANT = 'giants';
const PER_SECOND = 50;
/** How often it is asked whether a giant has ended, and how much memory the server has. */
const LOOK_MS = 50;

interface Turn {
  readonly idle: Latency;
  readonly busy: Latency;
  readonly giants: number;
  readonly residentMib: number;
}

export async function runNeighbours(
  { postgres, generator }: LoadContext,
  options: BenchOptions,
): Promise<{ readonly part: PartResult; readonly table: string }> {
  const count = Math.ceil(options.seconds * PER_SECOND);
  const server = await startServer(postgres, 'neighbours', 'noop', options.shards ?? 1);
  const url = `http://127.0.0.1:${server.port}`;
  const client = createClient({ url, apiKey: DEFAULT_API_KEY, tenant: TENANT });
  const job = { kind: 'complete', port: server.port, create: server.createRequest, count } as const;
  const turns: Record<string, Turn[]> = {};
  try {
    await generator.run(job);
    for (const [name, giants] of Object.entries({
      ...GIANTS,
      'all of them at once': ALL_AT_ONCE,
    })) {
      const taken: Turn[] = [];
      turns[name] = taken;
      for (let round = 0; round < options.rounds; round += 1) {
        await postgres.checkpoint();
        const idle = (await generator.run(job)).latency.total!;
        const crowd = new Crowd(client, server, giants);
        const busy = (await generator.run(job)).latency.total!;
        taken.push({ idle, busy, ...(await crowd.stop()) });
      }
    }
  } finally {
    await client.close();
    await server.stop();
  }
  return report(turns, count, options);
}

/** Keeps one of each giant running, and a worker for their tasks, until it is stopped. */
class Crowd {
  readonly #client: Client;
  readonly #server: BenchServer;
  #isStopped = false;
  #count = 0;
  #peakMib = 0;
  /** One connection, one query at a time. */
  #asking: Promise<unknown> = Promise.resolve();
  readonly #work: Promise<unknown>;

  constructor(client: Client, server: BenchServer, giants: readonly Giant[]) {
    this.#client = client;
    this.#server = server;
    const work = giants.map((giant) => this.#keepRunning(giant));
    if (giants.some(({ handler }) => handler !== undefined)) work.push(this.#serve());
    this.#work = Promise.all(work);
  }

  /** Cancels what runs. */
  async stop(): Promise<Pick<Turn, 'giants' | 'residentMib'>> {
    this.#isStopped = true;
    await this.#work;
    return { giants: this.#count, residentMib: this.#peakMib };
  }

  async #keepRunning({ blocks, data = {} }: Giant): Promise<void> {
    const place = { tenant_id: TENANT, namespace: NAMESPACE };
    const definition = { ...place, name: crypto.randomUUID(), version: 1, blocks };
    const { id } = await this.#post<{ id: string }>('/sequences', definition, 201);
    const creation = { ...place, sequence_id: id, context: { data } };
    while (!this.#isStopped) {
      const { id: instance } = await this.#post<{ id: string }>('/instances', creation, 201);
      this.#count += 1;
      while (!(await this.#hasEnded(instance))) {
        if (this.#isStopped) {
          // It may have ended meanwhile, which is as good.
          await this.#client.post(`/instances/${instance}/signals`, { signal_type: 'cancel' });
          return;
        }
        await pause(LOOK_MS);
      }
    }
  }

  #hasEnded(instance: string): Promise<boolean> {
    const asked = this.#asking.then(() => this.#look(instance));
    this.#asking = asked;
    return asked;
  }

  async #look(instance: string): Promise<boolean> {
    const status = readFileSync(`/proc/${this.#server.pid}/status`, 'utf8');
    const mib = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
    this.#peakMib = Math.max(this.#peakMib, mib);
    const { rows } = await this.#server.db.query<{ state: string }>(
      'select state from instances where id = $1',
      [instance],
    );
    return rows[0]?.state === 'completed';
  }

  async #serve(): Promise<void> {
    const poll = { handler_name: EXTERNAL_HANDLER, worker_id: 'worker', limit: 20, wait_ms: 100 };
    while (!this.#isStopped) {
      const tasks = await this.#post<{ id: string }[]>('/workers/tasks/poll', poll, 200);
      for (const { id } of tasks) {
        // One that was cancelled meanwhile is not to be completed.
        await this.#client.post(`/workers/tasks/${id}/complete`, {
          worker_id: 'worker',
          output: { n: this.#count },
        });
      }
    }
  }

  async #post<T>(path: string, body: object, status: number): Promise<T> {
    return expectStatus(await this.#client.post<T>(path, body), status);
  }
}

function report(
  turns: Readonly<Record<string, readonly Turn[]>>,
  count: number,
  options: BenchOptions,
) {
  const rows = Object.entries(turns).map(([name, taken]) => {
    const mid = (read: (turn: Turn) => number) => round(median(taken.map(read)));
    return {
      name,
      idleP50Ms: mid(({ idle }) => idle.p50),
      busyP50Ms: mid(({ busy }) => busy.p50),
      ratioP50: mid(({ idle, busy }) => busy.p50 / idle.p50),
      idleP99Ms: mid(({ idle }) => idle.p99),
      busyP99Ms: mid(({ busy }) => busy.p99),
      ratioP99: mid(({ idle, busy }) => busy.p99 / idle.p99),
      busyMaxMs: mid(({ busy }) => busy.max),
      residentMib: mid(({ residentMib }) => residentMib),
    };
  });
  const part: PartResult = {
    question: 'How long does a one-step instance take while the largest instances run?',
    settings: { instances: count, rounds: options.rounds, shards: options.shards ?? 1 },
    results: { rows, turns },
    remarks: [],
  };
  const head = ['giant', 'idle p50', 'busy p50', 'ratio', 'idle p99', 'busy p99', 'ratio'];
  const table = renderTable(
    [...head, 'busy max ms', 'MiB'],
    rows.map((row) => [
      row.name,
      row.idleP50Ms,
      row.busyP50Ms,
      row.ratioP50,
      row.idleP99Ms,
      row.busyP99Ms,
      row.ratioP99,
      row.busyMaxMs,
      row.residentMib,
    ]),
  );
  return { part, table };
}
