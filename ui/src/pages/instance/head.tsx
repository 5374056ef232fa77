/** The facts about an instance: sequence, times, origin and labels. */

import type { TaskInstance } from 'durable-workflow-engine-client';
import { Link } from 'wouter';
import { CopyButton, ShortId } from '../../components/copy.tsx';
import { InstanceLink } from '../../components/instance-link.tsx';
import { Facts, type FactValues } from '../../components/page.tsx';
import { Elapsed, Time } from '../../components/time.tsx';
import { formatDuration, wordsOf } from '../../lib/format.ts';
import styles from './instance.module.css';
import { scheduleOf } from './places.ts';
import type { Run } from './run.ts';

export function AboutLine({ run }: { readonly run: Run }) {
  const { instance, named } = run;
  return (
    <span className={styles.about}>
      {named && (
        <Link href={`/sequences/${named.id}`}>
          {named.namespace} · version {named.version}
        </Link>
      )}
      <span className={styles.withCopy}>
        <code className={styles.id}>{instance.id}</code>
        <CopyButton text={instance.id} label="Copy the id" />
      </span>
    </span>
  );
}

export function InstanceFacts({ run }: { readonly run: Run }) {
  const { instance, explanation, isOpen } = run;
  const { started_at } = instance.context.runtime;
  const { parent_instance_id: parent, idempotency_key } = instance;
  const schedule = scheduleOf(idempotency_key);
  // Its start time has passed.
  const isQueued = explanation?.waiting_for.some(({ kind }) => kind === 'slot');
  const ended = isOpen ? undefined : (explanation?.since ?? instance.updated_at);
  const from = started_at ?? instance.created_at;
  return (
    <section className={styles.facts} aria-label="About the instance">
      <Facts
        facts={{
          Created: <Time at={instance.created_at} />,
          Resumes: isOpen && instance.next_fire_at !== null && !isQueued && (
            <Time at={instance.next_fire_at} />
          ),
          Ended: !isOpen && <Time at={ended} />,
          Elapsed: <Elapsed from={from} to={ended} />,
          Parent: parent && <InstanceLink id={parent} />,
          Schedule: schedule && (
            <Link href={`/schedules/${schedule.id}`}>
              <ShortId id={schedule.id} />
            </Link>
          ),
          Priority: instance.priority !== 'Normal' && instance.priority,
          'Time zone': instance.timezone !== 'UTC' && instance.timezone,
          Timeout: instance.timeout !== undefined && formatDuration(instance.timeout),
          'Concurrency key':
            instance.concurrency_key &&
            `${instance.concurrency_key} (${instance.max_concurrency ?? 1} at once)`,
          'Cancelled by':
            isOpen &&
            explanation?.cancel_on
              ?.map(({ event, key }) =>
                key === undefined ? event : `${event} with the key ${key}`,
              )
              .join(', '),
          'Dry run': instance.context.runtime.dry_run === true && 'no external effects',
          ...labelsOf(instance.metadata),
          'Idempotency key': idempotency_key !== undefined && (
            <span className={styles.withCopy}>
              <ShortId id={idempotency_key} />
              <CopyButton text={idempotency_key} label="Copy the idempotency key" />
            </span>
          ),
        }}
      />
    </section>
  );
}

/** The Data tab has all of the metadata. */
const LABELS_SHOWN = 8;
const LABEL_CHARACTERS = 80;

/** Names that begin with `_` are reserved for the engine. */
function labelsOf(metadata: TaskInstance['metadata']): FactValues {
  const labels = Object.entries(metadata)
    .filter(([name]) => !name.startsWith('_'))
    .slice(0, LABELS_SHOWN)
    .map(([name, value]) => {
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      const isLong = text.length > LABEL_CHARACTERS;
      return [wordsOf(name), isLong ? `${text.slice(0, LABEL_CHARACTERS)}…` : text];
    });
  return Object.fromEntries(labels);
}
