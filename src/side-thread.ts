/**
 * A thread beside those of the engine, for work that would hold one of them up: it is started for the
 * first task, does one after the other, and ends when it has had nothing to do for a while. A task
 * that takes too long or too much memory costs the thread and nothing else.
 */

import { Piscina } from 'piscina';
import { unavailable } from './errors.js';

export interface SideThreadOptions {
  /** The module of the thread; its default export does one task. */
  readonly entry: URL;
  /** Tasks that wait for the thread or are in it, each in memory. */
  readonly tasksMax: number;
  /** What is said of those beyond, such as `too many capsules are being worked on`. */
  readonly busy: string;
  /** How long one task may take; absent: it is known to end. */
  readonly taskMs?: number;
  /** What the thread may hold; absent: as much as Node.js takes. */
  readonly heapMib?: number;
}

/** The task took too long, or more memory than the thread may have. */
export class TooCostly extends Error {
  override readonly name = 'TooCostly';
}

/** The thread takes a while to start, and a few megabytes while it is there. */
const IDLE_MS = 30_000;

export class SideThread<Task, Answer> {
  readonly #options: SideThreadOptions;
  readonly #pool: Piscina;
  readonly #stopped = new AbortController();
  #open = 0;

  constructor(options: SideThreadOptions) {
    this.#options = options;
    const { entry, heapMib } = options;
    this.#pool = new Piscina({
      filename: entry.href,
      minThreads: 0,
      maxThreads: 1,
      concurrentTasksPerWorker: 1,
      idleTimeout: IDLE_MS,
      recordTiming: false,
      atomics: 'disabled',
      ...(heapMib === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: heapMib } }),
    });
    // Failed tasks are told through their promises; the pool repeats them as events.
    this.#pool.on('error', () => undefined);
  }

  /**
   * @param taskMs how long this one may take
   * @throws EngineError 503 when there are too many tasks, or the engine stops
   * @throws TooCostly see there; otherwise what the task throws
   */
  async run(task: Task, taskMs = this.#options.taskMs): Promise<Answer> {
    // A pool that was ended would start another thread.
    if (this.#stopped.signal.aborted) throw stopping();
    if (this.#open >= this.#options.tasksMax) {
      throw unavailable('ENG_OVERLOADED', this.#options.busy);
    }
    this.#open += 1;
    try {
      return (await this.#pool.run(task, { signal: this.#signal(taskMs) })) as Answer;
    } catch (error) {
      if (this.#stopped.signal.aborted) throw stopping();
      throw isCostly(error) ? new TooCostly('it takes too long or too much memory') : error;
    } finally {
      this.#open -= 1;
    }
  }

  /** Gives up what is under way. Idempotent. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#pool.destroy();
  }

  /** Those before it in the queue take their time too. */
  #signal(taskMs: number | undefined): AbortSignal {
    const { signal } = this.#stopped;
    if (taskMs === undefined) return signal;
    return AbortSignal.any([signal, AbortSignal.timeout(taskMs * this.#open)]);
  }
}

function isCostly(error: unknown): boolean {
  const { name, code } = error as { name?: unknown; code?: unknown };
  return name === 'AbortError' || name === 'TimeoutError' || code === 'ERR_WORKER_OUT_OF_MEMORY';
}

const stopping = () => unavailable('ENG_STOPPING', 'the engine is stopping');
