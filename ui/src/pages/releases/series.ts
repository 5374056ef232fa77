/** Chart lines of both versions on a common time axis. Pure. */

import type { ReleasePoint, ReleaseSeries } from 'durable-workflow-engine-client';
import type { Line } from '../../components/chart.tsx';

export type Metric = keyof Pick<
  ReleasePoint,
  'error_rate' | 'cancel_rate' | 'duration_p50_ms' | 'duration_p95_ms' | 'ended'
>;

const COLORS = { baseline: '--info', candidate: '--wait' } as const;
type Variant = keyof typeof COLORS;

/**
 * The instants of the charts, in milliseconds since the epoch: from the start of the canary to the end of the last
 * interval.
 */
export function instantsOf({ since, points, step_secs }: ReleaseSeries): number[] {
  const begun = [Date.parse(since), ...points.map(({ at }) => Date.parse(at))];
  const end = Math.max(...begun) + step_secs * 1000;
  return [...new Set([...begun, end])].sort((a, b) => a - b);
}

/** One line per version. @param name label of the lines, if a chart shows several metrics */
export function linesOf(
  series: ReleaseSeries,
  metric: Metric,
  { name, isDashed = false }: { readonly name?: string; readonly isDashed?: boolean } = {},
): Line[] {
  const instants = instantsOf(series);
  return (['baseline', 'candidate'] as const).map((variant) => {
    const values = new Map(
      ofVariant(series.points, variant).map((at) => [Date.parse(at.at), at[metric]]),
    );
    return {
      name: name === undefined ? WORDS[variant] : `${WORDS[variant]}, ${name}`,
      values: instants.map((at) => values.get(at) ?? null),
      color: COLORS[variant],
      isDashed,
    };
  });
}

const WORDS: Readonly<Record<Variant, string>> = { baseline: 'Baseline', candidate: 'Candidate' };

function ofVariant(points: readonly ReleasePoint[], wanted: Variant) {
  return points.filter(({ variant }) => variant === wanted);
}

/** The limit of a gate, as a horizontal line. */
export function limitLine(limit: number, instants: readonly number[]): Line {
  return { name: 'Limit', values: instants.map(() => limit), color: '--danger', isDashed: true };
}

export function hasCancelled({ points }: ReleaseSeries): boolean {
  return points.some(({ cancelled }) => cancelled > 0);
}
