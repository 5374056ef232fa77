/** The form of a trigger: what fires it, how its requests are verified, and its effect. */

import type { Trigger, TriggerType } from 'durable-workflow-engine-client';
import { useState } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Dialog, DialogActions } from '../../components/dialog.tsx';
import { ErrorBox } from '../../components/error-box.tsx';
import {
  FieldRow,
  Form,
  NumberField,
  Select,
  TextArea,
  TextField,
  wrongOf,
} from '../../components/field.tsx';
import { Conflict, useGuard } from '../../components/guard.tsx';
import { SequenceField } from '../../components/sequence-field.tsx';
import {
  ALGORITHMS,
  changeOf,
  createOf,
  draftOf,
  ENCODINGS,
  needsSecret,
  SCHEMES,
  type Scheme,
  TOLERANCE_MS,
  type TriggerDraft,
  takesOldSecret,
  type VerifyDraft,
  viewOf,
} from './trigger-draft.ts';

const TYPES: readonly { readonly value: TriggerType; readonly label: string }[] = [
  { value: 'webhook', label: 'A webhook' },
  { value: 'event', label: 'An event' },
];

const EFFECTS = [
  { value: 'start', label: 'Starts an instance' },
  { value: 'publish', label: 'Publishes an event' },
] as const;

const SCHEME_OPTIONS = [
  ...Object.entries(SCHEMES).map(([value, { label }]) => ({ value: value as Scheme, label })),
  { value: '', label: 'None: webhooks are refused' },
] as const;

const asOptions = <Value extends string>(values: readonly Value[]) =>
  values.map((value) => ({ value, label: value }));

interface PartProps {
  readonly draft: TriggerDraft;
  /** Undefined: a new one. */
  readonly trigger: Trigger | undefined;
  readonly error: unknown;
  readonly onChange: (changes: Partial<TriggerDraft>) => void;
}

/** @param props.trigger the one to change; undefined: a new one */
export function TriggerForm(props: { trigger: Trigger | undefined; onClose: () => void }) {
  const { trigger, onClose } = props;
  const { client } = useEngine();
  const [draft, setDraft] = useState(() => draftOf(trigger));
  const { slug } = draft;
  const guard = useGuard(
    trigger,
    () => client.triggers.get(slug),
    (read) => viewOf(draftOf(read)),
  );
  const save = useAction(
    async () =>
      trigger === undefined
        ? client.triggers.create(createOf(draft))
        : guard.run(async (since) =>
            client.triggers.update(slug, { ...changeOf(draft, trigger), ...since }),
          ),
    { done: () => `${trigger ? 'Changed' : 'Created'}: ${slug}`, onDone: onClose },
  );
  const part: PartProps = {
    ...{ draft, trigger, error: save.error },
    onChange: (changes) => setDraft({ ...draft, ...changes }),
  };
  return (
    <Dialog
      title={trigger ? `Change the trigger ${trigger.slug}` : 'New trigger'}
      onClose={onClose}
    >
      <Form onSubmit={() => save.run(undefined)}>
        {!trigger && (
          <>
            <TextField
              label="Name"
              required
              value={slug}
              onChange={(text) => part.onChange({ slug: text })}
              hint="Part of the URL: letters, digits, dots, _, ~ and -"
              wrong={wrongOf(save.error, 'slug')}
            />
            <Select
              label="Fired by"
              value={draft.type}
              options={TYPES}
              onChange={(type) => part.onChange({ type })}
            />
          </>
        )}
        {draft.type === 'webhook' ? <Verification {...part} /> : <Filter {...part} />}
        <Select
          label="Effect"
          value={draft.effect}
          options={EFFECTS}
          onChange={(effect) => part.onChange({ effect })}
        />
        {draft.effect === 'start' ? <Started {...part} /> : <Published {...part} />}
        <Conflict
          guard={guard}
          mine={viewOf(draft)}
          onTake={(present) => {
            setDraft(draftOf(present));
            save.reset();
          }}
          onKeep={() => save.run(undefined)}
        />
        {save.error !== null && <ErrorBox error={save.error} />}
        <DialogActions label={trigger ? 'Save' : 'Create'} isBusy={save.isBusy} onClose={onClose} />
      </Form>
    </Dialog>
  );
}

/** The events that fire it. */
function Filter({ draft, error, onChange }: PartProps) {
  return (
    <>
      <TextField
        label="Event name"
        required
        value={draft.eventName}
        onChange={(eventName) => onChange({ eventName })}
        wrong={wrongOf(error, 'event_name')}
      />
      <TextField
        label="Correlation key"
        value={draft.correlationKey}
        onChange={(correlationKey) => onChange({ correlationKey })}
        hint="Leave empty for events with any key"
        wrong={wrongOf(error, 'correlation_key')}
      />
    </>
  );
}

