/** The form of a trigger: what fires it, how its requests are verified, and its effect. */

import type { Trigger, TriggerType } from 'durable-workflow-engine-client';
import { useEngine } from '../../api/engine.tsx';
import { FieldRow, NumberField, Select, TextArea, TextField } from '../../components/field.tsx';
import { boundTo, FormDialog, type FormState, useForm } from '../../components/form.tsx';
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
  readonly form: FormState<TriggerDraft>;
  /** Undefined: a new one. */
  readonly trigger: Trigger | undefined;
}

/** @param props.trigger the one to change; undefined: a new one */
export function TriggerForm(props: { trigger: Trigger | undefined }) {
  const { trigger } = props;
  const { client } = useEngine();
  const form = useForm(
    () => draftOf(trigger),
    (draft, since) =>
      trigger === undefined
        ? client.triggers.create(createOf(draft))
        : client.triggers.update(trigger.slug, { ...changeOf(draft, trigger), ...since }),
    {
      done: (_, { slug }) => `${trigger ? 'Changed' : 'Created'}: ${slug}`,
      guard: {
        thing: trigger,
        read: () => client.triggers.get(trigger?.slug ?? ''),
        draftOf,
        viewOf,
      },
    },
  );
  const { draft, at } = form;
  const part = { form, trigger };
  return (
    <FormDialog
      form={form}
      title={trigger ? `Change the trigger ${trigger.slug}` : 'New trigger'}
      label={trigger ? 'Save' : 'Create'}
    >
      {!trigger && (
        <>
          <TextField
            label="Name"
            required
            hint="Part of the URL: letters, digits, dots, _, ~ and -"
            {...at('slug')}
          />
          <Select label="Fired by" options={TYPES} {...at('type')} />
        </>
      )}
      {draft.type === 'webhook' ? <Verification {...part} /> : <Filter {...part} />}
      <Select label="Effect" options={EFFECTS} {...at('effect')} />
      {draft.effect === 'start' ? <Started {...part} /> : <Published {...part} />}
    </FormDialog>
  );
}

/** The events that fire it. */
function Filter({ form: { at } }: PartProps) {
  return (
    <>
      <TextField label="Event name" required {...at('eventName', 'event_name')} />
      <TextField
        label="Correlation key"
        hint="Leave empty for events with any key"
        {...at('correlationKey', 'correlation_key')}
      />
    </>
  );
}

function Verification({ form: { draft, set, error }, trigger }: PartProps) {
  const { verify } = draft;
  const { scheme } = verify;
  const at = boundTo(verify, (changes) => set({ verify: { ...verify, ...changes } }), error);
  const isNeeded = needsSecret(draft, trigger);
  return (
    <>
      <Select
        label="Verified by"
        options={SCHEME_OPTIONS}
        hint={scheme === '' && 'Only calls of the API with a key fire it'}
        {...at('scheme')}
      />
      {scheme !== '' && (
        <>
          <Settings settings={SCHEMES[scheme].settings} at={at} />
          <TextField
            label={trigger ? 'New secret' : 'Secret'}
            type="password"
            autoComplete="off"
            required={isNeeded}
            hint={isNeeded ? SCHEMES[scheme].secret : 'Leave empty to keep the current secret'}
            {...at('secret')}
          />
        </>
      )}
      {trigger !== undefined && takesOldSecret(draft, trigger) && verify.secret !== '' && (
        <TextField
          label="Old secret"
          type="password"
          autoComplete="off"
          hint="Also accepted until you save the new secret alone"
          {...at('oldSecret', '')}
        />
      )}
    </>
  );
}

/** The fields that follow from the scheme. */
function Settings(props: {
  readonly settings: readonly string[];
  readonly at: FormState<VerifyDraft>['at'];
}) {
  const { settings, at } = props;
  if (settings.includes('prefix')) {
    return (
      <>
        <FieldRow>
          <TextField label="Header" required placeholder="x-signature" {...at('header')} />
          <TextField label="Prefix" placeholder="None, or such as sha256=" {...at('prefix')} />
        </FieldRow>
        <FieldRow>
          <Select label="Algorithm" options={asOptions(ALGORITHMS)} {...at('algorithm')} />
          <Select label="Encoding" options={asOptions(ENCODINGS)} {...at('encoding')} />
        </FieldRow>
      </>
    );
  }
  if (settings.includes('header')) {
    return <TextField label="Header" placeholder="authorization" {...at('header')} />;
  }
  if (!settings.includes('tolerance_ms')) return null;
  return (
    <NumberField
      label="Tolerance (ms)"
      limits={TOLERANCE_MS}
      hint="How old a request may be. Default: 300,000"
      {...at('tolerance', 'tolerance_ms')}
    />
  );
}

function Started({ form: { at }, trigger }: PartProps) {
  return (
    <>
      {!trigger && (
        <TextField
          label="Namespace"
          required
          hint="Namespace of the sequence and of the instances"
          {...at('namespace')}
        />
      )}
      <SequenceField {...at('sequence', 'sequence_name')} />
    </>
  );
}

function Published({ form: { at } }: PartProps) {
  return (
    <>
      <p className="dim small">
        All of these are templates over the <code>body</code> and the <code>headers</code> of the
        request, such as <code>{'{{ body.order }}'}</code>.
      </p>
      <TextField
        label="Published event"
        required
        placeholder="payment.{{ body.state }}"
        {...at('event')}
      />
      <TextField
        label="Its correlation key"
        hint="Leave empty for an event without a key"
        {...at('key')}
      />
      <TextArea
        label="Payload"
        isJson
        hint={
          <>
            JSON such as <code>{'{"amount": "{{ body.amount }}"}'}</code>; leave empty for the whole
            body
          </>
        }
        {...at('payload')}
      />
      <TextField
        label="Event id"
        hint="A second event with the same id has no effect. Default: the id of the delivery"
        {...at('id')}
      />
    </>
  );
}
