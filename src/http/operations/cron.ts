/** Reads of cron schedules. One of another tenant is not found. */

import { type CronSchedule, NEXT_FIRES_MAX } from '../../../schema/cron.js';
import { nextFires } from '../../core/cron.js';
import { parseCron } from '../../core/cron-fields.js';
import { isoTime } from '../../core/time.js';
import { invalid, notFound } from '../../errors.js';
import {
  type CallById,
  type FrontDeps,
  type FrontOperations,
  jsonReply,
  listTenant,
  type Operation,
  pageReply,
} from './operation.js';

async function scheduleOf(deps: FrontDeps, call: CallById): Promise<CronSchedule> {
  const { id } = call.params;
  const schedule = await deps.reads.cron.get(id, call.tenant);
  if (schedule === undefined) throw notFound(`cron schedule ${id}`);
  return schedule;
}

const list: Operation<'cron.list'> = async (deps, call) => {
  const { query } = call;
  const tenant = listTenant(call, query.tenant_id);
  return pageReply(call, query, await deps.reads.cron.list(tenant, query));
};

const get: Operation<'cron.get'> = async (deps, call) =>
  jsonReply(JSON.stringify(await scheduleOf(deps, call)));

/** From now on, whether the schedule is enabled or not. */
const next: Operation<'cron.nextFires'> = async (deps, call) => {
  const { n } = call.query;
  const { cron_expr, timezone } = await scheduleOf(deps, call);
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
