/**
 * The import of a capsule (05 §12), and what its instance still needs before it may run where its
 * source is a server with a database of its own: the claim, for which the source has to grant it.
 */

import type { CapsuleImported } from '../../schema/handoff.js';
import type { BodyOf } from '../../schema/routes.js';
import { IN_PLACE } from '../../src/capsule-mill.js';
import type { OpenedCapsule } from '../../src/capsule-work.js';
import { signStatement } from '../../src/continuity-statements.js';
import { canonicalSha256 } from '../../src/core/continuity/canonical-json.js';
import { type Capsule, parseCapsule } from '../../src/core/continuity/capsule.js';
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
import type { JsonValue } from '../../src/core/json.js';
import { isoTime } from '../../src/core/time.js';
import { conflict, type EngineError, invalid, tooLarge, unavailable } from '../../src/errors.js';
import { handoffStateAt, handoffTerms } from '../../src/handoff-view.js';
import { birthOf } from './arriving-instance.js';
import type { DeskReply } from './desk.js';
import { type Asked, keysOf, type Office, type Services } from './office.js';
import type { ImportRow } from './rows.js';

export const IMPORT_SERVICES = {
  'capsules.import': {
    ledBy: (body) => body.capsule.manifest.continuity_id,
    serve: importCapsule,
  },
} satisfies Services;

/** What a capsule is taken as. */
export interface Expected {
  readonly tenant: string;
  readonly destination: string;
  readonly epoch: number;
  readonly isTrusted: SignerTrust;
  readonly requirementsSha256?: string | undefined;
}

async function importCapsule(
  office: Office,
  { tenant, body }: Asked<'capsules.import'>,
): Promise<DeskReply> {
  const { desk } = office;
  const keyring = keysOf(office);
  const capsule = capsuleIn(body.capsule);
  const { manifest } = capsule;
  const handoff = (await desk.deps.rows.handoffs(manifest.continuity_id)).find(
    ({ capsule_id }) => capsule_id === manifest.capsule_id,
  );
  const expected: Expected = {
    tenant: tenant === '' ? manifest.tenant_id : tenant,
    destination: body.destination_runtime_id,
    epoch: body.expected_epoch,
    isTrusted: trustOf(keyring),
    requirementsSha256: handoff && canonicalSha256(handoffTerms(handoff).requirements),
  };
  const opened = await openFor(office, { ...body, capsule }, expected);
  const known = await importOf(office, capsule, expected.destination);
  const state = handoff && handoffStateAt(handoff, desk.now);
  if (known === undefined && state !== undefined && state !== 'exported') {
    throw conflict(`the handoff of the capsule is ${state}`);
  }
  const id = body.destination_instance_id ?? undefined;
  const row = known ?? (await bringIn(office, capsule, opened, expected.destination, id));
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

/** @throws EngineError 400 */
export function capsuleIn(body: BodyOf<'capsules.import'>['capsule']): Capsule {
  const parsed = parseCapsule(body as unknown as JsonValue);
  if (!parsed.ok) throw invalid(parsed.message);
  return parsed.value;
}

/** Every check of 05 §12 but those on what is stored. Rejects with 400, 409, 413 or 503. */
export async function openFor(
  office: Office,
  body: ImportBody,
  expected: Expected,
): Promise<OpenedCapsule> {
  const { capsule } = body;
  const { manifest } = capsule;
  const admitted = taken(admitImport(body, office.keyring));
  const { tenant, destination, epoch, isTrusted, requirementsSha256 } = expected;
  const refusal = checkManifest(
    capsule,
    {
      tenant_id: tenant,
      destination_runtime_id: destination,
      expected_epoch: epoch,
      now: office.desk.now,
      ...(requirementsSha256 === undefined ? {} : { requirements_sha256: requirementsSha256 }),
    },
    isTrusted,
  );
  if (refusal !== undefined) throw errorOf(refusal);
  if (manifest.allowed_destination_runtime_id === null) {
    throw conflict('the capsule is for the rollback of a migration');
  }
  const sealed = admitted.sealed ?? (await storedPayload(office, manifest.payload_artifact.key));
  const { keyring, transferKey } = admitted;
  const task = { capsule, sealed, keyring, transferKey, now: isoTime(office.desk.now) };
  const opened = taken(await (office.desk.deps.mill ?? IN_PLACE).open(task));
  const sequence = await office.desk.deps.rows.sequenceFacts(manifest.sequence.id);
  const isOwn = sequence?.tenant_id === tenant;
  const stored = isOwn ? (JSON.parse(sequence.definition) as JsonValue) : undefined;
  const fault = checkSequence(manifest, stored);
  if (fault !== undefined) throw errorOf(fault);
  return opened;
}

async function storedPayload({ desk }: Office, key: string): Promise<Buffer> {
  const artifact = await desk.deps.rows.artifact(key);
  if (artifact === undefined) throw conflict('the payload of the capsule is not stored here');
  return artifact.content;
}

/** By which the capsule came to the destination before; the first import is the only one. */
export function importOf(
  { desk }: Office,
  { manifest }: Capsule,
  destination: string,
): Promise<ImportRow | undefined> {
  return desk.deps.rows.capsuleImport(manifest.tenant_id, manifest.capsule_id, destination);
}

/**
 * Has the instance be born, paused and fenced; durable when it resolves. Rejects with 409 when there
 * is one with the id already.
 */
export async function bringIn(
  { desk, plans }: Office,
  capsule: Capsule,
  opened: OpenedCapsule,
  destination: string,
  chosen: string | undefined,
): Promise<ImportRow> {
  const { manifest } = capsule;
  const instance = chosen?.toLowerCase() ?? desk.deps.newIdLike(manifest.continuity_id);
  if ((await desk.deps.rows.tenantOf(instance)) !== undefined) {
    throw conflict(`there is an instance ${instance} already, of another origin`);
  }
  const { deletions } = plans;
  const turn = await birthOf(desk, plans, { instance, capsule, opened, destination });
  await desk.commit(turn, () => plans.checkUsable(manifest.sequence.id, deletions));
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
