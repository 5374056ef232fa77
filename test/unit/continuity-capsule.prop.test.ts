/** Capsules arrive as they were made or not at all: every changed bit of them is refused. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { admitted, SEALED_BYTES_MAX } from '../../actors/continuity/imports.js';
import { refuseFor, taken } from '../../actors/continuity/operation.js';
import type { CapsulePayload } from '../../schema/capsule.js';
import type { Capsule } from '../../schema/handoff.js';
import { createValidators } from '../../schema/validators.js';
import { canonicalSha256, sha256Hex } from '../../src/core/continuity/canonical-json.js';
import {
  type CapsuleFacts,
  createCapsule,
  isManifestSigned,
  rollbackCapsuleOf,
  signManifest,
} from '../../src/core/continuity/capsule.js';
import {
  type ImportExpectation,
  manifestFault,
  openCapsule,
  sequenceFault,
  trustOf,
} from '../../src/core/continuity/capsule-import.js';
import { decodePayload, encodePayload } from '../../src/core/continuity/capsule-payload.js';
import { createKeyring, parseTransferKey } from '../../src/core/continuity/keys.js';
import { type SealContext, seal, unseal } from '../../src/core/continuity/sealing.js';
import type { JsonObject, JsonValue } from '../../src/core/json.js';
import { conflict, EngineError } from '../../src/errors.js';
import { takenCapsule } from '../helpers/continuity-bodies.js';
import { id, NOW } from '../helpers/continuity-facts.js';
import { check } from '../helpers/properties.js';

const DESTINATION = id(4);
const KEYRING = createKeyring(Buffer.alloc(32, 1));
const { checkPayload } = createValidators();
const NONCE = Buffer.alloc(12, 9);
const DEFINITION = { name: 'order', version: 3, blocks: [{ id: 'a', type: 'step' }] };
const REQUIREMENTS = { handlers: ['ship'] };

const PAYLOAD: CapsulePayload = {
  instance: {
    sequence_id: id(6),
    namespace: 'default',
    priority: 'normal',
    timezone: 'UTC',
    metadata: { owner: 'ada', empty: [] },
    context: { data: { total: 3, tags: [] } },
    budget: null,
    parent_instance_id: null,
  },
  checkpoint: {
    id: id(7),
    instance_id: id(3),
    checkpoint_data: { safe_boundary: 'a', context_snapshot: { total: 3 } },
    created_at: '2026-01-01T11:00:00.000Z',
  },
  outputs: [
    {
      block_id: 'a',
      iteration: '',
      attempt: 0,
      try: 0,
      output: { ok: true },
      created_at: '2026-01-01T11:00:00.000Z',
    },
  ],
  execution_tree: [],
  effect_ids: [id(8)],
  pending_waits: [],
  pending_signals: [],
  artifacts: [],
  stream_cursors: [],
  redacted_audit_context: null,
};

const FACTS: CapsuleFacts = {
  capsule_id: id(1),
  continuity_id: id(2),
  source_instance_id: id(3),
  epoch: 2,
  tenant_id: 'acme',
  source_runtime_id: id(5),
  allowed_destination_runtime_id: DESTINATION,
  sequence_version: 3,
  sequence_definition: DEFINITION,
  current_step: 'a',
  requirements: REQUIREMENTS,
  provenance_head: null,
  issued_at: '2026-01-01T12:00:00.000Z',
  expires_at: '2026-01-01T12:05:00.000Z',
};

const EXPECTED = {
  tenant_id: 'acme',
  destination_runtime_id: DESTINATION,
  expected_epoch: 2,
  now: NOW,
};

const TRANSFER_KEY = Buffer.alloc(32, 5);

function made(facts: Partial<CapsuleFacts> = {}, keyring = KEYRING, transferKey?: Buffer) {
  const transfer = transferKey && parseTransferKey(transferKey.toString('base64'));
  const keys = { signing: keyring.signing, payload: transfer ?? keyring.payload };
  const result = createCapsule({ ...FACTS, ...facts }, PAYLOAD, keys, NONCE);
  assert.ok(result.ok);
  return result.value;
}

/** The capsule that most tests try to get in, and its sealed payload. */
const { capsule, sealed } = made();

