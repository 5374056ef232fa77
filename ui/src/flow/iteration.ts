/** Counters of loops counted from 1: `3.1` for `2.0`. Paths keep theirs, which begin with 0. */
export function shownIteration(iteration: string): string {
  const counters = iteration.split('.');
  return counters.map((counter) => Number(counter) + 1).join('.');
}
