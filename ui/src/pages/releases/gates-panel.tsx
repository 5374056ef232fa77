/** The gates with their current verdicts, and charts of both versions with the gates' limits. */

import type { UseQueryResult } from '@tanstack/react-query';
import type { GateReport, Release, ReleaseSeries } from 'durable-workflow-engine-client';
import { useMemo } from 'react';
import { useRead } from '../../api/read.ts';
import type { Line } from '../../components/chart.tsx';
import { Empty } from '../../components/error-box.tsx';
import { Chart } from '../../components/later.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Panel } from '../../components/page.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { countOf, formatCompact, formatDuration } from '../../lib/format.ts';
import { VerdictBadge } from './gate-marks.tsx';
import {
  formatRate,
  gateWords,
  type Judgement,
  limitOf,
  metricName,
  reasonOf,
  samplesOf,
} from './gates.ts';
import styles from './releases.module.css';
import { hasCancelled, instantsOf, limitLine, linesOf } from './series.ts';

/** Up to ten thousand instances are examined for it. */
const PACE_MS = 10_000;

export function GatesPanel(props: {
  readonly release: Release;
  readonly report: UseQueryResult<GateReport>;
}) {
  const { release, report } = props;
  return (
    <>
      <Panel title="Gates" isFlush>
        <Loaded query={report} height={140}>
          {(read) => (
            <Table
              label="Gates"
              columns={columnsOf(read)}
              rows={read.gates}
              idOf={({ gate }) => JSON.stringify(gate)}
              empty={
                <Empty title="No gates">
                  <p>There is no automatic rollback: you decide.</p>
                </Empty>
              }
            />
          )}
        </Loaded>
      </Panel>
      <OverTime release={release} report={report.data} />
    </>
  );
}

function columnsOf(report: GateReport): readonly Column<Judgement>[] {
  const side = (judgement: Judgement, of: 'baseline' | 'candidate') => {
    const rate = of === 'baseline' ? judgement.baseline_rate : judgement.candidate_rate;
    const { total } = samplesOf(judgement.gate, report)[of];
    return (
      <span className="numbers">
        {rate === undefined ? '–' : formatRate(rate)}{' '}
        <span className="dim small">of {formatCompact(total)}</span>
      </span>
    );
  };
  return [
    {
      name: 'Gate',
      cell: ({ gate }) => (
        <>
          {metricName(gate)} <span className="dim small">{gateWords(gate)}</span>
        </>
      ),
    },
    { name: 'Baseline', isNumber: true, cell: (judgement) => side(judgement, 'baseline') },
    { name: 'Candidate', isNumber: true, cell: (judgement) => side(judgement, 'candidate') },
    {
      name: 'Limit',
      isNumber: true,
      cell: (judgement) => {
        const limit = limitOf(judgement);
        return limit === undefined ? '–' : formatRate(limit);
      },
    },
    {
      name: 'Verdict',
      cell: (judgement) => (
        <>
          <VerdictBadge judgement={judgement} />{' '}
          <span className="small">{reasonOf(judgement, report)}</span>
        </>
      ),
    },
  ];
}

function OverTime(props: { readonly release: Release; readonly report: GateReport | undefined }) {
  const { release, report } = props;
  const series = useRead('releases.series', [release.id, {}], {
    enabled: release.canary_started_at !== undefined,
    ...(release.state === 'canary' && { live: 'all', paceMs: PACE_MS }),
  });
  if (release.canary_started_at === undefined) {
    return (
      <Panel title="Both versions over time">
        <p className="dim">The charts start with the canary.</p>
      </Panel>
    );
  }
  return (
    <Loaded query={series} height={520}>
      {(read) =>
        read.points.length === 0 ? (
          <Panel title="Both versions over time">
            <p className="dim">No instance routed by the release has finished yet.</p>
          </Panel>
        ) : (
          <Charts series={read} report={report} />
        )
      }
    </Loaded>
  );
}

function Charts(props: {
  readonly series: ReleaseSeries;
  readonly report: GateReport | undefined;
}) {
  const { series, report } = props;
  const { step_secs: step, complete } = series;
  const charts = useMemo(() => chartsOf(series, report), [series, report]);
  const instants = useMemo(() => instantsOf(series), [series]);
  return (
    <>
      <div className={styles.pair}>
        {charts.map(({ title, lines, format }) => (
          <Panel key={title} title={title}>
            <Chart label={title} instants={instants} lines={lines} format={format} isSparse />
          </Panel>
        ))}
      </div>
      <p className="dim small">
        By creation time of the instances, in intervals of {formatDuration(step * 1000)}; only those
        that have ended{complete ? '' : `, the newest ${countOf(10_000, 'one')}`}.
      </p>
    </>
  );
}

interface Shown {
  readonly title: string;
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
}

function chartsOf(series: ReleaseSeries, report: GateReport | undefined): Shown[] {
  const instants = instantsOf(series);
  const limits = (metric: string) =>
    (report?.gates ?? []).flatMap((judgement) => {
      const limit = judgement.gate.metric === metric ? limitOf(judgement) : undefined;
      return limit === undefined ? [] : [limitLine(limit, instants)];
    });
  const cancelLimits = limits('cancel_rate');
  const cancelRate: Shown = {
    title: 'Cancel rate',
    lines: [...linesOf(series, 'cancel_rate'), ...cancelLimits],
    format: formatRate,
  };
  return [
    {
      title: 'Error rate',
      lines: [...linesOf(series, 'error_rate'), ...limits('error_rate')],
      format: formatRate,
    },
    ...(cancelLimits.length > 0 || hasCancelled(series) ? [cancelRate] : []),
    {
      title: 'Duration, from creation to end',
      lines: [
        ...linesOf(series, 'duration_p50_ms', { name: 'p50' }),
        ...linesOf(series, 'duration_p95_ms', { name: 'p95', isDashed: true }),
      ],
      format: formatDuration,
    },
    { title: 'Finished instances', lines: linesOf(series, 'ended'), format: formatCompact },
  ];
}
