/** Receipts of what instances and executions did outside. */

import { effectList, effectsOfExecution, effectsOfInstance } from '../../db/reads/effect-reads.js';
import { instanceTenant } from '../../db/reads/instance-reads.js';
import { rowOf } from '../../db/reads/lookup.js';
import { type FrontOperations, jsonReply, listQuery, type Operation } from './operation.js';

const ofInstance: Operation<'instances.effects'> = async (deps, call) => {
  const { tenant_id: tenant = '' } = listQuery(call);
  const { id = '' } = call.params;
  await rowOf(deps.reads, instanceTenant, 'instance', id, tenant);
  return jsonReply((await deps.reads.page(effectList(effectsOfInstance(id)))).text);
};

/** None of an execution that is unknown, or another tenant's. */
const ofExecution: Operation<'continuity.effects'> = async (deps, call) => {
  const query = effectsOfExecution(call.params.id, listQuery(call).tenant_id);
  return jsonReply((await deps.reads.page(effectList(query))).text);
};

export const effectOperations = {
  'instances.effects': ofInstance,
  'continuity.effects': ofExecution,
} satisfies Partial<FrontOperations>;
