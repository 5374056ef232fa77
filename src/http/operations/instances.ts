/** Lists and reports about instances. An instance of another tenant is not found. */

import { CHECKPOINTS_LISTED_MAX } from '../../../schema/edits.js';
import { notFound } from '../../errors.js';
import {
  type CallById,
  type FrontDeps,
  type FrontOperations,
  jsonReply,
  listTenant,
  type Operation,
  pageReply,
} from './operation.js';

const list: Operation<'instances.list'> = async (deps, call) => {
  const { query } = call;
  const filter = {
    tenant: listTenant(call, query.tenant_id),
    namespace: query.namespace,
    sequenceId: query.sequence_id,
    states: query.state,
    metadata: query.metadata,
  };
  return pageReply(call, query, await deps.reads.instances.list(filter, query));
};

/** The same query; its states do not matter, since all of these failed. */
const deadLetters: Operation<'instances.deadLetters'> = async (deps, call) => {
  const { query } = call;
  const filter = {
    tenant: listTenant(call, query.tenant_id),
    namespace: query.namespace,
    sequenceId: query.sequence_id,
    metadata: query.metadata,
  };
  return pageReply(call, query, await deps.reads.instances.deadLetters(filter, query));
};

const outputs: Operation<'instances.outputs'> = async (deps, call) => {
  const { query } = call;
  const id = await ownInstance(deps, call);
  return pageReply(call, query, await deps.reads.instances.outputs(id, query));
};

const children: Operation<'instances.children'> = async (deps, call) => {
  const { query } = call;
  const id = await ownInstance(deps, call);
  return pageReply(call, query, await deps.reads.instances.children(id, query));
};

const audit: Operation<'instances.audit'> = async (deps, call) => {
  const id = await ownInstance(deps, call);
  return jsonReply(await deps.reads.instances.audit(id));
};

const timeline: Operation<'instances.timeline'> = async (deps, call) => {
  const { query } = call;
  const { id } = call.params;
  const text = await deps.reads.instances.timeline(id, call.tenant, {
    offset: query.offset,
    limit: query.limit,
    includeOutputs: query.include_outputs,
  });
  if (text === undefined) throw notFound(`instance ${id}`);
  return jsonReply(text);
};

const logs: Operation<'instances.logs'> = async (deps, call) => {
  const { query } = call;
  const id = await ownInstance(deps, call);
  return pageReply(call, query, await deps.reads.notes.lines(id, query));
};

const checkpoints: Operation<'instances.checkpoints'> = async (deps, call) => {
  const id = await ownInstance(deps, call);
  return jsonReply(await deps.reads.notes.checkpoints(id, CHECKPOINTS_LISTED_MAX));
};

const latestCheckpoint: Operation<'instances.latestCheckpoint'> = async (deps, call) => {
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
} satisfies Partial<FrontOperations>;

/** The id in the path, of an instance that the tenant has. */
async function ownInstance(deps: FrontDeps, call: CallById): Promise<string> {
  const { id } = call.params;
  const tenant = await deps.reads.instances.tenantOf(id);
  if (tenant === undefined || (call.tenant !== '' && call.tenant !== tenant)) {
    throw notFound(`instance ${id}`);
  }
  return id;
}
