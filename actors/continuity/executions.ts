/**
 * Executions: how an instance gets one, what callers say of one, and the rows that every change of one
 * writes.
 */

import type { CheckpointRecord, EffectReceipt, Execution } from '../../schema/continuity.js';
import { conflict } from '../../src/base/errors.js';
import { owned, seenBy } from '../../src/base/tenancy.js';
import { isoTime } from '../../src/base/time.js';
import { resolveEffect } from '../../src/core/effects.js';
import type { Order } from '../instance/orders.js';
import { CHECKPOINT } from '../instance/output-tables.js';
import { Turn } from '../runtime/turn.js';
import { executionView } from './core/execution-view.js';
import type { ExecutionService } from './execution-service.js';
import { type Serve, taken } from './operation.js';
import { type NewEntry, putEntry, putNextEntry } from './provenance.js';
import type { ExecutionRow } from './rows.js';
import { EFFECT_RESOLUTION, EXECUTION, LOCATION } from './tables.js';

/** Adopts the scope that the instance has by itself: its id is that of the execution. */
export const createExecution: Serve<'continuity.create'> = async (
  service,
  { tenant, body: { instance_id, runtime_id } },
) => {
  const { rows } = service;
  // What exists is answered before the instance is asked, which may be gone or fenced.
  const execution = seenBy(tenant, await rows.one('execution', instance_id));
  if (execution?.owner_runtime_id === NO_RUNTIME) return adopted(service, execution, runtime_id);
  if (execution !== undefined || seenBy(tenant, await rows.one('importOf', instance_id))) {
    throw conflict(`instance ${instance_id} belongs to an execution already`);
  }
  const instance = await rows.one('instance', instance_id);
  const { tenant_id } = owned(instance, tenant, `instance ${instance_id}`);
  const created = implicitExecution(service, { id: instance_id, tenant_id }, runtime_id);
  const turn = new Turn();
  putNewExecution(service, turn, created);
  const enrol = { kind: 'enrol', continuityId: instance_id, epoch: 0 } as const;
  const expect = { epoch: 0, fence: 'none' } as const;
  await service.order(instance_id, tenant_id, { expect, changes: [enrol] }, turn);
  // Its instance may have ended already.
  const shown = await rows.one('shownExecution', instance_id);
  return shown === undefined ? created : executionView(shown);
};

/** The owner of an execution that nobody has enrolled: this server. */
export const NO_RUNTIME = '00000000-0000-0000-0000-000000000000';

/** What every instance is before somebody enrols it. */
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

/**
 * The rows of an execution that is written for the first time.
 *
 * @param changes what it becomes in the same unit, for the reason that `entry` gives
 */
export function putNewExecution(
  service: ExecutionService,
  turn: Turn,
  execution: Execution,
  changes: Partial<Pick<Execution, 'epoch'>> = {},
  entry?: NewEntry,
): void {
  const after = { ...execution, ...changes };
  turn.put(EXECUTION.insert, execution.continuity_id, after);
  putLocation(turn, execution, null);
  const created = { kind: 'execution_created', summary: 'execution created' } as const;
  const evidence = { ...created, evidence: execution };
  const { entry_sha256 } = putEntry(service, turn, execution, evidence, null);
  if (entry === undefined) return;
  putLocation(turn, after, null);
  putEntry(service, turn, after, entry, { entry_sha256, seq: 0 });
}

/** One that the server enrolled by itself gets the caller's runtime as its owner. */
async function adopted(
  service: ExecutionService,
  execution: ExecutionRow,
  owner_runtime_id: string,
): Promise<Execution> {
  const turn = new Turn();
  const after = putExecution(service, turn, execution, { owner_runtime_id });
  await service.commit(turn);
  return after;
}

/** Up to which callers may add to a chain, so that it can be verified as a whole. */
const CHAIN_LENGTH_MAX = 10_000;

/** An entry of the caller's own. */
export const appendProvenance: Serve<'continuity.appendProvenance'> = async (
  service,
  { tenant, id, body },
) => {
  const execution = await service.rows.owned('execution', tenant, id);
  const head = await service.rows.one('provenanceHead', id);
  if (head !== undefined && head.seq + 1 >= CHAIN_LENGTH_MAX) {
    throw conflict(`the chain has ${CHAIN_LENGTH_MAX} entries`);
  }
  const turn = new Turn();
  const evidence = { sha256: body.payload_sha256.toLowerCase() };
  const entry = await putNextEntry(service, turn, execution, { kind: body.kind, evidence });
  touchExecution(turn, execution);
  await service.commit(turn);
  return entry;
};

