/**
 * The import of a capsule. The instance stays fenced until the handoff is accepted here, or until a
 * source with its own database grants the ownership (`claims.ts`).
 */

import type { Capsule, ImportCapsule } from '../../schema/handoff.js';
import { conflict, invalid, tooLarge } from '../../src/base/errors.js';
import { isoTime } from '../../src/base/time.js';
import { base64Length, decodeBase64 } from '../../src/core/sealing/base64.js';
import { canonicalSha256 } from '../../src/core/sealing/canonical-json.js';
import type { Keyring, PayloadKey } from '../../src/core/sealing/keys.js';
import { transferKeyIn, workOn } from './capsule-sealing.js';
import {
  type ImportExpectation,
  manifestFault,
  sequenceFault,
  trustOf,
} from './core/capsule-import.js';
import { PAYLOAD_BYTES_MAX } from './core/capsule-payload.js';
import { handoffStateAt, handoffTerms } from './core/handoff-view.js';
import type { OpenedCapsule } from './core/sealed-payload.js';
import { type ImportFacts, signStatement } from './core/statements.js';
import type { ExecutionService } from './execution-service.js';
import { importUnit } from './imported-instance.js';
import { OPEN_CAPSULE } from './jobs.js';
import { keysOf, refuseFor, type Serve, unwrapped } from './operation.js';
import type { ImportRow } from './rows.js';

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

/** A little more than nonce and tag add to the largest payload. */
export const SEALED_BYTES_MAX = PAYLOAD_BYTES_MAX + 64;

/**
 * The keys that may open a capsule, and its sealed bytes; undefined when they have to be read from
 * storage.
 *
 * @throws EngineError 400, 413
 */
export function admitted(
  { capsule, payload_base64, payload_key_base64 }: ImportBody,
  { opening }: Keyring,
): { readonly keys: readonly PayloadKey[]; readonly sealed: Buffer | undefined } {
  const transferKey = transferKeyIn(payload_key_base64);
  const keys = transferKey === undefined ? opening : [transferKey];
  const { bytes } = capsule.manifest.payload_artifact;
  const text = payload_base64 ?? undefined;
  // Checked before the text is decoded.
  if (bytes > SEALED_BYTES_MAX || (text !== undefined && text.length > base64Length(bytes))) {
    throw tooLarge('the sealed payload is larger than it may be');
  }
  const sealed = text === undefined ? undefined : decodeBase64(text);
  if (text !== undefined && sealed === undefined) throw invalid('payload_base64 must be base64');
  return { keys, sealed };
}

/** The import of the capsule to this destination; there is at most one. */
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
