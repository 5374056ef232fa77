/**
 * Capsules and their JSON: canonical, redacted, transformed, and refused with any changed bit.
 *
 * Cost: 3 s, since it opens a capsule with each changed bit and searches long texts for secrets.
 */

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type CapsuleFacts,
  createCapsule,
  decodePayload,
  encodePayload,
  type ImportExpectation,
  isManifestSigned,
  manifestFault,
  type OutputText,
  openCapsule,
  rollbackCapsuleOf,
  sealCapsule,
  sequenceFault,
  signManifest,
  trustOf,
} from '../../actors/continuity/core/capsule.js';
import type { Transform } from '../../actors/continuity/core/transforms.js';
import { applyTransforms, PATH_BYTES_MAX } from '../../actors/continuity/core/transforms.js';
import { admitted, SEALED_BYTES_MAX } from '../../actors/continuity/imports.js';
import { refuseFor, unwrapped } from '../../actors/continuity/operation.js';
import { openCapsule as openSealed } from '../../actors/continuity/sealed-capsules.js';
import type { CapsulePayload } from '../../schema/capsule.js';
import { REDACTED } from '../../schema/common.js';
import type { Capsule } from '../../schema/handoff.js';
import { createValidators } from '../../schema/validators.js';
import { conflict, EngineError } from '../../src/base/errors.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { parseJson } from '../../src/base/json-guard.js';
import { redacted, redactedStateDiff } from '../../src/core/redaction.js';
import {
  canonicalJson,
  canonicalSha256,
  sha256Hex,
} from '../../src/core/sealing/canonical-json.js';
import { createKeyring, parseTransferKey } from '../../src/core/sealing/keys.js';
import { type SealContext, seal, unseal } from '../../src/core/sealing/sealing.js';
import { sealTask, KEYRING as TASK_KEYS } from '../helpers/capsule-tasks.js';
import { takenCapsule, takenTransforms } from '../helpers/continuity-bodies.js';
import { id, NOW } from '../helpers/continuity-facts.js';
import { check } from '../helpers/properties.js';

const key = fc.oneof(
  fc.constantFrom('a', 'b', '__proto__', 'constructor', 'toJSON', '1', '', '\uffff', '😀', 'é'),
  fc.string({ unit: 'binary', maxLength: 4 }),
);
const json = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom(null, true, false),
    fc.double({ noNaN: true, noDefaultInfinity: true }).filter((number) => !Object.is(number, -0)),
    fc.string({ unit: 'binary' }),
    fc.array(tie('value'), { maxLength: 5 }),
    fc.array(fc.tuple(key, tie('value')), { maxLength: 5 }).map(Object.fromEntries),
  ),
})).value;

/** The same value with the members of every object the other way round. */
function reversed(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(reversed);
  const members = Object.entries(value).reverse();
  return Object.fromEntries(members.map(([name, inner]) => [name, reversed(inner)]));
}

test('the canonical text parses to the value, and is the same for any order of keys', (t) => {
  check(t, 500, json, (value) => {
    const text = canonicalJson(value);
    assert.deepEqual(JSON.parse(text), value);
    assert.equal(canonicalJson(reversed(value)), text);
    assert.equal(canonicalJson(JSON.parse(text)), text);
  });
});

test('keys stand in the order of code points at every level, not in that of UTF-16 units', () => {
  const value = { '😀': 1, '\uffff': 2, b: { z: [{ y: 1, x: 2 }], a: null }, B: '', é: 3 };
  const seen = canonicalJson(value);
  assert.equal(seen, '{"B":"","b":{"a":null,"z":[{"x":2,"y":1}]},"é":3,"\uffff":2,"😀":1}');
});

