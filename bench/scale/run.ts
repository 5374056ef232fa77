/**
 * Part `scale`: what becomes of memory, of the start, of new instances, of timers and of polls while the
 * number of waiting instances and of pending tasks grows by tens, and a plot of it beside the results.
 */

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { LoadContext } from '../load/run.js';
import { describeMachine } from '../machine.js';
import type { BenchOptions } from '../options.js';
import { type PartResult, renderTable } from '../report.js';
import { verdict } from './growth.js';
import { growPending, type PendingRow } from './pending.js';
import { type Panel, renderPanels } from './plot.js';
import { growWaiting, type WaitingRow } from './waiting.js';

const TARGETS = {
  bytesEach: 300,
  readyMs: 10_000,
  p99Ratio: 2,
  latenessP99Ms: 50,
  p50Ratio: 1.2,
} as const;

export async function runScale(
  context: LoadContext,
  options: BenchOptions,
): Promise<{ readonly part: PartResult; readonly table: string }> {
  const { scaleTo, herd, seconds, rounds, growthOf, results } = options;
  const waiting = growthOf.includes('waiting') ? await growWaiting(context, options) : [];
  const pending = growthOf.includes('pending') ? await growPending(context, options) : [];
  const part: PartResult = {
    question: 'What do waiting instances and pending tasks cost the others, and the next start?',
    settings: { instances: scaleTo, herd, seconds, rounds },
    results: { waiting, pending },
    remarks: [...waitingRemarks(waiting.at(-1)), ...pendingRemarks(pending.at(-1))],
  };
  const tables = [
    ...(waiting.length === 0 ? [] : [waitingTable(waiting)]),
    ...(pending.length === 0 ? [] : [pendingTable(pending)]),
    part.remarks.join('\n'),
  ];
  if (results !== undefined) tables.push(`plot: ${writePlot(results, waiting, pending)}`);
  return { part, table: tables.join('\n\n') };
}

function waitingRemarks(row: WaitingRow | undefined): readonly string[] {
  if (row === undefined) return [];
  const of = `with ${row.waiting} waiting`;
  return [
    verdict(`memory each, ${of}`, row.bytesEach, TARGETS.bytesEach, ' B'),
    verdict(`ready after a SIGKILL, ${of}`, row.readyMs, TARGETS.readyMs, ' ms'),
    verdict(
      `p99 of a new instance beside an empty server, ${of}`,
      row.p99Ratio,
      TARGETS.p99Ratio,
      ' times',
    ),
    verdict(
      `lateness p99 of ${row.herd} timers, ${of}`,
      row.latenessP99Ms,
      TARGETS.latenessP99Ms,
      ' ms',
    ),
  ];
}

function pendingRemarks(row: PendingRow | undefined): readonly string[] {
  if (row === undefined) return [];
  const what = `a poll of 50 with ${row.pending} pending beside 100`;
  return [verdict(what, row.p50Ratio, TARGETS.p50Ratio, ' times at the median')];
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

/** @returns the file's name; it lies beside the results of that machine and day */
function writePlot(
  folder: string,
  waiting: readonly WaitingRow[],
  pending: readonly PendingRow[],
): string {
  const day = new Date(Date.now()).toISOString().slice(0, 10);
  const machine = describeMachine();
  const file = path.join(folder, `${day}-${machine.name}-scale.svg`);
  mkdirSync(folder, { recursive: true });
  const title = `Growth on ${machine.processor}, ${machine.cores} cores, ${day}`;
  writeFileSync(file, renderPanels(title, panelsOf(waiting, pending)));
  return file;
}

/** Exported for the tests. */
export function panelsOf(
  waiting: readonly WaitingRow[],
  pending: readonly PendingRow[],
): readonly Panel[] {
  const ofWaiting = (name: string, read: (row: WaitingRow) => number) => ({
    name,
    points: waiting.map((row) => [row.waiting, read(row)] as const),
  });
  const ofPending = (name: string, read: (row: PendingRow) => number) => ({
    name,
    points: pending.map((row) => [row.pending, read(row)] as const),
  });
  const panels: Panel[] = [
    {
      title: 'resident memory of the server, MiB',
      series: [
        ofWaiting('waiting', (row) => row.residentMib),
        ofPending('pending', (row) => row.residentMib),
      ],
    },
    {
      title: 'from SIGKILL and exec to ready, ms',
      series: [
        ofWaiting('waiting', (row) => row.readyMs),
        ofPending('pending', (row) => row.readyMs),
      ],
      target: TARGETS.readyMs,
    },
    {
      title: 'a new instance, created to completed, ms',
      series: [
        ofWaiting('p99', (row) => row.p99Ms),
        ofWaiting('p99, empty server', (row) => row.emptyP99Ms),
        ofWaiting('p50', (row) => row.p50Ms),
        ofWaiting('p50, empty server', (row) => row.emptyP50Ms),
      ],
    },
    {
      title: 'lateness of timers due within one second, ms',
      series: [
        ofWaiting('p99', (row) => row.latenessP99Ms),
        ofWaiting('p50', (row) => row.latenessP50Ms),
      ],
      target: TARGETS.latenessP99Ms,
    },
    {
      title: 'a poll of 50, p50 ms',
      series: [
        ofPending('so many pending', (row) => row.pollP50Ms),
        ofPending('100 pending', (row) => row.fewP50Ms),
      ],
    },
  ];
  return panels.filter(({ series }) => series.some(({ points }) => points.length > 0));
}
