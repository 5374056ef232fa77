/** Form fields, each with its label, a hint, and the engine's message about it. */

import { EngineError } from 'durable-workflow-engine-client';
import {
  type ComponentProps,
  createContext,
  type ReactNode,
  type Ref,
  useCallback,
  useContext,
  useEffect,
  useId,
  useRef,
  useState,
} from 'react';
import { jsonDoubt } from '../lib/json-text.ts';
import { zoneHere } from '../lib/local-time.ts';
import { type NumberLimits, readNumber } from '../lib/numbers.ts';
import { TYPING_MS } from '../lib/rested.ts';
import styles from './field.module.css';

/** Each field reports here whether it holds text that has not been accepted as its value. */
export const UnreadFields = createContext<(field: string, isUnread: boolean) => void>(
  () => undefined,
);

/** @returns how many fields hold such text, and the value for `UnreadFields` above them */
export function useUnreadFields(): readonly [
  count: number,
  tell: (field: string, isUnread: boolean) => void,
] {
  const [unread, setUnread] = useState<ReadonlySet<string>>(new Set());
  const tell = useCallback((field: string, isUnread: boolean) => {
    setUnread((before) => {
      if (before.has(field) === isUnread) return before;
      const others = [...before].filter((other) => other !== field);
      return new Set(isUnread ? [...others, field] : others);
    });
  }, []);
  return [unread.size, tell];
}

export function useUnread(isUnread: boolean): void {
  const id = useId();
  const tell = useContext(UnreadFields);
  useEffect(() => {
    tell(id, isUnread);
    return () => tell(id, false);
  }, [tell, id, isUnread]);
}

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

/**
 * For custom controls; `children` receives the attributes that bind the control to its label. The browser's validation
 * message is shown once the form was submitted.
 */
