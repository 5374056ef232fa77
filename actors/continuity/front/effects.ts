/** Receipts of what instances and executions did outside. */

import { rowOf } from '../../../src/db/reads/lookup.js';
import {
  type FrontOperations,
  jsonReply,
  listQuery,
  type Operation,
  pageReply,
} from '../../../src/http/operation.js';
import { instanceTenant } from '../../instance/front/instance-reads.js';
import { effectList, effectsOfExecution, effectsOfInstance } from '../effect-reads.js';

const ofInstance: Operation<'instances.effects'> = async (deps, call) => {
  const { tenant_id: tenant = '', ...page } = listQuery(call);
  const { id = '' } = call.params;
  await rowOf(deps.reads, instanceTenant, 'instance', id, tenant);
  const found = await deps.reads.page(effectList(effectsOfInstance(id, page)));
  return pageReply(call, { ...page, offset: 0 }, found);
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
