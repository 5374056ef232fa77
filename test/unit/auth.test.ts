/** Who is let in, with a clock that stands still: keys, capabilities, tenants, and the registry. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { CAPABILITIES } from '../../schema/route-row.js';
import { capabilitiesFor, ROUTES, type RouteId } from '../../schema/routes.js';
import type { LiveKeyRow } from '../../src/db/reads/key-reads.js';
import { EngineError, unavailable } from '../../src/errors.js';
import { type AuthSettings, createAuth } from '../../src/http/auth.js';
import { capabilityBits, KeyRegistry } from '../../src/http/key-registry.js';
import { column } from '../helpers/rows.js';

const ROOT = 'the-root-key';
const NOW = Date.UTC(2030, 0, 1);

type Headers = Readonly<Record<string, string>>;

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** The key `<id>-secret` of the tenant `a`. */
function row(id: string, more: Partial<LiveKeyRow> = {}): LiveKeyRow {
  return {
    id,
    tenant_id: 'a',
    name: id,
    capabilities: '["operator"]',
    secret_hash: sha256(`${id}-secret`),
    expires_at: null,
    last_used_at: null,
    ...more,
  };
}

function newRegistry(now = () => NOW, keysMax = 100): KeyRegistry {
  return new KeyRegistry({ now, keysMax, refusal: () => undefined });
}

async function loaded(rows: readonly LiveKeyRow[], now = () => NOW, keysMax = 100) {
  const registry = newRegistry(now, keysMax);
  await registry.load(async (after, limit) => rows.filter(({ id }) => id > after).slice(0, limit));
  return registry;
}

async function authOf(rows: readonly LiveKeyRow[], more: Partial<AuthSettings> = {}) {
  const authorise = createAuth({
    apiKey: ROOT,
    requireTenantHeader: true,
    protectDocs: false,
    keys: await loaded(rows),
    ...more,
  });
  /** The tenant, or the code of the refusal. */
  return (route: RouteId, headers: Headers): string => {
    try {
      return `as ${authorise({ header: (name) => headers[name] }, ROUTES[route]).tenant}`;
    } catch (error) {
      assert.ok(error instanceof EngineError);
      return error.code;
    }
  };
}

