/** The facts about an instance: sequence, times, origin and labels. */

import type { TaskInstance } from 'durable-workflow-engine-client';
import { Link } from 'wouter';
import { CopyButton, ShortId } from '../../components/copy.tsx';
import { type Fact, Facts } from '../../components/page.tsx';
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
  // Its start time has passed.
  const isQueued = explanation?.waiting_for.some(({ kind }) => kind === 'slot');
  const ended = isOpen ? undefined : (explanation?.since ?? instance.updated_at);
  const from = started_at ?? instance.created_at;
  return (
    <section className={styles.facts} aria-label="About the instance">
      <Facts
        facts={[
          ['Created', <Time key="" at={instance.created_at} />],
          isOpen
            ? instance.next_fire_at !== null &&
              !isQueued && ['Resumes', <Time key="" at={instance.next_fire_at} />]
            : ['Ended', <Time key="" at={ended} />],
          ['Elapsed', <Elapsed key="" from={from} to={ended} />],
          ...originsOf(run),
          instance.priority !== 'Normal' && ['Priority', instance.priority],
          instance.timezone !== 'UTC' && ['Time zone', instance.timezone],
          instance.timeout !== undefined && ['Timeout', formatDuration(instance.timeout)],
          instance.concurrency_key !== undefined && [
            'Concurrency key',
            `${instance.concurrency_key} (${instance.max_concurrency ?? 1} at once)`,
          ],
          isOpen &&
            explanation?.cancel_on !== undefined && [
              'Cancelled by',
              explanation.cancel_on
                .map(({ event, key }) =>
                  key === undefined ? event : `${event} with the key ${key}`,
                )
                .join(', '),
            ],
          instance.context.runtime.dry_run === true && ['Dry run', 'no external effects'],
          ...labelsOf(instance.metadata),
          instance.idempotency_key !== undefined && [
            'Idempotency key',
            <span key="" className={styles.withCopy}>
              <ShortId id={instance.idempotency_key} />
              <CopyButton text={instance.idempotency_key} label="Copy the idempotency key" />
            </span>,
          ],
        ]}
      />
    </section>
  );
}

/** The Data tab has all of the metadata. */
const LABELS_SHOWN = 8;
const LABEL_CHARACTERS = 80;

/** Names that begin with `_` are reserved for the engine. */
function labelsOf(metadata: TaskInstance['metadata']): readonly Fact[] {
  return Object.entries(metadata)
    .filter(([name]) => !name.startsWith('_'))
    .slice(0, LABELS_SHOWN)
    .map(([name, value]) => {
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      return [
        wordsOf(name),
        text.length > LABEL_CHARACTERS ? `${text.slice(0, LABEL_CHARACTERS)}…` : text,
      ];
    });
}

function originsOf({ instance }: Run): readonly (Fact | false)[] {
  const { parent_instance_id: parent, idempotency_key } = instance;
  const schedule = scheduleOf(idempotency_key);
  return [
    parent !== undefined && [
      'Parent',
      <Link key="" href={`/instances/${parent}`}>
        <ShortId id={parent} />
      </Link>,
    ],
    schedule !== undefined && [
      'Schedule',
      <Link key="" href={`/schedules/${schedule.id}`}>
        <ShortId id={schedule.id} />
      </Link>,
    ],
  ];
}
