/** Reads about external work: tasks, attempts, workers and the names of handlers. */

import { BUILTIN_NAMES } from '../../core/builtin.js';
import { notFound } from '../../errors.js';
import {
  type FrontOperations,
  jsonReply,
  listTenant,
  type Operation,
  pageReply,
} from './operation.js';

const tasks: Operation<'workers.tasks'> = async (deps, call) => {
  const { query } = call;
  const filter = {
    tenant: listTenant(call, query.tenant_id),
    states: query.state,
    handlerName: query.handler_name,
    workerId: query.worker_id,
    queueName: query.queue_name,
  };
  return pageReply(call, query, await deps.reads.workers.tasks(filter, query));
};

const stats: Operation<'workers.stats'> = async (deps, call) =>
  jsonReply(JSON.stringify(await deps.reads.workers.counts(listTenant(call))));

const attempts: Operation<'workers.attempts'> = async (deps, call) => {
  const { query } = call;
  const { id } = call.params;
  const page = await deps.reads.workers.attempts(id, call.tenant, query);
  if (page === undefined) throw notFound(`worker task ${id}`);
  return pageReply(call, query, page);
};

/** A worker is alive when it has polled within `alive_within_secs`. */
const list: Operation<'workers.list'> = async (deps, call) => {
  const { query } = call;
  // The parameter has no upper bound; nothing was seen before the clock began.
  const since = Math.max(0, deps.now() - query.alive_within_secs * 1_000);
  const rows = await deps.reads.workers.workers(
    listTenant(call),
    query.include_stale ? null : since,
  );
  const workers = rows.map(({ in_flight, ...row }) => ({
    ...row,
    alive: Date.parse(row.last_seen_at) >= since,
    in_flight,
  }));
  return jsonReply(JSON.stringify(workers));
};

/** `external` are the names that workers have polled for. */
const handlers: Operation<'handlers'> = async (deps, call) => {
  const external = await deps.reads.workers.handlerNames(listTenant(call));
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