describe('the key of a request', () => {
  test('is looked for in x-api-key first, then as a bearer token, and nowhere else', async () => {
    const ask = await authOf([row('k')]);
    const tenant = { 'x-tenant-id': 'a' };
    for (const secret of [ROOT, 'k-secret']) {
      assert.equal(ask('instances.list', { ...tenant, 'x-api-key': secret }), 'as a');
      for (const scheme of ['Bearer', 'bearer', 'BEARER', 'Bearer ']) {
        const authorization = `${scheme} ${secret}`;
        assert.equal(ask('instances.list', { ...tenant, authorization }), 'as a');
      }
      const both = { 'x-api-key': 'wrong', authorization: `Bearer ${secret}` };
      assert.equal(ask('instances.list', { ...tenant, ...both }), 'ENG_UNAUTHENTICATED');
      const basic = { authorization: `Basic ${secret}` };
      assert.equal(ask('instances.list', { ...tenant, ...basic }), 'ENG_UNAUTHENTICATED');
    }
  });

  test('is refused when it is missing, empty, wrong, its own hash or its id', async () => {
    const ask = await authOf([row('k')]);
    for (const key of ['', ' ', 'wrong', sha256('k-secret'), 'k', 'k-secret ', 'K-SECRET']) {
      const headers = { 'x-api-key': key, 'x-tenant-id': 'a' };
      assert.equal(ask('instances.list', headers), 'ENG_UNAUTHENTICATED', key);
    }
    assert.equal(ask('instances.list', { 'x-tenant-id': 'a' }), 'ENG_UNAUTHENTICATED');
  });

  test('that was right is refused from its revocation, or its expiry, on', async () => {
    let now = NOW;
    const rows = [row('k'), row('l', { expires_at: '2030-01-01T00:00:01.000Z' })];
    const keys = await loaded(rows, () => now);
    const ask = await authOf([], { keys });
    const asks = (id: string) =>
      ask('instances.list', { 'x-api-key': `${id}-secret`, 'x-tenant-id': 'a' });
    assert.deepEqual(['k', 'k', 'l', 'l'].map(asks), ['as a', 'as a', 'as a', 'as a']);
    keys.remove('k');
    now = NOW + 1_000;
    assert.deepEqual(['k', 'l', 'k'].map(asks), Array(3).fill('ENG_UNAUTHENTICATED'));
    keys.reserve('m');
    keys.add(row('m', { secret_hash: sha256('k-secret'), tenant_id: 'b' }));
    const other = ask('instances.list', { 'x-api-key': 'k-secret', 'x-tenant-id': 'b' });
    assert.equal(other, 'as b', 'the same text is another key by now');
  });

  test('is found however many others were used meanwhile', async () => {
    const rows = Array.from({ length: 5_000 }, (_, number) => row(`k${10_000 + number}`));
    const ask = await authOf([], { keys: await loaded(rows, undefined, rows.length) });
    for (let round = 0; round < 2; round++) {
      for (const { id } of rows) {
        const headers = { 'x-api-key': `${id}-secret`, 'x-tenant-id': 'a' };
        assert.equal(ask('instances.list', headers), 'as a');
      }
    }
  });

  test('counts before the capability, the capability before the tenant', async () => {
    const ask = await authOf([row('k', { capabilities: '["worker"]' })]);
    assert.equal(ask('instances.list', { 'x-tenant-id': 'b' }), 'ENG_UNAUTHENTICATED');
    const key = { 'x-api-key': 'k-secret' };
    assert.equal(ask('instances.list', { ...key, 'x-tenant-id': 'b' }), 'ENG_FORBIDDEN');
    assert.equal(ask('instances.list', key), 'ENG_FORBIDDEN');
    assert.equal(ask('workers.list', key), 'ENG_VALIDATION');
    assert.equal(ask('workers.list', { ...key, 'x-tenant-id': 'a' }), 'as a');
  });

  test('is valid until its time; the very instant is too late', async () => {
    let now = NOW;
    const registry = await loaded(
      [row('k', { expires_at: '2030-01-01T00:00:01.000Z' })],
      () => now,
    );
    now = NOW + 999;
    assert.equal(registry.use(sha256('k-secret'))?.id, 'k');
    now = NOW + 1_000;
    assert.equal(registry.use(sha256('k-secret')), undefined);
    now = NOW;
    assert.equal(registry.use(sha256('k-secret')), undefined, 'it does not come back');
  });
});

describe('the tenant of a request', () => {
  const key = { 'x-api-key': 'k-secret' };
  const root = { 'x-api-key': ROOT };

  test('is that of the key, and a header that names another one is refused', async () => {
    const ask = await authOf([row('k')]);
    assert.equal(ask('instances.list', { ...key, 'x-tenant-id': ' a ' }), 'as a');
    for (const other of ['b', 'A', 'a,b']) {
      assert.equal(ask('instances.list', { ...key, 'x-tenant-id': other }), 'ENG_FORBIDDEN');
    }
  });

  test('A tenant-bound key must still send x-tenant-id while the header is required', async () => {
    const ask = await authOf([row('k')]);
    for (const tenant of [{}, { 'x-tenant-id': '' }, { 'x-tenant-id': '  ' }]) {
      assert.equal(ask('instances.list', { ...key, ...tenant }), 'ENG_VALIDATION');
      assert.equal(ask('instances.list', { ...root, ...tenant }), 'ENG_VALIDATION');
    }
  });

  test('is that of the key where the header may be left out; the root key spans all of them', async () => {
    const ask = await authOf([row('k')], { requireTenantHeader: false });
    assert.equal(ask('instances.list', key), 'as a');
    assert.equal(ask('instances.list', { ...key, 'x-tenant-id': 'b' }), 'ENG_FORBIDDEN');
    assert.equal(ask('instances.list', root), 'as ');
    assert.equal(ask('instances.list', { ...root, 'x-tenant-id': 'b' }), 'as b');
  });

  test('of a batch is that of the key, with or without a header', async () => {
    const ask = await authOf([row('k')]);
    assert.equal(ask('instances.createBatch', key), 'as a');
    assert.equal(ask('instances.createBatch', { ...key, 'x-tenant-id': 'b' }), 'ENG_FORBIDDEN');
    assert.equal(ask('instances.createBatch', root), 'as ');
  });

  test('The key when auth is on, never a tenant', async () => {
    const ask = await authOf([row('k'), row('w', { capabilities: '["worker"]' })]);
    assert.equal(ask('metrics', root), 'as ');
    assert.equal(ask('metrics', { ...root, 'x-tenant-id': 'b' }), 'as ');
    assert.equal(ask('metrics', key), 'as a');
    assert.equal(ask('metrics', { ...key, 'x-tenant-id': 'b' }), 'as a');
    assert.equal(ask('metrics', { 'x-api-key': 'w-secret' }), 'ENG_FORBIDDEN');
    assert.equal(ask('metrics', {}), 'ENG_UNAUTHENTICATED');
  });
});

