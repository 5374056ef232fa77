/** Capsules: what an export seals, what an import makes of it, the way back of a device, and master keys. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe } from 'node:test';
import {
  type CapsuleFacts,
  decodePayload,
  signManifest,
} from '../../actors/continuity/core/capsule.js';
import type { CapsulePayload } from '../../schema/capsule.js';
import type { CapsuleAttached, Handoff } from '../../schema/handoff.js';
import { createValidators } from '../../schema/validators.js';
import { canonicalSha256, sha256Hex } from '../../src/core/sealing/canonical-json.js';
import { createKeyring } from '../../src/core/sealing/keys.js';
import { unseal } from '../../src/core/sealing/sealing.js';
import {
  forEach,
  type Json,
  newHandler,
  SHARED_MASTER_KEY,
  type SharedApi,
  sleep,
  step,
  testsOf,
  useSharedApi,
} from '../helpers/api.js';
import {
  accepted,
  type Bundle,
  carried,
  type Device,
  deviceCapsule,
  exported,
  handedOver,
  imported,
  importing,
  newDevice,
  newTransferKey,
  type Passage,
  passageOf,
} from '../helpers/capsules.js';
import { expectStatus, type Reply } from '../helpers/client.js';
import { column } from '../helpers/columns.js';
import { inject } from '../helpers/edits.js';
import { apply, askApply, askRollback, MIGRATIONS, plan } from '../helpers/migrations.js';
import { passageAtStart, pausedAtStart, startNow } from '../helpers/standing.js';

const { checkPayload } = createValidators();

const api = useSharedApi();
const test = testsOf(api);

/** A tenant whose execution is paused before its first step. */
const world = (blocks?: readonly Json[]) => passageAtStart(api.tenant(), blocks);

function refused(reply: Reply<{ error: string }>, status: number, text = /./): void {
  assert.match(expectStatus(reply, status).error, text);
}

const checkpoint = (from: Passage, checkpoint_data: Json = { safe_boundary: 'a' }) =>
  from.tenant.post(`/instances/${from.id}/checkpoints`, { checkpoint_data });

const sent = async (from: Passage, body: Json = {}) =>
  exported(from, await from.handoff(from.id, from.destination), body);

const tryExport = (from: Passage, { id }: Handoff, body: Json = {}) =>
  from.act<Bundle & { error: string }>(id, 'export', body);

describe('an export', () => {
  test('An exported bundle has a base64 payload, and a key id that begins with continuity-transfer- when a transfer key is used', async () => {
    const from = await world();
    const { capsule, payload_base64, key } = await sent(from);
    const { manifest } = capsule;
    assert.match(manifest.encryption_key_id, /^continuity-transfer-[0-9a-f]{16}$/);
    assert.match(manifest.signing_key_id, /^continuity-signing-[0-9a-f]{16}$/);
    const sealed = Buffer.from(payload_base64, 'base64');
    assert.equal(sealed.toString('base64'), payload_base64);
    const { sha256, bytes } = manifest.payload_artifact;
    assert.deepEqual([sha256Hex(sealed), sealed.length], [sha256, bytes]);
    assert.equal(canonicalSha256(manifest), capsule.manifest_sha256);
    const plain = unseal(sealed, Buffer.from(key ?? '', 'base64'), manifest);
    const payload = decodePayload(plain ?? Buffer.of(), checkPayload);
    assert.ok(payload.ok);
    assert.equal(payload.value.checkpoint.instance_id, from.id);
    assert.deepEqual(manifest.checkpoint.sha256, canonicalSha256(payload.value.checkpoint));

    const plainBundle = await sent(await world(), { payload_key_base64: null });
    assert.match(plainBundle.capsule.manifest.encryption_key_id, /^continuity-payload-/);
  });

  test('needs a checkpoint, a key of 32 bytes, a handoff and its destination, and is nobody else’s', async () => {
    const from = await world();
    const handoff = await from.handoff(from.id, from.destination);
    refused(await tryExport(from, handoff), 409, /checkpoint/);
    refused(await tryExport(from, handoff, { payload_key_base64: 'AAAA' }), 400);
    const other = await world();
    expectStatus(await other.act(handoff.id, 'export'), 404);
    expectStatus(await from.act(randomUUID(), 'export'), 404);
    assert.equal((await from.getHandoff(handoff.id)).state, 'requested');
    // The destination is judged again, and no other one chosen.
    const again = { capture_checkpoint: true };
    await from.runtime({ runtime_id: from.destination, draining: true });
    refused(await tryExport(from, handoff, again), 409);
    await from.runtime({ runtime_id: from.destination });
    expectStatus(await tryExport(from, handoff, again), 200);
  });

  test('is refused while an effect is in doubt, and takes an instance that waits', async () => {
    const handler = newHandler();
    const from = await world([step('a', handler), sleep('b', 3_600_000)]);
    const { tenant } = from;
    await checkpoint(from);
    const handoff = await from.handoff(from.id, from.destination);
    await startNow(tenant, from.id);
    const task = await tenant.task(handler);
    refused(await tryExport(from, handoff), 409, /effect/);
    assert.equal((await from.getHandoff(handoff.id)).state, 'requested');
    await tenant.complete(task);
    await tenant.until(from.id, 'running');
    await tenant.move(from.id, 'waiting');
    const bundle = { ...expectStatus(await tryExport(from, handoff), 200), key: null };
    const { instance_id } = await imported(tenant, bundle);
    await accepted(from, handoff.id, instance_id);
    expectStatus(await from.act(handoff.id, 'resume'), 200);
    await tenant.until(instance_id, 'running');
    assert.deepEqual(await tenant.nodeStates(instance_id), { a: 'completed', b: 'running' });
    assert.equal((await tenant.instance(from.id)).state, 'paused');
  });
});

