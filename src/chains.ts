/**
 * Verifies chains of provenance. Those of usual lengths are verified in place, within some
 * milliseconds; longer ones in a thread of their own: each signature takes a tenth of a millisecond,
 * and callers may add 10,000.
 */

import verifyInPlace, { type Chain } from './chain.thread.js';
import { SideThread } from './side-thread.js';

/** Characters of a chain: some 70 entries. */
export const IN_PLACE_MAX = 48 * 1024;

/** Chains that wait for the thread or are in it. */
export const CHAINS_MAX = 8;

export class Chains {
  readonly #thread = new SideThread<Chain, string>({
    entry: new URL('./chain.thread.js', import.meta.url),
    tasksMax: CHAINS_MAX,
    busy: 'too many long chains of provenance are being verified',
  });

  /**
   * The `ProvenanceVerdict` as JSON.
   *
   * @throws EngineError 503 when too many are being verified, or the engine stops
   */
  async verify(chain: Chain): Promise<string> {
    return chain.text.length <= IN_PLACE_MAX ? verifyInPlace(chain) : this.#thread.run(chain);
  }

  /** Gives up what is being verified. */
  stop(): Promise<void> {
    return this.#thread.stop();
  }
}
