/** The dialogs of actions that need confirmation or input. */

import { useState } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { ConfirmDialog, Dialog, DialogActions } from '../../components/dialog.tsx';
import { useDiscard } from '../../components/discard.tsx';
import { ErrorBox } from '../../components/error-box.tsx';
import { Form, Select, TextField, wrongOf } from '../../components/field.tsx';
import { Conflict, useGuard } from '../../components/guard.tsx';
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
  readonly onClose: () => void;
}

export function ActionDialog(
  props: ActionDialogProps & {
    readonly asked: Asked;
    /** Navigates to another page. */
    readonly onLead: (href: string) => void;
  },
) {
  const { run, asked, onClose, onLead } = props;
  switch (asked.action) {
    case 'cancel':
    case 'stop':
      return <EndDialog run={run} isHard={asked.action === 'stop'} onClose={onClose} />;
    case 'signal':
      return <SignalDialog run={run} name={asked.block ?? ''} onClose={onClose} />;
    case 'change-data':
      return <DataDialog run={run} onClose={onClose} />;
    case 'migrate':
      return <MigrateDialog run={run} onClose={onClose} />;
    case 'retry':
    case 'resume':
      return <RepeatDialog run={run} action={asked.action} onClose={onClose} />;
    case 'retry-with-data':
    case 'resume-from':
    case 'fork':
      return (
        <RunAgainDialog
          run={run}
          mode={asked.action}
          block={asked.block}
          onClose={onClose}
          onLead={onLead}
        />
      );
    default:
      return null;
  }
}

/** Cancels by signal, or stops at once: protected work may never end, such as a refund that no worker claims. */
function EndDialog({ run, isHard, onClose }: ActionDialogProps & { readonly isHard: boolean }) {
  const { client } = useEngine();
  const { id, state, cancelling } = run.instance;
  const end = (): Promise<unknown> =>
    isHard
      ? client.instances.patchState(id, { state: 'cancelled' })
      : client.instances.signal(id, { signal_type: 'cancel' });
  const act = useAction(end, {
    done: () => (isHard ? 'The instance was stopped.' : 'The instance is being cancelled.'),
    onDone: onClose,
  });
  const left = cancelling?.waiting_for.join(', ') || 'its end';
  return (
    <ConfirmDialog
      title={isHard ? 'Stop this instance at once?' : 'Cancel this instance?'}
      action={isHard ? 'Stop at once' : 'Cancel the instance'}
      keep="Keep running"
      kind="danger"
      isBusy={act.isBusy}
      error={act.error}
      onConfirm={() => act.run(undefined)}
      onClose={onClose}
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
  const { run, onClose } = props;
  const { client } = useEngine();
  const [kind, setKind] = useState<SignalKind>('custom');
  const [name, setName] = useState(props.name);
  const [payload, setPayload] = useState(EMPTY);
  const takesPayload = kind === 'custom' || kind === 'update_context';
  const act = useAction(
    async () =>
      client.instances.signal(run.instance.id, {
        signal_type: kind === 'custom' ? `custom:${name}` : kind,
        ...(takesPayload && payload.trim() !== '' && { payload: jsonOf('The payload', payload) }),
      }),
    { done: () => 'Signal sent.', onDone: onClose },
  );
  const isTyped = payload !== EMPTY || name !== props.name;
  const { leave, question } = useDiscard(isTyped, onClose);
  return (
    <>
      <Dialog title="Send a signal" onClose={leave}>
        <Form onSubmit={() => act.run(undefined)}>
          <Select label="Signal" value={kind} options={SIGNALS} onChange={setKind} />
          {kind === 'custom' && (
            <TextField
              label="Name"
              hint="Wakes the step that waits for this name; otherwise it is stored until a step waits for it."
              value={name}
              required
              onChange={setName}
              wrong={wrongOf(act.error, 'signal_type')}
            />
          )}
          {takesPayload && <Editor label="Payload" value={payload} onChange={setPayload} />}
          {act.error !== null && <ErrorBox error={act.error} />}
          <DialogActions label="Send" isBusy={act.isBusy} onClose={leave} />
        </Form>
      </Dialog>
      {question}
    </>
  );
}

function DataDialog({ run, onClose }: ActionDialogProps) {
  const { client } = useEngine();
  const [before] = useState(() => jsonTextOf(run.instance.context.data));
  const [text, setText] = useState(before);
  const [opened] = useState(run.instance);
  const guard = useGuard(
    opened,
    () => client.instances.get(opened.id),
    ({ context }) => context.data,
  );
  const act = useAction(
    () =>
      guard.run(async (since) =>
        client.instances.patchContext(opened.id, { context: { data: dataOf(text) }, ...since }),
      ),
    { done: () => 'Data changed.', onDone: onClose },
  );
  const { leave, question } = useDiscard(text !== before, onClose);
  return (
    <>
      <Dialog title="Change the data" isWide onClose={leave}>
        <Form onSubmit={() => act.run(undefined)}>
          <p>
            This replaces <code>context.data</code>. Steps that start later use it; running steps
            keep their input.
          </p>
          <Editor label="Data" value={text} onChange={setText} />
          <Conflict
            guard={guard}
            mine={text}
            onTake={({ context }) => {
              setText(jsonTextOf(context.data));
              act.reset();
            }}
            onKeep={() => act.run(undefined)}
          />
          {act.error !== null && <ErrorBox error={act.error} />}
          <DialogActions
            label="Change the data"
            isBusy={act.isBusy}
            isDisabled={text === before}
            onClose={leave}
          />
        </Form>
      </Dialog>
      {question}
    </>
  );
}
