/** Wire shapes and routes of bulk jobs: changes of many instances in the background (docs/reference/instances.md). */

import * as t from './common.js';
import { firstShard, get, getById, ok, type RouteRow } from './route-row.js';

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

export const BulkJob = t.named('BulkJob', 'A change of many instances in the background.', {
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
  created_at: t.Timestamp,
  updated_at: t.Timestamp,
  ended_at: t.nullable(t.Timestamp),
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
  'bulkJobs.get': getById('/instances/bulk/jobs/{id}', 'Get the progress of a bulk job.', BulkJob),
  'bulkJobs.cancel': firstShard.post('/instances/bulk/jobs/{id}/cancel', {
    summary: 'Cancel a bulk job. Completed changes remain.',
    repeats: 'the job has already finished',
    replies: ok(BulkJob, 404, 409),
  }),
} as const satisfies Record<string, RouteRow>;
