/** Interfaces for the pipeline: state of the engine, placement in a cluster, and admission by cost. */

import type { Route } from '../../schema/routes.js';
import type { EngineError } from '../base/errors.js';

export type EngineState =
  | 'starting'
  | 'standby'
  | 'serving'
  /** The database answers, but takes no writes: only reads are served. */
  | 'writes-fail'
  | 'database-unavailable'
  /** Derived from the lease, whatever state was set. */
  | 'paused'
  | 'stopping';

/** Implemented in `src/server/gate.ts`. */
export interface StateGate {
  readonly state: EngineState;
  /** The refusal of a request that needs the database; undefined: it may be served. */
  refusal(): EngineError | undefined;
  /** Calls `then` when the engine has started, or after the maximum wait. */
  whenStarted(then: () => void): void;
}

/** Checks that this engine serves the tenants of a request, where several engines share the tenants. */
export interface Placement {
  /** Undefined: admitted. @param mustSettle it may write @throws EngineError 421, 503; or the promise rejects */
  admit(tenant: string, mustSettle: boolean): Promise<void> | undefined;
  /** Like `admit`, for the tenant in a header. @param isKnown whether this engine has the key */
  admitNamed(tenant: string, isKnown: () => boolean): Promise<void> | undefined;
  /** For a request without a tenant: checks `x-cell`. @throws EngineError 400 or 421 */
  admitCell(named: string): void;
  /** Calls `end` once the tenant is no longer served here. @returns a function that cancels this */
  whenGone(tenant: string, isPoll: boolean, end: (why: EngineError) => void): () => void;
}

export interface AdmissionRequest {
  readonly route: Route;
  readonly tenant: string;
  readonly isRoot: boolean;
  readonly params: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Admission by cost (`actors/limits/front/admission.ts`). */
export interface Admission {
  /**
   * Takes the whole cost of the request from the budget of its tenant, or nothing.
   *
   * @returns undefined: admitted; else a function to call once the request is answered
   * @throws EngineError 429; the promise rejects with 429 or 409
   */
  admit(request: AdmissionRequest): Promise<() => void> | undefined;
}
