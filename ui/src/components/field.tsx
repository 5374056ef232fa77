/** What people fill in: each with its name, a hint, and what the engine refused about it. */

import { EngineError } from 'durable-workflow-engine-client';
import { type ComponentProps, type ReactNode, useEffect, useId, useState } from 'react';
import { TYPING_MS } from '../lib/rested.ts';
import styles from './field.module.css';

interface FieldProps {
  readonly label: string;
  readonly hint?: ReactNode;
  /** What is wrong with the value. */
  readonly wrong?: string | undefined;
}

type Control = (attributes: {
  readonly id: string;
  readonly className: string;
  readonly 'aria-describedby': string | undefined;
  readonly 'aria-invalid': boolean;
}) => ReactNode;

/** For controls that are not below; `children` gets the attributes that bind it to its label. */
export function Field(props: FieldProps & { readonly children: Control }) {
  const id = useId();
  const { label, hint, wrong, children } = props;
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        className: styles.input ?? '',
        'aria-describedby': hint || wrong ? `${id}-hint` : undefined,
        'aria-invalid': wrong !== undefined,
      })}
      {(hint || wrong) && (
        <span id={`${id}-hint`} className={wrong ? styles.wrong : styles.hint}>
          {wrong ?? hint}
        </span>
      )}
    </div>
  );
}

interface TextFieldProps
  extends FieldProps,
    Omit<ComponentProps<'input'>, 'onChange' | 'value' | 'id' | 'className'> {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

export function TextField({ label, hint, wrong, onChange, ...rest }: TextFieldProps) {
  return (
    <Field label={label} hint={hint} wrong={wrong}>
      {(attributes) => (
        <input {...rest} {...attributes} onChange={(event) => onChange(event.target.value)} />
      )}
    </Field>
  );
}

/** A text that narrows a list, a moment after it was typed. */
export function FilterField({ value, onChange, ...rest }: TextFieldProps) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only typing starts the wait
  useEffect(() => {
    if (text === value) return undefined;
    const timer = setTimeout(() => onChange(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return <TextField placeholder="All" {...rest} value={text} onChange={setText} />;
}

export function TextArea(
  props: FieldProps & {
    readonly value: string;
    readonly rows?: number;
    readonly onChange: (value: string) => void;
  },
) {
  const { label, hint, wrong, value, rows, onChange } = props;
  return (
    <Field label={label} hint={hint} wrong={wrong}>
      {(attributes) => (
        <textarea
          {...attributes}
          rows={rows}
          spellCheck={false}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

export function Select<Value extends string>(
  props: FieldProps & {
    readonly value: Value;
    readonly options: readonly { readonly value: Value; readonly label: string }[];
    readonly onChange: (value: Value) => void;
  },
) {
  const { label, hint, wrong, value, options, onChange } = props;
  return (
    <Field label={label} hint={hint} wrong={wrong}>
      {(attributes) => (
        <select
          {...attributes}
          value={value}
          onChange={(event) => onChange(event.target.value as Value)}
        >
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function Checkbox(props: {
  readonly label: ReactNode;
  readonly isChecked: boolean;
  readonly onChange: (isChecked: boolean) => void;
}) {
  return (
    <label className={styles.choice}>
      <input
        type="checkbox"
        checked={props.isChecked}
        onChange={(event) => props.onChange(event.target.checked)}
      />
      <span>{props.label}</span>
    </label>
  );
}

/** Fields side by side, as there is room. */
export function FieldRow({ children }: { readonly children: ReactNode }) {
  return <div className={styles.row}>{children}</div>;
}

/** What the engine refused about a field of this name: the last member of the path counts too. */
export function wrongOf(error: unknown, name: string): string | undefined {
  if (!(error instanceof EngineError) || error.field === undefined) return undefined;
  const { field } = error;
  return field === name || field.endsWith(`.${name}`) ? error.message : undefined;
}

/** Fields below each other. What is filled in is sent by its submit button or by Enter. */
export function Form(props: { readonly onSubmit: () => void; readonly children: ReactNode }) {
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        props.onSubmit();
      }}
    >
      {props.children}
    </form>
  );
}

/** The value of a field of JSON. @throws SyntaxError with the name of the field */
export function jsonOf(label: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new SyntaxError(`${label} is no JSON: ${(error as Error).message}`);
  }
}
