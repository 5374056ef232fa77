/** Migrations as rows: how one is read, its sealed part opened, and written. */

import { randomBytes } from 'node:crypto';
import type { Execution, MigrationRecord } from '../../schema/continuity.js';
import { type MigrationState, mayMoveMigration } from '../../schema/continuity-words.js';
import { conflict, unavailable } from '../../src/base/errors.js';
import type { JsonValue } from '../../src/base/json.js';
import { isoTime } from '../../src/base/time.js';
import { NONCE_BYTES } from '../../src/core/sealing/sealing.js';
import type { Expectations, OrderedChange, OrderView } from '../instance/orders.js';
import { CHECKPOINT } from '../instance/output-tables.js';
import type { Turn } from '../runtime/turn.js';
import type { Place } from './capsules.js';
import {
  type MigrationSecrets,
  openSecrets,
  recordOf,
  type StoredMigration,
  type StoredSecrets,
  sealSecrets,
  storedOf,
} from './core/migration.js';
import type { ExecutionService } from './execution-service.js';
import { type ExecutionBefore, ExecutionUnit, type NewEntry } from './execution-unit.js';
import type { RequestTarget } from './operation.js';
import type { MigrationRow } from './rows.js';
import { MIGRATION } from './tables.js';

export interface OpenMigration {
  readonly row: MigrationRow;
  readonly stored: StoredMigration;
  readonly secrets: MigrationSecrets;
}

/** Rejects with 404 when the tenant ('' is any) has none of that id, 409 when it is in another state. */
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

/** @param state 'applied': in the unit that applies it */
export function insertMigration(
  { keyring }: ExecutionService,
  turn: Turn,
  stored: StoredMigration,
  secrets: MigrationSecrets,
  state: Exclude<MigrationState, 'rolled_back'> = 'planned',
): void {
  const { id, tenant_id, continuity_id, created_at } = stored.plan;
  turn.put(MIGRATION.set, id, {
    id,
    continuity_id,
    tenant_id,
    state,
    record: stored,
    secrets: sealSecrets(stored.plan, secrets, keyring?.payload, randomBytes(NONCE_BYTES)),
    created_at,
    updated_at: created_at,
  });
}

/** Moves a migration in the unit that carries it out. @returns the wire record after that */
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

/** A unit that moves the execution to the next epoch, or creates it and moves it there. */
export function nextEpoch(service: ExecutionService, execution: ExecutionBefore): ExecutionUnit {
  const changes = { epoch: execution.epoch + 1 };
  return execution.version === undefined
    ? ExecutionUnit.begin(service, execution, changes)
    : new ExecutionUnit(service, execution, changes);
}

interface VersionChange {
  /** Before the unit. */
  readonly execution: ExecutionBefore;
  readonly place: Place;
  readonly checkpoint_data: JsonValue;
  readonly entry: NewEntry;
  readonly change: OrderedChange;
  readonly expect?: Expectations;
}

/** Commits a unit of `nextEpoch`, which also moves the instance to another version. */
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

/** The instance has not changed since it was read. */
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
