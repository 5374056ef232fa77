/** What the instance is doing now and why, in a few sentences, each with its actions. */

import type { Failure, InstanceState, TaskInstance, Wait } from 'durable-workflow-engine-client';
import { CircleCheck, CirclePlay, CircleSlash, type LucideIcon, RotateCw } from 'lucide-react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { AsOf } from '../../components/as-of.tsx';
import { Badge } from '../../components/badge.tsx';
import { Button, LinkButton } from '../../components/button.tsx';
import { ErrorBox } from '../../components/error-box.tsx';
import { Panel } from '../../components/page.tsx';
import { useHold, useSteady } from '../../components/steady.ts';
import { Elapsed, Time } from '../../components/time.tsx';
import { attemptsText } from '../../flow/run-states.ts';
import { countOf } from '../../lib/format.ts';
import { useInstantAction } from './action-bar.tsx';
import { Awaited } from './awaited.tsx';
import styles from './now.module.css';
import { FAILURE_WORDS, iterationText } from './places.ts';
import { iterationAt, pathIn, type Run, stepIn } from './run.ts';
import { WaitRow } from './wait-row.tsx';
import { Warnings } from './warnings.tsx';

/** The list of blocks shows the others. */
const WAITS_SHOWN = 5;

export function Now({ run }: { readonly run: Run }) {
  const { instance, explanation } = run;
  const [isHeld, hold] = useHold();
  // The explanation is of a state that the instance has left; the next one is being read.
  const waits = run.isOpen ? (explanation?.waiting_for.slice(0, WAITS_SHOWN) ?? []) : [];
  const { rows } = useSteady(waits, keyOf, { isHeld, of: instance.id });
  const isBehind = rows.some(({ isGone }) => isGone);
  if (instance.failure !== null && instance.state === 'failed' && !isBehind) {
    return (
      <Panel title="Why it failed">
        <WhyItFailed run={run} failure={instance.failure} />
        <RunWarnings run={run} />
      </Panel>
    );
  }
  if (explanation === undefined) {
    return (
      <Panel title="Now">
        <Awaited query={run.queries.explanation} height={72} />
      </Panel>
    );
  }
  const more = explanation.waiting_count - WAITS_SHOWN;
  return (
    <Panel
      title={run.isOpen ? 'Now' : 'Outcome'}
      isFlush={rows.length > 0}
      actions={run.isOpen && <AsOf query={run.queries.explanation} />}
    >
      {run.isOpen && instance.cancelling && <Cancelling cancelling={instance.cancelling} />}
      {rows.length === 0 ? (
        <State run={run} />
      ) : (
        <ul className={styles.waits} {...hold}>
          {rows.map(({ row, isGone }) => (
            <li key={keyOf(row)}>
              <WaitRow run={run} wait={row} isGone={isGone} />
            </li>
          ))}
          {more > 0 && (
            <li className={styles.more}>
              and {countOf(more, 'further wait')}, shown on the blocks below
            </li>
          )}
        </ul>
      )}
      <RunWarnings run={run} />
    </Panel>
  );
}

function RunWarnings({ run }: { readonly run: Run }) {
  return (
    <Warnings
      warnings={run.explanation?.warnings}
      hrefOfBlock={(id) => run.hrefOfBlock(pathIn(run, id))}
    />
  );
}

/** Otherwise it would look like any other waiting instance. */
function Cancelling({ cancelling }: { readonly cancelling: TaskInstance['cancelling'] & {} }) {
  const { since, reason, waiting_for } = cancelling;
  return (
    <p className={styles.cancelling}>
      The instance {reason === 'cancel' ? 'was cancelled' : 'timed out'} <Time at={since} /> and
      ends when its protected work is done: {waiting_for.join(', ')}.
    </p>
  );
}

function keyOf({ kind, path, task_id, approval_id }: Wait): string {
  return [kind, path, task_id, approval_id].join(' ');
}

const ENDS: Readonly<
  Partial<Record<InstanceState, readonly [LucideIcon, string, string | undefined]>>
> = {
  completed: [CircleCheck, 'Completed', styles.ok],
  cancelled: [CircleSlash, 'Cancelled', undefined],
};

function State({ run }: { readonly run: Run }) {
  const { instance, explanation } = run;
  const from = instance.context.runtime.started_at ?? instance.created_at;
  const since = explanation?.since ?? instance.updated_at;
  const [Icon, word, tone] = ENDS[instance.state] ?? [CirclePlay, undefined, styles.info];
  return (
    <p className={styles.state}>
      <Icon size={20} aria-hidden className={tone} />
      <span>
        {word === undefined ? (
          explanation?.summary
        ) : (
          <>
            {word} <Time at={since} /> after <Elapsed from={from} to={since} />.
          </>
        )}
      </span>
    </p>
  );
}

function WhyItFailed({ run, failure }: { readonly run: Run; readonly failure: Failure }) {
  const { allowed } = useEngine();
  const act = useInstantAction(run);
  const { block_id, handler, attempt, code, message, at } = failure;
  const iteration = block_id === null ? '' : iterationAt(run, block_id, failure.path);
  const most = stepIn(run, block_id)?.retry?.max_attempts;
  return (
    <div className={styles.failure}>
      <p className={styles.message}>{message}</p>
      <p>
        {FAILURE_WORDS[code] ?? ''} <Badge tone="danger">{code}</Badge>
      </p>
      <p className={styles.facts}>
        {block_id !== null && (
          <span>
            at{' '}
            <Link href={run.hrefOfBlock(pathIn(run, block_id), iteration)}>
              <code>{pathIn(run, block_id)}</code>
            </Link>
          </span>
        )}
        {attempt !== null && (
          <span>{attemptsText(attempt + 1, most) || `attempt ${attempt + 1}`}</span>
        )}
        {iteration !== '' && <span>{iterationText(iteration)}</span>}
        {handler !== null && (
          <span>
            handler <code>{handler}</code>
          </span>
        )}
        <Time at={at} />
      </p>
      <p className={styles.actions}>
        {allowed.operate && (
          <>
            <Button
              kind="primary"
              icon={RotateCw}
              isBusy={act.isBusy}
              onClick={() => act.run('retry')}
            >
              {block_id === null ? 'Retry' : `Retry from ${block_id}`}
            </Button>
            <Button onClick={() => run.ask('retry-with-data')}>Change the data and retry</Button>
          </>
        )}
        {code === 'child_failed' && (
          <LinkButton href={`/instances/${run.instance.id}/children`}>View the child</LinkButton>
        )}
      </p>
      {act.error !== null && <ErrorBox error={act.error} />}
    </div>
  );
}
