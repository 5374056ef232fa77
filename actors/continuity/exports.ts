/**
 * The export of a handoff. The first unit fences the source instance, so that its rows do not change any more; a failed
 * export is undone in the same line, or by the next request (`handoffs.ts`). A device attaches a capsule that it sealed
 * itself: the request imports it and moves the handoff.
 */

import type { Capsule, ExportHandoff, HandoffExported } from '../../schema/handoff.js';
import { conflict } from '../../src/base/errors.js';
import { isoTime } from '../../src/base/time.js';
import { canonicalSha256 } from '../../src/core/sealing/canonical-json.js';
import type { PayloadKey } from '../../src/core/sealing/keys.js';
import type { OrderedChange } from '../instance/orders.js';
import { placeOf, sealInstance, transferKeyIn } from './capsules.js';
import type { ImportExpectation } from './core/capsule.js';
import { exportConflict, handoffStateAt, handoffTerms, handoffView } from './core/handoff.js';
import { isLive } from './core/runtimes.js';
import { type ExecutionService, ExecutionUnit } from './execution-service.js';
import {
  decisionOf,
  type HandoffAndExecution,
  handoffAndExecution,
  reclaim,
  requireExecution,
  requireState,
  settle,
  termsIn,
} from './handoffs.js';
import { importInstance, importOf, openFor } from './imports.js';
import { keysOf, refuseFor, type Serve } from './operation.js';
import type { ExecutionRow, HandoffRow } from './rows.js';

const EXPIRES_DEFAULT_SECONDS = 300;

export const exportHandoff: Serve<'handoffs.export'> = async (service, { tenant, id, body }) => {
  keysOf(service);
  const transferKey = transferKeyIn(body.payload_key_base64);
  const { handoff, execution } = await handoffAndExecution(service, tenant, id);
  requireState(service, handoff, 'requested');
  const requested = { handoff, execution: await reclaim(service, execution) };
  await checkExport(service, requested, body);
  const begun = await quiesce(service, requested, body);
  try {
    return await seal(service, begun, transferKey);
  } catch (error) {
    await undo(service, begun);
    throw error;
  }
};

/** Rejects with 409 when the facts have changed since the handoff was made. */
async function checkExport(
  service: ExecutionService,
  requested: HandoffAndExecution,
  body: ExportHandoff,
): Promise<void> {
  const { rows } = service;
  requireExecution(requested, 'owned');
  const { handoff, execution } = requested;
  const { tenant_id, current_instance_id: instance } = execution;
  const { requirements } = termsIn({ requirements: body.requirements ?? {} });
  const [decision, destination, place, checkpoint] = await Promise.all([
    decisionOf(service, tenant_id, handoff.placement_decision_id),
    rows.runtime(tenant_id, handoff.destination_runtime_id),
    placeOf(rows, instance),
    rows.one('lastCheckpoint', instance),
  ]);
  if (place === undefined) throw conflict(`instance ${instance} is not here`);
  const { t: begun, w: queued } = place.execution;
  const facts = {
    handoff,
    decision,
    requirements,
    destination,
    instanceState: place.row.state,
    hasBegun: begun !== null || queued === 1,
    hasCheckpoint: checkpoint !== undefined || body.capture_checkpoint === true,
  };
  refuseFor(exportConflict(facts, service.now));
  await checkEffects(service, execution);
}

/** The destination would repeat an effect in doubt. Checked before and after the fence. */
async function checkEffects({ rows }: ExecutionService, execution: ExecutionRow): Promise<void> {
  // An unclaimed task is not an effect: the fence withdraws it and the destination issues it again.
  const [effect] = await rows.unresolvedEffects(execution);
  if (effect === undefined) return;
  throw conflict(`effect ${effect.id} of block ${effect.block_id} is ${effect.state}: resolve it`);
}

