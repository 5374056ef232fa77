/** The time limit of one request, combined with the abort signal of its caller. Timers are injected for tests. */

/** Runs `callback` once after the delay, unless the returned function is called first. */
export type SetTimer = (callback: () => void, delayMs: number) => () => void;

export const systemTimer: SetTimer = (callback, delayMs) => {
  const timer = setTimeout(callback, delayMs);
  return () => clearTimeout(timer);
};

/** Runs from its construction until its owner clears it. */
export class Deadline {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly #over = new AbortController();
  readonly #setTimer: SetTimer;
  #clearTimer: () => void = () => undefined;

  constructor(setTimer: SetTimer, outer: AbortSignal, timeoutMs: number) {
    this.timeoutMs = timeoutMs;
    this.signal = AbortSignal.any([outer, this.#over.signal]);
    this.#setTimer = setTimer;
    this.restart();
  }

  /** Whether the time limit, and not the caller, ended the request. */
  get isOver(): boolean {
    return this.#over.signal.aborted;
  }

  restart(): void {
    this.#clearTimer = this.#setTimer(() => this.#over.abort(), this.timeoutMs);
  }

  /** Stops the clock: the time that follows is not the request's. */
  clear(): void {
    this.#clearTimer();
  }
}
