/**
 * The owner of bulk jobs, on the first shard. It caches no rows: each request reads, decides, and commits one unit. The
 * front thread does the work (`actors/bulk/front/jobs.ts`) and reports progress here.
 */

import type { BulkJob, BulkOperation } from '../../schema/bulk-job.js';
import { conflict, shareTaken } from '../../src/base/errors.js';
import { LIMITS } from '../../src/base/limits.js';
import { owned } from '../../src/base/tenancy.js';
import { isoTime } from '../../src/base/time.js';
import { BULK_CHANGE } from '../instance/tables.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Call, Operations, RouteOperations } from '../runtime/operation.js';
import { Service } from '../runtime/service.js';
import { Turn } from '../runtime/turn.js';
import { type BulkCounts, NOTHING_YET } from './front/work.js';
import { type BulkJobRow, type BulkLoads, wireJob } from './loads.js';
import { BULK_JOB } from './tables.js';

export interface BeginBulkJob {
  readonly id: string;
  readonly operation: BulkOperation;
  readonly request: object;
  readonly traceparent: string | undefined;
  readonly by: string;
}

export interface BulkProgress {
  readonly counts: BulkCounts;
  /** The expected position of the job. */
  readonly from: string | null;
  readonly place: string | null;
  /** Instances whose marks are deleted, because they are counted now or were not changed. */
  readonly settled: readonly string[];
  /** Undefined while the job continues. */
  readonly end: 'completed' | 'cancelled' | 'failed' | undefined;
  readonly error: string | null;
  /** How long a paced job rests. */
  readonly restMs?: number | undefined;
}

const FORGOTTEN_AT_ONCE = 100;

export class BulkJobs {
  readonly #deps: Kernel<BulkLoads>;
  /** Requests about one job are serialized, and so are new jobs of one tenant. */
  readonly #service: Service;

  readonly #routes = {
    'bulkJobs.cancel': { serve: (call) => this.#cancel(call) },
  } satisfies RouteOperations;
  readonly operations = {
    ...this.#routes,
    'bulkJobs.begin': { serve: (call: Call<BeginBulkJob>) => this.#begin(call) },
    'bulkJobs.progress': { serve: (call: Call<BulkProgress>) => this.#progress(call) },
  } satisfies Operations;

  constructor(deps: Kernel<BulkLoads>) {
    this.#deps = deps;
    this.#service = new Service('bulk-jobs', deps);
  }

  /** @throws EngineError 429 when the tenant has too many open jobs */
  #begin({ request: caller, tenant: tenant_id, body }: Call<BeginBulkJob>): void {
    const { loader, now } = this.#deps;
    this.#service.answer(caller, 200, `tenant:${tenant_id}`, async () => {
      const before = isoTime(now() - LIMITS.bulkJobKeptMs);
      const { open, old } = await this.#service.read(async () => ({
        open: await loader.openBulkJobs(tenant_id),
        old: await loader.oldBulkJobs(tenant_id, before, FORGOTTEN_AT_ONCE),
      }));
      const most = LIMITS.bulkJobsPerTenantMax;
      if (open >= most) {
        throw shareTaken(`${most} changes of many instances of this tenant are under way as jobs`);
      }
      const at = isoTime(now());
      const { id, operation, request } = body;
      const row = {
        id,
        tenant_id,
        operation,
        state: 'running',
        ...NOTHING_YET,
        error: null,
        place: null,
        traceparent: body.traceparent ?? null,
        asked_by: body.by,
        created_at: at,
        updated_at: at,
        ended_at: null,
        next_at: null,
      };
      const turn = new Turn(tenant_id, caller);
      turn.put(BULK_JOB.insert, row.id, { ...row, request: request as never });
      for (const job of old) turn.put(BULK_JOB.clear, job, { id: job });
      await this.#service.commit(turn, { key: `bulkJob:${row.id}` });
      return wireJob({ ...row, request: JSON.stringify(request) });
    });
  }

  /** Deletes the marks of settled instances in the same unit, so that each instance is counted once. */
  #progress({ request, target: id, body }: Call<BulkProgress>): void {
    this.#service.answer(request, 200, id, async () => {
      const row = await this.#own('', id);
      const { counts, from, place, settled, end, error, restMs = 0 } = body;
      if (row.place !== from || row.ended_at !== null) throw conflict(`job ${id} stands elsewhere`);
      const now = this.#deps.now();
      const turn = new Turn();
      for (const instance_id of settled) {
        turn.put(BULK_CHANGE.clear, `${id}:${instance_id}`, { job_id: id, instance_id });
      }
      return this.#update(
        {
          ...row,
          matched: row.matched + counts.matched,
          applied: row.applied + counts.applied,
          skipped: row.skipped + counts.skipped,
          failed: row.failed + counts.failed,
          repeats_effects: row.repeats_effects + counts.repeats_effects,
          place,
          error,
          state: end ?? row.state,
          ended_at: end === undefined ? null : isoTime(now),
          next_at: end === undefined && restMs > 0 ? isoTime(now + restMs) : null,
        },
        turn,
      );
    });
  }

  /** The current window is still counted before the job ends. */
  #cancel({ request, tenant, target: id }: Call): void {
    this.#service.answer(request, 200, id, async () => {
      const row = await this.#own(tenant, id);
      if (row.state === 'cancelling' || row.state === 'cancelled') return wireJob(row);
      if (row.state !== 'running') throw conflict(`job ${id} is ${row.state}`);
      return this.#update({ ...row, state: 'cancelling' }, new Turn(row.tenant_id, request));
    });
  }

  async #own(tenant: string, id: string): Promise<BulkJobRow> {
    const row = await this.#service.read(() => this.#deps.loader.bulkJob(id));
    return owned(row, tenant, `job ${id}`);
  }

  async #update(changed: BulkJobRow, turn: Turn): Promise<BulkJob> {
    const row = { ...changed, updated_at: isoTime(this.#deps.now()) };
    const { tenant_id, operation, request, traceparent, asked_by, created_at, ...update } = row;
    turn.tenant = tenant_id;
    turn.put(BULK_JOB.update, row.id, update);
    await this.#service.commit(turn, { key: `bulkJob:${row.id}` });
    return wireJob(row);
  }
}
