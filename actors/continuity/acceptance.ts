/**
 * The end of a handoff: its destination becomes the owner, and runs. A destination with a
 * database of its own brings the word that it holds the capsule's instance, and is given the word
 * that it owns the execution.
 */

import type { Execution } from '../../schema/continuity.js';
import type { AcceptHandoff, HandoffAccepted, ImportReceipt } from '../../schema/handoff.js';
import { handoffView } from '../../src/core/continuity/handoff-view.js';
import {
  type GrantFacts,
  openStatement,
  type SignedStatement,
  signStatement,
} from '../../src/core/continuity/statements.js';
import { conflict, EngineError, notFound } from '../../src/errors.js';
import { Turn } from '../runtime/turn.js';
import type { ExecutionService, OperationReply } from './execution-service.js';
import { putExecution, putLocation, touchExecution } from './executions.js';
import { moveHandoff, requireState } from './handoff-rows.js';
import { type Asked, keysOf } from './operation.js';
import { putNextEntry } from './provenance.js';
import { handoffAndExecution, leaveBehind } from './reconciliation.js';
import type { ExecutionRow, HandoffRow } from './rows.js';

/** A handoff, its execution, and the instance that the caller names as its destination. */
interface Acceptance {
  readonly handoff: HandoffRow;
  readonly execution: ExecutionRow;
  readonly instance: string;
}

export async function acceptHandoff(
  service: ExecutionService,
  { tenant, id, body }: Asked<'handoffs.accept'>,
): Promise<OperationReply> {
  const instance = body.destination_instance_id;
  const acceptance = { ...(await handoffAndExecution(service, tenant, id)), instance };
  const owner = await service.rows.tenantOf(instance);
  if (owner === undefined) return acceptElsewhere(service, acceptance, body);
  const { handoff } = acceptance;
  if (owner !== handoff.tenant_id) throw conflict(`instance ${instance} was not imported for it`);
  requireTransfer(service, acceptance);
  const imported = await service.rows.importOf(instance);
  const isImport =
    imported?.tenant_id === handoff.tenant_id &&
    imported.capsule_id === handoff.capsule_id &&
    imported.destination_runtime_id === handoff.destination_runtime_id;
  if (!isImport) throw conflict(`instance ${instance} was not imported from its capsule`);
  const { turn, reply } = await accepted(service, acceptance);
  const epoch = acceptance.execution.epoch + 1;
  const expect = { states: ['paused'], fence: 'imported' } as const;
  await service.order(instance, owner, { expect, changes: [{ kind: 'own', epoch }] }, turn);
  await leaveSource(service, acceptance.execution);
  return { status: 200, body: reply };
}

export async function resumeHandoff(
  service: ExecutionService,
  { tenant, id }: Asked<'handoffs.resume'>,
): Promise<OperationReply> {
  const { handoff, execution } = await handoffAndExecution(service, tenant, id);
  requireState(service, handoff, 'accepted');
  if (execution.owner_runtime_id !== handoff.destination_runtime_id) {
    throw conflict(`execution ${execution.continuity_id} has another owner by now`);
  }
  const { current_instance_id: instance, epoch, tenant_id } = execution;
  const turn = new Turn();
  const moved = moveHandoff(service, turn, handoff, 'resumed');
  touchExecution(turn, execution);
  const evidence = { handoff_id: handoff.id, instance_id: instance, epoch };
  const entry = {
    kind: 'execution_resumed',
    epoch,
    summary: 'execution resumed',
    evidence,
  } as const;
  await putNextEntry(service, turn, execution, entry);
  if (await isElsewhere(service, instance)) await service.commit(turn);
  else {
    const expect = { states: ['paused'], fence: 'none' } as const;
    await service.order(instance, tenant_id, { expect, changes: [{ kind: 'resume' }] }, turn);
  }
  return { status: 200, body: handoffView(moved, service.now) };
}

/**
 * The instance is on a server with a database of its own. Asked again, it answers the same: without
 * the grant nobody could run the execution any more.
 */
