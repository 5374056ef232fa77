/** Wire shapes and routes of bulk jobs: changes of many instances (docs/reference/instances.md). */

import * as t from './common.js';
import { did, firstShard, get, getById, ok, type RouteRow } from './route-row.js';

const BULK_OPERATIONS = ['state', 'reschedule', 'batch_action'] as const;
export type BulkOperation = (typeof BULK_OPERATIONS)[number];

/** `cancelling`: the changes in progress are still being counted. */
const BULK_JOB_STATES = ['running', 'cancelling', 'completed', 'cancelled', 'failed'] as const;
export type BulkJobState = (typeof BULK_JOB_STATES)[number];

export const BulkQuery = t.object({
  async: t.boolean({
    default: false,
    description: 'Answers 202 with a job immediately, as does the header Prefer: respond-async.',
  }),
});

export const RepeatsEffects = t.integer(
  'With dry_run: retried instances that would repeat external effects; else 0.',
);

const Count = t.integer({ minimum: 0 });

export const RetryOutcome = t.named('RetryOutcome', 'Retried instances by their present state.', {
  completed: Count,
  failed: t.noted(Count, 'Failed again.'),
  cancelled: Count,
  open: t.noted(Count, 'Not finished yet.'),
});
export type RetryOutcome = t.Static<typeof RetryOutcome>;

export const BulkJob = t.named('BulkJob', 'A change of many instances.', {
  id: t.Uuid,
  tenant_id: t.text(),
  operation: t.oneOf(BULK_OPERATIONS),
  request: t.noted(t.JsonObjectSchema, 'Body of the request.'),
  state: t.oneOf(BULK_JOB_STATES),
  matched: t.integer('Number of matches so far: applied, skipped and failed.'),
  applied: t.integer('Number of instances changed or, with dry_run, to be changed.'),
  skipped: t.integer('Number of matches that needed no change or were deleted.'),
  failed: t.integer('Number of matches whose change was refused.'),
  repeats_effects: RepeatsEffects,
  error: t.nullable(t.text(), 'Why the job failed.'),
  requested_by: t.nullable(t.text(), 'Name of the key; null: unknown.'),
  created_at: t.Timestamp,
  updated_at: t.Timestamp,
  ended_at: t.nullable(t.Timestamp),
  next_at: t.nullable(t.Timestamp, 'When a job with per_minute changes the next instances.'),
  outcome: t.optional(
    t.refOrNull(RetryOutcome),
    'Null unless it retries. Only in the job by its id.',
  ),
});
export type BulkJob = t.Static<typeof BulkJob>;

export const BULK_JOB_ROWS = {
  'bulkJobs.list': get('/instances/bulk/jobs', 'List bulk jobs, newest first.', t.list(BulkJob), {
    query: t.object({
      ...t.TenantQuery.properties,
      state: t.optional(t.oneOf(BULK_JOB_STATES)),
      ...t.pageOf(),
    }),
  }),
  'bulkJobs.get': getById(
    '/instances/bulk/jobs/{id}',
    'Get the progress of a bulk job, and the outcome of a retry.',
    BulkJob,
  ),
  'bulkJobs.cancel': firstShard.post('/instances/bulk/jobs/{id}/cancel', {
    summary: 'Cancel a bulk job. Completed changes remain.',
    repeats: 'the job has already finished',
    replies: ok(BulkJob, 404, 409),
    action: did('bulk_job', 'cancelled'),
  }),
} as const satisfies Record<string, RouteRow>;
