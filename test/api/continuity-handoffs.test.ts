/** Handoffs of executions: how one begins, every move of it, and what stands in its way. */

import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type {
  CapsuleImported,
  Handoff,
  HandoffAccepted,
  HandoffExported,
} from '../../schema/handoff.js';
import { createKeyring } from '../../src/core/continuity/keys.js';
import {
  type ImportFacts,
  openStatement,
  signStatement,
} from '../../src/core/continuity/statements.js';
import {
  eventually,
  type Json,
  newHandler,
  SHARED_MASTER_KEY,
  step,
  type Tenant,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus, type Reply } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';
import { type Continuity, continuityOf } from '../helpers/continuity.js';

const UNKNOWN = '0195ffff-0000-7000-8000-000000000000';
const HANDOFFS = '/continuity/handoffs';

const api = useSharedApi();

interface World extends Continuity {
  readonly tenant: Tenant;
  /** The instance, which is also the id of its execution. */
  readonly id: string;
  readonly source: string;
  /** A live runtime that may take the execution. */
  readonly destination: string;
}

/** A tenant whose execution is paused between two steps, and a live destination. */
async function world(blocks?: readonly Json[]): Promise<World> {
  const tenant = api.tenant();
  const continuity = continuityOf(tenant);
  const id = await continuity.paused(blocks);
  const { owner_runtime_id: source } = await continuity.enrol(id);
  const { runtime_id: destination } = await continuity.runtime();
  return { tenant, ...continuity, id, source, destination };
}

const create = ({ tenant }: World, body: Json) =>
  tenant.post<Handoff & { error: string }>(HANDOFFS, body);

function refused(reply: Reply<{ error: string }>, status: number, text: RegExp): void {
  assert.match(expectStatus(reply, status).error, text);
}

/** A handoff that is exported. */
async function exported(
  from: World,
  body: Json = {},
): Promise<HandoffExported & { readonly key: string }> {
  const { id } = await from.handoff(from.id, from.destination);
  const key = randomBytes(32).toString('base64');
  const asked = { capture_checkpoint: true, payload_key_base64: key, ...body };
  return { ...expectStatus(await from.act<HandoffExported>(id, 'export', asked), 200), key };
}

const importing = (
  { tenant, destination }: World,
  { capsule, payload_base64, key }: HandoffExported & { readonly key: string },
) =>
  tenant.post<CapsuleImported>('/continuity/capsules/import', {
    destination_runtime_id: destination,
    expected_epoch: capsule.manifest.epoch,
    capsule,
    payload_base64,
    payload_key_base64: key,
  });

/** A handoff that is exported, and the instance that was imported from its capsule. */
async function imported(from: World): Promise<{ handoff: Handoff; instance: string }> {
  const bundle = await exported(from);
  const { instance_id } = expectStatus(await importing(from, bundle), 201);
  return { handoff: bundle.handoff, instance: instance_id };
}

