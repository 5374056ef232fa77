/**
 * Optimistic concurrency for forms (docs/reference/errors.md): if the object was changed by somebody else since it was
 * opened, both versions are shown and the user chooses one.
 */

import { EngineError } from 'durable-workflow-engine-client';
import { useRef, useState } from 'react';
import { jsonTextOf } from '../lib/format.ts';
import { Button, ButtonRow } from './button.tsx';
import styles from './guard.module.css';

interface Dated {
  readonly updated_at: string | null;
}

export interface Guard<Thing> {
  /** Makes the change with `if_unchanged_since`. A newer time without a visible difference is not a conflict. */
  readonly run: <Result>(
    change: (since: { readonly if_unchanged_since?: string }) => PromiseLike<Result>,
  ) => Promise<Result>;
  /** The current object, after a change was refused because of it. */
  readonly present: Thing | undefined;
  /** Continue from the current object. */
  readonly settle: () => void;
  readonly viewOf: (thing: Thing) => unknown;
}

/** Rereads of an object that keeps changing while the form is sent. */
const ATTEMPTS_MAX = 5;

/**
 * @param first as it was read; undefined when a new one is created
 * @param read reads the current object; undefined if it was deleted
 * @param viewOf the part that the form shows
 */
export function useGuard<Thing extends Dated>(
  first: Thing | undefined,
  read: () => PromiseLike<Thing | undefined>,
  viewOf: (thing: Thing) => unknown,
): Guard<Thing> {
  const seen = useRef(first);
  const [present, setPresent] = useState<Thing>();
  const textOf = (thing: Thing | undefined) => thing && jsonTextOf(viewOf(thing));
  return {
    run: async (change) => {
      setPresent(undefined);
      for (let tries = 1; ; tries += 1) {
        const since = seen.current?.updated_at;
        try {
          return await change(since == null ? {} : { if_unchanged_since: since });
        } catch (error) {
          if (!isOutdated(error)) throw error;
          const now = await read();
          if (now === undefined) throw error;
          const isSame = textOf(now) === textOf(seen.current);
          if (!isSame) setPresent(now);
          if (!isSame || tries === ATTEMPTS_MAX) throw error;
          seen.current = now;
        }
      }
    },
    present,
    settle: () => {
      seen.current = present;
      setPresent(undefined);
    },
    viewOf,
  };
}

function isOutdated(error: unknown): boolean {
  return (
    error instanceof EngineError &&
    error.status === 409 &&
    error.message.includes('if_unchanged_since')
  );
}

/** Renders nothing unless there is a conflict. */
export function Conflict<Thing>(props: {
  readonly guard: Guard<Thing>;
  /** The form's values, as `viewOf` shows them. */
  readonly mine: unknown;
  readonly onTake: (present: Thing) => void;
  /** Sends the form's values again. */
  readonly onKeep: () => void;
}) {
  const { guard, mine, onTake, onKeep } = props;
  const { present, settle, viewOf } = guard;
  if (present === undefined) return null;
  return (
    <section className={styles.conflict} role="alert" aria-label="Changed by somebody else">
      <p>Somebody else has changed this since you opened it. Your changes are not saved yet.</p>
      <div className={styles.sides}>
        <Side title="Your version" value={mine} />
        <Side title="Current version" value={viewOf(present)} />
      </div>
      <ButtonRow>
        <Button
          onClick={() => {
            onTake(present);
            settle();
          }}
        >
          Use the current version
        </Button>
        <Button
          kind="danger"
          onClick={() => {
            settle();
            onKeep();
          }}
        >
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
