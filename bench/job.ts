/**
 * The one shape of everything that is measured. A job prepares contenders that do the same work, the runner lets them
 * take turns and compares each with the first one, and the job checks what the server answered.
 */

import type { BenchPostgres } from './base/postgres.js';
import { type Figures, median, type Ratio, ratioOf, round } from './base/report.js';
import type { Generator } from './client/generator.js';
import type { Options } from './options.js';

export const PARTS = ['micro', 'load', 'paths', 'peers', 'pressure'] as const;
export type Part = (typeof PARTS)[number];

/** What jobs share. */
export interface Bench {
  readonly options: Options;
  readonly generator: Generator;
  /** Started when it is first asked for. */
  postgres(): Promise<BenchPostgres>;
  /** Prints a line while a job runs. */
  say(text: string): void;
}

export interface Contender {
  readonly name: string;
  /** @returns figures by the names of their columns; a name ends with the unit */
  readonly turn: (ms: number) => Promise<Figures>;
}

/** What a column of a contender must reach, as a number or as a ratio to the first contender. */
export interface Target {
  readonly contender: string;
  readonly column: string;
  readonly isRatio?: boolean;
  readonly atMost?: number;
  readonly atLeast?: number;
}

export interface Prepared {
  /** The others are compared with the first one. */
  readonly contenders: readonly Contender[];
  /** @throws Error when the database contradicts what was answered */
  readonly check?: () => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface Job {
  readonly part: Part;
  readonly name: string;
  /** The question that it answers, or the operation that it measures. */
  readonly asks: string;
  /** Default: `--rounds`. */
  readonly rounds?: (options: Options) => number;
  /** Of a turn. Default: `--seconds`. */
  readonly seconds?: (options: Options) => number;
  /** False where a turn is a cold start by intention, or too long to be done once more. */
  readonly isWarmedUp?: boolean;
  /** False where the contenders do different work. */
  readonly isCompared?: boolean;
  readonly targets?: readonly Target[];
  readonly prepare: (bench: Bench) => Promise<Prepared>;
}

export interface Row {
  readonly contender: string;
  readonly medians: Figures;
  readonly turns: readonly Figures[];
  /** To the first contender, by column; absent in the first row. */
  readonly ratios?: Readonly<Record<string, Ratio>>;
}

/** What is stored of a job. */
export interface JobResult {
  readonly asks: string;
  readonly seconds: number;
  readonly rounds: number;
  readonly rows: readonly Row[];
  readonly verdicts: readonly string[];
}

/** Share of a turn that runs first and is not counted: code is compiled, connections are made. */
const WARM_UP_SHARE = 0.5;

/** @throws Error when the job cannot be done, or its check fails */
export async function runJob(job: Job, bench: Bench): Promise<JobResult> {
  const { options } = bench;
  const seconds = job.seconds?.(options) ?? options.seconds;
  const rounds = job.rounds?.(options) ?? options.rounds;
  const { contenders, check, close } = await job.prepare(bench);
  try {
    const turns = await takeTurns(job, bench, contenders, seconds * 1_000, rounds);
    await check?.();
    const rows = contenders.map(({ name }, at) =>
      rowOf(name, turns[at]!, at === 0 || job.isCompared === false ? undefined : turns[0]!),
    );
    const verdicts = (job.targets ?? []).map((target) => verdictOf(target, rows));
    return { asks: job.asks, seconds, rounds, rows, verdicts };
  } finally {
    await close();
  }
}

async function takeTurns(
  job: Job,
  bench: Bench,
  contenders: readonly Contender[],
  ms: number,
  rounds: number,
): Promise<readonly (readonly Figures[])[]> {
  const turns = contenders.map((): Figures[] => []);
  const isWarmedUp = job.isWarmedUp !== false;
  for (const { turn } of isWarmedUp ? contenders : []) await turn(ms * WARM_UP_SHARE);
  const order = [...contenders.keys()];
  for (let at = 0; at < rounds; at += 1) {
    // A B, B A, A B …: a machine that gets slower does so for all.
    for (const index of at % 2 === 0 ? order : order.toReversed()) {
      const postgres = job.part === 'micro' ? undefined : await bench.postgres();
      await postgres?.checkpoint();
      turns[index]!.push(await contenders[index]!.turn(ms));
    }
  }
  return turns;
}

function rowOf(contender: string, turns: readonly Figures[], first?: readonly Figures[]): Row {
  const columns = Object.keys(turns[0] ?? {});
  const of = <T>(read: (column: string) => T) =>
    Object.fromEntries(columns.map((column) => [column, read(column)]));
  const medians = of((column) => median(turns.map((turn) => turn[column]!)));
  if (first === undefined) return { contender, medians, turns };
  const ratios = of((column) =>
    ratioOf(turns.map((turn, at) => turn[column]! / first[at]![column]!)),
  );
  return { contender, medians, turns, ratios };
}

function verdictOf(target: Target, rows: readonly Row[]): string {
  const { contender, column, isRatio = false, atMost, atLeast } = target;
  const row = rows.find((one) => one.contender === contender);
  const value = round(
    (isRatio ? row?.ratios?.[column]?.median : row?.medians[column]) ?? Number.NaN,
  );
  const isReached = atMost === undefined ? value >= atLeast! : value <= atMost;
  const limit = atMost === undefined ? `at least ${atLeast}` : `at most ${atMost}`;
  const what = isRatio ? `${contender} / ${rows[0]!.contender}` : contender;
  return `${what}, ${column}: ${value}, ${limit}: ${isReached ? 'reached' : 'missed'}`;
}
