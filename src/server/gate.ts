/**
 * The state of the engine, and the refusals that follow from it. Requests wait briefly for an engine that is
 * starting. A process that was paused for longer than its lease may have been replaced: it serves nothing from memory
 * before it has renewed the lease.
 */

import type { SealingKeyState } from '../../schema/system.js';
import type { Clock } from '../base/clock.js';
import { type EngineError, unavailable } from '../base/errors.js';
import { LIMITS } from '../base/limits.js';
import type { LeaseTimes } from '../db/lease.js';
import { type DatabaseTrouble, databaseDown } from '../db/trouble.js';
import type { EngineState, StateGate } from '../http/ports.js';

const UNKNOWN: DatabaseTrouble = { kind: 'unreachable', message: 'it was lost' };
const SILENT: DatabaseTrouble = { kind: 'unreachable', message: 'it does not answer' };
const STANDBY: DatabaseTrouble = { kind: 'lease', message: 'another engine owns the database' };

export class Gate implements StateGate {
  readonly #clock: Clock;
  #state: EngineState = 'starting';
  #waiting = new Set<() => void>();
  #trouble: DatabaseTrouble | undefined;
  /** False while a thread is being replaced: the others serve, but the engine is not ready. */
  isComplete = true;
  /** Whether the secrets in the database can be decrypted, once it is owned. */
  sealingKey: SealingKeyState = 'unknown';
  /** The times of the lease, once it is held. */
  times: LeaseTimes = {
    confirmedAt: Number.POSITIVE_INFINITY,
    trustedUntil: Number.POSITIVE_INFINITY,
  };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get state(): EngineState {
    const isPaused = this.#clock.monotonic() > this.times.trustedUntil;
    return isPaused && this.#state !== 'stopping' ? 'paused' : this.#state;
  }

  /** Why the database cannot be used; undefined when it can. */
  get trouble(): DatabaseTrouble | undefined {
    if (this.#state === 'standby') return STANDBY;
    return this.state === 'serving' && !this.isDatabaseUp ? SILENT : this.#trouble;
  }

  set(state: EngineState, trouble?: DatabaseTrouble): void {
    this.#trouble = trouble;
    // Stopping is final: later reports of threads change nothing.
    if (this.#state === 'stopping' || this.#state === state) return;
    this.#state = state;
    if (state === 'starting') return;
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const wake of waiting) wake();
  }

  /** Whether the database is owned and has answered recently. */
  get isDatabaseUp(): boolean {
    const silentMs = this.#clock.monotonic() - this.times.confirmedAt;
    return this.state === 'serving' && silentMs <= LIMITS.databaseSilenceMs;
  }

  unreadiness(): EngineError | undefined {
    const refusal = this.refusal();
    if (refusal !== undefined) return refusal;
    if (!this.isDatabaseUp) return databaseDown('does not answer', SILENT);
    return this.isComplete
      ? undefined
      : unavailable('ENG_SHARD_RESTARTING', 'a part of the engine is restarting');
  }

  refusal(): EngineError | undefined {
    switch (this.state) {
      case 'serving':
        return undefined;
      case 'starting':
        return unavailable('ENG_STARTING', 'the engine is starting');
      case 'standby':
        return unavailable(
          'ENG_STANDBY',
          'another engine owns the database; this one is a standby',
        );
      case 'writes-fail':
        return databaseDown('takes no writes', this.#trouble ?? UNKNOWN);
      case 'database-unavailable':
        return databaseDown('is away', this.#trouble ?? UNKNOWN);
      case 'paused':
        return unavailable(
          'ENG_STANDBY',
          'this engine was paused and has to see whether it still owns the database',
        );
      case 'stopping':
        return unavailable('ENG_STOPPING', 'the engine is stopping');
    }
  }

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
