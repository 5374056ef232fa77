/** Reads of cron schedules. */

import { toUnixMs } from '../../../schema/common.js';
import {
  type CronSchedule,
  NEXT_FIRES_MAX,
  PREVIEW_FIRES,
  type SchedulePreview,
} from '../../../schema/cron.js';
import { invalid } from '../../../src/base/errors.js';
import { isoTime } from '../../../src/base/time.js';
import { zonedTime, zoneOf } from '../../../src/core/timing.js';
import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup, rowOf } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { columnsBut, selected } from '../../../src/db/table.js';
import type { FrontRoom } from '../../../src/http/front-room.js';
import {
  type CallById,
  type FrontDeps,
  jsonReply,
  listQuery,
  pageReply,
} from '../../../src/http/operation.js';
import { nextFires } from '../core/cron.js';
import { type ScheduleRow, scheduleOf } from '../loads.js';
import { readExpression } from '../settings.js';
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

async function scheduleNamed(deps: FrontDeps, { params, tenant }: CallById): Promise<CronSchedule> {
  return scheduleOf(await rowOf(deps.reads, scheduleById, 'cron schedule', params.id, tenant));
}

export function openScheduleFront() {
  return {
    operations: {
      'cron.list': async ({ reads }, call) => {
        const query = listQuery(call);
        const listOf = query.order === 'next_fire' ? nextScheduleList : scheduleList;
        return pageReply(call, query, await reads.page(listOf(query)));
      },
      'cron.get': async (deps, call) => jsonReply(JSON.stringify(await scheduleNamed(deps, call))),
      /** Ignores whether the schedule is enabled. */
      'cron.nextFires': async (deps, call) => {
        const { cron_expr, timezone } = await scheduleNamed(deps, call);
        const count = Math.min(Math.max(call.query.n, 1), NEXT_FIRES_MAX);
        const fires = nextFires(readExpression(cron_expr), timezone, deps.now(), count);
        return jsonReply(JSON.stringify({ timezone, fires: fires.map(isoTime) }));
      },
      /** Fails as a creation would. */
      'cron.preview': async (deps, { body }) => {
        const { cron_expr } = body;
        const timezone = body.timezone ?? 'UTC';
        const from = body.from == null ? undefined : toUnixMs(body.from);
        const count = body.count ?? PREVIEW_FIRES;
        const fires = nextFires(readExpression(cron_expr), timezone, from ?? deps.now(), count);
        if (fires.length === 0 && from === undefined) {
          throw invalid(`cron_expr ${cron_expr} never fires`);
        }
        const zone = zoneOf(timezone);
        const shown = fires.map((at) => ({ at: isoTime(at), local: zonedTime(zone, at) }));
        return jsonReply(JSON.stringify({ timezone, fires: shown } satisfies SchedulePreview));
      },
    },
  } satisfies FrontRoom;
}
