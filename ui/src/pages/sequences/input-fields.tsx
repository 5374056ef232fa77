/** The fields of a form that is generated from a JSON Schema. */

import { Plus, X } from 'lucide-react';
import { type ReactNode, useRef, useState } from 'react';
import { Button, IconButton } from '../../components/button.tsx';
import {
  Checkbox,
  DateTimeField,
  NumberField,
  Select,
  TextArea,
  TextField,
  useUnread,
} from '../../components/field.tsx';
import { readJson } from '../../lib/json-text.ts';
import { instantOf, localTimeOf } from '../../lib/local-time.ts';
import { readNumber } from '../../lib/numbers.ts';
import {
  doubtOf,
  type FormField,
  type InputRefusal,
  initialValueOf,
  isObject,
  type Json,
  type JsonObject,
  joined,
  withMember,
} from './input-form.ts';
import styles from './sequences.module.css';

interface Place {
  /** Path of the fields in the input. */
  readonly path: string;
  readonly refusal: InputRefusal | undefined;
}

export function InputFields(
  props: Place & {
    readonly fields: readonly FormField[];
    readonly value: JsonObject;
    readonly onChange: (value: JsonObject) => void;
  },
) {
  const { fields, value, onChange, path, refusal } = props;
  return fields.map((field) => (
    <InputField
      key={field.name}
      field={field}
      label={field.isRequired ? `${field.label} *` : field.label}
      path={joined(path, field.name)}
      refusal={refusal}
      value={value[field.name]}
      onChange={(next) => onChange(withMember(value, field.name, next))}
    />
  ));
}

interface InputFieldProps extends Place {
  readonly field: FormField;
  readonly label: string;
  /** Undefined if absent. */
  readonly value: Json | undefined;
  readonly onChange: (value: Json | undefined) => void;
}

function InputField(props: InputFieldProps) {
  const { field, label, value, onChange, path, refusal } = props;
  const wrong = (refusal?.path === path ? refusal.message : undefined) ?? doubtOf(field, value);
  const common = { label, hint: field.hint || undefined, wrong };
  switch (field.kind) {
    case 'text':
      return <TextInput {...common} format={field.format} value={value} onChange={onChange} />;
    case 'number':
      return <NumberInput {...common} value={value} onChange={onChange} />;
    case 'yes-no':
      return field.isRequired || field.initial !== undefined ? (
        <Checkbox label={label} value={value === true} onChange={onChange} />
      ) : (
        <ChoiceInput {...common} choices={[true, false]} value={value} onChange={onChange} />
      );
    case 'choice':
      return <ChoiceInput {...common} choices={field.choices} value={value} onChange={onChange} />;
    case 'group':
      return <Group {...props} field={field} />;
    case 'list':
      return <Items {...props} field={field} />;
    case 'json':
      return <JsonInput {...common} value={value} onChange={onChange} />;
  }
}

interface ControlProps {
  readonly label: string;
  readonly hint: string | undefined;
  readonly wrong: string | undefined;
  readonly value: Json | undefined;
  readonly onChange: (value: Json | undefined) => void;
}

const INPUT_TYPES = {
  text: 'text',
  long: 'text',
  date: 'date',
  'date-time': 'datetime-local',
  email: 'email',
  url: 'url',
} as const;

function TextInput(
  props: ControlProps & { readonly format: Extract<FormField, { kind: 'text' }>['format'] },
) {
  const { format, value, onChange, ...rest } = props;
  const text = value === undefined ? '' : String(value);
  const change = (next: string) => onChange(next === '' ? undefined : next);
  if (format === 'long') return <TextArea {...rest} rows={3} value={text} onChange={change} />;
  if (format !== 'date-time') {
    return <TextField {...rest} type={INPUT_TYPES[format]} value={text} onChange={change} />;
  }
  return (
    <DateTimeField
      {...rest}
      value={localTimeOf(text)}
      onChange={(next) => onChange(instantOf(next))}
    />
  );
}

