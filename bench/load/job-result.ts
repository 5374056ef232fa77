/** What every job of the load generator tells. */

import type { Latency } from './samples.js';

export interface JobResult {
  /** Within the measured time; `answered` has those that came after it too. */
  readonly replies: number;
  readonly answered: number;
  readonly ms: number;
  /** By kind of request: `request`; `create`, `read`, `total`; those of workers and of `wake`. */
  readonly latency: Readonly<Record<string, Latency>>;
  readonly bodies: readonly string[];
  /** Of equal stretches of the run, where they were asked for. */
  readonly slices?: readonly Latency[];
  /** Of the generator's thread. */
  readonly cpuMs: number;
}

export type Measured = Omit<JobResult, 'cpuMs'>;
