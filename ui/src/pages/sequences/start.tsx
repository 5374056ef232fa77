/** The form to start an instance: its input, as fields made from the schema or as JSON, and options. */

import {
  EngineError,
  type InstanceCreated,
  type SequenceDefinition,
} from 'durable-workflow-engine-client';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { useEngine, useMaySee } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Button } from '../../components/button.tsx';
import { ErrorBox } from '../../components/error-box.tsx';
import {
  DateTimeField,
  FieldRow,
  Form,
  Select,
  TextArea,
  TextField,
  UnreadFields,
  useUnreadFields,
} from '../../components/field.tsx';
import { boundTo, type FormState } from '../../components/form.tsx';
import { Editor } from '../../components/later.tsx';
import { Panel } from '../../components/page.tsx';
import { jsonTextOf } from '../../lib/format.ts';
import { jsonOf } from '../../lib/json-text.ts';
import { instantOf } from '../../lib/local-time.ts';
import { InputFields } from './input-fields.tsx';
import { fieldsOf, initialOf, inputRefusalOf, type JsonObject, objectIn } from './input-form.ts';
import styles from './sequences.module.css';

const PRIORITIES = [
  { value: 'normal', label: 'Normal' },
  { value: 'low', label: 'Low' },
  { value: 'high', label: 'High' },
  { value: 'critical', label: 'Critical' },
] as const;

interface Options {
  readonly namespace: string;
  readonly priority: (typeof PRIORITIES)[number]['value'];
  readonly startAt: string;
  readonly idempotencyKey: string;
  readonly metadata: string;
}

export function Start({ sequence }: { readonly sequence: SequenceDefinition }) {
  const { client, allowed } = useEngine();
  const maySee = useMaySee();
  const [, go] = useLocation();
  const fields = fieldsOf(sequence.input_schema as JsonObject | undefined);
  const [data, setData] = useState<JsonObject>(() => initialOf(fields ?? []));
  /** Undefined while the fields are shown. */
  const [text, setText] = useState<string | undefined>(fields === undefined ? '{}' : undefined);
  const [isText, setIsText] = useState(fields === undefined);
  const [broken, tellBroken] = useUnreadFields();
  const [options, setOptions] = useState<Options>({
    namespace: sequence.namespace,
    priority: 'normal',
    startAt: '',
    idempotencyKey: '',
    metadata: '',
  });
  const set = (changes: Partial<Options>) => setOptions({ ...options, ...changes });
  const start = useAction(
    () =>
      client.instances.create({
        sequence_id: sequence.id,
        namespace: options.namespace,
        context: { data: isText ? (jsonOf('The input', text ?? '') as object) : data },
        priority: options.priority,
        ...(options.metadata.trim() && {
          metadata: jsonOf('The metadata', options.metadata) as object,
        }),
        ...(options.startAt && { next_fire_at: instantOf(options.startAt) }),
        ...(options.idempotencyKey && { idempotency_key: options.idempotencyKey }),
      }),
    {
      done: startedText,
      onDone: ({ id, collected }) => {
        if (!collected) go(`/instances/${id}`);
        else if (maySee('/pending-starts')) go('/pending-starts');
      },
    },
  );
  if (!allowed.start) {
    return <p className="dim">Starting instances needs a key with the capability starter.</p>;
  }
  /** The engine's message was about the previous input. */
  function change(next: JsonObject) {
    setData(next);
    start.reset();
  }
  const refusal =
    start.error instanceof EngineError ? inputRefusalOf(start.error.message) : undefined;
  return (
    <Form onSubmit={() => start.run(undefined)}>
      <Panel
        title="Input"
        actions={
          fields !== undefined && (
            <Button
              kind="quiet"
              onClick={() => {
                if (!isText) setText(jsonTextOf(data));
                const kept = objectIn(text);
                if (isText && kept === undefined) return;
                if (isText && kept !== undefined) setData(kept);
                setIsText(!isText);
              }}
              disabled={isText ? objectIn(text) === undefined : broken > 0}
            >
              {isText ? 'Use fields' : 'Edit as JSON'}
            </Button>
          )
        }
      >
        {isText || fields === undefined ? (
          <Editor label="Input as JSON" value={text ?? '{}'} onChange={setText} />
        ) : (
          <div className={styles.fields}>
            <UnreadFields value={tellBroken}>
              <InputFields
                fields={fields}
                value={data}
                onChange={change}
                path=""
                refusal={refusal}
              />
            </UnreadFields>
          </div>
        )}
        {fields === undefined && (
          <p className="dim small">
            {sequence.input_schema
              ? 'The engine validates the input against the input_schema of this sequence.'
              : 'This sequence has no input_schema: any object is valid.'}
          </p>
        )}
      </Panel>
      <details className={styles.options}>
        <summary>Options</summary>
        <StartOptions at={boundTo(options, set, start.error)} />
      </details>
      {start.error !== null && <ErrorBox error={start.error} />}
      {broken > 0 && (
        <p className={styles.wrong} role="status">
          {broken === 1 ? 'A field has' : `${broken} fields have`} an invalid value: correct it
          first.
        </p>
      )}
      <span>
        <Button kind="primary" submits isBusy={start.isBusy}>
          {options.startAt === '' ? 'Start an instance' : 'Schedule an instance'}
        </Button>
      </span>
    </Form>
  );
}

function startedText({ deduplicated, skipped, collected }: InstanceCreated): string {
  if (collected) return 'Collected: the instance starts later.';
  if (skipped)
    return 'Nothing was started, since all slots are taken. One of their holders is shown here.';
  return deduplicated
    ? 'An instance with this idempotency key already exists and is shown here.'
    : 'Started.';
}

function StartOptions({ at }: Pick<FormState<Options>, 'at'>) {
  return (
    <div className={styles.fields}>
      <FieldRow>
        <TextField label="Namespace" {...at('namespace')} />
        <Select label="Priority" options={PRIORITIES} {...at('priority')} />
        <DateTimeField
          label="Start at"
          hint="Leave empty to start now"
          {...at('startAt', 'next_fire_at')}
        />
      </FieldRow>
      <TextField
        label="Idempotency key"
        hint="A second start with the same key returns the first instance"
        {...at('idempotencyKey', 'idempotency_key')}
      />
      <TextArea
        label="Metadata"
        isJson
        rows={2}
        hint={
          <>
            A JSON object such as <code>{'{"channel": "phone"}'}</code>. Instances can be found by
            it
          </>
        }
        {...at('metadata')}
      />
    </div>
  );
}