interface Attempt {
  readonly capsule: Capsule;
  readonly sealed: Uint8Array;
  readonly expected?: Partial<ImportExpectation & { readonly now: number }>;
  readonly keyring?: typeof KEYRING;
  readonly transferKey?: Buffer;
}

/** All stages, as an import goes through them. @throws EngineError */
function attempt(given: Attempt): CapsulePayload {
  const { capsule, expected, keyring = KEYRING } = given;
  const body = {
    capsule,
    payload_base64: Buffer.from(given.sealed).toString('base64'),
    payload_key_base64: given.transferKey?.toString('base64') ?? null,
  };
  const { keys, sealed = Buffer.alloc(0) } = admitted(body, keyring);
  const { now, ...wanted } = { ...EXPECTED, isTrusted: trustOf(keyring), ...expected };
  refuseFor(manifestFault(capsule, wanted, now));
  const opened = taken(openCapsule(capsule, sealed, keys, checkPayload), conflict);
  refuseFor(sequenceFault(capsule.manifest, DEFINITION));
  return opened;
}

function refused(given: Attempt, status: number, text: RegExp): void {
  assert.throws(() => attempt(given), isRefusal(status, text));
}

const isRefusal = (status: number, text: RegExp) => (error: unknown) => {
  assert.ok(error instanceof EngineError, String(error));
  assert.deepEqual([error.status, text.test(error.message)], [status, true], error.message);
  return true;
};

test('a capsule arrives as it was made', () => {
  assert.deepEqual(attempt({ capsule, sealed }), PAYLOAD);
});

test('a capsule survives the wire', () => {
  const parsed = takenCapsule(JSON.parse(JSON.stringify(capsule)) as JsonValue);
  assert.ok(parsed.ok);
  assert.deepEqual(attempt({ capsule: parsed.value, sealed }), PAYLOAD);
});

test('the manifest says what was sealed', () => {
  assert.deepEqual(capsule.manifest, {
    schema: { major: 1, minor: 0 },
    capsule_id: id(1),
    continuity_id: id(2),
    source_instance_id: id(3),
    epoch: 2,
    tenant_id: 'acme',
    source_runtime_id: id(5),
    allowed_destination_runtime_id: DESTINATION,
    sequence: { id: id(6), version: 3, content_sha256: canonicalSha256(DEFINITION) },
    checkpoint: { block_id: 'a', sha256: canonicalSha256(PAYLOAD.checkpoint) },
    requirements_sha256: canonicalSha256(REQUIREMENTS),
    payload_artifact: { key: `capsules/${id(1)}`, sha256: sha256Hex(sealed), bytes: sealed.length },
    provenance_head: null,
    issued_at: FACTS.issued_at,
    expires_at: FACTS.expires_at,
    signing_key_id: KEYRING.signing.id,
    encryption_key_id: KEYRING.payload.id,
  });
  assert.equal(capsule.manifest_sha256, canonicalSha256(capsule.manifest));
  assert.equal(Buffer.from(capsule.signature, 'base64').length, 64);
  assert.equal(made({ current_step: null }).capsule.manifest.checkpoint.block_id, 'checkpoint');
  const { manifest, ...signed } = capsule;
  const { capsule_id, payload_artifact } = manifest;
  assert.deepEqual(rollbackCapsuleOf(capsule), { capsule_id, payload_artifact, ...signed });
  assert.ok(isManifestSigned(rollbackCapsuleOf(capsule)));
});

test('the payload is canonical JSON without lists that have no entries', () => {
  const encoded = encodePayload(PAYLOAD);
  assert.ok(encoded.ok);
  const parsed = JSON.parse(encoded.value.toString()) as JsonObject;
  assert.deepEqual(Object.keys(parsed), ['checkpoint', 'effect_ids', 'instance', 'outputs']);
  const instance = parsed.instance as JsonObject;
  assert.deepEqual(instance.metadata, { empty: [], owner: 'ada' });
  assert.deepEqual(instance.context, { data: { tags: [], total: 3 } });
});

test('lists over their bound are neither sealed nor taken', () => {
  const over = { ...PAYLOAD, stream_cursors: Array<JsonValue>(1_001).fill(1) };
  assert.ok(encodePayload({ ...PAYLOAD, stream_cursors: over.stream_cursors.slice(1) }).ok);
  const encoded = encodePayload(over);
  assert.ok(!encoded.ok && /^stream_cursors /.test(encoded.message));
  const decoded = decodePayload(Buffer.from(JSON.stringify(over)), checkPayload);
  assert.ok(!decoded.ok && /^stream_cursors /.test(decoded.message));
});

