/** Migrations as rows: how one is found, what is sealed of it opened, and written. */

import { randomBytes } from 'node:crypto';
import type { MigrationRecord } from '../../schema/continuity.js';
import { type MigrationState, mayMoveMigration } from '../../schema/continuity-words.js';
import { conflict, notFound, unavailable } from '../../src/base/errors.js';
import type { JsonValue } from '../../src/base/json.js';
import { isoTime } from '../../src/base/time.js';
import { NONCE_BYTES } from '../../src/core/sealing/sealing.js';
import type { Expectations, OrderedChange, OrderView } from '../instance/orders.js';
import type { Turn } from '../runtime/turn.js';
import {
  type MigrationSecrets,
  openSecrets,
  recordOf,
  type StoredMigration,
  type StoredSecrets,
  sealSecrets,
  storedOf,
} from './core/migration-record.js';
import type { ExecutionService } from './execution-service.js';
import {
  putCheckpoint,
  putExecution,
  putLocation,
  putNewExecution,
  shownExecution,
} from './executions.js';
import type { Asked } from './operation.js';
import { type Place, placeOf } from './places.js';
import { type NewEntry, putNextEntry } from './provenance.js';
import type { ExecutionRow, MigrationRow, VersionRow } from './rows.js';
import { MIGRATION } from './tables.js';

/** A migration with what is sealed of it. */
export interface OpenMigration {
  readonly row: MigrationRow;
  readonly stored: StoredMigration;
  readonly secrets: MigrationSecrets;
}

/** Rejects with 404 when the tenant ('' is any) has none of that id, 409 when it is in another state. */
export async function openMigration(
  service: ExecutionService,
  { tenant, id }: Pick<Asked<'migrations.apply'>, 'tenant' | 'id'>,
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

/** Puts a new plan into the unit, or one that is applied in the same. */
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

/** Moves a migration, in the unit that does what it says. @returns the wire record as it is then */
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
  // What is sealed stays in the row as it was written first.
  const sealed = JSON.parse(row.secrets) as StoredSecrets;
  const updated_at = isoTime(service.now);
  turn.put(MIGRATION.set, row.id, { ...row, state, record, secrets: sealed, updated_at });
  return recordOf(record, state, secrets);
}

/** Rejects with 404 when the present instance of the execution is not here. */
export async function presentPlace(
  { rows }: ExecutionService,
  { current_instance_id: instance }: ExecutionRow,
): Promise<Place> {
  const place = await placeOf(rows, instance);
  if (place === undefined) throw notFound(`instance ${instance}`);
  return place;
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

/** What the instance and its execution become, and what the instance must still be. */
export interface VersionChange {
  readonly execution: ExecutionRow;
  /** The instance has no row of its execution so far: it gets one. */
  readonly isNew?: boolean;
  readonly place: Place;
  readonly checkpoint_data: JsonValue;
  readonly entry: NewEntry;
  readonly change: OrderedChange;
  readonly expect?: Expectations;
}

/** One unit: the instance goes to another version, at the next epoch, with what is in the turn already. */
export async function changeVersion(
  service: ExecutionService,
  turn: Turn,
  { execution, isNew, place, checkpoint_data, entry, change, expect }: VersionChange,
): Promise<OrderView> {
  const { current_instance_id: instance, tenant_id, epoch } = execution;
  putCheckpoint(service, turn, instance, { checkpoint_data, created_at: isoTime(service.now) });
  const changes = { epoch: epoch + 1 };
  if (isNew === true) putNewExecution(service, turn, shownExecution(execution), changes, entry);
  else {
    const after = putExecution(service, turn, execution, changes);
    putLocation(turn, after, null);
    await putNextEntry(service, turn, after, entry);
  }
  const order = { expect: { ...unchanged(execution, place), ...expect }, changes: [change] };
  return service.order(instance, tenant_id, order, turn);
}

/** Nothing has happened to the instance since it was looked at. */
export function unchanged({ epoch }: ExecutionRow, { row, sha256 }: Place): Expectations {
  return {
    states: [row.state],
    sequenceId: row.sequence_id,
    epoch,
    fence: 'none',
    isAtRest: true,
    placeSha256: sha256,
  };
}
