/**
 * Compares stored definitions. Those of usual sizes are compared in place, within a few milliseconds;
 * larger ones in a thread of their own, which is started for the first and ends when it has nothing
 * to do: two definitions of 10 MiB take most of a second, for which nobody else should wait.
 */

import { Piscina } from 'piscina';
import type { Definitions } from './comparison.thread.js';
import { semanticDiffText } from './core/releases/diff.js';
import { unavailable } from './errors.js';

/** Characters of both definitions: some 500 steps each, which take 2 to 10 ms. */
export const IN_PLACE_MAX = 128 * 1024;

/** Comparisons that wait for the thread or are in it, each with two definitions in memory. */
export const COMPARISONS_MAX = 8;

/** The thread takes a while to start, and a few megabytes while it is there. */
const IDLE_MS = 30_000;

export class Comparisons {
  readonly #pool: Piscina;
  #open = 0;
  #isStopped = false;

  constructor() {
    this.#pool = new Piscina({
      filename: new URL('./comparison.thread.js', import.meta.url).href,
      minThreads: 0,
      maxThreads: 1,
      concurrentTasksPerWorker: 1,
      idleTimeout: IDLE_MS,
      recordTiming: false,
      atomics: 'disabled',
    });
    // Failed tasks are told through their promises; the pool repeats them as events.
    this.#pool.on('error', () => undefined);
  }

  /**
   * The `SemanticDiff` of two `SequenceDefinition`s, all as JSON.
   *
   * @throws EngineError 503 when too many are being compared, or the engine stops
   */
  async compare(definitions: Definitions): Promise<string> {
    const { baseline, candidate } = definitions;
    if (baseline.length + candidate.length <= IN_PLACE_MAX) {
      return semanticDiffText(baseline, candidate);
    }
    // A pool that was ended would start another thread.
    if (this.#isStopped) throw stopping();
    if (this.#open >= COMPARISONS_MAX) {
      throw unavailable('ENG_OVERLOADED', 'too many large sequences are being compared');
    }
    this.#open += 1;
    try {
      return (await this.#pool.run(definitions)) as string;
    } catch (error) {
      throw this.#isStopped ? stopping() : error;
    } finally {
      this.#open -= 1;
    }
  }

  /** Gives up what is being compared. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#pool.destroy();
  }
}

const stopping = () => unavailable('ENG_STOPPING', 'the engine is stopping');
