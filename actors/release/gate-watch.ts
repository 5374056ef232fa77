/**
 * When the gates of canaries are looked at without being asked: after instances that a release routed
 * have ended. One release at a time, and each at most for a twentieth of the time, however many
 * instances end; what ends in between is seen by the next look. A hint may be lost, so that all
 * canaries are hinted at from time to time (see `releases.ts`).
 */

import type { Clock, TimerHandle } from '../../src/base/clock.js';

export interface GateWatchDeps {
  readonly clock: Pick<Clock, 'monotonic' | 'setTimeout' | 'clearTimeout'>;
  /** Resolves with whether the rows could be looked at. */
  readonly look: (release: string) => Promise<boolean>;
}

/** A release rests so long after a look, at least. */
const REST_MS = 1_000;
/** And at least so many times as long as that look took: counting costs in proportion to the runs. */
const REST_FACTOR = 20;

export class GateWatch {
  readonly #deps: GateWatchDeps;
  readonly #due = new Set<string>();
  /** Being looked at, or at rest after that; and those of them that were hinted at meanwhile. */
  readonly #resting = new Map<string, TimerHandle>();
  readonly #hinted = new Set<string>();
  #isLooking = false;
  #isStopped = false;

  constructor(deps: GateWatchDeps) {
    this.#deps = deps;
  }

  /** An instance that the release routed has ended, or may have. */
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
    // What ends from now on may be too late for this look.
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
