/**
 * The provenance of an execution: a hash chain of entries. The hash covers execution, epoch, kind,
 * summary, evidence and predecessor, but not id, tenant and time.
 */

import type { KeyObject } from 'node:crypto';
import type { ProvenanceEntry, ProvenanceVerdict } from '../../../schema/continuity.js';
import type { ProvenanceKind } from '../../../schema/continuity-words.js';
import { sha256Hex } from '../../../src/core/sealing/canonical-json.js';
import { isSignedBy, parsePublicKey, signText } from '../../../src/core/sealing/ed25519.js';
import type { SigningKey, TrustedKeys } from '../../../src/core/sealing/keys.js';

export const SUMMARY_LENGTH_MAX = 499;

/** Without the fields that the chain and the signing key add. */
export interface ProvenanceFacts
  extends Omit<
    ProvenanceEntry,
    'kind' | 'previous_sha256' | 'entry_sha256' | 'signing_key_id' | 'signature'
  > {
  readonly kind: ProvenanceKind;
}

export function nextProvenanceEntry(
  previous: Pick<ProvenanceEntry, 'entry_sha256'> | null,
  facts: ProvenanceFacts,
  signer: SigningKey | undefined,
): ProvenanceEntry {
  if (facts.redacted_summary !== undefined && facts.redacted_summary.length > SUMMARY_LENGTH_MAX) {
    throw new RangeError(`a summary has at most ${SUMMARY_LENGTH_MAX} characters`);
  }
  const previous_sha256 = previous === null ? null : previous.entry_sha256;
  const entry_sha256 = entryHash({ ...facts, previous_sha256 });
  return {
    ...facts,
    previous_sha256,
    entry_sha256,
    signing_key_id: signer === undefined ? null : signer.id,
    signature: signer === undefined ? null : signText(signer.privateKey, entry_sha256),
  };
}

/** Checks up to the first invalid entry. @param expectedHead the last hash, in any case */
export function verifyProvenance(
  chain: readonly ProvenanceEntry[],
  trusted: TrustedKeys,
  expectedHead?: string,
): ProvenanceVerdict {
  const head_sha256 = chain.at(-1)?.entry_sha256 ?? null;
  const keys = new Map<string, KeyObject | undefined>();
  for (const [i, entry] of chain.entries()) {
    const code = faultOf(entry, chain[i - 1], trusted, keys);
    if (code !== undefined) {
      return { valid: false, entries_checked: i + 1, first_invalid_index: i, code, head_sha256 };
    }
  }
  const isExpected = expectedHead === undefined || expectedHead.toLowerCase() === head_sha256;
  return {
    valid: isExpected,
    entries_checked: chain.length,
    first_invalid_index: null,
    code: isExpected ? null : 'PROVENANCE_HEAD_MISMATCH',
    head_sha256,
  };
}

export interface StoredChain {
  readonly text: string;
  /** Public keys by id. */
  readonly trusted: readonly (readonly [id: string, publicKey: string])[];
  readonly expectedHead: string | undefined;
}

export function verifyChain({ text, trusted, expectedHead }: StoredChain): string {
  const chain = JSON.parse(text) as ProvenanceEntry[];
  return JSON.stringify(verifyProvenance(chain, new Map(trusted), expectedHead));
}

/** The code of the fault. @param keys parsed keys; most chains have one */
function faultOf(
  entry: ProvenanceEntry,
  previous: ProvenanceEntry | undefined,
  trusted: TrustedKeys,
  keys: Map<string, KeyObject | undefined>,
): string | undefined {
  const { epoch, entry_sha256, signing_key_id, signature } = entry;
  const isLinked =
    previous === undefined
      ? entry.previous_sha256 === null
      : entry.previous_sha256 === previous.entry_sha256 &&
        entry.continuity_id === previous.continuity_id;
  if (!isLinked) return 'PROVENANCE_LINK_MISMATCH';
  const isHashable = Number.isSafeInteger(epoch) && epoch >= 0;
  if (!isHashable || entryHash(entry) !== entry_sha256) return 'PROVENANCE_HASH_MISMATCH';
  if (signing_key_id === null && signature === null) return undefined;
  if (signing_key_id === null || signature === null) return 'PROVENANCE_SIGNATURE_INCOMPLETE';
  const text = trusted.get(signing_key_id);
  if (text === undefined) return 'PROVENANCE_SIGNING_KEY_UNTRUSTED';
  if (!keys.has(text)) keys.set(text, parsePublicKey(text));
  const key = keys.get(text);
  if (key === undefined) return 'PROVENANCE_PUBLIC_KEY_INVALID';
  return isSignedBy(key, entry_sha256, signature) ? undefined : 'PROVENANCE_SIGNATURE_INVALID';
}

const LABEL = 'engine-provenance-v2\0';

type HashedFacts = Pick<
  ProvenanceEntry,
  'continuity_id' | 'epoch' | 'kind' | 'redacted_summary' | 'payload_sha256' | 'previous_sha256'
>;

/** Unambiguous: every text has its length, and the predecessor a presence byte. */
function entryHash(entry: HashedFacts): string {
  const { previous_sha256 } = entry;
  return sha256Hex(
    Buffer.concat([
      Buffer.from(LABEL),
      Buffer.from(entry.continuity_id.replaceAll('-', ''), 'hex'),
      eightBytes(entry.epoch),
      framed(entry.kind),
      framed(entry.redacted_summary ?? ''),
      framed(entry.payload_sha256),
      Buffer.from([previous_sha256 === null ? 0 : 1]),
      ...(previous_sha256 === null ? [] : [framed(previous_sha256)]),
    ]),
  );
}

function framed(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([eightBytes(bytes.length), bytes]);
}

function eightBytes(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}