async function acceptElsewhere(
  service: ExecutionService,
  acceptance: Acceptance,
  { import_receipt: receipt }: AcceptHandoff,
): Promise<OperationReply> {
  const { handoff, execution, instance } = acceptance;
  if (receipt == null) throw notFound(`instance ${instance}`);
  const { signing } = keysOf(service);
  await checkReceipt(service, acceptance, receipt);
  const isRepeated =
    execution.current_instance_id === instance && execution.epoch === handoff.expected_epoch + 1;
  if (isRepeated && (handoff.state === 'accepted' || handoff.state === 'resumed')) {
    const { version: _, ...shown } = execution;
    const reply = { handoff: handoffView(handoff, service.now), execution: shown };
    const ownership_grant = grantOf(reply, signing, receipt);
    return { status: 200, body: { ...reply, ownership_grant } };
  }
  requireTransfer(service, acceptance);
  const { turn, reply } = await accepted(service, acceptance);
  const { current_instance_id: source, epoch, tenant_id } = execution;
  if (await isElsewhere(service, source)) await service.commit(turn);
  else {
    const expect = { fence: 'transferring', epoch } as const;
    const fence = { reason: 'moved', until: null } as const;
    await service.order(source, tenant_id, { expect, changes: [{ kind: 'fence', fence }] }, turn);
  }
  return { status: 200, body: { ...reply, ownership_grant: grantOf(reply, signing, receipt) } };
}

/** @throws EngineError 409 unless the execution is still on its way from the source */
function requireTransfer(service: ExecutionService, { handoff, execution }: Acceptance): void {
  requireState(service, handoff, 'exported');
  const isOnItsWay =
    execution.state === 'transferring' &&
    execution.epoch === handoff.expected_epoch &&
    execution.owner_runtime_id === handoff.source_runtime_id;
  if (!isOnItsWay) throw conflict(`execution ${execution.continuity_id} was changed meanwhile`);
}

/** What every acceptance writes; the unit is put together, not committed. */
async function accepted(
  service: ExecutionService,
  { handoff, execution, instance }: Acceptance,
): Promise<{ turn: Turn; reply: HandoffAccepted }> {
  const turn = new Turn();
  const epoch = execution.epoch + 1;
  const owner_runtime_id = handoff.destination_runtime_id;
  const changes = {
    state: 'owned',
    epoch,
    owner_runtime_id,
    current_instance_id: instance,
  } as const;
  const after = putExecution(service, turn, execution, changes);
  putLocation(turn, after, handoff.id);
  const moved = handoffView(moveHandoff(service, turn, handoff, 'accepted'), service.now);
  const evidence = { handoff: moved, execution: after };
  const entry = { kind: 'runtime_claimed', epoch, summary: 'runtime claimed', evidence } as const;
  await putNextEntry(service, turn, execution, entry);
  return { turn, reply: evidence };
}

/** The source was fenced at the export; it asks by itself should the word be lost. */
async function leaveSource(service: ExecutionService, execution: ExecutionRow): Promise<void> {
  try {
    await leaveBehind(service, execution, execution.current_instance_id);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    service.log.info({ err: error }, 'the source of a handoff is told later');
  }
}

/** It was never here, or is not any more. */
async function isElsewhere(service: ExecutionService, instance: string): Promise<boolean> {
  return (await service.rows.tenantOf(instance)) === undefined;
}

/**
 * Whose word counts is the destination's own key; a trusted one only where it registered none.
 *
 * @throws EngineError 409 unless this import is stated
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
  const isSo =
    stated?.kind === 'capsule_imported' &&
    stated.tenant_id === tenant_id &&
    stated.capsule_id === capsule_id &&
    stated.continuity_id === continuity_id &&
    stated.epoch === expected_epoch &&
    stated.destination_runtime_id === destination_runtime_id &&
    stated.instance_id === instance;
  if (!isSo) throw conflict('the import receipt does not prove that the capsule was imported');
}

function grantOf(
  { handoff, execution }: { handoff: HandoffAccepted['handoff']; execution: Execution },
  key: Parameters<typeof signStatement>[0],
  { public_key }: ImportReceipt,
): SignedStatement {
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
