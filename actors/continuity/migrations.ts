/**
 * Live migration of an execution to another version of its sequence: plan and apply. A plan stores
 * its findings and the facts they are based on. Applying it checks the facts again, and changes the
 * instance, its execution and the record in one unit.
 */

import type { CheckpointRecord, MigrationPlan, PlanMigration } from '../../schema/continuity.js';
import { isTerminal } from '../../schema/states.js';
import { conflict, invalid, notFound } from '../../src/base/errors.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../../src/base/json.js';
import { isoTime } from '../../src/base/time.js';
import { conflictFor } from '../../src/core/migration-findings.js';
import { liveCheckpoint } from '../instance/core/live-place.js';
import type { OrderedMigration } from '../instance/orders.js';
import { CHECKPOINT } from '../instance/output-tables.js';
import { Turn } from '../runtime/turn.js';
import { contentsOf } from './capsule-contents.js';
import { putArtifact, sealContents } from './capsule-sealing.js';
import { rollbackCapsuleOf } from './core/capsule.js';
import { mayApply, retentionSeconds } from './core/migration-plan.js';
import type { StoredMigration } from './core/migration-record.js';
import { applyTransforms, type Transform, transformsOf } from './core/transforms.js';
import type { ExecutionService } from './execution-service.js';
import { touchExecution } from './executions.js';
import {
  changeVersion,
  insertMigration,
  moveMigration,
  type OpenMigration,
  openMigration,
  presentPlace,
  unchanged,
  versionOf,
} from './migration-rows.js';
import { type JudgedMigration, judgeMigration, type Verdict } from './migration-verdicts.js';
import { keysOf, type Serve, unwrapped } from './operation.js';
import { checkpointOf, contextOf, type Place } from './places.js';
import type { NewEntry } from './provenance.js';
import { reclaim } from './reconciliation.js';
import type { ExecutionRow, VersionRow } from './rows.js';

// ---------------------------------------------------------------- plan

interface Found extends Pick<JudgedMigration, 'execution' | 'place' | 'source' | 'target'> {
  readonly checkpoint: CheckpointRecord;
  readonly transforms: readonly Transform[];
}

export interface Subject extends Found, JudgedMigration {
  /** The data of the checkpoint after the transforms. */
  readonly migrated: JsonValue;
}

export const planMigration: Serve<'migrations.plan'> = async (service, { tenant, body }) => {
  const execution = await ownedExecution(service, tenant, body.continuity_id);
  const place = await presentPlace(service, execution);
  checkAlive(place.row, execution);
  const saved =
    body.capture_checkpoint === true
      ? undefined
      : await checkpointOf(service.rows, execution.current_instance_id);
  const versions = await versionsOf(service, execution, place, body);
  const { subject, verdict } = await judged(
    service,
    { execution, place, ...versions },
    body,
    saved,
  );
  const { checkpoint } = subject;
  const { stored, secrets } = storedPlan(service, subject, verdict, body);
  const turn = new Turn();
  touchExecution(turn, execution);
  insertMigration(service, turn, stored, secrets);
  if (saved !== undefined) await service.commit(turn);
  else {
    // The instance must not have changed since the checkpoint was captured.
    turn.put(CHECKPOINT.insert, checkpoint.id, checkpoint);
    const order = { expect: unchanged(execution, place), changes: [] };
    await service.order(execution, order, turn);
  }
  return stored.plan;
};

/**
 * The migration of an instance with its verdict.
 *
 * @param saved absent: a checkpoint of the current state
 */
export async function judged(
  service: ExecutionService,
  facts: Omit<Found, 'checkpoint' | 'transforms'>,
  body: Pick<PlanMigration, 'transforms'>,
  saved?: CheckpointRecord,
): Promise<{ readonly subject: Subject; readonly verdict: Verdict }> {
  const checkpoint = saved ?? (await captured(service, facts.execution, facts.place));
  const transforms = unwrapped(transformsOf(body.transforms ?? []), invalid);
  const subject = subjectOf({ ...facts, checkpoint, transforms });
  return { subject, verdict: await judgeMigration(service, subject) };
}

/** @throws EngineError 409 when the instance has ended */
export function checkAlive(
  { state }: Place['row'],
  { current_instance_id: id }: Pick<ExecutionRow, 'current_instance_id'>,
): void {
  if (isTerminal(state)) throw conflict(`instance ${id} is ${state}`);
}

/** Rejects with 404, or 409 while the execution is being handed over. */
async function ownedExecution(
  service: ExecutionService,
  tenant: string,
  id: string,
): Promise<ExecutionRow> {
  return requireOwned(await reclaim(service, await service.rows.owned('execution', tenant, id)));
}

