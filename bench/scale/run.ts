/**
 * Part `scale`: what becomes of memory, of the start, of new instances, of timers and of polls while the
 * number of waiting instances and of pending tasks grows by tens.
 */

import type { LoadContext } from '../load/run.js';
import type { BenchOptions } from '../options.js';
import { type RowsResult, renderTable } from '../report.js';
import { type Reached, verdictsOf } from '../targets.js';
import { growPending, type PendingRow } from './pending.js';
import { growWaiting, type WaitingRow } from './waiting.js';

/** Targets are about a million: less says nothing of them. */
const MANY = 1_000_000;
const HERD = 10_000;

export interface StoredGrowth<Row> {
  readonly rows: readonly Row[];
  readonly reached: Reached;
}

export async function runScale(
  context: LoadContext,
  options: BenchOptions,
): Promise<{ readonly part: RowsResult; readonly table: string }> {
  const { scaleTo, herd, seconds, rounds, growthOf } = options;
  const rows: Record<string, StoredGrowth<WaitingRow> | StoredGrowth<PendingRow>> = {};
  const tables: string[] = [];
  const remarks: string[] = [];
  if (growthOf.includes('waiting')) {
    const waiting = await growWaiting(context, options);
    rows.waiting = { rows: waiting, reached: waitingReached(waiting.at(-1)) };
    tables.push(waitingTable(waiting));
  }
  if (growthOf.includes('pending')) {
    const pending = await growPending(context, options);
    rows.pending = { rows: pending, reached: pendingReached(pending.at(-1)) };
    tables.push(pendingTable(pending));
  }
  for (const { reached } of Object.values(rows)) remarks.push(...verdictsOf(reached));
  const part: RowsResult = {
    question: 'What do waiting instances and pending tasks cost the others, and the next start?',
    settings: { instances: scaleTo, herd, seconds, rounds },
    rows,
    remarks,
  };
  return { part, table: [...tables, remarks.join('\n')].join('\n\n') };
}

function waitingReached(row: WaitingRow | undefined): Reached {
  if (row === undefined || row.waiting < MANY) return {};
  return {
    'scale memory': row.bytesEach,
    'scale ready': row.readyMs,
    'scale new': row.p99Ratio,
    ...(row.herd === HERD ? { 'scale lateness': row.latenessP99Ms } : {}),
  };
}

function pendingReached(row: PendingRow | undefined): Reached {
  return row === undefined || row.pending < MANY ? {} : { 'scale poll': row.p50Ratio };
}

function waitingTable(rows: readonly WaitingRow[]): string {
  return renderTable(
    [
      'waiting',
      'ready ms',
      'resident MiB',
      'bytes each',
      'new p50 ms',
      'p99 ms',
      'empty p50 ms',
      'p99 ms',
      'p99 ratio',
      'lateness p50 ms',
      'p99 ms',
      'max ms',
    ],
    rows.map((row) => [
      row.waiting,
      row.readyMs,
      row.residentMib,
      row.bytesEach,
      row.p50Ms,
      row.p99Ms,
      row.emptyP50Ms,
      row.emptyP99Ms,
      row.p99Ratio,
      row.latenessP50Ms,
      row.latenessP99Ms,
      row.latenessMaxMs,
    ]),
  );
}

function pendingTable(rows: readonly PendingRow[]): string {
  return renderTable(
    [
      'pending',
      'ready ms',
      'resident MiB',
      'poll p50 ms',
      'p99 ms',
      'with 100 p50 ms',
      'p99 ms',
      'p50 ratio',
    ],
    rows.map((row) => [
      row.pending,
      row.readyMs,
      row.residentMib,
      row.pollP50Ms,
      row.pollP99Ms,
      row.fewP50Ms,
      row.fewP99Ms,
      row.p50Ratio,
    ]),
  );
}
