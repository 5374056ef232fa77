/** One queue over time, the workers that serve it, and how to start one more. */

import type { QueueInfo, QueueSeries, WorkerInfo } from 'durable-workflow-engine-client';
import { X } from 'lucide-react';
import { useMemo, useState } from 'react';
import { Link } from 'wouter';
import { ENGINE_URL, useEngine } from '../../api/engine.tsx';
import { useRead } from '../../api/read.ts';
import { Badge, type Tone } from '../../components/badge.tsx';
import { ButtonRow, IconButton, Toggle } from '../../components/button.tsx';
import { CopyButton } from '../../components/copy.tsx';
import { Chart } from '../../components/later.tsx';
import { TablePanel } from '../../components/list-panel.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Panel } from '../../components/page.tsx';
import { hrefOf } from '../../lib/address.ts';
import { formatCompact, formatDuration } from '../../lib/format.ts';
import { depthsOf, type Outlook, outlookOf, ratesOf, waitsOf } from './drain.ts';
import { starterOf, TOOLS, type Tool } from './starters.ts';
import { WORKER_COLUMNS } from './worker-list.tsx';
import styles from './workers.module.css';

const READ_EVERY_MS = 5_000;
const MINUTE_MS = 60_000;

export function QueuePanels(props: { readonly info: QueueInfo; readonly onClose: () => void }) {
  const { info, onClose } = props;
  const { handler, queue } = info;
  const series = useRead('queues.series', [{ handler, queue: queue ?? undefined }], {
    refetchInterval: READ_EVERY_MS,
  });
  const name = queue === null ? handler : `${handler}, queue ${queue}`;
  return (
    <>
      <Panel
        title={`Queue: ${name}`}
        actions={
          <ButtonRow>
            <Link href={hrefOf('/workers/tasks', { handler })}>Tasks</Link>
            <IconButton label="Close" icon={X} onClick={onClose} />
          </ButtonRow>
        }
      >
        <Loaded query={series} height={460}>
          {(data) => <Lines info={info} series={data} />}
        </Loaded>
      </Panel>
      <Workers info={info} />
      <Starter info={info} />
    </>
  );
}

function Lines({ info, series }: { readonly info: QueueInfo; readonly series: QueueSeries }) {
  const { waiting, oldest_waiting_since: oldest } = info;
  const { intervals, step_secs } = series;
  const stepMs = step_secs * 1_000;
  const drawn = useMemo(() => {
    const depths = depthsOf(intervals, waiting).slice(0, -1);
    const waits = waitsOf(intervals, stepMs, oldest).slice(0, -1);
    // The current interval is incomplete.
    const read = intervals.slice(0, -1);
    return {
      rates: ratesOf(read, step_secs),
      instants: read.map(({ at }) => Date.parse(at)),
      charts: [
        {
          title: 'Waiting tasks',
          label: 'Waiting tasks over time',
          lines: [{ name: 'Waiting', values: depths, color: '--wait' }],
          format: formatCompact,
        },
        {
          title: 'Longest wait',
          label: 'Longest wait over time',
          lines: [{ name: 'Longest wait', values: waits, color: '--warn' }],
          format: formatDuration,
        },
        {
          title: 'Arrived and ended per minute',
          label: 'Arrived and ended tasks over time',
          lines: [
            { name: 'Arrived', values: read.map(({ arrived }) => arrived), color: '--info' },
            { name: 'Ended', values: read.map(({ ended }) => ended), color: '--ok' },
          ],
          format: formatCompact,
        },
      ],
    } as const;
  }, [intervals, waiting, stepMs, step_secs, oldest]);
  const { rates, instants, charts } = drawn;
  const [tone, text] = textOf(outlookOf(waiting, rates));
  return (
    <div className={styles.lines}>
      <p>
        <Badge tone={tone}>{text}</Badge>{' '}
        <span className="dim">
          {formatCompact(rates.arrived)} arrive and {formatCompact(rates.left)} leave a minute
        </span>
      </p>
      <div className={styles.charts}>
        {charts.map(({ title, ...chart }) => (
          <div key={title}>
            <h3>{title}</h3>
            <Chart {...chart} instants={instants} height={140} />
          </div>
        ))}
      </div>
    </div>
  );
}

function textOf(outlook: Outlook): readonly [Tone, string] {
  switch (outlook.kind) {
    case 'empty':
      return ['ok', 'nothing is waiting'];
    case 'stuck':
      return ['danger', 'no task was claimed in the last minutes'];
    case 'steady':
      return ['warn', 'does not change'];
    case 'drains':
      return ['info', `drains in ${formatDuration(Math.max(1, outlook.minutes) * MINUTE_MS)}`];
    case 'grows':
      return ['danger', `grows by ${formatCompact(outlook.perMinute)} a minute`];
  }
}

function Workers({ info: { handler, queue } }: { readonly info: QueueInfo }) {
  const workers = useRead('workers.list', [{ include_stale: true }], {
    refetchInterval: READ_EVERY_MS,
  });
  // A worker without queues serves all of its handlers.
  const serves = ({ handlers, queues }: WorkerInfo) =>
    handlers.includes(handler) && (queues.length === 0 || queues.includes(queue ?? ''));
  return (
    <TablePanel
      title="Workers that serve it"
      label="Workers of the queue"
      query={workers}
      height={120}
      columns={WORKER_COLUMNS}
      rowsOf={(rows) => rows.filter(serves)}
      idOf={({ worker_id }) => worker_id}
      empty={<p className={styles.none}>No worker has polled for it.</p>}
    />
  );
}

function Starter({ info: { handler, queue } }: { readonly info: QueueInfo }) {
  const { tenant } = useEngine();
  const [tool, setTool] = useState<Tool>('TypeScript');
  const text = starterOf(tool, { url: ENGINE_URL, tenant, handler, queue });
  return (
    <Panel
      title="Start a worker"
      actions={
        <ButtonRow>
          {TOOLS.map((one) => (
            <Toggle key={one} isOn={one === tool} onClick={() => setTool(one)}>
              {one}
            </Toggle>
          ))}
        </ButtonRow>
      }
    >
      <div className={styles.starter}>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines scroll, also by keyboard. */}
        <pre tabIndex={0}>{text}</pre>
        <CopyButton text={text} label="Copy the command" />
      </div>
    </Panel>
  );
}
