/**
 * Bounds the requests in flight of one address over all its connections, so that one client cannot take all the room
 * for parked polls, streams and slow bodies (docs/limits.md). Behind a trusted proxy the address is that of its client.
 */

import { EngineError } from '../base/errors.js';
import { LIMITS } from '../base/limits.js';
import { Tally } from '../base/quota/tally.js';

const RETRY_AFTER_MS = 1_000;

export class AddressRequests {
  /** Since the start. */
  refused = 0;
  readonly #max: number;
  readonly #inFlight = new Tally();

  /** @param max `ENGINE_MAX_REQUESTS_PER_ADDRESS`; 0: three quarters of all */
  constructor(max: number) {
    this.#max = max || Math.floor(LIMITS.requestsInFlightMax * LIMITS.requestShareOfAddress);
  }

  /** @returns the refusal; undefined: the request is served, and `leave` must be called at its end */
  enter(address: string): EngineError | undefined {
    if (this.#inFlight.of(address) >= this.#max) {
      this.refused += 1;
      return new EngineError(
        'ENG_TOO_MANY_REQUESTS',
        `too many requests: ${this.#max} of this address are in flight (ENGINE_MAX_REQUESTS_PER_ADDRESS)`,
        RETRY_AFTER_MS,
      );
    }
    this.#inFlight.add(address, 1);
    return undefined;
  }

  leave(address: string): void {
    this.#inFlight.add(address, -1);
  }
}
