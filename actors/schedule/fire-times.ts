/** When schedules fire, as their rows have it. */

import type { CronSchedule } from '../../schema/cron.js';
import { invalid } from '../../src/base/errors.js';
import { isoTimeOrNull, type UnixMs } from '../../src/base/time.js';
import { nextFire } from './core/cron.js';
import { type CronFields, parseCron } from './core/cron-fields.js';

/** The fire that is next or under way. */
export function fireTimeOf({ next_fire_at }: CronSchedule): UnixMs {
  return Date.parse(next_fire_at ?? '');
}

/**
 * The first fire after an instant, as it is stored and shown.
 *
 * @throws EngineError 400 when the expression cannot be read
 */
export function nextFireOf(
  { cron_expr, timezone }: Pick<CronSchedule, 'cron_expr' | 'timezone'>,
  after: UnixMs,
): string | null {
  return isoTimeOrNull(nextFire(readExpression(cron_expr), timezone, after));
}

/**
 * The same for an expression that is new.
 *
 * @throws EngineError 400, too, when it never fires
 */
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

/**
 * The fire that is next or under way stays unless the change is one of when it fires.
 *
 * @throws EngineError 400 when other times never come
 */
export function nextAfterChange(
  before: CronSchedule,
  after: CronSchedule,
  now: UnixMs,
): string | null {
  const hasOtherTimes = before.cron_expr !== after.cron_expr || before.timezone !== after.timezone;
  if (hasOtherTimes) return firstFireOf(after, now);
  return before.enabled === after.enabled ? before.next_fire_at : nextFireOf(after, now);
}
