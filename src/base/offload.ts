/** Heavy work beside the turn: what a job is, and who can have it done (`src/base/offload-pool.ts`). */

import type { MessagePort } from 'node:worker_threads';
import { EngineError } from './errors.js';

/** A synchronous function of plain data, which the thread that carries it out loads on first use. */
export interface Job<Input, Output> {
  /** Finds it in the thread of the pool (`src/server/offload.thread.ts`). */
  readonly name: string;
  readonly load: () => Promise<(input: Input) => Output>;
  /** Takes some milliseconds: less than the way to another thread, and carried out in place. */
  readonly isSmall: (input: Input) => boolean;
  /** How long it may take once a thread has begun it. */
  readonly ms: number;
}

/** Capsules and definitions at their bounds take seconds; ten times that on a machine that is busy. */
export const LARGE_JOB_MS = 60_000;

export interface JobCall {
  readonly id: number;
  readonly name: string;
  /** Its input lies there, and its answer goes there. */
  readonly port: MessagePort;
}

/** Posted to the pool when the job itself begins: the start of the thread is none of its time. */
export interface JobBegun {
  readonly begun: number;
}

export type JobAnswer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: unknown };

export interface Offload {
  /**
   * @param ms how long it may take once it has begun; absent: as its row says
   * @throws TooCostly when it took too long or too much memory; EngineError 429 when too many jobs of the tenant wait,
   * 503 when those of all do, or the engine stops; otherwise what the job throws
   */
  run<Input, Output>(
    tenant: string,
    job: Job<Input, Output>,
    input: Input,
    ms?: number,
  ): Promise<Output>;
}

/** The job took too long, or more memory than a thread may have. */
export class TooCostly extends EngineError {
  constructor() {
    super('ENG_OVERLOADED', 'unavailable: the work takes too long or too much memory', 1_000);
  }
}

/** For who has no threads. */
export const IN_PLACE: Offload = {
  run: async (_tenant, job, input) => (await job.load())(input),
};
