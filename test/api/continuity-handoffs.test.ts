/** Handoffs of executions, and how well runtimes would do as their places. */

import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { ImportFacts } from '../../actors/continuity/core/statements.js';
import { openStatement, signStatement } from '../../actors/continuity/core/statements.js';
import type { EffectReceipt } from '../../schema/continuity.js';
import type { Handoff, HandoffAccepted, RuntimeCapabilities } from '../../schema/handoff.js';
import { createKeyring } from '../../src/core/sealing/keys.js';
import type { Json, Tenant } from '../helpers/api.js';
import { eventually, newHandler, SHARED_MASTER_KEY, step, useSharedApi } from '../helpers/api.js';
import { carried, exported, type Passage } from '../helpers/capsules.js';
import { expectStatus, type Reply } from '../helpers/client.js';
import { columns } from '../helpers/columns.js';
import { capabilities, continuityOf } from '../helpers/continuity.js';
import { passageAtStart, startNow } from '../helpers/standing.js';

const UNKNOWN = '0195ffff-0000-7000-8000-000000000000';
const HANDOFFS = '/continuity/handoffs';

const api = useSharedApi();

const world = (blocks?: readonly Json[]) => passageAtStart(api.tenant(), blocks);

const create = ({ tenant }: Passage, body: Json) =>
  tenant.post<Handoff & { error: string }>(HANDOFFS, body);

function refused(reply: Reply<{ error: string }>, status: number, text: RegExp): void {
  assert.match(expectStatus(reply, status).error, text);
}