/** @throws EngineError 409 while the execution is being handed over */
export function requireOwned(execution: ExecutionRow): ExecutionRow {
  const { state, continuity_id } = execution;
  if (state !== 'owned') throw conflict(`execution ${continuity_id} is ${state}`);
  return execution;
}

async function captured(
  service: ExecutionService,
  { current_instance_id: instance_id }: ExecutionRow,
  place: Place,
): Promise<CheckpointRecord> {
  const { sequence_id } = place.row;
  const stored = await service.plans.load(sequence_id);
  if (stored === undefined) throw notFound(`sequence ${sequence_id}`);
  return {
    id: service.newIdLike(instance_id),
    instance_id,
    checkpoint_data: liveCheckpoint(stored.plan, place, place.runtime),
    created_at: isoTime(service.now),
  };
}

/** Rejects with 404 when a version does not exist, 400 when they are not versions of one sequence. */
async function versionsOf(
  service: ExecutionService,
  { tenant_id }: ExecutionRow,
  { row: { sequence_id } }: Place,
  { to_sequence_id, to_version }: PlanMigration,
): Promise<{ source: VersionRow; target: VersionRow }> {
  const source = await versionOf(service, tenant_id, sequence_id);
  const target = await versionOf(service, tenant_id, to_sequence_id);
  if (target.version !== to_version) {
    throw notFound(`version ${to_version} of sequence ${to_sequence_id}`);
  }
  if (target.id === source.id) throw invalid('the target is the version that the instance has');
  checkSameName(source, target);
  return { source, target };
}

/** @throws EngineError 400 */
export function checkSameName(source: VersionRow, target: VersionRow): void {
  if (target.namespace === source.namespace && target.name === source.name) return;
  throw invalid(`sequence ${target.id} has another namespace or name than that of the instance`);
}

/** Rejects with 400 when the transforms do not apply to the checkpoint. */
function subjectOf(found: Found): Subject {
  const { place, checkpoint, transforms } = found;
  const { checkpoint_data } = checkpoint;
  const migrated = unwrapped(applyTransforms(checkpoint_data, transforms), invalid);
  return {
    ...found,
    migrated,
    sourceData: dataIn(checkpoint_data, place),
    targetData: dataIn(migrated, place),
    hasTransforms: transforms.length > 0,
  };
}

/** context.data: the snapshot of the checkpoint, if it has one. */
function dataIn(checkpointData: JsonValue, { data }: Place): JsonObject {
  const snapshot = isJsonObject(checkpointData)
    ? ownValue(checkpointData, 'context_snapshot')
    : undefined;
  return isJsonObject(snapshot) ? snapshot : data;
}

export function storedPlan(
  service: ExecutionService,
  { execution, place, source, target, checkpoint, transforms }: Subject,
  { disposition, codes, findings }: Verdict,
  { rollback_retention_seconds }: Pick<PlanMigration, 'rollback_retention_seconds'>,
) {
  const { continuity_id, tenant_id, epoch } = execution;
  const { now } = service;
  const plan: MigrationPlan = {
    id: service.newIdLike(continuity_id),
    tenant_id,
    continuity_id,
    from_sequence_id: source.id,
    from_version: source.version,
    to_sequence_id: target.id,
    to_version: target.version,
    disposition,
    verdict: disposition,
    transforms: [...transforms],
    finding_codes: [...codes],
    findings: [...findings],
    rollback_capsule_required: true,
    created_at: isoTime(now),
  };
  const { checkpoint_data, ...source_checkpoint } = checkpoint;
  const stored: StoredMigration = {
    plan,
    expected_epoch: epoch,
    source_checkpoint,
    source_state: place.row.state,
    rollback_capsule: null,
    manifest: null,
    applied_epoch: null,
    rollback_expires_at: isoTime(now + retentionSeconds(rollback_retention_seconds) * 1_000),
    applied_at: null,
    rolled_back_at: null,
  };
  const secrets = {
    checkpoint_data,
    source_context: contextOf(place),
    execution: place.execution,
    next_fire_at: place.row.next_fire_at,
    place_sha256: place.sha256,
  };
  return { stored, secrets };
}

// ---------------------------------------------------------------- apply

