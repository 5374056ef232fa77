/**
 * The time limit of one request, joined with the signal of its caller: the first of the two to end
 * aborts it. Timers are handed in, so that a test can let time pass.
 */

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

  /** The whole time limit again. */
  restart(): void {
    this.#clearTimer = this.#setTimer(() => this.#over.abort(), this.timeoutMs);
  }

  /** What follows is the engine's time and not the request's. */
  clear(): void {
    this.#clearTimer();
  }
}
