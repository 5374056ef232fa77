/** Lists and lookups of cron schedules. */

import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { columnsBut, selected } from '../../../src/db/table.js';
import { type ScheduleRow, scheduleOf } from '../loads.js';
import { CRON_SCHEDULES } from '../tables.js';

const COLUMNS = selected(columnsBut(CRON_SCHEDULES));

export const scheduleById = lookup<ScheduleRow>(
  'reads_cron_get',
  `select ${COLUMNS} from cron_schedules where id = $1::uuid`,
);

const SCHEDULES = {
  columns: COLUMNS,
  from: 'cron_schedules',
  by: filtersOf(CRON_SCHEDULES, ['tenant_id']),
  toText: (row: ScheduleRow) => JSON.stringify(scheduleOf(row)),
};

/** `CronSchedule` records, oldest first (docs/cron.md). */
export const scheduleList = list({
  ...SCHEDULES,
  order: orderBy(CRON_SCHEDULES, ['created_at', 'id']),
});

/** Enabled schedules by their next fire. */
export const nextScheduleList = list({
  ...SCHEDULES,
  always: 'enabled and next_fire_at is not null',
  order: orderBy(CRON_SCHEDULES, ['next_fire_at', 'id']),
});