/** A handoff that is exported. */
const sent = async (from: Passage, body: Json = {}) =>
  exported(from, await from.handoff(from.id, from.destination), body);

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
    const { created_at, updated_at, locality_policy, requirements, ...rest } = made;
    const told = [locality_policy?.version, requirements.minimum_trust, updated_at];
    assert.deepEqual(told, [3, 'registered', created_at]);
    assert.deepEqual(
      [rest.state, rest.version, rest.expected_epoch, rest.continuity_id, rest.preview_sha256],
      ['requested', 0, 0, from.id, seen.preview_sha256],
    );
    const found = [rest.source_runtime_id, rest.destination_runtime_id, rest.data_classification];
    assert.deepEqual(found, [from.source, from.destination, 'restricted']);
    assert.equal((await from.execution(from.id)).state, 'owned');
    assert.equal((await from.provenance(from.id)).length, 1);
  });

  test('A handoff is created from a current, compatible preview; a malformed hash is 400, an unknown decision 404, a different or stale one 409; repeating it is 201', async () => {
    const from = await world();
    const body = from.creation(await from.preview(from.id, from.destination));
    const other = await world();
    expectStatus(await create(from, { ...body, preview_sha256: 'ab' }), 400);
    expectStatus(await create(from, { ...body, preview_sha256: 'xy'.repeat(32) }), 400);
    expectStatus(await create(from, { ...body, placement_decision_id: UNKNOWN }), 404);
    for (const more of [
      { preview_sha256: 'ab'.repeat(32) },
      { requirements: { minimum_trust: 'registered' } },
      { data_classification: 'public' },
      { destination_runtime_id: other.destination },
      { continuity_id: other.id },
    ]) {
      expectStatus(await create(from, { ...body, ...more }), 409);
    }
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

  test('Two requested handoffs may coexist', async () => {
    const from = await world();
    const first = await from.handoff(from.id, from.destination);
    const second = await from.handoff(from.id, from.destination);
    for (const { id } of [first, second]) {
      assert.equal((await from.getHandoff(id)).state, 'requested');
    }
  });

  test('A foreign tenant cannot use a decision or a handoff: 404', async () => {
    const from = await world();
    const stranger = api.tenant();
    const body = from.creation(await from.preview(from.id, from.destination));
    expectStatus(await stranger.post(HANDOFFS, body), 404);
    const { id } = expectStatus(await create(from, body), 201);
    expectStatus(await stranger.get(`${HANDOFFS}/${id}`), 404);
    for (const move of ['export', 'accept', 'resume', 'reject', 'revoke']) {
      const named = { destination_instance_id: from.id };
      expectStatus(await continuityOf(stranger).act(id, move, named), 404);
      expectStatus(await from.act(id, move, { ...named, tenant_id: stranger.name }), 403);
      expectStatus(await from.act(UNKNOWN, move, named), 404);
    }
    assert.equal((await from.getHandoff(id)).version, 0);
  });

  test('A handoff is rejected from requested, revoked or accepted from exported, and resumed from accepted, each once; otherwise 409', async () => {
    const from = await world();
    const { id: early } = await from.handoff(from.id, from.destination);
    expectStatus(await from.act(early, 'revoke'), 409);
    expectStatus(await from.act(early, 'resume'), 409);
    expectStatus(await from.act(early, 'accept', { destination_instance_id: from.id }), 409);
    const rejected = expectStatus(await from.act(early, 'reject'), 200);
    assert.deepEqual([rejected.state, rejected.version], ['rejected', 1]);
    expectStatus(await from.act(early, 'reject'), 409);

    const { handoff: gone } = await sent(from);
    expectStatus(await from.act(gone.id, 'reject'), 409);
    expectStatus(await from.act(gone.id, 'revoke'), 200);
    expectStatus(await from.act(gone.id, 'revoke'), 409);

    const { bundle, instance } = await carried(from);
    const { handoff } = bundle;
    const accept = () => from.act(handoff.id, 'accept', { destination_instance_id: instance });
    expectStatus(await accept(), 200);
    expectStatus(await accept(), 409);
    expectStatus(await from.act(handoff.id, 'revoke'), 409);
    expectStatus(await from.act(handoff.id, 'resume'), 200);
    expectStatus(await from.act(handoff.id, 'resume'), 409);
  });

  test('Accepting with an instance not imported from the capsule, not paused or of another tenant is 409', async () => {
    const from = await world();
    const { bundle, instance } = await carried(from);
    const { handoff } = bundle;
    const accept = (destination_instance_id: string) =>
      from.act(handoff.id, 'accept', { destination_instance_id });
    const [other, stranger] = [await world(), await world()];
    const paused = await from.tenant.run([step('a', 'noop')], {
      next_fire_at: '2099-01-01T00:00:00Z',
    });
    expectStatus(await accept(paused), 409);
    await from.tenant.move(paused, 'paused');
    expectStatus(await accept(paused), 409);
    expectStatus(await accept(from.id), 409);
    expectStatus(await accept(other.id), 409);
    expectStatus(await accept((await carried(stranger)).instance), 409);
    expectStatus(await accept(UNKNOWN), 404);
    assert.equal((await from.execution(from.id)).epoch, 0);
    expectStatus(await accept(instance), 200);
  });

  test('A rejection leaves owner and epoch; a revocation returns ownership and leaves the epoch', async () => {
    const from = await world();
    const before = await from.execution(from.id);
    const { id } = await from.handoff(from.id, from.destination);
    expectStatus(await from.act(id, 'reject'), 200);
    assert.deepEqual(await from.execution(from.id), before);
    const { handoff } = await sent(from);
    const body = from.creation(await from.preview(from.id, from.destination));
    refused(await create(from, body), 409, /being handed over/);
    expectStatus(await from.act(handoff.id, 'revoke'), 200);
    const { state, epoch, owner_runtime_id } = await from.execution(from.id);
    assert.deepEqual([state, epoch, owner_runtime_id], ['owned', 0, from.source]);
    expectStatus(await create(from, body), 201);
  });

  test('whose capsule has come to its end gives the execution back by itself', async () => {
    const from = await world();
    const { handoff } = await sent(from, { expires_in_seconds: 1 });
    await eventually(async () => assert.equal((await from.execution(from.id)).state, 'owned'));
    assert.equal((await from.getHandoff(handoff.id)).state, 'expired');
    await startNow(from.tenant, from.id);
    await from.tenant.until(from.id, 'completed');
    expectStatus(await from.act(handoff.id, 'revoke'), 409);
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
    const { handoff, capsule } = await sent(from);
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
    const seen = [first.handoff.state, first.execution.epoch, first.execution.current_instance_id];
    assert.deepEqual(seen, ['accepted', 1, facts.instance_id]);
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
    assert.equal(expectStatus(await from.act(made.id, 'resume'), 200).state, 'resumed');
    assert.equal((await from.execution(from.id)).epoch, 1);
    const path = `/instances/${from.id}/state`;
    refused(await from.tenant.patch(path, { state: 'scheduled' }), 409, /was handed over/);
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
      wrong.push([field, signStatement(signing, { ...facts, [field]: value } as ImportFacts)]);
    }
    const grant = { ...facts, kind: 'ownership_granted' } as unknown as ImportFacts;
    wrong.push(['kind', signStatement(signing, grant)]);
    for (const [what, receipt] of wrong) assert.equal((await accept(receipt)).status, 409, what);
    expectStatus(await accept(signed, randomUUID()), 409);
    assert.equal((await from.getHandoff(made.id)).state, 'exported');
    expectStatus(await from.act(made.id, 'revoke'), 200);
    expectStatus(await accept(signed), 409);
    assert.equal((await from.execution(from.id)).epoch, 0);
  });
});

// ---------------------------------------------------------------- placement

const REGISTER = '/runtimes/register';

