/** Timers of any length, and validation of times. */

import { UnsendableError } from './errors.js';

/** The longest delay of a timer, nearly a month: longer ones fire at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/**
 * Calls `run` after a delay of any length.
 *
 * @returns a function that cancels it
 */
export function after(ms: number, run: () => void): () => void {
  let timer: ReturnType<typeof setTimeout>;
  const wait = (left: number) => {
    const next = left > TIMER_MS_MAX ? () => wait(left - TIMER_MS_MAX) : run;
    timer = setTimeout(next, Math.min(left, TIMER_MS_MAX));
  };
  wait(ms);
  return () => clearTimeout(timer);
}

/** Calls `run` repeatedly. @returns a function that stops it */
export function every(ms: number, run: () => void): () => void {
  const timer = setInterval(run, Math.min(ms, TIMER_MS_MAX));
  return () => clearInterval(timer);
}

/**
 * Rejects times and counts that are not numbers, which would be treated as missing.
 *
 * @throws UnsendableError that names the option
 */
export function expectNumbers(given: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || (typeof value === 'number' && value >= 0)) continue;
    throw new UnsendableError(`${name} must be a number of at least 0, not ${shown(value)}`);
  }
}

const shown = (value: unknown) =>
  typeof value === 'string' ? JSON.stringify(value) : String(value);
