/** Heavy work outside of turns: what a job is, and the interface to run it (`src/base/offload-pool.ts`). */

import type { MessagePort } from 'node:worker_threads';
import { EngineError } from './errors.js';

/** A function of plain data, loaded on first use by the thread that runs it. */
export interface Job<Input, Output> {
  /** The name in `src/server/offload.thread.ts`. */
  readonly name: string;
  readonly load: () => Promise<(input: Input) => Output | Promise<Output>>;
  /** Small jobs take less time than the transfer to another thread, and run in place. */
  readonly isSmall: (input: Input) => boolean;
  /** The time limit, from the start of the job in a thread. */
  readonly ms: number;
}

/** The largest capsules and definitions take seconds, and ten times that on a busy machine. */
export const LARGE_JOB_MS = 60_000;

export interface JobCall {
  readonly id: number;
  readonly name: string;
  /** Carries the input, and then the answer. */
  readonly port: MessagePort;
}

/** Posted when the job itself begins, so that the start of the thread does not count. */
export interface JobBegun {
  readonly begun: number;
}

export type JobAnswer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: unknown };

export interface Offload {
  /**
   * @param ms overrides the time limit of the job
   * @throws TooCostly when it took too long or too much memory; EngineError 429 when too many jobs of the tenant
   * wait, 503 when too many of all tenants do or the engine stops; otherwise the error of the job
   */
  run<Input, Output>(
    tenant: string,
    job: Job<Input, Output>,
    input: Input,
    ms?: number,
  ): Promise<Output>;
}

export class TooCostly extends EngineError {
  constructor() {
    super('ENG_OVERLOADED', 'unavailable: the work takes too long or too much memory', 1_000);
  }
}

/** Runs jobs on the calling thread. */
export const IN_PLACE: Offload = { run: async (_tenant, job, input) => (await job.load())(input) };
