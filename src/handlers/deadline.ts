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
  readonly #controller = new AbortController();
  readonly #setTimer: SetTimer;
  #clearTimer: () => void;
  readonly #outer: AbortSignal;
  readonly #onOuterAbort = () => this.#controller.abort();
  #isOver = false;

  constructor(setTimer: SetTimer, outer: AbortSignal, timeoutMs: number) {
    this.timeoutMs = timeoutMs;
    this.#outer = outer;
    this.#setTimer = setTimer;
    this.#clearTimer = this.#start();
    outer.addEventListener('abort', this.#onOuterAbort);
    if (outer.aborted) this.#controller.abort();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether the time limit, and not the caller, ended the request. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** What follows is the engine's time and not the request's. */
  pause(): void {
    this.#clearTimer();
  }

  /** The whole time limit again. */
  restart(): void {
    this.#clearTimer = this.#start();
  }

  clear(): void {
    this.#clearTimer();
    this.#outer.removeEventListener('abort', this.#onOuterAbort);
  }

  #start(): () => void {
    return this.#setTimer(() => {
      this.#isOver = true;
      this.#controller.abort();
    }, this.timeoutMs);
  }
}
