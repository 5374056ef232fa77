/** The columns of the list of instances: how each is shown, sorted and exported. */

import type { TaskInstance } from 'durable-workflow-engine-client';
import { StateBadge } from '../../components/badge.tsx';
import { InstanceLink } from '../../components/instance-link.tsx';
import { SequenceName } from '../../components/sequence-name.tsx';
import type { Column } from '../../components/table.tsx';
import { Elapsed, Time } from '../../components/time.tsx';
import { wordsOf } from '../../lib/format.ts';
import { isOpen } from '../instance/choices.ts';
import styles from './instances.module.css';
import { METADATA, type SortKey } from './views.ts';

export interface InstanceColumn extends Column<TaskInstance> {
  /** The value in an export. */
  readonly text: (row: TaskInstance) => string | number;
  /** No index has this order: the newest instances are sorted by the page. */
  readonly sortedBy?: SortKey;
}

export const INSTANCE: InstanceColumn = {
  name: 'Instance',
  text: ({ id }) => id,
  cell: ({ id, metadata }) => (
    <>
      <InstanceLink id={id} />
      <span className={styles.metadata}>{summaryOf(metadata)}</span>
    </>
  ),
};

type TextOf = (row: TaskInstance) => string;

function texts(name: string, text: TextOf): InstanceColumn {
  return { name, text, cell: text };
}

function instants(name: string, text: TextOf): InstanceColumn {
  return { name, text, cell: (row) => <Time at={text(row)} /> };
}

const COLUMNS: Readonly<Record<string, InstanceColumn>> = {
  sequence: {
    name: 'Sequence',
    text: ({ sequence_id }) => sequence_id,
    cell: ({ sequence_id }) => <SequenceName id={sequence_id} />,
  },
  state: {
    name: 'State',
    text: ({ state }) => state,
    cell: ({ state, failure }) => (
      <>
        <StateBadge state={state} />
        {failure && (
          <span className={styles.failure} title={failure.message}>
            {failure.block_id && <code>{failure.block_id}</code>} {failure.message}
          </span>
        )}
      </>
    ),
  },
  step: {
    name: 'Current step',
    text: (row) => stepOf(row) ?? '',
    cell: (row) => {
      const step = stepOf(row);
      return step === undefined ? <span className="dim">–</span> : <code>{step}</code>;
    },
  },
  duration: {
    name: 'Duration',
    isNumber: true,
    sortedBy: 'duration',
    text: (row) => durationMs(row, Date.now()),
    cell: (row) => (
      <Elapsed
        from={row.context.runtime.started_at ?? row.created_at}
        to={isOpen(row.state) ? undefined : row.updated_at}
      />
    ),
  },
  attempts: {
    name: 'Attempts',
    isNumber: true,
    text: (row) => attemptsOf(row) ?? '',
    cell: (row) => attemptsOf(row) ?? <span className="dim">–</span>,
  },
  created: instants('Created', ({ created_at }) => created_at),
  changed: { ...instants('Changed', ({ updated_at }) => updated_at), sortedBy: 'changed' },
  namespace: texts('Namespace', ({ namespace }) => namespace),
  priority: texts('Priority', ({ priority }) => priority),
};

export const COLUMN_NAMES: readonly (readonly [key: string, label: string])[] = Object.entries(
  COLUMNS,
).map(([key, { name }]) => [key, name]);

/** Undefined for a key that is none, such as one of a later version. */
export function columnOf(key: string): InstanceColumn | undefined {
  if (!key.startsWith(METADATA)) return COLUMNS[key];
  const member = key.slice(METADATA.length);
  const text = ({ metadata }: TaskInstance) => {
    const value = metadata[member];
    if (value === undefined || value === null) return '';
    return typeof value === 'object' ? JSON.stringify(value) : String(value);
  };
  return {
    name: wordsOf(member),
    text,
    cell: (row) => <span className={styles.member}>{text(row)}</span>,
  };
}

/** Ended instances have no current step; a failed one has that which failed. */
function stepOf({ state, failure, context }: TaskInstance): string | undefined {
  if (state === 'failed') return failure?.block_id ?? undefined;
  return isOpen(state) ? (context.runtime.current_step ?? undefined) : undefined;
}

/** Of the current step, or of that which failed. */
function attemptsOf({ failure, context }: TaskInstance): number | undefined {
  const last = failure?.attempt ?? context.runtime.attempt;
  return last == null ? undefined : last + 1;
}

export function durationMs({ state, context, created_at, updated_at }: TaskInstance, now: number) {
  const end = isOpen(state) ? now : Date.parse(updated_at);
  return Math.max(0, end - Date.parse(context.runtime.started_at ?? created_at));
}

/** The metadata in one line; the page of the instance shows all of it. */
function summaryOf(metadata: TaskInstance['metadata']): string {
  return Object.entries(metadata)
    .filter(([, value]) => value !== null && typeof value !== 'object')
    .map(([name, value]) => `${name}: ${value}`)
    .join(', ');
}