test('a payload that is none is refused by name', () => {
  const wrong: [JsonValue, RegExp][] = [
    [null, /^the payload must be an object/],
    [{}, /^instance is required/],
    [{ ...(PAYLOAD as unknown as JsonObject), checkpoint: {} }, /^checkpoint\.id /],
    [{ ...(PAYLOAD as unknown as JsonObject), outputs: [1] }, /^outputs\[0\] /],
    [{ ...(PAYLOAD as unknown as JsonObject), effect_ids: ['x'] }, /^effect_ids\[0\] /],
  ];
  for (const [value, text] of wrong) {
    const decoded = decodePayload(Buffer.from(JSON.stringify(value)), checkPayload);
    assert.ok(!decoded.ok && text.test(decoded.message), JSON.stringify(value));
  }
  assert.ok(!decodePayload(Buffer.from([0xff]), checkPayload).ok);
  assert.ok(!decodePayload(Buffer.from('{'), checkPayload).ok);
});

const CONTEXT: SealContext = {
  tenant_id: 'acme',
  continuity_id: id(2),
  epoch: 2,
  allowed_destination_runtime_id: DESTINATION,
};
const KEY = Buffer.alloc(32, 3);

test('any bytes can be sealed, and open with the same key for the same destination', (t) => {
  check(t, 100, fc.uint8Array({ maxLength: 300 }), (bytes) => {
    const sealed = seal(bytes, KEY, NONCE, CONTEXT);
    assert.equal(sealed.length, bytes.length + 28);
    assert.deepEqual(sealed.subarray(0, 12), NONCE);
    assert.deepEqual(unseal(sealed, KEY, CONTEXT), Buffer.from(bytes));
  });
});

test('no changed bit and no cut of sealed bytes opens', () => {
  const sealed = seal(Buffer.from('secret'), KEY, NONCE, CONTEXT);
  for (let bit = 0; bit < sealed.length * 8; bit += 1) {
    assert.equal(unseal(flipped(sealed, bit), KEY, CONTEXT), undefined, `bit ${bit}`);
  }
  for (let length = 0; length < sealed.length; length += 1) {
    assert.equal(unseal(sealed.subarray(0, length), KEY, CONTEXT), undefined);
    assert.equal(unseal(sealed.subarray(sealed.length - length), KEY, CONTEXT), undefined);
  }
  for (let bit = 0; bit < KEY.length * 8; bit += 1) {
    assert.equal(unseal(sealed, flipped(KEY, bit), CONTEXT), undefined);
  }
});

test('a seal holds for one tenant, execution, epoch and destination', () => {
  const sealed = seal(Buffer.from('secret'), KEY, NONCE, CONTEXT);
  const others: Partial<SealContext>[] = [
    { tenant_id: 'acm' },
    { continuity_id: id(3) },
    { epoch: 3 },
    { allowed_destination_runtime_id: id(9) },
    { allowed_destination_runtime_id: null },
  ];
  for (const other of others) {
    assert.equal(unseal(sealed, KEY, { ...CONTEXT, ...other }), undefined, JSON.stringify(other));
  }
  const forAny = { ...CONTEXT, allowed_destination_runtime_id: null };
  assert.ok(unseal(seal(Buffer.alloc(0), KEY, NONCE, forAny), KEY, forAny) !== undefined);
  assert.throws(() => seal(KEY, KEY, NONCE, { ...CONTEXT, tenant_id: 'a\0b' }), RangeError);
  assert.throws(() => seal(KEY, KEY, Buffer.alloc(11), CONTEXT), RangeError);
});

function flipped(bytes: Uint8Array, bit: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[bit >> 3]! ^= 1 << (bit & 7);
  return copy;
}

test('any flipped bit of the sealed payload is a hash mismatch', (t) => {
  check(t, 100, fc.nat(sealed.length * 8 - 1), (bit) => {
    refused({ capsule, sealed: flipped(sealed, bit) }, 409, /hash mismatch/);
  });
  refused({ capsule, sealed: sealed.subarray(1) }, 409, /hash mismatch/);
  refused({ capsule, sealed: Buffer.alloc(0) }, 409, /hash mismatch/);
});