test('what JSON cannot say is refused, and so is what nests too deeply', () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, undefined, 1n, () => 1]) {
    assert.throws(() => canonicalJson([value]), TypeError);
  }
  let deep: unknown = 1;
  for (let i = 0; i < 512; i += 1) deep = [deep];
  assert.equal(canonicalJson(deep).length, 1_025);
  assert.throws(() => canonicalJson([deep]), RangeError);
  let chain: unknown = 1;
  for (let i = 0; i < 513; i += 1) chain = { n: chain };
  assert.throws(() => canonicalJson(chain), RangeError);
});

test('hashes are SHA-256 of the UTF-8 text in lower-case digits', () => {
  assert.equal(sha256Hex(''), 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  assert.equal(sha256Hex('é'), sha256Hex(Buffer.from('c3a9', 'hex')));
  assert.equal(canonicalSha256({ b: 1, a: 2 }), sha256Hex('{"a":2,"b":1}'));
});

test('changed paths are listed with both sides, null where there is nothing', () => {
  const before = { same: 1, a: { b: 1, gone: [1] }, list: [1, 2] };
  const after = { same: 1, a: { b: 2, new: { c: 1 } }, list: [1, 3] };
  assert.deepEqual(redactedStateDiff(before, after), [
    { path: 'a.b', before: 1, after: 2 },
    { path: 'a.gone', before: [1], after: null },
    { path: 'a.new', before: null, after: { c: 1 } },
    { path: 'list', before: [1, 2], after: [1, 3] },
  ]);
});

test('what stands under a sensitive name is hidden on both sides, whatever it is', () => {
  const sensitive = `password Passwd client_secret apiKey x-api-key access.token Authorization
    credentials private_key Set-Cookie`;
  for (const name of sensitive.split(/\s+/)) {
    for (const value of ['x', 1, true, ['x'], { user: 'x' }]) {
      assert.deepEqual(redactedStateDiff({ [name]: null }, { [name]: value }), [
        { path: name, before: null, after: REDACTED },
      ]);
    }
    assert.deepEqual(redactedStateDiff({ a: { [name]: 'old' } }, { a: { [name]: 'new' } }), []);
  }
});

test('what has the shape of a secret is hidden under any name', () => {
  for (const text of [
    'Bearer abcdef123456',
    'basic dXNlcjpwYXNz',
    `sk_${'0123456789abcdef'.repeat(4)}`,
    'sk-proj-abcdefghijklmnop',
    `ghp_${'a1'.repeat(18)}`,
    'xoxb-123456789012-abcdef',
    'AKIAIOSFODNN7EXAMPLE',
    'see eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl',
    '-----BEGIN RSA PRIVATE KEY-----\nMIIE',
    'postgres://user:hunter2@db.internal:5432/x',
  ]) {
    assert.deepEqual(redacted({ a: [text] }), { a: [REDACTED] }, text);
  }
});

test('ordinary values are shown', () => {
  const value = {
    name: 'Ada',
    url: 'https://example.org:8080/path?q=a:b@c',
    note: 'the bearer of this letter',
    id: '0198c0de-0000-7000-8000-000000000001',
    hash: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    risk_score: 3,
    desk: 'sk_1',
  };
  assert.deepEqual(redacted(value), value);
});

test('deeper than 32 levels values are compared as a whole', () => {
  const nest = (levels: number, inner: JsonValue): JsonValue =>
    levels === 0 ? inner : { n: nest(levels - 1, inner) };
  assert.deepEqual(redactedStateDiff(nest(33, { x: 1 }), nest(33, { x: 2 })), [
    { path: Array(32).fill('n').join('.'), before: { n: { x: 1 } }, after: { n: { x: 2 } } },
  ]);
  assert.equal(JSON.stringify(redacted(nest(600, 'x'))).includes('"x"'), false);
  let list: JsonValue = 'x';
  for (let i = 0; i < 600; i += 1) list = [list];
  assert.equal(JSON.stringify(redacted(list)).includes('"x"'), false);
});

test('a value does not differ from itself, and a secret is nowhere in a difference', (t) => {
  const json = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<JsonValue>;
  check(t, 300, fc.tuple(json, json), ([a, b]) => {
    assert.deepEqual(redactedStateDiff(a, a), []);
    const secret = 'Bearer 0123456789';
    const text = JSON.stringify(redactedStateDiff({ a, secret }, { b, x: [secret], inner: { a } }));
    assert.ok(!text.includes('0123456789'));
  });
});

test('a long text of false beginnings is searched in no time that grows with its square', () => {
  // A quadratic search of these would take minutes.
  for (const piece of ['eyJ', 'eyJaaaaaaaa.', '://a:', 'sk-', 'bearer ', '-----BEGIN ']) {
    assert.ok(typeof redacted(piece.repeat(200_000)) === 'string');
  }
});

const copy = (from_path: string, to_path: string) => ({ transform: 'copy', from_path, to_path });
const move = (from_path: string, to_path: string) => ({ transform: 'move', from_path, to_path });
const drop = (from_path: string) => ({ transform: 'drop', from_path });

function transformsOf(...transforms: JsonValue[]): readonly Transform[] {
  const result = takenTransforms(transforms);
  assert.ok(result.ok, result.ok ? '' : result.message);
  return result.value;
}

/** The message of a refusal, whether at the reading or at the applying. */
function refusal(transforms: JsonValue, data: JsonValue = {}): string {
  const result = takenTransforms(transforms);
  if (!result.ok) return result.message;
  const applied = applyTransforms(data, result.value);
  assert.ok(!applied.ok);
  return applied.message;
}

function apply(data: JsonValue, ...transforms: JsonValue[]): JsonValue {
  const before = structuredClone(data);
  const result = applyTransforms(data, transformsOf(...transforms));
  assert.ok(result.ok, result.ok ? '' : result.message);
  assert.deepEqual(data, before);
  return result.value;
}

test('copy keeps the source field, move removes it, and drop removes only the field', () => {
  const data = { a: { x: 1, y: 2 }, b: 3 };
  assert.deepEqual(apply(data, copy('a.x', 'c')), { ...data, c: 1 });
  assert.deepEqual(apply(data, move('a.x', 'c')), { a: { y: 2 }, b: 3, c: 1 });
  assert.deepEqual(apply(data, drop('a.x')), { a: { y: 2 }, b: 3 });
});

test('each transform works on the result of the one before it, and makes what parents it needs', () => {
  const data = { a: 1 };
  const deep = apply({ a: 1, b: { c: 2 } }, copy('a', 'b.c'), copy('a', 'x.y.z'));
  assert.deepEqual(deep, { a: 1, b: { c: 1 }, x: { y: { z: 1 } } });
  assert.deepEqual(apply({ a: { x: 1 } }, copy('a', 'b'), drop('b.x')), { a: { x: 1 }, b: {} });
  assert.deepEqual(apply(data, move('a', 'b'), copy('b', 'c.d'), drop('b')), { c: { d: 1 } });
  assert.match(refusal([move('a', 'b'), drop('a')], data), /^transforms\[1\]\.from_path /);
});

test('keys that name members of every object are ordinary keys', () => {
  const data = JSON.parse('{"__proto__":{"constructor":1},"a":2}') as JsonValue;
  const seen = JSON.stringify(apply(data, copy('__proto__.constructor', 'b.__proto__.polluted')));
  assert.equal(seen, '{"__proto__":{"constructor":1},"a":2,"b":{"__proto__":{"polluted":1}}}');
  assert.equal(({} as Record<string, unknown>).polluted, undefined);
  for (const inherited of ['constructor', 'constructor.name', '__proto__', 'a.length']) {
    assert.match(refusal([drop(inherited)], { a: 'text' }), /^transforms\[0\]\.from_path /);
  }
});

test('a source that does not exist is refused, and so is a way through something else', () => {
  const data = { list: [{ x: 1 }], text: 'x', nothing: null };
  assert.match(refusal([copy('nowhere', 'b')], data), /^transforms\[0\]\.from_path does not exist/);
  for (const path of ['list.0', 'list.0.x', 'text.0', 'nothing.x']) {
    assert.match(refusal([copy(path, 'b')], data), /^transforms\[0\]\.from_path leads through/);
    assert.match(refusal([copy('text', path)], data), /^transforms\[0\]\.to_path leads through/);
  }
  assert.match(refusal([drop('a')], [1]), /^transforms\[0\]\.from_path leads through/);
});

test('at most 128 transforms', () => {
  const many = Array.from({ length: 129 }, (_, i) => copy('a', `b${i}`));
  assert.equal(refusal(many), 'transforms must have at most 128 items');
  assert.equal(transformsOf(...many.slice(1)).length, 128);
});

test('only version 1 and the three operations are known', () => {
  assert.equal(refusal([{ ...drop('a'), version: 2 }]), 'transforms[0].version must be 1');
  assert.deepEqual(transformsOf({ ...drop('a'), version: 1 }), transformsOf(drop('a')));
  assert.match(refusal([drop('a'), { transform: 'rename', from_path: 'a' }]), /^transforms\[1\]\./);
  assert.equal(refusal([{ from_path: 'a' }]), 'transforms[0].transform is required');
  assert.equal(refusal([[]]), 'transforms[0] must be an object');
  assert.equal(refusal({}), 'transforms must be an array');
});

test('paths have 1 to 1,024 bytes in at most 32 segments of 1 to 128 bytes', () => {
  const wide = Array.from({ length: 8 }, () => 'é'.repeat(63)).join('.');
  assert.ok(Buffer.byteLength(wide) <= PATH_BYTES_MAX);
  const longest = [...Array<string>(7).fill('a'.repeat(128)), 'b'.repeat(121)].join('.');
  assert.equal(longest.length, PATH_BYTES_MAX);
  for (const path of ['a', 'a'.repeat(128), wide, longest, Array(32).fill('a').join('.')]) {
    assert.equal(transformsOf(drop(path)).length, 1, path);
  }
  const wrong = ['', '.', 'a.', '.a', 'a..b', 'é'.repeat(65), Array(33).fill('a').join('.')];
  for (const path of [...wrong, `${longest}b`]) {
    assert.match(refusal([drop(path)]), /^transforms\[0\]\.from_path must /, path);
    assert.match(refusal([copy('a', path)]), /^transforms\[0\]\.to_path must /, path);
  }
});

test('a copy needs a destination of its own, a drop has none', () => {
  const seen = refusal([{ transform: 'copy', from_path: 'a' }]);
  assert.equal(seen, 'transforms[0].to_path is required');
  const found = refusal([copy('a', 'c'), drop('a'), move('b', 'c')]);
  assert.equal(found, 'transforms[2].to_path is also the destination of transforms[0]');
  const shown = refusal([{ ...drop('a'), to_path: 'b' }]);
  assert.equal(shown, 'transforms[0].to_path must be empty for a drop');
  assert.deepEqual(transformsOf({ ...drop('a'), to_path: '' }), transformsOf(drop('a')));
});

test('copies end at a bound, which counts all of the data that they are added to', () => {
  const data = { a: 'x'.repeat(9 * 1_024 * 1_024) };
  assert.match(refusal([copy('a', 'b')], data), /^transforms\[0\] would make more /);
  assert.deepEqual(apply(data, move('a', 'b')), { b: data.a });
  const doubling = Array.from({ length: 128 }, (_, i) => copy('a', `a.b${i}`));
  const seen = refusal(doubling, { a: { text: 'x'.repeat(1_000) } });
  assert.match(seen, /^transforms\[\d+\] would make more /);
});

test('a result that nests too deeply to be stored is refused', () => {
  let deep: JsonValue = 1;
  for (let i = 0; i < 230; i += 1) deep = { n: deep };
  const to = Array(30).fill('x').join('.');
  assert.match(refusal([copy('deep', to)], { deep }), /nest deeper than 256/);
});

const DESTINATION = id(4);
const KEYRING = createKeyring(Buffer.alloc(32, 1));
const { checkPayload } = createValidators();
const NONCE = Buffer.alloc(12, 9);
const DEFINITION = { name: 'order', version: 3, blocks: [{ id: 'a', type: 'step' }] };
const REQUIREMENTS = { handlers: ['ship'] };

const { facts: ANY_FACTS, frame } = sealTask([]);
const created_at = '2026-01-01T11:00:00.000Z';
const PAYLOAD: CapsulePayload = {
  ...frame,
  instance: {
    ...frame.instance,
    sequence_id: id(6),
    metadata: { owner: 'ada', empty: [] },
    context: { data: { total: 3, tags: [] } },
  },
  checkpoint: {
    id: id(7),
    instance_id: id(3),
    checkpoint_data: { safe_boundary: 'a', context_snapshot: { total: 3 } },
    created_at,
  },
  outputs: [{ block_id: 'a', iteration: '', attempt: 0, try: 0, output: { ok: true }, created_at }],
  effect_ids: [id(8)],
};

const FACTS: CapsuleFacts = {
  ...ANY_FACTS,
  ...{ capsule_id: id(1), continuity_id: id(2), source_instance_id: id(3), epoch: 2 },
  ...{ tenant_id: 'acme', source_runtime_id: id(5), allowed_destination_runtime_id: DESTINATION },
  ...{ sequence_version: 3, sequence_definition: DEFINITION, current_step: 'a' },
  ...{ requirements: REQUIREMENTS, issued_at: '2026-01-01T12:00:00.000Z' },
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
  const { capsule, payload_base64 } = result.value;
  return { capsule, sealed: Buffer.from(payload_base64, 'base64') };
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
  const opened = unwrapped(openCapsule(capsule, sealed, keys, checkPayload), conflict);
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

test('the manifest says what was sealed', () => {
  assert.deepEqual(capsule.manifest, {
    schema: { major: 1, minor: 0 },
    ...{ capsule_id: id(1), continuity_id: id(2), source_instance_id: id(3), epoch: 2 },
    ...{ tenant_id: 'acme', source_runtime_id: id(5), allowed_destination_runtime_id: DESTINATION },
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

test('no flipped bit of the signature, the public key or the payload is taken', (t) => {
  check(t, 200, fc.tuple(fc.constantFrom('signature', 'public_key'), fc.nat()), ([field, n]) => {
    const name = field as 'signature' | 'public_key';
    const bytes = Buffer.from(capsule[name], 'base64');
    const changed = flipped(bytes, n % (bytes.length * 8)).toString('base64');
    refused({ capsule: { ...capsule, [name]: changed }, sealed }, 409, /sign/);
  });
  refused({ capsule, sealed: flipped(sealed, 77) }, 409, /hash mismatch/);
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
  refused({ capsule: signManifest(capsule.manifest, other.signing), sealed }, 409, /not trusted/);
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

test('a capsule is for one tenant, destination, epoch, time and requirements', () => {
  const given = made();
  refused({ ...given, expected: { tenant_id: 'else' } }, 409, /tenant/);
  refused({ ...given, expected: { destination_runtime_id: id(9) } }, 409, /destination/);
  refused({ ...given, expected: { expected_epoch: 1 } }, 409, /epoch/);
  const end = Date.parse(FACTS.expires_at);
  refused({ ...given, expected: { now: end } }, 409, /expired/);
  assert.ok(attempt({ ...given, expected: { now: end - 1 } }));
  const requirements_sha256 = canonicalSha256({ handlers: [] });
  refused({ ...given, expected: { requirements_sha256 } }, 409, /requirements/);
  const anywhere = made({ allowed_destination_runtime_id: null });
  assert.ok(attempt({ ...anywhere, expected: { destination_runtime_id: id(9) } }));
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
  refused({ ...made(), transferKey: TRANSFER_KEY }, 409, /decryption failed/);
  const handed = made({}, KEYRING, TRANSFER_KEY);
  assert.match(handed.capsule.manifest.encryption_key_id, /^continuity-transfer-[0-9a-f]{16}$/);
  assert.ok(attempt({ ...handed, transferKey: TRANSFER_KEY }));
  refused({ ...handed, transferKey: Buffer.alloc(32, 6) }, 409, /decryption failed/);
  refused(handed, 409, /decryption failed/);
});

test('what was sealed before a rotation is opened with the former key', () => {
  const rotated = createKeyring(Buffer.alloc(32, 2), Buffer.alloc(32, 1));
  assert.ok(attempt({ ...made(), keyring: rotated }));
  const trusted = new Map([[KEYRING.signing.id, KEYRING.signing.publicKey]]);
  const forgotten = createKeyring(Buffer.alloc(32, 2), undefined, trusted);
  refused({ ...made(), keyring: forgotten }, 409, /decryption failed/);
});

test('with malformed base64 400, with too many bytes 413', () => {
  const transferKey = Buffer.alloc(31);
  refused({ capsule, sealed, transferKey }, 400, / payload_key_base64 must be base64/);
  refused({ capsule, sealed: Buffer.concat([sealed, Buffer.alloc(3)]) }, 413, /larger/);
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
    const parsed = takenCapsule(withLeaf(json, path, { not: 'this' }) as JsonValue);
    const name = path.join('.');
    assert.ok(!parsed.ok && parsed.message.startsWith(`capsule.${name} `), name);
  }
  for (const value of [undefined, null, 'x', [], {}]) assert.ok(!takenCapsule(value).ok);
});

const OPENED_AT = '2026-01-02T00:00:00.000Z';

const outputs = fc.array(
  fc.record({
    block_id: fc.string({ minLength: 1 }),
    iteration: fc.constantFrom('', '0', '3.1'),
    attempt: fc.nat(),
    try: fc.nat(),
    // As every text that reaches a row.
    output: fc.option(fc.json().filter((text) => parseJson(text).ok)),
    output_ref: fc.constantFrom(null, '__error__'),
    output_size: fc.nat(),
    created_at: fc.constantFrom('2026-01-01T00:00:00.000Z', OPENED_AT, '2026-01-03T00:00:00.000Z'),
  }),
  { maxLength: 8 },
);

const parsed = (text: string | null) => (text === null ? null : (JSON.parse(text) as JsonValue));

function sealedAndOpened(task: Parameters<typeof sealCapsule>[0]) {
  const made = sealCapsule(task);
  assert.ok(made.ok);
  const { capsule, payload_base64 } = made.value;
  const sealed = Buffer.from(payload_base64, 'base64');
  return openSealed({ capsule, sealed, keys: TASK_KEYS.opening, now: OPENED_AT });
}

test('outputs come back as rows; none is of later than now', (t) => {
  check(t, 200, outputs, (rows: OutputText[]) => {
    const opened = sealedAndOpened(sealTask(rows));
    assert.ok(opened.ok);
    assert.deepEqual(
      opened.value.outputs.map((text) => JSON.parse(text)),
      rows.map(({ output, created_at, ...row }) => ({
        ...row,
        // JSON has one zero, and the text of a capsule is JSON.
        output: JSON.parse(JSON.stringify(parsed(output))),
        created_at: created_at > OPENED_AT ? OPENED_AT : created_at,
      })),
    );
  });
});

test('outputs that a stranger made up are refused, not stored', () => {
  const [good] = fc.sample(outputs, 20).flat();
  assert.ok(good);
  for (const wrong of [{ block_id: 1 }, { attempt: -1 }, { try: 'x' }, { created_at: 'now' }]) {
    const task = sealTask([{ ...good, ...wrong } as never]);
    const opened = sealedAndOpened({ ...task, nonce: randomBytes(12) });
    assert.ok(!opened.ok && /^outputs\[0\]\./.test(opened.message));
  }
});
