/** The creation of executions, and reports of callers about them. */

import type { Execution } from '../../schema/continuity.js';
import { conflict } from '../../src/base/errors.js';
import { owned, seenBy } from '../../src/base/tenancy.js';
import { isoTime } from '../../src/base/time.js';
import { resolveEffect } from '../../src/core/effects.js';
import { Turn } from '../runtime/turn.js';
import { type ExecutionService, ExecutionUnit } from './execution-service.js';
import { type Serve, unwrapped } from './operation.js';
import { executionView } from './rows.js';
import { EFFECT_RESOLUTION } from './tables.js';

/** Enrols an instance: the execution has the id of its first instance. */
export const createExecution: Serve<'continuity.create'> = async (
  service,
  { tenant, body: { instance_id, runtime_id } },
) => {
  const { rows } = service;
  // Before the order: the instance may be deleted or fenced.
  const execution = seenBy(tenant, await rows.one('execution', instance_id));
  if (execution?.owner_runtime_id === NO_RUNTIME) {
    // The server enrolled the instance: the caller's runtime becomes the owner.
    const unit = new ExecutionUnit(service, execution, { owner_runtime_id: runtime_id });
    await unit.commit();
    return unit.execution;
  }
  if (execution !== undefined || seenBy(tenant, await rows.one('importOf', instance_id))) {
    throw conflict(`instance ${instance_id} belongs to an execution already`);
  }
  const instance = await rows.one('instance', instance_id);
  const { tenant_id } = owned(instance, tenant, `instance ${instance_id}`);
  const created = implicitExecution(service, { id: instance_id, tenant_id }, runtime_id);
  const unit = ExecutionUnit.begin(service, created);
  const enrol = { kind: 'enrol', continuityId: instance_id, epoch: 0 } as const;
  const expect = { epoch: 0, fence: 'none' } as const;
  await service.order(created, { expect, changes: [enrol] }, unit);
  // The instance may have ended already.
  const shown = await rows.one('shownExecution', instance_id);
  return shown === undefined ? created : executionView(shown);
};

/** Owner without a registered runtime: this server. */
const NO_RUNTIME = '00000000-0000-0000-0000-000000000000';

export function implicitExecution(
  service: ExecutionService,
  { id, tenant_id }: { readonly id: string; readonly tenant_id: string },
  owner_runtime_id = NO_RUNTIME,
): Execution {
  return {
    continuity_id: id,
    tenant_id,
    current_instance_id: id,
    owner_runtime_id,
    epoch: 0,
    state: 'owned',
    updated_at: isoTime(service.now),
  };
}

/** Bounds the verification of the whole chain. */
const CHAIN_LENGTH_MAX = 10_000;

export const appendProvenance: Serve<'continuity.appendProvenance'> = async (
  service,
  { tenant, id, body },
) => {
  const execution = await service.rows.owned('execution', tenant, id);
  const head = await service.rows.one('provenanceHead', id);
  if (head !== undefined && head.seq + 1 >= CHAIN_LENGTH_MAX) {
    throw conflict(`the chain has ${CHAIN_LENGTH_MAX} entries`);
  }
  const unit = new ExecutionUnit(service, execution);
  const evidence = { sha256: body.payload_sha256.toLowerCase() };
  const entry = await unit.enter({ kind: body.kind, evidence });
  await unit.commit();
  return entry;
};

/** Below the 500 of an entry; ids of blocks may be longer. */
const SUMMARY_LENGTH_MAX = 400;

/**
 * Stores a reported outcome of an effect. Runs on the shard of the instance; the execution may be
 * on another one, so the version of its row decides between concurrent units.
 */
export const settleEffect: Serve<'continuity.resolveEffect'> = async (
  service,
  { tenant, id, body },
) => {
  const before = await effectOf(service, tenant, id);
  const resolved = resolveEffect(before, body.state, body.provider_receipt_id, service.now);
  const receipt = unwrapped(resolved, conflict);
  const execution = await service.rows.one('execution', receipt.continuity_id);
  // An instance that is not enrolled has no chain.
  const unit = execution && new ExecutionUnit(service, execution);
  const summary = `effect of block ${receipt.block_id} was ${before.state}, is ${receipt.state}`;
  const entry = { kind: 'effect_resolved', summary: summary.slice(0, SUMMARY_LENGTH_MAX) } as const;
  await unit?.enter({ ...entry, evidence: receipt });
  const turn = unit ?? new Turn();
  turn.put(EFFECT_RESOLUTION.set, id, receipt);
  await service.commit(turn);
  return receipt;
};

export async function effectOf({ rows }: ExecutionService, tenant: string, id: string) {
  return owned(await rows.effect(id), tenant, `effect ${id}`);
}
