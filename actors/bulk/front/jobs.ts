/**
 * Runs bulk jobs window by window; tenants take turns. The row of a job has its position. A unit that changes an
 * instance for a job also inserts a mark, which stays until the change is counted, so that a restart changes no instance
 * twice. A request runs its own job for as long as it waits for the result.
 */

import type { BulkJob, BulkOperation } from '../../../schema/bulk-job.js';
import { BackgroundJob } from '../../../src/base/background-job.js';
import type { Clock, TimerHandle } from '../../../src/base/clock.js';
import { EngineError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { UnixMs } from '../../../src/base/time.js';
import type { ChangeCounts } from '../../instance/change-many.js';
import type { Candidates } from '../../instance/front/instance-reads.js';
import type { BulkProgress } from '../jobs.js';
import type { BulkJobStanding } from './room.js';
import {
  added,
  type BulkCounts,
  type BulkWork,
  changeWindow,
  NOTHING_YET,
  restMs,
  type WindowDeps,
  windowSize,
  workOf,
} from './work.js';

export interface BulkJobsDeps extends Pick<WindowDeps, 'repeating' | 'orphans'> {
  readonly clock: Clock;
  readonly log: Logger;
  readonly now: () => UnixMs;
  /** The oldest job of each tenant that is open and does not rest. */
  readonly open: (rows: number) => Promise<readonly { readonly id: string }[]>;
  /** When the first resting job continues. */
  readonly nextAt: () => Promise<UnixMs | undefined>;
  /** Reads the job and its uncounted changes in one snapshot. */
  readonly standing: (id: string) => Promise<BulkJobStanding | undefined>;
  readonly candidates: (work: BulkWork, limit: number, place: string | null) => Promise<Candidates>;
  /** Changes the instances and inserts marks of the job. */
  readonly change: (
    job: string,
    ...args: Parameters<WindowDeps['changeMany']>
  ) => Promise<ChangeCounts>;
  readonly progress: (id: string, progress: BulkProgress) => Promise<BulkJob>;
}

/** What became of a request that ran its job itself. */
export interface Inline {
  readonly counts: BulkCounts;
  /** The job, if it continues in the background or was cancelled. */
  readonly job: BulkJob | undefined;
}

const TENANTS_AT_ONCE = 1_000;
const FIRST_AFTER_MS = 500;
/** The interval of retries; a new bulk job wakes the background job. */
const EVERY_MS = 5_000;

export class BulkJobs extends BackgroundJob {
  readonly #deps: BulkJobsDeps;
  /** Jobs that their requests run. */
  readonly #inline = new Set<string>();
  /** Paced jobs that have rested for what an interrupted window had changed. */
  readonly #rested = new Set<string>();
  #nextTimer: TimerHandle;

  constructor(deps: BulkJobsDeps) {
    const { clock, log } = deps;
    super({
      clock,
      log,
      name: 'bulk jobs',
      firstAfterMs: FIRST_AFTER_MS,
      everyMs: EVERY_MS,
      run: () => this.work(),
    });
    this.#deps = deps;
  }

  override stop(): void {
    this.#deps.clock.clearTimeout(this.#nextTimer);
    super.stop();
  }

  /**
   * Runs a new job until `isLate`. What is left continues in the background, also when a window fails.
   *
   * @param begin commits the job while the first window is read
   */
  async runInline(
    id: string,
    work: BulkWork,
    begin: () => Promise<BulkJob>,
    isLate: () => boolean,
  ): Promise<Inline> {
    this.#inline.add(id);
    try {
      const { end, ...inline } = await this.#windows(id, work, begin, isLate);
      // The changes are durable: if their count is lost, the job continues and counts their marks.
      void end?.catch(() => this.wake()).finally(() => this.#inline.delete(id));
      if (end === undefined) this.#inline.delete(id);
      return inline;
    } catch (error) {
      await this.#fail(id, error instanceof Error ? error.message : String(error)).catch(() => {});
      this.#inline.delete(id);
      throw error;
    }
  }

  async #windows(
    id: string,
    work: BulkWork,
    begin: () => Promise<BulkJob>,
    isLate: () => boolean,
  ): Promise<Inline & { readonly end: Promise<unknown> | undefined }> {
    const { candidates, change, progress } = this.#deps;
    const changeMany: WindowDeps['changeMany'] = (...args) => change(id, ...args);
    const read = (counts: BulkCounts, place: string | null) => {
      const size = windowSize(work, counts.matched);
      return size === 0 ? NO_CANDIDATES : candidates(work, size, place);
    };
    let counts = NOTHING_YET;
    let place: string | null = null;
    let [job, window] = await allOfBoth(begin(), read(counts, place));
    for (;;) {
      const { found, next } = window;
      const changed = await changeWindow(work, found, { ...this.#deps, changeMany });
      counts = added(counts, changed);
      const settled = found.map((candidate) => candidate.id);
      const isEnd = next === undefined || windowSize(work, counts.matched) === 0;
      const from = place;
      place = next ?? place;
      const told = { counts: changed, from, place, settled, error: null };
      if (isEnd) {
        const end = progress(id, { ...told, end: 'completed' });
        return { counts, job: undefined, end };
      }
      [job, window] = await allOfBoth(
        progress(id, { ...told, end: undefined }),
        read(counts, place),
      );
      if (job.state !== 'running' || isLate()) return { counts, job, end: undefined };
    }
  }

  async work(): Promise<void> {
    const { clock, now, nextAt } = this.#deps;
    clock.clearTimeout(this.#nextTimer);
    await this.#allWindows();
    const at = this.isStopped ? undefined : await this.step(nextAt);
    if (at === undefined || this.isStopped) return;
    this.#nextTimer = clock.setTimeout(() => this.wake(), Math.max(0, at - now()));
  }

  async #allWindows(): Promise<void> {
    for (let isMoving = true; isMoving && !this.isStopped; ) {
      isMoving = false;
      for (const { id } of await this.step(() => this.#deps.open(TENANTS_AT_ONCE))) {
        if (this.isStopped) return;
        if (this.#inline.has(id)) continue;
        if (await this.step(() => this.#turnOf(id))) isMoving = true;
      }
    }
  }

  /** Returns whether the job made progress. A failure does not stop other jobs. */
  async #turnOf(id: string): Promise<boolean> {
    try {
      return await this.#oneWindow(id);
    } catch (error) {
      if (error instanceof EngineError && !PASSING.has(error.status)) {
        return this.#fail(id, error.message);
      }
      this.#deps.log.debug({ err: error, job: id }, 'background step failed; trying again');
      return false;
    }
  }

  async #oneWindow(id: string): Promise<boolean> {
    const { standing, candidates, change, progress } = this.#deps;
    const row = await standing(id);
    if (row === undefined || row.ended_at !== null) return false;
    const { place: from, matched, tenant_id, traceparent, asked_by } = row;
    const uncounted = new Set(JSON.parse(row.uncounted) as string[]);
    const all = [...uncounted];
    if (row.state === 'cancelling') return this.#end(row, 'cancelled', all);
    const asked = { operation: row.operation as BulkOperation, request: JSON.parse(row.request) };
    const sender = { traceparent: traceparent ?? undefined, by: asked_by ?? undefined };
    const work = workOf(asked, tenant_id, sender);
    if (work.perMinute !== undefined && all.length > 0 && !this.#rested.delete(id)) {
      // What an interrupted window has changed counts for the pace.
      this.#rested.add(id);
      const rest = { counts: NOTHING_YET, settled: [], restMs: restMs(work, all.length) };
      await progress(id, { ...rest, from, place: from, end: undefined, error: null });
      return true;
    }
    const size = windowSize(work, matched + uncounted.size);
    if (size === 0) return this.#end(row, 'completed', all);
    const { found, next } = await candidates(work, size, from);
    const fresh = found.filter((candidate) => !uncounted.has(candidate.id));
    const changeMany: WindowDeps['changeMany'] = (...args) => change(id, ...args);
    const counts = await changeWindow(work, fresh, { ...this.#deps, changeMany });
    const looked = found.map((candidate) => candidate.id);
    if (next === undefined) {
      const settled = [...new Set([...looked, ...all])];
      return this.#end(row, 'completed', settled, added(counts, appliedBefore(all.length)));
    }
    // Marks of instances that may match again in a later window stay.
    const repeated = appliedBefore(found.length - fresh.length);
    const settled = work.isDryRun ? [] : looked;
    const counted = { counts: added(counts, repeated), from, place: next, settled };
    const rest = restMs(work, counts.applied);
    await progress(id, { ...counted, end: undefined, error: null, restMs: rest });
    return true;
  }

  async #fail(id: string, error: string): Promise<boolean> {
    const row = await this.#deps.standing(id);
    if (row === undefined || row.ended_at !== null) return false;
    const settled = JSON.parse(row.uncounted) as string[];
    return this.#end(row, 'failed', settled, appliedBefore(settled.length), error);
  }

  async #end(
    { id, place }: BulkJobStanding,
    end: BulkProgress['end'],
    settled: readonly string[],
    counts: BulkCounts = appliedBefore(settled.length),
    error: string | null = null,
  ): Promise<true> {
    await this.#deps.progress(id, { counts, from: place, place, settled, end, error });
    return true;
  }
}

const NO_CANDIDATES: Candidates = { found: [], next: undefined };

/** Rejects once neither is in progress any more. */
async function allOfBoth<A, B>(one: Promise<A>, other: B | Promise<B>): Promise<[A, B]> {
  const [a, b] = await Promise.allSettled([one, other]);
  if (a.status === 'rejected') throw a.reason;
  if (b.status === 'rejected') throw b.reason;
  return [a.value, b.value];
}

const PASSING: ReadonlySet<number> = new Set([409, 429, 500, 503]);

function appliedBefore(count: number): BulkCounts {
  return { ...NOTHING_YET, matched: count, applied: count };
}
