/** The clock and the samples of one load, and its result. */

import { performance } from 'node:perf_hooks';
import type { HttpConnection } from './http-connection.js';
import { type Latency, Samples } from './samples.js';

export interface LoadResult {
  /** Within the measured time; `answered` has those that came after it, too. */
  readonly replies: number;
  readonly answered: number;
  readonly ms: number;
  /** By kind of request; `request` is the operation. */
  readonly latency: Readonly<Record<string, Latency>>;
  readonly bodies: readonly string[];
}

export const perSecond = ({ replies, ms }: LoadResult): number => (replies * 1_000) / ms;

/** An operation that has begun when the time is over is finished, and counts. */
export class Clock {
  readonly startedAt = performance.now();
  readonly #ms: number;
  readonly #samples = new Map<string, Samples>();

  constructor(ms = Number.POSITIVE_INFINITY) {
    this.#ms = ms;
  }

  isOver(): boolean {
    return performance.now() >= this.startedAt + this.#ms;
  }

  add(kind: string, beganAt: number): void {
    const samples = this.#samples.get(kind) ?? new Samples();
    this.#samples.set(kind, samples);
    samples.add(performance.now() - beganAt);
  }

  result(): LoadResult {
    const ms = performance.now() - this.startedAt;
    const latency = Object.fromEntries(
      [...this.#samples].map(([kind, samples]) => [kind, samples.summary()]),
    );
    const count = latency.request?.count ?? 0;
    return { replies: count, answered: count, ms, latency, bodies: [] };
  }

  /** Each connection is a worker with a name of its own. */
  async work(
    connections: readonly HttpConnection[],
    work: (connection: HttpConnection, worker: string) => Promise<void>,
  ): Promise<LoadResult> {
    await Promise.all(connections.map((connection, at) => work(connection, `worker-${at}`)));
    return this.result();
  }
}
