/**
 * Whether what happens to one cell is felt in the others: the slowest hundredth of the requests of the other cells while it
 * happens, beside that of all quiet times. Those of one kind alone are some hundreds of requests, of which the slowest
 * hundredth differs twofold by itself. Pure.
 */

import type { Took } from './probe.js';

export interface Window {
  /** Windows of one kind are taken together. */
  readonly kind: string;
  /** The cells to which something happens. */
  readonly cells: ReadonlySet<string>;
  readonly quiet: Span;
  readonly event: Span;
}

export type Span = readonly [from: number, to: number];

export interface Felt {
  readonly kind: string;
  readonly times: number;
  readonly quietMs: number;
  readonly eventMs: number;
  readonly ratio: number;
  /** Requests of other cells during the events. */
  readonly count: number;
  /** Those of them that were not served, in words. */
  readonly refused: readonly string[];
}

/** What is felt elsewhere, by kind; kinds that leave no cell alone are left out. */
export function feltElsewhere(
  windows: readonly Window[],
  took: readonly Took[],
  cellOf: (tenant: string) => string,
): readonly Felt[] {
  const kinds = [...new Set(windows.map(({ kind }) => kind))];
  const elsewhere = (all: readonly Window[], span: (window: Window) => Span) =>
    all.flatMap((window) => {
      const [from, to] = span(window);
      return took.filter(
        ({ tenant, at }) => at >= from && at < to && !window.cells.has(cellOf(tenant)),
      );
    });
  const quietMs = p99(elsewhere(windows, ({ quiet }) => quiet));
  return kinds.flatMap((kind) => {
    const same = windows.filter((window) => window.kind === kind);
    const during = elsewhere(same, ({ event }) => event);
    if (during.length === 0) return [];
    const eventMs = p99(during);
    const refused = during
      .filter(({ status }) => status < 200 || status > 299)
      .map(({ tenant, status, code }) => `${cellOf(tenant)}: ${status} ${code}`);
    const ratio = eventMs / quietMs;
    return [{ kind, times: same.length, quietMs, eventMs, ratio, count: during.length, refused }];
  });
}

export function p99(took: readonly Took[]): number {
  const sorted = took.map(({ ms }) => ms).sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.99))] ?? Number.NaN;
}
