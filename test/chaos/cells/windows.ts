/**
 * Whether what happens to one cell is felt in the others: the slowest hundredth of the requests of the other cells while it
 * happens, beside that of the quiet time just before. How much quiet times differ among themselves says what of that
 * is chance. Pure.
 */

import type { Took } from './tenant.js';

export interface Window {
  readonly name: string;
  /** The cells to which something happens. */
  readonly cells: ReadonlySet<string>;
  readonly quiet: readonly [from: number, to: number];
  readonly event: readonly [from: number, to: number];
}

export interface Felt {
  readonly name: string;
  readonly quietMs: number;
  readonly eventMs: number;
  readonly ratio: number;
  /** Requests of other cells during the event. */
  readonly count: number;
}

/** @param cellOf of a tenant; undefined: it came or went in between, and is left out */
export function feltElsewhere(
  windows: readonly Window[],
  took: readonly Took[],
  cellOf: (tenant: string) => string | undefined,
): readonly Felt[] {
  return windows.map(({ name, cells, quiet, event }) => {
    const others = took.filter(({ tenant }) => {
      const cell = cellOf(tenant);
      return cell !== undefined && !cells.has(cell);
    });
    const within = ([from, to]: readonly [number, number]) =>
      others.filter(({ at }) => at >= from && at < to).map(({ ms }) => ms);
    const during = within(event);
    const [quietMs, eventMs] = [p99(within(quiet)), p99(during)];
    return { name, quietMs, eventMs, ratio: eventMs / quietMs, count: during.length };
  });
}

/** The largest of the quiet times' percentiles over the smallest: 1 on a machine that does nothing else. */
export function noiseOf(felt: readonly Felt[]): number {
  const quiet = felt.map(({ quietMs }) => quietMs);
  return Math.max(...quiet) / Math.min(...quiet);
}

export function p99(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.99))] ?? Number.NaN;
}
