/**
 * The critical path of a run: the attempts of which each began when the one before it had ended, back from the last end.
 * A run is only faster if one of them is. Pure.
 */

import type { Outline } from './outline.ts';
import { endOf } from './time-axis.ts';
import type { TableAttempt } from './timeline-rows.ts';

export interface CriticalPath {
  /** Oldest first. */
  readonly attempts: readonly TableAttempt[];
  /** Keys of the rows of these attempts, and of the groups and iterations around them. */
  readonly rows: ReadonlySet<string>;
  /** The time of the attempts. */
  readonly ms: number;
  /** From the first start to the last end, with the time between attempts. */
  readonly wholeMs: number;
}

/** Clocks of workers and the server are not compared more exactly. */
const TOLERANCE_MS = 2;

/** @param now Unix ms, the end of what is open */
export function criticalPath(
  outline: Outline,
  attempts: readonly TableAttempt[],
  now: number,
): CriticalPath {
  const ends = attempts
    .filter(({ bar }) => !bar.isEndOnly)
    .map((attempt) => {
      return { attempt, from: attempt.bar.segments[0]!.from, to: workEndOf(attempt, now) };
    })
    .sort((a, b) => b.to - a.to || a.from - b.from);
  const path: TableAttempt[] = [];
  let ms = 0;
  let before = Number.POSITIVE_INFINITY;
  for (const { attempt, from, to } of ends) {
    if (to > before + TOLERANCE_MS) continue;
    path.push(attempt);
    ms += Math.max(0, Math.min(to, before) - from);
    before = Math.min(before, from);
  }
  path.reverse();
  const last = ends[0]?.to ?? 0;
  const rows = new Set(path.flatMap((attempt) => rowKeysOf(outline, attempt)));
  return { attempts: path, rows, ms, wholeMs: path.length === 0 ? 0 : last - before };
}

/** The delay before a retry is no work. */
function workEndOf({ bar }: TableAttempt, now: number): number {
  const work = bar.segments.filter(({ kind }) => kind !== 'backoff').at(-1);
  return bar.isOpen || work === undefined ? endOf(bar, now) : work.to;
}

/** The keys of `rowsOf`: the row of the attempt, and those around it. */
function rowKeysOf({ byPath }: Outline, { path, iteration }: TableAttempt): readonly string[] {
  const counters = iteration.split('.');
  const keys: string[] = [];
  const own = byPath.get(path);
  for (let block = own; block !== undefined; block = byPath.get(block.parent ?? '')) {
    const within = block.repeats.map((loop, i) => `${loop}[${counters[i]}]/`).join('');
    const key = `${within}${block.path}`;
    keys.push(key);
    const isLoopAround = own!.repeats[block.repeats.length] === block.path;
    if (isLoopAround) keys.push(`${key}[${counters[block.repeats.length]}]`);
  }
  return keys;
}
