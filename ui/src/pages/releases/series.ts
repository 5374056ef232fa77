/** Both versions over time as lines side by side, on common instants. Pure. */

import type { ReleasePoint, ReleaseSeries } from 'durable-workflow-engine-client';
import type { Line } from '../../components/chart.tsx';

export type Metric = keyof Pick<
  ReleasePoint,
  'error_rate' | 'cancel_rate' | 'duration_p50_ms' | 'duration_p95_ms' | 'ended'
>;

const COLORS = { baseline: '--info', candidate: '--wait' } as const;
type Variant = keyof typeof COLORS;

/** What lines are drawn on, in milliseconds since the epoch: from the begin of the canary to the end of the last interval. */
export function instantsOf({ since, points, step_secs }: ReleaseSeries): number[] {
  const begun = [Date.parse(since), ...points.map(({ at }) => Date.parse(at))];
  const end = Math.max(...begun) + step_secs * 1000;
  return [...new Set([...begun, end])].sort((a, b) => a - b);
}

/** A line of each version. @param name what it shows, where one chart shows several things */
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

/** What a gate allows, as a line across the chart. */
export function limitLine(limit: number, instants: readonly number[]): Line {
  return { name: 'Limit', values: instants.map(() => limit), color: '--danger', isDashed: true };
}

export function hasCancelled({ points }: ReleaseSeries): boolean {
  return points.some(({ cancelled }) => cancelled > 0);
}
