/** The time axis of a timeline: its ticks, and which part of the time is shown. Pure; times are Unix ms. */

import { type DrawnState, notBeyond } from './run-states.ts';
import type { Bar } from './timeline-rows.ts';

const STEPS_MS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000,
  300_000, 600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000,
  86_400_000,
] as const;

/** About `count` round times within the range, and their distance in ms. */
export function ticksOf(
  from: number,
  to: number,
  count: number,
): { readonly step: number; readonly ticks: readonly number[] } {
  const wanted = (to - from) / Math.max(1, count);
  const days = 86_400_000 * 2 ** Math.max(0, Math.ceil(Math.log2(wanted / 86_400_000)));
  const step = STEPS_MS.find((each) => each >= wanted) ?? days;
  const first = Math.ceil(from / step) * step;
  const ticks: number[] = [];
  for (let at = first; at <= to; at += step) ticks.push(at);
  return { step, ticks };
}

export interface Range {
  readonly from: number;
  readonly to: number;
}

/** Zooms by `factor` around `at`, within the whole, down to a few ms. */
export function zoomed(range: Range, whole: Range, factor: number, at: number): Range {
  const length = Math.min(
    whole.to - whole.from,
    Math.max(RANGE_MS_MIN, (range.to - range.from) * factor),
  );
  const share = (at - range.from) / Math.max(1, range.to - range.from);
  const from = Math.min(Math.max(whole.from, at - share * length), whole.to - length);
  return { from, to: from + length };
}

/** Times have a resolution of 1 ms. */
const RANGE_MS_MIN = 5;

/** Moves by a share of its length, within the whole. */
export function panned(range: Range, whole: Range, share: number): Range {
  const length = range.to - range.from;
  const from = Math.min(
    Math.max(whole.from, range.from + share * length),
    Math.max(whole.from, whole.to - length),
  );
  return { from, to: from + length };
}

/** Bars too close to be told apart, merged into one: their number, and the most severe of them. */
export interface Mark {
  readonly bars: readonly Bar[];
  readonly shown: Bar;
}

/** The bars of a row within the range, merged to at most `count`. */
export function marksOf(
  bars: readonly Bar[],
  { from, to }: Range,
  now: number,
  count: number,
): readonly Mark[] {
  const inside = bars.filter((bar) => bar.segments[0]!.from <= to && endOf(bar, now) >= from);
  if (inside.length <= count) return inside.map((bar) => ({ bars: [bar], shown: bar }));
  const slots = new Map<number, Bar[]>();
  for (const bar of inside) {
    const slot = Math.floor(((bar.segments[0]!.from - from) / (to - from)) * count);
    const others = slots.get(slot);
    if (others === undefined) slots.set(slot, [bar]);
    else others.push(bar);
  }
  return [...slots.values()].map((together) => ({
    bars: together,
    shown: together.reduce((gravest, bar) => (weight(bar) > weight(gravest) ? bar : gravest)),
  }));
}

/** Open bars end now, but no later than when they end by themselves. */
export function endOf({ segments, isOpen, until }: Bar, now: number): number {
  const { to } = segments.at(-1)!;
  return isOpen ? Math.max(to, notBeyond(until, now)) : to;
}

const WEIGHTS: readonly DrawnState[] = ['completed', 'cancelled', 'retrying', 'waiting', 'running'];

function weight({ state }: Bar): number {
  return state === 'failed' ? WEIGHTS.length : WEIGHTS.indexOf(state);
}
