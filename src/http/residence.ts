/** Whether a tenant is served by this engine, where each of several has its own tenants. */

import type { EngineError } from '../base/errors.js';

export interface Residence {
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
  /** Has `end` called when the tenant is not served here any more; gives what takes that back. */
  whenGone(tenant: string, isPoll: boolean, end: (why: EngineError) => void): () => void;
}
