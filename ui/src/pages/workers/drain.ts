/** What a queue does: its depth at earlier times, and when it will be empty. Pure. */

import type { QueueInterval } from 'durable-workflow-engine-client';

/** Rates are those of the last complete intervals, at most this many. */
const RECENT = 5;

type Counts = Pick<QueueInterval, 'arrived' | 'taken' | 'withdrawn'>;

/**
 * The waiting tasks at the end of each interval, backwards from now. Counts are up to some seconds old, so that a depth
 * may be a little off, and is never below zero.
 */
export function depthsOf(intervals: readonly Counts[], waitingNow: number): number[] {
  const depths: number[] = [];
  let depth = waitingNow;
  for (const { arrived, taken, withdrawn } of [...intervals].reverse()) {
    depths.push(Math.max(0, depth));
    depth -= arrived - taken - withdrawn;
  }
  return depths.reverse();
}

/**
 * The longest wait at the end of each interval, in ms: of tasks that were claimed in it, or of the oldest one that still
 * waits.
 */
export function waitsOf(
  intervals: readonly Pick<QueueInterval, 'at' | 'longest_wait_ms'>[],
  stepMs: number,
  oldestWaitingSince: string | null,
): number[] {
  const since = oldestWaitingSince === null ? undefined : Date.parse(oldestWaitingSince);
  return intervals.map(({ at, longest_wait_ms }) => {
    const waited = since === undefined ? 0 : Date.parse(at) + stepMs - since;
    return Math.max(longest_wait_ms, waited, 0);
  });
}

export interface Rates {
  /** Tasks a minute. */
  readonly arrived: number;
  readonly left: number;
}

/** @param intervals complete ones, oldest first */
export function ratesOf(intervals: readonly Counts[], stepSecs: number): Rates {
  const recent = intervals.slice(-RECENT);
  const minutes = (recent.length * stepSecs) / 60;
  if (minutes === 0) return { arrived: 0, left: 0 };
  const sum = (part: (one: Counts) => number) => recent.reduce((all, one) => all + part(one), 0);
  return {
    arrived: sum(({ arrived }) => arrived) / minutes,
    left: sum(({ taken, withdrawn }) => taken + withdrawn) / minutes,
  };
}

export type Outlook =
  | { readonly kind: 'empty' }
  | { readonly kind: 'stuck' }
  | { readonly kind: 'steady' }
  | { readonly kind: 'drains'; readonly minutes: number }
  | { readonly kind: 'grows'; readonly perMinute: number };

/** A change below this part of what comes in is noise. */
const NOISE = 0.02;

export function outlookOf(waiting: number, { arrived, left }: Rates): Outlook {
  if (waiting === 0) return { kind: 'empty' };
  if (left === 0) return { kind: 'stuck' };
  const net = left - arrived;
  if (Math.abs(net) <= arrived * NOISE) return { kind: 'steady' };
  return net > 0 ? { kind: 'drains', minutes: waiting / net } : { kind: 'grows', perMinute: -net };
}
