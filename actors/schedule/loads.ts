/** Statements of schedules. */

import type { CronSchedule } from '../../schema/cron.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import { columnsBut, selected } from '../../src/db/table.js';
import { columnOf, idsOf, isOwn, ofIds, type Queries } from '../runtime/queries.js';
import { CRON_SCHEDULES } from './tables.js';

export type ScheduleRow = Omit<CronSchedule, 'metadata' | 'context'> & {
  readonly metadata: string;
  readonly context: string;
};

export function scheduleOf({ metadata, context, ...row }: ScheduleRow): CronSchedule {
  return {
    ...row,
    metadata: JSON.parse(metadata) as CronSchedule['metadata'],
    context: JSON.parse(context) as CronSchedule['context'],
  };
}

export type DueSchedule = { readonly id: string; readonly next_fire_at: string };

export const SCHEDULE_SQL = {
  schedules: `select ${selected(columnsBut(CRON_SCHEDULES))} from cron_schedules where id = any($1::uuid[])`,
  dueSchedules:
    'select id, next_fire_at from cron_schedules where enabled ' +
    'and (next_fire_at, id) > ($1::timestamptz, $2::uuid) and next_fire_at <= $3::timestamptz ' +
    `and ${isOwn('id', '$5', '$6')} order by next_fire_at, id limit $4`,
  // Only among the newest runs, because a schedule may have millions of ended runs.
  activeRuns: ofIds(
    'o.id',
    'select r.id from (select id, state from instances where cron_schedule_id = w.id ' +
      'order by created_at desc, id desc limit 1000) r ' +
      "where r.state in ('scheduled', 'running', 'waiting', 'paused')",
  ),
} as const;

export function scheduleLoads(queries: Queries) {
  const sql = queries.of(SCHEDULE_SQL);
  const activeRuns = sql.batch<string, { id: string }>('activeRuns', columnOf);
  return {
    async schedules(ids: readonly string[]): Promise<Map<string, ScheduleRow>> {
      const rows = await sql.all<ScheduleRow>('schedules', [ids]);
      return new Map(rows.map((row) => [row.id, row]));
    },
    /** Enabled schedules of the shard after the given one, by fire time. */
    dueSchedules: (after: DueSchedule, to: UnixMs, limit: number) =>
      sql.own<DueSchedule>('dueSchedules', [after.next_fire_at, after.id, isoTime(to), limit]),
    /** Unfinished runs among the thousand newest of the schedule. */
    activeRuns: async (schedule: string) => idsOf(await activeRuns.read(schedule)),
  };
}

export type ScheduleLoads = ReturnType<typeof scheduleLoads>;
