/** Throughput and durations over the last hour, day or week. */

import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { ButtonRow } from '../../components/button.tsx';
import { Chart } from '../../components/later.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Panel } from '../../components/page.tsx';
import { hrefOf, useFilters } from '../../lib/address.ts';
import { formatCompact, formatDuration } from '../../lib/format.ts';

const MINUTE_MS = 60_000;

/** Each span has about as many intervals as the chart has room for points. */
const SPANS = [
  { name: 'hour', spanMs: 60 * MINUTE_MS, stepSecs: 60 },
  { name: 'day', spanMs: 24 * 60 * MINUTE_MS, stepSecs: 900 },
  { name: 'week', spanMs: 7 * 24 * 60 * MINUTE_MS, stepSecs: 7200 },
] as const;

const READ_EVERY_MS = 15_000;

export function ActivityPanels() {
  const { client } = useEngine();
  const [filters] = useFilters();
  const span = SPANS.find(({ name }) => name === filters.span) ?? SPANS[0];
  const activity = useQuery({
    queryKey: ['activity.get', span.name],
    queryFn: ({ signal }) => {
      const since = new Date(Date.now() - span.spanMs).toISOString();
      return client.activity.get({ since, step: span.stepSecs }, { signal });
    },
    refetchInterval: READ_EVERY_MS,
  });
  const intervals = activity.data?.intervals;
  const lines = useMemo(() => {
    // The current interval is incomplete and would look like an outage.
    const read = intervals?.slice(0, -1) ?? [];
    return {
      instants: read.map(({ at }) => Date.parse(at)),
      counts: [
        { name: 'Created', values: read.map((one) => one.created), color: '--info' },
        { name: 'Completed', values: read.map((one) => one.completed), color: '--ok' },
        { name: 'Failed', values: read.map((one) => one.failed), color: '--danger' },
      ],
      durations: [
        { name: 'p50', values: read.map((one) => one.duration_p50_ms), color: '--accent' },
        {
          name: 'p95',
          values: read.map((one) => one.duration_p95_ms),
          color: '--wait',
          isDashed: true,
        },
      ],
    } as const;
  }, [intervals]);
  const choice = (
    <ButtonRow>
      {SPANS.map(({ name }) => (
        <Link
          key={name}
          href={hrefOf('/', { span: name })}
          aria-current={name === span.name ? 'true' : undefined}
          className={name === span.name ? undefined : 'dim'}
        >
          Last {name}
        </Link>
      ))}
    </ButtonRow>
  );
  const step = span.stepSecs === 60 ? 'minute' : `${span.stepSecs / 60} minutes`;
  return (
    <>
      <Panel title={`Instances per ${step}`} actions={choice}>
        <Loaded query={activity} height={210}>
          {() => (
            <Chart
              label="Instances over time"
              instants={lines.instants}
              lines={lines.counts}
              format={formatCompact}
            />
          )}
        </Loaded>
      </Panel>
      <Panel title="Duration, from creation to end">
        <Loaded query={activity} height={210}>
          {() => (
            <Chart
              label="Durations over time"
              instants={lines.instants}
              lines={lines.durations}
              format={formatDuration}
            />
          )}
        </Loaded>
      </Panel>
    </>
  );
}
