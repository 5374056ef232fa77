/**
 * The way back of a device that has been away (05 §13): it sealed a capsule itself, with the key that
 * its runtime is registered with. Import and export of the handoff are one request, in two steps that
 * can be asked for again: the instance is born first, fenced, and then the handoff moves.
 */

import type { CapsuleAttached } from '../../schema/handoff.js';
import { canonicalSha256 } from '../../src/core/continuity/canonical-json.js';
import { isLive } from '../../src/core/continuity/capabilities.js';
import type { Capsule } from '../../src/core/continuity/capsule.js';
import { conflict } from '../../src/errors.js';
import { handoffStateAt, handoffTerms, handoffView } from '../../src/handoff-view.js';
import { Turn } from '../turn.js';
import type { DeskReply } from './desk.js';
import { putExecution } from './executions.js';
import { lineOfHandoff, moveHandoff, requireState } from './handoff-rows.js';
import { handoffAndExecution, reclaim } from './healing.js';
import { bringIn, capsuleIn, type Expected, importOf, openFor } from './imports.js';
import { type Asked, keysOf, type Office, type Services } from './office.js';
import { tell } from './provenance.js';
import type { ExecutionRow, HandoffRow } from './rows.js';

export const ATTACHMENT_SERVICES = {
  'handoffs.attach': { lineOf: lineOfHandoff, serve: attachCapsule },
} satisfies Services;

async function attachCapsule(
  office: Office,
  { tenant, id, body }: Asked<'handoffs.attach'>,
): Promise<DeskReply> {
  keysOf(office);
  const { desk } = office;
  const capsule = capsuleIn(body.capsule);
  const { handoff, execution: found } = await handoffAndExecution(office, tenant, id);
  const opened = await openFor(office, { ...body, capsule }, await expected(office, handoff));
  const { manifest } = capsule;
  if (manifest.continuity_id !== handoff.continuity_id) {
    throw conflict('the capsule is of another execution');
  }
  if (manifest.source_runtime_id !== handoff.source_runtime_id) {
    throw conflict('the capsule is of another source');
  }
  const destination = handoff.destination_runtime_id;
  const known = await importOf(office, capsule, destination);
  const instance = body.destination_instance_id.toLowerCase();
  if (known !== undefined && known.instance_id !== instance) {
    throw conflict(`the capsule was imported as instance ${known.instance_id}`);
  }
  const isRepeated =
    handoff.capsule_id === manifest.capsule_id && handoffStateAt(handoff, desk.now) === 'exported';
  if (known !== undefined && isRepeated) return attached(office, handoff, instance);
  requireState(desk, handoff, 'requested');
  const execution = await reclaim(office, found);
  requireOwned(execution, handoff);
  await refuseServer(office, execution);
  if (known === undefined) await bringIn(office, capsule, opened, destination, instance);
  return attached(office, await markExported(office, handoff, execution, capsule), instance);
}

function attached({ desk }: Office, handoff: HandoffRow, instance: string): DeskReply {
  const body: CapsuleAttached = {
    handoff: handoffView(handoff, desk.now),
    destination_instance_id: instance,
  };
  return { status: 200, body };
}

/** Rejects with 409 unless the source is live and registered with a key. */
async function expected({ desk }: Office, handoff: HandoffRow): Promise<Expected> {
  const { tenant_id, source_runtime_id, expected_epoch, destination_runtime_id } = handoff;
  const source = await desk.deps.rows.runtime(tenant_id, source_runtime_id);
  const key = source?.capsule_signing_public_key;
  if (source === undefined || !isLive(source, desk.now) || key === undefined) {
    throw conflict(`the source ${source_runtime_id} is not live, or has no key to sign with`);
  }
  return {
    tenant: tenant_id,
    destination: destination_runtime_id,
    epoch: expected_epoch,
    isTrusted: (_, publicKey) => publicKey === key,
    requirementsSha256: canonicalSha256(handoffTerms(handoff).requirements),
  };
}

function requireOwned(execution: ExecutionRow, handoff: HandoffRow): void {
  const isOwned =
    execution.state === 'owned' &&
    execution.epoch === handoff.expected_epoch &&
    execution.owner_runtime_id === handoff.source_runtime_id;
  if (!isOwned) throw conflict(`execution ${execution.continuity_id} was changed meanwhile`);
}

/**
 * A device that sealed its execution has stopped for good. Another server takes it back when the
 * capsule has come to its end: there the handoff has to be made, and accepted.
 *
 * @throws EngineError 409 when the execution is on another server
 */
async function refuseServer({ desk }: Office, execution: ExecutionRow): Promise<void> {
  const { tenant_id, owner_runtime_id, current_instance_id } = execution;
  const { rows } = desk.deps;
  const source = await rows.runtime(tenant_id, owner_runtime_id);
  if (source?.kind !== 'server' || (await rows.tenantOf(current_instance_id)) !== undefined) return;
  throw conflict('the capsule of another server is imported, accepted there, and claimed');
}

/** Both moves at once; where the device's instance is kept here too, it is fenced with them. */
async function markExported(
  { desk, keyring }: Office,
  handoff: HandoffRow,
  execution: ExecutionRow,
  { manifest }: Capsule,
): Promise<HandoffRow> {
  const { capsule_id, expires_at } = manifest;
  const turn = new Turn();
  const named = { capsule_id, capsule_expires_at: expires_at };
  const quiescing = moveHandoff(desk, turn, handoff, 'quiescing', named);
  const exported = moveHandoff(desk, turn, quiescing, 'exported');
  putExecution(desk, turn, execution, { state: 'transferring' });
  const { epoch, tenant_id, current_instance_id: source } = execution;
  const told = { kind: 'capsule_exported', epoch, summary: 'device capsule attached' } as const;
  await tell(desk, keyring, turn, execution, { ...told, evidence: manifest });
  if ((await desk.deps.rows.tenantOf(source)) === undefined) await desk.commit(turn);
  else {
    const fence = { reason: 'transferring', until: expires_at } as const;
    const expect = { fence: 'none', epoch } as const;
    await desk.order(source, tenant_id, { expect, changes: [{ kind: 'fence', fence }] }, turn);
  }
  return exported;
}