/** A tenant with an execution that is paused, and no runtime. */
async function placeless() {
  const tenant = api.tenant();
  const continuity = continuityOf(tenant);
  const enrolled = await continuity.enrol(await continuity.paused());
  const { continuity_id: id, owner_runtime_id: owner } = enrolled;
  return { tenant, ...continuity, id, owner };
}

const register = (tenant: Tenant, more: Json) =>
  tenant.post<RuntimeCapabilities>(REGISTER, { capabilities: capabilities(more) });

const live = async (tenant: Tenant) =>
  expectStatus(await tenant.get<RuntimeCapabilities[]>('/runtimes'), 200);

const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();

test('A runtime registration beyond a limit is 400; registering again updates it; expired runtimes are not listed, draining ones are', async () => {
  const tenant = api.tenant();
  const facts = Array.from({ length: 256 }, (_, i) => `h${i}`);
  // `unit/continuity-requirements` has every limit.
  const wrong: Json[] = [
    { runtime_id: 'no-uuid' },
    { kind: undefined },
    { trust: 'signed' },
    { battery_percent: 101 },
    { connectivity: 'pigeon' },
    { capsule_signing_public_key: 'AAAA' },
    { observed_at: inMs(-1_000), expires_at: inMs(310_000) },
    { handlers: [...facts, 'one more'] },
    { regions: ['é'.repeat(129)] },
  ];
  for (const more of wrong) {
    const reply = await register(tenant, more);
    assert.equal(reply.status, 400, `${JSON.stringify(more).slice(0, 80)}: ${reply.text}`);
  }
  assert.deepEqual(await live(tenant), []);

  const runtime_id = randomUUID();
  const most = { runtime_id, handlers: facts, regions: ['é'.repeat(128)], battery_percent: 100 };
  const first = expectStatus(await register(tenant, most), 201);
  assert.deepEqual(first.handlers, facts);
  assert.ok(!('plugins' in first), 'an empty list is left out');
  const second = expectStatus(await register(tenant, { runtime_id, draining: true }), 201);
  assert.deepEqual(await live(tenant), [second]);
  const elsewhere = api.tenant();
  expectStatus(await register(elsewhere, { runtime_id, kind: 'mobile' }), 201);
  assert.equal((await live(elsewhere))[0]?.kind, 'mobile');
  assert.deepEqual(await live(tenant), [second], 'each tenant has records of its own');

  await register(tenant, { runtime_id, kind: 'edge', observed_at: inMs(-30_000) });
  assert.deepEqual(await live(tenant), [second], 'what was observed earlier is not taken');

  await register(tenant, { runtime_id, expires_at: inMs(300) });
  await eventually(async () => assert.deepEqual(await live(tenant), []));
  const body = { tenant_id: 'another', capabilities: capabilities() };
  expectStatus(await tenant.post(REGISTER, body), 403);
});

