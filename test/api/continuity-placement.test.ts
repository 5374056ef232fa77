/** Runtimes, and how well each would do as the place of an execution. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { EffectReceipt } from '../../schema/continuity.js';
import type { PlacementDecision, RuntimeCapabilities } from '../../schema/handoff.js';
import {
  eventually,
  type Json,
  newHandler,
  step,
  type Tenant,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { capabilities, continuityOf } from '../helpers/continuity.js';

const UNKNOWN = '0195ffff-0000-7000-8000-000000000000';
const REGISTER = '/runtimes/register';

const api = useSharedApi();

/** A tenant with an execution that is paused, and no runtime. */
async function world() {
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

describe('a registration', () => {
  test('each limit of a registration → 400; 256 facts, 256-byte fact, battery 100 accepted; upsert not duplicate; expired not listed; draining listed', async () => {
    const tenant = api.tenant();
    const facts = Array.from({ length: 256 }, (_, i) => `h${i}`);
    const wrong: Json[] = [
      { runtime_id: 'no-uuid' },
      { runtime_id: null },
      { kind: 'mainframe' },
      { kind: undefined },
      { trust: 'signed' },
      { trust: 'attested' },
      { trust: undefined },
      { battery_percent: 101 },
      { battery_percent: -1 },
      { estimated_cost_microunits: -1 },
      { estimated_latency_ms: 0.5 },
      { connectivity: 'pigeon' },
      { offline_capable: 'yes' },
      { capsule_signing_public_key: 'AAAA' },
      { observed_at: inMs(60_000), expires_at: inMs(120_000) },
      { expires_at: inMs(-1_000) },
      { observed_at: inMs(-1_000), expires_at: inMs(310_000) },
      { observed_at: 'yesterday' },
    ];
    for (const list of ['handlers', 'plugins', 'credentials', 'regions', 'hardware']) {
      wrong.push({ [list]: [...facts, 'one more'] }, { [list]: [' '] });
      wrong.push({ [list]: ['é'.repeat(129)] }, { [list]: 'text' });
    }
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

    await register(tenant, { runtime_id, kind: 'edge', observed_at: inMs(-30_000) });
    assert.deepEqual(await live(tenant), [second], 'what was observed earlier is not taken');

    await register(tenant, { runtime_id, expires_at: inMs(300) });
    await eventually(async () => assert.deepEqual(await live(tenant), []));
  });

  test('is a record of its own in each tenant', async () => {
    const runtime_id = randomUUID();
    const [one, other] = [api.tenant(), api.tenant()];
    expectStatus(await register(one, { runtime_id, kind: 'edge' }), 201);
    expectStatus(await register(other, { runtime_id, kind: 'mobile' }), 201);
    assert.deepEqual(
      [(await live(one))[0]?.kind, (await live(other))[0]?.kind],
      ['edge', 'mobile'],
    );
  });

  test('of another tenant than the header names is refused', async () => {
    const body = { tenant_id: 'another', capabilities: capabilities() };
    expectStatus(await api.tenant().post(REGISTER, body), 403);
  });
});

describe('a placement', () => {
  test('each finding code appears for its cause; several allowed regions: one match is enough; policy version 0 → 400; region policy can deny; classification defaults to internal', async () => {
    const { tenant, runtime, preview, place, id } = await world();
    const rule = (more: Json) => ({
      policy: { version: 1, rules: [{ classification: 'internal', ...more }] },
    });
    const causes: readonly [code: string, offered: Json, terms: Json][] = [
      ['RUNTIME_DRAINING', { draining: true }, {}],
      ['HANDLERS_MISSING', { handlers: ['a'] }, { requirements: { handlers: ['a', 'b'] } }],
      ['PLUGINS_MISSING', {}, { requirements: { plugins: ['p'] } }],
      ['CREDENTIALS_MISSING', {}, { requirements: { credentials: ['c'] } }],
      ['HARDWARE_MISSING', {}, { requirements: { hardware: ['gpu'] } }],
      ['REGION_NOT_ALLOWED', { regions: ['us'] }, { requirements: { regions: ['eu'] } }],
      ['TRUST_TOO_LOW', { trust: 'unverified' }, { requirements: { minimum_trust: 'registered' } }],
      ['HUMAN_UI_MISSING', {}, { requirements: { requires_human_ui: true } }],
      [
        'NETWORK_UNAVAILABLE',
        { connectivity: 'offline' },
        { requirements: { requires_network: true } },
      ],
      ['NETWORK_UNKNOWN', {}, { requirements: { requires_network: true } }],
      ['CONFIDENTIAL_POLICY_MISSING', {}, { classification: 'confidential' }],
      ['RESTRICTED_POLICY_MISSING', {}, { classification: 'restricted' }],
      ['RUNTIME_ID_DENIED', {}, rule({ allowed_runtime_ids: [UNKNOWN] })],
      ['RUNTIME_KIND_DENIED', {}, rule({ allowed_runtime_kinds: ['edge'] })],
      ['REGION_DENIED', { regions: ['us'] }, rule({ allowed_regions: ['eu'] })],
      ['RUNTIME_REGION_UNKNOWN', {}, rule({ allowed_regions: ['eu'] })],
      ['TRUST_DENIED', { trust: 'unverified' }, rule({ minimum_trust: 'registered' })],
      ['CONNECTIVITY_DENIED', { connectivity: 'wifi' }, rule({ require_offline: true })],
      ['RUNTIME_CONNECTIVITY_UNKNOWN', {}, rule({ allowed_connectivity: ['wifi'] })],
      ['HARDWARE_DENIED', {}, rule({ require_hardware: 'gpu' })],
      ['COST_DENIED', { estimated_cost_microunits: 2 }, rule({ maximum_cost_microunits: 1 })],
      ['RUNTIME_COST_UNKNOWN', {}, rule({ maximum_cost_microunits: 1 })],
      ['LATENCY_DENIED', { estimated_latency_ms: 2 }, rule({ maximum_latency_ms: 1 })],
      ['RUNTIME_LATENCY_UNKNOWN', {}, rule({ maximum_latency_ms: 1 })],
      ['BATTERY_DENIED', { battery_percent: 1 }, rule({ minimum_battery_percent: 2 })],
      ['RUNTIME_BATTERY_UNKNOWN', {}, rule({ minimum_battery_percent: 2 })],
    ];
    for (const [code, offered, terms] of causes) {
      const { runtime_id } = await runtime(offered);
      const seen = await preview(id, runtime_id, terms);
      const codes = seen.findings.map((finding) => finding.code);
      assert.ok(codes.includes(code), `${code}, not ${codes.join(', ')}`);
      assert.equal(seen.compatible, false, code);
    }

    const { runtime_id } = await runtime({ regions: ['eu', 'us'] });
    const several = { requirements: { regions: ['asia', 'eu'] } };
    const allowed = await preview(id, runtime_id, several);
    assert.deepEqual(
      [allowed.compatible, allowed.findings.map(({ code }) => code)],
      [true, ['COMPATIBLE']],
    );
    assert.equal(allowed.placement_decision.classification, 'internal');
    assert.equal((await place(id)).classification, 'internal');

    const versionless = { policy: { version: 0, rules: [] } };
    const path = `/continuity/executions/${id}`;
    expectStatus(await tenant.post(`${path}/placement`, versionless), 400);
    const body = { destination_runtime_id: runtime_id, ...versionless };
    expectStatus(await tenant.post(`${path}/handoff-preview`, body), 400);
  });

  test('placement: exact score factors for two candidates (43 vs 15), incumbent +5, offline +3', async () => {
    const { tenant, runtime, place, id, owner } = await world();
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
    assert.deepEqual(
      decision.candidates.map(({ runtime_id, score, score_factors }) => ({
        runtime_id,
        score,
        score_factors,
      })),
      [
        {
          runtime_id: best.runtime_id,
          score: 43,
          score_factors: {
            trust: 10,
            current_runtime: 0,
            offline_capable: 3,
            battery_rank: 10,
            cost_rank: 10,
            latency_rank: 10,
          },
        },
        {
          runtime_id: second.runtime_id,
          score: 15,
          score_factors: {
            trust: 0,
            current_runtime: 0,
            offline_capable: 0,
            battery_rank: 5,
            cost_rank: 5,
            latency_rank: 5,
          },
        },
      ],
    );
    assert.equal(decision.selected_runtime_id, best.runtime_id);
    expectStatus(await register(tenant, { runtime_id: owner, trust: 'unverified' }), 201);
    const incumbent = (await place(id)).candidates.find((one) => one.runtime_id === owner);
    assert.deepEqual([incumbent?.score, incumbent?.score_factors.current_runtime], [5, 5]);
  });

  test('without an eligible runtime selects none', async () => {
    const { runtime, place, id } = await world();
    const nobody: PlacementDecision = await place(id);
    assert.deepEqual([nobody.selected_runtime_id, nobody.candidates], [null, []]);
    await runtime({ draining: true });
    const [candidate] = (await place(id)).candidates;
    assert.deepEqual(
      [candidate?.outcome, candidate?.finding_codes],
      ['deny', ['POLICY_DEFAULT_CURRENT_BOUNDARY', 'RUNTIME_DRAINING']],
    );
  });

  test('takes both spellings of its terms, and refuses two that differ', async () => {
    const { tenant, place, id } = await world();
    const policy = { version: 2, rules: [{ classification: 'restricted' }] };
    const seed = { data_classification: 'restricted', locality_policy: policy };
    const other = { classification: 'restricted', policy };
    for (const terms of [seed, other, { ...seed, ...other }]) {
      const { classification, policy_version } = await place(id, terms);
      assert.deepEqual([classification, policy_version], ['restricted', 2]);
    }
    const path = `/continuity/executions/${id}/placement`;
    expectStatus(await tenant.post(path, { ...seed, classification: 'public' }), 400);
    const changed = { ...policy, version: 3 };
    expectStatus(await tenant.post(path, { ...seed, policy: changed }), 400);
  });

  test('is only of an execution of the tenant', async () => {
    const { tenant, id } = await world();
    const path = `/continuity/executions/${id}/placement`;
    expectStatus(await api.tenant().post(path, {}), 404);
    expectStatus(await tenant.post(path, { tenant_id: 'another' }), 403);
    expectStatus(await tenant.post(`/continuity/executions/${UNKNOWN}/placement`, {}), 404);
  });
});

describe('a preview', () => {
  test('preview with unregistered or expired destination → 404; with unresolved effect → 200 compatible false and the receipt listed; resolving it makes compatible true', async () => {
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
    assert.deepEqual(
      seen.unresolved_effects.map(({ block_id, state, kind }) => [block_id, state, kind]),
      [['a', 'dispatched', 'worker']],
    );
    const [receipt] = seen.unresolved_effects;
    const resolve = (state: string) =>
      tenant.post<EffectReceipt>(`/continuity/effects/${receipt?.id}/resolve`, { state });
    expectStatus(await resolve('unknown'), 200);
    assert.equal((await continuity.preview(id, runtime_id)).compatible, false);
    expectStatus(await resolve('abandoned'), 200);
    const resolved = await continuity.preview(id, runtime_id);
    assert.deepEqual([resolved.compatible, resolved.unresolved_effects], [true, []]);
  });

  test('has one hash as long as nothing changes, and another one after', async () => {
    const { preview, runtime, id } = await world();
    const { runtime_id } = await runtime();
    const [first, again] = [await preview(id, runtime_id), await preview(id, runtime_id)];
    assert.equal(again.preview_sha256, first.preview_sha256);
    assert.notEqual(again.placement_decision_id, first.placement_decision_id);
    assert.equal(first.placement_decision_id, first.placement_decision.id);
    const stricter = { requirements: { minimum_trust: 'registered' } };
    const others = [(await preview(id, runtime_id, stricter)).preview_sha256];
    // Neither another one nor another time.
    await runtime({ draining: true });
    await runtime({ runtime_id });
    assert.equal((await preview(id, runtime_id)).preview_sha256, first.preview_sha256);
    await runtime({ runtime_id, handlers: ['more'] });
    others.push((await preview(id, runtime_id)).preview_sha256);
    assert.equal(new Set([first.preview_sha256, ...others]).size, 3);
  });

  test('selects the destination that was asked for, unless it is denied', async () => {
    const { preview, runtime, id } = await world();
    const poor = await runtime({ trust: 'unverified' });
    const rich = await runtime({ offline_capable: true });
    const seen = await preview(id, poor.runtime_id);
    assert.equal(seen.placement_decision.selected_runtime_id, poor.runtime_id);
    const terms = { requirements: { minimum_trust: 'registered' } };
    const denied = await preview(id, poor.runtime_id, terms);
    assert.deepEqual(
      [denied.compatible, denied.placement_decision.selected_runtime_id],
      [false, rich.runtime_id],
    );
  });
});
