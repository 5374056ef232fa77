/** Wire shapes and routes of cron schedules (docs/cron.md). */

import { changeOf, UNCHANGED } from './change-shapes.js';
import * as t from './common.js';
import { CapitalPriority, GivenContext, InstanceCreated, InstanceTimeout } from './instance.js';
import {
  anyShard,
  byId,
  created,
  did,
  ENABLED,
  front,
  get,
  getById,
  ok,
  type RouteRow,
} from './route-row.js';

const CRON_EXPRESSION_LENGTH_MAX = 1_024;
export const NEXT_FIRES_MAX = 50;
export const PREVIEW_FIRES = 5;
/** A search takes 25 µs, so that the longest answer costs less than the commit of a creation. */
const PREVIEW_FIRES_MAX = 100;

const OVERLAP_POLICIES = ['allow', 'skip', 'buffer_one', 'cancel_previous'] as const;

const CronExpression = t.noted(
  t.text({ pattern: '\\S', maxLength: CRON_EXPRESSION_LENGTH_MAX }),
  'Seven fields: second minute hour day month day_of_week year. Also ' +
    'accepted: six (without year) or five (without second and year), ?, ' +
    'and @hourly, @daily, @weekly, @monthly, @yearly.',
);

const OverlapPolicy = t.oneOf(
  OVERLAP_POLICIES,
  'Action of a fire while an earlier run has not finished.',
);

const STARTED = {
  metadata: t.nullish(t.JsonObjectSchema, 'Metadata of the created instances.'),
  context: t.nullish(GivenContext, 'Initial context; data must conform to the input_schema.'),
  timeout: t.nullish(InstanceTimeout),
};

/** A sequence given by name is resolved at each fire. */
export const CreateSchedule = t.checked(
  'sequence-or-id',
  t.strictNamed(
    'CreateSchedule',
    'A schedule that creates an instance of the sequence at each fire.',
    {
      tenant_id: t.TenantName,
      namespace: t.Name,
      ...t.SEQUENCE_REFERENCE,
      cron_expr: CronExpression,
      timezone: t.nullish(t.withDefault(t.TimeZone, 'UTC')),
      ...STARTED,
      priority: t.nullish(t.withDefault(t.PriorityWord, 'normal')),
      enabled: t.flag(true),
      overlap_policy: t.nullish(t.withDefault(OverlapPolicy, 'allow')),
    },
  ),
);
export type CreateSchedule = t.Static<typeof CreateSchedule>;

export const RunSchedule = t.strictNamed('RunSchedule', {
  idempotency_key: t.nullish(t.Key, 'A repetition with the same key returns the first instance.'),
});
export type RunSchedule = t.Static<typeof RunSchedule>;

const ScheduleListQuery = t.object({
  tenant_id: t.optional(t.text()),
  order: t.optional(
    t.oneOf(['created', 'next_fire'], 'next_fire: only enabled, by next fire. Default: created.'),
  ),
  ...t.ALL_BY_KEY,
});

/** Numbers out of range become the nearest bound. */
const NextFiresQuery = t.object({
  n: t.integer({ default: 5, description: `At least 1 and at most ${NEXT_FIRES_MAX}.` }),
});

export const ScheduleCreated = t.named('ScheduleCreated', {
  id: t.Uuid,
  next_fire_at: t.nullable(t.Timestamp),
});
export type ScheduleCreated = t.Static<typeof ScheduleCreated>;

/**
 * `next_fire_at` is past while a fire waits for an earlier run, or the schedule is disabled. One of `sequence_id` and
 * `sequence` is null. `last_error` is null if the last fire created an instance.
 */
export const CronSchedule = t.named('CronSchedule', {
  id: t.Uuid,
  tenant_id: t.text(),
  namespace: t.text(),
  sequence_id: t.nullable(t.Uuid),
  sequence: t.nullable(t.text()),
  version: t.nullable(t.integer()),
  cron_expr: t.text(),
  timezone: t.text(),
  enabled: t.boolean(),
  metadata: t.JsonObjectSchema,
  context: t.object({ data: t.JsonObjectSchema, config: t.JsonObjectSchema }),
  priority: CapitalPriority,
  timeout: t.nullable(t.integer()),
  overlap_policy: OverlapPolicy,
  skipped_fires: t.integer(),
  last_skipped_at: t.nullable(t.Timestamp),
  last_triggered_at: t.nullable(t.Timestamp),
  next_fire_at: t.nullable(t.Timestamp),
  last_error: t.nullable(t.text()),
  created_at: t.Timestamp,
  updated_at: t.Timestamp,
});
export type CronSchedule = t.Static<typeof CronSchedule>;

