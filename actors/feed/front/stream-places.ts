/**
 * Limits open streams (docs/limits.md). A tenant may use free places up to a limit of its own; the last places are
 * reserved for tenants with few streams, and some for the root key, so that operators can always watch.
 */

import { LIMITS } from '../../../src/base/limits.js';
import { Tally } from '../../../src/base/quota/tally.js';

/** Releases the place, once; or the reason why there is none. */
export type StreamPlace =
  | { readonly ok: true; readonly release: () => void }
  | { readonly ok: false; readonly message: string };

export class StreamPlaces {
  readonly #open = new Tally();
  #ofRoot = 0;

  /** @param isRoot the caller has the root key, whatever tenant it acts for */
  take(tenant: string, isRoot: boolean): StreamPlace {
    const message = this.#refusal(tenant);
    if (message === undefined) {
      this.#open.add(tenant, 1);
      return { ok: true, release: () => this.#open.add(tenant, -1) };
    }
    if (!isRoot || this.#ofRoot >= LIMITS.streamsOfRoot) return { ok: false, message };
    this.#ofRoot += 1;
    return {
      ok: true,
      release: () => {
        this.#ofRoot -= 1;
      },
    };
  }

  #refusal(tenant: string): string | undefined {
    const own = this.#open.of(tenant);
    const ownMax = LIMITS.streamsPerTenantMax;
    if (own >= ownMax) return `${ownMax} streams of this tenant are open`;
    const all = LIMITS.streamsMax - LIMITS.streamsOfRoot;
    const left = all - this.#open.sum;
    if (left <= 0) return `${all} streams are open`;
    const [kept, few] = [LIMITS.streamsOfSmall, LIMITS.streamsOfSmallMax];
    return left <= kept && own >= few
      ? `the last ${kept} streams are for tenants that have fewer than ${few}`
      : undefined;
  }
}
