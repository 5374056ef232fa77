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
import { rowOf } from '../../../src/db/reads/lookup.js';
import type { FrontRoom } from '../../../src/http/front-room.js';
import {
  type CallById,
  type FrontDeps,
  jsonReply,
  listQuery,
  type Operation,
  pageReply,
} from '../../../src/http/operation.js';
import { nextFires } from '../core/cron.js';
import { readExpression } from '../fire-times.js';
import { scheduleOf } from '../loads.js';
import { nextScheduleList, scheduleById, scheduleList } from './reads.js';

async function scheduleNamed(deps: FrontDeps, call: CallById): Promise<CronSchedule> {
  const { params, tenant } = call;
  return scheduleOf(await rowOf(deps.reads, scheduleById, 'cron schedule', params.id, tenant));
}

const list: Operation<'cron.list'> = async (deps, call) => {
  const query = listQuery(call);
  const listed = query.order === 'next_fire' ? nextScheduleList(query) : scheduleList(query);
  return pageReply(call, query, await deps.reads.page(listed));
};

const get: Operation<'cron.get'> = async (deps, call) =>
  jsonReply(JSON.stringify(await scheduleNamed(deps, call)));

/** The next fires from now, even if the schedule is disabled. */
const next: Operation<'cron.nextFires'> = async (deps, call) => {
  const { n } = call.query;
  const { cron_expr, timezone } = await scheduleNamed(deps, call);
  const count = Math.min(Math.max(n, 1), NEXT_FIRES_MAX);
  const fires = nextFires(readExpression(cron_expr), timezone, deps.now(), count).map(isoTime);
  return jsonReply(JSON.stringify({ timezone, fires }));
};

/** Refuses what a creation refuses. */
const preview: Operation<'cron.preview'> = async (deps, { body }) => {
  const { cron_expr } = body;
  const timezone = body.timezone ?? 'UTC';
  const from = body.from == null ? undefined : toUnixMs(body.from);
  const count = body.count ?? PREVIEW_FIRES;
  const fires = nextFires(readExpression(cron_expr), timezone, from ?? deps.now(), count);
  if (fires.length === 0 && from === undefined) throw invalid(`cron_expr ${cron_expr} never fires`);
  const zone = zoneOf(timezone);
  const shown = fires.map((at) => ({ at: isoTime(at), local: zonedTime(zone, at) }));
  const answer: SchedulePreview = { timezone, fires: shown };
  return jsonReply(JSON.stringify(answer));
};

export function openScheduleFront() {
  return {
    operations: {
      'cron.list': list,
      'cron.get': get,
      'cron.nextFires': next,
      'cron.preview': preview,
    },
  } satisfies FrontRoom;
}
