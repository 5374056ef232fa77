/** The schedules: when each fires next, and actions to change, run and delete one. */

import type { CronSchedule } from 'durable-workflow-engine-client';
import { AlarmClock } from 'lucide-react';
import { Link, useLocation, useParams } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { useSequence } from '../../api/sequences.ts';
import { ActionButton } from '../../components/act.tsx';
import { Badge } from '../../components/badge.tsx';
import { CloseContext } from '../../components/dialog.tsx';
import { useList } from '../../components/list.tsx';
import { ListPanel } from '../../components/list-panel.tsx';
import { Page } from '../../components/page.tsx';
import { PageLink } from '../../components/page-link.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { countOf } from '../../lib/format.ts';
import { cronWords } from './cron-words.ts';
import { ScheduleDialog } from './schedule-dialog.tsx';
import { ScheduleForm } from './schedule-form.tsx';

const COLUMNS: readonly Column<CronSchedule>[] = [
  {
    name: 'Starts',
    cell: (schedule) => (
      <Link href={`/schedules/${schedule.id}`}>
        <StartedBy schedule={schedule} />
      </Link>
    ),
  },
  {
    name: 'Schedule',
    cell: ({ cron_expr, timezone }) => (
      <>
        <code>{cron_expr}</code> <span className="dim small">{timezone}</span>
        <div className="dim small">{cronWords(cron_expr)}</div>
      </>
    ),
  },
  { name: 'State', cell: (schedule) => <ScheduleState schedule={schedule} /> },
  {
    name: 'Next run',
    cell: ({ next_fire_at, enabled }) => <Time at={enabled ? next_fire_at : null} />,
  },
  { name: 'Last run', cell: ({ last_triggered_at }) => <Time at={last_triggered_at} /> },
];

/** The name of the sequence, and the version if the schedule is pinned to one. */
export function StartedBy({ schedule }: { readonly schedule: CronSchedule }) {
  const { sequence, sequence_id, version } = schedule;
  return sequence === null ? (
    <VersionName id={sequence_id ?? ''} />
  ) : version === null ? (
    sequence
  ) : (
    `${sequence}, version ${version}`
  );
}

function VersionName({ id }: { readonly id: string }) {
  const known = useSequence(id);
  return known ? `${known.name}, version ${known.version}` : `sequence ${id}`;
}

export function ScheduleState({ schedule }: { readonly schedule: CronSchedule }) {
  const { enabled, last_error, skipped_fires } = schedule;
  if (!enabled) return <Badge tone="idle">disabled</Badge>;
  if (last_error !== null) {
    return (
      <>
        <Badge tone="danger">last run failed</Badge> <span className="small">{last_error}</span>
      </>
    );
  }
  return (
    <>
      <Badge tone="ok">enabled</Badge>{' '}
      {skipped_fires > 0 && <span className="small">{countOf(skipped_fires, 'fire')} skipped</span>}
    </>
  );
}

export default function Schedules() {
  const { client, allowed } = useEngine();
  const { id } = useParams();
  const [, go] = useLocation();
  const list = useList('cron.list', [{}], { live: true });
  return (
    <Page title="Schedules" about="Instances that are started at given times.">
      <ListPanel
        title="Schedules, oldest first"
        label="Schedules"
        list={list}
        columns={COLUMNS}
        idOf={(schedule) => schedule.id}
        mayChange={allowed.operate}
        create={{
          label: 'New schedule',
          first: 'Create a schedule',
          kind: 'primary',
          form: <ScheduleForm />,
        }}
        rowActions={(schedule) => (
          <ActionButton
            label="Run now"
            act={() => client.cron.run(schedule.id)}
            done={({ instance_id, collected }) =>
              collected ? (
                <>
                  Collected: it is among the{' '}
                  <PageLink href="/pending-starts">pending starts</PageLink>
                </>
              ) : (
                <>
                  Started: <Link href={`/instances/${instance_id}`}>the instance</Link>
                </>
              )
            }
          />
        )}
        empty={{
          title: 'No schedules yet',
          icon: AlarmClock,
          about: 'A schedule starts an instance of a sequence at the times of its cron expression.',
        }}
      />
      <CloseContext value={() => go('/schedules')}>
        {id !== undefined && <ScheduleDialog id={id} />}
      </CloseContext>
    </Page>
  );
}
