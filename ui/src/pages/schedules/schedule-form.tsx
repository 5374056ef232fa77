/** The form to create or change a schedule. */

import type { CronSchedule, OverlapPolicy } from 'durable-workflow-engine-client';
import { useState } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { Select, TextArea, TextField } from '../../components/field.tsx';
import { FormDialog, useForm } from '../../components/form.tsx';
import { SequenceField } from '../../components/sequence-field.tsx';
import { jsonTextOf } from '../../lib/format.ts';
import { jsonOf, readJson } from '../../lib/json-text.ts';
import { zoneHere } from '../../lib/local-time.ts';
import { FirePreview } from './fire-preview.tsx';

export const OVERLAPS: readonly { readonly value: OverlapPolicy; readonly label: string }[] = [
  { value: 'allow', label: 'Start another instance' },
  { value: 'skip', label: 'Skip this run' },
  { value: 'buffer_one', label: 'Start one instance when it has finished' },
  { value: 'cancel_previous', label: 'Cancel the previous instance' },
];

const draftOf = (schedule?: CronSchedule) => ({
  sequence: '',
  cron_expr: schedule?.cron_expr ?? '',
  timezone: schedule?.timezone ?? zoneHere(),
  overlap_policy: schedule?.overlap_policy ?? ('allow' as OverlapPolicy),
  data: jsonTextOf(schedule?.context.data ?? {}),
});

const viewOf = ({ sequence: _, data, ...draft }: ReturnType<typeof draftOf>) => ({
  ...draft,
  data: typedOf(data),
});

/** @param props.schedule the one to change; undefined: a new one */
export function ScheduleForm(props: { schedule?: CronSchedule }) {
  const [schedule] = useState(props.schedule);
  const { client } = useEngine();
  const form = useForm<ReturnType<typeof draftOf>, unknown, CronSchedule>(
    () => draftOf(schedule),
    ({ sequence, data, ...draft }, since) => {
      const input = jsonOf('The input', data) as object;
      const body = { ...draft, context: { data: input, config: schedule?.context.config ?? {} } };
      return schedule === undefined
        ? client.cron.create({ ...body, sequence })
        : client.cron.update(schedule.id, { ...body, ...since });
    },
    {
      done: () => 'Schedule saved.',
      guard: { thing: schedule, read: () => client.cron.get(schedule?.id ?? ''), draftOf, viewOf },
    },
  );
  const { at, draft } = form;
  return (
    <FormDialog form={form} title={schedule ? 'Change the schedule' : 'New schedule'} label="Save">
      {schedule === undefined && <SequenceField {...at('sequence')} />}
      <TextField
        label="Expression"
        required
        hint="Such as 0 9 * * 1-5 or @daily. Seconds may come first and the year last."
        {...at('cron_expr')}
      />
      <TextField label="Time zone" required list="time-zones" {...at('timezone')} />
      <datalist id="time-zones">
        {Intl.supportedValuesOf('timeZone').map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
      <FirePreview expression={draft.cron_expr} timezone={draft.timezone} />
      <Select
        label="If the previous run is still open"
        options={OVERLAPS}
        {...at('overlap_policy')}
      />
      <TextArea
        label="Input"
        isJson
        rows={5}
        hint="context.data of the instances, as JSON"
        {...at('data')}
      />
    </FormDialog>
  );
}

/** The parsed value, or the text if it is not JSON. */
function typedOf(text: string): unknown {
  const read = readJson(text);
  return read.wrong === undefined ? read.value : text;
}
