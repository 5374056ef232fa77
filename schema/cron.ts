/** Wire shapes and routes of cron schedules (docs/cron.md). */

import { type Static, Type } from '@sinclair/typebox';
import { changeOf, UNCHANGED } from './change-shapes.js';
import {
  ALL_BY_KEY,
  checked,
  flag,
  JsonObjectSchema,
  Key,
  Name,
  named,
  noted,
  oneOfWords,
  optional,
  orNull,
  PriorityWord,
  SEQUENCE_REFERENCE,
  TenantName,
  Timestamp,
  TimeZone,
  Uuid,
  withDefault,
} from './common.js';
import { CapitalPriority, GivenContext, InstanceCreated, InstanceTimeout } from './instance.js';
import {
  actById,
  byId,
  get,
  getById,
  listOf,
  type RouteRow,
  refusals,
  remove,
} from './route-row.js';
import { strict, strictNamed } from './strict.js';

const CRON_EXPRESSION_LENGTH_MAX = 1_024;
export const NEXT_FIRES_MAX = 50;
export const PREVIEW_FIRES = 5;
/** A search takes 25 µs, so that the longest answer costs less than the commit of a creation. */
const PREVIEW_FIRES_MAX = 100;

const OVERLAP_POLICIES = ['allow', 'skip', 'buffer_one', 'cancel_previous'] as const;

const CronExpression = noted(
  Type.String({ pattern: '\\S', maxLength: CRON_EXPRESSION_LENGTH_MAX }),
  'Seven fields: second minute hour day month day_of_week year. Also ' +
    'accepted: six (without year) or five (without second and year), ?, ' +
    'and @hourly, @daily, @weekly, @monthly, @yearly.',
);

const OverlapPolicy = oneOfWords(
  OVERLAP_POLICIES,
  'Action of a fire while an earlier run has not finished.',
);

const STARTED = {
  metadata: optional(noted(JsonObjectSchema, 'Copied to its instances.')),
  context: optional(
    noted(GivenContext, 'Initial context of its instances; data must conform to the input_schema.'),
  ),
  timeout: optional(InstanceTimeout),
};

/** A sequence given by name is resolved at each fire. */
export const CreateSchedule = strict(
  checked(
    'sequence-or-id',
    named('CreateSchedule', 'A schedule that creates an instance of the sequence at each fire.', {
      tenant_id: TenantName,
      namespace: Name,
      ...SEQUENCE_REFERENCE,
      cron_expr: CronExpression,
      timezone: optional(withDefault(TimeZone, 'UTC')),
      ...STARTED,
      priority: optional(withDefault(PriorityWord, 'normal')),
      enabled: flag(true),
      overlap_policy: optional(withDefault(OverlapPolicy, 'allow')),
    }),
  ),
);
export type CreateSchedule = Static<typeof CreateSchedule>;

export const RunSchedule = strictNamed('RunSchedule', {
  idempotency_key: optional(
    noted(Key, 'A repeated request with the same key returns the first instance.'),
  ),
});
export type RunSchedule = Static<typeof RunSchedule>;

const ScheduleListQuery = Type.Object({
  tenant_id: Type.Optional(Type.String()),
  order: Type.Optional(
    oneOfWords(
      ['created', 'next_fire'],
      'next_fire: enabled schedules by next fire. Default: created, oldest first.',
    ),
  ),
  ...ALL_BY_KEY,
});

/** Numbers out of range become the nearest bound. */
const NextFiresQuery = Type.Object({
  n: Type.Integer({ default: 5, description: `At least 1 and at most ${NEXT_FIRES_MAX}.` }),
});

export const ScheduleCreated = named('ScheduleCreated', {
  id: Uuid,
  next_fire_at: orNull(Timestamp),
});
export type ScheduleCreated = Static<typeof ScheduleCreated>;

/**
 * `next_fire_at` is past while a fire waits for an earlier run, or the schedule is disabled. One of `sequence_id` and
 * `sequence` is null. `last_error` is null if the last fire created an instance.
 */
