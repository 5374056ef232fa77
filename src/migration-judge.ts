/**
 * What is computed for the plan of a migration: the difference between two definitions, and a replay
 * with both. The replay runs in a thread of its own, which is started for the first and ends when it
 * has nothing to do: histories are as large as their instances made them, and definitions are a
 * stranger's. One that takes too long or too much memory costs the thread, and nobody else waits.
 */

import { Piscina } from 'piscina';
import type { Definitions } from './comparison.thread.js';
import { Comparisons } from './comparisons.js';
import type { FrontierVerdict } from './core/continuity/frontier.js';
import { semanticDiffText } from './core/releases/diff.js';
import { unavailable } from './errors.js';
import replayFrontier, { type FrontierTask } from './frontier.thread.js';
import type { Logger } from './log.js';

export interface MigrationJudge {
  /** The `SemanticDiff` of two definitions as JSON. Rejects with EngineError 503. */
  compare(definitions: Definitions): Promise<string>;
  /** Rejects with EngineError 503 when it cannot be carried out now. */
  replay(task: FrontierTask): Promise<FrontierVerdict>;
}

/** For who has no threads. */
export const IN_PLACE: MigrationJudge = {
  compare: async ({ baseline, candidate }) => semanticDiffText(baseline, candidate),
  replay: async (task) => replayFrontier(task),
};

/** Of one replay with both versions; the longest within the ceiling of turns takes seconds. */
const REPLAY_MS = 10_000;
/** Of the thread: far more than the largest history that is taken needs, parsed. */
const HEAP_MIB = 512;
/** The thread takes a while to start, and a few megabytes while it is there. */
const IDLE_MS = 30_000;
/** Replays that wait for the thread or are in it, each with a history in memory. */
const REPLAYS_MAX = 8;

export class ThreadedJudge implements MigrationJudge {
  readonly #comparisons = new Comparisons();
  readonly #log: Logger;
  readonly #replayMs: number;
  readonly #pool: Piscina;
  readonly #stopped = new AbortController();
  #open = 0;

  constructor(log: Logger, replayMs = REPLAY_MS) {
    this.#log = log;
    this.#replayMs = replayMs;
    this.#pool = new Piscina({
      filename: new URL('./frontier.thread.js', import.meta.url).href,
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

  compare(definitions: Definitions): Promise<string> {
    return this.#comparisons.compare(definitions);
  }

  async replay(task: FrontierTask): Promise<FrontierVerdict> {
    if (this.#open >= REPLAYS_MAX) {
      throw unavailable('ENG_OVERLOADED', 'too many migrations are being planned');
    }
    this.#open += 1;
    const { signal: stopped } = this.#stopped;
    // Those before it in the queue take their time too.
    const signal = AbortSignal.any([stopped, AbortSignal.timeout(this.#replayMs * this.#open)]);
    try {
      stopped.throwIfAborted();
      return (await this.#pool.run(task, { signal })) as FrontierVerdict;
    } catch (error) {
      if (stopped.aborted) throw unavailable('ENG_STOPPING', 'the engine is stopping');
      if (!isCostly(error)) this.#log.error({ instanceId: task.life.id, err: error }, 'defect');
      return { passed: false, reason: 'it takes too long or too much' };
    } finally {
      this.#open -= 1;
    }
  }

  /** Gives up what is being replayed. Idempotent. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await Promise.all([this.#pool.destroy(), this.#comparisons.stop()]);
  }
}

/** It took too long, or more memory than the thread may have. */
function isCostly(error: unknown): boolean {
  const { name, code } = error as { name?: unknown; code?: unknown };
  return name === 'AbortError' || name === 'TimeoutError' || code === 'ERR_WORKER_OUT_OF_MEMORY';
}
