/**
 * The way back from a migration: allowed until the target has done anything outside. The
 * capsule of the state before is opened and verified, and the instance becomes what it says.
 */

import type { RollbackCapsule } from '../../schema/continuity.js';
import type { Capsule, CapsuleManifest } from '../../schema/handoff.js';
import { canonicalJson } from '../../src/core/continuity/canonical-json.js';
import { rollbackCapsuleOf } from '../../src/core/continuity/capsule.js';
import {
  checkManifest,
  type ImportRefusal,
  trustOf,
} from '../../src/core/continuity/capsule-import.js';
import type { OpenedCapsule } from '../../src/core/continuity/sealed-payload.js';
import { forbidsRollback } from '../../src/core/continuity/states.js';
import { isoTime } from '../../src/core/time.js';
import { conflict } from '../../src/errors.js';
import { Turn } from '../runtime/turn.js';
import { workOn } from './capsule-sealing.js';
import type { ExecutionService, OperationReply } from './execution-service.js';
import { executionOf, putExecution, putLocation } from './executions.js';
import { putProgress } from './migration-return.js';
import {
  moveMigration,
  type OpenMigration,
  openMigration,
  type Place,
  placeOf,
} from './migration-rows.js';
import { type Asked, keysOf } from './operation.js';
import { putNextEntry } from './provenance.js';
import type { ExecutionRow } from './rows.js';

/** Rejects with 404, or 409 when the migration cannot be undone. */
export async function rollBack(
  service: ExecutionService,
  { tenant, id }: Asked<'migrations.rollback'>,
): Promise<OperationReply> {
  const migration = await openMigration(service, { tenant, id }, 'applied');
  const { plan, rollback_expires_at } = migration.stored;
  if (service.now >= Date.parse(rollback_expires_at)) {
    throw conflict(`migration ${id} can be rolled back until ${rollback_expires_at} only`);
  }
  const execution = await executionOf(service, plan.tenant_id, plan.continuity_id);
  const place = await placeOf(service, execution);
  checkTarget(migration, execution, place);
  const opened = await openedCapsule(service, migration, execution);
  // Read after the place, which the order compares: an effect that comes later changes it.
  await checkEffects(service, execution);
  const turn = new Turn();
  const rolled_back_at = isoTime(service.now);
  const record = moveMigration(service, turn, migration, 'rolled_back', { rolled_back_at });
  await goBack(service, turn, { migration, execution, place, opened });
  return { status: 200, body: record };
}

/** @throws EngineError 409 unless the execution is where the migration has brought it */
function checkTarget(
  { row: { id }, stored: { plan, applied_epoch } }: OpenMigration,
  { state, epoch, continuity_id }: ExecutionRow,
  { row }: Place,
): void {
  const refused = (what: string) => conflict(`migration ${id} cannot be rolled back: ${what}`);
  if (state !== 'owned') throw refused(`execution ${continuity_id} is ${state}`);
  if (epoch !== applied_epoch) throw refused('the execution has gone on to another epoch');
  if (row.sequence_id !== plan.to_sequence_id) throw refused('the instance has another version');
  if (row.state !== 'paused') throw refused(`the instance is ${row.state}, not paused`);
}

async function checkEffects(
  { rows }: ExecutionService,
  { continuity_id, epoch }: ExecutionRow,
): Promise<void> {
  const effects = await rows.effects(continuity_id);
  const sent = effects.find((effect) => effect.epoch === epoch && forbidsRollback(effect.state));
  if (sent === undefined) return;
  throw conflict(`effect ${sent.id} of block ${sent.block_id} is ${sent.state}`);
}

/** Rejects with 409 when the retained capsule is not, to the last bit, the one that was made. */
async function openedCapsule(
  service: ExecutionService,
  { stored }: OpenMigration,
  execution: ExecutionRow,
): Promise<OpenedCapsule> {
  const { manifest, rollback_capsule: retained, expected_epoch } = stored;
  if (manifest === null || retained === null) throw conflict('there is no rollback capsule');
  const keyring = keysOf(service);
  const capsule = capsuleOf(manifest, retained);
  const expected = {
    tenant_id: execution.tenant_id,
    destination_runtime_id: execution.owner_runtime_id,
    expected_epoch,
    now: service.now,
  };
  const artifact = await service.rows.artifact(retained.payload_artifact.key);
  if (artifact === undefined) throw conflict('the payload of the rollback capsule is gone');
  const isWhole = canonicalJson(rollbackCapsuleOf(capsule)) === canonicalJson(retained);
  if (!isWhole) throw conflict('the manifest is not that of the rollback capsule');
  accept(checkManifest(capsule, expected, trustOf(keyring)));
  const { content: sealed } = artifact;
  const keys = { keyring, transferKey: undefined };
  const opened = await workOn(service, 'openCapsule', {
    capsule,
    sealed,
    now: isoTime(service.now),
    ...keys,
  });
  if (!opened.ok) throw conflict(opened.message);
  return opened.value;
}

function capsuleOf(
  manifest: CapsuleManifest,
  { manifest_sha256, signature, public_key }: RollbackCapsule,
): Capsule {
  return { manifest, manifest_sha256, signature, public_key };
}

/** @throws EngineError 409 */
function accept(refusal: ImportRefusal | undefined): void {
  if (refusal !== undefined) throw conflict(refusal.message);
}

interface Return {
  readonly migration: OpenMigration;
  readonly execution: ExecutionRow;
  readonly place: Place;
  readonly opened: OpenedCapsule;
}

/** One unit: the instance, its execution, and what is in the turn already. */
async function goBack(
  service: ExecutionService,
  turn: Turn,
  { migration: { stored, secrets }, execution, place, opened }: Return,
): Promise<void> {
  const { plan, source_state } = stored;
  const { current_instance_id: instance, tenant_id } = execution;
  const epoch = execution.epoch + 1;
  const checkpointId = service.newIdLike(instance);
  turn.put('checkpoint.insert', checkpointId, {
    id: checkpointId,
    instance_id: instance,
    checkpoint_data: opened.frame.checkpoint.checkpoint_data,
    created_at: isoTime(service.now),
  });
  putLocation(turn, putExecution(service, turn, execution, { epoch }), null);
  await putNextEntry(service, turn, execution, {
    kind: 'migration_rolled_back',
    epoch,
    summary: `rolled back from version ${plan.to_version} to version ${plan.from_version}`,
    evidence: { id: plan.id, capsule_sha256: stored.rollback_capsule?.manifest_sha256 ?? null },
  });
  const address = { instance, sequenceId: plan.from_sequence_id, opened };
  const restore = {
    ...(await putProgress(service, turn, address)),
    kind: 'restore',
    sequenceId: plan.from_sequence_id,
    context: opened.frame.instance.context,
    execution: secrets.execution,
    state: source_state === 'waiting' ? 'waiting' : 'paused',
    nextFireAt: secrets.next_fire_at,
    epoch,
  } as const;
  const expect = {
    states: ['paused'],
    sequenceId: plan.to_sequence_id,
    epoch: execution.epoch,
    fence: 'none',
    isAtRest: true,
    placeSha256: place.sha256,
  } as const;
  await service.order(instance, tenant_id, { expect, changes: [restore] }, turn);
}
