/** Reads of cron schedules. One of another tenant is not found. */

import { scheduleOf } from '../../../actors/runtime/rows.js';
import { type CronSchedule, NEXT_FIRES_MAX } from '../../../schema/cron.js';
import { nextFires } from '../../core/cron.js';
import { parseCron } from '../../core/cron-fields.js';
import { isoTime } from '../../core/time.js';
import { nextScheduleList, scheduleById, scheduleList } from '../../db/reads/cron-reads.js';
import { rowOf } from '../../db/reads/lookup.js';
import { invalid } from '../../errors.js';
import {
  type CallById,
  type FrontDeps,
  type FrontOperations,
  jsonReply,
  listQuery,
  type Operation,
  pageReply,
} from './operation.js';

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

/** From now on, whether the schedule is enabled or not. */
const next: Operation<'cron.nextFires'> = async (deps, call) => {
  const { n } = call.query;
  const { cron_expr, timezone } = await scheduleNamed(deps, call);
  const parsed = parseCron(cron_expr);
  if (!parsed.ok) throw invalid(parsed.message);
  const count = Math.min(Math.max(n, 1), NEXT_FIRES_MAX);
  const fires = nextFires(parsed.fields, timezone, deps.now(), count).map(isoTime);
  return jsonReply(JSON.stringify({ timezone, fires }));
};

/** The reads of schedules; their changes belong to the schedules. */
export const cronOperations = {
  'cron.list': list,
  'cron.get': get,
  'cron.nextFires': next,
} satisfies Partial<FrontOperations>;
