/** Waits of any length, and what is taken for one. */

import { UnsendableError } from './errors.js';

/** Timers take no longer times, and end at once when they are given one: nearly a month. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/**
 * Runs it after so long, be it months or for ever.
 *
 * @returns what makes it forget
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

/** Runs it again and again. @returns what ends it */
export function every(ms: number, run: () => void): () => void {
  const timer = setInterval(run, Math.min(ms, TIMER_MS_MAX));
  return () => clearInterval(timer);
}

/**
 * A time or a count that is no number would be taken for none at all. Absent is absent.
 *
 * @throws UnsendableError naming it
 */
export function expectNumbers(given: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || (typeof value === 'number' && value >= 0)) continue;
    throw new UnsendableError(`${name} must be a number from 0 on, not ${shown(value)}`);
  }
}

const shown = (value: unknown) =>
  typeof value === 'string' ? JSON.stringify(value) : String(value);
