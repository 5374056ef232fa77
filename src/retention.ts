/**
 * Removes instances that ended long ago (spec/06 row 49): walks the table of instances by key in small
 * pages, asks the shards to remove what it finds, and rests for as long as that took, so that others
 * hardly notice. Failed instances stay: they are not at their end (spec/06 row 57).
 */

import type { Clock, TimerHandle } from './core/clock.js';
import { firstIdAt } from './core/ids.js';
import type { UnixMs } from './core/time.js';
import type { Logger } from './log.js';

/** What one page of the walk found. */
export interface EndedPage {
  /** Ended before the time that was asked for. */
  readonly ids: readonly string[];
  /** The last id that was looked at; undefined at the end of the table. */
  readonly last: string | undefined;
}

export interface RetentionDeps {
  readonly clock: Clock;
  /** Engine time. */
  readonly now: () => UnixMs;
  /** How long an instance stays after its end. */
  readonly keepMs: number;
  readonly log: Logger;
  readonly page: (after: string, before: UnixMs, rows: number) => Promise<EndedPage>;
  /** Resolves with how many were removed; those that changed meanwhile are left alone. */
  readonly remove: (ids: readonly string[], before: UnixMs) => Promise<number>;
}

/** Instances looked at in one query. */
const PAGE_ROWS = 2_000;
/** Instances of one unit: their rows are one statement, behind which others wait. */
const REMOVED_AT_ONCE = 50;
const FIRST_AFTER_MS = 5_000;
const EVERY_MS = 3_600_000;
/** When a page or a removal failed: the database may be away. */
const AGAIN_AFTER_MS = 10_000;
/** A pause is never shorter, so that a sweep of quick steps leaves room as well. */
const PAUSE_MS_MIN = 5;

const FIRST_ID = '00000000-0000-0000-0000-000000000000';

export class Retention {
  readonly #deps: RetentionDeps;
  #timer: TimerHandle;
  #wake: (() => void) | undefined;
  #isStopped = false;

  constructor(deps: RetentionDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#sweepAfter(FIRST_AFTER_MS);
  }

  stop(): void {
    this.#isStopped = true;
    this.#deps.clock.clearTimeout(this.#timer);
    this.#wake?.();
  }

  /** One walk over the table. Resolves with how many instances were removed. */
  async sweep(): Promise<number> {
    const before = this.#deps.now() - this.#deps.keepMs;
    // Ids that are made of their time lie in its order. What was created since cannot have ended
    // before, so that the walk leaves that stretch out.
    const skipFrom = firstIdAt(before);
    const skipTo = firstIdAt(this.#deps.now());
    let removed = 0;
    for (let after: string | undefined = FIRST_ID; after !== undefined && !this.#isStopped; ) {
      const from: string = after >= skipFrom && after < skipTo ? skipTo : after;
      const { ids, last }: EndedPage = await this.#patiently(() =>
        this.#deps.page(from, before, PAGE_ROWS),
      );
      for (let i = 0; i < ids.length && !this.#isStopped; i += REMOVED_AT_ONCE) {
        const some = ids.slice(i, i + REMOVED_AT_ONCE);
        removed += await this.#patiently(() => this.#deps.remove(some, before));
      }
      after = last;
    }
    if (removed > 0) this.#deps.log.info({ removed }, 'ended instances removed');
    return removed;
  }

  #sweepAfter(ms: number): void {
    if (this.#isStopped) return;
    this.#timer = this.#deps.clock.setTimeout(() => {
      this.sweep()
        .catch((error: unknown) => {
          if (!this.#isStopped) this.#deps.log.error({ err: error }, 'the sweep ended early');
        })
        .finally(() => this.#sweepAfter(EVERY_MS));
    }, ms);
  }

  /** Tries until it succeeds, then pauses for as long as it took. @throws when it is stopped */
  async #patiently<T>(work: () => Promise<T>): Promise<T> {
    const { clock, log } = this.#deps;
    for (;;) {
      const began = clock.monotonic();
      try {
        const result = await work();
        await this.#pause(Math.max(PAUSE_MS_MIN, clock.monotonic() - began));
        return result;
      } catch (error) {
        if (this.#isStopped) throw error;
        log.debug({ err: error }, 'ended instances could not be removed; trying again');
        await this.#pause(AGAIN_AFTER_MS);
      }
    }
  }

  #pause(ms: number): Promise<void> {
    if (this.#isStopped) return Promise.resolve();
    return new Promise((resolve) => {
      const { clock } = this.#deps;
      const timer = clock.setTimeout(() => this.#wake?.(), ms);
      this.#wake = () => {
        this.#wake = undefined;
        clock.clearTimeout(timer);
        resolve();
      };
    });
  }
}
