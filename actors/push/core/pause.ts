/**
 * The pause of an endpoint that takes no tasks. Each failed attempt after a pause makes the next one twice as long; until
 * the endpoint answers again, one task at a time is tried. Pure.
 */

import type { UnixMs } from '../../../src/base/time.js';

const FIRST_MS = 1_000;
export const PAUSE_MS_MAX = 60_000;
/** So that endpoints that failed together do not return together. */
const JITTER = 0.2;

export class Pause {
  #until: UnixMs = 0;
  /** Pauses in a row. */
  #count = 0;

  /** Whether the endpoint has not answered since the last pause. */
  get isDoubtful(): boolean {
    return this.#count > 0;
  }

  until(now: UnixMs): UnixMs | undefined {
    return this.#until > now ? this.#until : undefined;
  }

  /**
   * Requests that were in flight together count once.
   * @param askedMs the pause that the endpoint asks for; undefined: it grows
   * @param random in [0, 1)
   * @returns whether a pause begins
   */
  begin(now: UnixMs, askedMs: number | undefined, random: number): boolean {
    const isNew = this.#until <= now;
    if (isNew) this.#count += 1;
    const grownMs = Math.min(PAUSE_MS_MAX, FIRST_MS * 2 ** (this.#count - 1));
    const ms = askedMs ?? grownMs * (1 - JITTER * random);
    this.#until = Math.max(this.#until, now + ms);
    return isNew;
  }

  /** The endpoint may have been repaired: one task is tried now. */
  lift(): void {
    this.#until = 0;
  }

  /** The endpoint took a task. @returns whether it was doubtful */
  end(): boolean {
    const wasDoubtful = this.isDoubtful;
    this.#count = 0;
    return wasDoubtful;
  }
}
