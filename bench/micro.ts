/**
 * Runs the micro benches: one row per case with the time of a single call. A case is called often
 * enough per sample for the clock's resolution not to matter, and each sample is divided again.
 */

import { Bench } from 'tinybench';
import { type PartResult, renderTable, round } from './report.js';

export interface MicroCase {
  readonly name: string;
  /** Calls per sample; a sample should take ten microseconds or more. Default 1. */
  readonly calls?: number;
  /** One call. Its result is used, so that the compiler cannot leave the work out. */
  readonly run: () => unknown;
}

interface MicroRow {
  readonly name: string;
  readonly microseconds: number;
  readonly p99Microseconds: number;
  readonly callsPerSecond: number;
  readonly samples: number;
}

const WARMUP_SHARE = 0.4;

let sink: unknown;

/** @param timeMs for each case, after a warm-up; @throws what a case throws */
export async function runMicro(
  cases: readonly MicroCase[],
  timeMs: number,
): Promise<{ readonly part: PartResult; readonly table: string }> {
  const bench = new Bench({
    time: timeMs,
    warmupTime: timeMs * WARMUP_SHARE,
    throws: true,
  });
  for (const { name, calls = 1, run } of cases) {
    bench.add(name, () => {
      for (let i = 0; i < calls; i += 1) sink = run();
    });
  }
  await bench.run();
  const rows = bench.tasks.map((task, index): MicroRow => {
    const { result } = task;
    if (result.state !== 'completed') throw new Error(`${task.name}: ${result.state}`);
    const calls = cases[index]?.calls ?? 1;
    const usPerCall = (result.latency.p50 * 1_000) / calls;
    return {
      name: task.name,
      microseconds: round(usPerCall),
      p99Microseconds: round((result.latency.p99 * 1_000) / calls),
      callsPerSecond: Math.round(1_000_000 / usPerCall),
      samples: result.latency.samplesCount,
    };
  });
  if (sink === undefined) throw new Error('no case gave a result');
  const part: PartResult = {
    question: 'What does one call of each hot pure function cost on one core?',
    settings: { timeMs },
    results: { rows },
    remarks: [],
  };
  const table = renderTable(
    ['function', 'µs p50', 'µs p99', 'calls/s'],
    rows.map((row) => [row.name, row.microseconds, row.p99Microseconds, row.callsPerSecond]),
  );
  return { part, table };
}
