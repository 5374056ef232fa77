/** Whether the tenants of a request are served by this engine, where several engines share the tenants. */

import type { EngineError } from '../base/errors.js';

export interface Placement {
  /**
   * Admits requests of the tenant. Undefined: admitted at once.
   *
   * @param mustSettle the request may write
   * @throws EngineError 421 or 503; the promise rejects with the same
   */
  admit(tenant: string, mustSettle: boolean): Promise<void> | undefined;
  /**
   * The same for the tenant in a header, before the key is checked.
   *
   * @param isKnown whether the key is known here
   * @throws EngineError 421 or 503; the promise rejects with the same
   */
  admitNamed(tenant: string, isKnown: () => boolean): Promise<void> | undefined;
  /** For a request that names no tenant: the value of `x-cell`. @throws EngineError 400 or 421 */
  admitCell(named: string): void;
  /** Calls `end` once the tenant is no longer served here. @returns a function that cancels this */
  whenGone(tenant: string, isPoll: boolean, end: (why: EngineError) => void): () => void;
}
