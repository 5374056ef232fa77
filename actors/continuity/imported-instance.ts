/**
 * The rows of an imported instance: paused, behind a fence that only a change of ownership lifts,
 * with all outputs and positions, so that no finished step runs again.
 */

import type { Block } from '../../schema/blocks.js';
import { toUnixMs } from '../../schema/common.js';
import { FAILED } from '../../schema/execution.js';
import { isTimeZone } from '../../schema/formats.js';
import { conflict } from '../../src/base/errors.js';
import { isJsonObject, type JsonObject, ownValue } from '../../src/base/json.js';
import { LIMITS } from '../../src/base/limits.js';
import { isoTime } from '../../src/base/time.js';
import { checkSize } from '../instance/memory.js';
import { OUTPUT, SIGNAL, SNAPSHOT } from '../instance/output-tables.js';
import { type InstanceRecord, newRecord, wholeLine } from '../instance/record.js';
import { INJECTION, INSTANCE } from '../instance/tables.js';
import { putOwnership } from '../instance/version-switch.js';
import { Turn } from '../runtime/turn.js';
import { type ExecutionTree, readOwnBlocks, readTree } from './core/execution-tree.js';
import type { OpenedCapsule, PayloadFrame } from './core/sealed-payload.js';
import type { ExecutionService } from './execution-service.js';
import { putCheckpoint } from './executions.js';
import { unwrapped } from './operation.js';
import { planOf } from './places.js';
import type { ImportRow } from './rows.js';
import { CAPSULE_IMPORT } from './tables.js';

/** @throws EngineError 409 when the capsule does not fit the stored sequence, 413 when its context is too large */
export async function importUnit(
  service: ExecutionService,
  imported: ImportRow,
  { frame, outputs }: OpenedCapsule,
): Promise<Turn> {
  refuseUnknown(frame);
  const { execution_tree: entries, checkpoint } = frame;
  const plan = await planOf(service.plans, frame.instance.sequence_id, readOwnBlocks(entries));
  const tree = unwrapped(readTree(entries, plan), conflict);
  const record = recordOf(service, imported, frame, tree);
  refuseLarge(service, record);
  const signals = keptSignals(frame);
  record.signal_count = signals.length;
  const turn = new Turn();
  turn.gate = 'exists';
  turn.put(INSTANCE.insert, record.id, wholeLine(record));
  putOwnership(record, turn);
  if (tree.blocks.length > 0) {
    turn.put(INJECTION.set, record.id, { instance_id: record.id, blocks: tree.blocks });
  }
  for (const [key, items] of tree.items) {
    turn.put(SNAPSHOT.set, `${record.id}:${key}`, { instance_id: record.id, key, items });
  }
  for (const columns of outputs) {
    const id = service.newIdLike(record.id);
    const ids = `{"id":"${id}","instance_id":"${record.id}",`;
    turn.put(OUTPUT.insert, id, ids + columns.slice(1));
  }
  for (const [at, signal] of signals.entries()) {
    const id = service.newIdLike(record.id);
    const columns = { id, instance_id: record.id, seq: at + 1, ...signal, status: 'kept' };
    turn.put(SIGNAL.insert, id, columns);
  }
  // So that the instance can be migrated or handed over again.
  putCheckpoint(service, turn, record.id, checkpoint);
  const { capsule_id, destination_runtime_id } = imported;
  const row = { ...imported, created_at: isoTime(service.now) };
  turn.put(CAPSULE_IMPORT.insert, `${capsule_id}:${destination_runtime_id}`, row);
  return turn;
}

/** Signals kept for a step that will wait for them. @throws EngineError 409 */
function keptSignals({ pending_signals: signals }: PayloadFrame) {
  const refused = conflict('the capsule carries pending_signals that cannot be taken over');
  if (signals.length > LIMITS.keptSignalsMax) throw refused;
  return signals.map((signal) => {
    if (!isJsonObject(signal)) throw refused;
    // Capsules of earlier versions have no sent_by.
    const { signal_type, created_at, payload = null, sent_by = null } = signal;
    if (typeof signal_type !== 'string' || !signal_type.startsWith('custom:')) throw refused;
    if (typeof created_at !== 'string' || toUnixMs(created_at) === undefined) throw refused;
    if (sent_by !== null && typeof sent_by !== 'string') throw refused;
    return { signal_type, created_at, payload, sent_by };
  });
}

const UNKNOWN_LISTS = ['pending_waits', 'artifacts', 'stream_cursors'] as const;

/** This engine exports none of these: the record of a step has what it waits for. */
function refuseUnknown(frame: PayloadFrame): void {
  const list = UNKNOWN_LISTS.find((name) => frame[name].length > 0);
  if (list !== undefined) throw conflict(`the capsule carries ${list}, which cannot be taken over`);
  if (!isTimeZone(frame.instance.timezone)) {
    throw conflict('the capsule names an unknown time zone');
  }
}

/** The limit of a creation with the same context. @throws EngineError 413 */
function refuseLarge(
  { maxContextBytes }: ExecutionService,
  { snapshot, context_audit }: InstanceRecord,
): void {
  if (maxContextBytes === 0) return;
  const context = { data: snapshot.data, config: snapshot.config, audit: context_audit };
  checkSize('the context of the capsule is', context, maxContextBytes);
}

function recordOf(
  service: ExecutionService,
  { instance_id: id, tenant_id, continuity_id, source_epoch }: ImportRow,
  { instance }: PayloadFrame,
  tree: ExecutionTree,
): InstanceRecord {
  const { context } = instance;
  const base = newRecord(
    {
      id,
      // Slots and idempotency keys of the source do not apply here.
      body: {
        sequence_id: instance.sequence_id,
        tenant_id,
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
  // A parked instance waits for a caller: here, the one that resumes it.
  const { p: _parked, ...execution } = tree.execution;
  return {
    ...base,
    parent_instance_id: instance.parent_instance_id ?? null,
    continuity_id,
    ownership_epoch: source_epoch,
    fence: { reason: 'imported', until: null },
    context_audit: Array.isArray(audit) ? audit : [],
    injected: tree.blocks as unknown as Block[],
    snapshot: {
      ...base.snapshot,
      state: 'paused',
      nextFireAt: null,
      timeoutMs: instance.timeout ?? null,
      runtime: runtimeOf(context, id),
      // Paused from now on unless it was before. A failed instance continues by a retry.
      execution: {
        z: service.now,
        ...execution,
        ...(execution.e === FAILED ? { f: 1 } : {}),
      },
    },
  };
}

function sectionOf(context: JsonObject, name: string): JsonObject {
  const section = ownValue(context, name);
  return isJsonObject(section) ? section : {};
}

/** The runtime section has the id of the instance, which changes here. */
function runtimeOf(context: JsonObject, id: string): JsonObject {
  const runtime = sectionOf(context, 'runtime');
  return ownValue(runtime, 'instance_id') === undefined ? runtime : { ...runtime, instance_id: id };
}
