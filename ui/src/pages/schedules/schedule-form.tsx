/** The form to create or change a schedule. */

import type { CronSchedule, OverlapPolicy } from 'durable-workflow-engine-client';
import { useState } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Dialog, DialogActions } from '../../components/dialog.tsx';
import { useDiscard } from '../../components/discard.tsx';
import { ErrorBox } from '../../components/error-box.tsx';
import { Form, Select, TextArea, TextField, wrongOf } from '../../components/field.tsx';
import { Conflict, useGuard } from '../../components/guard.tsx';
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

/** @param props.schedule the one to change; undefined: a new one */
export function ScheduleForm(props: { schedule?: CronSchedule; onClose: () => void }) {
  const [schedule] = useState(props.schedule);
  const { onClose } = props;
  const { client } = useEngine();
  const [sequence, setSequence] = useState('');
  const [expression, setExpression] = useState(schedule?.cron_expr ?? '');
  const [timezone, setTimezone] = useState(schedule?.timezone ?? zoneHere());
  const [overlap, setOverlap] = useState<OverlapPolicy>(schedule?.overlap_policy ?? 'allow');
  const [data, setData] = useState(JSON.stringify(schedule?.context.data ?? {}, null, 2));
  const typed = JSON.stringify([sequence, expression, timezone, overlap, data]);
  const [opened] = useState(typed);
  const { leave, question } = useDiscard(typed !== opened, onClose);
  const guard = useGuard(schedule, () => client.cron.get(schedule?.id ?? ''), viewOf);
  const save = useAction(
    async () => {
      const context = {
        data: jsonOf('The input', data) as object,
        config: schedule?.context.config ?? {},
      };
      const body = { cron_expr: expression, timezone, overlap_policy: overlap, context };
      if (schedule === undefined) return client.cron.create({ ...body, sequence });
      return guard.run((since) => client.cron.update(schedule.id, { ...body, ...since }));
    },
    { done: () => 'Schedule saved.', onDone: onClose },
  );
  return (
    <Dialog title={schedule ? 'Change the schedule' : 'New schedule'} onClose={leave}>
      <Form onSubmit={() => save.run(undefined)}>
        {schedule === undefined && (
          <SequenceField
            value={sequence}
            onChange={setSequence}
            wrong={wrongOf(save.error, 'sequence')}
          />
        )}
        <TextField
          label="Expression"
          required
          value={expression}
          onChange={setExpression}
          hint="Such as 0 9 * * 1-5 or @daily. Seconds may come first and the year last."
          wrong={wrongOf(save.error, 'cron_expr')}
        />
        <TextField
          label="Time zone"
          required
          list="time-zones"
          value={timezone}
          onChange={setTimezone}
          wrong={wrongOf(save.error, 'timezone')}
        />
        <datalist id="time-zones">
          {Intl.supportedValuesOf('timeZone').map((zone) => (
            <option key={zone} value={zone} />
          ))}
        </datalist>
        <FirePreview expression={expression} timezone={timezone} />
        <Select
          label="If the previous run is still open"
          value={overlap}
          options={OVERLAPS}
          onChange={setOverlap}
        />
        <TextArea
          label="Input"
          isJson
          rows={5}
          value={data}
          onChange={setData}
          hint="context.data of the instances, as JSON"
          wrong={wrongOf(save.error, 'data')}
        />
        <Conflict
          guard={guard}
          mine={{ cron_expr: expression, timezone, overlap_policy: overlap, data: typedOf(data) }}
          onTake={(present) => {
            setExpression(present.cron_expr);
            setTimezone(present.timezone);
            setOverlap(present.overlap_policy);
            setData(jsonTextOf(present.context.data));
            save.reset();
          }}
          onKeep={() => save.run(undefined)}
        />
        {save.error !== null && <ErrorBox error={save.error} />}
        <DialogActions label="Save" isBusy={save.isBusy} onClose={leave} />
      </Form>
      {question}
    </Dialog>
  );
}

function viewOf({ cron_expr, timezone, overlap_policy, context }: CronSchedule) {
  return { cron_expr, timezone, overlap_policy, data: context.data };
}

/** The parsed value, or the text if it is not JSON. */
function typedOf(text: string): unknown {
  const read = readJson(text);
  return read.wrong === undefined ? read.value : text;
}
