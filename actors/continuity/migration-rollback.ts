/**
 * Rollback of a migration, allowed until the target version has had an effect: restores the
 * instance from the rollback capsule.
 */

import type { CarriedOutput } from '../../schema/capsule.js';
import { forbidsRollback } from '../../schema/continuity-words.js';
import { conflict } from '../../src/base/errors.js';
import { isJsonObject, type JsonObject } from '../../src/base/json.js';
import { isoTime } from '../../src/base/time.js';
import { isProgressNote } from '../../src/core/loop-items.js';
import type { KeptOutput } from '../../src/core/progress.js';
import { canonicalJson } from '../../src/core/sealing/canonical-json.js';
import { itemOutputsOf, itemsAmong } from '../instance/kept-outputs.js';
import type { OrderedRestore } from '../instance/orders.js';
import { OUTPUT, SNAPSHOT } from '../instance/output-tables.js';
import type { Turn } from '../runtime/turn.js';
import { type Place, workOn } from './capsules.js';
import { manifestFault, type OpenedCapsule, rollbackCapsuleOf, trustOf } from './core/capsule.js';
import { readTree } from './core/execution-tree.js';
import type { ExecutionService } from './execution-service.js';
import { OPEN_CAPSULE } from './jobs.js';
import {
  changeVersion,
  moveMigration,
  nextEpoch,
  type OpenMigration,
  openMigration,
  presentPlace,
} from './migration-steps.js';
import { keysOf, refuseFor, type Serve, unwrapped } from './operation.js';
import type { ExecutionRow, OutputKeyRow } from './rows.js';

export const rollBack: Serve<'migrations.rollback'> = async (service, { request, tenant, id }) => {
  const migration = await openMigration(service, { tenant, id }, 'applied');
  const { plan, rollback_expires_at } = migration.stored;
  if (service.now >= Date.parse(rollback_expires_at)) {
    throw conflict(`migration ${id} can be rolled back until ${rollback_expires_at} only`);
  }
  const execution = await service.rows.owned('execution', plan.tenant_id, plan.continuity_id);
  const place = await presentPlace(service, execution);
  checkTarget(migration, execution, place);
  const opened = await openedCapsule(service, migration, execution);
  // Read after the place, which the order compares: a later effect would change it.
  const { current_instance_id: instance, epoch } = execution;
  const effects = await service.rows.effects(execution.continuity_id);
  const sent = effects.find((effect) => effect.epoch === epoch && forbidsRollback(effect.state));
  if (sent !== undefined) {
    throw conflict(`effect ${sent.id} of block ${sent.block_id} is ${sent.state}`);
  }
  const unit = nextEpoch(service, execution, request);
  const rolled_back_at = isoTime(service.now);
  const record = moveMigration(service, unit, migration, 'rolled_back', { rolled_back_at });
  const { stored, secrets } = migration;
  await changeVersion(service, unit, {
    execution,
    place,
    checkpoint_data: opened.frame.checkpoint.checkpoint_data,
    entry: {
      kind: 'migration_rolled_back',
      summary: `rolled back from version ${plan.to_version} to version ${plan.from_version}`,
      evidence: { id, capsule_sha256: stored.rollback_capsule?.manifest_sha256 ?? null },
    },
    change: {
      ...(await putProgress(service, unit, instance, plan.from_sequence_id, opened)),
      kind: 'restore',
      sequenceId: plan.from_sequence_id,
      context: opened.frame.instance.context,
      execution: secrets.execution,
      state: stored.source_state,
      nextFireAt: secrets.next_fire_at,
      epoch: epoch + 1,
    },
  });
  return record;
};

/** @throws EngineError 409 unless the execution is as the migration left it */
function checkTarget(
  { row: { id }, stored: { plan, applied_epoch, goes_on, source_state } }: OpenMigration,
  { state, epoch, continuity_id }: ExecutionRow,
  { row }: Place,
): void {
  const refused = (what: string) => conflict(`migration ${id} cannot be rolled back: ${what}`);
  if (state !== 'owned') throw refused(`execution ${continuity_id} is ${state}`);
  if (epoch !== applied_epoch) throw refused('the execution has gone on to another epoch');
  if (row.sequence_id !== plan.to_sequence_id) throw refused('the instance has another version');
  // A failed instance stays failed.
  const isKept = goes_on === true || source_state === 'failed';
  if (row.state !== 'paused' && !(isKept && row.state === source_state)) {
    throw refused(`the instance is ${row.state}: pause it`);
  }
}

