/** What the pipeline uses of other rooms: the state of the engine, placement in a cluster, and admission by cost. */

import type { Route } from '../../schema/routes.js';
import type { EngineError } from '../base/errors.js';

export type EngineState =
  | 'starting'
  | 'standby'
  | 'serving'
  /** The database answers, and what only reads is served. */
  | 'writes-fail'
  | 'database-unavailable'
  /** By the times of the lease, whatever was set. */
  | 'paused'
  | 'stopping';

/** The state of the engine (`src/server/gate.ts`). */
export interface StateGate {
  readonly state: EngineState;
  /** The refusal of a request that needs the database; undefined when it may be served. */
  refusal(): EngineError | undefined;
  /** Calls `then` when the engine has started, or after the longest wait. */
  whenStarted(then: () => void): void;
}

/** Whether the tenants of a request are served by this engine, where several engines share the tenants. */
export interface Placement {
  /**
   * Undefined: admitted at once. @param mustSettle the request may write
   * @throws EngineError 421 or 503; the promise rejects with the same
   */
  admit(tenant: string, mustSettle: boolean): Promise<void> | undefined;
  /**
   * The same for the tenant in a header, before the key is checked. @param isKnown whether the key is known here
   * @throws EngineError 421 or 503; the promise rejects with the same
   */
  admitNamed(tenant: string, isKnown: () => boolean): Promise<void> | undefined;
  /** For a request that names no tenant: the value of `x-cell`. @throws EngineError 400 or 421 */
  admitCell(named: string): void;
  /** Calls `end` once the tenant is no longer served here. @returns a function that cancels this */
  whenGone(tenant: string, isPoll: boolean, end: (why: EngineError) => void): () => void;
}

export interface AdmissionRequest {
  readonly route: Route;
  readonly tenant: string;
  readonly isRoot: boolean;
  /** Of the path, not checked. */
  readonly params: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Admission by cost (`actors/limits/front/admission.ts`). */
export interface Admission {
  /**
   * Takes the cost of the request from the budget of its tenant, all of it or nothing.
   *
   * @returns undefined: it is admitted; else a function to call once the request was answered
   * @throws EngineError 429; the promise rejects with one, or with 409
   */
  admit(request: AdmissionRequest): Promise<() => void> | undefined;
}