describe('an instance that waits for a time, or has failed,', () => {
  const WEEK_MS = 7 * 86_400_000;
  const dueAt = async (instance: string) => {
    const text = 'select fire_at from timers where instance_id = $1';
    return (await api.sql.query(text, [instance])).rows[0]?.fire_at as Date;
  };
  const waits: readonly (readonly [string, string, Json])[] = [
    ['asleep', 'running', sleep('b', WEEK_MS)],
    ['in a delay', 'scheduled', step('b', 'noop', { delay: { duration: WEEK_MS } })],
  ];
  for (const [title, state, block] of waits) {
    test(`is handed over ${title}, and goes on to the same moment`, async (tenant) => {
      const id = await tenant.run([step('a', 'noop'), block]);
      await tenant.until(id, state);
      const due = await dueAt(id);
      const there = await handedOver(await passageOf(tenant, id));
      await tenant.until(there, state);
      assert.deepEqual(await dueAt(there), due);
      assert.deepEqual(await tenant.rowsOf(there), ['a']);
      assert.equal((await tenant.instance(id)).state, 'paused');
    });
  }

  test('is retried where it is handed to', async (tenant) => {
    const id = await tenant.runUntil('failed', [step('a', 'noop'), step('b', 'fail')]);
    const there = await handedOver(await passageOf(tenant, id));
    await tenant.until(there, 'failed');
    assert.deepEqual(await tenant.deadLetters(), [there]);
    assert.equal((await tenant.rowsOf(there)).filter((block) => block === 'a').length, 1);
  });
});

describe('a large instance', () => {
  test('that a capsule cannot hold fails its handoff, and goes on', async () => {
    const from = await world();
    const handoff = await from.handoff(from.id, from.destination);
    await api.sql.query(
      'insert into block_outputs (id, instance_id, block_id, iteration, attempt, try, ' +
        "output_size, created_at) select gen_random_uuid(), $1, 'x', n, n, 0, 0, now() " +
        'from generate_series(0, 10000) as n',
      [from.id],
    );
    refused(await tryExport(from, handoff, { capture_checkpoint: true }), 409, /10000 entries/);
    const { state, failure_code } = await from.getHandoff(handoff.id);
    assert.deepEqual([state, failure_code], ['failed', 'CAPSULE_EXPORT_FAILED']);
    assert.equal((await from.execution(from.id)).state, 'owned');
    await startNow(from.tenant, from.id);
    await from.tenant.until(from.id, 'completed');
  });

  test('is handed over with outputs of any size', async (tenant) => {
    const large = 'ä'.repeat(150_000);
    const blocks = [step('a', 'transform', { params: { large } }), sleep('b', 3_600_000)];
    const id = await tenant.run(blocks);
    await tenant.until(id, 'running');
    await tenant.move(id, 'paused');
    const instance = await handedOver(await passageOf(tenant, id));
    assert.deepEqual((await tenant.outputsOf(instance)).a, { large });
  });
});