/** Below 500 characters; ids of blocks may be longer. */
const SUMMARY_LENGTH_MAX = 400;

/**
 * What somebody says became of an effect. It is stored beside the facts, by the service of the shard
 * that the receipt leads to, which is the one of its instance. An execution that began elsewhere has
 * its service there: the guard on its version settles who comes first.
 */
export const settleEffect: Serve<'continuity.resolveEffect'> = async (
  service,
  { tenant, id, body },
) => {
  const before = await effectOf(service, tenant, id);
  const resolved = resolveEffect(before, body.state, body.provider_receipt_id, service.now);
  const receipt = taken(resolved, conflict);
  const turn = new Turn();
  turn.put(EFFECT_RESOLUTION.set, id, receipt);
  // A scope that nobody enrolled has no chain.
  const execution = await service.rows.one('execution', receipt.continuity_id);
  if (execution !== undefined) {
    const summary = `effect of block ${receipt.block_id} was ${before.state}, is ${receipt.state}`;
    await putNextEntry(service, turn, execution, {
      kind: 'effect_resolved',
      summary: summary.slice(0, SUMMARY_LENGTH_MAX),
      evidence: receipt,
    });
    touchExecution(turn, execution);
  }
  await service.commit(turn);
  return receipt;
};

/** Rejects with 404 when the tenant ('' is any) has none of that id. */
export async function effectOf(
  { rows }: ExecutionService,
  tenant: string,
  id: string,
): Promise<EffectReceipt> {
  return owned(await rows.effect(id), tenant, `effect ${id}`);
}

/** The wire record. */
export function shownExecution({ version: _, ...execution }: ExecutionRow): Execution {
  return execution;
}

/** Changes an execution in a unit, which commits nothing if it has changed since it was read. */
export function putExecution(
  service: ExecutionService,
  turn: Turn,
  before: ExecutionRow,
  changes: Partial<Pick<Execution, 'current_instance_id' | 'owner_runtime_id' | 'epoch' | 'state'>>,
): Execution {
  const after = { ...before, ...changes, updated_at: isoTime(service.now) };
  touchExecution(turn, after);
  return shownExecution(after);
}

/** For a unit that changes what hangs on the execution, and nothing of itself; guarded the same. */
export function touchExecution(turn: Turn, execution: ExecutionRow): void {
  turn.put(EXECUTION.update, execution.continuity_id, execution);
}

/** Where the execution is at its epoch. */
export function putLocation(turn: Turn, execution: Execution, handoff_id: string | null): void {
  const { continuity_id, tenant_id, epoch, owner_runtime_id, current_instance_id } = execution;
  turn.put(LOCATION.insert, `${continuity_id}:${epoch}`, {
    continuity_id,
    tenant_id,
    epoch,
    runtime_id: owner_runtime_id,
    instance_id: current_instance_id,
    handoff_id,
    entered_at: execution.updated_at,
  });
}

/** One more checkpoint of an instance. */
export function putCheckpoint(
  service: ExecutionService,
  turn: Turn,
  instance_id: string,
  { checkpoint_data, created_at }: Pick<CheckpointRecord, 'checkpoint_data' | 'created_at'>,
): void {
  const id = service.newIdLike(instance_id);
  turn.put(CHECKPOINT.insert, id, { id, instance_id, checkpoint_data, created_at });
}

/** Commits the unit, with what its present instance is asked where that is in this database. */
export async function commitWith(
  service: ExecutionService,
  turn: Turn,
  { current_instance_id: instance, tenant_id }: ExecutionRow,
  order: Pick<Order, 'expect' | 'changes'>,
): Promise<void> {
  if (await service.rows.isHere(instance)) await service.order(instance, tenant_id, order, turn);
  else await service.commit(turn);
}

/** Commits the unit, and has the paused instance that was imported own the execution with it. */
export async function ownImported(
  service: ExecutionService,
  turn: Turn,
  { current_instance_id: instance, tenant_id, epoch }: Execution,
): Promise<void> {
  const expect = { states: ['paused'], fence: 'imported' } as const;
  await service.order(instance, tenant_id, { expect, changes: [{ kind: 'own', epoch }] }, turn);
}
