/**
 * What somebody says became of an effect (spec/05 §3). It is stored beside the facts, by the desk of
 * the shard that the receipt leads to, which is the one of its instance. An execution that began
 * elsewhere has its desk there: the guard on its version settles who comes first.
 */

import type { EffectReceipt } from '../../src/core/continuity/effects.js';
import { resolveEffect } from '../../src/core/continuity/effects.js';
import { conflict, notFound } from '../../src/errors.js';
import { Turn } from '../turn.js';
import type { Desk, DeskReply } from './desk.js';
import { touchExecution } from './executions.js';
import type { Asked, Office, Services } from './office.js';
import { tell } from './provenance.js';

export const EFFECT_SERVICES = {
  'continuity.resolveEffect': {
    lineOf: async ({ desk }, { tenant, id }) => (await effectOf(desk, tenant, id)).continuity_id,
    serve: resolve,
  },
} satisfies Services;

async function resolve(
  { desk, keyring }: Office,
  { tenant, id, body }: Asked<'continuity.resolveEffect'>,
): Promise<DeskReply> {
  const before = await effectOf(desk, tenant, id);
  const resolved = resolveEffect(before, body.state, body.provider_receipt_id, desk.now);
  if (!resolved.ok) throw conflict(resolved.message);
  const { receipt, resolution } = resolved;
  const turn = new Turn();
  turn.put('effectResolution.set', id, { id, instance_id: receipt.instance_id, ...resolution });
  // A scope that nobody enrolled has no chain.
  const execution = await desk.deps.rows.execution(receipt.continuity_id);
  if (execution !== undefined) {
    const summary = `effect of block ${receipt.block_id} was ${before.state}, is ${receipt.state}`;
    const { epoch } = execution;
    await tell(desk, keyring, turn, execution, {
      kind: 'effect_resolved',
      epoch,
      summary: summary.slice(0, SUMMARY_LENGTH_MAX),
      evidence: receipt,
    });
    touchExecution(turn, execution);
  }
  await desk.commit(turn);
  return { status: 200, body: receipt };
}

/** Below 500 characters (05 §19 row 27); ids of blocks may be longer. */
const SUMMARY_LENGTH_MAX = 400;

/** @throws EngineError 404 when the tenant ('' is any) has none of that id */
async function effectOf({ deps }: Desk, tenant: string, id: string): Promise<EffectReceipt> {
  const receipt = await deps.rows.effect(id);
  if (receipt === undefined || (tenant !== '' && receipt.tenant_id !== tenant)) {
    throw notFound(`effect ${id}`);
  }
  return receipt;
}
