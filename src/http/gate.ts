/**
 * Whether the engine may serve: it starts, waits as a standby, serves, has lost its database, or
 * stops. Requests wait a while for an engine that starts; in the other states they are told at once
 * (spec/06 row 33).
 */

import { LIMITS } from '../config.js';
import type { Clock } from '../core/clock.js';
import { DATABASE_AWAY, type EngineError, unavailable } from '../errors.js';

export type EngineState = 'starting' | 'standby' | 'serving' | 'database-away' | 'stopping';

export class Gate {
  readonly #clock: Clock;
  #state: EngineState = 'starting';
  #waiting = new Set<() => void>();
  /** A thread is being replaced: the others serve, and the engine is not ready (spec/06 row 33). */
  isComplete = true;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get state(): EngineState {
    return this.#state;
  }

  set(state: EngineState): void {
    // Nothing comes back from stopping; a late answer of a thread changes nothing.
    if (this.#state === 'stopping' || this.#state === state) return;
    this.#state = state;
    if (state === 'starting') return;
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const wake of waiting) wake();
  }

  /** Why the engine is not ready; undefined when it is. */
  unreadiness(): EngineError | undefined {
    if (this.#state === 'serving' && !this.isComplete) {
      return unavailable('ENG_SHARD_RESTARTING', 'a part of the engine is restarting');
    }
    return this.refusal();
  }

  /** The refusal of a request that needs the database; undefined when it may be served. */
  refusal(): EngineError | undefined {
    switch (this.#state) {
      case 'serving':
        return undefined;
      case 'starting':
        return unavailable('ENG_STARTING', 'the engine is starting');
      case 'standby':
        return unavailable(
          'ENG_STANDBY',
          'another engine owns the database; this one is a standby',
        );
      case 'database-away':
        return DATABASE_AWAY;
      case 'stopping':
        return unavailable('ENG_STOPPING', 'the engine is stopping');
    }
  }

  /** Calls `then` when the engine has started, or after the longest wait. */
  whenStarted(then: () => void): void {
    const wake = () => {
      this.#clock.clearTimeout(timer);
      this.#waiting.delete(wake);
      then();
    };
    const timer = this.#clock.setTimeout(wake, LIMITS.startWaitMs);
    this.#waiting.add(wake);
  }
}