describe('the capabilities of a key', () => {
  test('add up, and repeated or unknown ones add nothing', () => {
    assert.equal(capabilityBits(['worker', 'worker']), capabilityBits(['worker']));
    assert.equal(capabilityBits(['root' as 'worker']), 0);
    const all = capabilityBits(CAPABILITIES);
    assert.equal(all, 2 ** CAPABILITIES.length - 1);
  });

  test('a key with none that is known may do nothing', async () => {
    const ask = await authOf([row('k', { capabilities: '["something-newer"]' })]);
    for (const route of ['instances.list', 'metrics', 'apiKeys.list'] as const) {
      const headers = { 'x-api-key': 'k-secret', 'x-tenant-id': 'a' };
      assert.equal(ask(route, headers), 'ENG_FORBIDDEN', route);
    }
  });

  test('no set of them opens what is the root key’s', async () => {
    const ask = await authOf([row('k', { capabilities: JSON.stringify(CAPABILITIES) })]);
    const rootOnly = Object.values(ROUTES).filter(({ capability }) => capability.length === 0);
    assert.ok(rootOnly.length > 3);
    for (const { id } of rootOnly) {
      assert.equal(ask(id, { 'x-api-key': 'k-secret', 'x-tenant-id': 'a' }), 'ENG_FORBIDDEN', id);
      assert.equal(ask(id, { 'x-api-key': ROOT }), 'as ', id);
    }
  });

  test('are planned for paths that have no route yet', () => {
    assert.deepEqual(capabilitiesFor('POST', '/mobile/devices'), ['operator', 'device']);
    assert.deepEqual(capabilitiesFor('POST', '/plugins'), ['operator', 'publisher']);
    assert.deepEqual(capabilitiesFor('POST', '/releases/{id}/canary'), ['operator', 'publisher']);
    assert.deepEqual(capabilitiesFor('GET', '/approvals'), ['operator', 'approver', 'auditor']);
    for (const path of ['/cluster/nodes', '/workers/commands', '/workers/{id}/commands']) {
      assert.deepEqual(capabilitiesFor('GET', path), [], path);
    }
    assert.deepEqual(capabilitiesFor('GET', '/workers/version-pins'), []);
    assert.deepEqual(capabilitiesFor('POST', '/handlers/x'), ['operator']);
  });
});

describe('ENGINE_PROTECT_DOCS puts the document behind key and tenant', () => {
  test('the document asks for both only when it is protected, and the page never does', async () => {
    const rows = [row('k'), row('w', { capabilities: '["worker"]' })];
    const open = await authOf(rows);
    assert.equal(open('docs.openapi', {}), 'as ');
    const ask = await authOf(rows, { protectDocs: true });
    assert.equal(ask('docs.openapi', {}), 'ENG_UNAUTHENTICATED');
    assert.equal(ask('docs.openapi', { 'x-api-key': ROOT }), 'ENG_VALIDATION');
    assert.equal(ask('docs.openapi', { 'x-api-key': ROOT, 'x-tenant-id': 'b' }), 'as b');
    assert.equal(ask('docs.openapi', { 'x-api-key': 'k-secret', 'x-tenant-id': 'a' }), 'as a');
    const worker = { 'x-api-key': 'w-secret', 'x-tenant-id': 'a' };
    assert.equal(ask('docs.openapi', worker), 'ENG_FORBIDDEN');
    for (const page of ['docs.ui', 'docs.asset', 'health.ready', 'info'] as const) {
      assert.equal(ask(page, { 'x-api-key': 'wrong' }), 'as ', page);
    }
  });
});

