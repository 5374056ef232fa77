/**
 * Schedules the evaluation of canary gates after routed instances have ended. Each release is evaluated one look at a
 * time and for at most a twentieth of the time, however many instances end. Hints may be lost, so `releases.ts` repeats
 * them for all canaries from time to time.
 */

import type { Clock, TimerHandle } from '../../src/base/clock.js';

export interface GateWatchDeps {
  readonly clock: Pick<Clock, 'monotonic' | 'setTimeout' | 'clearTimeout'>;
  /** Resolves to false when the rows could not be read. */
  readonly look: (release: string) => Promise<boolean>;
}

/** Minimum rest of a release after a look. */
const REST_MS = 1_000;
/** Minimum rest as a multiple of the time the look took: counting costs in proportion to the runs. */
const REST_FACTOR = 20;

export class GateWatch {
  readonly #deps: GateWatchDeps;
  readonly #due = new Set<string>();
  /** Releases being evaluated (undefined) or resting. */
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
    // Instances that end from now on may be missed by this look.
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
