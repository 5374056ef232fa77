/**
 * Executions: their creation, reports of callers, and changes of ownership. The acceptance of a handoff
 * makes the destination the owner. A destination with its own database proves by a signed receipt that
 * it imported the capsule, and claims the execution with the signed grant that it receives.
 */

import type { Execution } from '../../schema/continuity.js';
import { isUuid } from '../../schema/formats.js';
import type {
  AcceptHandoff,
  ClaimExecution,
  HandoffAccepted,
  ImportReceipt,
  OwnershipGrant,
} from '../../schema/handoff.js';
import { conflict, EngineError, invalid, notFound } from '../../src/base/errors.js';
import { isJsonObject, type JsonObject, ownValue } from '../../src/base/json.js';
import { parseJson } from '../../src/base/json-guard.js';
import { owned, seenBy } from '../../src/base/tenancy.js';
import { isoTime } from '../../src/base/time.js';
import { resolveEffect } from '../../src/core/effects.js';
import { Turn } from '../runtime/turn.js';
import { handoffView } from './core/handoff.js';
import { type GrantFacts, openStatement, signStatement, states } from './core/statements.js';
import { type ExecutionService, ExecutionUnit, shownExecution } from './execution-service.js';
import {
  fenceMoved,
  type HandoffAndExecution,
  handoffAndExecution,
  MOVED_FENCE,
  requireExecution,
  requireState,
} from './handoffs.js';
import { keysOf, type Serve, unwrapped } from './operation.js';
import { executionView, type ImportRow } from './rows.js';
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
  const owned = { owner_runtime_id, epoch: 0, state: 'owned' } as const;
  const updated_at = isoTime(service.now);
  return { continuity_id: id, tenant_id, current_instance_id: id, ...owned, updated_at };
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
  { request, tenant, id, body },
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
  turn.request = request;
  turn.put(EFFECT_RESOLUTION.set, id, receipt);
  await service.commit(turn);
  return receipt;
};

export async function effectOf({ rows }: ExecutionService, tenant: string, id: string) {
  return owned(await rows.effect(id), tenant, `effect ${id}`);
}

interface Acceptance extends HandoffAndExecution {
  /** The destination's instance, named by the caller. */
  readonly instance: string;
}

export const acceptHandoff: Serve<'handoffs.accept'> = async (service, { tenant, id, body }) => {
  const { rows } = service;
  const instance = body.destination_instance_id;
  const acceptance = { ...(await handoffAndExecution(service, tenant, id)), instance };
  const here = await rows.one('instance', instance);
  if (here === undefined) return acceptElsewhere(service, acceptance, body);
  const { handoff, execution } = acceptance;
  if (here.tenant_id !== handoff.tenant_id) {
    throw conflict(`instance ${instance} was not imported for it`);
  }
  requireState(service, handoff, 'exported');
  requireExecution(acceptance, 'transferring');
  const imported = await rows.one('importOf', instance);
  const isImport =
    imported?.tenant_id === handoff.tenant_id &&
    imported.capsule_id === handoff.capsule_id &&
    imported.destination_runtime_id === handoff.destination_runtime_id;
  if (!isImport) throw conflict(`instance ${instance} was not imported from its capsule`);
  const { unit, reply } = await accepted(service, acceptance);
  await unit.commitImported();
  try {
    await fenceMoved(service, execution);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    // The source was fenced at the export, and asks again.
    service.log.info({ err: error }, 'the source of a handoff is told later');
  }
  return reply;
};

/** Idempotent: if the grant were lost, no server could run the execution. */
async function acceptElsewhere(
  service: ExecutionService,
  acceptance: Acceptance,
  { import_receipt: receipt }: AcceptHandoff,
): Promise<HandoffAccepted> {
  const { handoff, execution, instance } = acceptance;
  if (receipt == null) throw notFound(`instance ${instance}`);
  const { signing } = keysOf(service);
  await checkReceipt(service, acceptance, receipt);
  const granted = (reply: HandoffAccepted) => ({
    ...reply,
    ownership_grant: grantOf(reply, signing, receipt),
  });
  const isRepeated =
    execution.current_instance_id === instance && execution.epoch === handoff.expected_epoch + 1;
  if (isRepeated && (handoff.state === 'accepted' || handoff.state === 'resumed')) {
    const shown = handoffView(handoff, service.now);
    return granted({ handoff: shown, execution: shownExecution(execution) });
  }
  requireState(service, handoff, 'exported');
  requireExecution(acceptance, 'transferring');
  const { unit, reply } = await accepted(service, acceptance);
  const expect = { fence: 'transferring', epoch: execution.epoch } as const;
  await unit.commit({ expect, changes: [MOVED_FENCE] });
  return granted(reply);
}

