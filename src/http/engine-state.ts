/** The state of the engine, as the pipeline uses it (`src/server/gate.ts`). */

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

export interface StateGate {
  readonly state: EngineState;
  /** The refusal of a request that needs the database; undefined when it may be served. */
  refusal(): EngineError | undefined;
  /** Calls `then` when the engine has started, or after the longest wait. */
  whenStarted(then: () => void): void;
}
