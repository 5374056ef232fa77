/**
 * The state of a form and its dialog. Every field takes its value, its change and the engine's message from `at`; what
 * the form was opened with is guarded against changes by others (docs/reference/errors.md).
 */

import { EngineError } from 'durable-workflow-engine-client';
import { type ReactNode, useRef, useState } from 'react';
import { jsonTextOf } from '../lib/format.ts';
import { type ActionOptions, useAction } from './action.ts';
import { Button, type ButtonKind, ButtonRow } from './button.tsx';
import { Dialog, DialogActions, useClose } from './dialog.tsx';
import { ErrorBox } from './error-box.tsx';
import { Form, wrongOf } from './field.tsx';
import styles from './form.module.css';

/** What a field is given. */
export interface FieldBinding<Value> {
  readonly value: Value;
  readonly onChange: (value: Value) => void;
  readonly wrong: string | undefined;
}

/** @param field the name of the member in the engine's messages, if it is another one */
type At<Draft> = <Name extends keyof Draft & string>(
  name: Name,
  field?: string,
) => FieldBinding<Draft[Name]>;

interface Sending {
  /** Whether the values are others than at the beginning. */
  readonly isTyped: boolean;
  readonly send: () => void;
  readonly isBusy: boolean;
  /** Null before the first failure, and while it is sent again. */
  readonly error: unknown;
  readonly versions: Versions | undefined;
}

export interface FormState<Draft extends object> extends Sending {
  /** The values as typed. */
  readonly draft: Draft;
  readonly set: (changes: Partial<Draft>) => void;
  readonly at: At<Draft>;
}

/** That of the form, and that of somebody else. */
interface Versions {
  readonly mine: unknown;
  readonly present: unknown;
  readonly take: () => void;
  readonly keep: () => void;
}

/** Sent with a change, which the engine refuses if the object was changed since. */
export interface Since {
  readonly if_unchanged_since?: string;
}

interface Guarded<Draft, Thing> {
  /** As it was read; undefined: a new one is made. */
  readonly thing: Thing | undefined;
  /** Reads the present one; undefined if there is none any more. */
  readonly read: () => PromiseLike<Thing | undefined>;
  readonly draftOf: (thing: Thing) => Draft;
  /** What two versions are compared by. Default: all that is typed. */
  readonly viewOf?: (draft: Draft) => unknown;
}

/** Binds fields to values, by their names. @param error of the last attempt to send them */
export function boundTo<Draft extends object>(
  draft: Draft,
  set: (changes: Partial<Draft>) => void,
  error?: unknown,
): At<Draft> {
  return (name, field = name) => ({
    value: draft[name],
    onChange: (value) => set({ [name]: value } as unknown as Partial<Draft>),
    wrong: wrongOf(error, field),
  });
}

/**
 * @param first the values at the beginning
 * @param save sends what was typed; it may throw an error that names a field. Then the dialog closes, unless `onDone`
 * does something else.
 */
export function useForm<Draft extends object, Result, Thing extends Dated = never>(
  first: Draft | (() => Draft),
  save: (draft: Draft, since: Since) => PromiseLike<Result>,
  options: ActionOptions<Result, Draft> & { readonly guard?: Guarded<Draft, Thing> } = {},
): FormState<Draft> {
  const [draft, setDraft] = useState(first);
  const [opened] = useState(draft);
  const guard = useGuard(options.guard);
  const close = useClose();
  const { run, isBusy, error, reset } = useAction(
    (sent: Draft) => guard.run((since) => save(sent, since)),
    { onDone: close, ...options },
  );
  const send = () => run(draft);
  const set = (changes: Partial<Draft>) => setDraft((before) => ({ ...before, ...changes }));
  const { present } = guard;
  const isTyped = jsonTextOf(draft) !== jsonTextOf(opened);
  return {
    ...{ draft, isTyped, set, send, isBusy, error, at: boundTo(draft, set, error) },
    versions: present && {
      mine: guard.viewOf(draft),
      present: guard.viewOf(present),
      take: () => {
        setDraft(present);
        reset();
        guard.settle();
      },
      keep: () => {
        guard.settle();
        send();
      },
    },
  };
}

