/** Wire shapes and routes of changes of many instances that go on behind their answer (docs/reference/instances.md). */

import { type Static, Type } from '@sinclair/typebox';
import {
  Cursor,
  IdParams,
  JsonObjectSchema,
  Limit,
  named,
  noted,
  Offset,
  oneOfWords,
  orNull,
  TenantQuery,
  Timestamp,
  Uuid,
} from './common.js';
import { listOf, type RouteRow, read, refusals } from './route-row.js';

export const BULK_OPERATIONS = ['state', 'reschedule', 'batch_action'] as const;
export type BulkOperation = (typeof BULK_OPERATIONS)[number];

/** `cancelling`: what is under way is still being counted. */
export const BULK_JOB_STATES = [
  'running',
  'cancelling',
  'completed',
  'cancelled',
  'failed',
] as const;
export type BulkJobState = (typeof BULK_JOB_STATES)[number];

/** Of the routes that change many. */
export const BulkQuery = Type.Object({
  async: Type.Boolean({
    default: false,
    description: 'Answers 202 with a job at once. So does the header Prefer: respond-async.',
  }),
});

/** In every answer that counts what would be changed. */
export const RepeatsEffects = Type.Integer({
  description:
    'With dry_run: those that would be retried, and repeat effects outside by that; else 0.',
});

export const BulkJob = named(
  'BulkJob',
  'A change of many instances that goes on behind its answer.',
  {
    id: Uuid,
    tenant_id: Type.String(),
    operation: oneOfWords(BULK_OPERATIONS),
    request: noted(JsonObjectSchema, 'The body that asked for it.'),
    state: oneOfWords(BULK_JOB_STATES),
    matched: Type.Integer({
      description: 'Matches that were found so far: the sum of the next three.',
    }),
    applied: Type.Integer({ description: 'How many were changed, or with dry_run would be.' }),
    skipped: Type.Integer({
      description: 'Those that the change does not concern, or that are gone.',
    }),
    failed: Type.Integer({ description: 'Those whose change was refused.' }),
    repeats_effects: RepeatsEffects,
    error: noted(orNull(Type.String()), 'Why a job that failed did not go on.'),
    created_at: Timestamp,
    updated_at: Timestamp,
    ended_at: orNull(Timestamp),
  },
);
export type BulkJob = Static<typeof BulkJob>;

export const BulkJobListQuery = Type.Object({
  ...TenantQuery.properties,
  state: Type.Optional(oneOfWords(BULK_JOB_STATES)),
  offset: Offset,
  limit: Limit(100, 1_000),
  cursor: Cursor,
});
export type BulkJobListQuery = Static<typeof BulkJobListQuery>;

// ---------------------------------------------------------------- routes

export const BULK_JOB_ROWS = {
  'bulkJobs.list': {
    ...read,
    path: '/instances/bulk/jobs',
    summary: 'List the changes of many instances that went on as jobs, newest first.',
    query: BulkJobListQuery,
    replies: { 200: listOf(BulkJob), ...refusals(400) },
  },
  'bulkJobs.get': {
    ...read,
    path: '/instances/bulk/jobs/{id}',
    summary: 'Get how far a change of many instances is.',
    params: IdParams,
    replies: { 200: BulkJob, ...refusals(400, 404) },
  },
  'bulkJobs.cancel': {
    method: 'POST',
    path: '/instances/bulk/jobs/{id}/cancel',
    summary: 'End a change of many instances; what is changed stays changed.',
    owner: 'first-shard',
    params: IdParams,
    repeats: 'it is ended already',
    replies: { 200: BulkJob, ...refusals(400, 404, 409) },
  },
} as const satisfies Record<string, RouteRow>;
