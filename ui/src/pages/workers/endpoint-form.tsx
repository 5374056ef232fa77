/** The form of a worker endpoint. Its secret is never read back: an empty one keeps the stored one. */

import type { PutWorkerEndpoint, WorkerEndpoint } from 'durable-workflow-engine-client';
import { useState } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Dialog, DialogActions } from '../../components/dialog.tsx';
import { ErrorBox } from '../../components/error-box.tsx';
import {
  Checkbox,
  FieldRow,
  Form,
  NumberField,
  TextArea,
  TextField,
  wrongOf,
} from '../../components/field.tsx';
import { Conflict, useGuard } from '../../components/guard.tsx';
import { type NumberLimits, numberOf } from '../../lib/numbers.ts';

const CONCURRENCY: NumberLimits = { isInteger: true, min: 1, max: 256 };
const TIMEOUT_MS: NumberLimits = { isInteger: true, min: 100, max: 15 * 60_000 };

/** All that a PUT replaces. */
export const settingsOf = (endpoint: WorkerEndpoint) => {
  const { handlers, url, concurrency, timeout_ms, enabled, receives_secrets } = endpoint;
  return { handlers, url, concurrency, timeout_ms, enabled, receives_secrets };
};

const draftOf = (endpoint?: WorkerEndpoint) => ({
  name: endpoint?.name ?? '',
  url: endpoint?.url ?? '',
  /** One in each line: names may contain commas. */
  handlers: endpoint?.handlers.join('\n') ?? '',
  concurrency: String(endpoint?.concurrency ?? 10),
  timeout: String(endpoint?.timeout_ms ?? 30_000),
  isEnabled: endpoint?.enabled ?? true,
  receivesSecrets: endpoint?.receives_secrets ?? false,
});

type Draft = ReturnType<typeof draftOf>;

/** @throws RangeError that names the field */
const bodyOf = (draft: Draft): PutWorkerEndpoint => ({
  handlers: draft.handlers.split('\n').flatMap((line) => line.trim() || []),
  url: draft.url,
  concurrency: numberOf('Concurrency', draft.concurrency, CONCURRENCY),
  timeout_ms: numberOf('Timeout', draft.timeout, TIMEOUT_MS),
  enabled: draft.isEnabled,
  receives_secrets: draft.receivesSecrets,
});

/** @param props.endpoint the one to change; undefined: a new one */
export function EndpointForm(props: {
  readonly endpoint: WorkerEndpoint | undefined;
  readonly onClose: () => void;
}) {
  const { endpoint, onClose } = props;
  const { client, allowed } = useEngine();
  const [draft, setDraft] = useState(() => draftOf(endpoint));
  const [secret, setSecret] = useState('');
  const set = (changes: Partial<Draft>) => setDraft({ ...draft, ...changes });
  const { name } = draft;
  const guard = useGuard(endpoint, () => client.workerEndpoints.get(name), draftOf);
  const save = useAction(
    async () =>
      guard.run(async (since) =>
        client.workerEndpoints.put(name, {
          ...bodyOf(draft),
          ...(secret !== '' && { secret }),
          ...since,
        }),
      ),
    { done: () => `The endpoint ${name} was saved.`, onDone: onClose },
  );
  return (
    <Dialog title={endpoint ? `Endpoint ${name}` : 'New endpoint'} onClose={onClose}>
      <Form onSubmit={() => save.run(undefined)}>
        {!endpoint && (
          <TextField
            label="Name"
            required
            value={name}
            onChange={(text) => set({ name: text })}
            hint="Letters, digits, dots, _ and -"
            wrong={wrongOf(save.error, 'name')}
          />
        )}
        <TextField
          label="URL"
          type="url"
          required
          value={draft.url}
          onChange={(url) => set({ url })}
          wrong={wrongOf(save.error, 'url')}
        />
        <TextArea
          label="Handlers"
          required
          rows={3}
          value={draft.handlers}
          onChange={(handlers) => set({ handlers })}
          hint="One per line: their tasks are delivered, from every queue"
          wrong={wrongOf(save.error, 'handlers')}
        />
        <TextField
          label={endpoint ? 'New secret' : 'Secret'}
          type="password"
          autoComplete="off"
          required={!endpoint}
          value={secret}
          onChange={setSecret}
          hint={
            endpoint
              ? 'Leave empty to keep the current secret'
              : 'The key of the signatures: whsec_ and base64, or any text'
          }
          wrong={wrongOf(save.error, 'secret')}
        />
        <FieldRow>
          <NumberField
            label="Concurrency"
            limits={CONCURRENCY}
            required
            value={draft.concurrency}
            onChange={(concurrency) => set({ concurrency })}
            hint="Maximum number of requests at a time"
            wrong={wrongOf(save.error, 'concurrency')}
          />
          <NumberField
            label="Timeout (ms)"
            limits={TIMEOUT_MS}
            required
            value={draft.timeout}
            onChange={(timeout) => set({ timeout })}
            hint="Maximum time until the response ends"
            wrong={wrongOf(save.error, 'timeout_ms')}
          />
        </FieldRow>
        <Checkbox
          label="Tasks are delivered"
          isChecked={draft.isEnabled}
          onChange={(isEnabled) => set({ isEnabled })}
        />
        {allowed.useSecrets && (
          <Checkbox
            label="Tasks have the secrets that they name"
            isChecked={draft.receivesSecrets}
            onChange={(receivesSecrets) => set({ receivesSecrets })}
          />
        )}
        <Conflict
          guard={guard}
          mine={draft}
          onTake={(present) => {
            setDraft(draftOf(present));
            save.reset();
          }}
          onKeep={() => save.run(undefined)}
        />
        {save.error !== null && <ErrorBox error={save.error} />}
        <DialogActions
          label={endpoint ? 'Save' : 'Create'}
          isBusy={save.isBusy}
          onClose={onClose}
        />
      </Form>
    </Dialog>
  );
}
