/**
 * Live migration of an execution to another version of its sequence. A plan stores its findings and
 * the facts behind them; applying it checks the facts again. One request can also migrate an
 * instance without a plan: it need not be enrolled, and continues in its state.
 */

import type {
  MigratedInstance,
  MigrationPlan,
  MigrationRecord,
  PlanMigration,
} from '../../schema/continuity.js';
import { conflict, invalid } from '../../src/base/errors.js';
import { owned } from '../../src/base/tenancy.js';
import { isoTime } from '../../src/base/time.js';
import type { OrderedMigration } from '../instance/orders.js';
import { CHECKPOINT } from '../instance/output-tables.js';
import type { Turn } from '../runtime/turn.js';
import { checkpointOf, contextOf, sealInstance } from './capsules.js';
import { rollbackCapsuleOf } from './core/capsule.js';
import { type MigrationSecrets, retentionSeconds, type StoredMigration } from './core/migration.js';
import { type ExecutionBefore, type ExecutionService, ExecutionUnit } from './execution-service.js';
import { implicitExecution } from './executions.js';
import { reclaim } from './handoffs.js';
import {
  captured,
  changeVersion,
  checkVerdict,
  insertMigration,
  judgeMigration,
  livePlace,
  moveMigration,
  nextEpoch,
  type OpenMigration,
  openMigration,
  presentPlace,
  type Subject,
  subjectOf,
  targetOf,
  unchanged,
  type Verdict,
  versionOf,
} from './migration-steps.js';
import { keysOf, type RequestTarget, type Serve } from './operation.js';
import type { ExecutionRow } from './rows.js';

export const planMigration: Serve<'migrations.plan'> = async (service, { tenant, body }) => {
  const { rows } = service;
  const found = await rows.owned('execution', tenant, body.continuity_id);
  const execution = await ownedExecution(service, found);
  const place = await livePlace(service, execution);
  const saved =
    body.capture_checkpoint === true
      ? undefined
      : await checkpointOf(rows, execution.current_instance_id);
  const source = await versionOf(service, execution.tenant_id, place.row.sequence_id);
  const { to_version: version, to_sequence_id } = body;
  const target = await targetOf(service, source, { version, to_sequence_id });
  if (target.id === source.id) throw invalid('the target is the version that the instance has');
  const checkpoint = saved ?? (await captured(service, execution, place));
  const subject = subjectOf({ execution, place, source, target, checkpoint }, body.transforms);
  const verdict = await judgeMigration(service, subject);
  const { stored, secrets } = storedPlan(service, subject, verdict, body);
  const unit = new ExecutionUnit(service, execution);
  insertMigration(service, unit, stored, secrets);
  if (saved !== undefined) await unit.commit();
  else {
    // The order fails if the instance has changed since the capture.
    unit.put(CHECKPOINT.insert, checkpoint.id, checkpoint);
    const order = { expect: unchanged(execution, place), changes: [] };
    await service.order(execution, order, unit);
  }
  return stored.plan;
};

/** Rejects with 409 while the execution is being handed over. */
async function ownedExecution(service: ExecutionService, found: ExecutionRow) {
  const execution = await reclaim(service, found);
  const { state, continuity_id } = execution;
  if (state !== 'owned') throw conflict(`execution ${continuity_id} is ${state}`);
  return execution;
}

