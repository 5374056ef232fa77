/**
 * The import of a capsule, and what its instance still needs before it may run where its
 * source is a server with a database of its own: the claim, for which the source has to grant it.
 */

import type { Capsule, CapsuleImported } from '../../schema/handoff.js';
import { canonicalSha256 } from '../../src/core/continuity/canonical-json.js';
import {
  admitImport,
  checkManifest,
  checkSequence,
  type ImportBody,
  type Imported,
  type ImportRefusal,
  type SignerTrust,
  trustOf,
} from '../../src/core/continuity/capsule-import.js';
import { handoffStateAt, handoffTerms } from '../../src/core/continuity/handoff-view.js';
import type { OpenedCapsule } from '../../src/core/continuity/sealed-payload.js';
import { signStatement } from '../../src/core/continuity/statements.js';
import type { JsonValue } from '../../src/core/json.js';
import { isoTime } from '../../src/core/time.js';
import { conflict, type EngineError, invalid, tooLarge, unavailable } from '../../src/errors.js';
import { workOn } from './capsule-sealing.js';
import type { ExecutionService, OperationReply } from './execution-service.js';
import { importUnit } from './imported-instance.js';
import { type Asked, type ExecutionOperations, keysOf } from './operation.js';
import type { ImportRow } from './rows.js';

export const IMPORT_OPERATIONS = {
  'capsules.import': {
    ledBy: (body) => body.capsule.manifest.continuity_id,
    serve: importCapsule,
  },
} satisfies Partial<ExecutionOperations>;

/** What a capsule is taken as. */
export interface Expected {
  readonly tenant: string;
  readonly destination: string;
  readonly epoch: number;
  readonly isTrusted: SignerTrust;
  readonly requirementsSha256?: string | undefined;
}

async function importCapsule(
  service: ExecutionService,
  { tenant, body }: Asked<'capsules.import'>,
): Promise<OperationReply> {
  const keyring = keysOf(service);
  const { capsule } = body;
  const { manifest } = capsule;
  const handoff = (await service.rows.handoffs(manifest.continuity_id)).find(
    ({ capsule_id }) => capsule_id === manifest.capsule_id,
  );
  const expected: Expected = {
    tenant: tenant === '' ? manifest.tenant_id : tenant,
    destination: body.destination_runtime_id,
    epoch: body.expected_epoch,
    isTrusted: trustOf(keyring),
    requirementsSha256: handoff && canonicalSha256(handoffTerms(handoff).requirements),
  };
  const opened = await openFor(service, body, expected);
  const known = await importOf(service, capsule, expected.destination);
  const state = handoff && handoffStateAt(handoff, service.now);
  if (known === undefined && state !== undefined && state !== 'exported') {
    throw conflict(`the handoff of the capsule is ${state}`);
  }
  const id = body.destination_instance_id ?? undefined;
  const row = known ?? (await importInstance(service, capsule, opened, expected.destination, id));
  const reply: CapsuleImported = {
    instance_id: row.instance_id,
    state: 'paused',
    import_receipt: signStatement(keyring.signing, {
      kind: 'capsule_imported',
      tenant_id: row.tenant_id,
      capsule_id: row.capsule_id,
      continuity_id: row.continuity_id,
      epoch: row.source_epoch,
      destination_runtime_id: row.destination_runtime_id,
      instance_id: row.instance_id,
    }),
  };
  return { status: 201, body: reply };
}

/** Every check but those on what is stored. Rejects with 400, 409, 413 or 503. */
export async function openFor(
  service: ExecutionService,
  body: ImportBody,
  expected: Expected,
): Promise<OpenedCapsule> {
  const { capsule } = body;
  const { manifest } = capsule;
  const admitted = taken(admitImport(body, service.keyring));
  const { tenant, destination, epoch, isTrusted, requirementsSha256 } = expected;
  const refusal = checkManifest(
    capsule,
    {
      tenant_id: tenant,
      destination_runtime_id: destination,
      expected_epoch: epoch,
      now: service.now,
      ...(requirementsSha256 === undefined ? {} : { requirements_sha256: requirementsSha256 }),
    },
    isTrusted,
  );
  if (refusal !== undefined) throw errorOf(refusal);
  if (manifest.allowed_destination_runtime_id === null) {
    throw conflict('the capsule is for the rollback of a migration');
  }
  const sealed = admitted.sealed ?? (await storedPayload(service, manifest.payload_artifact.key));
  const { keyring, transferKey } = admitted;
  const task = { capsule, sealed, keyring, transferKey, now: isoTime(service.now) };
  const opened = taken(await workOn(service, 'openCapsule', task));
  const sequence = await service.rows.sequenceFacts(manifest.sequence.id);
  const isOwn = sequence?.tenant_id === tenant;
  const stored = isOwn ? (JSON.parse(sequence.definition) as JsonValue) : undefined;
  const fault = checkSequence(manifest, stored);
  if (fault !== undefined) throw errorOf(fault);
  return opened;
}

async function storedPayload(service: ExecutionService, key: string): Promise<Buffer> {
  const artifact = await service.rows.artifact(key);
  if (artifact === undefined) throw conflict('the payload of the capsule is not stored here');
  return artifact.content;
}

/** By which the capsule came to the destination before; the first import is the only one. */
export function importOf(
  service: ExecutionService,
  { manifest }: Capsule,
  destination: string,
): Promise<ImportRow | undefined> {
  return service.rows.capsuleImport(manifest.tenant_id, manifest.capsule_id, destination);
}

/**
 * Inserts the instance, paused and fenced; durable when it resolves. Rejects with 409 when there
 * is one with the id already.
 */
export async function importInstance(
  service: ExecutionService,
  capsule: Capsule,
  opened: OpenedCapsule,
  destination: string,
  chosen: string | undefined,
): Promise<ImportRow> {
  const { manifest } = capsule;
  const instance = chosen?.toLowerCase() ?? service.newIdLike(manifest.continuity_id);
  if ((await service.rows.tenantOf(instance)) !== undefined) {
    throw conflict(`there is an instance ${instance} already, of another origin`);
  }
  const { plans } = service;
  const { deletions } = plans;
  const turn = await importUnit(service, { instance, capsule, opened, destination });
  await service.commit(turn, () => plans.checkUsable(manifest.sequence.id, deletions));
  return {
    tenant_id: manifest.tenant_id,
    capsule_id: manifest.capsule_id,
    destination_runtime_id: destination,
    instance_id: instance,
    continuity_id: manifest.continuity_id,
    source_epoch: manifest.epoch,
  };
}

function taken<T>(imported: Imported<T>): T {
  if (!imported.ok) throw errorOf(imported);
  return imported.value;
}

function errorOf({ status, message }: ImportRefusal): EngineError {
  switch (status) {
    case 400:
      return invalid(message);
    case 409:
      return conflict(message);
    case 413:
      return tooLarge(message);
    case 503:
      return unavailable('ENG_NO_KEYS', message);
  }
}
