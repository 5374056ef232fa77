/**
 * Where capsules are sealed and opened: small ones at once, all others in a thread of its own, which
 * is started for the first and ends when it has nothing to do. One capsule at a time is in it.
 */

import { Piscina } from 'piscina';
import type { CapsuleTask } from './capsule.thread.js';
import {
  type OpenedCapsule,
  type OpenTask,
  openSealed,
  type SealedPayload,
  type SealTask,
  sealCapsule,
} from './capsule-work.js';
import type { Imported } from './core/continuity/capsule-import.js';
import type { Parsed } from './core/continuity/parsed.js';
import { tooLarge, unavailable } from './errors.js';

export interface CapsuleMill {
  /** The message when the payload is over a bound. Rejects with EngineError 413 or 503. */
  seal(task: SealTask): Promise<Parsed<SealedPayload>>;
  /** Rejects with EngineError 413 or 503. */
  open(task: OpenTask): Promise<Imported<OpenedCapsule>>;
}

/** For who has no threads. */
export const IN_PLACE: CapsuleMill = {
  seal: async (task) => sealCapsule(task),
  open: async (task) => openSealed(task),
};

/** Ten milliseconds of work: longer than a turn should take, shorter than the way to a thread. */
const IN_PLACE_BYTES_MAX = 256 * 1_024;
/** Ten times what the largest payload takes on a machine that is busy. */
const TASK_MS = 60_000;
/** Objects take ten times the room of their text. */
const HEAP_MIB = 1_024;
/** The thread takes a while to start, and a few megabytes while it is there. */
const IDLE_MS = 30_000;
/** Capsules that wait for the thread or are in it, each in memory. */
const TASKS_MAX = 8;

export class ThreadedMill implements CapsuleMill {
  readonly #pool: Piscina;
  readonly #stopped = new AbortController();
  #open = 0;

  constructor() {
    this.#pool = new Piscina({
      filename: new URL('./capsule.thread.js', import.meta.url).href,
      minThreads: 0,
      maxThreads: 1,
      concurrentTasksPerWorker: 1,
      idleTimeout: IDLE_MS,
      recordTiming: false,
      atomics: 'disabled',
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
    });
    // Failed tasks are told through their promises; the pool repeats them as events.
    this.#pool.on('error', () => undefined);
  }

  async seal(task: SealTask): Promise<Parsed<SealedPayload>> {
    const bytes = task.outputs.reduce((sum, { output_size }) => sum + output_size, 0);
    if (bytes <= IN_PLACE_BYTES_MAX) return sealCapsule(task);
    return (await this.#ask({ kind: 'seal', task })) as Parsed<SealedPayload>;
  }

  async open(task: OpenTask): Promise<Imported<OpenedCapsule>> {
    if (task.sealed.length <= IN_PLACE_BYTES_MAX) return openSealed(task);
    return (await this.#ask({ kind: 'open', task })) as Imported<OpenedCapsule>;
  }

  async #ask(task: CapsuleTask): Promise<unknown> {
    if (this.#open >= TASKS_MAX) {
      throw unavailable('ENG_OVERLOADED', 'too many capsules are being worked on');
    }
    this.#open += 1;
    const { signal: stopped } = this.#stopped;
    // Those before it in the queue take their time too.
    const signal = AbortSignal.any([stopped, AbortSignal.timeout(TASK_MS * this.#open)]);
    try {
      stopped.throwIfAborted();
      return await this.#pool.run(task, { signal });
    } catch (error) {
      if (stopped.aborted) throw unavailable('ENG_STOPPING', 'the engine is stopping');
      if (isCostly(error)) throw tooLarge('the capsule takes too long or too much memory');
      throw error;
    } finally {
      this.#open -= 1;
    }
  }

  /** Gives up what is being worked on. Idempotent. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#pool.destroy();
  }
}

function isCostly(error: unknown): boolean {
  const { name, code } = error as { name?: unknown; code?: unknown };
  return name === 'AbortError' || name === 'TimeoutError' || code === 'ERR_WORKER_OUT_OF_MEMORY';
}
