/**
 * Changes of many instances: the server counts first, the person is asked, and the job behind the answer is
 * followed. The server changes at most so many in one job, so that jobs follow one another until all that were
 * counted have had their turn.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type { BatchAction, BatchActionResult, BulkJob } from '../client/src/index.js';
import { CommandError, EXIT, type ExitCode, usageError } from './exit.js';
import type { Session } from './session.js';

/** As many as one request may ask for. */
const JOB_MAX = 10_000;
const POLL_MS = { min: 50, max: 1_000 } as const;

export interface ManyChange {
  readonly action: BatchAction['action'];
  readonly filter: BatchAction['filter'];
  readonly signalType?: string;
  readonly payload?: unknown;
  /** Of the sentence `5 instances would be cancelled`. */
  readonly done: string;
  /** The person has agreed beforehand. */
  readonly isAgreed: boolean;
  readonly isDryRun: boolean;
}

interface Counts {
  matched: number;
  applied: number;
  skipped: number;
  failed: number;
}

/** @throws CommandError when nobody agrees */
export async function changeMany(session: Session, change: ManyChange): Promise<ExitCode> {
  const { out, asker, client } = session;
  const body: BatchAction = {
    filter: change.filter,
    action: change.action,
    limit: JOB_MAX,
    ...(change.signalType === undefined ? {} : { signal_type: change.signalType }),
    ...(change.payload === undefined ? {} : { payload: change.payload }),
  };
  const counted = await countOf(session, body);
  if (change.isDryRun) {
    if (out.isJson) out.json(counted);
    else out.line(`${instances(counted.applied, counted)} would be ${change.done}.`);
    return EXIT.ok;
  }
  if (counted.applied === 0) {
    if (out.isJson) out.json(counted);
    else out.line(`No instance is there to be ${change.done}.`);
    return EXIT.ok;
  }
  const question = `${instances(counted.applied, counted)} will be ${change.done}. Go on?`;
  if (!change.isAgreed) {
    if (!asker.isThere) {
      throw usageError(
        `${instances(counted.applied, counted)} would be ${change.done}, and nobody is there to agree`,
        'Give --yes to do it, or --dry-run to count only.',
      );
    }
    await asker.confirm(question);
  }
  const total = await runJobs(session, body, counted.matched, change.done);
  if (out.isJson) out.json(total);
  else {
    const rest = [
      ...(total.skipped > 0 ? [`${total.skipped.toLocaleString('en')} were skipped`] : []),
      ...(total.failed > 0 ? [`${total.failed.toLocaleString('en')} refused`] : []),
    ];
    const tail = rest.length === 0 ? '' : `; ${rest.join(', ')}`;
    out.line(`${instances(total.applied)} ${change.done}${tail}.`);
  }
  return total.failed > 0 ? EXIT.failed : EXIT.ok;
}

async function countOf({ client }: Session, body: BatchAction): Promise<Counts> {
  const counted = await client.instances.batchAction({ ...body, dry_run: true });
  return isJob(counted) ? countsOf(await ended(client, counted)) : countsOf(counted);
}

/** `10,000 or more instances` where the server stopped counting. */
function instances(count: number, { matched }: Pick<Counts, 'matched'> = { matched: 0 }): string {
  const more = matched >= JOB_MAX ? ' or more' : '';
  return `${count.toLocaleString('en')}${more} ${count === 1 && more === '' ? 'instance' : 'instances'}`;
}

async function runJobs(
  session: Session,
  body: BatchAction,
  counted: number,
  done: string,
): Promise<Counts> {
  const total = { matched: 0, applied: 0, skipped: 0, failed: 0 };
  for (;;) {
    const answer = await session.client.instances.batchAction(body, { query: { async: true } });
    const job = isJob(answer)
      ? await ended(session.client, answer, (seen) => show(session, total, seen, counted, done))
      : answer;
    const counts = countsOf(job);
    for (const name of ['matched', 'applied', 'skipped', 'failed'] as const)
      total[name] += counts[name];
    session.out.endProgress();
    // What was changed no longer matches, or is skipped: a round that changes nothing is the last one.
    if (counts.matched < JOB_MAX || counts.applied === 0) return total;
  }
}

function show({ out }: Session, total: Counts, job: BulkJob, counted: number, done: string): void {
  const at = total.matched + job.matched;
  const whole = Math.max(counted, at);
  const percent = whole === 0 ? 100 : Math.floor((at / whole) * 100);
  const changed = (total.applied + job.applied).toLocaleString('en');
  out.progress(`${percent} % · ${changed} ${done} · job ${job.id} goes on if you leave`);
}

async function ended(
  client: Session['client'],
  job: BulkJob,
  onProgress: (job: BulkJob) => void = () => undefined,
): Promise<BulkJob> {
  let seen = job;
  for (
    let waitMs: number = POLL_MS.min;
    seen.state === 'running' || seen.state === 'cancelling';
  ) {
    onProgress(seen);
    await pause(waitMs);
    waitMs = Math.min(waitMs * 2, POLL_MS.max);
    seen = await client.bulkJobs.get(seen.id);
  }
  if (seen.state === 'completed') return seen;
  throw new CommandError('failed', `job ${seen.id} ${seen.state}: ${seen.error ?? 'by request'}`);
}

const isJob = (answer: BatchActionResult | BulkJob): answer is BulkJob => 'operation' in answer;

const countsOf = ({ matched, applied, skipped, failed }: Counts): Counts => ({
  matched,
  applied,
  skipped,
  failed,
});
