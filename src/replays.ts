/**
 * Replays ended runs in a thread of its own, which is started for the first and ends when it has
 * nothing to do. A definition is a stranger's: one that takes too long or too much memory costs the
 * thread, and nobody else waits for it. One run at a time is in memory.
 */

import { Piscina } from 'piscina';
import type { Verdict } from './core/releases/replay.js';
import type { StoredRun } from './db/reads/replay-reads.js';
import { unavailable } from './errors.js';
import type { Logger } from './log.js';
import type { Definitions, ReplayAnswer, ReplayTask } from './replay.thread.js';

export interface ReplaysOptions {
  readonly unpoliciedRetry: ReplayTask['unpoliciedRetry'];
  readonly log: Logger;
  /** How long one run may take; default `RUN_MS`. */
  readonly runMs?: number;
  /** Of the thread; default `HEAP_MIB`. */
  readonly heapMib?: number;
}

/** Of one run: a usual one takes milliseconds, and the longest within the ceiling of turns seconds. */
export const RUN_MS = 5_000;
/** Of the start of the thread and of compiling two definitions, on a machine that is busy. */
const START_MS = 20_000;
/** Far more than the largest run that is taken needs (`RUN_BYTES_MAX`), parsed. */
const HEAP_MIB = 512;
/** The thread takes a while to start, and a few megabytes while it is there. */
const IDLE_MS = 30_000;

export class Replays {
  readonly #options: ReplaysOptions;
  readonly #pool: Piscina;
  readonly #stopped = new AbortController();
  /** A thread is there that has compiled what it is asked about. */
  #isReady = false;

  constructor(options: ReplaysOptions) {
    this.#options = options;
    this.#pool = new Piscina({
      filename: new URL('./replay.thread.js', import.meta.url).href,
      minThreads: 0,
      maxThreads: 1,
      concurrentTasksPerWorker: 1,
      idleTimeout: IDLE_MS,
      recordTiming: false,
      atomics: 'disabled',
      resourceLimits: { maxOldGenerationSizeMb: options.heapMib ?? HEAP_MIB },
    });
    // Failed tasks are told through their promises; the pool repeats them as events.
    this.#pool.on('error', () => undefined);
  }

  /**
   * Compiles the definitions; resolves with what is wrong with the candidate, if anything is.
   *
   * @throws EngineError 503 when the engine stops, or the thread does not come up in time
   */
  async prepare(definitions: Definitions): Promise<string | undefined> {
    this.#isReady = false;
    try {
      const answer = await this.#ask({ definitions }, START_MS);
      this.#isReady = true;
      return answer.kind === 'broken' ? answer.message : undefined;
    } catch (error) {
      if (this.#stopped.signal.aborted) throw stopping();
      if (!isCostly(error)) throw error;
      throw unavailable('ENG_OVERLOADED', 'the definitions take too long to be compiled');
    }
  }

  /**
   * @param definitions those that were prepared last
   * @throws EngineError 503 when the engine stops
   */
  async replay(definitions: Definitions, run: StoredRun): Promise<Verdict> {
    // The thread that the run before has cost: its start is not part of the time of this one.
    if (!this.#isReady) await this.prepare(definitions);
    try {
      const { runMs = RUN_MS } = this.#options;
      const answer = await this.#ask({ definitions, run }, runMs);
      if (answer.kind !== 'broken' && answer.kind !== 'ready') return answer;
      return { kind: 'inconclusive', reason: 'the candidate does not compile' };
    } catch (error) {
      if (this.#stopped.signal.aborted) throw stopping();
      this.#isReady = false;
      if (isCostly(error)) return { kind: 'inconclusive', reason: 'it takes too long or too much' };
      this.#options.log.error({ instanceId: run.id, err: error }, 'defect in a replay');
      return { kind: 'inconclusive', reason: 'the replay threw' };
    }
  }

  /** Gives up what is being replayed. Idempotent. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#pool.destroy();
  }

  /** A task that is given up ends its thread. */
  async #ask(task: Omit<ReplayTask, 'unpoliciedRetry'>, ms: number): Promise<ReplayAnswer> {
    const { unpoliciedRetry } = this.#options;
    const signal = AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(ms)]);
    signal.throwIfAborted();
    return (await this.#pool.run({ ...task, unpoliciedRetry }, { signal })) as ReplayAnswer;
  }
}

/** It took too long, or more memory than the thread may have. */
function isCostly(error: unknown): boolean {
  const { name, code } = error as { name?: unknown; code?: unknown };
  return name === 'AbortError' || name === 'TimeoutError' || code === 'ERR_WORKER_OUT_OF_MEMORY';
}

const stopping = () => unavailable('ENG_STOPPING', 'the engine is stopping');
