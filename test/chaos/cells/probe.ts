/**
 * Requests at an even pace to one tenant of each cell, by a thread of its own: what others do to the thread of the
 * load, such as collecting its garbage, is not taken for what a cell has felt.
 */

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

export interface Probing {
  /** Of the proxy. */
  readonly url: string;
  readonly apiKey: string;
  readonly tenants: readonly string[];
  /** Between two requests to a tenant. */
  readonly everyMs: number;
}

export interface Took {
  readonly tenant: string;
  /** Of the request, on the clock that all threads share, in milliseconds. */
  readonly at: number;
  readonly ms: number;
  /** 0: there was no answer. */
  readonly status: number;
  /** Of the refusal; empty: there is none. */
  readonly code: string;
}

/** `performance.now()` begins anew in each thread. */
export const sharedMs = () => Number(process.hrtime.bigint()) / 1e6;

export class Probe {
  readonly took: Took[] = [];
  readonly #thread: Worker;

  private constructor(thread: Worker) {
    this.#thread = thread;
  }

  /** Resolves when the tenants have what they are asked for. */
  static async start(probing: Probing): Promise<Probe> {
    const url = new URL('./probe.thread.js', import.meta.url);
    const thread = new Worker(url, { workerData: probing });
    const probe = new Probe(thread);
    await once(thread, 'message');
    thread.on('message', (took: Took) => probe.took.push(took));
    return probe;
  }

  async stop(): Promise<void> {
    await this.#thread.terminate();
  }
}
