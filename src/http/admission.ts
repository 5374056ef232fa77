/** Admission by cost, as the pipeline uses it (`actors/limits/front/admission.ts`). */

import type { Route } from '../../schema/routes.js';

/** A request before anything is done for it. */
export interface AdmissionRequest {
  readonly route: Route;
  readonly tenant: string;
  /** It came with the root key. */
  readonly isRoot: boolean;
  /** Of the path, not checked. */
  readonly params: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface Admission {
  /**
   * Takes the cost of the request from the budget of its tenant, all of it or nothing.
   *
   * @returns undefined: it is admitted; else a promise of a function to call once the request was answered
   * @throws EngineError 429; the promise rejects with one, or with 409
   */
  admit(asked: AdmissionRequest): Promise<() => void> | undefined;
}
