/** The tries of one step, page by page: when, by whom, with what, and how each ended. In loops, those of one pass. */

import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { StepAttempt } from 'durable-workflow-engine-client';
import { useState } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { Badge, type Tone } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { Checkbox, TextField } from '../../components/field.tsx';
import { JsonView } from '../../components/json-view.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Pager } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import type { OutlineBlock } from '../../flow/outline.ts';
import { shownPass } from '../../flow/words.ts';
import { useFilters } from '../../lib/address.ts';
import { formatDuration } from '../../lib/format.ts';
import styles from './block-panel.module.css';
import { passIn, passText, passTyped } from './places.ts';
import type { Run } from './run.ts';

const TRIES_A_PAGE = 10;

const TONES: Record<StepAttempt['state'], Tone> = {
  pending: 'wait',
  claimed: 'info',
  completed: 'ok',
  failed: 'danger',
  timed_out: 'danger',
  cancelled: 'idle',
};

const WORDS: Partial<Record<StepAttempt['state'], string>> = {
  pending: 'in the queue',
  claimed: 'with a worker',
  timed_out: 'timed out',
};

export function Tries(props: {
  readonly run: Run;
  readonly block: OutlineBlock;
  readonly failedPass: string | undefined;
}) {
  const { run, block, failedPass } = props;
  const [filters, change] = useFilters();
  const isInLoop = block.repeats.length > 0;
  const pass = isInLoop ? passIn(filters.pass ?? failedPass) : undefined;
  const isFailed = filters.ended === 'failed';
  const cursor = filters.tries;
  const query = useTriesOf(run, block.id, pass);
  return (
    <section className={styles.section}>
      <h3>Tries</h3>
      {isInLoop && (
        <PassFilter
          // What was typed is of the address that it led to.
          key={`${filters.pass ?? failedPass ?? ''}`}
          pass={filters.pass ?? failedPass ?? ''}
          isFailed={isFailed}
          onChange={(changes) => change({ ...changes, tries: undefined })}
        />
      )}
      <Loaded query={query} height={120}>
        {({ items, nextCursor }) => (
          <>
            {items.length === 0 && <NoTries isInLoop={isInLoop} />}
            <ul className={styles.tries}>
              {items.map((attempt, at) => (
                <li key={attempt.id}>
                  <Try attempt={attempt} block={block} isFirst={at === 0} />
                </li>
              ))}
            </ul>
            <Pager cursor={cursor} next={nextCursor} onPage={(tries) => change({ tries })} />
          </>
        )}
      </Loaded>
    </section>
  );
}

/**
 * The tries of a block that the address asks for. A page that knows which block it will show may ask before it can
 * draw it.
 *
 * @param blockId undefined: nothing is asked for
 */
export function useTriesOf(
  { instance: { id }, isOpen }: Run,
  blockId: string | undefined,
  pass: string | undefined,
) {
  const { client } = useEngine();
  const [{ ended, tries: cursor }] = useFilters();
  const asked = {
    block_id: blockId ?? '',
    order: 'newest' as const,
    limit: TRIES_A_PAGE,
    cursor,
    ...passAsked(pass),
    ...(ended === 'failed' && { state: ['failed', 'timed_out'] as const }),
  };
  return useQuery({
    queryKey: ['instances.attempts', id, asked],
    queryFn: async ({ signal }) => client.instances.attempts(id, asked, { signal }),
    enabled: blockId !== undefined,
    placeholderData: keepPreviousData,
    meta: { live: id },
    refetchInterval: isOpen ? 5_000 : false,
  });
}

/** A number alone is a pass of the outermost loop, with all that ran in it. */
function passAsked(pass: string | undefined) {
  if (pass === undefined) return {};
  return pass.includes('.') ? { iteration: pass } : { iteration_from: Number(pass) };
}

function NoTries({ isInLoop }: { readonly isInLoop: boolean }) {
  return (
    <p className="dim">
      {isInLoop ? 'No try that has ended is like this.' : 'No try has begun or ended yet.'}
    </p>
  );
}

function PassFilter(props: {
  readonly pass: string;
  readonly isFailed: boolean;
  readonly onChange: (changes: { pass?: string; ended?: string | undefined }) => void;
}) {
  const { pass, isFailed, onChange } = props;
  const [typed, setTyped] = useState(passIn(pass) === undefined ? '' : shownPass(pass));
  const asked = typed === '' ? '*' : passTyped(typed);
  return (
    <form
      className={styles.passes}
      onSubmit={(event) => {
        event.preventDefault();
        // Empty, not absent: that of the failure would come back.
        if (asked !== undefined) onChange({ pass: asked });
      }}
    >
      <TextField
        label="Pass, from 1"
        value={typed}
        onChange={setTyped}
        inputMode="decimal"
        placeholder="All"
        wrong={asked === undefined ? 'A number from 1, or such as 3.1 in nested loops' : undefined}
      />
      <Button submits>Show</Button>
      <Checkbox
        label="Failed only"
        isChecked={isFailed}
        onChange={(is) => onChange({ ended: is ? 'failed' : undefined })}
      />
    </form>
  );
}

function Try(props: {
  readonly attempt: StepAttempt;
  readonly block: OutlineBlock;
  readonly isFirst: boolean;
}) {
  const { attempt, block, isFirst } = props;
  const { state, error, worker_id, queued_at, started_at, ended_at } = attempt;
  const begun = started_at ?? queued_at;
  const took =
    begun !== null && ended_at !== null
      ? formatDuration(Math.max(Date.parse(ended_at) - Date.parse(begun), 0))
      : undefined;
  const written = block.source?.type === 'step' ? block.source.params : undefined;
  const name = `try ${attempt.attempt + 1}`;
  const label = [`${block.id}, ${name}`, passText(attempt.iteration)].filter(Boolean).join(', ');
  return (
    <details className={styles.try} open={isFirst || undefined}>
      <summary>
        <Badge tone={TONES[state]}>{WORDS[state] ?? state}</Badge>
        <strong>{name}</strong>
        <span className="dim small">
          {[passText(attempt.iteration), took, worker_id].filter(Boolean).join(' · ')}{' '}
          <Time at={ended_at ?? begun} />
        </span>
      </summary>
      <div className={styles.payloads}>
        {error !== null && (
          <p className={styles.wrong}>
            {error.message}
            {error.retryable === false && <span className="dim"> · not retryable</span>}
          </p>
        )}
        {attempt.overlay !== undefined && attempt.overlay !== null && (
          <Payload title="Item" value={attempt.overlay} label={`Item of ${label}`} />
        )}
        {attempt.params === undefined || attempt.params === null ? (
          written != null && (
            <Payload title="Input, as written" value={written} label={`Input of ${label}`} />
          )
        ) : (
          <Payload title="Input" value={attempt.params} label={`Input of ${label}`} />
        )}
        {attempt.output !== undefined && attempt.output !== null && error === null && (
          <Payload title="Output" value={attempt.output} label={`Output of ${label}`} />
        )}
      </div>
    </details>
  );
}

export function Payload(props: { title: string; value: unknown; label: string }) {
  return (
    <div>
      <h4 className={styles.payloadTitle}>{props.title}</h4>
      <JsonView value={props.value} label={props.label} />
    </div>
  );
}
