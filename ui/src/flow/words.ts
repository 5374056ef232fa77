/** Display names of the kinds of blocks. Pure. */

import type { Look } from './outline.ts';

export const LOOK_WORDS: Readonly<Record<Look, string>> = {
  step: 'step',
  http_request: 'HTTP request',
  approval: 'approval',
  sleep: 'sleep',
  wait_for_event: 'wait for an event',
  sub_sequence: 'sub-sequence',
  parallel: 'parallel',
  race: 'race',
  router: 'router',
  ab_split: 'A/B split',
  try_catch: 'try and catch',
  saga: 'saga',
  loop: 'loop',
  for_each: 'for each',
  cancellation_scope: 'cancellation scope',
  hooks: 'hooks',
  unknown: 'block',
};

/** Counters of loops counted from 1: `3.1` for `2.0`. Paths keep theirs, which begin with 0. */
export function shownIteration(iteration: string): string {
  const counters = iteration.split('.');
  return counters.map((counter) => Number(counter) + 1).join('.');
}