interface Dated {
  readonly updated_at: string | null;
}

/** Rereads of an object that keeps changing while the form is sent. */
const ATTEMPTS_MAX = 5;

/** Optimistic concurrency: a newer time without a visible difference is not a conflict. */
function useGuard<Draft, Thing extends Dated>(guarded: Guarded<Draft, Thing> | undefined) {
  const seen = useRef(guarded?.thing);
  const [found, setFound] = useState<Thing>();
  const { read, draftOf, viewOf = (draft: Draft): unknown => draft } = guarded ?? {};
  const textOf = (thing: Thing | undefined) =>
    thing && draftOf && jsonTextOf(viewOf(draftOf(thing)));
  return {
    viewOf,
    /** The present values, after a change was refused because of them. */
    present: found && draftOf?.(found),
    settle: () => {
      seen.current = found;
      setFound(undefined);
    },
    async run<Result>(change: (since: Since) => PromiseLike<Result>): Promise<Result> {
      setFound(undefined);
      for (let tries = 1; ; tries += 1) {
        const since = seen.current?.updated_at;
        try {
          return await change(since == null ? {} : { if_unchanged_since: since });
        } catch (error) {
          const now = isOutdated(error) ? await read?.() : undefined;
          if (now === undefined) throw error;
          const isSame = textOf(now) === textOf(seen.current);
          if (!isSame) setFound(now);
          if (!isSame || tries === ATTEMPTS_MAX) throw error;
          seen.current = now;
        }
      }
    },
  };
}

function isOutdated(error: unknown): boolean {
  return (
    error instanceof EngineError &&
    error.status === 409 &&
    error.message.includes('if_unchanged_since')
  );
}

/**
 * A dialog with the fields of a form, what went wrong, and the buttons that send and leave it. It asks before it is closed
 * with input that would be lost.
 */
export function FormDialog(
  props: FormBodyProps & {
    readonly title: string;
    readonly isWide?: boolean;
  },
) {
  const { title, isWide = false, ...body } = props;
  const [isAsked, setAsked] = useState(false);
  const close = useClose();
  const leave = () => (body.form.isTyped ? setAsked(true) : close());
  return (
    <>
      <Dialog title={title} isWide={isWide} onClose={leave}>
        <FormBody {...body} onClose={leave} />
      </Dialog>
      {isAsked && (
        <Dialog title="Discard your changes?" onClose={() => setAsked(false)}>
          <p>Your input has not been sent and is not saved.</p>
          <DialogActions
            label="Discard"
            kind="danger"
            onConfirm={close}
            onClose={() => setAsked(false)}
          />
        </Dialog>
      )}
    </>
  );
}

interface FormBodyProps {
  readonly form: Sending;
  /** Of the button that sends it. */
  readonly label: string;
  readonly kind?: ButtonKind;
  readonly isDisabled?: boolean;
  readonly onClose?: () => void;
  readonly children: ReactNode;
}

/** The same within a dialog. */
export function FormBody({ form, children, ...actions }: FormBodyProps) {
  const { send, isBusy, error, versions } = form;
  return (
    <Form onSubmit={send}>
      {children}
      {versions && <Conflict {...versions} />}
      {error !== null && <ErrorBox error={error} />}
      <DialogActions isBusy={isBusy} {...actions} />
    </Form>
  );
}

/** Both versions: the user chooses one. */
function Conflict({ mine, present, take, keep }: Versions) {
  return (
    <section className={styles.conflict} role="alert" aria-label="Changed by somebody else">
      <p>Somebody else has changed this since you opened it. Your changes are not saved yet.</p>
      <div className={styles.sides}>
        <Side title="Your version" value={mine} />
        <Side title="Current version" value={present} />
      </div>
      <ButtonRow>
        <Button onClick={take}>Use the current version</Button>
        <Button kind="danger" onClick={keep}>
          Overwrite with my version
        </Button>
      </ButtonRow>
    </section>
  );
}

function Side({ title, value }: { readonly title: string; readonly value: unknown }) {
  return (
    <div>
      <h3>{title}</h3>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
      <pre tabIndex={0}>{typeof value === 'string' ? value : jsonTextOf(value)}</pre>
    </div>
  );
}