describe('an import', () => {
  test('An import creates a paused instance and can be repeated; tampering, a wrong key, destination, tenant or epoch are 409; without keys it is 503', async () => {
    const from = await world();
    const { tenant } = from;
    const bundle = await sent(from);
    const destination_instance_id = randomUUID();
    const sealed = Buffer.from(bundle.payload_base64, 'base64');
    sealed[20] = (sealed[20] ?? 0) ^ 1;
    const payload_base64 = sealed.toString('base64');
    refused(await importing(tenant, bundle, { payload_base64 }), 409, /hash mismatch/);
    const payload_key_base64 = newTransferKey();
    refused(await importing(tenant, bundle, { payload_key_base64 }), 409, /decryption failed/);
    refused(await importing(tenant, bundle, { destination_runtime_id: randomUUID() }), 409);
    refused(await importing(tenant, bundle, { expected_epoch: 1 }), 409);
    refused(await importing(api.tenant(), bundle), 409);
    refused(await importing(tenant, bundle, { payload_base64: '=' }), 400);
    refused(await importing(tenant, bundle, { payload_key_base64: 'AAAA' }), 400);
    refused(await importing(tenant, bundle, { payload_base64: `${payload_base64}AAAA` }), 413);

    const first = await imported(tenant, bundle, { destination_instance_id });
    assert.deepEqual([first.instance_id, first.state], [destination_instance_id, 'paused']);
    assert.deepEqual(await imported(tenant, bundle, { destination_instance_id }), first);
    const other = { destination_instance_id: randomUUID() };
    assert.deepEqual(await imported(tenant, bundle, other), first);
    const instance = await tenant.instance(destination_instance_id);
    assert.deepEqual([instance.state, instance.next_fire_at], ['paused', null]);
    refused(await importing(tenant, bundle, { payload_base64 }), 409, /hash mismatch/);
  });

  // `unit/continuity-capsule` has every change.
  test('takes no capsule that is signed by a stranger, or for nobody in particular', async () => {
    const { tenant, destination: destination_runtime_id, ...from } = await world();
    const bundle = await sent({ ...from, tenant, destination: destination_runtime_id });
    const { manifest } = bundle.capsule;
    const own = createKeyring(Buffer.from(SHARED_MASTER_KEY, 'hex')).signing;
    const anybody = { ...manifest, allowed_destination_runtime_id: null };
    for (const [signed, says] of [
      [signManifest(manifest, newDevice().signing), /trusted/],
      [signManifest(anybody, own), /rollback/],
    ] as const) {
      const capsule = { ...bundle.capsule, ...signed };
      refused(
        await importing(tenant, { ...bundle, capsule }, { destination_runtime_id }),
        409,
        says,
      );
    }
    await imported(tenant, bundle);
  });

  test('takes no id that another instance has, and no capsule of a handoff that is over', async () => {
    const from = await world();
    const { tenant } = from;
    const bundle = await sent(from);
    const destination_instance_id = await tenant.runUntil('completed', [step('a', 'noop')]);
    refused(await importing(tenant, bundle, { destination_instance_id }), 409, /already/);
    refused(await importing(tenant, bundle, { destination_instance_id: from.id }), 409, /already/);
    expectStatus(await from.act(bundle.handoff.id, 'revoke'), 200);
    refused(await importing(tenant, bundle), 409, /revoked/);
  });

  test('keeps everything that belongs to an instance, and drops the keys', async (tenant) => {
    const id = await pausedAtStart(tenant, await tenant.sequence([step('a', 'noop')]), {
      priority: 'critical',
      timezone: 'Europe/Vienna',
      metadata: { colour: 'red' },
      context: { data: { n: 1, s: 'ä' }, config: { holidays: ['2030-01-01'] } },
      concurrency_key: 'k',
      max_concurrency: 3,
      idempotency_key: randomUUID(),
    });
    const before = await tenant.instance(id);
    const from = await passageOf(tenant, id);
    const checkpoint_data = { safe_boundary: 'a', context_snapshot: { n: 1 } };
    await checkpoint(from, checkpoint_data);
    const { instance } = await carried(from, { capture_checkpoint: false });
    const after = await tenant.instance(instance);
    for (const field of ['sequence_id', 'namespace', 'priority', 'timezone'] as const) {
      assert.equal(after[field], before[field]);
    }
    assert.deepEqual([after.metadata, after.context], [before.metadata, before.context]);
    const seen = [after.concurrency_key, after.max_concurrency, after.idempotency_key];
    assert.deepEqual(seen, [undefined, undefined, undefined]);
    const latest = await tenant.get<Json>(`/instances/${instance}/checkpoints/latest`);
    assert.deepEqual(expectStatus(latest, 200).checkpoint_data, checkpoint_data);
  });

  test('goes on in the middle of a loop and in blocks of its own, and does nothing twice', async () => {
    const handler = newHandler();
    const tenant = api.tenant();
    const blocks = [
      step('a', 'transform', { params: { output: { hello: 'world' } } }),
      forEach('each', 'list', [step('work', handler, { params: { item: '{{data.item}}' } })]),
      step('z', 'noop'),
    ];
    const id = await tenant.run(blocks, { context: { data: { list: ['x', 'y', 'z'] } } });
    await inject(tenant, id, [step('own', handler)]);
    const first = await tenant.task(handler);
    await tenant.signal(id, 'pause');
    await tenant.complete(first, { done: 'x' });
    const instance = await handedOver(await passageOf(tenant, id));
    for (const done of ['y', 'z', 'own']) {
      const task = await tenant.task(handler);
      assert.equal(task.instance_id, instance);
      if (done !== 'own') assert.deepEqual(task.params, { item: done });
      await tenant.complete(task, { done });
    }
    await tenant.until(instance, 'completed');
    const turns = ['each', 'work', 'each', 'work', 'each', 'work', 'each'];
    assert.deepEqual(await tenant.rowsOf(instance), ['a', ...turns, 'z', 'own']);
    assert.equal((await tenant.instance(id)).state, 'paused');
  });
});

