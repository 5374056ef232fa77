/**
 * Acceptance of a handoff: the destination becomes the owner. A destination with its own database
 * proves by a signed receipt that it imported the capsule, and receives a signed ownership grant.
 */

import type {
  AcceptHandoff,
  HandoffAccepted,
  ImportReceipt,
  OwnershipGrant,
} from '../../schema/handoff.js';
import { conflict, EngineError, notFound } from '../../src/base/errors.js';
import { Turn } from '../runtime/turn.js';
import { handoffView } from './core/handoff-view.js';
import { type GrantFacts, openStatement, signStatement, states } from './core/statements.js';
import type { ExecutionService } from './execution-service.js';
import {
  commitWith,
  ownImported,
  putExecution,
  putLocation,
  shownExecution,
} from './executions.js';
import {
  type HandoffAndExecution,
  moveHandoff,
  requireExecution,
  requireState,
} from './handoff-rows.js';
import { keysOf, type Serve } from './operation.js';
import { putNextEntry } from './provenance.js';
import { fenceMoved, handoffAndExecution, MOVED_FENCE } from './reconciliation.js';
import type { ExecutionRow } from './rows.js';

interface Acceptance extends HandoffAndExecution {
  /** The destination's, as named by the caller. */
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
  requireTransfer(service, acceptance);
  const imported = await rows.one('importOf', instance);
  const isImport =
    imported?.tenant_id === handoff.tenant_id &&
    imported.capsule_id === handoff.capsule_id &&
    imported.destination_runtime_id === handoff.destination_runtime_id;
  if (!isImport) throw conflict(`instance ${instance} was not imported from its capsule`);
  const { turn, reply } = await accepted(service, acceptance);
  await ownImported(service, turn, reply.execution);
  await fenceSource(service, execution);
  return reply;
};

/**
 * The instance is on a server with its own database. Idempotent: if the grant were lost, no server
 * could run the execution.
 */
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
  requireTransfer(service, acceptance);
  const { turn, reply } = await accepted(service, acceptance);
  const expect = { fence: 'transferring', epoch: execution.epoch } as const;
  await commitWith(service, turn, execution, { expect, changes: [MOVED_FENCE] });
  return granted(reply);
}

/** @throws EngineError 409 unless the capsule is exported and the execution is in transfer */
function requireTransfer(service: ExecutionService, acceptance: Acceptance): void {
  requireState(service, acceptance.handoff, 'exported');
  requireExecution(acceptance, 'transferring');
}

/** What every acceptance writes; the caller commits the turn. */
async function accepted(
  service: ExecutionService,
  { handoff, execution, instance }: Acceptance,
): Promise<{ turn: Turn; reply: HandoffAccepted }> {
  const turn = new Turn();
  const epoch = execution.epoch + 1;
  const after = putExecution(service, turn, execution, {
    state: 'owned',
    epoch,
    owner_runtime_id: handoff.destination_runtime_id,
    current_instance_id: instance,
  });
  putLocation(turn, after, handoff.id);
  const moved = handoffView(moveHandoff(service, turn, handoff, 'accepted'), service.now);
  const evidence = { handoff: moved, execution: after };
  const entry = { kind: 'runtime_claimed', summary: 'runtime claimed', evidence } as const;
  await putNextEntry(service, turn, after, entry);
  return { turn, reply: evidence };
}

/** The source was fenced at the export, and asks again if this order is lost. */
async function fenceSource(service: ExecutionService, execution: ExecutionRow): Promise<void> {
  try {
    await fenceMoved(service, execution);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    service.log.info({ err: error }, 'the source of a handoff is told later');
  }
}

/**
 * The receipt must be signed with the destination's registered key; with a trusted key only if it
 * registered none.
 *
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
  const isSo = stated !== undefined && states(stated, facts);
  if (!isSo) throw conflict('the import receipt does not prove that the capsule was imported');
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
