/**
 * Repeated background work, one step at a time. A failed step or run is retried until it succeeds. After each step the
 * job rests for as long as the step took, so that requests are hardly delayed.
 */

import type { Clock, TimerHandle } from './clock.js';
import type { Logger } from './log.js';

export interface BackgroundJobDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Names the job in the log. */
  readonly name: string;
  /** Delay between `start` and the first run. Default: 0. */
  readonly firstAfterMs?: number;
  /** Delay between the end of a run and the next run. */
  readonly everyMs: number;
  readonly run: () => Promise<unknown>;
}

/** Delay before a failed step or run is retried: the database may be unavailable. */
const AGAIN_AFTER_MS = 1_000;
/** After so many failed runs in a row the operator should know. */
const FAILURES_LOGGED = 20;
/** The shortest rest, so that quick steps leave room for requests as well. */
const REST_MS_MIN = 5;

export class BackgroundJob {
  readonly #deps: BackgroundJobDeps;
  #timer: TimerHandle;
  #isRunning = false;
  #isWakened = false;
  #endRest: (() => void) | undefined;
  #isStopped = false;
  /** Failed runs since the last success. */
  #failures = 0;

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

  /** Runs the job now, or again after the current run. */
  wake(): void {
    this.#isWakened = true;
    if (this.#isRunning) return;
    this.#deps.clock.clearTimeout(this.#timer);
    this.#run();
  }

  stop(): void {
    this.#isStopped = true;
    this.#deps.clock.clearTimeout(this.#timer);
    this.#endRest?.();
  }

  /** Retries the work until it succeeds, then rests. @throws the error of the work when the job is stopped */
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
    const { run, everyMs, log, name } = this.#deps;
    if (this.#isStopped) return;
    this.#isRunning = true;
    this.#isWakened = false;
    run()
      .then(() => {
        this.#failures = 0;
        return everyMs;
      })
      .catch((error: unknown) => {
        this.#failures += 1;
        const what = { err: error, job: name };
        if (this.#failures === FAILURES_LOGGED) {
          log.warn(what, 'background job keeps failing; trying again');
        } else log.debug(what, 'background job failed; trying again');
        return Math.min(everyMs, AGAIN_AFTER_MS);
      })
      .then((afterMs) => {
        this.#isRunning = false;
        this.start(this.#isWakened ? 0 : afterMs);
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
