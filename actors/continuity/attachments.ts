/**
 * Attaches a capsule that a device sealed itself, with the key of its registered runtime. One request
 * does the import and the export of the handoff, in two repeatable steps: the instance is inserted
 * fenced, then the handoff moves.
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
import {
  type HandoffAndExecution,
  moveHandoff,
  requireExecution,
  requireState,
} from './handoff-rows.js';
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
 * A device stops for good when it seals its execution. A server takes the execution back when the
 * capsule expires, so its handoff has to be made and accepted on that server.
 *
 * @throws EngineError 409 when the execution is on another server
 */
async function refuseServer({ rows }: ExecutionService, execution: ExecutionRow): Promise<void> {
  const source = await rows.runtime(execution.tenant_id, execution.owner_runtime_id);
  if (source?.kind !== 'server' || (await rows.isHere(execution.current_instance_id))) return;
  throw conflict('the capsule of another server is imported, accepted there, and claimed');
}

/** Makes both moves in one unit, which also fences the device's instance if that is here. */
async function markExported(
  service: ExecutionService,
  { handoff, execution }: HandoffAndExecution,
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
