/**
 * Verifies chains of provenance. Those of usual lengths are verified in place, within some
 * milliseconds; longer ones in a thread of their own, which is started for the first and ends when it
 * has nothing to do: each signature takes a tenth of a millisecond, and callers may add 10,000.
 */

import { Piscina } from 'piscina';
import verifyInPlace, { type Chain } from './chain.thread.js';
import { unavailable } from './errors.js';

/** Characters of a chain: some 70 entries. */
export const IN_PLACE_MAX = 48 * 1024;

/** Chains that wait for the thread or are in it. */
export const CHAINS_MAX = 8;

/** As of the thread that compares definitions. */
const IDLE_MS = 30_000;

export class Chains {
  readonly #pool: Piscina;
  #open = 0;
  #isStopped = false;

  constructor() {
    this.#pool = new Piscina({
      filename: new URL('./chain.thread.js', import.meta.url).href,
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
   * The `ProvenanceVerdict` as JSON.
   *
   * @throws EngineError 503 when too many are being verified, or the engine stops
   */
  async verify(chain: Chain): Promise<string> {
    if (chain.text.length <= IN_PLACE_MAX) return verifyInPlace(chain);
    // A pool that was ended would start another thread.
    if (this.#isStopped) throw stopping();
    if (this.#open >= CHAINS_MAX) {
      throw unavailable('ENG_OVERLOADED', 'too many long chains of provenance are being verified');
    }
    this.#open += 1;
    try {
      return (await this.#pool.run(chain)) as string;
    } catch (error) {
      throw this.#isStopped ? stopping() : error;
    } finally {
      this.#open -= 1;
    }
  }

  /** Gives up what is being verified. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#pool.destroy();
  }
}

const stopping = () => unavailable('ENG_STOPPING', 'the engine is stopping');