test('No key check, any Authorization is ignored; tenant header still required', async () => {
  const ask = await authOf([row('k')], { apiKey: undefined });
  const headers = { authorization: 'Bearer nonsense', 'x-api-key': 'k-secret' };
  assert.equal(ask('instances.list', { ...headers, 'x-tenant-id': 'b' }), 'as b');
  assert.equal(ask('instances.list', headers), 'ENG_VALIDATION');
  assert.equal(ask('apiKeys.list', headers), 'as ');
});

describe('the registry', () => {
  test('is loaded in pages, without what has expired', async () => {
    const rows = Array.from({ length: 12_345 }, (_, at) =>
      row(`k${String(at).padStart(6, '0')}`, {
        expires_at: at % 5 === 0 ? '2029-12-31T23:59:59.999Z' : null,
      }),
    );
    const registry = await loaded(rows, () => NOW, 100_000);
    assert.equal(registry.size, 12_345 - 2_469);
    assert.equal(registry.use(sha256('k012344-secret'))?.id, 'k012344');
    assert.equal(registry.use(sha256('k012340-secret')), undefined);
  });

  test('answers 503 with the engine’s own reason until it is loaded, and the root key all the same', () => {
    const standby = unavailable('ENG_STANDBY', 'a standby');
    const keys = new KeyRegistry({ now: () => NOW, keysMax: 1, refusal: () => standby });
    const settings = { apiKey: ROOT, requireTenantHeader: true, protectDocs: false, keys };
    const authorise = createAuth(settings);
    const ask = (key: string) =>
      authorise({ header: (name) => (name === 'x-api-key' ? key : 'a') }, ROUTES['instances.list']);
    assert.throws(() => ask('k-secret'), standby);
    assert.equal(ask(ROOT).tenant, 'a');
    assert.throws(() => newRegistry().use('x'), { code: 'ENG_STARTING' });
  });

  test('refuses a removed key from then on, and removes it once', async () => {
    const registry = await loaded([row('k'), row('l')]);
    assert.equal(registry.remove('k')?.id, 'k');
    assert.equal(registry.use(sha256('k-secret')), undefined);
    assert.equal(registry.remove('k'), undefined);
    assert.equal(registry.use(sha256('l-secret'))?.id, 'l');
  });

  test('takes no more keys than its limit, counts those under way, and lets expired ones make room', async () => {
    let now = NOW;
    const soon = row('soon', { expires_at: '2030-01-01T00:00:01.000Z' });
    const registry = await loaded([row('k'), soon], () => now, 3);
    registry.reserve('l');
    const refusal = { code: 'ENG_CONFLICT', message: /there are 3 keys/ };
    assert.throws(() => registry.reserve('m'), refusal);
    registry.release('l');
    registry.reserve('l');
    registry.add(row('l'));
    registry.release('l');
    assert.throws(() => registry.reserve('m'), refusal);
    now = NOW + 1_000;
    registry.reserve('m');
    assert.equal(registry.size, 2);
  });

  test('does not take a key that was revoked while it was being stored', async () => {
    const registry = await loaded([]);
    registry.reserve('k');
    assert.equal(registry.remove('k'), undefined);
    registry.add(row('k'));
    assert.equal(registry.use(sha256('k-secret')), undefined);
    assert.equal(registry.size, 0);
  });

  test('notes uses once, again when they could not be stored, and never those of a removed key', async () => {
    const registry = await loaded([row('k'), row('l')]);
    for (let count = 0; count < 3; count++) registry.use(sha256('k-secret'));
    registry.use(sha256('l-secret'));
    const used = registry.takeUsed();
    assert.deepEqual(
      used.map(({ id, lastUsedAt }) => [id, lastUsedAt]),
      [
        ['k', NOW],
        ['l', NOW],
      ],
    );
    assert.deepEqual(registry.takeUsed(), []);
    registry.remove('k');
    registry.usedStill(used);
    assert.deepEqual(column(registry.takeUsed(), 'id'), ['l']);
    assert.equal(registry.lastUsedAt('l'), NOW);
  });
});
