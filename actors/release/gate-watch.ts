/**
 * Schedules the evaluation of canary gates after routed instances have ended. One release is evaluated at a time, and
 * each for at most a twentieth of the time. Hints may be lost, so `releases.ts` periodically repeats them for all
 * canaries.
 */

import type { Clock, TimerHandle } from '../../src/base/clock.js';

export interface GateWatchDeps {
  readonly clock: Pick<Clock, 'monotonic' | 'setTimeout' | 'clearTimeout'>;
  /** Resolves to false when the rows could not be read. */
  readonly look: (release: string) => Promise<boolean>;
}

/** Minimum pause of a release after an evaluation. */
const REST_MS = 1_000;
/** Minimum pause as a multiple of the time of the evaluation, which grows with the number of runs. */
const REST_FACTOR = 20;

export class GateWatch {
  readonly #deps: GateWatchDeps;
  readonly #due = new Set<string>();
  /** Releases that are being evaluated (undefined) or pausing. */
  readonly #resting = new Map<string, TimerHandle>();
  readonly #hinted = new Set<string>();
  #isLooking = false;
  #isStopped = false;

  constructor(deps: GateWatchDeps) {
    this.#deps = deps;
  }

  hint(release: string): void {
    if (this.#resting.has(release)) this.#hinted.add(release);
    else {
      this.#due.add(release);
      this.#next();
    }
  }

  stop(): void {
    this.#isStopped = true;
    for (const handle of this.#resting.values()) this.#deps.clock.clearTimeout(handle);
  }

  #next(): void {
    const [release] = this.#due;
    if (release === undefined || this.#isLooking || this.#isStopped) return;
    const { clock, look } = this.#deps;
    this.#due.delete(release);
    this.#isLooking = true;
    // This evaluation may miss instances that end from now on.
    this.#resting.set(release, undefined);
    const began = clock.monotonic();
    void look(release).then((hasLooked) => {
      if (!hasLooked) this.#hinted.add(release);
      this.#isLooking = false;
      this.#rest(release, clock.monotonic() - began);
      this.#next();
    });
  }

  #rest(release: string, tookMs: number): void {
    if (this.#isStopped) return;
    const restMs = Math.max(REST_MS, REST_FACTOR * tookMs);
    const wake = () => {
      this.#resting.delete(release);
      if (this.#hinted.delete(release)) this.hint(release);
    };
    this.#resting.set(release, this.#deps.clock.setTimeout(wake, restMs));
  }
}
