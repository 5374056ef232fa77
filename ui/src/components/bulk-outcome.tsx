/** The result of a bulk change: how many instances it reached, which were refused and why, and links to them. */

import type { BatchActionResult, BulkJob } from 'durable-workflow-engine-client';
import { Link } from 'wouter';
import { useRead } from '../api/read.ts';
import { hrefOf } from '../lib/address.ts';
import { countOf, formatCount } from '../lib/format.ts';
import { outcomeText } from '../lib/outcome-text.ts';
import { StateBadge } from './badge.tsx';
import styles from './bulk-outcome.module.css';
import { Button } from './button.tsx';
import { Dialog, useClose } from './dialog.tsx';
import { InstanceLink } from './instance-link.tsx';
import { Loaded, NotReadAgain } from './loaded.tsx';
import { useJob } from './retry-outcome.tsx';

export type BulkAnswer = BatchActionResult | BulkJob;

export function isJob(answer: BulkAnswer): answer is BulkJob {
  return 'operation' in answer;
}

/** Changed instances are found by server time; the browser's clock may be ahead by this much. */
const CLOCKS_APART_MS = 60_000;

export interface BulkReach {
  /** Filters of the list of instances that changed instances still match. */
  readonly among: Readonly<Record<string, string | undefined>>;
  /** Instances that were selected one by one. */
  readonly ids?: readonly string[] | undefined;
}

/** @param props.done such as `retried` */
export function BulkOutcome(props: {
  readonly answer: BulkAnswer;
  readonly done: string;
  readonly reach: BulkReach;
  /** Unix ms. */
  readonly begunAt: number;
  /** The only instance that was retried, to see what comes of it. */
  readonly probe?: string | undefined;
  /** Retries the others after the probe. */
  readonly onGoOn: () => void;
}) {
  const { answer, done, reach, begunAt, probe, onGoOn } = props;
  const id = isJob(answer) ? answer.id : (answer.job_id ?? '');
  const job = useJob(id);
  const close = useClose();
  // The answer of a change that did not become a job has more to say.
  const seen = isJob(answer) ? (job.data ?? answer) : answer;
  const isGoingOn = isJob(seen) && seen.ended_at === null;
  const since = new Date(begunAt - CLOCKS_APART_MS).toISOString();
  return (
    <Dialog title="Result of the bulk change">
      <div role="status" className={styles.parts}>
        <p>
          {sentenceOf(seen, done)}
          {isGoingOn && ' It continues if you close this dialog.'}
        </p>
        {isJob(seen) && (
          <p>
            It {isGoingOn ? 'runs' : 'ran'} as a <Link href="/jobs">bulk job</Link>
            {seen.error === null ? '.' : `, which failed: ${seen.error}`}
          </p>
        )}
      </div>
      {done === 'retried' && job.data !== undefined && <p role="status">{outcomeText(job.data)}</p>}
      {probe !== undefined && <Probe id={probe} />}
      {id !== '' && <NotReadAgain query={job} />}
      <Refusals answer={seen} />
      {seen.applied > 0 && (
        <p>
          <Link href={hrefOf('/instances', { ...reach.among, updated_after: since })}>
            {reach.ids ? 'All instances changed since then' : 'View the changed instances'}
          </Link>
        </p>
      )}
      <p className={styles.actions}>
        {probe !== undefined && <Button onClick={onGoOn}>Retry the others…</Button>}
        <Button kind="primary" onClick={close}>
          Done
        </Button>
      </p>
    </Dialog>
  );
}

/** The result of one retried instance, live. */
function Probe({ id }: { readonly id: string }) {
  const instance = useRead('instances.get', [id], { live: id });
  return (
    <Loaded query={instance} height={24}>
      {({ state, failure }) => (
        <p role="status">
          <InstanceLink id={id} /> <StateBadge state={state} />{' '}
          {state === 'failed' && failure?.message}
        </p>
      )}
    </Loaded>
  );
}

function sentenceOf({ applied, skipped, failed }: BulkAnswer, done: string): string {
  const parts = [
    `${countOf(applied, 'instance')} ${done}`,
    skipped > 0 && `${formatCount(skipped)} skipped because the action does not apply to them`,
    failed > 0 && `${formatCount(failed)} refused`,
  ];
  return `${parts.filter(Boolean).join('; ')}.`;
}

function Refusals({ answer }: { readonly answer: BulkAnswer }) {
  const refusals = isJob(answer) ? [] : (answer.refusals ?? []);
  const more = answer.failed - refusals.length;
  if (answer.failed === 0) return null;
  return (
    <ul aria-label="Refused" className={styles.refused}>
      {refusals.map(({ instance_id, error }) => (
        <li key={instance_id}>
          <InstanceLink id={instance_id} /> {error}
        </li>
      ))}
      {more > 0 && (
        <li>
          {refusals.length > 0
            ? `and ${countOf(more, 'further instance')}`
            : `${countOf(more, 'instance')}: a job does not record reasons`}
        </li>
      )}
    </ul>
  );
}
