/** Whether several tenants use the server: a single tenant may use all of it. Pure: time is an argument. */

import { LIMITS } from '../limits.js';

export class TenantActivity {
  #last = '';
  /** When the tenant last differed from the one before. */
  #changedAt = Number.NEGATIVE_INFINITY;

  /** Records a request. @param tenant '': none */
  came(tenant: string, now: number): void {
    if (tenant === this.#last || tenant === '') return;
    // The first tenant of all follows no other.
    if (this.#last !== '') this.#changedAt = now;
    this.#last = tenant;
  }

  isShared(now: number): boolean {
    return now - this.#changedAt < LIMITS.sharedForMs;
  }
}
