/**
 * A small thread pool for heavy work of the whole process. Threads start with the first job and stop when idle. The
 * pool belongs to the front thread, but inputs and results travel on a separate port between caller and thread. A job
 * that exceeds its time or memory costs only its thread.
 */

import { once } from 'node:events';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { type EngineError, shareTaken, unavailable } from './errors.js';
import {
  type Job,
  type JobAnswer,
  type JobBegun,
  type JobCall,
  type Offload,
  TooCostly,
} from './offload.js';
import { threadEntry } from './package-files.js';
import { FairSlots } from './quota/fair-slots.js';

/** How a job ended. After 'done' the answer is on its way. */
export type JobEnd = 'done' | 'costly' | 'refused' | 'share' | 'stopped';

/** The interface of the pool for all threads, also through a control port. */
export interface OffloadControl {
  /** @param port carries the input, and then the answer */
  start(tenant: string, name: string, ms: number, port: MessagePort): Promise<JobEnd>;
}

export function offloadThrough(pool: OffloadControl): Offload {
  return {
    async run<Input, Output>(
      tenant: string,
      { name, load, isSmall, ms: usual }: Job<Input, Output>,
      input: Input,
      ms?: number,
    ): Promise<Output> {
      if (isSmall(input)) return (await load())(input);
      const { port1: own, port2: port } = new MessageChannel();
      try {
        own.postMessage(input);
        const answered = once(own, 'message') as Promise<[JobAnswer]>;
        const end = await pool.start(tenant, name, ms ?? usual, port);
        if (end !== 'done') throw REFUSALS[end]();
        const [answer] = await answered;
        if (!answer.ok) throw answer.error;
        return answer.value as Output;
      } finally {
        own.close();
      }
    },
  };
}

const REFUSALS: Readonly<Record<Exclude<JobEnd, 'done'>, () => EngineError>> = {
  costly: () => new TooCostly(),
  refused: () => unavailable('ENG_OVERLOADED', `${JOBS_MAX} pieces of heavy work are under way`),
  share: () =>
    shareTaken(`${JOBS_PER_TENANT_MAX} pieces of heavy work of this tenant are under way`),
  stopped: () => unavailable('ENG_STOPPING', 'the engine is stopping'),
};

/** A tenant has at most one thread, so that work of another tenant begins at once. */
const THREADS_MAX = 2;
const THREADS_PER_TENANT_MAX = 1;
/** Waiting and running jobs, each with its input in memory. */
export const JOBS_MAX = 16;
export const JOBS_PER_TENANT_MAX = 8;
/** A thread takes a quarter of a second to start, and some megabytes while idle. */
const IDLE_MS = 30_000;
/** The heap of a thread: objects of the largest capsule take ten times the size of their text. */
const HEAP_MIB = 1_024;

export class OffloadPool {
  readonly #pool: Piscina;
  readonly #stopped = new AbortController();
  readonly #threads = new FairSlots([
    { activeMax: THREADS_MAX, waitingMax: JOBS_MAX - THREADS_MAX },
    { activeMax: THREADS_PER_TENANT_MAX, waitingMax: JOBS_PER_TENANT_MAX - THREADS_PER_TENANT_MAX },
  ]);
  readonly #open = new Map<number, () => void>();
  #jobs = 0;

  constructor(heapMib = HEAP_MIB) {
    this.#pool = new Piscina({
      filename: threadEntry('src/server/offload.thread.js'),
      minThreads: 0,
      maxThreads: THREADS_MAX,
      concurrentTasksPerWorker: 1,
      idleTimeout: IDLE_MS,
      recordTiming: false,
      atomics: 'disabled',
      resourceLimits: { maxOldGenerationSizeMb: heapMib },
    });
    // Failed tasks reject their promises; the pool repeats them as events.
    this.#pool.on('error', () => undefined);
    this.#pool.on('message', ({ begun }: JobBegun) => this.#open.get(begun)?.());
  }

  /** For the front thread. @param signal cancels the jobs started through it */
  through(signal?: AbortSignal): Offload {
    return offloadThrough({ start: (...job) => this.#start(signal, ...job) });
  }

  readonly control: OffloadControl = { start: (...job) => this.#start(undefined, ...job) };

  async #start(
    signal: AbortSignal | undefined,
    ...[tenant, name, ms, port]: Parameters<OffloadControl['start']>
  ): Promise<JobEnd> {
    const stopped = this.#stopped.signal;
    const combined = signal === undefined ? stopped : AbortSignal.any([stopped, signal]);
    // A destroyed pool would start another thread.
    if (combined.aborted) return 'stopped';
    const slot = await this.#threads.acquire([tenant], combined);
    if (!slot.ok) {
      if (slot.reason !== 'full') return 'stopped';
      return this.#threads.waiting >= JOBS_MAX - THREADS_MAX ? 'refused' : 'share';
    }
    this.#jobs += 1;
    const id = this.#jobs;
    const late = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    this.#open.set(id, () => {
      timer = setTimeout(() => late.abort(), ms);
    });
    try {
      const call: JobCall = { id, name, port };
      await this.#pool.run(call, {
        transferList: [port],
        signal: AbortSignal.any([combined, late.signal]),
      });
      return 'done';
    } catch (error) {
      if (combined.aborted) return 'stopped';
      const isOutOfMemory = (error as { code?: unknown }).code === 'ERR_WORKER_OUT_OF_MEMORY';
      if (late.signal.aborted || isOutOfMemory) return 'costly';
      throw error;
    } finally {
      clearTimeout(timer);
      this.#open.delete(id);
      slot.release();
    }
  }

  /** Cancels running jobs. Idempotent. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#pool.destroy();
  }
}
