/** Receipts of what instances and executions did outside. */

import { effectList, effectsOfExecution, effectsOfInstance } from '../../db/reads/effect-reads.js';
import { instanceTenant } from '../../db/reads/instance-reads.js';
import { owned } from '../../db/reads/lookup.js';
import { notFound } from '../../errors.js';
import { type FrontOperations, jsonReply, listQuery, type Operation } from './operation.js';

const ofInstance: Operation<'instances.effects'> = async (deps, call) => {
  const { tenant_id: tenant = '' } = listQuery(call);
  const { id = '' } = call.params;
  const row = owned(await instanceTenant.row(deps.reads, id), tenant);
  if (row === undefined) throw notFound(`instance ${id}`);
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
