/**
 * Forms that change what was looked at before (docs/reference/errors.md): where somebody else was quicker, both
 * versions stand side by side, and a person takes one of them.
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
  /** Makes the change with what it has to carry. What moved the time and nothing of the view is no conflict. */
  readonly run: <Result>(
    change: (since: { readonly if_unchanged_since?: string }) => PromiseLike<Result>,
  ) => Promise<Result>;
  /** What is there now, after a change was refused for it. */
  readonly present: Thing | undefined;
  /** The form goes by what is there now. */
  readonly settle: () => void;
  readonly viewOf: (thing: Thing) => unknown;
}

/** What is looked at again by itself, of a thing that goes on while it is changed. */
const TRIES_MAX = 5;

/**
 * @param first as it was read; undefined: a new one is made
 * @param read what is there now; undefined: nothing any more
 * @param viewOf what the form shows of it
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
          if (!isSame || tries === TRIES_MAX) throw error;
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

/** Nothing while there is no conflict. */
export function Conflict<Thing>(props: {
  readonly guard: Guard<Thing>;
  /** The view, as the form has it. */
  readonly mine: unknown;
  readonly onTake: (present: Thing) => void;
  /** Sends what the form has once more. */
  readonly onKeep: () => void;
}) {
  const { guard, mine, onTake, onKeep } = props;
  const { present, settle, viewOf } = guard;
  if (present === undefined) return null;
  return (
    <section className={styles.conflict} role="alert" aria-label="Changed by somebody else">
      <p>Somebody else has changed it since you opened it. Nothing of yours is stored yet.</p>
      <div className={styles.sides}>
        <Side title="What you have" value={mine} />
        <Side title="What is there now" value={viewOf(present)} />
      </div>
      <ButtonRow>
        <Button
          onClick={() => {
            onTake(present);
            settle();
          }}
        >
          Go on with what is there
        </Button>
        <Button
          kind="danger"
          onClick={() => {
            settle();
            onKeep();
          }}
        >
          Put mine in its place
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