export const CronSchedule = named('CronSchedule', {
  id: Uuid,
  tenant_id: Type.String(),
  namespace: Type.String(),
  sequence_id: orNull(Uuid),
  sequence: orNull(Type.String()),
  version: orNull(Type.Integer()),
  cron_expr: Type.String(),
  timezone: Type.String(),
  enabled: Type.Boolean(),
  metadata: JsonObjectSchema,
  context: Type.Object({ data: JsonObjectSchema, config: JsonObjectSchema }),
  priority: CapitalPriority,
  timeout: orNull(Type.Integer()),
  overlap_policy: OverlapPolicy,
  skipped_fires: Type.Integer(),
  last_skipped_at: orNull(Timestamp),
  last_triggered_at: orNull(Timestamp),
  next_fire_at: orNull(Timestamp),
  last_error: orNull(Type.String()),
  created_at: Timestamp,
  updated_at: Timestamp,
});
export type CronSchedule = Static<typeof CronSchedule>;

/** Only a changed cron_expr, timezone or enabled recomputes the next fire. */
export const UpdateSchedule = changeOf('UpdateSchedule', CronSchedule, {
  ...UNCHANGED,
  cron_expr: Type.Optional(CronExpression),
  timezone: optional(TimeZone),
  enabled: optional(Type.Boolean()),
  ...STARTED,
  priority: optional(PriorityWord),
  overlap_policy: optional(OverlapPolicy),
});
export type UpdateSchedule = Static<typeof UpdateSchedule>;

/** `instance_id` is an alias of `id`. */
export const ScheduleRun = named('ScheduleRun', {
  ...InstanceCreated.properties,
  instance_id: Uuid,
});
export type ScheduleRun = Static<typeof ScheduleRun>;

export const PreviewSchedule = strictNamed('PreviewSchedule', {
  cron_expr: CronExpression,
  timezone: optional(withDefault(TimeZone, 'UTC')),
  count: optional(Type.Integer({ minimum: 1, maximum: PREVIEW_FIRES_MAX, default: PREVIEW_FIRES })),
  from: optional(noted(Timestamp, 'Fires after this time; default: now.')),
});

export const PreviewedFire = named('PreviewedFire', {
  at: noted(Timestamp, 'In UTC.'),
  local: Type.String({
    format: 'date-time',
    description: 'The same time with the offset of the time zone.',
  }),
});

export const SchedulePreview = named(
  'SchedulePreview',
  'Has fewer fires than requested if the expression has no more.',
  { timezone: Type.String(), fires: Type.Array(PreviewedFire) },
);
export type SchedulePreview = Static<typeof SchedulePreview>;

export const NextFires = named('NextFires', {
  timezone: Type.String(),
  fires: Type.Array(Timestamp),
});
export type NextFires = Static<typeof NextFires>;

export const CRON_ROWS = {
  'cron.create': {
    method: 'POST',
    path: '/cron',
    summary: 'Create a schedule, which creates instances.',
    owner: 'any-shard',
    body: CreateSchedule,
    bodySize: 'large',
    makes: 'schedule',
    replies: { 201: ScheduleCreated, ...refusals(400, 404, 409, 413) },
  },
  'cron.preview': {
    method: 'POST',
    path: '/cron/preview',
    summary: 'Preview the next fires of an expression without creating a schedule.',
    owner: 'front',
    body: PreviewSchedule,
    bodySize: 'small',
    repeats: 'it changes nothing',
    replies: { 200: SchedulePreview, ...refusals(400, 413) },
  },
  'cron.list': get('/cron', 'List schedules, oldest first or by next fire.', listOf(CronSchedule), {
    query: ScheduleListQuery,
  }),
  'cron.get': getById('/cron/{id}', 'Get a schedule.', CronSchedule),
  'cron.update': {
    method: 'PUT',
    path: '/cron/{id}',
    summary: 'Change a schedule.',
    ...byId,
    body: UpdateSchedule,
    bodySize: 'large',
    replies: { 200: CronSchedule, ...refusals(400, 404, 409, 413) },
  },
  'cron.delete': remove('/cron/{id}', 'Delete a schedule. Its instances continue.', byId),
  'cron.run': {
    ...actById,
    path: '/cron/{id}/run',
    summary: 'Fire a schedule now, without changing its next fire.',
    body: RunSchedule,
    isBodyOptional: true,
    makes: 'instance',
    keyed: 'run',
    replies: { 201: ScheduleRun, ...refusals(400, 404, 409, 413, 422) },
  },
  'cron.nextFires': getById('/cron/{id}/next-fires', 'List next fires of a schedule.', NextFires, {
    query: NextFiresQuery,
  }),
} as const satisfies Record<string, RouteRow>;
