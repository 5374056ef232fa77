/** The steps of a migration to another version: its facts, its verdict, and its rows. */

import { randomBytes } from 'node:crypto';
import type {
  CheckpointRecord,
  Execution,
  MigrateTo,
  MigrationRecord,
} from '../../schema/continuity.js';
import { type MigrationState, mayMoveMigration } from '../../schema/continuity-words.js';
import type { SemanticDiff } from '../../schema/release.js';
import { isTerminal } from '../../schema/states.js';
import { conflict, EngineError, invalid, notFound, unavailable } from '../../src/base/errors.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../../src/base/json.js';
import { TooCostly } from '../../src/base/offload.js';
import { isoTime } from '../../src/base/time.js';
import { conflictFor } from '../../src/core/migration-findings.js';
import { NONCE_BYTES } from '../../src/core/sealing/sealing.js';
import { liveCheckpoint } from '../instance/core/live-place.js';
import type { Expectations, OrderedChange, OrderView } from '../instance/orders.js';
import { CHECKPOINT } from '../instance/output-tables.js';
import { failure, type PositionVerdict } from '../release/core/position.js';
import { COMPARE_DEFINITIONS } from '../release/jobs.js';
import type { Turn } from '../runtime/turn.js';
import { type Place, placeOf } from './capsules.js';
import {
  findingCodes,
  findingsIn,
  type MigrationSecrets,
  mayApply,
  openSecrets,
  recordOf,
  type StoredMigration,
  type StoredSecrets,
  sealSecrets,
  storedOf,
  verdictOn,
} from './core/migration.js';
import { applyTransforms, type Transform, transformsOf } from './core/transforms.js';
import {
  type ExecutionBefore,
  type ExecutionService,
  ExecutionUnit,
  type NewEntry,
} from './execution-service.js';
import { REPLAY_MIGRATION } from './jobs.js';
import { type RequestTarget, unwrapped } from './operation.js';
import type { MigrationRow, VersionRow } from './rows.js';
import { MIGRATION } from './tables.js';

interface Found {
  readonly execution: ExecutionBefore;
  readonly place: Place;
  readonly source: VersionRow;
  readonly target: VersionRow;
  readonly checkpoint: CheckpointRecord;
}

export interface Subject extends Found {
  readonly transforms: readonly Transform[];
  /** The checkpoint data after the transforms. */
  readonly migrated: JsonValue;
  /** context.data before and after the transforms. */
  readonly sourceData: JsonObject;
  readonly targetData: JsonObject;
}

export type Verdict = Awaited<ReturnType<typeof judgeMigration>>;

type Target = Pick<MigrateTo, 'version' | 'sequence_id' | 'to_sequence_id' | 'target_sequence_id'>;

/** Rejects with 404 when the current instance of the execution is not here. */
export async function presentPlace(
  { rows }: ExecutionService,
  { current_instance_id: instance }: Execution,
): Promise<Place> {
  const place = await placeOf(rows, instance);
  if (place === undefined) throw notFound(`instance ${instance}`);
  return place;
}

/** Rejects with 409 when the instance has ended. */
export async function livePlace(service: ExecutionService, execution: Execution): Promise<Place> {
  const place = await presentPlace(service, execution);
  const { state } = place.row;
  if (isTerminal(state)) throw conflict(`instance ${execution.current_instance_id} is ${state}`);
  return place;
}

/** A checkpoint of the current state, not stored yet. */
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

export async function versionOf(service: ExecutionService, tenant: string, id: string) {
  const row = await service.rows.one('version', id);
  if (row?.tenant_id !== tenant) throw notFound(`sequence ${id}`);
  return row;
}

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

/** The snapshot of the checkpoint, if it has one. */
function dataIn(checkpointData: JsonValue, { data }: Place): JsonObject {
  const snapshot = isJsonObject(checkpointData)
    ? ownValue(checkpointData, 'context_snapshot')
    : undefined;
  return isJsonObject(snapshot) ? snapshot : data;
}

/** Outputs that a replay keeps in memory. */
const HISTORY_BYTES_MAX = 32 * 1024 * 1024;