test('A handoff after a migration uses the new epoch, imports without a transfer key from server storage, and the chain verifies', async (tenant) => {
  const name = `s-${randomUUID()}`;
  const blocks = [step('a', 'noop'), step('b', 'noop')];
  const id = await pausedAtStart(tenant, await tenant.sequence(blocks, { name }));
  const to = await tenant.sequence([...blocks, step('c', 'noop')], { name, version: 2 });
  const from = await passageOf(tenant, id);
  const subject = { execution: await from.execution(id), to };
  const planned = await plan(tenant, subject, { capture_checkpoint: true });
  await apply(tenant, planned.id, { approved: true });

  const handoff = await from.handoff(id, from.destination);
  assert.equal(handoff.expected_epoch, 1);
  const withoutKey = { payload_key_base64: null, capture_checkpoint: false };
  const bundle = await exported(from, handoff, withoutKey);
  const { epoch, sequence } = bundle.capsule.manifest;
  assert.deepEqual([epoch, sequence.version], [1, 2]);
  const { instance_id } = await imported(tenant, bundle, { payload_base64: undefined });
  const { execution } = await accepted(from, handoff.id, instance_id);
  assert.equal(execution.epoch, 2);
  // The migration is of an instance that is not run here any more.
  expectStatus(await askRollback(tenant, planned.id), 409);
  expectStatus(await from.act(handoff.id, 'resume'), 200);
  await startNow(tenant, instance_id);
  await tenant.until(instance_id, 'completed');
  assert.deepEqual(await tenant.rowsOf(instance_id), ['a', 'b', 'c']);
  const verdict = await tenant.get<Json>(`/continuity/executions/${id}/provenance/verify`);
  const { valid, entries_checked, code } = expectStatus(verdict, 200);
  assert.deepEqual([valid, entries_checked, code], [true, 5, null]);
});

// ---------------------------------------------------------------- devices

/** A device that owns the execution, and the handoff by which it gives it back. */
interface Abroad extends Passage {
  readonly device: Device;
  readonly back: Handoff;
  /** What it was handed. */
  readonly payload: CapsulePayload;
  readonly version: number;
  readonly definition: unknown;
}

