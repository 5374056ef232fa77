/** Reads of external work: tasks, attempts, workers and handler names. */

import { BUILTIN_NAMES } from '../../../src/core/builtin.js';
import type { FrontRoom } from '../../../src/http/front-room.js';
import {
  jsonReply,
  listBy,
  listQuery,
  listTenant,
  type Operation,
  pageReply,
} from '../../../src/http/operation.js';
import { handlerNameList, taskAttempts, taskCounts, taskList, workers } from './reads.js';

const stats: Operation<'workers.stats'> = async (deps, call) =>
  jsonReply(JSON.stringify(await taskCounts(deps.reads, listTenant(call, call.query.tenant_id))));

const attempts: Operation<'workers.attempts'> = async (deps, call) => {
  const { query, params, tenant } = call;
  return pageReply(call, query, await taskAttempts(deps.reads, params.id, tenant, query));
};

/** A worker is alive when it has polled within `alive_within_secs`. */
const list: Operation<'workers.list'> = async (deps, call) => {
  const { query } = call;
  // The parameter has no upper bound; nothing was seen before the clock began.
  const since = Math.max(0, deps.now() - query.alive_within_secs * 1_000);
  const seenSince = query.include_stale ? null : since;
  const rows = await workers(deps.reads, listTenant(call, query.tenant_id), seenSince);
  const records = rows.map(({ in_flight, ...row }) => ({
    ...row,
    alive: Date.parse(row.last_seen_at) >= since,
    in_flight,
  }));
  return jsonReply(JSON.stringify(records));
};

/** `external` are the names that workers have polled for. */
const handlers: Operation<'handlers'> = async (deps, call) => {
  const external = await deps.reads.page(handlerNameList(listQuery(call)));
  const builtin = JSON.stringify([...BUILTIN_NAMES]);
  return jsonReply(`{"builtin":${builtin},"external":${external.text}}`);
};

/** Claims and outcomes belong to the instances. */
export function openQueueFront() {
  return {
    operations: {
      'workers.tasks': listBy(taskList),
      'workers.stats': stats,
      'workers.attempts': attempts,
      'workers.list': list,
      handlers,
    },
  } satisfies FrontRoom;
}