/** The writes of every acceptance; the caller commits them. */
async function accepted(
  service: ExecutionService,
  { handoff, execution: before, instance }: Acceptance,
): Promise<{ unit: ExecutionUnit; reply: HandoffAccepted }> {
  const unit = new ExecutionUnit(service, before, {
    state: 'owned',
    epoch: before.epoch + 1,
    owner_runtime_id: handoff.destination_runtime_id,
    current_instance_id: instance,
  });
  const { execution } = unit;
  unit.locate(handoff.id);
  const moved = unit.moveHandoff(handoff, 'accepted');
  const reply = { handoff: handoffView(moved, service.now), execution };
  await unit.enter({ ...CLAIMED, evidence: reply });
  return { unit, reply };
}

const CLAIMED = { kind: 'runtime_claimed', summary: 'runtime claimed' } as const;

/**
 * The registered key of the destination must sign the receipt; without one, a trusted key.
 * @throws EngineError 409 unless the receipt states this import
 */
async function checkReceipt(
  service: ExecutionService,
  { handoff, instance }: Acceptance,
  receipt: ImportReceipt,
): Promise<void> {
  const { tenant_id, capsule_id, continuity_id, expected_epoch, destination_runtime_id } = handoff;
  const runtime = await service.rows.runtime(tenant_id, destination_runtime_id);
  const own = runtime?.capsule_signing_public_key;
  const trusted = own === undefined ? keysOf(service).trusted.values() : [own];
  const stated = openStatement(receipt, trusted);
  const facts = {
    kind: 'capsule_imported',
    tenant_id,
    capsule_id: capsule_id ?? '',
    continuity_id,
    epoch: expected_epoch,
    destination_runtime_id,
    instance_id: instance,
  } as const;
  const isProven = stated !== undefined && states(stated, facts);
  if (!isProven) throw conflict('the import receipt does not prove that the capsule was imported');
}

function grantOf(
  { handoff, execution }: HandoffAccepted,
  key: Parameters<typeof signStatement>[0],
  { public_key }: ImportReceipt,
): OwnershipGrant {
  const facts: GrantFacts = {
    kind: 'ownership_granted',
    tenant_id: execution.tenant_id,
    capsule_id: handoff.capsule_id ?? '',
    continuity_id: execution.continuity_id,
    epoch: execution.epoch,
    owner_runtime_id: execution.owner_runtime_id,
    instance_id: execution.current_instance_id,
    handoff_id: handoff.id,
    importer_public_key: public_key,
  };
  return signStatement(key, facts);
}

/** Parses only; the signature is verified later. @throws EngineError 400 */
export function executionIn({ ownership_grant }: ClaimExecution): string {
  const json = parseJson(ownership_grant.statement);
  const id =
    json.ok && isJsonObject(json.value) ? ownValue(json.value, 'continuity_id') : undefined;
  if (typeof id !== 'string' || !isUuid(id)) {
    throw invalid('ownership_grant.statement must be JSON with a continuity_id');
  }
  return id;
}

/** Idempotent while the execution is here at that epoch. */
export const claimExecution: Serve<'continuity.claim'> = async (service, { tenant, id, body }) => {
  const { rows } = service;
  const { trusted, signing } = keysOf(service);
  const grant = openStatement(body.ownership_grant, trusted.values());
  const instance = grant && ownValue(grant, 'instance_id');
  const imported = typeof instance === 'string' ? await rows.one('importOf', instance) : undefined;
  if (
    grant === undefined ||
    imported === undefined ||
    (tenant !== '' && tenant !== imported.tenant_id) ||
    !isGranted(grant, imported, signing.publicKey)
  ) {
    throw conflict('the grant does not give an execution that was imported here');
  }
  const { continuity_id, tenant_id, instance_id, destination_runtime_id } = imported;
  const epoch = imported.source_epoch + 1;
  const before = await rows.one('execution', id);
  if (before?.epoch === epoch && before.current_instance_id === instance_id) {
    return shownExecution(before);
  }
  if (before !== undefined && before.epoch >= epoch) {
    throw conflict(`execution ${id} is at epoch ${before.epoch} by now`);
  }
  const ids = { current_instance_id: instance_id, owner_runtime_id: destination_runtime_id };
  const owned = { ...ids, epoch, state: 'owned' } as const;
  const first = { continuity_id, tenant_id, ...owned, updated_at: isoTime(service.now) };
  const unit = new ExecutionUnit(service, before ?? first, owned);
  const { execution } = unit;
  unit.locate(grant.handoff_id as string);
  await unit.enter({ ...CLAIMED, evidence: { grant, execution } });
  await unit.commitImported();
  return execution;
};

/** The grant must name exactly this import. */
function isGranted(grant: JsonObject, imported: ImportRow, importer: string): boolean {
  const { tenant_id, capsule_id, continuity_id, destination_runtime_id, instance_id } = imported;
  const isStated = states(grant, {
    kind: 'ownership_granted',
    importer_public_key: importer,
    tenant_id,
    capsule_id,
    continuity_id,
    epoch: imported.source_epoch + 1,
    owner_runtime_id: destination_runtime_id,
    instance_id,
  });
  return isStated && typeof grant.handoff_id === 'string' && isUuid(grant.handoff_id);
}
