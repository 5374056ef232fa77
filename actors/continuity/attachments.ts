/**
 * The way back of a device that has been away: it sealed a capsule itself, with the key that
 * its runtime is registered with. Import and export of the handoff are one request, in two steps that
 * can be asked for again: the instance is inserted first, fenced, and then the handoff moves.
 */

import type { Capsule } from '../../schema/handoff.js';
import { conflict } from '../../src/base/errors.js';
import { canonicalSha256 } from '../../src/core/sealing/canonical-json.js';
import { Turn } from '../runtime/turn.js';
import { isLive } from './core/capabilities.js';
import type { ImportExpectation } from './core/capsule-import.js';
import { handoffStateAt, handoffTerms, handoffView } from './core/handoff-view.js';
import type { ExecutionService } from './execution-service.js';
import { commitWith, putExecution } from './executions.js';
import { moveHandoff, type Passage, requireExecution, requireState } from './handoff-rows.js';
import { importInstance, importOf, openFor } from './imports.js';
import { keysOf, type Serve } from './operation.js';
import { putNextEntry } from './provenance.js';
import { handoffAndExecution, reclaim } from './reconciliation.js';
import type { ExecutionRow, HandoffRow } from './rows.js';

export const attachCapsule: Serve<'handoffs.attach'> = async (service, { tenant, id, body }) => {
  keysOf(service);
  const { capsule } = body;
  const { handoff, execution: found } = await handoffAndExecution(service, tenant, id);
  const opened = await openFor(service, body, await expected(service, handoff));
  const { manifest } = capsule;
  if (manifest.continuity_id !== handoff.continuity_id) {
    throw conflict('the capsule is of another execution');
  }
  if (manifest.source_runtime_id !== handoff.source_runtime_id) {
    throw conflict('the capsule is of another source');
  }
  const destination = handoff.destination_runtime_id;
  const known = await importOf(service, capsule, destination);
  const instance = body.destination_instance_id.toLowerCase();
  if (known !== undefined && known.instance_id !== instance) {
    throw conflict(`the capsule was imported as instance ${known.instance_id}`);
  }
  const attached = (row: HandoffRow) => ({
    handoff: handoffView(row, service.now),
    destination_instance_id: instance,
  });
  const isRepeated =
    handoff.capsule_id === manifest.capsule_id &&
    handoffStateAt(handoff, service.now) === 'exported';
  if (known !== undefined && isRepeated) return attached(handoff);
  requireState(service, handoff, 'requested');
  const execution = await reclaim(service, found);
  requireExecution({ handoff, execution }, 'owned');
  await refuseServer(service, execution);
  if (known === undefined) await importInstance(service, capsule, opened, destination, instance);
  return attached(await markExported(service, { handoff, execution }, capsule));
};

/** Rejects with 409 unless the source is live and registered with a key. */
async function expected(
  service: ExecutionService,
  handoff: HandoffRow,
): Promise<ImportExpectation> {
  const { tenant_id, source_runtime_id, expected_epoch, destination_runtime_id } = handoff;
  const source = await service.rows.runtime(tenant_id, source_runtime_id);
  const key = source?.capsule_signing_public_key;
  if (source === undefined || !isLive(source, service.now) || key === undefined) {
    throw conflict(`the source ${source_runtime_id} is not live, or has no key to sign with`);
  }
  return {
    tenant_id,
    destination_runtime_id,
    expected_epoch,
    isTrusted: (_, publicKey) => publicKey === key,
    requirements_sha256: canonicalSha256(handoffTerms(handoff).requirements),
  };
}

/**
 * A device that sealed its execution has stopped for good. Another server takes it back when the
 * capsule has come to its end: there the handoff has to be made, and accepted.
 *
 * @throws EngineError 409 when the execution is on another server
 */
async function refuseServer({ rows }: ExecutionService, execution: ExecutionRow): Promise<void> {
  const source = await rows.runtime(execution.tenant_id, execution.owner_runtime_id);
  if (source?.kind !== 'server' || (await rows.isHere(execution.current_instance_id))) return;
  throw conflict('the capsule of another server is imported, accepted there, and claimed');
}

/** Both moves at once; where the device's instance is kept here too, it is fenced with them. */
async function markExported(
  service: ExecutionService,
  { handoff, execution }: Passage,
  { manifest }: Capsule,
): Promise<HandoffRow> {
  const { capsule_id, expires_at } = manifest;
  const turn = new Turn();
  const named = { capsule_id, capsule_expires_at: expires_at };
  const quiescing = moveHandoff(service, turn, handoff, 'quiescing', named);
  const exported = moveHandoff(service, turn, quiescing, 'exported');
  putExecution(service, turn, execution, { state: 'transferring' });
  const { epoch } = execution;
  const entry = { kind: 'capsule_exported', summary: 'device capsule attached' } as const;
  await putNextEntry(service, turn, execution, { ...entry, evidence: manifest });
  const fence = { reason: 'transferring', until: expires_at } as const;
  const expect = { fence: 'none', epoch } as const;
  await commitWith(service, turn, execution, { expect, changes: [{ kind: 'fence', fence }] });
  return exported;
}