/** Rejects with 409 when the retained capsule was changed. */
async function openedCapsule(
  service: ExecutionService,
  { stored }: OpenMigration,
  execution: ExecutionRow,
): Promise<OpenedCapsule> {
  const { manifest, rollback_capsule: retained, expected_epoch } = stored;
  if (manifest === null || retained === null) throw conflict('there is no rollback capsule');
  const keyring = keysOf(service);
  const { manifest_sha256, signature, public_key, payload_artifact } = retained;
  const capsule = { manifest, manifest_sha256, signature, public_key };
  const sealed = await service.rows.artifact(payload_artifact.key);
  if (sealed === undefined)
    throw conflict('the payload of the rollback capsule is not stored here');
  const isWhole = canonicalJson(rollbackCapsuleOf(capsule)) === canonicalJson(retained);
  if (!isWhole) throw conflict('the manifest is not that of the rollback capsule');
  const expected = {
    tenant_id: execution.tenant_id,
    destination_runtime_id: execution.owner_runtime_id,
    expected_epoch,
    isTrusted: trustOf(keyring),
  };
  refuseFor(manifestFault(capsule, expected, service.now));
  const task = { capsule, sealed, keys: keyring.opening, now: isoTime(service.now) };
  return unwrapped(await workOn(service, execution.tenant_id, OPEN_CAPSULE, task), conflict);
}

/** Restores the rows from the capsule; drops work of the target, which the source version repeats. */
async function putProgress(
  service: ExecutionService,
  turn: Turn,
  instance: string,
  sequenceId: string,
  opened: OpenedCapsule,
): Promise<Pick<OrderedRestore, 'dropped' | 'outputs' | 'items' | 'itemOutputs'>> {
  const { rows, plans } = service;
  const [present, presentItems, stored] = await Promise.all([
    rows.all('outputKeys', instance),
    rows.all('items', instance),
    plans.load(sequenceId),
  ]);
  if (stored === undefined) throw conflict(`sequence ${sequenceId} is not there any more`);
  const tree = unwrapped(readTree(opened.frame.execution_tree, stored.plan), conflict);
  const items = [...tree.items];
  for (const { key } of presentItems) {
    if (tree.items.has(key)) continue;
    turn.put(SNAPSHOT.clear, `${instance}:${key}`, { instance_id: instance, key });
  }
  for (const [key, list] of items) {
    turn.put(SNAPSHOT.set, `${instance}:${key}`, { instance_id: instance, key, items: list });
  }
  const { runtime } = opened.frame.instance.context;
  const itemOutputs = await itemOutputsOf(
    itemsAmong(opened.outputs.map((text) => JSON.parse(text) as CarriedOutput)),
    stored.plan,
    {
      id: instance,
      execution: tree.execution,
      runtime: isJsonObject(runtime ?? null) ? (runtime as JsonObject) : {},
      snapshots: items.map(([key]) => key),
    },
  );
  return { ...putOutputs(service, turn, instance, present, opened.outputs), items, itemOutputs };
}

/** Replaces the rows of each block that differ from the capsule. */
function putOutputs(
  service: ExecutionService,
  turn: Turn,
  instance: string,
  present: readonly OutputKeyRow[],
  texts: readonly string[],
): Pick<OrderedRestore, 'dropped' | 'outputs'> {
  const kept = texts.map((text) => ({ text, row: JSON.parse(text) as CarriedOutput }));
  const isPresent = new Set(present.map(nameOf));
  const isKept = new Set(kept.map(({ row }) => nameOf(row)));
  const changed = [
    ...present.filter((row) => !isKept.has(nameOf(row))),
    ...kept.map(({ row }) => row).filter((row) => !isPresent.has(nameOf(row))),
  ];
  const blocks = new Set(changed.map(({ block_id }) => block_id));
  if (blocks.size === 0) return { dropped: [], outputs: [] };
  const dropped = [...blocks];
  turn.put(OUTPUT.dropBlocks, instance, { instance_id: instance, block_ids: dropped });
  const outputs = new Map<string, KeptOutput>();
  for (const { text, row } of kept) {
    if (!blocks.has(row.block_id)) continue;
    const id = service.newIdLike(instance);
    turn.put(OUTPUT.insert, id, `{"id":"${id}","instance_id":"${instance}",${text.slice(1)}`);
    // Oldest first: the latest one wins.
    const { iteration, output = null, output_ref = null } = row;
    if (output_ref !== null && output_ref !== '__error__') continue;
    if (isProgressNote(output)) outputs.delete(row.block_id);
    else outputs.set(row.block_id, { iteration, output });
  }
  return { dropped, outputs: [...outputs] };
}

function nameOf(row: OutputKeyRow): string {
  return JSON.stringify([row.block_id, row.iteration, row.attempt]);
}
