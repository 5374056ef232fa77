/** One schedule: its next runs, the input of its instances, and its actions. */

import type { CronSchedule } from 'durable-workflow-engine-client';
import { useState } from 'react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { useRead } from '../../api/read.ts';
import { useAction } from '../../components/action.ts';
import { Button, ButtonRow } from '../../components/button.tsx';
import { ConfirmDialog, Dialog } from '../../components/dialog.tsx';
import { ErrorBox } from '../../components/error-box.tsx';
import { JsonView } from '../../components/json-view.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Facts } from '../../components/page.tsx';
import { Time } from '../../components/time.tsx';
import { hrefOf } from '../../lib/address.ts';
import { formatInstant, wordsOf } from '../../lib/format.ts';
import { cronWords } from './cron-words.ts';
import { ScheduleForm } from './schedule-form.tsx';
import { ScheduleState, StartedBy } from './schedules.tsx';

export function ScheduleDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const schedule = useRead('cron.get', [id]);
  return (
    <Dialog title="Schedule" isWide onClose={onClose}>
      <Loaded query={schedule} height={300}>
        {(read) => <Details schedule={read} onClose={onClose} />}
      </Loaded>
    </Dialog>
  );
}

function Details({ schedule, onClose }: { schedule: CronSchedule; onClose: () => void }) {
  const { client, allowed } = useEngine();
  const [open, setOpen] = useState<'change' | 'delete'>();
  const close = () => setOpen(undefined);
  const toggle = useAction(() => client.cron.update(schedule.id, { enabled: !schedule.enabled }));
  const remove = useAction(() => client.cron.delete(schedule.id), {
    done: () => 'Schedule deleted. Instances that it started continue.',
    onDone: onClose,
  });
  const { sequence, sequence_id, cron_expr, timezone, overlap_policy, priority } = schedule;
  return (
    <>
      <Facts
        facts={[
          ['Starts', <StartedBy key="starts" schedule={schedule} />],
          [
            'When',
            <span key="when">
              <code>{`${cron_expr} ${timezone}`}</code> {cronWords(cron_expr)}
            </span>,
          ],
          ['State', <ScheduleState key="state" schedule={schedule} />],
          ['Last run', <Time key="last" at={schedule.last_triggered_at} />],
          ['If the previous run is still open', wordsOf(overlap_policy)],
          ['Priority', priority],
        ]}
      />
      <Link
        href={hrefOf('/instances', sequence ? { sequence } : { sequence_id: sequence_id ?? '' })}
      >
        Instances of this sequence
      </Link>
      <NextFires id={schedule.id} />
      <JsonView label="input of its instances" value={schedule.context} />
      {toggle.error !== null && <ErrorBox error={toggle.error} />}
      {allowed.operate && (
        <ButtonRow>
          <Button onClick={() => setOpen('change')}>Change</Button>
          <Button isBusy={toggle.isBusy} onClick={() => toggle.run(undefined)}>
            {schedule.enabled ? 'Disable' : 'Enable'}
          </Button>
          <Button onClick={() => setOpen('delete')}>Delete</Button>
        </ButtonRow>
      )}
      {open === 'change' && <ScheduleForm schedule={schedule} onClose={close} />}
      {open === 'delete' && (
        <ConfirmDialog
          title="Delete this schedule?"
          action="Delete schedule"
          kind="danger"
          isBusy={remove.isBusy}
          error={remove.error}
          onConfirm={() => remove.run(undefined)}
          onClose={close}
        >
          <p>The schedule will start no more instances. Instances that it started continue.</p>
        </ConfirmDialog>
      )}
    </>
  );
}

function NextFires({ id }: { id: string }) {
  const next = useRead('cron.nextFires', [id, { n: 5 }]);
  return (
    <section>
      <h3>Next runs</h3>
      <Loaded query={next} height={110}>
        {({ fires }) =>
          fires.length === 0 ? (
            <p className="dim">There are no further runs.</p>
          ) : (
            <ul>
              {fires.map((at) => (
                <li key={at} className="numbers">
                  {formatInstant(new Date(at))}
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </section>
  );
}
