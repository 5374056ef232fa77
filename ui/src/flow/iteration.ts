/** Counters of loops counted from 1: `3.1` for `2.0`. Paths keep theirs, which begin with 0. */
export function shownIteration(iteration: string): string {
  const counters = iteration.split('.');
  return counters.map((counter) => Number(counter) + 1).join('.');
}

/** `failed`: failed ones first, then by number. `slowest`: by duration, the longest first. */
export const ITERATION_ORDERS = ['number', 'failed', 'slowest'] as const;
export type IterationOrder = (typeof ITERATION_ORDERS)[number];