describe('a placement', () => {
  test('Placement reports each finding for its cause, needs one matching region of several, and takes internal as the default classification; policy version 0 is 400', async () => {
    const { tenant, runtime, preview, place, id } = await placeless();
    const rule = (more: Json) => ({
      policy: { version: 1, rules: [{ classification: 'internal', ...more }] },
    });
    // Every capability once, so that none is lost on the way; `unit/continuity-placement` has all.
    const causes: readonly [code: string, offered: Json, terms: Json][] = [
      ['RUNTIME_DRAINING', { draining: true }, {}],
      ['HANDLERS_MISSING', { handlers: ['a'] }, { requirements: { handlers: ['a', 'b'] } }],
      ['PLUGINS_MISSING', {}, { requirements: { plugins: ['p'] } }],
      ['CREDENTIALS_MISSING', {}, { requirements: { credentials: ['c'] } }],
      ['HUMAN_UI_MISSING', {}, { requirements: { requires_human_ui: true } }],
      ['NETWORK_UNKNOWN', {}, { requirements: { requires_network: true } }],
      ['CONFIDENTIAL_POLICY_MISSING', {}, { classification: 'confidential' }],
      ['RUNTIME_ID_DENIED', {}, rule({ allowed_runtime_ids: [UNKNOWN] })],
      ['RUNTIME_KIND_DENIED', {}, rule({ allowed_runtime_kinds: ['edge'] })],
      ['REGION_DENIED', { regions: ['us'] }, rule({ allowed_regions: ['eu'] })],
      ['TRUST_DENIED', { trust: 'unverified' }, rule({ minimum_trust: 'registered' })],
      ['CONNECTIVITY_DENIED', { connectivity: 'wifi' }, rule({ require_offline: true })],
      ['HARDWARE_DENIED', {}, rule({ require_hardware: 'gpu' })],
      ['COST_DENIED', { estimated_cost_microunits: 2 }, rule({ maximum_cost_microunits: 1 })],
      ['LATENCY_DENIED', { estimated_latency_ms: 2 }, rule({ maximum_latency_ms: 1 })],
      ['BATTERY_DENIED', { battery_percent: 1 }, rule({ minimum_battery_percent: 2 })],
    ];
    for (const [code, offered, terms] of causes) {
      const { runtime_id } = await runtime(offered);
      const seen = await preview(id, runtime_id, terms);
      const codes = seen.findings.map((finding) => finding.code);
      assert.ok(codes.includes(code), `${code}, not ${codes.join(', ')}`);
      assert.equal(seen.compatible, false, code);
    }

    const { runtime_id } = await runtime({ regions: ['eu', 'us'] });
    const allowed = await preview(id, runtime_id, { requirements: { regions: ['asia', 'eu'] } });
    const told = [allowed.compatible, allowed.findings.map(({ code }) => code)];
    assert.deepEqual(told, [true, ['COMPATIBLE']]);
    assert.equal(allowed.placement_decision.classification, 'internal');
    assert.equal((await place(id)).classification, 'internal');

    const versionless = { policy: { version: 0, rules: [] } };
    const path = `/continuity/executions/${id}`;
    expectStatus(await tenant.post(`${path}/placement`, versionless), 400);
    const body = { destination_runtime_id: runtime_id, ...versionless };
    expectStatus(await tenant.post(`${path}/handoff-preview`, body), 400);
    expectStatus(await api.tenant().post(`${path}/placement`, {}), 404);
    expectStatus(await tenant.post(`${path}/placement`, { tenant_id: 'another' }), 403);
  });

  test('Placement scores are exact, with +5 for the incumbent and +3 for offline', async () => {
    const { tenant, runtime, place, id, owner } = await placeless();
    const best = await runtime({
      offline_capable: true,
      battery_percent: 90,
      estimated_cost_microunits: 1,
      estimated_latency_ms: 10,
    });
    const second = await runtime({
      trust: 'unverified',
      battery_percent: 10,
      estimated_cost_microunits: 2,
      estimated_latency_ms: 20,
    });
    const decision = await place(id);
    assert.deepEqual(columns(decision.candidates, 'runtime_id', 'score'), [
      [best.runtime_id, 43],
      [second.runtime_id, 15],
    ]);
    assert.deepEqual(decision.candidates[0]?.score_factors, {
      trust: 10,
      current_runtime: 0,
      offline_capable: 3,
      battery_rank: 10,
      cost_rank: 10,
      latency_rank: 10,
    });
    assert.equal(decision.selected_runtime_id, best.runtime_id);
    expectStatus(await register(tenant, { runtime_id: owner, trust: 'unverified' }), 201);
    const incumbent = (await place(id)).candidates.find((one) => one.runtime_id === owner);
    assert.deepEqual([incumbent?.score, incumbent?.score_factors.current_runtime], [5, 5]);
  });
});

test('A preview of an unregistered or expired destination is 404; an unresolved effect makes it incompatible and is listed, until it is resolved', async () => {
  const tenant = api.tenant();
  const continuity = continuityOf(tenant);
  const handler = newHandler();
  const instance = await tenant.runUntil('waiting', [step('a', handler)]);
  const { continuity_id: id } = await continuity.enrol(instance);
  const path = `/continuity/executions/${id}/handoff-preview`;
  const previewing = (destination_runtime_id: string) =>
    tenant.post(path, { destination_runtime_id });
  expectStatus(await previewing(randomUUID()), 404);
  const fading = await continuity.runtime({ expires_at: inMs(300) });
  await eventually(async () => expectStatus(await previewing(fading.runtime_id), 404));

  const { runtime_id } = await continuity.runtime();
  // Nobody has taken the task yet.
  const free = await continuity.preview(id, runtime_id);
  assert.deepEqual([free.compatible, free.unresolved_effects], [true, []]);
  await tenant.task(handler);
  const seen = await continuity.preview(id, runtime_id);
  assert.equal(seen.compatible, false);
  const told = seen.unresolved_effects.map(({ block_id, state, kind }) => [block_id, state, kind]);
  assert.deepEqual(told, [['a', 'dispatched', 'worker']]);
  const [receipt] = seen.unresolved_effects;
  const resolve = (state: string) =>
    tenant.post<EffectReceipt>(`/continuity/effects/${receipt?.id}/resolve`, { state });
  expectStatus(await resolve('unknown'), 200);
  assert.equal((await continuity.preview(id, runtime_id)).compatible, false);
  expectStatus(await resolve('abandoned'), 200);
  const resolved = await continuity.preview(id, runtime_id);
  assert.deepEqual([resolved.compatible, resolved.unresolved_effects], [true, []]);
});
