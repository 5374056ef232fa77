/**
 * What somebody says became of an effect. It is stored beside the facts, by the service of
 * the shard that the receipt leads to, which is the one of its instance. An execution that began
 * elsewhere has its service there: the guard on its version settles who comes first.
 */

import type { EffectReceipt } from '../../schema/continuity.js';
import { resolveEffect } from '../../src/core/continuity/effects.js';
import { conflict, notFound } from '../../src/errors.js';
import { Turn } from '../runtime/turn.js';
import type { ExecutionService, OperationReply } from './execution-service.js';
import { touchExecution } from './executions.js';
import type { Asked, ExecutionOperations } from './operation.js';
import { putNextEntry } from './provenance.js';

export const EFFECT_OPERATIONS = {
  'continuity.resolveEffect': {
    lineOf: async (service, { tenant, id }) => (await effectOf(service, tenant, id)).continuity_id,
    serve: resolve,
  },
} satisfies Partial<ExecutionOperations>;

async function resolve(
  service: ExecutionService,
  { tenant, id, body }: Asked<'continuity.resolveEffect'>,
): Promise<OperationReply> {
  const before = await effectOf(service, tenant, id);
  const resolved = resolveEffect(before, body.state, body.provider_receipt_id, service.now);
  if (!resolved.ok) throw conflict(resolved.message);
  const { receipt, resolution } = resolved;
  const turn = new Turn();
  turn.put('effectResolution.set', id, { id, instance_id: receipt.instance_id, ...resolution });
  // A scope that nobody enrolled has no chain.
  const execution = await service.rows.execution(receipt.continuity_id);
  if (execution !== undefined) {
    const summary = `effect of block ${receipt.block_id} was ${before.state}, is ${receipt.state}`;
    const { epoch } = execution;
    await putNextEntry(service, turn, execution, {
      kind: 'effect_resolved',
      epoch,
      summary: summary.slice(0, SUMMARY_LENGTH_MAX),
      evidence: receipt,
    });
    touchExecution(turn, execution);
  }
  await service.commit(turn);
  return { status: 200, body: receipt };
}

/** Below 500 characters; ids of blocks may be longer. */
const SUMMARY_LENGTH_MAX = 400;

/** @throws EngineError 404 when the tenant ('' is any) has none of that id */
async function effectOf(
  { rows }: ExecutionService,
  tenant: string,
  id: string,
): Promise<EffectReceipt> {
  const receipt = await rows.effect(id);
  if (receipt === undefined || (tenant !== '' && receipt.tenant_id !== tenant)) {
    throw notFound(`effect ${id}`);
  }
  return receipt;
}
