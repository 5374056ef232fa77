/**
 * The instance that a capsule holds, as it is inserted here: paused, behind a fence that only a
 * change of ownership lifts, with everything that keeps it from doing again what is done.
 */

import type { Block } from '../../schema/blocks.js';
import { isTimeZone } from '../../schema/formats.js';
import type { Capsule } from '../../schema/handoff.js';
import {
  type ExecutionTree,
  readOwnBlocks,
  readTree,
} from '../../src/core/continuity/execution-tree.js';
import type { Parsed } from '../../src/core/continuity/parsed.js';
import type { OpenedCapsule, PayloadFrame } from '../../src/core/continuity/sealed-payload.js';
import { isJsonObject, type JsonObject, ownValue } from '../../src/core/json.js';
import type { Plan } from '../../src/core/plan.js';
import { isoTime } from '../../src/core/time.js';
import { conflict } from '../../src/errors.js';
import type { Plans } from '../catalog/plans.js';
import { type InstanceRecord, newRecord, wholeRow } from '../instance/record.js';
import { putOwnership } from '../instance/version-switch.js';
import { Turn } from '../runtime/turn.js';
import type { ExecutionService } from './execution-service.js';

export interface Import {
  readonly instance: string;
  readonly capsule: Capsule;
  readonly opened: OpenedCapsule;
  readonly destination: string;
}

/**
 * The unit that inserts it.
 *
 * @throws EngineError 409 when the capsule does not go with what is stored here
 */
export async function importUnit(service: ExecutionService, imported: Import): Promise<Turn> {
  const { capsule, opened } = imported;
  const { frame, outputs } = opened;
  refuseUnknown(frame);
  const plan = await planOf(service.plans, frame);
  const tree = agreed(readTree(frame.execution_tree, plan));
  const record = recordOf(service, imported, tree);
  const turn = new Turn();
  turn.gate = 'exists';
  turn.put('instance.insert', record.id, wholeRow(record));
  putOwnership(record, turn);
  if (tree.blocks.length > 0) {
    turn.put('injection.set', record.id, { instance_id: record.id, blocks: tree.blocks });
  }
  for (const [key, items] of tree.items) {
    turn.put('snapshot.set', `${record.id}:${key}`, { instance_id: record.id, key, items });
  }
  const now = isoTime(service.now);
  for (const columns of outputs) {
    const id = service.newIdLike(record.id);
    const ids = `{"id":"${id}","instance_id":"${record.id}",`;
    turn.put('output.insert', id, ids + columns.slice(1));
  }
  putCheckpoint(service, turn, record.id, frame);
  const { manifest } = capsule;
  turn.put('capsuleImport.insert', `${manifest.capsule_id}:${imported.destination}`, {
    tenant_id: manifest.tenant_id,
    capsule_id: manifest.capsule_id,
    destination_runtime_id: imported.destination,
    instance_id: record.id,
    continuity_id: manifest.continuity_id,
    source_epoch: manifest.epoch,
    created_at: now,
  });
  return turn;
}

const UNKNOWN_LISTS = ['pending_waits', 'pending_signals', 'artifacts', 'stream_cursors'] as const;

/** This engine exports none of these: a signal takes effect in the unit that stores it. */
function refuseUnknown(frame: PayloadFrame): void {
  const list = UNKNOWN_LISTS.find((name) => frame[name].length > 0);
  if (list !== undefined) throw conflict(`the capsule carries ${list}, which cannot be taken over`);
  if (!isTimeZone(frame.instance.timezone)) {
    throw conflict('the capsule names an unknown time zone');
  }
}

async function planOf(plans: Plans, frame: PayloadFrame): Promise<Plan> {
  const { sequence_id: sequence } = frame.instance;
  const blocks = readOwnBlocks(frame.execution_tree) as unknown as Block[];
  const compiled = await plans.compile(sequence, blocks);
  if (compiled === undefined) throw conflict(`sequence ${sequence} is not stored here`);
  if (!compiled.ok) throw conflict(compiled.message);
  return compiled.plan;
}

function agreed<T>(parsed: Parsed<T>): T {
  if (!parsed.ok) throw conflict(parsed.message);
  return parsed.value;
}

function recordOf(
  service: ExecutionService,
  { instance: id, capsule: { manifest }, opened: { frame } }: Import,
  tree: ExecutionTree,
): InstanceRecord {
  const { instance } = frame;
  const { context } = instance;
  const base = newRecord(
    {
      id,
      // A slot or a key of the source says nothing here.
      body: {
        sequence_id: instance.sequence_id,
        tenant_id: manifest.tenant_id,
        namespace: instance.namespace,
        priority: instance.priority,
        timezone: instance.timezone,
        metadata: instance.metadata,
        context: { data: sectionOf(context, 'data'), config: sectionOf(context, 'config') },
      },
    },
    service.now,
  );
  const audit = ownValue(context, 'audit');
  return {
    ...base,
    parent_instance_id: instance.parent_instance_id,
    continuity_id: manifest.continuity_id,
    ownership_epoch: manifest.epoch,
    fence: { reason: 'imported', until: null },
    context_audit: Array.isArray(audit) ? audit : [],
    injected: tree.blocks as unknown as Block[],
    snapshot: {
      ...base.snapshot,
      state: 'paused',
      nextFireAt: null,
      runtime: runtimeOf(context, id),
      execution: tree.execution,
    },
  };
}

function sectionOf(context: JsonObject, name: string): JsonObject {
  const section = ownValue(context, name);
  return isJsonObject(section) ? section : {};
}

/** The engine's own section names the instance by its id, which is another one here. */
function runtimeOf(context: JsonObject, id: string): JsonObject {
  const runtime = sectionOf(context, 'runtime');
  return ownValue(runtime, 'instance_id') === undefined ? runtime : { ...runtime, instance_id: id };
}

/** A copy of its own, so that the instance can be migrated or handed on. */
function putCheckpoint(
  service: ExecutionService,
  turn: Turn,
  instance: string,
  { checkpoint }: PayloadFrame,
): void {
  const id = service.newIdLike(instance);
  const { checkpoint_data, created_at } = checkpoint;
  turn.put('checkpoint.insert', id, { id, instance_id: instance, checkpoint_data, created_at });
}