export async function judgeMigration(service: ExecutionService, subject: Subject) {
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

export function checkVerdict(
  { disposition: verdict, findings }: Pick<Verdict, 'disposition' | 'findings'>,
  isApproved: boolean,
): void {
  if (mayApply(verdict, isApproved)) return;
  const isOpen = verdict === 'approval_required';
  const reason = isOpen ? 'the migration has to be approved' : `the verdict is ${verdict}`;
  throw conflictFor(findings, { reason, verdict });
}

/** Asks the instance which waits it cannot keep and which clean-ups it would lose. */
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

export interface OpenMigration {
  readonly row: MigrationRow;
  readonly stored: StoredMigration;
  readonly secrets: MigrationSecrets;
}

/** Rejects with 409 when the migration is in another state. */
export async function openMigration(
  service: ExecutionService,
  { tenant, id }: RequestTarget,
  state: MigrationState,
): Promise<OpenMigration> {
  const row = await service.rows.owned('migration', tenant, id);
  if (row.state !== state) throw conflict(`migration ${id} is ${row.state}, not ${state}`);
  const secrets = openSecrets(row, service.keyring?.opening ?? []);
  if (secrets === undefined) {
    throw unavailable('ENG_NO_KEYS', 'no key of the server opens what is sealed of the migration');
  }
  return { row, stored: storedOf(row), secrets };
}

export function insertMigration(
  { keyring }: ExecutionService,
  turn: Turn,
  stored: StoredMigration,
  secrets: MigrationSecrets,
  state: Exclude<MigrationState, 'rolled_back'> = 'planned',
): void {
  const { id, tenant_id, continuity_id, created_at } = stored.plan;
  const sealed = sealSecrets(stored.plan, secrets, keyring?.payload, randomBytes(NONCE_BYTES));
  const times = { created_at, updated_at: created_at };
  const row = { id, continuity_id, tenant_id, state, record: stored, secrets: sealed, ...times };
  turn.put(MIGRATION.set, id, row);
}

/** @returns the wire record after the move */
export function moveMigration(
  service: ExecutionService,
  turn: Turn,
  { row, stored, secrets }: OpenMigration,
  state: MigrationState,
  changes: Partial<StoredMigration>,
): MigrationRecord {
  if (!mayMoveMigration(row.state as MigrationState, state)) {
    throw new Error(`a migration cannot go from ${row.state} to ${state}`);
  }
  const record: StoredMigration = { ...stored, ...changes };
  // The sealed part never changes.
  const sealed = JSON.parse(row.secrets) as StoredSecrets;
  const updated_at = isoTime(service.now);
  turn.put(MIGRATION.set, row.id, { ...row, state, record, secrets: sealed, updated_at });
  return recordOf(record, state, secrets);
}

/** Moves the execution to the next epoch, and creates it if it has no row. */
export function nextEpoch(
  service: ExecutionService,
  execution: ExecutionBefore,
  request: number,
): ExecutionUnit {
  const changes = { epoch: execution.epoch + 1 };
  const unit =
    execution.version === undefined
      ? ExecutionUnit.begin(service, execution, changes)
      : new ExecutionUnit(service, execution, changes);
  unit.request = request;
  return unit;
}

interface VersionChange {
  readonly execution: ExecutionBefore;
  readonly place: Place;
  readonly checkpoint_data: JsonValue;
  readonly entry: NewEntry;
  readonly change: OrderedChange;
  readonly expect?: Expectations;
}

/** Commits a unit of `nextEpoch` that changes the version of the instance. */
export async function changeVersion(
  service: ExecutionService,
  unit: ExecutionUnit,
  { execution, place, checkpoint_data, entry, change, expect }: VersionChange,
): Promise<OrderView> {
  const { current_instance_id: instance_id } = execution;
  const id = service.newIdLike(instance_id);
  const created_at = isoTime(service.now);
  unit.put(CHECKPOINT.insert, id, { id, instance_id, checkpoint_data, created_at });
  unit.locate(null);
  await unit.enter(entry);
  const order = { expect: { ...unchanged(execution, place), ...expect }, changes: [change] };
  return service.order(execution, order, unit);
}

/** The instance is unchanged since it was read. */
export function unchanged({ epoch }: Execution, { row, sha256 }: Place): Expectations {
  return {
    states: [row.state],
    sequenceId: row.sequence_id,
    epoch,
    fence: 'none',
    isAtRest: true,
    placeSha256: sha256,
  };
}
