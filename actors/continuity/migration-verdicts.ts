/** The migration of an instance to another version: the facts it is decided on, and the verdict. */

import type {
  CheckpointRecord,
  Execution,
  MigrateTo,
  MigrationFinding,
  MigrationVerdict,
} from '../../schema/continuity.js';
import type { SemanticDiff } from '../../schema/release.js';
import { isTerminal } from '../../schema/states.js';
import { conflict, EngineError, invalid, notFound } from '../../src/base/errors.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../../src/base/json.js';
import { TooCostly } from '../../src/base/offload.js';
import { isoTime } from '../../src/base/time.js';
import { conflictFor } from '../../src/core/migration-findings.js';
import { liveCheckpoint } from '../instance/core/live-place.js';
import { failure, type PositionVerdict } from '../release/core/position.js';
import { COMPARE_DEFINITIONS } from '../release/jobs.js';
import { type Place, placeOf } from './capsules.js';
import { findingCodes, findingsIn, mayApply, verdictOn } from './core/migration.js';
import { applyTransforms, type Transform, transformsOf } from './core/transforms.js';
import type { ExecutionService } from './execution-service.js';
import type { ExecutionBefore } from './execution-unit.js';
import { REPLAY_MIGRATION } from './jobs.js';
import { unchanged } from './migration-rows.js';
import { unwrapped } from './operation.js';
import type { VersionRow } from './rows.js';

interface Found {
  readonly execution: ExecutionBefore;
  readonly place: Place;
  readonly source: VersionRow;
  readonly target: VersionRow;
  readonly checkpoint: CheckpointRecord;
}

export interface Subject extends Found {
  readonly transforms: readonly Transform[];
  /** The data of the checkpoint after the transforms. */
  readonly migrated: JsonValue;
  /** context.data before and after the transforms. */
  readonly sourceData: JsonObject;
  readonly targetData: JsonObject;
}

export interface Verdict {
  readonly disposition: MigrationVerdict;
  readonly codes: readonly string[];
  readonly findings: readonly MigrationFinding[];
}

type Target = Pick<MigrateTo, 'version' | 'sequence_id' | 'to_sequence_id' | 'target_sequence_id'>;

// ---------------------------------------------------------------- facts

/** Rejects with 404 when the current instance of the execution is not here. */
export async function presentPlace(
  { rows }: ExecutionService,
  { current_instance_id: instance }: Execution,
): Promise<Place> {
  const place = await placeOf(rows, instance);
  if (place === undefined) throw notFound(`instance ${instance}`);
  return place;
}

/** Rejects with 404 like `presentPlace`, 409 when the instance has ended. */
export async function livePlace(service: ExecutionService, execution: Execution): Promise<Place> {
  const place = await presentPlace(service, execution);
  const { state } = place.row;
  if (isTerminal(state)) throw conflict(`instance ${execution.current_instance_id} is ${state}`);
  return place;
}

