/** Settings of a schedule with a default, which an update may reset with null; and its stored fire times. */

import { changedTo } from '../../schema/change-shapes.js';
import type { CronSchedule, UpdateSchedule } from '../../schema/cron.js';
import { priorityRank } from '../../schema/states.js';
import { invalid } from '../../src/base/errors.js';
import type { JsonObject } from '../../src/base/json.js';
import { isoTimeOrNull, type UnixMs } from '../../src/base/time.js';
import { givenContext, priorityLabel } from '../instance/record.js';
import { nextFire } from './core/cron.js';
import { type CronFields, parseCron } from './core/cron-fields.js';

type Settings = Pick<
  CronSchedule,
  'timezone' | 'enabled' | 'metadata' | 'context' | 'priority' | 'timeout' | 'overlap_policy'
>;

const SETTINGS_AT_FIRST: Settings = {
  timezone: 'UTC',
  enabled: true,
  metadata: {},
  context: { data: {}, config: {} },
  priority: 'Normal',
  timeout: null,
  overlap_policy: 'allow',
};

export function settingsOf(
  given: Omit<UpdateSchedule, 'cron_expr'>,
  before: Settings = SETTINGS_AT_FIRST,
): Settings {
  const atFirst = SETTINGS_AT_FIRST;
  const { context, metadata, priority } = given;
  const label = priority && (priorityLabel(priorityRank(priority)) as Settings['priority']);
  return {
    timezone: changedTo(given.timezone, before.timezone, atFirst.timezone),
    enabled: changedTo(given.enabled, before.enabled, atFirst.enabled),
    metadata: changedTo(metadata as JsonObject | null | undefined, before.metadata, {}),
    context: context === undefined ? before.context : givenContext(given),
    priority: changedTo(label, before.priority, atFirst.priority),
    timeout: changedTo(given.timeout, before.timeout, null),
    overlap_policy: changedTo(given.overlap_policy, before.overlap_policy, atFirst.overlap_policy),
  };
}

export function fireTimeOf({ next_fire_at }: CronSchedule): UnixMs {
  return Date.parse(next_fire_at ?? '');
}

/** The next fire after an instant. @throws EngineError 400 when the expression cannot be parsed */
export function nextFireOf(
  { cron_expr, timezone }: Pick<CronSchedule, 'cron_expr' | 'timezone'>,
  after: UnixMs,
): string | null {
  return isoTimeOrNull(nextFire(readExpression(cron_expr), timezone, after));
}

/** @throws EngineError 400 also when the expression never fires */
export function firstFireOf(
  times: Pick<CronSchedule, 'cron_expr' | 'timezone'>,
  after: UnixMs,
): string {
  const next = nextFireOf(times, after);
  if (next === null) throw invalid(`cron_expr ${times.cron_expr} never fires`);
  return next;
}

/** @throws EngineError 400 */
export function readExpression(expression: string): CronFields {
  const parsed = parseCron(expression);
  if (!parsed.ok) throw invalid(parsed.message);
  return parsed.fields;
}

/** Keeps the next or current fire unless the times or `enabled` have changed. @throws as `firstFireOf` */
export function nextAfterChange(
  before: CronSchedule,
  after: CronSchedule,
  now: UnixMs,
): string | null {
  const hasOtherTimes = before.cron_expr !== after.cron_expr || before.timezone !== after.timezone;
  if (hasOtherTimes) return firstFireOf(after, now);
  return before.enabled === after.enabled ? before.next_fire_at : nextFireOf(after, now);
}
