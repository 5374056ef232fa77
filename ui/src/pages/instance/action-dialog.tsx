/** The dialogs of actions that need confirmation or input. */

import type { TaskInstance } from 'durable-workflow-engine-client';
import { useState } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { ConfirmDialog } from '../../components/dialog.tsx';
import { Select, TextField } from '../../components/field.tsx';
import { FormDialog, useForm } from '../../components/form.tsx';
import { Editor } from '../../components/later.tsx';
import { jsonTextOf } from '../../lib/format.ts';
import { jsonOf } from '../../lib/json-text.ts';
import type { ActionName } from './choices.ts';
import { MigrateDialog } from './migrate-dialog.tsx';
import { dataOf } from './places.ts';
import type { Run } from './run.ts';
import { RunAgainDialog } from './run-again-dialog.tsx';
import { RepeatDialog } from './runs-again.tsx';

export interface Asked {
  readonly action: ActionName;
  /** The block to start from, or the name of the signal. */
  readonly block: string | undefined;
}

export interface ActionDialogProps {
  readonly run: Run;
}

export function ActionDialog(
  props: ActionDialogProps & {
    readonly asked: Asked;
    /** Navigates to another page. */
    readonly onLead: (href: string) => void;
  },
) {
  const { run, asked, onLead } = props;
  switch (asked.action) {
    case 'cancel':
    case 'stop':
      return <EndDialog run={run} isHard={asked.action === 'stop'} />;
    case 'signal':
      return <SignalDialog run={run} name={asked.block ?? ''} />;
    case 'change-data':
      return <DataDialog run={run} />;
    case 'migrate':
      return <MigrateDialog run={run} />;
    case 'retry':
    case 'resume':
      return <RepeatDialog run={run} action={asked.action} />;
    case 'retry-with-data':
    case 'resume-from':
    case 'fork':
      return <RunAgainDialog run={run} mode={asked.action} block={asked.block} onLead={onLead} />;
    default:
      return null;
  }
}

/** Cancels by signal, or stops at once: protected work may never end, such as a refund that no worker claims. */
function EndDialog({ run, isHard }: ActionDialogProps & { readonly isHard: boolean }) {
  const { client } = useEngine();
  const { id, state, cancelling } = run.instance;
  const end = (): Promise<unknown> =>
    isHard
      ? client.instances.patchState(id, { state: 'cancelled' })
      : client.instances.signal(id, { signal_type: 'cancel' });
  const left = cancelling?.waiting_for.join(', ') || 'its end';
  return (
    <ConfirmDialog
      title={isHard ? 'Stop this instance at once?' : 'Cancel this instance?'}
      action={isHard ? 'Stop at once' : 'Cancel the instance'}
      keep="Keep running"
      kind="danger"
      act={end}
      done={() => (isHard ? 'The instance was stopped.' : 'The instance is being cancelled.')}
    >
      <p>
        {isHard
          ? `Protected work is dropped and nothing is compensated. The instance still waits for ${left}.`
          : state === 'failed'
            ? 'The instance is no longer listed as failed and cannot be retried. This cannot be undone.'
            : 'The instance ends for good. Blocks protected by a cancellation scope run first; running tasks are not waited for.'}
      </p>
    </ConfirmDialog>
  );
}

type SignalKind = 'custom' | 'pause' | 'resume' | 'cancel' | 'update_context';

const SIGNALS: readonly { readonly value: SignalKind; readonly label: string }[] = [
  { value: 'custom', label: 'Custom signal' },
  { value: 'update_context', label: 'update_context: merge the payload into the data' },
  { value: 'pause', label: 'pause' },
  { value: 'resume', label: 'resume' },
  { value: 'cancel', label: 'cancel' },
];

/** The initial payload. */
const EMPTY = '{}';

function SignalDialog(props: ActionDialogProps & { readonly name: string }) {
  const { run } = props;
  const { client } = useEngine();
  const form = useForm(
    { kind: 'custom' as SignalKind, name: props.name, payload: EMPTY },
    ({ kind, name, payload }) =>
      client.instances.signal(run.instance.id, {
        signal_type: kind === 'custom' ? `custom:${name}` : kind,
        ...(takesPayload(kind) &&
          payload.trim() !== '' && { payload: jsonOf('The payload', payload) }),
      }),
    { done: () => 'Signal sent.' },
  );
  const { at, draft } = form;
  return (
    <FormDialog form={form} title="Send a signal" label="Send">
      <Select label="Signal" options={SIGNALS} {...at('kind')} />
      {draft.kind === 'custom' && (
        <TextField
          label="Name"
          hint="Wakes the step that waits for this name; otherwise it is stored until a step waits for it."
          required
          {...at('name', 'signal_type')}
        />
      )}
      {takesPayload(draft.kind) && <Editor label="Payload" {...at('payload')} />}
    </FormDialog>
  );
}

const takesPayload = (kind: SignalKind) => kind === 'custom' || kind === 'update_context';

const draftOf = ({ context }: Pick<TaskInstance, 'context'>) => ({
  data: jsonTextOf(context.data),
});

function DataDialog({ run }: ActionDialogProps) {
  const { client } = useEngine();
  const [opened] = useState(run.instance);
  const { id } = opened;
  const form = useForm<{ data: string }, unknown, TaskInstance>(
    draftOf(opened),
    ({ data }, since) =>
      client.instances.patchContext(id, { context: { data: dataOf(data) }, ...since }),
    {
      done: () => 'Data changed.',
      guard: {
        ...{ thing: opened, draftOf, viewOf: ({ data }) => data },
        read: () => client.instances.get(id),
      },
    },
  );
  const isSame = form.draft.data === draftOf(opened).data;
  return (
    <FormDialog
      form={form}
      title="Change the data"
      isWide
      label="Change the data"
      isDisabled={isSame}
    >
      <p>
        This replaces <code>context.data</code>. Steps that start later use it; running steps keep
        their input.
      </p>
      <Editor label="Data" {...form.at('data')} />
    </FormDialog>
  );
}
