/** The fire times of stored schedules. */

import type { CronSchedule } from '../../schema/cron.js';
import { invalid } from '../../src/base/errors.js';
import { isoTimeOrNull, type UnixMs } from '../../src/base/time.js';
import { nextFire } from './core/cron.js';
import { type CronFields, parseCron } from './core/cron-fields.js';

export function fireTimeOf({ next_fire_at }: CronSchedule): UnixMs {
  return Date.parse(next_fire_at ?? '');
}

/** After an instant, as stored. @throws EngineError 400 when the expression cannot be parsed */
export function nextFireOf(
  { cron_expr, timezone }: Pick<CronSchedule, 'cron_expr' | 'timezone'>,
  after: UnixMs,
): string | null {
  return isoTimeOrNull(nextFire(readExpression(cron_expr), timezone, after));
}

/** The same for a new expression. @throws EngineError 400 also when it never fires */
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

/** Only other times replace the next or current fire. @throws as `firstFireOf` */
export function nextAfterChange(
  before: CronSchedule,
  after: CronSchedule,
  now: UnixMs,
): string | null {
  const hasOtherTimes = before.cron_expr !== after.cron_expr || before.timezone !== after.timezone;
  if (hasOtherTimes) return firstFireOf(after, now);
  return before.enabled === after.enabled ? before.next_fire_at : nextFireOf(after, now);
}