export function Field(props: FieldProps & { readonly children: Control }) {
  const id = useId();
  const { label, hint, children } = props;
  const [refused, setRefused] = useState<string>();
  const wrong = props.wrong ?? refused;
  return (
    <div
      className={styles.field}
      onInvalidCapture={({ target }) => setRefused(refusalOf(target as HTMLInputElement))}
      onInput={() => setRefused(undefined)}
    >
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

function refusalOf({ validity, validationMessage }: HTMLInputElement): string {
  if (validity.valueMissing) return 'This field is required';
  return validity.badInput ? 'This value is incomplete' : validationMessage;
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

/** Prevents the form from being submitted while the value is invalid. */
function useDoubt<Element extends HTMLInputElement | HTMLTextAreaElement>(doubt?: string) {
  const control = useRef<Element>(null);
  useEffect(() => control.current?.setCustomValidity(doubt ?? ''), [doubt]);
  return control;
}

interface NumberFieldProps
  extends FieldProps,
    Pick<ComponentProps<'input'>, 'required' | 'disabled'> {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly limits?: NumberLimits;
}

/**
 * A number as typed: parsed by `numberOf`, and rejected with a reason. The browser's number field drops what it cannot
 * parse, so that a different number would be sent, and changes the value on scroll.
 */
export function NumberField(props: NumberFieldProps) {
  const { wrong, limits, onChange, disabled, ...rest } = props;
  const doubt = disabled ? undefined : readNumber(rest.value, limits)?.wrong;
  const control = useDoubt<HTMLInputElement>(doubt);
  return (
    <TextField
      {...rest}
      ref={control}
      inputMode={limits?.isInteger ? 'numeric' : 'decimal'}
      autoComplete="off"
      disabled={disabled}
      onChange={onChange}
      wrong={doubt ?? wrong}
    />
  );
}

/** A date and time in the viewer's time zone, which is named. */
export function DateTimeField({ hint, ...rest }: Omit<TextFieldProps, 'type'>) {
  const zone = `Time zone: ${zoneHere()}`;
  return (
    <TextField
      {...rest}
      type="datetime-local"
      hint={
        hint ? (
          <>
            {hint}; {zone}
          </>
        ) : (
          zone
        )
      }
    />
  );
}

/** Filters a list, shortly after typing stops and once the value is complete. */
export function FilterField({ value, onChange, wrong, hint, ...rest }: TextFieldProps) {
  const [text, setText] = useState(value);
  const [isHalf, setHalf] = useState(false);
  useUnread(isHalf || text !== value);
  useEffect(() => setText(value), [value]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only typing starts the wait
  useEffect(() => {
    if (text === value || isHalf) return undefined;
    const timer = setTimeout(() => onChange(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, isHalf]);
  // A partial time is an empty value for the browser, and starting to type it fires no change event.
  const look = ({ currentTarget }: { readonly currentTarget: HTMLInputElement }) =>
    setHalf(currentTarget.validity.badInput);
  return (
    <TextField
      placeholder="All"
      {...rest}
      hint={hint ?? (rest.type === 'datetime-local' && `Time zone: ${zoneHere()}`)}
      wrong={isHalf ? 'This value is incomplete' : wrong}
      value={text}
      onInput={look}
      onKeyUp={look}
      onBlur={look}
      onChange={setText}
    />
  );
}

export function TextArea(
  props: FieldProps & {
    readonly value: string;
    readonly rows?: number;
    readonly required?: boolean;
    /** Reports while typing what the engine would reject. */
    readonly isJson?: boolean;
    readonly onChange: (value: string) => void;
  },
) {
  const { label, hint, value, rows, required, isJson, onChange } = props;
  const doubt = isJson ? jsonDoubt(value) : undefined;
  const control = useDoubt<HTMLTextAreaElement>(doubt);
  return (
    <Field label={label} hint={hint} wrong={doubt ?? props.wrong}>
      {(attributes) => (
        <textarea
          {...attributes}
          ref={control}
          rows={rows}
          required={required}
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
  readonly value: boolean;
  readonly onChange: (isChecked: boolean) => void;
  readonly ref?: Ref<HTMLInputElement> | undefined;
}) {
  return (
    <label className={styles.choice}>
      <input
        ref={props.ref}
        type="checkbox"
        checked={props.value}
        onChange={(event) => props.onChange(event.target.checked)}
      />
      <span>{props.label}</span>
    </label>
  );
}

/** A group of checkboxes, at least one of which must be checked. */
export function Choices<Value extends string>(props: {
  readonly legend: string;
  readonly options: readonly { readonly value: Value; readonly label: ReactNode }[];
  readonly value: readonly Value[];
  readonly onChange: (chosen: readonly Value[]) => void;
}) {
  const { legend, options, value: chosen, onChange } = props;
  const id = useId();
  const [isAsked, setAsked] = useState(false);
  const doubt = chosen.length === 0 ? 'Choose at least one' : undefined;
  const first = useDoubt<HTMLInputElement>(doubt);
  const isWrong = isAsked && doubt !== undefined;
  return (
    <fieldset
      className={styles.set}
      aria-describedby={isWrong ? id : undefined}
      onInvalidCapture={() => setAsked(true)}
    >
      <legend>{legend}</legend>
      {options.map(({ value, label }, at) => (
        <Checkbox
          key={value}
          ref={at === 0 ? first : undefined}
          label={label}
          value={chosen.includes(value)}
          onChange={(isChosen) =>
            onChange(isChosen ? [...chosen, value] : chosen.filter((other) => other !== value))
          }
        />
      ))}
      {isWrong && (
        <span id={id} className={styles.wrong}>
          {doubt}
        </span>
      )}
    </fieldset>
  );
}

/** Fields side by side, where there is room. */
export function FieldRow({ children }: { readonly children: ReactNode }) {
  return <div className={styles.row}>{children}</div>;
}

/** The engine's message about the field with this name, which is the last member of the path in the error, or its list. */
export function wrongOf(error: unknown, name: string): string | undefined {
  if (!(error instanceof EngineError) || error.field === undefined) return undefined;
  const field = error.field.replace(/\[\d+\]$/, '');
  return field === name || field.endsWith(`.${name}`) ? error.message : undefined;
}

/**
 * Fields below each other. Submitted by its button or by Enter; if fields are invalid, all of them are marked and the
 * first one gets the focus.
 */
export function Form(props: { readonly onSubmit: () => void; readonly children: ReactNode }) {
  return (
    <form
      className={styles.form}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (event.currentTarget.checkValidity()) props.onSubmit();
        else focusFirstMistake(event.currentTarget);
      }}
    >
      {props.children}
    </form>
  );
}

function focusFirstMistake(form: HTMLFormElement): void {
  const first = form.querySelector<HTMLElement>(':is(input, select, textarea):invalid');
  for (let of = first?.closest('details'); of; of = of.parentElement?.closest('details')) {
    of.open = true;
  }
  first?.focus();
}