/** A checkpoint of the current state of the instance, which is not stored yet. */
export async function captured(
  service: ExecutionService,
  { current_instance_id: instance_id }: Execution,
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

/** Rejects with 404 when the tenant has no such sequence. */
export async function versionOf(
  service: ExecutionService,
  tenant: string,
  id: string,
): Promise<VersionRow> {
  const row = await service.rows.one('version', id);
  if (row?.tenant_id !== tenant) throw notFound(`sequence ${id}`);
  return row;
}

/** Rejects with 404 when there is no such version, 400 when it is of another sequence. */
export async function targetOf(
  service: ExecutionService,
  { tenant_id, namespace, name }: VersionRow,
  { version, sequence_id, to_sequence_id, target_sequence_id }: Target,
): Promise<VersionRow> {
  const id = sequence_id ?? to_sequence_id ?? target_sequence_id;
  if (id == null) {
    const row = await service.rows.one('versionNamed', tenant_id, namespace, name, version ?? 0);
    if (row === undefined) throw notFound(`version ${version} of sequence ${name}`);
    return row;
  }
  const target = await versionOf(service, tenant_id, id);
  if (version != null && target.version !== version) {
    throw notFound(`version ${version} of sequence ${id}`);
  }
  if (target.namespace !== namespace || target.name !== name) {
    throw invalid(`sequence ${target.id} has another namespace or name than that of the instance`);
  }
  return target;
}

/** @throws EngineError 400 when the transforms are invalid, or do not apply to the checkpoint */
export function subjectOf(found: Found, sent: MigrateTo['transforms']): Subject {
  const { place, checkpoint } = found;
  const { checkpoint_data } = checkpoint;
  const transforms = unwrapped(transformsOf(sent ?? []), invalid);
  const migrated = unwrapped(applyTransforms(checkpoint_data, transforms), invalid);
  const sourceData = dataIn(checkpoint_data, place);
  return { ...found, transforms, migrated, sourceData, targetData: dataIn(migrated, place) };
}

/** context.data: the snapshot of the checkpoint, if it has one. */
function dataIn(checkpointData: JsonValue, { data }: Place): JsonObject {
  const snapshot = isJsonObject(checkpointData)
    ? ownValue(checkpointData, 'context_snapshot')
    : undefined;
  return isJsonObject(snapshot) ? snapshot : data;
}

// ---------------------------------------------------------------- verdict

/** Total size of the outputs that a replay holds in memory. */
const HISTORY_BYTES_MAX = 32 * 1024 * 1024;

export async function judgeMigration(
  service: ExecutionService,
  subject: Subject,
): Promise<Verdict> {
  const { source, target, execution, transforms } = subject;
  const hasTransforms = transforms.length > 0;
  const [diffText, outputBlocks, stored] = await Promise.all([
    service.offload.run(execution.tenant_id, COMPARE_DEFINITIONS, {
      baseline: source.definition,
      candidate: target.definition,
    }),
    service.rows.all('outputBlocks', execution.current_instance_id),
    service.plans.load(target.id),
  ]);
  if (stored === undefined) throw notFound(`sequence ${target.id}`);
  const diff = JSON.parse(diffText) as SemanticDiff;
  const outputs = outputBlocks
    .map(({ block_id }) => block_id)
    .filter((block) => !stored.plan.indexOf.has(block));
  const [replayed, { obstacles = [], lost = [] }] = await Promise.all([
    replay(service, subject, diff.entries.length === 0),
    foreseen(service, subject),
  ]);
  if (!replayed.passed) {
    const { continuity_id } = execution;
    service.log.info({ execution: continuity_id, reason: replayed.reason }, 'a replay failed');
  }
  const inTheWay = [...obstacles, ...(replayed.passed ? [] : [replayed.finding])];
  const losses = { outputs, cleanUps: lost };
  const codes = findingCodes(diff, losses, inTheWay.length === 0);
  const findings = findingsIn(diff, losses, hasTransforms, inTheWay);
  return { disposition: verdictOn(codes, hasTransforms), codes, findings };
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

/** Asks the instance for waits it could not keep and clean-ups it would lose. */
function foreseen(
  service: ExecutionService,
  { execution, place, target, targetData: data }: Subject,
) {
  const change = { kind: 'foresee', sequenceId: target.id, data } as const;
  return service.order(execution, { expect: unchanged(execution, place), changes: [change] });
}

async function replay(
  service: ExecutionService,
  { execution, source, target, sourceData, targetData, transforms }: Subject,
  isSame: boolean,
): Promise<PositionVerdict> {
  const { rows, offload, log, settings } = service;
  const { current_instance_id: instance, continuity_id, tenant_id } = execution;
  const totals = await rows.one('outputTotals', instance);
  if ((totals?.bytes ?? 0) > HISTORY_BYTES_MAX) {
    return failure('REPLAY_TOO_LARGE', 'the history of the instance is too large to be replayed');
  }
  const [life, receipts] = await Promise.all([
    rows.one('life', instance),
    rows.effects(continuity_id),
  ]);
  if (life === undefined) throw notFound(`instance ${instance}`);
  try {
    return await offload.run(tenant_id, REPLAY_MIGRATION, {
      source: source.definition,
      target: target.definition,
      isSame,
      life,
      sourceData: JSON.stringify(sourceData),
      targetData: JSON.stringify(targetData),
      hasTransforms: transforms.length > 0,
      receipts,
      unpoliciedRetry: settings.unpoliciedRetry,
    });
  } catch (error) {
    if (error instanceof EngineError && !(error instanceof TooCostly)) throw error;
    if (!(error instanceof TooCostly)) log.error({ instanceId: instance, err: error }, 'defect');
    return failure('REPLAY_TOO_LARGE', 'the replay takes too long or too much');
  }
}
