/**
 * The import of a capsule. The instance is inserted paused, with all outputs and positions, and stays fenced until the
 * handoff is accepted here, or until a source with its own database grants the ownership (`executions.ts`).
 */

import type { Block } from '../../schema/blocks.js';
import { toUnixMs } from '../../schema/common.js';
import { FAILED } from '../../schema/execution.js';
import { isTimeZone } from '../../schema/formats.js';
import type { Capsule, ImportCapsule } from '../../schema/handoff.js';
import { conflict, invalid, tooLarge } from '../../src/base/errors.js';
import { isJsonObject, type JsonObject, ownValue } from '../../src/base/json.js';
import { LIMITS } from '../../src/base/limits.js';
import { isoTime } from '../../src/base/time.js';
import { base64Length, decodeBase64 } from '../../src/core/sealing/base64.js';
import { canonicalSha256 } from '../../src/core/sealing/canonical-json.js';
import type { Keyring, PayloadKey } from '../../src/core/sealing/keys.js';
import { checkSize } from '../instance/memory.js';
import { CHECKPOINT, OUTPUT, SIGNAL, SNAPSHOT } from '../instance/output-tables.js';
import { type InstanceRecord, newRecord, wholeLine } from '../instance/record.js';
import { putSearchTerms } from '../instance/search-terms.js';
import { INJECTION, INSTANCE } from '../instance/tables.js';
import { putOwnership } from '../instance/version-switch.js';
import { Turn } from '../runtime/turn.js';
import { planOf, transferKeyIn, workOn } from './capsules.js';
import {
  type ImportExpectation,
  manifestFault,
  type OpenedCapsule,
  PAYLOAD_BYTES_MAX,
  type PayloadFrame,
  sequenceFault,
  trustOf,
} from './core/capsule.js';
import { type ExecutionTree, readOwnBlocks, readTree } from './core/execution-tree.js';
import { handoffStateAt, handoffTerms } from './core/handoff.js';
import { type ImportFacts, signStatement } from './core/statements.js';
import type { ExecutionService } from './execution-service.js';
import { OPEN_CAPSULE } from './jobs.js';
import { keysOf, refuseFor, type Serve, unwrapped } from './operation.js';
import type { ImportRow } from './rows.js';
import { CAPSULE_IMPORT } from './tables.js';

export const importCapsule: Serve<'capsules.import'> = async (service, { tenant, body }) => {
  const keyring = keysOf(service);
  const { capsule } = body;
  const { manifest } = capsule;
  const handoff = (await service.rows.all('handoffs', manifest.continuity_id)).find(
    ({ capsule_id }) => capsule_id === manifest.capsule_id,
  );
  const opened = await openFor(service, body, {
    tenant_id: tenant === '' ? manifest.tenant_id : tenant,
    destination_runtime_id: body.destination_runtime_id,
    expected_epoch: body.expected_epoch,
    isTrusted: trustOf(keyring),
    requirements_sha256: handoff && canonicalSha256(handoffTerms(handoff).requirements),
  });
  const destination = body.destination_runtime_id;
  const known = await importOf(service, capsule, destination);
  const state = handoff && handoffStateAt(handoff, service.now);
  if (known === undefined && state !== undefined && state !== 'exported') {
    throw conflict(`the handoff of the capsule is ${state}`);
  }
  const id = body.destination_instance_id ?? undefined;
  const row = known ?? (await importInstance(service, capsule, opened, destination, id));
  const { source_epoch: epoch, ...imported } = row;
  const facts: ImportFacts = { ...imported, kind: 'capsule_imported', epoch };
  const import_receipt = signStatement(keyring.signing, facts);
  return { instance_id: row.instance_id, state: 'paused', import_receipt };
};

/** Checks and opens a capsule. Rejects with 400, 409, 413 or 503. */
export async function openFor(
  service: ExecutionService,
  body: ImportBody,
  expected: ImportExpectation,
): Promise<OpenedCapsule> {
  const { capsule } = body;
  const { manifest } = capsule;
  const { sealed: sent, keys } = admitted(body, keysOf(service));
  refuseFor(manifestFault(capsule, expected, service.now));
  if (manifest.allowed_destination_runtime_id === null) {
    throw conflict('the capsule is for the rollback of a migration');
  }
  const sealed = sent ?? (await service.rows.artifact(manifest.payload_artifact.key));
  if (sealed === undefined) throw conflict('the payload of the capsule is not stored here');
  const task = { capsule, sealed, keys, now: isoTime(service.now) };
  const opened = unwrapped(await workOn(service, expected.tenant_id, OPEN_CAPSULE, task), conflict);
  const sequence = await service.rows.one('version', manifest.sequence.id);
  const isOwn = sequence?.tenant_id === expected.tenant_id;
  refuseFor(sequenceFault(manifest, isOwn ? JSON.parse(sequence.definition) : undefined));
  return opened;
}

type ImportBody = Pick<ImportCapsule, 'capsule' | 'payload_base64' | 'payload_key_base64'>;

/** More than the nonce and the tag add. */
export const SEALED_BYTES_MAX = PAYLOAD_BYTES_MAX + 64;