/** Only a changed cron_expr, timezone or enabled recomputes the next fire. */
export const UpdateSchedule = changeOf('UpdateSchedule', CronSchedule, {
  ...UNCHANGED,
  cron_expr: t.optional(CronExpression),
  timezone: t.nullish(t.TimeZone),
  enabled: t.nullish(t.boolean()),
  ...STARTED,
  priority: t.nullish(t.PriorityWord),
  overlap_policy: t.nullish(OverlapPolicy),
});
export type UpdateSchedule = t.Static<typeof UpdateSchedule>;

/** `instance_id` is an alias of `id`. */
export const ScheduleRun = t.named('ScheduleRun', {
  ...InstanceCreated.properties,
  instance_id: t.Uuid,
});
export type ScheduleRun = t.Static<typeof ScheduleRun>;

export const PreviewSchedule = t.strictNamed('PreviewSchedule', {
  cron_expr: CronExpression,
  timezone: t.nullish(t.withDefault(t.TimeZone, 'UTC')),
  count: t.nullish(t.integer({ minimum: 1, maximum: PREVIEW_FIRES_MAX, default: PREVIEW_FIRES })),
  from: t.nullish(t.Timestamp, 'Time after which fires are listed; default: now.'),
});

export const PreviewedFire = t.named('PreviewedFire', {
  at: t.noted(t.Timestamp, 'Time of the fire in UTC.'),
  local: t.text({
    format: 'date-time',
    description: 'The same time with the offset of the time zone.',
  }),
});

export const SchedulePreview = t.named(
  'SchedulePreview',
  'Has fewer fires than requested if the expression has no more.',
  { timezone: t.text(), fires: t.list(PreviewedFire) },
);
export type SchedulePreview = t.Static<typeof SchedulePreview>;

export const NextFires = t.named('NextFires', { timezone: t.text(), fires: t.list(t.Timestamp) });
export type NextFires = t.Static<typeof NextFires>;

export const CRON_ROWS = {
  'cron.create': anyShard.post('/cron', {
    summary: 'Create a schedule, which creates instances.',
    body: CreateSchedule,
    bodySize: 'large',
    makes: 'schedule',
    replies: created(ScheduleCreated, 404, 409, 413),
    action: did('cron_schedule', 'created', { shows: ['cron_expr', 'timezone', 'enabled'] }),
  }),
  'cron.preview': front.post('/cron/preview', {
    summary: 'Preview the next fires of an expression without creating a schedule.',
    body: PreviewSchedule,
    bodySize: 'small',
    repeats: 'it changes nothing',
    replies: ok(SchedulePreview, 413),
  }),
  'cron.list': get('/cron', 'List schedules, oldest first or by next fire.', t.list(CronSchedule), {
    query: ScheduleListQuery,
  }),
  'cron.get': getById('/cron/{id}', 'Get a schedule.', CronSchedule),
  'cron.update': byId.put('/cron/{id}', {
    summary: 'Change a schedule.',
    body: UpdateSchedule,
    bodySize: 'large',
    replies: ok(CronSchedule, 404, 409, 413),
    action: did('cron_schedule', 'changed', {
      shows: ['enabled', 'cron_expr', 'timezone'],
      words: { enabled: ENABLED },
      isChange: true,
    }),
  }),
  'cron.delete': byId.remove('/cron/{id}', 'Delete a schedule. Its instances continue.', {
    action: did('cron_schedule', 'deleted'),
  }),
  'cron.run': byId.post('/cron/{id}/run', {
    summary: 'Fire a schedule now, without changing its next fire.',
    body: RunSchedule,
    isBodyOptional: true,
    makes: 'instance',
    keyed: 'run',
    replies: { ...created(ScheduleRun, 404, 409, 413, 422), 202: ScheduleRun },
  }),
  'cron.nextFires': getById('/cron/{id}/next-fires', 'List next fires of a schedule.', NextFires, {
    query: NextFiresQuery,
  }),
} as const satisfies Record<string, RouteRow>;
