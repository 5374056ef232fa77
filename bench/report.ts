/**
 * What a run leaves: tables in the terminal, and one JSON file per machine and day. Parts that run
 * again on the same day replace their earlier results; parts that did not run are kept.
 */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Machine } from './machine.js';

/** One part's results, with what is needed to judge them later. */
export interface PartResult {
  /** What the numbers answer. */
  readonly question: string;
  readonly settings: object;
  readonly results: object;
  /** What there is to say beside the numbers: targets reached, doubts. */
  readonly remarks: readonly string[];
}

/** Results of rows that can also be run one by one: each is stored as a part of its own. */
export interface RowsResult extends Omit<PartResult, 'results'> {
  readonly rows: Readonly<Record<string, object>>;
}

/** As they are stored; of a row the name of its part comes first. */
export function partsOf(
  title: string,
  part: PartResult | RowsResult,
): Readonly<Record<string, PartResult>> {
  if (!('rows' in part)) return { [title]: part };
  const { rows, ...common } = part;
  const named = Object.entries(rows).map(([name, results]) => [
    `${title} ${name}`,
    { ...common, results },
  ]);
  return Object.fromEntries(named);
}

export type Cell = string | number;

export interface StoredPart extends PartResult {
  readonly at: string;
  readonly commit: string | null;
}

export interface ResultsFile {
  readonly date: string;
  readonly machine: Machine;
  readonly parts: Readonly<Record<string, StoredPart>>;
}

/** A column whose first cell is a number is aligned to the right. */
export function renderTable(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const texts = [head, ...rows.map((row) => row.map(String))];
  const widths = head.map((_, column) => Math.max(...texts.map((row) => row[column]?.length ?? 0)));
  const isRight = head.map((_, column) => typeof rows[0]?.[column] === 'number');
  const lines = texts.map((row) =>
    row
      .map((cell, column) =>
        isRight[column] ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
      )
      .join('  ')
      .trimEnd(),
  );
  const rule = widths.map((width) => '-'.repeat(width)).join('  ');
  return [lines[0], rule, ...lines.slice(1)].join('\n');
}

/** Three significant digits are more than a shared machine repeats. */
export function round(value: number): number {
  if (!Number.isFinite(value) || Math.abs(value) >= 100) return Math.round(value);
  return Number(value.toPrecision(3));
}

/** The middle one, or the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle]!;
  return (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** 97.5 % of a normal distribution lie below it; with 30 values and more it is close enough. */
const QUANTILE = 1.96;

/** The geometric mean, with its 95 % interval; what is not finite or zero counts for nothing. */
export function ratioOf(ratios: readonly number[]) {
  const logs = ratios.map(Math.log).filter(Number.isFinite);
  const mean = logs.reduce((sum, log) => sum + log, 0) / Math.max(1, logs.length);
  const squares = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0);
  const deviation = Math.sqrt(squares / Math.max(1, logs.length - 1) / Math.max(1, logs.length));
  return {
    ratio: Math.exp(mean),
    low: Math.exp(mean - QUANTILE * deviation),
    high: Math.exp(mean + QUANTILE * deviation),
  };
}

/** Adds the parts to the file of this machine and day. @returns its name */
export function saveResults(
  folder: string,
  machine: Machine,
  commit: string | null,
  parts: Readonly<Record<string, PartResult>>,
): string {
  const at = new Date(Date.now()).toISOString();
  const date = at.slice(0, 10);
  const file = path.join(folder, `${date}-${machine.name}.json`);
  const earlier = existsSync(file)
    ? (JSON.parse(readFileSync(file, 'utf8')) as ResultsFile).parts
    : {};
  const stored = Object.entries(parts).map(([name, part]) => [name, { at, commit, ...part }]);
  const content: ResultsFile = {
    date,
    machine,
    parts: { ...earlier, ...Object.fromEntries(stored) },
  };
  const text = JSON.stringify(
    content,
    (_, value: unknown) => (typeof value === 'number' ? round(value) : value),
    2,
  );
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, `${text}\n`);
  return file;
}
