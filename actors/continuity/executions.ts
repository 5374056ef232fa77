/**
 * Executions: their creation, what callers report about them, and the rows every change writes,
 * among them the provenance entry of the change.
 */

import type {
  CheckpointRecord,
  EffectReceipt,
  Execution,
  ProvenanceEntry,
} from '../../schema/continuity.js';
import type { ProvenanceKind } from '../../schema/continuity-words.js';
import { conflict } from '../../src/base/errors.js';
import { owned, seenBy } from '../../src/base/tenancy.js';
import { isoTime } from '../../src/base/time.js';
import { resolveEffect } from '../../src/core/effects.js';
import { canonicalSha256 } from '../../src/core/sealing/canonical-json.js';
import type { Order } from '../instance/orders.js';
import { CHECKPOINT } from '../instance/output-tables.js';
import { Turn } from '../runtime/turn.js';
import { nextProvenanceEntry } from './core/provenance.js';
import type { ExecutionService } from './execution-service.js';
import { type Serve, unwrapped } from './operation.js';
import { type ExecutionRow, executionView } from './rows.js';
import { EFFECT_RESOLUTION, EXECUTION, LOCATION, PROVENANCE } from './tables.js';

/** Enrols an instance: the execution has the id of its first instance. */
export const createExecution: Serve<'continuity.create'> = async (
  service,
  { tenant, body: { instance_id, runtime_id } },
) => {
  const { rows } = service;
  // Before the instance is ordered: it may be deleted or fenced.
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
  await service.order(created, { expect, changes: [enrol] }, turn);
  // The instance may have ended already.
  const shown = await rows.one('shownExecution', instance_id);
  return shown === undefined ? created : executionView(shown);
};

/** The owner of an execution without a registered runtime: this server. */
const NO_RUNTIME = '00000000-0000-0000-0000-000000000000';

/** The execution of an instance that is not enrolled. */
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

/** @param changes made in the same unit, for the reason that `entry` gives */
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

/** Gives an execution that the server enrolled by itself to the caller's runtime. */
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

/** Callers may add entries up to this length, so that the chain can be verified as a whole. */
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
  const turn = new Turn();
  const evidence = { sha256: body.payload_sha256.toLowerCase() };
  const entry = await putNextEntry(service, turn, execution, { kind: body.kind, evidence });
  touchExecution(turn, execution);
  await service.commit(turn);
  return entry;
};

/** Below the 500 of an entry; ids of blocks may be longer. */
const SUMMARY_LENGTH_MAX = 400;

/**
 * Stores the outcome of an effect that a caller reports. Runs on the shard of the instance; the
 * execution may belong to another shard, so the version of its row decides between concurrent units.
 */
export const settleEffect: Serve<'continuity.resolveEffect'> = async (
  service,
  { tenant, id, body },
) => {
  const before = await effectOf(service, tenant, id);
  const resolved = resolveEffect(before, body.state, body.provider_receipt_id, service.now);
  const receipt = unwrapped(resolved, conflict);
  const turn = new Turn();
  turn.put(EFFECT_RESOLUTION.set, id, receipt);
  // An instance that is not enrolled has no chain.
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

export function shownExecution({ version: _, ...execution }: ExecutionRow): Execution {
  return execution;
}

/** The unit commits nothing if the execution has changed since it was read. */
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

/** Guards a unit that changes dependent rows only by the version of the execution. */
export function touchExecution(turn: Turn, execution: ExecutionRow): void {
  turn.put(EXECUTION.update, execution.continuity_id, execution);
}

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

export function putCheckpoint(
  service: ExecutionService,
  turn: Turn,
  instance_id: string,
  { checkpoint_data, created_at }: Pick<CheckpointRecord, 'checkpoint_data' | 'created_at'>,
): void {
  const id = service.newIdLike(instance_id);
  turn.put(CHECKPOINT.insert, id, { id, instance_id, checkpoint_data, created_at });
}

/** Commits the unit, with the order for the current instance if that is in this database. */
export async function commitWith(
  service: ExecutionService,
  turn: Turn,
  execution: ExecutionRow,
  order: Pick<Order, 'expect' | 'changes'>,
): Promise<void> {
  const isHere = await service.rows.isHere(execution.current_instance_id);
  if (isHere) await service.order(execution, order, turn);
  else await service.commit(turn);
}

/** Commits the unit and lifts the fence of the imported instance with it. */
export async function ownImported(
  service: ExecutionService,
  turn: Turn,
  execution: Execution,
): Promise<void> {
  const expect = { states: ['paused'], fence: 'imported' } as const;
  const own = { kind: 'own', epoch: execution.epoch } as const;
  await service.order(execution, { expect, changes: [own] }, turn);
}

export interface NewEntry {
  readonly kind: ProvenanceKind;
  /** Below 500 characters, without anything of the payload. */
  readonly summary?: string;
  /** Only its hash is stored. */
  readonly evidence: object | { readonly sha256: string };
}

/** The execution after the change that the entry describes. */
type Scope = Pick<ExecutionRow, 'continuity_id' | 'tenant_id' | 'epoch'>;

/** Chains are written in the line of their execution only, so the head is current. */
export async function putNextEntry(
  service: ExecutionService,
  turn: Turn,
  execution: Scope,
  entry: NewEntry,
): Promise<ProvenanceEntry> {
  const head = await service.rows.one('provenanceHead', execution.continuity_id);
  return putEntry(service, turn, execution, entry, head ?? null);
}

/** Puts the first entry of a chain, or one whose predecessor is known. */
export function putEntry(
  service: ExecutionService,
  turn: Turn,
  { continuity_id, tenant_id, epoch }: Scope,
  { kind, summary, evidence }: NewEntry,
  previous: { readonly entry_sha256: string; readonly seq: number } | null,
): ProvenanceEntry {
  const sha256 = (evidence as { sha256?: unknown }).sha256;
  const entry = nextProvenanceEntry(
    previous,
    {
      id: service.newIdLike(continuity_id),
      continuity_id,
      tenant_id,
      epoch,
      kind,
      ...(summary === undefined ? {} : { redacted_summary: summary }),
      payload_sha256: typeof sha256 === 'string' ? sha256 : canonicalSha256(evidence),
      created_at: isoTime(service.now),
    },
    service.keyring?.signing,
  );
  const seq = previous === null ? 0 : previous.seq + 1;
  turn.put(PROVENANCE.insert, `${continuity_id}:${seq}`, { ...entry, seq });
  return entry;
}