async function abroad(): Promise<Abroad> {
  const from = await world();
  const { tenant } = from;
  const device = newDevice();
  const { runtime: runtime_id, signing } = device;
  const registered = { runtime_id, capsule_signing_public_key: signing.publicKey };
  await from.runtime({ ...registered, kind: 'mobile', connectivity: 'offline' });
  const { bundle, instance } = await carried({ ...from, destination: runtime_id });
  await accepted(from, bundle.handoff.id, instance);
  const { capsule, payload_base64, key } = bundle;
  const sealed = Buffer.from(payload_base64, 'base64');
  const plain = unseal(sealed, Buffer.from(key ?? '', 'base64'), capsule.manifest);
  const payload = decodePayload(plain ?? Buffer.of(), checkPayload);
  assert.ok(payload.ok);
  const { id: sequence, version } = capsule.manifest.sequence;
  const stored = await tenant.get<Json>(`/sequences/${sequence}`);
  const { blocks: definition } = expectStatus(stored, 200);
  const checkpoint = { ...payload.value.checkpoint, instance_id: instance };
  return {
    ...from,
    device,
    back: await from.handoff(from.id, from.destination),
    payload: { ...payload.value, checkpoint },
    version,
    definition: { blocks: definition },
  };
}

/** What the device seals when it has done its part. */
function sealedBy(from: Abroad, key: string, more: Partial<CapsuleFacts> = {}) {
  const now = Date.now();
  const { back, device, payload, version, definition } = from;
  const facts: CapsuleFacts = {
    capsule_id: randomUUID(),
    continuity_id: from.id,
    source_instance_id: payload.checkpoint.instance_id,
    epoch: 1,
    tenant_id: from.tenant.name,
    source_runtime_id: device.runtime,
    allowed_destination_runtime_id: from.destination,
    sequence_version: version,
    sequence_definition: definition,
    current_step: null,
    requirements: back.requirements,
    provenance_head: null,
    issued_at: new Date(now).toISOString(),
    expires_at: new Date(now + 60_000).toISOString(),
    ...more,
  };
  return deviceCapsule(device, key, facts, payload);
}

async function attach(
  from: Abroad,
  instance: string,
  more: Partial<CapsuleFacts> = {},
  changes: Json = {},
) {
  const key = newTransferKey();
  const { capsule, payload_base64 } = sealedBy(from, key, more);
  const body = { destination_instance_id: instance, capsule, payload_base64 };
  const sent = { ...body, payload_key_base64: key, ...changes };
  const ask = () =>
    from.act<CapsuleAttached & { error: string }>(from.back.id, 'attach-device-capsule', sent);
  return { ask, sent };
}

describe('a device that comes back', () => {
  test('Accepting a handoff moves the owner to epoch 1; the execution resumes, and can return by attach at epoch 2', async () => {
    const from = await abroad();
    const { tenant } = from;
    const instance = randomUUID();
    const { ask } = await attach(from, instance);
    const first = expectStatus(await ask(), 200);
    assert.deepEqual([first.handoff.state, first.destination_instance_id], ['exported', instance]);
    assert.deepEqual(expectStatus(await ask(), 200), first);
    expectStatus(await tryExport(from, from.back), 409);
    const { execution } = await accepted(from, from.back.id, instance);
    assert.deepEqual([execution.epoch, execution.owner_runtime_id], [2, from.destination]);
    expectStatus(await from.act(from.back.id, 'resume'), 200);
    await startNow(tenant, instance);
    await tenant.until(instance, 'completed');
    assert.equal((await from.getHandoff(from.back.id)).state, 'completed');
    assert.deepEqual(column(await from.locations(from.id), 'epoch'), [0, 1, 2]);
    assert.deepEqual(column(await from.provenance(from.id), 'kind'), [
      'execution_created',
      'capsule_exported',
      'runtime_claimed',
      'capsule_exported',
      'runtime_claimed',
      'execution_resumed',
    ]);
  });

  test('is heard only with its own key, for its own execution, in its own time, with a context that fits, and not after an export', async () => {
    const from = await abroad();
    const instance = randomUUID();
    const facts: [Partial<CapsuleFacts>, RegExp][] = [
      [{ continuity_id: randomUUID() }, /./],
      [{ source_runtime_id: randomUUID() }, /source/],
      [{ allowed_destination_runtime_id: null }, /./],
      [{ epoch: 0 }, /epoch/],
      [{ expires_at: '2020-01-01T00:00:00Z' }, /expired/],
      [{ requirements: { handlers: ['x'] } }, /requirements/],
      [{ sequence_definition: { blocks: [] } }, /sequence/],
    ];
    for (const [more, text] of facts) {
      refused(await (await attach(from, instance, more)).ask(), 409, text);
    }
    const stranger = { ...from, device: { ...from.device, signing: newDevice().signing } };
    refused(await (await attach(stranger, instance)).ask(), 409, /trusted/);
    const other = await attach(from, instance, {}, { payload_key_base64: newTransferKey() });
    refused(await other.ask(), 409, /decryption failed/);
    refused(await (await attach(from, from.id)).ask(), 409, /already/);
    const waits = { ...from.payload, pending_signals: [{ signal_type: 'custom' }] };
    refused(await (await attach({ ...from, payload: waits }, instance)).ask(), 409, /pending_sig/);
    const context = { data: { x: 'x'.repeat(262_144) } };
    const wide = { ...from.payload, instance: { ...from.payload.instance, context } };
    refused(
      await (await attach({ ...from, payload: wide }, instance)).ask(),
      413,
      /the context of/,
    );
    assert.equal((await from.getHandoff(from.back.id)).state, 'requested');
    expectStatus(await tryExport(from, from.back, { capture_checkpoint: true }), 200);
    refused(await (await attach(from, instance)).ask(), 409);
  });
});

