/** Receipts of what instances and executions did outside (spec/05 §3). */

import type { RouteId } from '../../../schema/routes.js';
import { notFound } from '../../errors.js';
import { jsonReply, listTenant, type Operation, queryOf } from './operation.js';

const ofInstance: Operation = async (deps, call) => {
  const tenant = listTenant(call, queryOf(deps, call, 'instances.effects').tenant_id);
  const { id = '' } = call.params;
  const owner = await deps.reads.instances.tenantOf(id);
  if (owner === undefined || (tenant !== undefined && owner !== tenant)) {
    throw notFound(`instance ${id}`);
  }
  return jsonReply((await deps.reads.effects.ofInstance(id)).text);
};

/** None of an execution that is unknown, or another tenant's. */
const ofExecution: Operation = async (deps, call) => {
  const tenant = listTenant(call, queryOf(deps, call, 'continuity.effects').tenant_id);
  return jsonReply((await deps.reads.effects.ofExecution(call.params.id ?? '', tenant)).text);
};

export const effectOperations = {
  'instances.effects': ofInstance,
  'continuity.effects': ofExecution,
} satisfies Partial<Record<RouteId, Operation>>;
