/** What a run leaves: one table in the terminal, and one JSON file for each machine and day. */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { JobResult } from '../job.js';
import type { Machine } from './checkout.js';

/** Of the whole machine, or as the name says before it. */
export const CPU = 'CPU µs/op';

/** By the names of the columns. */
export type Figures = Readonly<Record<string, number>>;

/** Of pairs of turns: the median, and the 95 % interval of the geometric mean. */
export interface Ratio {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

export interface StoredJob extends JobResult {
  readonly at: string;
  readonly commit: string | null;
  readonly settings: object;
}

export interface ResultsFile {
  readonly date: string;
  readonly machine: Machine;
  /** By part and name, such as `paths noop256`. */
  readonly jobs: Readonly<Record<string, StoredJob>>;
}

/** A table for each set of columns, in the order of the jobs. */
export function tableOf(results: Readonly<Record<string, JobResult>>): string {
  const groups = new Map<string, Map<string, JobResult>>();
  for (const [name, result] of Object.entries(results)) {
    const columns = Object.keys(result.rows[0]!.medians).join();
    const group = groups.get(columns) ?? new Map<string, JobResult>();
    groups.set(columns, group.set(name, result));
  }
  return [...groups.values()].map(tableOfGroup).join('\n\n');
}

function tableOfGroup(group: ReadonlyMap<string, JobResult>): string {
  const lines: string[][] = [];
  let head: readonly string[] = [];
  for (const [name, { rows }] of group) {
    head = ['job', '', ...Object.keys(rows[0]!.medians)];
    for (const { contender, medians } of rows) {
      lines.push([name, contender, ...Object.values(medians).map(textOf)]);
    }
    for (const { contender, ratios } of rows) {
      if (ratios === undefined) continue;
      const texts = Object.entries(ratios).map(ratioText);
      lines.push([name, `${contender} / ${rows[0]!.contender}`, ...texts]);
    }
  }
  const verdicts = [...group].flatMap(([name, { verdicts: all }]) =>
    all.map((verdict) => `${name}: ${verdict}`),
  );
  return [renderTable(head, lines), ...verdicts].join('\n');
}

const textOf = (value: number): string => (Number.isFinite(value) ? `${round(value)}` : '–');

/** Only processor time has its interval in the table. */
function ratioText([column, { median: middle, low, high }]: [string, Ratio]): string {
  const hasInterval = column.endsWith(CPU) && low !== high;
  return hasInterval ? `${textOf(middle)} (${textOf(low)}–${textOf(high)})` : textOf(middle);
}

/** All columns but the first two are numbers. */
function renderTable(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const all = [head, ...lines];
  const widths = head.map((_, column) => Math.max(...all.map((line) => line[column]!.length)));
  const rule = widths.map((width) => '-'.repeat(width)).join('  ');
  const [first, ...others] = all.map((line) =>
    line
      .map((cell, at) => (at < 2 ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!)))
      .join('  ')
      .trimEnd(),
  );
  return [first, rule, ...others].join('\n');
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

export function ratioOf(ratios: readonly number[]): Ratio {
  const logs = ratios.map(Math.log).filter(Number.isFinite);
  const mean = logs.reduce((sum, log) => sum + log, 0) / Math.max(1, logs.length);
  const squares = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0);
  const deviation = Math.sqrt(squares / Math.max(1, logs.length - 1) / Math.max(1, logs.length));
  return {
    median: median(ratios),
    low: Math.exp(mean - QUANTILE * deviation),
    high: Math.exp(mean + QUANTILE * deviation),
  };
}

/** Adds the jobs to the file of this machine and day. @returns its name */
export function saveResults(
  folder: string,
  machine: Machine,
  jobs: Readonly<Record<string, Omit<StoredJob, 'at'>>>,
): string {
  const at = new Date(Date.now()).toISOString();
  const date = at.slice(0, 10);
  const file = path.join(folder, `${date}-${machine.name}.json`);
  const earlier = existsSync(file)
    ? (JSON.parse(readFileSync(file, 'utf8')) as ResultsFile).jobs
    : {};
  const stored = Object.entries(jobs).map(([name, job]) => [name, { at, ...job }]);
  const content: ResultsFile = {
    date,
    machine,
    jobs: { ...earlier, ...Object.fromEntries(stored) },
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