describe('a handoff', () => {
  test('is bound to its preview and keeps its terms', async () => {
    const from = await world();
    const terms = {
      data_classification: 'restricted',
      requirements: { minimum_trust: 'registered' },
      locality_policy: {
        version: 3,
        rules: [{ classification: 'restricted', allowed_runtime_ids: [from.destination] }],
      },
    };
    const seen = await from.preview(from.id, from.destination, terms);
    const made = expectStatus(await create(from, from.creation(seen, terms)), 201);
    assert.deepEqual(await from.getHandoff(made.id), made);
    assert.deepEqual(
      [made.state, made.version, made.expected_epoch, made.continuity_id, made.preview_sha256],
      ['requested', 0, 0, from.id, seen.preview_sha256],
    );
    assert.deepEqual(
      [made.source_runtime_id, made.destination_runtime_id, made.capsule_id, made.failure_code],
      [from.source, from.destination, null, null],
    );
    assert.equal(made.data_classification, 'restricted');
    assert.equal(made.locality_policy?.version, 3);
    assert.equal(made.requirements.minimum_trust, 'registered');
    assert.equal((await from.execution(from.id)).state, 'owned');
    assert.equal((await from.provenance(from.id)).length, 1);
  });

  test('may be asked for in the other spelling, and with digits of the hash in upper case', async () => {
    const from = await world();
    const policy = { version: 1, rules: [{ classification: 'restricted' }] };
    const seed = { data_classification: 'restricted', locality_policy: policy };
    const seen = await from.preview(from.id, from.destination, seed);
    const body = {
      ...from.creation(seen, { classification: 'restricted', policy }),
      preview_sha256: seen.preview_sha256.toUpperCase(),
      continuity_id: from.id,
      tenant_id: from.tenant.name,
    };
    expectStatus(await create(from, body), 201);
  });

  test('creation: bad hash form 400, unknown decision 404, other hash / other requirements / other destination / changed capabilities 409 (last one text "stale"), incompatible preview 409; the same ones again / new unrelated runtime 201', async () => {
    const from = await world();
    const body = from.creation(await from.preview(from.id, from.destination));
    const other = await world();
    expectStatus(await create(from, { ...body, preview_sha256: 'ab' }), 400);
    expectStatus(await create(from, { ...body, preview_sha256: 'xy'.repeat(32) }), 400);
    expectStatus(await create(from, { ...body, placement_decision_id: UNKNOWN }), 404);
    expectStatus(await create(from, { ...body, preview_sha256: 'ab'.repeat(32) }), 409);
    const more = { requirements: { minimum_trust: 'registered' } };
    expectStatus(await create(from, { ...body, ...more }), 409);
    expectStatus(await create(from, { ...body, data_classification: 'public' }), 409);
    expectStatus(await create(from, { ...body, destination_runtime_id: other.destination }), 409);
    expectStatus(await create(from, { ...body, continuity_id: other.id }), 409);
    expectStatus(await create(from, body), 201);

    const { destination: runtime_id } = from;
    await from.runtime({ runtime_id, handlers: ['changed'] });
    refused(await create(from, body), 409, /stale/);
    const again = from.creation(await from.preview(from.id, from.destination));
    await from.runtime();
    await from.runtime({ runtime_id, handlers: ['changed'] });
    expectStatus(await create(from, again), 201);

    await from.runtime({ runtime_id, draining: true });
    const incompatible = await from.preview(from.id, from.destination);
    assert.equal(incompatible.compatible, false);
    expectStatus(await create(from, from.creation(incompatible)), 409);
  });

  test('is refused when its destination has not been heard of for too long', async () => {
    const from = await world();
    // It is live long enough for a look, if not at the first try.
    const seen = await eventually(() => {
      const expires_at = new Date(Date.now() + 500).toISOString();
      return from
        .runtime({ runtime_id: from.destination, expires_at })
        .then(() => from.preview(from.id, from.destination));
    });
    await eventually(async () => refused(await create(from, from.creation(seen)), 409, /not live/));
  });

  test('two independent requested handoffs may coexist', async () => {
    const from = await world();
    const first = await from.handoff(from.id, from.destination);
    const second = await from.handoff(from.id, from.destination);
    for (const { id } of [first, second]) {
      assert.equal((await from.getHandoff(id)).state, 'requested');
    }
  });

  test('foreign tenant cannot use a decision, nor get/accept/resume/reject/revoke a handoff (404)', async () => {
    const from = await world();
    const stranger = api.tenant();
    const body = from.creation(await from.preview(from.id, from.destination));
    expectStatus(await stranger.post(HANDOFFS, body), 404);
    const { id } = expectStatus(await create(from, body), 201);
    expectStatus(await stranger.get(`${HANDOFFS}/${id}`), 404);
    for (const move of ['export', 'accept', 'resume', 'reject', 'revoke']) {
      const named = { destination_instance_id: from.id };
      expectStatus(await continuityOf(stranger).act(id, move, named), 404);
      const lying = { ...named, tenant_id: stranger.name };
      expectStatus(await from.act(id, move, lying), 403);
      expectStatus(await from.act(UNKNOWN, move, named), 404);
    }
    assert.equal((await from.getHandoff(id)).version, 0);
  });

  test('reject only from requested, twice → 409; revoke only from exported, twice → 409; resume only from accepted, twice → 409; accept before export or twice → 409', async () => {
    const from = await world();
    const { id: early } = await from.handoff(from.id, from.destination);
    expectStatus(await from.act(early, 'revoke'), 409);
    expectStatus(await from.act(early, 'resume'), 409);
    expectStatus(await from.act(early, 'accept', { destination_instance_id: from.id }), 409);
    const rejected = expectStatus(await from.act(early, 'reject'), 200);
    assert.deepEqual([rejected.state, rejected.version], ['rejected', 1]);
    expectStatus(await from.act(early, 'reject'), 409);

    const { handoff: gone } = await exported(from);
    expectStatus(await from.act(gone.id, 'reject'), 409);
    expectStatus(await from.act(gone.id, 'revoke'), 200);
    expectStatus(await from.act(gone.id, 'revoke'), 409);

    const { handoff, instance } = await imported(from);
    const accept = () => from.act(handoff.id, 'accept', { destination_instance_id: instance });
    expectStatus(await accept(), 200);
    expectStatus(await accept(), 409);
    expectStatus(await from.act(handoff.id, 'revoke'), 409);
    expectStatus(await from.act(handoff.id, 'resume'), 200);
    expectStatus(await from.act(handoff.id, 'resume'), 409);
  });

  test('accept with an instance not imported from the capsule, not paused, or of another tenant → 409', async () => {
    const from = await world();
    const { handoff, instance } = await imported(from);
    const accept = (destination_instance_id: string) =>
      from.act(handoff.id, 'accept', { destination_instance_id });
    const [other, stranger] = [await world(), await world()];
    const paused = await from.tenant.create(await from.tenant.sequence([step('a', 'noop')]), {
      next_fire_at: '2099-01-01T00:00:00Z',
    });
    expectStatus(await accept(paused), 409);
    await from.tenant.move(paused, 'paused');
    expectStatus(await accept(paused), 409);
    expectStatus(await accept(from.id), 409);
    expectStatus(await accept(other.id), 409);
    expectStatus(await accept((await imported(stranger)).instance), 409);
    expectStatus(await accept(UNKNOWN), 404);
    assert.equal((await from.execution(from.id)).epoch, 0);
    expectStatus(await accept(instance), 200);
  });

  test('reject leaves owner and epoch; revoke makes it `owned` again and leaves the epoch', async () => {
    const from = await world();
    const before = await from.execution(from.id);
    const { id } = await from.handoff(from.id, from.destination);
    expectStatus(await from.act(id, 'reject'), 200);
    assert.deepEqual(await from.execution(from.id), before);
    const { handoff } = await exported(from);
    expectStatus(await from.act(handoff.id, 'revoke'), 200);
    const { state, epoch, owner_runtime_id } = await from.execution(from.id);
    assert.deepEqual([state, epoch, owner_runtime_id], ['owned', 0, from.source]);
  });

  test('that is revoked lets the instance run as before, whatever became of its destination', async () => {
    const handler = newHandler();
    const tenant = api.tenant();
    const continuity = continuityOf(tenant);
    const id = await tenant.runUntil('waiting', [step('a', handler), step('b', 'noop')]);
    const { owner_runtime_id: source } = await continuity.enrol(id);
    const { runtime_id: destination } = await continuity.runtime();
    const from = { tenant, ...continuity, id, source, destination };
    const { handoff } = await imported(from);
    await api.sql.query('delete from runtimes where runtime_id = $1', [destination]);
    assert.deepEqual(await tenant.poll(handler), []);
    expectStatus(await from.act(handoff.id, 'revoke'), 200);
    assert.equal((await tenant.instance(id)).state, 'waiting');
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
  });

  test('is refused while another one holds the execution, and frees it once that is revoked', async () => {
    const from = await world();
    const { handoff } = await exported(from);
    const body = from.creation(await from.preview(from.id, from.destination));
    refused(await create(from, body), 409, /being handed over/);
    expectStatus(
      await from.tenant.patch(`/instances/${from.id}/state`, { state: 'scheduled' }),
      409,
    );
    expectStatus(await from.act(handoff.id, 'revoke'), 200);
    assert.equal((await from.execution(from.id)).state, 'owned');
    const next = expectStatus(await create(from, body), 201);
    expectStatus(await from.act(next.id, 'reject'), 200);
    await from.tenant.move(from.id, 'scheduled');
    await from.tenant.until(from.id, 'completed');
  });

  test('whose capsule has come to its end gives the execution back by itself', async () => {
    const from = await world();
    const { handoff } = await exported(from, { expires_in_seconds: 1 });
    await eventually(async () => {
      assert.equal((await from.execution(from.id)).state, 'owned');
    });
    assert.equal((await from.getHandoff(handoff.id)).state, 'expired');
    await from.tenant.move(from.id, 'scheduled');
    await from.tenant.until(from.id, 'completed');
    expectStatus(await from.act(handoff.id, 'revoke'), 409);
  });

  test('that is accepted and resumed goes on as the instance of its destination', async () => {
    const handler = newHandler();
    const from = await world([step('a', 'noop'), step('b', handler)]);
    const { handoff, instance } = await imported(from);
    const accepted = expectStatus(
      await from.act<HandoffAccepted>(handoff.id, 'accept', { destination_instance_id: instance }),
      200,
    );
    assert.deepEqual(
      [accepted.handoff.state, accepted.execution.epoch, accepted.execution.owner_runtime_id],
      ['accepted', 1, from.destination],
    );
    assert.equal(accepted.execution.current_instance_id, instance);
    assert.deepEqual(await from.execution(from.id), accepted.execution);
    assert.deepEqual(columns(await from.locations(from.id), 'epoch', 'instance_id', 'handoff_id'), [
      [0, from.id, null],
      [1, instance, handoff.id],
    ]);
    const resumed = expectStatus(await from.act(handoff.id, 'resume'), 200);
    assert.equal(resumed.state, 'resumed');
    await from.tenant.complete(await from.tenant.task(handler));
    await from.tenant.until(instance, 'completed');
    assert.equal((await from.getHandoff(handoff.id)).state, 'completed');
    assert.deepEqual(column(await from.provenance(from.id), 'kind'), [
      'execution_created',
      'capsule_exported',
      'runtime_claimed',
      'execution_resumed',
    ]);
    expectStatus(
      await from.tenant.patch(`/instances/${from.id}/state`, { state: 'scheduled' }),
      409,
    );
  });
});

