/**
 * Formats tables that fit the terminal, and records as lists of members. Pure. Widths are in terminal cells, so that
 * wide characters stay aligned.
 */

import fitText from 'fast-string-truncated-width';
import { type Palette, plain } from '../src/base/log-text.js';

export type Tone = 'good' | 'busy' | 'bad' | 'quiet';

export interface Column<T> {
  readonly head: string;
  /** @param now Unix milliseconds */
  readonly text: (row: T, now: number) => string;
  readonly tone?: (row: T) => Tone | undefined;
  /** Never cut, since users copy it: an id. */
  readonly isWhole?: true;
}

export interface Place {
  /** Cells per line; undefined without a terminal, and then nothing is cut. */
  readonly width: number | undefined;
  readonly paint: Palette;
  readonly now: number;
}

const GAP = '  ';
/** Minimum width of a column that is cut. */
const CELLS_MIN = 8;

export const cellsOf = (text: string): number => fitText(text).width;

/**
 * Earlier columns take precedence: if the minimum widths do not fit, the last columns are dropped.
 * @returns the lines, without line ends; none is wider than the terminal
 */
export function tableLines<T>(
  columns: readonly Column<T>[],
  rows: readonly T[],
  { width, paint, now }: Place,
): string[] {
  const texts = rows.map((row) => columns.map((column) => plain(column.text(row, now))));
  const heads = columns.map(({ head }) => head);
  const widest = columns.map((_, at) =>
    Math.max(...[heads, ...texts].map((cells) => cellsOf(cells[at] ?? ''))),
  );
  const least = columns.map(({ isWhole }, at) => {
    const natural = widest[at] ?? 0;
    return isWhole ? natural : Math.min(natural, Math.max(CELLS_MIN, cellsOf(heads[at] ?? '')));
  });
  const widths = widthsFor(widest, least, width ?? Number.POSITIVE_INFINITY);
  const line = (cells: readonly string[], row: T | undefined) =>
    widths
      .map((cellWidth, at) => {
        const text = fitted(cells[at] ?? '', cellWidth);
        const padded = at === widths.length - 1 ? text : padEnd(text, cellWidth);
        if (row === undefined) return paint.dim(padded);
        return toned(padded, columns[at]?.tone?.(row), paint);
      })
      .join(GAP)
      .trimEnd();
  return [
    line(heads, undefined),
    ...rows.map((row, at) => line(texts[at] as readonly string[], row)),
  ];
}

/** The widths of the columns that are shown. */
function widthsFor(
  widest: readonly number[],
  least: readonly number[],
  available: number,
): number[] {
  const sum = (widths: readonly number[]) =>
    widths.reduce((total, width) => total + width, GAP.length * (widths.length - 1));
  let count = least.length;
  while (count > 1 && sum(least.slice(0, count)) > available) count -= 1;
  const widths = widest.slice(0, count);
  if (count === 1) return [Math.max(1, Math.min(widths[0] ?? 0, available))];
  // Narrows the widest column that may be cut, so that narrow columns stay whole.
  for (let over = sum(widths) - available; over > 0; over--) {
    const spare = widths.map((width, at) => (width > (least[at] ?? 0) ? width : 0));
    const at = spare.indexOf(Math.max(...spare));
    widths[at] = (widths[at] ?? 0) - 1;
  }
  return widths;
}

/** Cut at the end, with an ellipsis. */
export function fitted(text: string, cells: number): string {
  const { index, truncated, ellipsed } = fitText(text, {
    limit: cells,
    ellipsis: '…',
    ellipsisWidth: 1,
  });
  if (!truncated) return text;
  return text.slice(0, index) + (ellipsed ? '…' : '');
}

function padEnd(text: string, cells: number): string {
  return text + ' '.repeat(Math.max(0, cells - cellsOf(text)));
}

export function toned(text: string, tone: Tone | undefined, paint: Palette): string {
  switch (tone) {
    case undefined:
      return text;
    case 'good':
      return paint.green(text);
    case 'busy':
      return paint.yellow(text);
    case 'bad':
      return paint.red(text);
    case 'quiet':
      return paint.dim(text);
  }
}

/** A record: one line per member, with nested values as indented JSON below. */
export function recordLines(record: object, { width, paint }: Place): string[] {
  const members = Object.entries(record).filter(([, value]) => value !== undefined);
  const nameWidth = Math.max(0, ...members.map(([name]) => cellsOf(name)));
  return members.flatMap(([name, value]) => {
    const head = `${paint.dim(padEnd(plain(name), nameWidth))}${GAP}`;
    const text = memberText(value);
    if (width === undefined || nameWidth + GAP.length + cellsOf(text) <= width) return head + text;
    if (typeof value !== 'object') return head + text;
    const [first = '', ...rest] = JSON.stringify(value, null, 2).split('\n');
    const indent = ' '.repeat(nameWidth + GAP.length);
    return [head + plain(first), ...rest.map((line) => indent + plain(line))];
  });
}

export function memberText(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  return plain(typeof value === 'object' ? JSON.stringify(value) : String(value));
}

const UNITS: readonly (readonly [unit: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
];

/** `3m ago`, `in 2h`; `-` for a missing value. */
export function ago(timestamp: string | null | undefined, now: number): string {
  if (timestamp == null) return '-';
  const ms = Date.parse(timestamp) - now;
  const length = durationText(Math.abs(ms));
  return length === '0s' ? 'now' : ms > 0 ? `in ${length}` : `${length} ago`;
}

/** `840ms`, `2.4s`, `3m`; `-` for a missing value. */
export function spanText(ms: number | null): string {
  if (ms === null) return '-';
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  return ms < 60_000 ? `${(ms / 1_000).toFixed(1)}s` : durationText(ms);
}

/** In its largest unit, rounded down. */
export function durationText(ms: number): string {
  const [unit, size] = UNITS.find(([, size]) => ms >= size) ?? ['s', 1_000];
  return `${Math.floor(ms / size)}${unit}`;
}