// ---------------------------------------------------------------- master keys

const keyless = useSharedApi('open');

/** A tenant whose execution is paused before its first step, with a checkpoint there. */
async function checkpointed(of: SharedApi): Promise<Passage> {
  const from = await passageAtStart(of.tenant());
  expectStatus(await checkpoint(from), 201);
  return from;
}

/** To the next version, which differs in nothing but its number; resolves with the plan's id. */
async function plannedHere({ tenant, id }: Passage): Promise<string> {
  const { sequence_id } = await tenant.instance(id);
  const { name, blocks } = (await tenant.get<Json>(`/sequences/${sequence_id}`)).body;
  const to_sequence_id = await tenant.sequence(blocks as Json[], { name, version: 2 });
  const asked = { continuity_id: id, to_sequence_id, to_version: 2, capture_checkpoint: true };
  return expectStatus(await tenant.post<{ id: string }>(`${MIGRATIONS}/plan`, asked), 200).id;
}

describe('An export needs a ttl of 1 to 3600, else 400; a paused or waiting source with the same requirements, else 409; it succeeds once; without keys it is 503', () => {
  test('with keys', async () => {
    const from = await checkpointed(api);
    const requirements = { minimum_trust: 'registered' };
    const handoff = await from.handoff(from.id, from.destination, { requirements });
    refused(await tryExport(from, handoff, { requirements, expires_in_seconds: 0 }), 400);
    refused(await tryExport(from, handoff, { requirements, expires_in_seconds: 3_601 }), 400);
    await from.tenant.move(from.id, 'scheduled', { next_fire_at: '2099-01-01T00:00:00Z' });
    refused(await tryExport(from, handoff, { requirements }), 409, /paused or waiting/);
    await from.tenant.move(from.id, 'paused');
    const superset = { ...requirements, requires_network: true };
    refused(await tryExport(from, handoff, { requirements: superset }), 409);
    refused(await tryExport(from, handoff, {}), 409);
    assert.deepEqual(await from.getHandoff(handoff.id), handoff);
    const { handoff: done } = expectStatus(await tryExport(from, handoff, { requirements }), 200);
    assert.equal(done.state, 'exported');
    assert.equal((await from.execution(from.id)).state, 'transferring');
    refused(await tryExport(from, handoff, { requirements }), 409);
  });

  test('without keys: neither an export nor an import, and what is planned is not applied', async () => {
    const from = await checkpointed(keyless);
    refused(await tryExport(from, await from.handoff(from.id, from.destination)), 503);
    const elsewhere = await checkpointed(api);
    const handoff = await elsewhere.handoff(elsewhere.id, elsewhere.destination);
    const bundle = await exported(elsewhere, handoff, { payload_key_base64: null });
    refused(await importing(from.tenant, bundle), 503);
    expectStatus(await askApply(from.tenant, await plannedHere(from)), 503);
  });
});

test('without keys an instance is migrated in one step, and there is nothing to roll it back with', async () => {
  const from = await checkpointed(keyless);
  const { tenant, id } = from;
  await plannedHere(from);
  const reply = await tenant.post<Json>(`/instances/${id}/migrate`, { version: 2 });
  const { migrated, state, rollback_expires_at, migration_id } = expectStatus(reply, 200);
  assert.deepEqual([migrated, state, rollback_expires_at], [true, 'paused', null]);
  expectStatus(await askRollback(tenant, String(migration_id)), 409);
  await startNow(tenant, id);
  await tenant.until(id, 'completed');
});
