/** Wire shapes and routes of bulk jobs: changes of many instances in the background (docs/reference/instances.md). */

import { type Static, Type } from '@sinclair/typebox';
import {
  IdParams,
  JsonObjectSchema,
  named,
  noted,
  oneOfWords,
  orNull,
  pageOf,
  TenantQuery,
  Timestamp,
  Uuid,
} from './common.js';
import { get, getById, listOf, type RouteRow, refusals } from './route-row.js';

const BULK_OPERATIONS = ['state', 'reschedule', 'batch_action'] as const;
export type BulkOperation = (typeof BULK_OPERATIONS)[number];

/** `cancelling`: the changes in progress are still being counted. */
const BULK_JOB_STATES = ['running', 'cancelling', 'completed', 'cancelled', 'failed'] as const;
export type BulkJobState = (typeof BULK_JOB_STATES)[number];

export const BulkQuery = Type.Object({
  async: Type.Boolean({
    default: false,
    description: 'Answers 202 with a job immediately, as does the header Prefer: respond-async.',
  }),
});

export const RepeatsEffects = Type.Integer({
  description: 'With dry_run: retried instances that would repeat external effects; else 0.',
});

export const BulkJob = named('BulkJob', 'A change of many instances that runs in the background.', {
  id: Uuid,
  tenant_id: Type.String(),
  operation: oneOfWords(BULK_OPERATIONS),
  request: noted(JsonObjectSchema, 'The request body.'),
  state: oneOfWords(BULK_JOB_STATES),
  matched: noted(Type.Integer(), 'Matches found so far: updated, skipped and failed.'),
  applied: noted(Type.Integer(), 'Changed instances; with dry_run, those that would be changed.'),
  skipped: noted(Type.Integer(), 'Matches that needed no change or were deleted.'),
  failed: Type.Integer({ description: 'Matches whose change was refused.' }),
  repeats_effects: RepeatsEffects,
  error: noted(orNull(Type.String()), 'Why the job failed.'),
  created_at: Timestamp,
  updated_at: Timestamp,
  ended_at: orNull(Timestamp),
});
export type BulkJob = Static<typeof BulkJob>;

const BulkJobListQuery = Type.Object({
  ...TenantQuery.properties,
  state: Type.Optional(oneOfWords(BULK_JOB_STATES)),
  ...pageOf(),
});

export const BULK_JOB_ROWS = {
  'bulkJobs.list': get('/instances/bulk/jobs', 'List bulk jobs, newest first.', listOf(BulkJob), {
    query: BulkJobListQuery,
  }),
  'bulkJobs.get': getById('/instances/bulk/jobs/{id}', 'Get the progress of a bulk job.', BulkJob),
  'bulkJobs.cancel': {
    method: 'POST',
    path: '/instances/bulk/jobs/{id}/cancel',
    summary: 'Cancel a bulk job. Completed changes remain.',
    owner: 'first-shard',
    params: IdParams,
    repeats: 'the job has already finished',
    replies: { 200: BulkJob, ...refusals(400, 404, 409) },
  },
} as const satisfies Record<string, RouteRow>;
