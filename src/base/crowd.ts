/**
 * Whether tenants share the server: one that is alone may have all of it, and is kept to its own part only while
 * others ask, too. Pure: time is handed in.
 */

import { LIMITS } from './limits.js';

export class Crowd {
  #last = '';
  /** When the tenant was another one than before. */
  #changedAt = Number.NEGATIVE_INFINITY;

  /** @param tenant whose request has come; '': nobody's */
  came(tenant: string, now: number): void {
    if (tenant === this.#last || tenant === '') return;
    // The first one of all is nobody's neighbour.
    if (this.#last !== '') this.#changedAt = now;
    this.#last = tenant;
  }

  isShared(now: number): boolean {
    return now - this.#changedAt < LIMITS.crowdMs;
  }
}