test('no flipped bit of the signature or the public key is taken', (t) => {
  check(t, 200, fc.tuple(fc.constantFrom('signature', 'public_key'), fc.nat()), ([field, n]) => {
    const name = field as 'signature' | 'public_key';
    const bytes = Buffer.from(capsule[name], 'base64');
    const changed = flipped(bytes, n % (bytes.length * 8)).toString('base64');
    refused({ capsule: { ...capsule, [name]: changed }, sealed }, 409, /sign/);
  });
  for (const signature of ['', 'x', `${capsule.signature} `, capsule.signature.replace(/=/g, '')]) {
    refused({ capsule: { ...capsule, signature }, sealed }, 409, /signature/);
  }
});

/** Every member of the manifest that holds a value, as paths. */
function leaves(value: unknown, path: readonly string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [[...path]];
  return Object.entries(value).flatMap(([key, inner]) => leaves(inner, [...path, key]));
}

function withLeaf(value: unknown, [key, ...rest]: readonly string[], leaf: unknown): unknown {
  if (key === undefined) return leaf;
  const object = value as Record<string, unknown>;
  return { ...object, [key]: withLeaf(object[key], rest, leaf) };
}

test('no change of the manifest is taken, not even of a member that nobody knows', () => {
  for (const path of [...leaves(capsule.manifest), ['unknown'], ['schema', 'unknown']]) {
    for (const leaf of [null, 1, 'else', '0'.repeat(64)]) {
      const manifest = withLeaf(capsule.manifest, path, leaf) as Capsule['manifest'];
      if (canonicalSha256(manifest) === capsule.manifest_sha256) continue;
      const changed = { ...capsule, manifest };
      assert.throws(() => attempt({ capsule: changed, sealed }), EngineError, path.join('.'));
      const rehashed = { ...changed, manifest_sha256: canonicalSha256(manifest) };
      assert.throws(() => attempt({ capsule: rehashed, sealed }), EngineError, path.join('.'));
    }
  }
});

test('a manifest that another key signed is not believed', () => {
  const other = createKeyring(Buffer.alloc(32, 2));
  const resigned = signManifest(capsule.manifest, other.signing);
  refused({ capsule: resigned, sealed }, 409, /not trusted/);
  // Nor is one that only claims the id of a trusted key.
  const { capsule: foreign } = made({}, other);
  refused({ capsule: foreign, sealed }, 409, /not trusted/);
});

test('a configured key is believed under its own id', () => {
  const other = createKeyring(Buffer.alloc(32, 2));
  const { capsule, sealed } = made({}, other, TRANSFER_KEY);
  const { id: keyId, publicKey } = other.signing;
  const trusting = createKeyring(Buffer.alloc(32, 1), undefined, new Map([[keyId, publicKey]]));
  assert.ok(attempt({ capsule, sealed, keyring: trusting, transferKey: TRANSFER_KEY }));
  const misnamed = createKeyring(Buffer.alloc(32, 1), undefined, new Map([['else', publicKey]]));
  refused({ capsule, sealed, keyring: misnamed, transferKey: TRANSFER_KEY }, 409, /not trusted/);
});

test('a capsule is for one tenant, destination, epoch and time', () => {
  const given = made();
  refused({ ...given, expected: { tenant_id: 'else' } }, 409, /tenant/);
  refused({ ...given, expected: { destination_runtime_id: id(9) } }, 409, /destination/);
  refused({ ...given, expected: { expected_epoch: 1 } }, 409, /epoch/);
  const end = Date.parse(FACTS.expires_at);
  refused({ ...given, expected: { now: end } }, 409, /expired/);
  assert.ok(attempt({ ...given, expected: { now: end - 1 } }));
  const anywhere = made({ allowed_destination_runtime_id: null });
  assert.ok(attempt({ ...anywhere, expected: { destination_runtime_id: id(9) } }));
});

test('a capsule for other requirements is refused', () => {
  const given = made();
  const requirements_sha256 = canonicalSha256({ handlers: [] });
  refused({ ...given, expected: { requirements_sha256 } }, 409, /requirements/);
  const same = { requirements_sha256: canonicalSha256(REQUIREMENTS) };
  assert.ok(attempt({ ...given, expected: same }));
});

