/** Handoffs from their preview to their end, and capsules that a device seals by itself. */

import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto';
import { type CapsuleFacts, createCapsule } from '../../actors/continuity/core/capsule.js';
import type { CapsulePayload } from '../../schema/capsule.js';
import type {
  Capsule,
  CapsuleImported,
  Handoff,
  HandoffAccepted,
  HandoffExported,
} from '../../schema/handoff.js';
import { parseTransferKey, type SigningKey, signingKeyId } from '../../src/core/sealing/keys.js';
import type { Json, Tenant } from './api.js';
import { expectStatus, type Reply } from './client.js';
import { type Continuity, continuityOf } from './continuity.js';

export const IMPORT = '/continuity/capsules/import';

/** A tenant with an execution and a runtime that may take it. */
export interface Passage extends Continuity {
  readonly tenant: Tenant;
  /** The instance, which is also the id of its execution. */
  readonly id: string;
  readonly source: string;
  readonly destination: string;
}

/** @param id an instance; the source is a new runtime, which is registered nowhere */
export async function passageOf(tenant: Tenant, id: string): Promise<Passage> {
  const continuity = continuityOf(tenant);
  const { owner_runtime_id: source } = await continuity.enrol(id);
  const { runtime_id: destination } = await continuity.runtime();
  return { tenant, ...continuity, id, source, destination };
}

/** What an export answered, with the key that its caller made for it. */
export type Bundle = HandoffExported & { readonly key: string | null };

export const newTransferKey = (): string => randomBytes(32).toString('base64');

/** Sealed with a transfer key, which comes with it, unless `body` says otherwise. */
export async function exported(
  from: Continuity,
  handoff: Handoff,
  body: Json = {},
): Promise<Bundle> {
  const asked: Json = { capture_checkpoint: true, payload_key_base64: newTransferKey(), ...body };
  const reply = await from.act<HandoffExported>(handoff.id, 'export', asked);
  return { ...expectStatus(reply, 200), key: asked.payload_key_base64 as string | null };
}

/** The body of an import as the bundle's own destination. */
export function importOf({ capsule, payload_base64, key }: Bundle, more: Json = {}): Json {
  return {
    destination_runtime_id: capsule.manifest.allowed_destination_runtime_id,
    expected_epoch: capsule.manifest.epoch,
    capsule,
    payload_base64,
    payload_key_base64: key,
    ...more,
  };
}

export const importing = (
  tenant: Tenant,
  bundle: Bundle,
  more: Json = {},
): Promise<Reply<CapsuleImported & { error: string }>> =>
  tenant.post(IMPORT, importOf(bundle, more));

export async function imported(
  tenant: Tenant,
  bundle: Bundle,
  more: Json = {},
): Promise<CapsuleImported> {
  return expectStatus(await importing(tenant, bundle, more), 201);
}

/** From the preview to the import of the capsule; not accepted. */
export async function carried(
  from: Passage,
  more: Json = {},
): Promise<{ readonly bundle: Bundle; readonly instance: string }> {
  const bundle = await exported(from, await from.handoff(from.id, from.destination), more);
  return { bundle, instance: (await imported(from.tenant, bundle)).instance_id };
}

/** All of it on one server; resolves with the instance that the execution goes on as. */
export async function handedOver(from: Passage, more: Json = {}): Promise<string> {
  const { bundle, instance } = await carried(from, more);
  await accepted(from, bundle.handoff.id, instance);
  expectStatus(await from.act(bundle.handoff.id, 'resume'), 200);
  return instance;
}

export async function accepted(
  from: Continuity,
  handoff: string,
  instance: string,
  more: Json = {},
): Promise<HandoffAccepted> {
  const body = { destination_instance_id: instance, ...more };
  return expectStatus(await from.act<HandoffAccepted>(handoff, 'accept', body), 200);
}

// ---------------------------------------------------------------- devices

export type Device = { readonly runtime: string; readonly signing: SigningKey };

export function newDevice(): Device {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const { x } = publicKey.export({ format: 'jwk' });
  const raw = Buffer.from(x as string, 'base64url').toString('base64');
  const signing = { id: signingKeyId(raw), privateKey, publicKey: raw };
  return { runtime: randomUUID(), signing };
}

/** What a device seals of the instance that it was handed, as it is now. */
export function deviceCapsule(
  { signing }: Device,
  key: string,
  facts: CapsuleFacts,
  payload: CapsulePayload,
): { readonly capsule: Capsule; readonly payload_base64: string } {
  const transfer = parseTransferKey(key);
  if (transfer === undefined) throw new Error('the transfer key is none');
  const made = createCapsule(facts, payload, { signing, payload: transfer }, randomBytes(12));
  if (!made.ok) throw new Error(made.message);
  return made.value;
}
