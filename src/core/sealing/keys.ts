/**
 * The keys of continuity. All are derived from one master key by HKDF-SHA-256 with a label each, so none reveals
 * another, and all are the same after every start. Ids are made from public or derived material.
 */

import { hkdfSync } from 'node:crypto';
import { isJsonObject } from '../../base/json.js';
import { parseJson } from '../../base/json-guard.js';
import { type Parsed, parsing, refuse } from '../parsed.js';
import { decodeBase64Exactly } from './base64.js';
import { sha256Hex } from './canonical-json.js';
import { privateKeyOf, publicKeyOf } from './ed25519.js';

export const KEY_BYTES = 32;
export const TRANSFER_KEY_ID_PREFIX = 'continuity-transfer-';
/** Far more keys than an installation ever had. */
export const TRUSTED_KEYS_MAX = 1_000;
const SIGNING_LABEL = 'engine-continuity-signing-v1';
const PAYLOAD_LABEL = 'engine-continuity-payload-v1';
const LINK_LABEL = 'engine-approval-link-v1';
export type SigningKey = Readonly<ReturnType<typeof signingKeyOf>>;
export type PayloadKey = Readonly<ReturnType<typeof payloadKeyOf>>;
export type Keyring = Readonly<ReturnType<typeof createKeyring>>;
/** Public keys by id, in base64 as configured: a text may not be a valid key. */
export type TrustedKeys = ReadonlyMap<string, string>;

/**
 * Reads ENGINE_CONTINUITY_TRUSTED_SIGNING_KEYS_JSON: an object of public keys in base64 by key id. The keys themselves
 * are checked when a signature is verified. Empty means none.
 */
export function parseTrustedKeys(text: string): Parsed<TrustedKeys> {
  return parsing(() => {
    if (text.trim() === '') return new Map();
    const json = parseJson(text);
    if (!json.ok) refuse('the trusted signing keys:', json.problem.message);
    const keys = json.value;
    if (!isJsonObject(keys)) refuse('the trusted signing keys', 'must be a JSON object');
    const entries = Object.entries(keys);
    if (entries.length > TRUSTED_KEYS_MAX) {
      refuse('the trusted signing keys', `must be at most ${TRUSTED_KEYS_MAX}`);
    }
    return new Map(
      entries.map(([id, key]) => {
        if (typeof key !== 'string') refuse(`the trusted signing key ${id}`, 'must be a string');
        return [id, key];
      }),
    );
  });
}

/** @param master 32 bytes @param former the master key before it, during a rotation */
export function createKeyring(
  master: Uint8Array,
  former?: Uint8Array,
  configured: TrustedKeys = new Map(),
) {
  // The current key comes first. Payloads are opened, and links to approvals verified, with both.
  const masters = former === undefined ? [master] : [master, former];
  const own = masters.map(signingKeyOf);
  const opening = masters.map(payloadKeyOf);
  // Own keys come last: a configured text must not take the place of one of them.
  const trusted = new Map([
    ...configured,
    ...own.map(({ id, publicKey }) => [id, publicKey] as const),
  ]);
  const links = masters.map((one) => derive(one, LINK_LABEL));
  return { signing: own[0]!, payload: opening[0]!, opening, links, trusted };
}

/** The form in which threads receive the keys; never logged. */
export interface ContinuityKeys {
  /** 64 hexadecimal digits; undefined: requests that need keys are answered 503. */
  readonly master: string | undefined;
  readonly former: string | undefined;
  /** JSON of ENGINE_CONTINUITY_TRUSTED_SIGNING_KEYS_JSON. */
  readonly trusted: string;
}

/** Undefined without a master key. The texts were checked when the configuration was read. */
export function keyringOf({ master, former, trusted }: ContinuityKeys): Keyring | undefined {
  if (master === undefined) return undefined;
  const configured = parseTrustedKeys(trusted);
  if (!configured.ok) throw new Error(configured.message);
  const formerKey = former === undefined ? undefined : Buffer.from(former, 'hex');
  return createKeyring(Buffer.from(master, 'hex'), formerKey, configured.value);
}

/** Undefined unless the text is base64 of 32 bytes. */
export function parseTransferKey(base64: string): PayloadKey | undefined {
  const key = decodeBase64Exactly(base64, KEY_BYTES);
  return key === undefined ? undefined : { id: TRANSFER_KEY_ID_PREFIX + keyMark(key), key };
}

export function signingKeyId(publicKey: string): string {
  return `continuity-signing-${keyMark(Buffer.from(publicKey, 'base64'))}`;
}

function signingKeyOf(master: Uint8Array) {
  const privateKey = privateKeyOf(derive(master, SIGNING_LABEL));
  const publicKey = publicKeyOf(privateKey);
  return { id: signingKeyId(publicKey), privateKey, publicKey };
}

function payloadKeyOf(master: Uint8Array) {
  const key = derive(master, PAYLOAD_LABEL);
  return { id: `continuity-payload-${keyMark(key)}`, key };
}

function derive(master: Uint8Array, label: string): Buffer {
  if (master.length !== KEY_BYTES) throw new RangeError(`a master key has ${KEY_BYTES} bytes`);
  return Buffer.from(hkdfSync('sha256', master, '', label, KEY_BYTES));
}

const MARK_LABEL = 'engine-continuity-key-id-v1\0';

/** 16 digits that identify a key and reveal nothing about it. */
function keyMark(key: Uint8Array): string {
  return sha256Hex(Buffer.concat([Buffer.from(MARK_LABEL), key])).slice(0, 16);
}
