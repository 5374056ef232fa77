/** Settings of a schedule with a default: a creation may omit them and an update may reset them with null. */

import { changedTo } from '../../schema/change-shapes.js';
import type { CronSchedule, UpdateSchedule } from '../../schema/cron.js';
import { type Priority, priorityRank } from '../../schema/states.js';
import type { JsonObject } from '../../src/base/json.js';
import { givenContext, priorityLabel } from '../instance/record.js';

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

/** @param given a creation or an update, checked */
export function settingsOf(
  given: Omit<UpdateSchedule, 'cron_expr'>,
  before: Settings = SETTINGS_AT_FIRST,
): Settings {
  const atFirst = SETTINGS_AT_FIRST;
  const { context, metadata, priority } = given;
  return {
    timezone: changedTo(given.timezone, before.timezone, atFirst.timezone),
    enabled: changedTo(given.enabled, before.enabled, atFirst.enabled),
    metadata: changedTo(metadata as JsonObject | null | undefined, before.metadata, {}),
    context: context === undefined ? before.context : givenContext(given),
    priority: changedTo(priority && capitalised(priority), before.priority, atFirst.priority),
    timeout: changedTo(given.timeout, before.timeout, null),
    overlap_policy: changedTo(given.overlap_policy, before.overlap_policy, atFirst.overlap_policy),
  };
}

function capitalised(priority: Priority): CronSchedule['priority'] {
  return priorityLabel(priorityRank(priority)) as CronSchedule['priority'];
}