/** The opening keys, and the sealed bytes unless they are in storage. @throws EngineError 400, 413 */
export function admitted(
  { capsule, payload_base64, payload_key_base64 }: ImportBody,
  { opening }: Keyring,
): { readonly keys: readonly PayloadKey[]; readonly sealed: Buffer | undefined } {
  const transferKey = transferKeyIn(payload_key_base64);
  const keys = transferKey === undefined ? opening : [transferKey];
  const { bytes } = capsule.manifest.payload_artifact;
  const text = payload_base64 ?? undefined;
  // Before the text is decoded.
  if (bytes > SEALED_BYTES_MAX || (text !== undefined && text.length > base64Length(bytes))) {
    throw tooLarge('the sealed payload is larger than it may be');
  }
  const sealed = text === undefined ? undefined : decodeBase64(text);
  if (text !== undefined && sealed === undefined) throw invalid('payload_base64 must be base64');
  return { keys, sealed };
}

/** There is at most one. */
export function importOf(
  { rows }: ExecutionService,
  { manifest: { tenant_id, capsule_id } }: Capsule,
  destination: string,
): Promise<ImportRow | undefined> {
  return rows.one('capsuleImport', tenant_id, capsule_id, destination);
}

/** Inserts the instance, paused and fenced. Rejects with 409 when its id exists. */
export async function importInstance(
  service: ExecutionService,
  capsule: Capsule,
  opened: OpenedCapsule,
  destination: string,
  chosen: string | undefined,
): Promise<ImportRow> {
  const { tenant_id, capsule_id, continuity_id, epoch, sequence } = capsule.manifest;
  const instance_id = chosen?.toLowerCase() ?? service.newIdLike(continuity_id);
  if (await service.rows.isHere(instance_id)) {
    throw conflict(`there is an instance ${instance_id} already, of another origin`);
  }
  const { plans } = service;
  const { deletions } = plans;
  const imported: ImportRow = {
    tenant_id,
    capsule_id,
    destination_runtime_id: destination,
    instance_id,
    continuity_id,
    source_epoch: epoch,
  };
  const turn = await importUnit(service, imported, opened);
  await service.commit(turn, () => plans.checkUsable(sequence.id, deletions));
  return imported;
}

/** @throws EngineError 409 when the capsule does not fit the sequence, 413 for a large context */
async function importUnit(
  service: ExecutionService,
  imported: ImportRow,
  { frame, outputs }: OpenedCapsule,
): Promise<Turn> {
  refuseUnknown(frame);
  const { execution_tree: entries, checkpoint } = frame;
  const plan = await planOf(service.plans, frame.instance.sequence_id, readOwnBlocks(entries));
  const tree = unwrapped(readTree(entries, plan), conflict);
  const record = recordOf(service, imported, frame, tree);
  const { maxContextBytes } = service.settings;
  if (maxContextBytes > 0) {
    // The same limit as for a creation.
    const { data, config } = record.snapshot;
    const context = { data, config, audit: record.context_audit };
    checkSize('the context of the capsule is', context, maxContextBytes);
  }
  const signals = keptSignals(frame);
  record.signal_count = signals.length;
  const turn = new Turn();
  turn.gate = 'exists';
  turn.put(INSTANCE.insert, record.id, wholeLine(record));
  putSearchTerms(turn, record, plan.searchable);
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
  // A migration or another handoff needs a checkpoint.
  const { checkpoint_data, created_at } = checkpoint;
  const id = service.newIdLike(record.id);
  turn.put(CHECKPOINT.insert, id, { id, instance_id: record.id, checkpoint_data, created_at });
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
    // Capsules of earlier versions do not have the last two.
    const { signal_type, created_at, payload = null, sent_by = null, sent_groups = null } = signal;
    if (typeof signal_type !== 'string' || !signal_type.startsWith('custom:')) throw refused;
    if (typeof created_at !== 'string' || toUnixMs(created_at) === undefined) throw refused;
    if (sent_by !== null && typeof sent_by !== 'string') throw refused;
    if (sent_groups !== null && typeof sent_groups !== 'string') throw refused;
    return { signal_type, created_at, payload, sent_by, sent_groups };
  });
}

/** This engine exports none of these: records of steps contain their waits. */
function refuseUnknown(frame: PayloadFrame): void {
  const lists = ['pending_waits', 'artifacts', 'stream_cursors'] as const;
  const list = lists.find((name) => frame[name].length > 0);
  if (list !== undefined) throw conflict(`the capsule carries ${list}, which cannot be taken over`);
  if (!isTimeZone(frame.instance.timezone)) {
    throw conflict('the capsule names an unknown time zone');
  }
}

function recordOf(
  service: ExecutionService,
  { instance_id: id, tenant_id, continuity_id, source_epoch }: ImportRow,
  { instance }: PayloadFrame,
  tree: ExecutionTree,
): InstanceRecord {
  const { context, sequence_id, namespace, priority, timezone, metadata } = instance;
  const sections = { data: sectionOf(context, 'data'), config: sectionOf(context, 'config') };
  // Slots and idempotency keys of the source do not apply here.
  const own = { sequence_id, tenant_id, namespace, priority, timezone, metadata };
  const base = newRecord({ id, body: { ...own, context: sections } }, service.now, undefined);
  const audit = ownValue(context, 'audit');
  // A parked instance waits for a caller: here, for the one that resumes it.
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
      // Paused from now on, unless it already was. A failed instance continues by a retry.
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

/** The section contains the id of the instance, which changes here. */
function runtimeOf(context: JsonObject, id: string): JsonObject {
  const runtime = sectionOf(context, 'runtime');
  return ownValue(runtime, 'instance_id') === undefined ? runtime : { ...runtime, instance_id: id };
}