function Verification({ draft, trigger, error, onChange }: PartProps) {
  const { verify } = draft;
  const { scheme } = verify;
  const change = (changes: Partial<VerifyDraft>) => onChange({ verify: { ...verify, ...changes } });
  const isNeeded = needsSecret(draft, trigger);
  return (
    <>
      <Select
        label="Verified by"
        value={scheme}
        options={SCHEME_OPTIONS}
        onChange={(value) => change({ scheme: value })}
        hint={scheme === '' && 'Only calls of the API with a key fire it'}
        wrong={wrongOf(error, 'scheme')}
      />
      {scheme !== '' && (
        <>
          <Settings scheme={scheme} verify={verify} error={error} onChange={change} />
          <TextField
            label={trigger ? 'New secret' : 'Secret'}
            type="password"
            autoComplete="off"
            required={isNeeded}
            value={verify.secret}
            onChange={(secret) => change({ secret })}
            hint={isNeeded ? SCHEMES[scheme].secret : 'Leave empty to keep the current secret'}
            wrong={wrongOf(error, 'secret')}
          />
        </>
      )}
      {trigger !== undefined && takesOldSecret(draft, trigger) && verify.secret !== '' && (
        <TextField
          label="Old secret"
          type="password"
          autoComplete="off"
          value={verify.oldSecret}
          onChange={(oldSecret) => change({ oldSecret })}
          hint="Also accepted until you save the new secret alone"
        />
      )}
    </>
  );
}

interface SettingsProps {
  readonly scheme: Scheme;
  readonly verify: VerifyDraft;
  readonly error: unknown;
  readonly onChange: (changes: Partial<VerifyDraft>) => void;
}

/** The fields that follow from the scheme. */
function Settings(props: SettingsProps) {
  const { scheme, verify, error, onChange } = props;
  const { settings } = SCHEMES[scheme];
  if (settings.includes('prefix')) return <Hmac {...props} />;
  if (settings.includes('header')) return <Header {...props} placeholder="authorization" />;
  if (!settings.includes('tolerance_ms')) return null;
  return (
    <NumberField
      label="Tolerance (ms)"
      limits={TOLERANCE_MS}
      value={verify.tolerance}
      onChange={(tolerance) => onChange({ tolerance })}
      hint="How old a request may be. Default: 300,000"
      wrong={wrongOf(error, 'tolerance_ms')}
    />
  );
}

function Header(props: SettingsProps & { readonly placeholder: string; readonly required?: true }) {
  const { verify, error, placeholder, required, onChange } = props;
  return (
    <TextField
      label="Header"
      required={required}
      placeholder={placeholder}
      value={verify.header}
      onChange={(header) => onChange({ header })}
      wrong={wrongOf(error, 'header')}
    />
  );
}

function Hmac(props: SettingsProps) {
  const { verify, error, onChange } = props;
  return (
    <>
      <FieldRow>
        <Header {...props} placeholder="x-signature" required />
        <TextField
          label="Prefix"
          placeholder="None, or such as sha256="
          value={verify.prefix}
          onChange={(prefix) => onChange({ prefix })}
          wrong={wrongOf(error, 'prefix')}
        />
      </FieldRow>
      <FieldRow>
        <Select
          label="Algorithm"
          value={verify.algorithm}
          options={asOptions(ALGORITHMS)}
          onChange={(algorithm) => onChange({ algorithm })}
        />
        <Select
          label="Encoding"
          value={verify.encoding}
          options={asOptions(ENCODINGS)}
          onChange={(encoding) => onChange({ encoding })}
        />
      </FieldRow>
    </>
  );
}

function Started({ draft, trigger, error, onChange }: PartProps) {
  return (
    <>
      {!trigger && (
        <TextField
          label="Namespace"
          required
          value={draft.namespace}
          onChange={(namespace) => onChange({ namespace })}
          hint="Namespace of the sequence and of the instances"
          wrong={wrongOf(error, 'namespace')}
        />
      )}
      <SequenceField
        value={draft.sequence}
        onChange={(sequence) => onChange({ sequence })}
        wrong={wrongOf(error, 'sequence_name')}
      />
    </>
  );
}

function Published({ draft, error, onChange }: PartProps) {
  return (
    <>
      <p className="dim small">
        All of these are templates over the <code>body</code> and the <code>headers</code> of the
        request, such as <code>{'{{ body.order }}'}</code>.
      </p>
      <TextField
        label="Published event"
        required
        value={draft.event}
        onChange={(event) => onChange({ event })}
        placeholder="payment.{{ body.state }}"
        wrong={wrongOf(error, 'event')}
      />
      <TextField
        label="Its correlation key"
        value={draft.key}
        onChange={(key) => onChange({ key })}
        hint="Leave empty for an event without a key"
        wrong={wrongOf(error, 'key')}
      />
      <TextArea
        label="Payload"
        isJson
        value={draft.payload}
        onChange={(payload) => onChange({ payload })}
        hint={
          <>
            JSON such as <code>{'{"amount": "{{ body.amount }}"}'}</code>; leave empty for the whole
            body
          </>
        }
        wrong={wrongOf(error, 'payload')}
      />
      <TextField
        label="Event id"
        value={draft.id}
        onChange={(id) => onChange({ id })}
        hint="A second event with the same id has no effect. Default: the id of the delivery"
        wrong={wrongOf(error, 'id')}
      />
    </>
  );
}
