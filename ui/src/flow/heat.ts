/** Statistics of the blocks of a sequence for its graph: by path, with a heat that shows where the time goes. Pure. */

import type { StepStatistics } from 'durable-workflow-engine-client';
import { formatCompact, formatCount, formatDuration } from '../lib/format.ts';
import type { Outline } from './outline.ts';

export interface BlockStatistics extends StepStatistics {
  /** 1 for the step that takes most of the time, 0 for blocks without runs. */
  readonly heat: number;
}

/** By path. Excludes blocks that the version does not have. */
export function statisticsOf(
  { byPath, pathOf }: Outline,
  steps: readonly StepStatistics[],
): ReadonlyMap<string, BlockStatistics> {
  const found = steps.flatMap((step) => {
    const block = byPath.get(pathOf.get(step.block_id) ?? '');
    return block === undefined ? [] : [{ block, step }];
  });
  // Blocks with blocks inside have the time of all of them.
  const leaves = found.filter(({ block }) => block.slots.length === 0);
  const most = Math.max(0, ...leaves.map(({ step }) => step.share));
  return new Map(
    found.map(({ block, step }) => {
      const heat = most === 0 ? 0 : Math.min(1, step.share / most);
      return [block.path, { ...step, heat }];
    }),
  );
}

/** Steps with runs or open executions, those that take most of the time first. */
export function hottestOf(
  { byPath, pathOf }: Outline,
  steps: readonly StepStatistics[],
): readonly StepStatistics[] {
  return steps
    .filter(({ block_id, runs, here_now }) => {
      const block = byPath.get(pathOf.get(block_id) ?? '');
      return (runs > 0 || here_now > 0) && (block === undefined || block.slots.length === 0);
    })
    .sort((a, b) => b.share - a.share || b.here_now - a.here_now || b.runs - a.runs);
}

/** More than this share of failed runs is a problem of the block. */
const FAILING_SHARE = 0.05;

export function isFailing({ runs, failures }: StepStatistics): boolean {
  return failures > runs * FAILING_SHARE;
}

/** What a node of the graph shows, line by line. */
export function statisticLines(step: StepStatistics) {
  const { runs, failures, duration_p50_ms: p50, duration_p95_ms: p95, here_now } = step;
  return {
    runs: runs === 0 ? 'no runs' : `${formatCompact(runs)} ${runs === 1 ? 'run' : 'runs'}`,
    failures: failures === 0 ? '' : `${formatCompact(failures)} failed`,
    durations: p50 === null || p95 === null ? '' : `p50 ${spanText(p50)} · p95 ${spanText(p95)}`,
    here: here_now === 0 ? '' : `${formatCompact(here_now)} here`,
  };
}

/** Durations have a resolution of 1 ms. */
export const spanText = (ms: number) => (ms < 1 ? '<1 ms' : formatDuration(ms));

/** The same in full, for screen readers. */
export function statisticText(step: StepStatistics): string {
  const { runs, failures, here_now } = step;
  const { durations } = statisticLines(step);
  return [
    `${formatCount(runs)} runs`,
    failures === 0 ? '' : `${formatCount(failures)} failed`,
    durations,
    runs === 0 ? '' : `${shareText(step.share)} of the time`,
    here_now === 0 ? '' : `${formatCount(here_now)} here now`,
  ]
    .filter((part) => part !== '')
    .join(', ');
}

/** `38 %`, `<1 %`, `0 %`. */
export function shareText(share: number): string {
  if (share > 0 && share < 0.01) return '<1 %';
  return `${Math.round(share * 100)} %`;
}
