/**
 * Signed statements between servers with separate databases. A statement is canonical JSON with a
 * `kind`, signed with the key that also signs capsules.
 */

import type { ImportReceipt } from '../../../schema/handoff.js';
import { isJsonObject, type JsonObject, ownValue } from '../../../src/base/json.js';
import { parseJson } from '../../../src/base/json-guard.js';
import { canonicalJson, sha256Hex } from '../../../src/core/sealing/canonical-json.js';
import { isSignedBy, parsePublicKey, signText } from '../../../src/core/sealing/ed25519.js';
import type { SigningKey } from '../../../src/core/sealing/keys.js';

interface Facts {
  readonly tenant_id: string;
  readonly capsule_id: string;
  readonly continuity_id: string;
  readonly instance_id: string;
}

/** The destination has imported a capsule. */
export interface ImportFacts extends Facts {
  readonly kind: 'capsule_imported';
  readonly epoch: number;
  readonly destination_runtime_id: string;
}

/** The destination owns the execution. */
export interface GrantFacts extends Facts {
  readonly kind: 'ownership_granted';
  /** The first epoch of the destination. */
  readonly epoch: number;
  readonly owner_runtime_id: string;
  readonly handoff_id: string;
  /** Of the accepted server: no other server may claim. */
  readonly importer_public_key: string;
}

export function signStatement(key: SigningKey, facts: ImportFacts | GrantFacts): ImportReceipt {
  const statement = canonicalJson(facts);
  const signature = signText(key.privateKey, digestOf(statement));
  return { statement, public_key: key.publicKey, signature };
}

/** Undefined unless signed by a trusted key, in base64. */
export function openStatement(
  { statement, public_key, signature }: ImportReceipt,
  trusted: Iterable<string>,
): JsonObject | undefined {
  if (![...trusted].includes(public_key)) return undefined;
  const key = parsePublicKey(public_key);
  if (key === undefined || !isSignedBy(key, digestOf(statement), signature)) return undefined;
  const json = parseJson(statement);
  return json.ok && isJsonObject(json.value) ? json.value : undefined;
}

export function states(stated: JsonObject, facts: Partial<ImportFacts | GrantFacts>): boolean {
  return Object.entries(facts).every(([name, fact]) => ownValue(stated, name) === fact);
}

/** Separates statements from other signed texts. */
const LABEL = 'engine-continuity-statement-v1\0';

function digestOf(statement: string): string {
  return sha256Hex(LABEL + statement);
}
