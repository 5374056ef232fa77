/**
 * Repeated work in the background: one step at a time, each retried until it succeeds, with a rest after it that is as
 * long as it took, so that requests hardly notice.
 */

import type { Clock, TimerHandle } from './clock.js';
import type { Logger } from './log.js';

export interface BackgroundJobDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** In the log: what could not be done. */
  readonly name: string;
  /** From `start` to the first run; absent: 0. */
  readonly firstAfterMs?: number;
  /** From the end of one run to the beginning of the next. */
  readonly everyMs: number;
  readonly run: () => Promise<unknown>;
}

/** When a step failed: the database may be away. */
const AGAIN_AFTER_MS = 10_000;
/** A rest is never shorter, so that quick steps leave room as well. */
const REST_MS_MIN = 5;

export class BackgroundJob {
  readonly #deps: BackgroundJobDeps;
  #timer: TimerHandle;
  #isRunning = false;
  #isAsked = false;
  #endRest: (() => void) | undefined;
  #isStopped = false;

  constructor(deps: BackgroundJobDeps) {
    this.#deps = deps;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  start(afterMs = this.#deps.firstAfterMs ?? 0): void {
    if (this.#isStopped) return;
    this.#timer = this.#deps.clock.setTimeout(() => this.#run(), afterMs);
  }

  /** There is something to do: a run begins now, or when the present one has ended. */
  wake(): void {
    this.#isAsked = true;
    if (this.#isRunning) return;
    this.#deps.clock.clearTimeout(this.#timer);
    this.#run();
  }

  stop(): void {
    this.#isStopped = true;
    this.#deps.clock.clearTimeout(this.#timer);
    this.#endRest?.();
  }

  /** Tries until it succeeds, then rests for as long as it took. @throws when the job is stopped */
  async step<T>(work: () => Promise<T>): Promise<T> {
    const { clock, log, name } = this.#deps;
    for (;;) {
      const began = clock.monotonic();
      try {
        const result = await work();
        await this.#rest(Math.max(REST_MS_MIN, clock.monotonic() - began));
        return result;
      } catch (error) {
        if (this.#isStopped) throw error;
        log.debug({ err: error, job: name }, 'background step failed; trying again');
        await this.#rest(AGAIN_AFTER_MS);
      }
    }
  }

  #run(): void {
    const { run, log, name, everyMs } = this.#deps;
    if (this.#isStopped) return;
    this.#isRunning = true;
    this.#isAsked = false;
    run()
      .catch((error: unknown) => {
        if (!this.#isStopped) log.error({ err: error, job: name }, 'background job ended early');
      })
      .finally(() => {
        this.#isRunning = false;
        this.start(this.#isAsked ? 0 : everyMs);
      });
  }

  #rest(ms: number): Promise<void> {
    if (this.#isStopped) return Promise.resolve();
    return new Promise((resolve) => {
      const { clock } = this.#deps;
      const timer = clock.setTimeout(() => this.#endRest?.(), ms);
      this.#endRest = () => {
        this.#endRest = undefined;
        clock.clearTimeout(timer);
        resolve();
      };
    });
  }
}
