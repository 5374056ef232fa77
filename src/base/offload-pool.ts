/**
 * One small pool of threads for heavy work of the whole process, started for the first job and stopped when it was
 * idle for a while. The pool belongs to the front, but inputs and results travel on a port of their own between the
 * caller and the thread. A job that takes too long or too much memory costs its thread and nothing else.
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

/** What became of a job; of one that is done, the answer is on its way. */
export type JobEnd = 'done' | 'costly' | 'refused' | 'share' | 'stopped';

/** The pool as another thread sees it, too: the surface of a control port. */
export interface OffloadControl {
  /** @param port where the input lies, and the answer goes */
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

/** A tenant has one of them at most, so that another one's work begins at once. */
const THREADS_MAX = 2;
const THREADS_PER_TENANT_MAX = 1;
/** Jobs that wait for a thread or are in one, each with its input in memory. */
export const JOBS_MAX = 16;
export const JOBS_PER_TENANT_MAX = 8;
/** A thread takes a quarter of a second to start, and some megabytes while it is there. */
const IDLE_MS = 30_000;
/** Of a thread: objects of the largest capsule take ten times the room of their text. */
const HEAP_MIB = 1_024;

export class OffloadPool {
  readonly #pool: Piscina;
  readonly #stopped = new AbortController();
  readonly #threads = new FairSlots([
    { activeMax: THREADS_MAX, waitingMax: JOBS_MAX - THREADS_MAX },
    { activeMax: THREADS_PER_TENANT_MAX, waitingMax: JOBS_PER_TENANT_MAX - THREADS_PER_TENANT_MAX },
  ]);
  /** Starts the clock of a job, by its number. */
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
    // Failed tasks are told through their promises; the pool repeats them as events.
    this.#pool.on('error', () => undefined);
    this.#pool.on('message', ({ begun }: JobBegun) => this.#open.get(begun)?.());
  }

  /** For the thread of the pool itself. @param signal gives up the jobs that are asked for by it */
  through(signal?: AbortSignal): Offload {
    return offloadThrough({ start: (...job) => this.#start(signal, ...job) });
  }

  /** For other threads. */
  readonly control: OffloadControl = { start: (...job) => this.#start(undefined, ...job) };

  async #start(
    signal: AbortSignal | undefined,
    ...[tenant, name, ms, port]: Parameters<OffloadControl['start']>
  ): Promise<JobEnd> {
    const stopped = this.#stopped.signal;
    const given = signal === undefined ? stopped : AbortSignal.any([stopped, signal]);
    // A pool that was ended would start another thread.
    if (given.aborted) return 'stopped';
    const slot = await this.#threads.acquire([tenant], given);
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
        signal: AbortSignal.any([given, late.signal]),
      });
      return 'done';
    } catch (error) {
      if (given.aborted) return 'stopped';
      const isOutOfMemory = (error as { code?: unknown }).code === 'ERR_WORKER_OUT_OF_MEMORY';
      if (late.signal.aborted || isOutOfMemory) return 'costly';
      throw error;
    } finally {
      clearTimeout(timer);
      this.#open.delete(id);
      slot.release();
    }
  }

  /** Gives up what is under way. Idempotent. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#pool.destroy();
  }
}
