/** The chain of provenance: what it hashes, and that no change of it goes unseen. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ProvenanceEntry } from '../../schema/continuity.js';
import { createKeyring } from '../../src/core/continuity/keys.js';
import {
  nextProvenanceEntry,
  PROVENANCE_KINDS,
  type ProvenanceFacts,
  SUMMARY_LENGTH_MAX,
  verifyProvenance,
} from '../../src/core/continuity/provenance.js';
import { check } from '../helpers/properties.js';

const CONTINUITY = '0198c0de-0000-7000-8000-0000000000aa';
const KEYRING = createKeyring(Buffer.alloc(32, 1));
const OTHER = createKeyring(Buffer.alloc(32, 2));

const facts = (i: number, more: Partial<ProvenanceFacts> = {}): ProvenanceFacts => ({
  id: `0198c0de-0000-7000-8000-00000000000${i}`,
  continuity_id: CONTINUITY,
  tenant_id: 't',
  epoch: i,
  kind: 'execution_created',
  redacted_summary: `entry ${i}`,
  payload_sha256: createHash('sha256').update(`${i}`).digest('hex'),
  created_at: '2026-01-01T00:00:00.000Z',
  ...more,
});

function chainOf(length: number, signer = KEYRING.signing): ProvenanceEntry[] {
  const chain: ProvenanceEntry[] = [];
  for (let i = 0; i < length; i += 1) {
    chain.push(nextProvenanceEntry(chain.at(-1) ?? null, facts(i), signer));
  }
  return chain;
}

const verify = (chain: readonly ProvenanceEntry[], head?: string) =>
  verifyProvenance(chain, KEYRING.trusted, head);

test('the hash is over the framed parts, the predecessor behind its mark', () => {
  const length = (text: string) => {
    const bytes = Buffer.alloc(8);
    bytes.writeUInt32BE(Buffer.byteLength(text), 4);
    return bytes;
  };
  const framed = (text: string) => Buffer.concat([length(text), Buffer.from(text)]);
  const [first, second] = chainOf(2);
  assert.ok(first !== undefined && second !== undefined);
  const common = (entry: ProvenanceEntry) => [
    Buffer.from('engine-provenance-v2\0'),
    Buffer.from('0198c0de0000700080000000000000aa', 'hex'),
    Buffer.from([0, 0, 0, 0, 0, 0, 0, entry.epoch]),
    framed('execution_created'),
    framed(entry.redacted_summary ?? ''),
    framed(entry.payload_sha256),
  ];
  const hash = (parts: Buffer[]) => createHash('sha256').update(Buffer.concat(parts)).digest('hex');
  assert.equal(first.previous_sha256, null);
  assert.equal(first.entry_sha256, hash([...common(first), Buffer.from([0])]));
  assert.equal(second.previous_sha256, first.entry_sha256);
  const link = [Buffer.from([1]), framed(first.entry_sha256)];
  assert.equal(second.entry_sha256, hash([...common(second), ...link]));
});

test('a chain as it was written is valid, with keys and without', () => {
  const chain = chainOf(3);
  const head = chain.at(-1)?.entry_sha256 ?? '';
  const expected = {
    valid: true,
    entries_checked: 3,
    first_invalid_index: null,
    code: null,
    head_sha256: head,
  };
  assert.deepEqual(verify(chain), expected);
  assert.deepEqual(verify(chain, head.toUpperCase()), expected);
  const unsigned = nextProvenanceEntry(chain[2] ?? null, facts(4), undefined);
  assert.deepEqual([unsigned.signing_key_id, unsigned.signature], [null, null]);
  assert.ok(verify([...chain, unsigned]).valid);
});

test('an empty chain is valid and has no head', () => {
  assert.deepEqual(verify([]), {
    valid: true,
    entries_checked: 0,
    first_invalid_index: null,
    code: null,
    head_sha256: null,
  });
});

test('another head than the expected one is told', () => {
  const chain = chainOf(2);
  const result = verify(chain, chain[0]?.entry_sha256);
  const seen = [result.valid, result.code, result.first_invalid_index, result.head_sha256];
  assert.deepEqual(seen, [false, 'PROVENANCE_HEAD_MISMATCH', null, chain[1]?.entry_sha256]);
  assert.equal(verify([], 'a'.repeat(64)).code, 'PROVENANCE_HEAD_MISMATCH');
});

function codeOf(change: Partial<ProvenanceEntry>, at = 1): string | null {
  const chain = chainOf(3).map((entry, i) => (i === at ? { ...entry, ...change } : entry));
  const result = verify(chain);
  assert.equal(result.valid, false);
  assert.equal(result.first_invalid_index, at);
  assert.equal(result.entries_checked, at + 1);
  return result.code;
}

test('each fault has its code', () => {
  assert.equal(codeOf({ previous_sha256: 'a'.repeat(64) }), 'PROVENANCE_LINK_MISMATCH');
  assert.equal(codeOf({ previous_sha256: 'a'.repeat(64) }, 0), 'PROVENANCE_LINK_MISMATCH');
  assert.equal(codeOf({ epoch: 7 }), 'PROVENANCE_HASH_MISMATCH');
  assert.equal(codeOf({ epoch: -1 }), 'PROVENANCE_HASH_MISMATCH');
  assert.equal(codeOf({ signature: null }), 'PROVENANCE_SIGNATURE_INCOMPLETE');
  assert.equal(codeOf({ signing_key_id: null }), 'PROVENANCE_SIGNATURE_INCOMPLETE');
  assert.equal(codeOf({ signing_key_id: 'else' }), 'PROVENANCE_SIGNING_KEY_UNTRUSTED');
  const seen = codeOf({ signature: Buffer.alloc(64).toString('base64') });
  assert.equal(seen, 'PROVENANCE_SIGNATURE_INVALID');
  const badKey = new Map([[KEYRING.signing.id, 'no key']]);
  assert.equal(verifyProvenance(chainOf(1), badKey).code, 'PROVENANCE_PUBLIC_KEY_INVALID');
  const foreign = verifyProvenance(chainOf(1, OTHER.signing), KEYRING.trusted);
  assert.equal(foreign.code, 'PROVENANCE_SIGNING_KEY_UNTRUSTED');
});

const digits = fc.stringMatching(/^[0-9a-f]{64}$/);
/** Another value for one of the fields that the hash or the signature covers. */
const change: fc.Arbitrary<Partial<ProvenanceEntry>> = fc.oneof(
  fc.record({ continuity_id: fc.uuid() }),
  fc.record({ epoch: fc.nat() }),
  fc.record({ kind: fc.constantFrom(...PROVENANCE_KINDS) }),
  fc.record({ redacted_summary: fc.string({ minLength: 1 }) }),
  fc.record({ payload_sha256: digits }),
  fc.record({ previous_sha256: fc.option(digits) }),
  fc.record({ entry_sha256: digits }),
  fc.record({ signing_key_id: fc.option(fc.string()) }),
  fc.record({ signature: fc.option(fc.base64String()) }),
  fc.record({ signature: fc.constant(OTHER.signing.publicKey) }),
);

