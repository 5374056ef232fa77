/** Whether a tenant is served by this engine, in a cluster where each cell has its own tenants. */

import type { EngineError } from '../base/errors.js';

export interface Placement {
  /**
   * Lets requests of the tenant pass, or refuses them; undefined: at once.
   *
   * @param mustSettle it is about to be written for
   * @throws EngineError 421 or 503, as the promise rejects with
   */
  admit(tenant: string, mustSettle: boolean): Promise<void> | undefined;
  /**
   * The same for a name that a request came with, before its key was looked at.
   *
   * @param isKnown whether its key is known here
   * @throws EngineError 421 or 503, as the promise rejects with
   */
  admitNamed(tenant: string, isKnown: () => boolean): Promise<void> | undefined;
  /** A request that names no tenant may name the cell. @throws EngineError 400 or 421 */
  admitCell(named: string): void;
  /** Calls `end` when the tenant is not served here any more; returns a function that cancels this. */
  whenGone(tenant: string, isPoll: boolean, end: (why: EngineError) => void): () => void;
}
