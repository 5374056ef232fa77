/**
 * How soon an event wakes an instance: from the request to a worker with the task of the next step. Beside it, as
 * often in the same turn, from a worker's completion to a worker with the task of the step behind that.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { NAMESPACE, ORDER, TENANT } from '../base/fixtures.js';
import { readFamily, readOwn } from '../base/process-cpu.js';
import { BenchServer } from '../base/server.js';
import { once } from '../client/loads.js';
import { batchRequests } from '../client/requests.js';
import type { Bench, Job } from '../job.js';

const EVENT_NAME = 'payment.settled';
const HANDLERS = ['pack', 'ship'] as const;
const INSTANCES = 100_000;
const PER_BATCH = 1_000;
const LOOK_MS = 200;

const params = { n: '{{ data.n }}' };
const wait = { name: EVENT_NAME, key: '{{ data.n }}' };
const SEQUENCE = {
  namespace: NAMESPACE,
  name: 'bench-events',
  version: 1,
  blocks: [
    { type: 'step', id: 'settled', handler: 'wait_for_event', params: wait },
    ...HANDLERS.map((handler) => ({ type: 'step', id: handler, handler, params })),
  ],
};

export const eventsJob: Job = {
  part: 'load',
  name: 'events',
  asks: 'How soon does an event wake one of many instances that wait?',
  rounds: () => 1,
  isCompared: false,
  prepare: async (bench) => {
    const { instances = INSTANCES, rates } = bench.options;
    const server = await BenchServer.open(bench, 'events');
    const waiting = new Waiting(bench, server);
    await waiting.create(instances);
    return {
      contenders: rates.map((rate) => ({
        name: `${rate} events/s`,
        turn: (ms) => waiting.wake(rate, Math.ceil((rate * ms) / 1_000)),
      })),
      check: () => waiting.expectLeft(),
      close: () => server.stop(),
    };
  },
};

class Waiting {
  readonly #bench: Bench;
  readonly #server: BenchServer;
  #created = 0;
  #woken = 0;

  constructor(bench: Bench, server: BenchServer) {
    this.#bench = bench;
    this.#server = server;
  }

  /** Each waits for an event whose key is its number. */
  async create(count: number): Promise<void> {
    const sequence_id = await this.#server.store(SEQUENCE);
    const place = { sequence_id, tenant_id: TENANT, namespace: NAMESPACE };
    const one = (n: number) => ({ ...place, context: { data: { ...ORDER, n } } });
    const requests = batchRequests(count, PER_BATCH, one);
    await this.#bench.generator.run(once(this.#server.port, requests));
    this.#created = count;
    await this.expectLeft();
  }

  async wake(rate: number, wanted: number) {
    const count = Math.min(wanted, this.#created - this.#woken);
    if (count === 0) throw new Error('too few instances for so many events: give more --instances');
    const { pid, port } = this.#server;
    const postgres = await this.#bench.postgres();
    const before = { server: readOwn(pid), postgres: readFamily(postgres.pid) };
    const { ms, latency } = await this.#bench.generator.run({
      kind: 'wake',
      port,
      eventName: EVENT_NAME,
      handlers: HANDLERS,
      perSecond: rate,
      first: this.#woken,
      count,
    });
    this.#woken += count;
    return {
      events: count,
      'events/s': (count * 1_000) / ms,
      'event to task p50 ms': latency.request!.p50,
      'event to task p99 ms': latency.request!.p99,
      'completion to task p50 ms': latency.next!.p50,
      'completion to task p99 ms': latency.next!.p99,
      'server CPU %': (100 * (readOwn(pid) - before.server)) / ms,
      'postgres CPU %': (100 * (readFamily(postgres.pid) - before.postgres)) / ms,
    };
  }

  /** Resolves when as many wait as have not been woken. */
  async expectLeft(): Promise<void> {
    for (;;) {
      const { rows } = await this.#server.db.query<{ waits: number }>(
        'select count(*) as waits from event_waits',
      );
      if (rows[0]!.waits === this.#created - this.#woken) return;
      await pause(LOOK_MS);
    }
  }
}