test('any change of any entry is found', (t) => {
  const chain = chainOf(4);
  check(t, 300, fc.tuple(change, fc.nat(3)), ([changed, at]) => {
    const isChanged = Object.entries(changed).some(
      ([field, value]) => chain[at]?.[field as keyof ProvenanceEntry] !== value,
    );
    const result = verify(
      chain.map((entry, i) => (i === at ? { ...entry, ...changed } : entry)),
      chain.at(-1)?.entry_sha256,
    );
    assert.equal(result.valid, !isChanged);
  });
});

test('entries that are missing, doubled or in another order are found', (t) => {
  const chain = chainOf(4);
  const head = chain.at(-1)?.entry_sha256 ?? '';
  check(t, 200, fc.array(fc.nat(3), { maxLength: 6 }), (order) => {
    const picked = order.flatMap((i) => chain[i] ?? []);
    const isWhole = order.join() === '0,1,2,3';
    assert.equal(verify(picked, head).valid, isWhole);
  });
});

test('bytes that move from one part to the next give another hash', () => {
  const a = nextProvenanceEntry(null, facts(1, { redacted_summary: 'ab' }), undefined);
  const b = nextProvenanceEntry(
    null,
    facts(1, { redacted_summary: 'a', payload_sha256: `b${a.payload_sha256}` }),
    undefined,
  );
  assert.notEqual(a.entry_sha256, b.entry_sha256);
});

test('a summary stays below 500 characters', () => {
  const summary = 'x'.repeat(SUMMARY_LENGTH_MAX + 1);
  const longest = facts(0, { redacted_summary: summary.slice(1) });
  assert.equal(nextProvenanceEntry(null, longest, undefined).redacted_summary?.length, 499);
  assert.throws(
    () => nextProvenanceEntry(null, facts(0, { redacted_summary: summary }), undefined),
    RangeError,
  );
});
