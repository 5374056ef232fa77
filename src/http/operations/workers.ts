/** Reads about external work: tasks, attempts, workers and the names of handlers. */

import { BUILTIN_NAMES } from '../../core/builtin.js';
import {
  handlerNames,
  taskAttempts,
  taskCounts,
  taskList,
  workers,
} from '../../db/reads/worker-reads.js';
import { notFound } from '../../errors.js';
import {
  type FrontOperations,
  jsonReply,
  listQuery,
  listTenant,
  type Operation,
  pageReply,
} from './operation.js';

const tasks: Operation<'workers.tasks'> = async (deps, call) => {
  const query = listQuery(call);
  return pageReply(call, query, await deps.reads.page(taskList(query)));
};

const stats: Operation<'workers.stats'> = async (deps, call) =>
  jsonReply(JSON.stringify(await taskCounts(deps.reads, listTenant(call))));

const attempts: Operation<'workers.attempts'> = async (deps, call) => {
  const { query } = call;
  const { id } = call.params;
  const page = await taskAttempts(deps.reads, id, call.tenant, query);
  if (page === undefined) throw notFound(`worker task ${id}`);
  return pageReply(call, query, page);
};

/** A worker is alive when it has polled within `alive_within_secs`. */
const list: Operation<'workers.list'> = async (deps, call) => {
  const { query } = call;
  // The parameter has no upper bound; nothing was seen before the clock began.
  const since = Math.max(0, deps.now() - query.alive_within_secs * 1_000);
  const seenSince = query.include_stale ? null : since;
  const rows = await workers(deps.reads, listTenant(call), seenSince);
  const records = rows.map(({ in_flight, ...row }) => ({
    ...row,
    alive: Date.parse(row.last_seen_at) >= since,
    in_flight,
  }));
  return jsonReply(JSON.stringify(records));
};

/** `external` are the names that workers have polled for. */
const handlers: Operation<'handlers'> = async (deps, call) => {
  const external = await handlerNames(deps.reads, listTenant(call));
  return jsonReply(JSON.stringify({ builtin: [...BUILTIN_NAMES], external }));
};

/** The reads of external work; claims and outcomes belong to the instances. */
export const workerOperations = {
  'workers.tasks': tasks,
  'workers.stats': stats,
  'workers.attempts': attempts,
  'workers.list': list,
  handlers,
} satisfies Partial<FrontOperations>;
