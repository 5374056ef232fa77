/** The form of a worker endpoint. Its secret is never read back: an empty one keeps the stored one. */

import type { PutWorkerEndpoint, WorkerEndpoint } from 'durable-workflow-engine-client';
import { useEngine } from '../../api/engine.tsx';
import { Checkbox, FieldRow, NumberField, TextArea, TextField } from '../../components/field.tsx';
import { FormDialog, useForm } from '../../components/form.tsx';
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
  secret: '',
  concurrency: String(endpoint?.concurrency ?? 10),
  timeout_ms: String(endpoint?.timeout_ms ?? 30_000),
  enabled: endpoint?.enabled ?? true,
  receives_secrets: endpoint?.receives_secrets ?? false,
});

type Draft = ReturnType<typeof draftOf>;

const viewOf = ({ secret: _, ...draft }: Draft) => draft;

/** @throws RangeError that names the field */
function bodyOf({ name: _, secret, ...draft }: Draft): PutWorkerEndpoint {
  return {
    ...draft,
    ...(secret !== '' && { secret }),
    handlers: draft.handlers.split('\n').flatMap((line) => line.trim() || []),
    concurrency: numberOf('Concurrency', draft.concurrency, CONCURRENCY),
    timeout_ms: numberOf('Timeout', draft.timeout_ms, TIMEOUT_MS),
  };
}

/** @param props.endpoint the one to change; undefined: a new one */
export function EndpointForm(props: { readonly endpoint: WorkerEndpoint | undefined }) {
  const { endpoint } = props;
  const { client, allowed } = useEngine();
  const form = useForm(
    () => draftOf(endpoint),
    (draft, since) => client.workerEndpoints.put(draft.name, { ...bodyOf(draft), ...since }),
    {
      done: (_, { name }) => `The endpoint ${name} was saved.`,
      guard: {
        ...{ thing: endpoint, draftOf, viewOf },
        read: () => client.workerEndpoints.get(endpoint?.name ?? ''),
      },
    },
  );
  const { at, draft } = form;
  return (
    <FormDialog
      form={form}
      title={endpoint ? `Endpoint ${draft.name}` : 'New endpoint'}
      label={endpoint ? 'Save' : 'Create'}
    >
      {!endpoint && (
        <TextField label="Name" required hint="Letters, digits, dots, _ and -" {...at('name')} />
      )}
      <TextField label="URL" type="url" required {...at('url')} />
      <TextArea
        label="Handlers"
        required
        rows={3}
        hint="One per line: their tasks are delivered, from every queue"
        {...at('handlers')}
      />
      <TextField
        label={endpoint ? 'New secret' : 'Secret'}
        type="password"
        autoComplete="off"
        required={!endpoint}
        hint={
          endpoint
            ? 'Leave empty to keep the current secret'
            : 'The key of the signatures: whsec_ and base64, or any text'
        }
        {...at('secret')}
      />
      <FieldRow>
        <NumberField
          label="Concurrency"
          limits={CONCURRENCY}
          required
          hint="Maximum number of requests at a time"
          {...at('concurrency')}
        />
        <NumberField
          label="Timeout (ms)"
          limits={TIMEOUT_MS}
          required
          hint="Maximum time until the response ends"
          {...at('timeout_ms')}
        />
      </FieldRow>
      <Checkbox label="Tasks are delivered" {...at('enabled')} />
      {allowed.useSecrets && (
        <Checkbox label="Tasks have the secrets that they name" {...at('receives_secrets')} />
      )}
    </FormDialog>
  );
}
