/** One schedule: its next runs, the input of its instances, and its actions. */

import type { CronSchedule } from 'durable-workflow-engine-client';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { useRead } from '../../api/read.ts';
import { ActionButton, ConfirmButton, DialogButton } from '../../components/act.tsx';
import { ButtonRow } from '../../components/button.tsx';
import { Dialog, useClose } from '../../components/dialog.tsx';
import { JsonView } from '../../components/json-view.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Facts } from '../../components/page.tsx';
import { Time } from '../../components/time.tsx';
import { hrefOf } from '../../lib/address.ts';
import { formatInstant } from '../../lib/format.ts';
import { cronWords } from './cron-words.ts';
import { OVERLAPS, ScheduleForm } from './schedule-form.tsx';
import { ScheduleState, StartedBy } from './schedules.tsx';

export function ScheduleDialog({ id }: { id: string }) {
  const schedule = useRead('cron.get', [id]);
  return (
    <Dialog title="Schedule" isWide>
      <Loaded query={schedule} height={300}>
        {(read) => <Details schedule={read} />}
      </Loaded>
    </Dialog>
  );
}

function Details({ schedule }: { schedule: CronSchedule }) {
  const close = useClose();
  const { client, allowed } = useEngine();
  const { sequence, sequence_id, cron_expr, timezone, overlap_policy, priority } = schedule;
  const is = ({ value }: { readonly value: string }) => value === overlap_policy;
  return (
    <>
      <Facts
        facts={{
          Starts: <StartedBy schedule={schedule} />,
          When: (
            <>
              <code>{`${cron_expr} ${timezone}`}</code> {cronWords(cron_expr)}
            </>
          ),
          State: <ScheduleState schedule={schedule} />,
          'Last run': <Time at={schedule.last_triggered_at} />,
          'If the previous run is still open': OVERLAPS.find(is)?.label ?? overlap_policy,
          Priority: priority,
        }}
      />
      <Link
        href={hrefOf('/instances', sequence ? { sequence } : { sequence_id: sequence_id ?? '' })}
      >
        Instances of this sequence
      </Link>
      <NextFires id={schedule.id} />
      <JsonView label="input of its instances" value={schedule.context} />
      {allowed.operate && (
        <ButtonRow>
          <DialogButton label="Change">
            <ScheduleForm schedule={schedule} />
          </DialogButton>
          <ActionButton
            label={schedule.enabled ? 'Disable' : 'Enable'}
            act={() => client.cron.update(schedule.id, { enabled: !schedule.enabled })}
          />
          <ConfirmButton
            label="Delete"
            title="Delete this schedule?"
            action="Delete schedule"
            act={() => client.cron.delete(schedule.id)}
            done={() => 'Schedule deleted. Instances that it started continue.'}
            onDone={close}
          >
            <p>The schedule will start no more instances. Instances that it started continue.</p>
          </ConfirmButton>
        </ButtonRow>
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