function storedPlan(
  service: ExecutionService,
  { execution, place, source, target, checkpoint, transforms }: Subject,
  { disposition, codes, findings }: Verdict,
  { rollback_retention_seconds }: Pick<PlanMigration, 'rollback_retention_seconds'>,
): { readonly stored: StoredMigration; readonly secrets: MigrationSecrets } {
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
  const stored = {
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

export const applyMigration: Serve<'migrations.apply'> = async (service, call) => {
  const { request, tenant, id, body } = call;
  const migration = await openMigration(service, { tenant, id }, 'planned');
  const { plan, rollback_expires_at } = migration.stored;
  const isApproved = body.approved === true;
  checkVerdict(plan, isApproved);
  const found = await service.rows.owned('execution', plan.tenant_id, plan.continuity_id);
  const execution = await ownedExecution(service, found);
  const subject = await plannedSubject(service, migration, execution);
  keysOf(service);
  if (service.now >= Date.parse(rollback_expires_at)) {
    throw conflict(`migration ${id} could not be rolled back any more: plan it anew`);
  }
  // Effects, or a new version of the engine, may have changed the findings.
  checkVerdict(await judgeMigration(service, subject), isApproved);
  const unit = nextEpoch(service, execution, request);
  const applied = await sealRollback(service, unit, subject, rollback_expires_at);
  const record = moveMigration(service, unit, migration, 'applied', applied);
  await toTarget(service, unit, subject, record, { pauses: true });
  return record;
};

/** Fields of an applied record. Only a rollback opens the capsule; without keys there is none. */
async function sealRollback(
  service: ExecutionService,
  turn: Turn,
  { execution, checkpoint }: Subject,
  rollback_expires_at: string,
) {
  const applied_at = isoTime(service.now);
  const applied = { applied_epoch: execution.epoch + 1, applied_at };
  if (service.keyring === undefined) {
    return { ...applied, manifest: null, rollback_capsule: null, rollback_expires_at: applied_at };
  }
  const terms = {
    capsule_id: service.newIdLike(execution.continuity_id),
    allowed_destination_runtime_id: null,
    requirements: {},
    expires_at: rollback_expires_at,
  };
  const { capsule } = await sealInstance(service, turn, execution, terms, { checkpoint });
  const rollback_capsule = rollbackCapsuleOf(capsule);
  return { ...applied, manifest: capsule.manifest, rollback_capsule, rollback_expires_at };
}

function toTarget(
  service: ExecutionService,
  unit: ExecutionUnit,
  { execution, place, source, target, checkpoint, migrated, targetData: data }: Subject,
  { plan: { id }, rollback_capsule }: Pick<MigrationRecord, 'plan' | 'rollback_capsule'>,
  { pauses }: Pick<OrderedMigration, 'pauses'>,
) {
  const { continuity_id: continuityId, epoch } = execution;
  const capsule_sha256 = rollback_capsule?.manifest_sha256 ?? null;
  const sequences = { from_sequence_id: source.id, to_sequence_id: target.id };
  const evidence = { id, capsule_sha256, ...sequences };
  const summary = `migrated from version ${source.version} to version ${target.version}`;
  const sequenceId = target.id;
  return changeVersion(service, unit, {
    execution,
    place,
    checkpoint_data: migrated,
    entry: { kind: 'migration_applied', summary, evidence },
    change: { kind: 'migrate', sequenceId, data, continuityId, epoch: epoch + 1, pauses },
    expect: pauses ? { checkpointId: checkpoint.id } : {},
  });
}

/** The facts of the plan. Rejects with 404 or 409 when they have changed. */
async function plannedSubject(
  service: ExecutionService,
  { stored, secrets }: OpenMigration,
  execution: ExecutionRow,
): Promise<Subject> {
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
  return subjectOf({ execution, place, source, target, checkpoint }, plan.transforms);
}

/** The execution of an imported instance has another id. */
export async function executionOfInstance(
  { rows }: ExecutionService,
  { tenant, id }: RequestTarget,
): Promise<string> {
  owned(await rows.one('instance', id), tenant, `instance ${id}`);
  return (await rows.one('importOf', id))?.continuity_id ?? id;
}

export const migrateInstance: Serve<'migrations.migrate'> = async (service, request) => {
  const { body } = request;
  const execution = await presentExecution(service, request);
  const place = await livePlace(service, execution);
  const source = await versionOf(service, execution.tenant_id, place.row.sequence_id);
  const target = await targetOf(service, source, body);
  const answer = (
    { disposition, codes, findings }: Verdict,
    applied?: Pick<MigratedInstance, 'state' | 'migration_id' | 'rollback_expires_at'>,
  ): MigratedInstance => ({
    migrated: applied !== undefined,
    instance_id: request.id,
    from: { sequence_id: source.id, version: source.version },
    to: { sequence_id: target.id, version: target.version },
    verdict: disposition,
    finding_codes: [...codes],
    findings: [...findings],
    ...(applied ?? { state: place.row.state, migration_id: null, rollback_expires_at: null }),
  });
  if (target.id === source.id) return answer(SAME_VERSION);
  const checkpoint = await captured(service, execution, place);
  const subject = subjectOf({ execution, place, source, target, checkpoint }, body.transforms);
  const verdict = await judgeMigration(service, subject);
  if (body.dry_run === true) return { ...answer(verdict), dry_run: true };
  checkVerdict(verdict, body.approved === true);
  const { stored, secrets } = storedPlan(service, subject, verdict, body);
  const unit = nextEpoch(service, execution, request.request);
  unit.put(CHECKPOINT.insert, checkpoint.id, checkpoint);
  const rollback = await sealRollback(service, unit, subject, stored.rollback_expires_at);
  const applied = { ...stored, ...rollback, goes_on: true } as const;
  insertMigration(service, unit, applied, secrets, 'applied');
  const { state } = await toTarget(service, unit, subject, applied, { pauses: false });
  const rollback_expires_at = rollback.rollback_capsule && rollback.rollback_expires_at;
  return answer(verdict, { state, migration_id: stored.plan.id, rollback_expires_at });
};

const SAME_VERSION: Verdict = { disposition: 'automatic', codes: [], findings: [] };

/** The execution, or the one that the instance would have. Rejects with 404, or 409 in transfer. */
async function presentExecution(
  service: ExecutionService,
  target: RequestTarget,
): Promise<ExecutionBefore> {
  const { id, tenant } = target;
  const { rows } = service;
  const row = await rows.one('execution', await executionOfInstance(service, target));
  if (row === undefined) {
    const { tenant_id } = owned(await rows.one('instance', id), tenant, `instance ${id}`);
    return implicitExecution(service, { id, tenant_id });
  }
  const execution = await ownedExecution(service, row);
  if (execution.current_instance_id !== id) throw conflict(`instance ${id} was handed over`);
  return execution;
}
