/** The attempts of one step, page by page: time, worker, input and result. In loops, those of one iteration. */

import type { StepAttempt } from 'durable-workflow-engine-client';
import { useState } from 'react';
import { useRead } from '../../api/read.ts';
import { Button } from '../../components/button.tsx';
import { Checkbox, TextField } from '../../components/field.tsx';
import { JsonView } from '../../components/json-view.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { StateWord } from '../../components/state-word.tsx';
import { Pager } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { shownIteration } from '../../flow/iteration.ts';
import type { OutlineBlock } from '../../flow/outline.ts';
import { useFilters } from '../../lib/address.ts';
import { formatDuration } from '../../lib/format.ts';
import styles from './block-panel.module.css';
import { iterationIn, iterationText, iterationTyped } from './places.ts';
import type { Run } from './run.ts';

const ATTEMPTS_A_PAGE = 10;

const WORDS: Partial<Record<StepAttempt['state'], string>> = {
  pending: 'queued',
  claimed: 'running',
  timed_out: 'timed out',
};

export function Attempts(props: {
  readonly run: Run;
  readonly block: OutlineBlock;
  readonly failedIteration: string | undefined;
}) {
  const { run, block, failedIteration } = props;
  const [filters, change] = useFilters();
  const isInLoop = block.repeats.length > 0;
  const iteration = isInLoop ? iterationIn(filters.pass ?? failedIteration) : undefined;
  const isFailed = filters.ended === 'failed';
  const cursor = filters.tries;
  const query = useAttemptsOf(run, block.id, iteration);
  return (
    <section className={styles.section}>
      <h3>Attempts</h3>
      {isInLoop && (
        <IterationFilter
          // Typed text belongs to the address it led to.
          key={`${filters.pass ?? failedIteration ?? ''}`}
          iteration={filters.pass ?? failedIteration ?? ''}
          isFailed={isFailed}
          onChange={(changes) => change({ ...changes, tries: undefined })}
        />
      )}
      <Loaded query={query} height={120}>
        {({ items, nextCursor }) => (
          <>
            {items.length === 0 && <NoAttempts isInLoop={isInLoop} />}
            <ul className={styles.tries}>
              {items.map((attempt, at) => (
                <li key={attempt.id}>
                  <Attempt attempt={attempt} block={block} isFirst={at === 0} />
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
 * Reads the attempts of a block that the address selects. A page that knows the block in advance can start the request
 * before it can draw the block.
 *
 * @param blockId undefined: nothing is requested
 */
export function useAttemptsOf(
  { instance: { id }, pollMs }: Run,
  blockId: string | undefined,
  iteration: string | undefined,
) {
  const [{ ended, tries: cursor }] = useFilters();
  const asked = {
    block_id: blockId ?? '',
    order: 'newest' as const,
    limit: ATTEMPTS_A_PAGE,
    cursor,
    ...iterationQuery(iteration),
    ...(ended === 'failed' && { state: ['failed', 'timed_out'] as const }),
  };
  return useRead('instances.attempts', [id, asked], {
    enabled: blockId !== undefined,
    keepsBefore: true,
    live: id,
    refetchInterval: pollMs,
  });
}

/** A single number selects an iteration of the outermost loop with everything that ran in it. */
function iterationQuery(iteration: string | undefined) {
  if (iteration === undefined) return {};
  return iteration.includes('.') ? { iteration } : { iteration_from: Number(iteration) };
}

function NoAttempts({ isInLoop }: { readonly isInLoop: boolean }) {
  return <p className="dim">{isInLoop ? 'No finished attempt matches.' : 'No attempts yet.'}</p>;
}

function IterationFilter(props: {
  readonly iteration: string;
  readonly isFailed: boolean;
  readonly onChange: (changes: { pass?: string; ended?: string | undefined }) => void;
}) {
  const { iteration, isFailed, onChange } = props;
  const [typed, setTyped] = useState(
    iterationIn(iteration) === undefined ? '' : shownIteration(iteration),
  );
  const asked = typed === '' ? '*' : iterationTyped(typed);
  return (
    <form
      className={styles.passes}
      onSubmit={(event) => {
        event.preventDefault();
        // Empty rather than undefined, which would select the iteration of the failure again.
        if (asked !== undefined) onChange({ pass: asked });
      }}
    >
      <TextField
        label="Iteration (from 1)"
        value={typed}
        onChange={setTyped}
        inputMode="decimal"
        placeholder="All"
        wrong={
          asked === undefined ? 'Enter a number from 1; in nested loops such as 3.1' : undefined
        }
      />
      <Button submits>Show</Button>
      <Checkbox
        label="Failed only"
        value={isFailed}
        onChange={(is) => onChange({ ended: is ? 'failed' : undefined })}
      />
    </form>
  );
}

function Attempt(props: {
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
  const name = `attempt ${attempt.attempt + 1}`;
  const iteration = block.repeats.length === 0 ? '' : iterationText(attempt.iteration);
  const label = [`${block.id}, ${name}`, iteration].filter(Boolean).join(', ');
  return (
    <details className={styles.try} open={isFirst || undefined}>
      <summary>
        <StateWord state={state} word={WORDS[state]} />
        <strong>{name}</strong>
        <span className="dim small">
          {[iteration, took, worker_id].filter(Boolean).join(' · ')} <Time at={ended_at ?? begun} />
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
