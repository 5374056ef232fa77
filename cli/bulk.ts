/**
 * Bulk changes of instances: counts first, asks for confirmation, and follows the job. One command changes at most as
 * many instances as one job may, and reports if there may be more, so that it never changes more than the user
 * confirmed.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type { BatchAction, BatchActionResult, BulkJob } from '../client/src/index.js';
import { CommandError, EXIT, type ExitCode, usageError } from './exit.js';
import type { Session } from './session.js';

/** The server's limit per request. */
const JOB_MAX = 10_000;
const POLL_MS = { min: 50, max: 1_000 } as const;

export interface ManyChange {
  readonly action: BatchAction['action'];
  readonly filter: BatchAction['filter'];
  readonly signalType?: string;
  readonly payload?: unknown;
  /** Includes children whose parents have continued without them. */
  readonly orphans?: boolean;
  /** The maximum number of instances changed per minute. */
  readonly perMinute?: number | undefined;
  /** Past participle for messages such as `5 instances would be cancelled`. */
  readonly done: string;
  /** The user has confirmed in advance. */
  readonly isAgreed: boolean;
  readonly isDryRun: boolean;
}

interface Counts {
  matched: number;
  applied: number;
  skipped: number;
  failed: number;
  /** Only in a dry run: the number of instances whose external effects would be repeated. */
  repeats_effects: number;
}

/** @throws CommandError if the user does not confirm */
export async function changeMany(session: Session, change: ManyChange): Promise<ExitCode> {
  const { out } = session;
  const body: BatchAction = {
    filter: change.filter,
    action: change.action,
    limit: JOB_MAX,
    ...(change.signalType === undefined ? {} : { signal_type: change.signalType }),
    ...(change.payload === undefined ? {} : { payload: change.payload }),
    ...(change.orphans === true ? { orphans: true } : {}),
    ...(change.perMinute === undefined ? {} : { per_minute: change.perMinute }),
  };
  const counted = await countOf(session, body);
  if (change.isDryRun) {
    if (out.isJson) out.json(counted);
    else out.line(`${instances(counted.applied)} would be ${change.done}${repeatsText(counted)}.`);
    return EXIT.ok;
  }
  if (counted.applied > 0) await expectAgreement(session, change, counted.applied, counted);
  const total = counted.applied === 0 ? counted : await runJob(session, body, counted, change.done);
  if (out.isJson) out.json(total);
  else out.line(resultText(total, change.done));
  if (total.matched >= JOB_MAX) out.note('There may be more. Run the command again to continue.');
  return total.failed > 0 ? EXIT.failed : EXIT.ok;
}

/** Asks for confirmation unless it was given in advance. @throws CommandError if the user does not confirm */
export async function expectAgreement(
  { asker }: Session,
  { isAgreed, done }: Pick<ManyChange, 'isAgreed' | 'done'>,
  count: number,
  counted: Pick<Counts, 'repeats_effects'> = { repeats_effects: 0 },
): Promise<void> {
  if (isAgreed) return;
  const what = instances(count);
  const repeats = repeatsText(counted);
  if (asker.isThere) return asker.confirm(`${what} will be ${done}${repeats}. Continue?`);
  throw usageError(
    `${what} would be ${done}${repeats}, and there is no terminal to ask for confirmation`,
    'Use --yes to confirm, or --dry-run to count only.',
  );
}

/** Empty if no effects are repeated. */
function repeatsText({ repeats_effects: count }: Pick<Counts, 'repeats_effects'>): string {
  if (count === 0) return '';
  return `; ${count.toLocaleString('en')} of them ${count === 1 ? 'repeats' : 'repeat'} external effects`;
}

function resultText({ applied, skipped, failed }: Counts, done: string): string {
  const rest = [
    ...(skipped > 0 ? [`${skipped.toLocaleString('en')} skipped`] : []),
    ...(failed > 0 ? [`${failed.toLocaleString('en')} refused`] : []),
  ];
  return `${[`${instances(applied)} ${done}`, ...rest].join(', ')}.`;
}

async function countOf({ client }: Session, body: BatchAction): Promise<Counts> {
  const counted = await client.instances.batchAction({ ...body, dry_run: true });
  return countsOf(isJob(counted) ? await ended(client, counted) : counted);
}

export const instances = (count: number): string =>
  `${count.toLocaleString('en')} ${count === 1 ? 'instance' : 'instances'}`;

async function runJob(
  { client, out }: Session,
  body: BatchAction,
  counted: Counts,
  done: string,
): Promise<Counts> {
  const answer = await client.instances.batchAction(body, { query: { async: true } });
  if (!isJob(answer)) return countsOf(answer);
  const show = (job: BulkJob) => {
    const share = Math.min(job.matched / Math.max(counted.matched, 1), 1);
    const percent = Math.floor(share * 100);
    out.progress(
      `${percent} % · ${instances(job.applied)} ${done} · job ${job.id} continues if you exit`,
    );
  };
  const job = await ended(client, answer, show);
  out.endProgress();
  return countsOf(job);
}

async function ended(
  client: Session['client'],
  job: BulkJob,
  onProgress: (job: BulkJob) => void = () => undefined,
): Promise<BulkJob> {
  let seen = job;
  for (let waitMs: number = POLL_MS.min; OPEN.has(seen.state); ) {
    onProgress(seen);
    await pause(waitMs);
    waitMs = Math.min(waitMs * 2, POLL_MS.max);
    seen = await client.bulkJobs.get(seen.id);
  }
  if (seen.state === 'completed') return seen;
  throw new CommandError('failed', `job ${seen.id} ${seen.state}: ${seen.error ?? 'by request'}`);
}

const OPEN: ReadonlySet<BulkJob['state']> = new Set(['running', 'cancelling']);

const isJob = (answer: BatchActionResult | BulkJob): answer is BulkJob => 'operation' in answer;

const countsOf = ({ matched, applied, skipped, failed, repeats_effects }: Counts): Counts => ({
  matched,
  applied,
  skipped,
  failed,
  // Older servers do not count them.
  repeats_effects: repeats_effects ?? 0,
});
