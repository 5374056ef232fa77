/** The result of a bulk change: how many instances it reached, which were refused and why, and links to them. */

import { useQuery } from '@tanstack/react-query';
import type { BatchActionResult, BulkJob } from 'durable-workflow-engine-client';
import { Link } from 'wouter';
import { useEngine } from '../api/engine.tsx';
import { hrefOf } from '../lib/address.ts';
import { countOf, formatCount } from '../lib/format.ts';
import styles from './bulk-outcome.module.css';
import { Button } from './button.tsx';
import { ShortId } from './copy.tsx';
import { Dialog } from './dialog.tsx';
import { NotReadAgain } from './loaded.tsx';

export type BulkAnswer = BatchActionResult | BulkJob;

export function isJob(answer: BulkAnswer): answer is BulkJob {
  return 'operation' in answer;
}

const READ_EVERY_MS = 1000;

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
  readonly onClose: () => void;
}) {
  const { answer, done, reach, begunAt, onClose } = props;
  const { client } = useEngine();
  const id = isJob(answer) ? answer.id : '';
  const job = useQuery({
    queryKey: ['bulkJobs.get', id],
    queryFn: ({ signal }) => client.bulkJobs.get(id, { signal }),
    enabled: id !== '',
    refetchInterval: ({ state }) => (state.data?.ended_at == null ? READ_EVERY_MS : false),
  });
  const seen = job.data ?? answer;
  const isGoingOn = isJob(seen) && seen.ended_at === null;
  const since = new Date(begunAt - CLOCKS_APART_MS).toISOString();
  return (
    <Dialog title="Result of the bulk change" onClose={onClose}>
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
        <Button kind="primary" onClick={onClose}>
          Done
        </Button>
      </p>
    </Dialog>
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
          <Link href={`/instances/${instance_id}`}>
            <ShortId id={instance_id} />
          </Link>{' '}
          {error}
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