test('only the schema of this reader is read', () => {
  for (const schema of [
    { major: 2, minor: 0 },
    { major: 1, minor: 1 },
    { major: 0, minor: 0 },
  ]) {
    const other = signManifest({ ...capsule.manifest, schema }, KEYRING.signing);
    refused({ capsule: other, sealed }, 409, /schema/);
  }
});

test('the wrong key does not open a capsule', () => {
  const own = made();
  const given = { ...own, transferKey: TRANSFER_KEY };
  refused(given, 409, /decryption failed/);
  const handed = made({}, KEYRING, TRANSFER_KEY);
  assert.match(handed.capsule.manifest.encryption_key_id, /^continuity-transfer-[0-9a-f]{16}$/);
  assert.ok(attempt({ ...handed, transferKey: TRANSFER_KEY }));
  refused({ ...handed, transferKey: Buffer.alloc(32, 6) }, 409, /decryption failed/);
  refused(handed, 409, /decryption failed/);
});

test('what was sealed before a rotation is opened with the former key', () => {
  const rotated = createKeyring(Buffer.alloc(32, 2), Buffer.alloc(32, 1));
  assert.ok(attempt({ ...made(), keyring: rotated }));
  const forgotten = createKeyring(
    Buffer.alloc(32, 2),
    undefined,
    new Map([[KEYRING.signing.id, KEYRING.signing.publicKey]]),
  );
  refused({ ...made(), keyring: forgotten }, 409, /decryption failed/);
});

test('with malformed base64 400, with too many bytes 413', () => {
  refused(
    { capsule, sealed, transferKey: Buffer.alloc(31) },
    400,
    / payload_key_base64 must be base64/,
  );
  const longer = Buffer.concat([sealed, Buffer.alloc(3)]);
  refused({ capsule, sealed: longer }, 413, /larger/);
  const text = sealed.toString('base64');
  for (const payload_base64 of [`${text.slice(0, -4)}?===`, text.slice(1), `${text.slice(1)} `]) {
    const malformed = isRefusal(400, / payload_base64 must be base64$/);
    assert.throws(() => admitted({ capsule, payload_base64 }, KEYRING), malformed);
  }
  const payload_artifact = { ...capsule.manifest.payload_artifact, bytes: SEALED_BYTES_MAX + 1 };
  const huge = { ...capsule, manifest: { ...capsule.manifest, payload_artifact } };
  assert.throws(() => admitted({ capsule: huge }, KEYRING), isRefusal(413, /larger/));
  payload_artifact.bytes = SEALED_BYTES_MAX;
  assert.ok(admitted({ capsule: huge, payload_base64: null }, KEYRING));
  assert.equal(SEALED_BYTES_MAX, 64 * 1_024 * 1_024 + 64);
});

test('without bytes in the body they are to be read from storage', () => {
  const { keys, ...body } = admitted({ capsule }, KEYRING);
  assert.equal(body.sealed, undefined);
  assert.ok(openCapsule(capsule, sealed, keys, checkPayload).ok);
});

test('a payload that is not the one of the manifest is refused though it opens', () => {
  const { manifest } = capsule;
  const sign = (changed: Partial<Capsule['manifest']>) => ({
    capsule: signManifest({ ...manifest, ...changed }, KEYRING.signing),
    sealed,
  });
  refused(sign({ sequence: { ...manifest.sequence, id: id(9) } }), 409, /another sequence/);
  refused(sign({ source_instance_id: id(9) }), 409, /another instance/);
  const checkpoint = { ...manifest.checkpoint, sha256: '0'.repeat(64) };
  refused(sign({ checkpoint }), 409, /another hash/);
  const sequence = { ...manifest.sequence, content_sha256: '0'.repeat(64) };
  refused(sign({ sequence }), 409, /stored sequence/);
  assert.match(sequenceFault(manifest, undefined) ?? '', /not stored here/);
});

test('a body that is no capsule is refused by name', () => {
  const json = JSON.parse(JSON.stringify(capsule)) as JsonObject;
  for (const path of leaves(capsule)) {
    const value = withLeaf(json, path, { not: 'this' }) as JsonValue;
    const parsed = takenCapsule(value);
    assert.ok(
      !parsed.ok && parsed.message.startsWith(`capsule.${path.join('.')} `),
      path.join('.'),
    );
  }
  for (const value of [undefined, null, 'x', [], {}]) assert.ok(!takenCapsule(value).ok);
});
