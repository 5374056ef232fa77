/** Both versions over time as lines side by side, on common instants. Pure. */

import type { ReleasePoint } from 'durable-workflow-engine-client';
import type { Line } from '../../components/chart.tsx';

export type Metric = keyof Pick<
  ReleasePoint,
  'error_rate' | 'cancel_rate' | 'duration_p50_ms' | 'duration_p95_ms' | 'ended'
>;

const COLORS = { baseline: '--info', candidate: '--wait' } as const;
type Variant = keyof typeof COLORS;

/** Milliseconds since the epoch at which one of the versions has a value. */
export function instantsOf(points: readonly ReleasePoint[]): number[] {
  return [...new Set(points.map(({ at }) => Date.parse(at)))].sort((a, b) => a - b);
}

/** A line of each version. @param name what it shows, where one chart shows several things */
export function linesOf(
  points: readonly ReleasePoint[],
  metric: Metric,
  { name, isDashed = false }: { readonly name?: string; readonly isDashed?: boolean } = {},
): Line[] {
  const instants = instantsOf(points);
  return (['baseline', 'candidate'] as const).map((variant) => {
    const values = new Map(ofVariant(points, variant).map((at) => [Date.parse(at.at), at[metric]]));
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

export function hasCancelled(points: readonly ReleasePoint[]): boolean {
  return points.some(({ cancelled }) => cancelled > 0);
}