export const applyMigration: Serve<'migrations.apply'> = async (service, { tenant, id, body }) => {
  const migration = await openMigration(service, { tenant, id }, 'planned');
  const { plan, rollback_expires_at } = migration.stored;
  const isApproved = body.approved === true;
  checkVerdict(plan, isApproved);
  const execution = await ownedExecution(service, plan.tenant_id, plan.continuity_id);
  const subject = subjectOf(await foundAgain(service, migration, execution));
  keysOf(service);
  if (service.now >= Date.parse(rollback_expires_at)) {
    throw conflict(`migration ${id} could not be rolled back any more: plan it anew`);
  }
  // The findings may have changed with the effects, and with the version of the engine.
  checkVerdict(await judgeMigration(service, subject), isApproved);
  const turn = new Turn();
  const rollback = await sealRollback(service, turn, subject, rollback_expires_at);
  const epoch = execution.epoch + 1;
  const applied = { ...rollback, applied_epoch: epoch, applied_at: isoTime(service.now) };
  const record = moveMigration(service, turn, migration, 'applied', applied);
  const { place, checkpoint } = subject;
  await changeVersion(service, turn, {
    execution,
    place,
    checkpoint_data: subject.migrated,
    entry: entryOf(subject, id, rollback.rollback_capsule.manifest_sha256),
    change: migrationOf(subject, { pauses: true }),
    expect: { checkpointId: checkpoint.id },
  });
  return record;
};

/** Seals the instance before the migration, in a capsule that only a rollback opens. */
export async function sealRollback(
  service: ExecutionService,
  turn: Turn,
  { execution, checkpoint }: Pick<Subject, 'execution' | 'checkpoint'>,
  expires_at: string,
) {
  const contents = await contentsOf(service, execution.current_instance_id, checkpoint);
  const sealed = await sealContents(service, execution, contents, {
    capsule_id: service.newIdLike(execution.continuity_id),
    allowed_destination_runtime_id: null,
    requirements: {},
    expires_at,
  });
  putArtifact(service, turn, sealed);
  const { capsule } = sealed;
  return { manifest: capsule.manifest, rollback_capsule: rollbackCapsuleOf(capsule) };
}

export function entryOf(
  { source, target }: Pick<Subject, 'source' | 'target'>,
  id: string,
  capsule_sha256: string | null,
): NewEntry {
  return {
    kind: 'migration_applied',
    summary: `migrated from version ${source.version} to version ${target.version}`,
    evidence: { id, capsule_sha256, from_sequence_id: source.id, to_sequence_id: target.id },
  };
}

export function migrationOf(
  { execution, target, targetData: data }: Subject,
  { pauses }: Pick<OrderedMigration, 'pauses'>,
): OrderedMigration {
  const { continuity_id: continuityId, epoch } = execution;
  return { kind: 'migrate', sequenceId: target.id, data, continuityId, epoch: epoch + 1, pauses };
}

/** @throws EngineError 409 */
export function checkVerdict(
  { disposition: verdict, findings }: Pick<Verdict, 'disposition' | 'findings'>,
  isApproved: boolean,
): void {
  if (mayApply(verdict, isApproved)) return;
  const isOpen = verdict === 'approval_required';
  const told = isOpen ? 'the migration has to be approved' : `the verdict is ${verdict}`;
  throw conflictFor(findings, { reason: told, verdict });
}

/** The facts the plan was made on. Rejects with 404 or 409 when they have changed. */
async function foundAgain(
  service: ExecutionService,
  { stored, secrets }: OpenMigration,
  execution: ExecutionRow,
): Promise<Found> {
  const { plan, expected_epoch, source_state, source_checkpoint } = stored;
  const place = await presentPlace(service, execution);
  const stale = (what: string) => conflict(`the migration is stale: ${what}`);
  if (execution.epoch !== expected_epoch) throw stale('the execution is at another epoch');
  if (place.row.sequence_id !== plan.from_sequence_id) throw stale('the version has changed');
  if (place.row.state !== source_state) throw stale(`the instance is ${place.row.state}`);
  const source = await versionOf(service, plan.tenant_id, plan.from_sequence_id);
  const target = await versionOf(service, plan.tenant_id, plan.to_sequence_id);
  if (target.version !== plan.to_version) throw stale('the target is another version');
  const newest = await checkpointOf(service.rows, execution.current_instance_id);
  if (newest.id !== source_checkpoint.id) throw stale('there is a newer checkpoint');
  if (place.sha256 !== secrets.place_sha256) throw stale('the context or the progress has changed');
  const checkpoint = { ...source_checkpoint, checkpoint_data: secrets.checkpoint_data };
  const transforms = unwrapped(transformsOf(plan.transforms), invalid);
  return { execution, place, source, target, checkpoint, transforms };
}
