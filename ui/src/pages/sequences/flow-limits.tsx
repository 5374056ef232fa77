/** What limits the instances of a sequence, and which events cancel them, in words (docs/concurrency.md). */

import type { SequenceDefinition } from 'durable-workflow-engine-client';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useMaySee } from '../../api/engine.tsx';
import { Facts, type FactValues, Panel } from '../../components/page.tsx';
import { hrefOf } from '../../lib/address.ts';
import { countOf, formatCount, formatDuration } from '../../lib/format.ts';
import styles from './sequences.module.css';

type Member<Name extends keyof SequenceDefinition> = NonNullable<SequenceDefinition[Name]>;

const WHEN_FULL: Readonly<Record<string, string>> = {
  queue: 'further ones wait for a free slot',
  skip: 'further creations are skipped',
  cancel_oldest: 'a new one cancels the oldest',
  cancel_newest: 'further ones are cancelled',
};

export function FlowLimits({ sequence }: { readonly sequence: SequenceDefinition }) {
  const { concurrency, throttle, debounce, batch, cancel_on } = sequence;
  const maySee = useMaySee();
  const facts: FactValues = {
    Concurrency: concurrency ? concurrencyText(concurrency) : undefined,
    Throttle: throttle ? throttleText(throttle) : undefined,
    Debounce: debounce ? debounceText(debounce) : undefined,
    Batch: batch ? batchText(batch) : undefined,
    'Cancelled by': cancel_on && cancel_on.length > 0 ? cancelText(cancel_on) : undefined,
  };
  if (!Object.values(facts).some(Boolean)) return null;
  return (
    <Panel title="Flow control">
      <div className={styles.words}>
        <Facts facts={facts} />
        {(debounce ?? batch) && maySee('/pending-starts') && (
          <Link href={hrefOf('/pending-starts', { sequence: sequence.name })}>Pending starts</Link>
        )}
      </div>
    </Panel>
  );
}

function concurrencyText({ key, limit, when_full }: Member<'concurrency'>): ReactNode {
  return (
    <>
      At most {formatCount(limit)} at once{by(key)}; {WHEN_FULL[when_full ?? 'queue']}
    </>
  );
}

function throttleText({ key, limit, per_ms, burst }: Member<'throttle'>): ReactNode {
  return (
    <>
      At most {countOf(limit, 'start')} in {formatDuration(per_ms)}
      {by(key)}
      {burst != null && burst < limit && `, ${formatCount(burst)} of them at once`}; further ones
      are put off
    </>
  );
}

function debounceText({ key, wait_ms, max_wait_ms }: Member<'debounce'>): ReactNode {
  return (
    <>
      Of creations in quick succession{by(key)} only the last one starts, {formatDuration(wait_ms)}{' '}
      after it
      {max_wait_ms != null && ` and at most ${formatDuration(max_wait_ms)} after the first`}
    </>
  );
}

function batchText({ key, size, wait_ms }: Member<'batch'>): ReactNode {
  return (
    <>
      One instance starts for up to {countOf(size, 'creation')}
      {by(key)}, at most {formatDuration(wait_ms)} after the first
    </>
  );
}

function cancelText(events: Member<'cancel_on'>): ReactNode {
  return (
    <ul>
      {events.map(({ event, key }) => (
        <li key={`${event} ${key}`}>
          <code>{event}</code>
          {key != null && (
            <>
              {' '}
              with the key <code>{key}</code>
            </>
          )}
        </li>
      ))}
    </ul>
  );
}

/** Whom a limit is for. @param key a template; absent: one for all */
function by(key: string | null | undefined): ReactNode {
  if (key == null) return null;
  return (
    <>
      {' '}
      for each <code>{key}</code>
    </>
  );
}
