/**
 * Runs bulk jobs window by window; tenants take turns. The row of a job has its position. A unit that changes an
 * instance for a job also inserts a mark, which stays until the change is counted, so that a restart changes no instance
 * twice.
 */

import type { BulkOperation } from '../../../schema/bulk-job.js';
import { BackgroundJob } from '../../../src/base/background-job.js';
import type { Clock } from '../../../src/base/clock.js';
import { EngineError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
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
  type WindowDeps,
  windowSize,
  workOf,
} from './work.js';

export interface BulkJobsDeps extends Pick<WindowDeps, 'repeating' | 'orphans'> {
  readonly clock: Clock;
  readonly log: Logger;
  /** The oldest open job of each tenant. */
  readonly open: (rows: number) => Promise<readonly { readonly id: string }[]>;
  /** Reads the job and its uncounted changes in one snapshot. */
  readonly standing: (id: string) => Promise<BulkJobStanding | undefined>;
  readonly candidates: (work: BulkWork, limit: number, place: string | null) => Promise<Candidates>;
  /** Changes the instances and inserts marks of the job. */
  readonly change: (
    job: string,
    ...args: Parameters<WindowDeps['changeMany']>
  ) => Promise<ChangeCounts>;
  readonly progress: (id: string, progress: BulkProgress) => Promise<unknown>;
}

const TENANTS_AT_ONCE = 1_000;
const FIRST_AFTER_MS = 500;
/** The interval of retries; a new bulk job wakes the background job. */
const EVERY_MS = 5_000;

export class BulkJobs extends BackgroundJob {
  readonly #deps: BulkJobsDeps;

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

  async work(): Promise<void> {
    for (let isMoving = true; isMoving && !this.isStopped; ) {
      isMoving = false;
      for (const { id } of await this.step(() => this.#deps.open(TENANTS_AT_ONCE))) {
        if (this.isStopped) return;
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
    await progress(id, { ...counted, end: undefined, error: null });
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

const PASSING: ReadonlySet<number> = new Set([409, 429, 500, 503]);

function appliedBefore(count: number): BulkCounts {
  return { ...NOTHING_YET, matched: count, applied: count };
}
