/**
 * Lists and reports about instances, and the bulk change of their state, which asks the owner of
 * each one. An instance of another tenant is not found.
 */

import type { RouteId } from '../../../schema/routes.js';
import { EngineError, invalid, notFound } from '../../errors.js';
import {
  bodyOf,
  type Call,
  type FrontDeps,
  jsonReply,
  listTenant,
  type Operation,
  pageReply,
  queryOf,
} from './operation.js';

/** Instances that a bulk change asks for at once: their units fill a commit, and no more wait. */
const BULK_WINDOW = 500;

const list: Operation = async (deps, call) => {
  const query = queryOf(deps, call, 'instances.list');
  const filter = {
    tenant: listTenant(call, query.tenant_id),
    namespace: query.namespace,
    sequenceId: query.sequence_id,
    states: query.state,
    metadata: query.metadata,
  };
  return pageReply(call, query, await deps.reads.instances.list(filter, query));
};

/** The same query; its states do not matter, since all of these failed (spec/01 §5.4). */
const deadLetters: Operation = async (deps, call) => {
  const query = queryOf(deps, call, 'instances.deadLetters');
  const filter = {
    tenant: listTenant(call, query.tenant_id),
    namespace: query.namespace,
    sequenceId: query.sequence_id,
    metadata: query.metadata,
  };
  return pageReply(call, query, await deps.reads.instances.deadLetters(filter, query));
};

const outputs: Operation = async (deps, call) => {
  const query = queryOf(deps, call, 'instances.outputs');
  const id = await ownInstance(deps, call);
  return pageReply(call, query, await deps.reads.instances.outputs(id, query));
};

const children: Operation = async (deps, call) => {
  const query = queryOf(deps, call, 'instances.children');
  const id = await ownInstance(deps, call);
  return pageReply(call, query, await deps.reads.instances.children(id, query));
};

const audit: Operation = async (deps, call) => {
  const id = await ownInstance(deps, call);
  return jsonReply(await deps.reads.instances.audit(id));
};

const timeline: Operation = async (deps, call) => {
  const query = queryOf(deps, call, 'instances.timeline');
  const id = instanceId(call);
  const text = await deps.reads.instances.timeline(id, call.tenant, {
    offset: query.offset,
    limit: query.limit,
    includeOutputs: query.include_outputs,
  });
  if (text === undefined) throw notFound(`instance ${id}`);
  return jsonReply(text);
};

/**
 * Goes through the matches in windows, newest first, so that instances born meanwhile are not
 * chased. What was reached before an error stays changed; a repeated call is safe (spec/06 row 45).
 */
const bulkState: Operation = async (deps, call) => {
  const { filter, state } = bodyOf(deps, call, 'instances.bulkState');
  const wanted = {
    tenant: bulkTenant(call, filter.tenant_id),
    namespace: filter.namespace,
    sequenceId: filter.sequence_id,
    states: filter.states,
    metadata: filter.metadata,
  };
  let count = 0;
  let window = await deps.reads.instances.candidates(wanted, undefined, BULK_WINDOW);
  while (window.length > 0) {
    const ids = window.map((candidate) => candidate.id);
    count += await deps.moveMany(ids, state);
    if (window.length < BULK_WINDOW) break;
    window = await deps.reads.instances.candidates(wanted, window.at(-1), BULK_WINDOW);
  }
  return jsonReply(`{"count":${count},"updated":${count}}`);
};

/** The operations on instances that the front thread answers. */
export const instanceOperations = {
  'instances.list': list,
  'instances.deadLetters': deadLetters,
  'instances.outputs': outputs,
  'instances.children': children,
  'instances.audit': audit,
  'instances.timeline': timeline,
  'instances.bulkState': bulkState,
} satisfies Partial<Record<RouteId, Operation>>;

function instanceId(call: Call): string {
  const { id } = call.params;
  if (id === undefined) throw new Error('the route has no id');
  return id;
}

/** The id in the path, of an instance that the tenant has. */
async function ownInstance(deps: FrontDeps, call: Call): Promise<string> {
  const id = instanceId(call);
  const tenant = await deps.reads.instances.tenantOf(id);
  if (tenant === undefined || (call.tenant !== '' && call.tenant !== tenant)) {
    throw notFound(`instance ${id}`);
  }
  return id;
}

/** A change of many needs one tenant: the header's, or without one the filter's (spec/01 §5.8). */
function bulkTenant(call: Call, filtered: string | null | undefined): string {
  const tenant = filtered?.trim() ? filtered : undefined;
  if (call.tenant === '') {
    if (tenant === undefined) throw invalid('filter.tenant_id is required');
    return tenant;
  }
  if (tenant !== undefined && tenant !== call.tenant) {
    throw new EngineError(
      'ENG_FORBIDDEN',
      'forbidden: filter.tenant_id is not the tenant of x-tenant-id',
    );
  }
  return call.tenant;
}