describe('a destination with a database of its own', () => {
  const { signing } = createKeyring(randomBytes(32));
  const { signing: stranger } = createKeyring(randomBytes(32));

  /** A handoff that is exported to such a runtime, and what that states of its import. */
  async function abroad() {
    const from = await world();
    const { destination: runtime_id } = from;
    await from.runtime({ runtime_id, capsule_signing_public_key: signing.publicKey });
    const { handoff, capsule } = await exported(from);
    const facts: ImportFacts = {
      kind: 'capsule_imported',
      tenant_id: from.tenant.name,
      capsule_id: capsule.manifest.capsule_id,
      continuity_id: from.id,
      epoch: 0,
      destination_runtime_id: runtime_id,
      instance_id: randomUUID(),
    };
    const accept = (import_receipt: object | null, instance = facts.instance_id) =>
      from.act<HandoffAccepted & { error: string }>(handoff.id, 'accept', {
        destination_instance_id: instance,
        import_receipt,
      });
    return { ...from, made: handoff, facts, accept };
  }

  test('becomes the owner by its word, and is given the word of the source', async () => {
    const { made, facts, accept, ...from } = await abroad();
    const receipt = signStatement(signing, facts);
    const first = expectStatus(await accept(receipt), 200);
    assert.deepEqual(
      [first.handoff.state, first.execution.epoch, first.execution.current_instance_id],
      ['accepted', 1, facts.instance_id],
    );
    const own = createKeyring(Buffer.from(SHARED_MASTER_KEY, 'hex')).signing.publicKey;
    assert.ok(first.ownership_grant);
    assert.deepEqual(openStatement(first.ownership_grant, [own]), {
      kind: 'ownership_granted',
      tenant_id: facts.tenant_id,
      capsule_id: facts.capsule_id,
      continuity_id: from.id,
      epoch: 1,
      owner_runtime_id: from.destination,
      instance_id: facts.instance_id,
      handoff_id: made.id,
      importer_public_key: signing.publicKey,
    });
    assert.deepEqual(expectStatus(await accept(receipt), 200), first, 'the answer may be lost');
    expectStatus(await accept(null), 404);
    const resumed = expectStatus(await from.act(made.id, 'resume'), 200);
    assert.equal(resumed.state, 'resumed');
    assert.equal((await from.execution(from.id)).epoch, 1);
    refused(
      await from.tenant.patch(`/instances/${from.id}/state`, { state: 'scheduled' }),
      409,
      /was handed over/,
    );
  });

  test('has to state exactly this import, with its own key', async () => {
    const { made, facts, accept, ...from } = await abroad();
    const signed = signStatement(signing, facts);
    const wrong: [string, object][] = [
      ['by a stranger', signStatement(stranger, facts)],
      ['in the name of another key', { ...signed, public_key: stranger.publicKey }],
      ['changed', { ...signed, statement: signed.statement.replace('"epoch":0', '"epoch":1') }],
      ['no JSON', { ...signed, statement: '{' }],
    ];
    const others: Partial<Record<keyof ImportFacts, unknown>> = {
      tenant_id: 'another',
      capsule_id: UNKNOWN,
      continuity_id: UNKNOWN,
      epoch: 1,
      destination_runtime_id: UNKNOWN,
      instance_id: UNKNOWN,
    };
    for (const [field, value] of Object.entries(others)) {
      const changed = { ...facts, [field]: value } as ImportFacts;
      wrong.push([field, signStatement(signing, changed)]);
    }
    const grant = { ...facts, kind: 'ownership_granted' } as unknown as ImportFacts;
    wrong.push(['kind', signStatement(signing, grant)]);
    for (const [what, receipt] of wrong) {
      assert.equal((await accept(receipt)).status, 409, what);
    }
    expectStatus(await accept(signed, randomUUID()), 409);
    assert.equal((await from.getHandoff(made.id)).state, 'exported');
    expectStatus(await from.act(made.id, 'revoke'), 200);
    expectStatus(await accept(signed), 409);
    assert.equal((await from.execution(from.id)).epoch, 0);
  });
});
