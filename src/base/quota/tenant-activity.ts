/** Whether several tenants use the server: one tenant alone may have all of it. Pure: time is an argument. */

import { LIMITS } from '../limits.js';

export class TenantActivity {
  #last = '';
  /** When the tenant was another one than before. */
  #changedAt = Number.NEGATIVE_INFINITY;

  /** @param tenant whose request has come; '': of no tenant */
  came(tenant: string, now: number): void {
    if (tenant === this.#last || tenant === '') return;
    // Before the first tenant of all there was no other.
    if (this.#last !== '') this.#changedAt = now;
    this.#last = tenant;
  }

  isShared(now: number): boolean {
    return now - this.#changedAt < LIMITS.sharedForMs;
  }
}