function ChoiceInput(props: ControlProps & { readonly choices: readonly Json[] }) {
  const { choices, value, onChange, ...rest } = props;
  const options = choices.map((choice) => ({
    value: JSON.stringify(choice),
    label: wordOf(choice),
  }));
  return (
    <Select
      {...rest}
      value={value === undefined ? '' : JSON.stringify(value)}
      options={[{ value: '', label: 'Not set' }, ...options]}
      onChange={(text) => onChange(text === '' ? undefined : (JSON.parse(text) as Json))}
    />
  );
}

function wordOf(choice: Json): string {
  if (typeof choice === 'boolean') return choice ? 'Yes' : 'No';
  return typeof choice === 'string' ? choice : JSON.stringify(choice);
}

/** Several fields with one label. */
function FieldSet(props: InputFieldProps & { readonly children: ReactNode }) {
  const { field, label, path, refusal, children } = props;
  return (
    <fieldset className={styles.group}>
      <legend>{label}</legend>
      {field.hint && <p className="dim small">{field.hint}</p>}
      {refusal?.path === path && <p className={styles.wrong}>{refusal.message}</p>}
      {children}
    </fieldset>
  );
}

type Of<Kind> = InputFieldProps & { readonly field: Extract<FormField, { kind: Kind }> };

function Group(props: Of<'group'>) {
  const { field, value, onChange, path, refusal } = props;
  return (
    <FieldSet {...props}>
      <InputFields
        fields={field.fields}
        value={isObject(value) ? value : {}}
        path={path}
        refusal={refusal}
        onChange={(next) =>
          onChange(Object.keys(next).length === 0 && !field.isRequired ? undefined : next)
        }
      />
    </FieldSet>
  );
}

function Items(props: Of<'list'>) {
  const { field, value, onChange, path, refusal } = props;
  const items: readonly Json[] = Array.isArray(value) ? value : [];
  const replace = (at: number, ...by: Json[]) => onChange(items.toSpliced(at, 1, ...by));
  // Items have no identity, and text typed in one must not move to another.
  const made = useRef(items.length);
  const [keys, setKeys] = useState(() => items.map((_, at) => at));
  const nameOf = (at: number) => `${field.item.label || field.label} ${at + 1}`;
  return (
    <FieldSet {...props}>
      {items.map((item, at) => (
        <div key={keys[at]} className={styles.item}>
          <InputField
            field={field.item}
            label={nameOf(at)}
            path={joined(path, at)}
            refusal={refusal}
            value={item ?? undefined}
            onChange={(next) => replace(at, next ?? null)}
          />
          <IconButton
            label={`Remove ${nameOf(at)}`}
            icon={X}
            onClick={() => {
              setKeys(keys.toSpliced(at, 1));
              if (items.length === 1 && !field.isRequired) onChange(undefined);
              else replace(at);
            }}
          />
        </div>
      ))}
      <span>
        <Button
          icon={Plus}
          onClick={() => {
            setKeys([...keys, made.current++]);
            onChange([...items, initialValueOf(field.item) ?? null]);
          }}
        >
          Add to {field.label}
        </Button>
      </span>
    </FieldSet>
  );
}

/** Schema limits are reported but left to the engine to enforce; text that is not a number is not sent. */
function NumberInput({ value, onChange, ...rest }: ControlProps) {
  const [text, setText] = useState(value === undefined ? '' : String(value));
  useUnread(readNumber(text)?.wrong !== undefined);
  return (
    <NumberField
      {...rest}
      value={text}
      onChange={(next) => {
        setText(next);
        const typed = readNumber(next);
        if (typed?.wrong === undefined) onChange(typed?.value);
      }}
    />
  );
}

function JsonInput({ value, onChange, ...rest }: ControlProps) {
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value, null, 2));
  useUnread(text.trim() !== '' && readJson(text).wrong !== undefined);
  return (
    <TextArea
      {...rest}
      label={`${rest.label} (JSON)`}
      isJson
      rows={4}
      value={text}
      onChange={(next) => {
        setText(next);
        if (next.trim() === '') return onChange(undefined);
        const typed = readJson(next);
        if (typed.wrong === undefined) onChange(typed.value as Json);
      }}
    />
  );
}
