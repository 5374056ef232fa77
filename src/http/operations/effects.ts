/** Receipts of what instances and executions did outside. */

import { notFound } from '../../errors.js';
import { type FrontOperations, jsonReply, listTenant, type Operation } from './operation.js';

const ofInstance: Operation<'instances.effects'> = async (deps, call) => {
  const tenant = listTenant(call, call.query.tenant_id);
  const { id = '' } = call.params;
  const owner = await deps.reads.instances.tenantOf(id);
  if (owner === undefined || (tenant !== undefined && owner !== tenant)) {
    throw notFound(`instance ${id}`);
  }
  return jsonReply((await deps.reads.effects.ofInstance(id)).text);
};

/** None of an execution that is unknown, or another tenant's. */
const ofExecution: Operation<'continuity.effects'> = async (deps, call) => {
  const tenant = listTenant(call, call.query.tenant_id);
  return jsonReply((await deps.reads.effects.ofExecution(call.params.id, tenant)).text);
};

export const effectOperations = {
  'instances.effects': ofInstance,
  'continuity.effects': ofExecution,
} satisfies Partial<FrontOperations>;
