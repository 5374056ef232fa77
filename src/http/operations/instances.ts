/** Lists and reports about instances. An instance of another tenant is not found. */

import type { RouteId } from '../../../schema/routes.js';
import { CHECKPOINTS_LISTED_MAX } from '../../../schema/surgery.js';
import { notFound } from '../../errors.js';
import {
  type Call,
  type FrontDeps,
  jsonReply,
  listTenant,
  type Operation,
  pageReply,
  queryOf,
} from './operation.js';

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

const logs: Operation = async (deps, call) => {
  const query = queryOf(deps, call, 'instances.logs');
  const id = await ownInstance(deps, call);
  return pageReply(call, query, await deps.reads.notes.lines(id, query));
};

const checkpoints: Operation = async (deps, call) => {
  const id = await ownInstance(deps, call);
  return jsonReply(await deps.reads.notes.checkpoints(id, CHECKPOINTS_LISTED_MAX));
};

const latestCheckpoint: Operation = async (deps, call) => {
  const id = await ownInstance(deps, call);
  const text = await deps.reads.notes.latestCheckpoint(id);
  if (text === undefined) throw notFound(`instance ${id} has no checkpoint`);
  return jsonReply(text);
};

/** The reads about instances; `bulk.ts` has the changes of many. */
export const instanceOperations = {
  'instances.list': list,
  'instances.deadLetters': deadLetters,
  'instances.outputs': outputs,
  'instances.children': children,
  'instances.audit': audit,
  'instances.timeline': timeline,
  'instances.logs': logs,
  'instances.checkpoints': checkpoints,
  'instances.latestCheckpoint': latestCheckpoint,
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