async function quiesce(
  service: ExecutionService,
  { handoff, execution }: HandoffAndExecution,
  { expires_in_seconds, capture_checkpoint }: ExportHandoff,
): Promise<HandoffAndExecution> {
  const { continuity_id, current_instance_id: instance, epoch } = execution;
  const seconds = expires_in_seconds ?? EXPIRES_DEFAULT_SECONDS;
  const capsule_id = service.newIdLike(continuity_id);
  const capsule_expires_at = isoTime(service.now + seconds * 1_000);
  const unit = new ExecutionUnit(service, execution);
  const moved = unit.moveHandoff(handoff, 'quiescing', { capsule_id, capsule_expires_at });
  const changes: OrderedChange[] = [
    { kind: 'fence', fence: { reason: 'transferring', until: capsule_expires_at } },
  ];
  if (capture_checkpoint === true) {
    changes.unshift({ kind: 'capture', checkpointId: service.newIdLike(instance) });
  }
  const states = ['paused', 'waiting', 'running', 'scheduled', 'failed'] as const;
  const expect = { states, fence: 'none', epoch } as const;
  await service.order(execution, { expect, changes }, unit);
  return { handoff: moved, execution: unit.row };
}

async function seal(
  service: ExecutionService,
  { handoff, execution }: HandoffAndExecution,
  transferKey: PayloadKey | undefined,
): Promise<HandoffExported> {
  const { capsule_id, capsule_expires_at: expires_at } = handoff;
  if (capsule_id === null || expires_at === null) throw new Error('the handoff names no capsule');
  // Effects may have begun between the check and the fence.
  await checkEffects(service, execution);
  const unit = new ExecutionUnit(service, execution, { state: 'transferring' });
  const terms = {
    capsule_id,
    expires_at,
    allowed_destination_runtime_id: handoff.destination_runtime_id,
    requirements: handoffTerms(handoff).requirements,
  };
  const sealed = await sealInstance(service, unit, execution, terms, { transferKey });
  const moved = unit.moveHandoff(handoff, 'exported');
  const entry = { kind: 'capsule_exported', summary: 'capsule exported' } as const;
  await unit.enter({ ...entry, evidence: sealed.capsule.manifest });
  await unit.commit();
  return { handoff: handoffView(moved, service.now), ...sealed };
}

/** Fails the handoff and resumes the instance; otherwise the instance asks later. */
async function undo(service: ExecutionService, { execution }: HandoffAndExecution): Promise<void> {
  const { tenant_id, continuity_id } = execution;
  try {
    await settle(service, await service.rows.owned('execution', tenant_id, continuity_id));
  } catch (error) {
    service.log.info({ err: error }, 'an export that failed is undone later');
  }
}

export const attachCapsule: Serve<'handoffs.attach'> = async (service, { tenant, id, body }) => {
  keysOf(service);
  const { rows } = service;
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
  const attached = (row: HandoffRow) => {
    return { handoff: handoffView(row, service.now), destination_instance_id: instance };
  };
  const isRepeated =
    handoff.capsule_id === manifest.capsule_id &&
    handoffStateAt(handoff, service.now) === 'exported';
  if (known !== undefined && isRepeated) return attached(handoff);
  requireState(service, handoff, 'requested');
  const execution = await reclaim(service, found);
  requireExecution({ handoff, execution }, 'owned');
  // A device never resumes an execution that it sealed. A server takes it back when the capsule
  // expires, so its handoff has to be made and accepted on that server.
  const source = await rows.runtime(execution.tenant_id, execution.owner_runtime_id);
  if (source?.kind === 'server' && !(await rows.isHere(execution.current_instance_id))) {
    throw conflict('the capsule of another server is imported, accepted there, and claimed');
  }
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

/** Both moves in one unit, which also fences the instance of the device if it is here. */
async function markExported(
  service: ExecutionService,
  { handoff, execution }: HandoffAndExecution,
  { manifest }: Capsule,
): Promise<HandoffRow> {
  const { capsule_id, expires_at } = manifest;
  const unit = new ExecutionUnit(service, execution, { state: 'transferring' });
  const named = { capsule_id, capsule_expires_at: expires_at };
  const exported = unit.moveHandoff(unit.moveHandoff(handoff, 'quiescing', named), 'exported');
  const entry = { kind: 'capsule_exported', summary: 'device capsule attached' } as const;
  await unit.enter({ ...entry, evidence: manifest });
  const fence = { reason: 'transferring', until: expires_at } as const;
  const expect = { fence: 'none', epoch: execution.epoch } as const;
  await unit.commit({ expect, changes: [{ kind: 'fence', fence }] });
  return exported;
}
