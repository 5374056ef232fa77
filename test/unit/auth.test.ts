/** Who is let in: keys, capabilities, tenants, the registry, and how keys change and are revoked. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { beforeEach, describe, test } from 'node:test';
import { pino } from 'pino';
import type { KeyState } from '../../actors/catalog/front/api-keys.js';
import { KeyOperations } from '../../actors/catalog/front/api-keys.js';
import type { KeyUse } from '../../actors/catalog/front-rows.js';
import type { KeyMinted } from '../../schema/api-key.js';
import { ROUTES, type RouteId } from '../../schema/routes.js';
import { EngineError, UNKNOWN_OUTCOME, unavailable } from '../../src/base/errors.js';
import { wrongCell } from '../../src/cluster/placement.js';
import { type AuthSettings, createAuth } from '../../src/http/auth.js';
import type { LiveKeyRow } from '../../src/http/key-registry.js';
import { KeyRegistry } from '../../src/http/key-registry.js';
import type { FrontDeps } from '../../src/http/operation.js';
import type { HttpReply } from '../../src/http/server.js';
import { frontCall } from '../helpers/front-call.js';
import { HandClock } from '../helpers/hand-clock.js';
import { NotedExchange } from '../helpers/noted-exchange.js';

const ROOT = 'the-root-key';
const NOW = Date.UTC(2030, 0, 1);

type Headers = Readonly<Record<string, string>>;

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

const secretOf = (id: string) => ({ 'x-api-key': `${id}-secret` });

/** The key `<id>-secret` of the tenant `a`. */
function row(id: string, more: Partial<LiveKeyRow> = {}): LiveKeyRow {
  return {
    id,
    tenant_id: 'a',
    name: id,
    capabilities: '["operator"]',
    groups: '',
    secret_hash: sha256(`${id}-secret`),
    expires_at: null,
    last_used_at: null,
    ...more,
  };
}

const newRegistry = (now = () => NOW, keysMax = 100): KeyRegistry =>
  new KeyRegistry({ now, keysMax, refusal: () => undefined });

async function loaded(rows: readonly LiveKeyRow[], now = () => NOW, keysMax = 100) {
  const registry = newRegistry(now, keysMax);
  await registry.load(async (after, limit) => rows.filter(({ id }) => id > after).slice(0, limit));
  return registry;
}

async function authOf(rows: readonly LiveKeyRow[], more: Partial<AuthSettings> = {}) {
  const settings = { apiKey: ROOT, requireTenantHeader: true, protectDocs: false };
  const authorise = createAuth({ ...settings, keys: await loaded(rows), ...more });
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
    const asks = (id: string) => ask('instances.list', { ...secretOf(id), 'x-tenant-id': 'a' });
    assert.deepEqual(['k', 'k', 'l', 'l'].map(asks), ['as a', 'as a', 'as a', 'as a']);
    keys.remove('k');
    now = NOW + 1_000;
    assert.deepEqual(['k', 'l', 'k'].map(asks), Array(3).fill('ENG_UNAUTHENTICATED'));
    keys.reserve('m');
    keys.add(row('m', { secret_hash: sha256('k-secret'), tenant_id: 'b' }));
    const other = ask('instances.list', { ...secretOf('k'), 'x-tenant-id': 'b' });
    assert.equal(other, 'as b', 'the same text is another key by now');
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
});

describe('the tenant of a request', () => {
  const key = { 'x-api-key': 'k-secret' };
  const root = { 'x-api-key': ROOT };

  test('is that of the key, and a header that names another one is refused', async () => {
    const ask = await authOf([row('k')]);
    assert.equal(ask('instances.list', { ...key, 'x-tenant-id': ' a\t' }), 'as a');
    // What is no space or tab is a part of the name, as in a body.
    for (const other of ['b', 'A', 'a,b', '\u00a0a', 'a\u3000', 'a\ufeff', '😀'.repeat(255)]) {
      assert.equal(ask('instances.list', { ...key, 'x-tenant-id': other }), 'ENG_FORBIDDEN');
    }
  });

  test('A tenant key must send x-tenant-id while the header is required', async () => {
    const ask = await authOf([row('k')]);
    for (const tenant of [
      {},
      ...['', '  ', '\u00a0', '..', '😀'.repeat(256)].map((id) => ({ 'x-tenant-id': id })),
    ]) {
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

  test('With authentication /metrics needs a key, and ignores the tenant header', async () => {
    const ask = await authOf([row('k'), row('w', { capabilities: '["worker"]' })]);
    assert.equal(ask('metrics', root), 'as ');
    assert.equal(ask('metrics', { ...root, 'x-tenant-id': 'b' }), 'as ');
    assert.equal(ask('metrics', key), 'as a');
    assert.equal(ask('metrics', { ...key, 'x-tenant-id': 'b' }), 'as a');
    assert.equal(ask('metrics', { 'x-api-key': 'w-secret' }), 'ENG_FORBIDDEN');
    assert.equal(ask('metrics', {}), 'ENG_UNAUTHENTICATED');
  });
});

test('a key with no capability that is known may do nothing', async () => {
  const ask = await authOf([row('k', { capabilities: '["something-newer"]' })]);
  for (const route of ['instances.list', 'metrics', 'apiKeys.list'] as const) {
    const headers = { 'x-api-key': 'k-secret', 'x-tenant-id': 'a' };
    assert.equal(ask(route, headers), 'ENG_FORBIDDEN', route);
  }
});

test('ENGINE_PROTECT_DOCS requires key and tenant for the document', async () => {
  const rows = [row('k'), row('w', { capabilities: '["worker"]' })];
  const open = await authOf(rows);
  assert.equal(open('docs.openapi', {}), 'as ');
  const ask = await authOf(rows, { protectDocs: true });
  const root = { 'x-api-key': ROOT };
  for (const [headers, expected] of [
    [{}, 'ENG_UNAUTHENTICATED'],
    [root, 'ENG_VALIDATION'],
    [{ ...root, 'x-tenant-id': 'b' }, 'as b'],
    [{ ...secretOf('k'), 'x-tenant-id': 'a' }, 'as a'],
    [{ ...secretOf('w'), 'x-tenant-id': 'a' }, 'ENG_FORBIDDEN'],
  ] as const) {
    assert.equal(ask('docs.openapi', headers), expected);
  }
  for (const page of ['docs.ui', 'docs.asset', 'health.ready', 'info'] as const) {
    assert.equal(ask(page, { 'x-api-key': 'wrong' }), 'as ', page);
  }
});

test('Without authentication any key is ignored, and the tenant header is still required', async () => {
  const ask = await authOf([row('k')], { apiKey: undefined });
  const headers = { authorization: 'Bearer nonsense', 'x-api-key': 'k-secret' };
  assert.equal(ask('instances.list', { ...headers, 'x-tenant-id': 'b' }), 'as b');
  assert.equal(ask('instances.list', headers), 'ENG_VALIDATION');
  assert.equal(ask('apiKeys.list', headers), 'as ');
});

describe('the registry', () => {
  test('is loaded in pages, without what has expired', async () => {
    const rows = Array.from({ length: 12_345 }, (_, at) => {
      const expires_at = at % 5 === 0 ? '2029-12-31T23:59:59.999Z' : null;
      return row(`k${String(at).padStart(6, '0')}`, { expires_at });
    });
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
    assert.deepEqual([registry.use(sha256('k-secret')), registry.size], [undefined, 0]);
  });
});

const MINUTE_MS = 60_000;

type Asked = { readonly operation: string; readonly body: unknown };

async function newWorld(keysMax = 10) {
  const clock = new HandClock(NOW);
  const { now } = clock;
  const asked: Asked[] = [];
  /** How the shard answers the next questions: an error, or a success when there is none left. */
  const failures: (EngineError | undefined)[] = [];
  const states = new Map<string, KeyState>();
  const registry = new KeyRegistry({ now, keysMax, refusal: () => undefined });
  await registry.load(async () => []);
  const keys = new KeyOperations({
    registry,
    clock,
    log: pino({ level: 'silent' }),
    client: {
      ask: async (_shard, operation, _tenant, _target, body) => {
        asked.push({ operation, body });
        const failure = failures.shift();
        if (failure !== undefined) throw failure;
        return { status: 204, body: '' };
      },
    },
  });
  const reads = {
    rows: async ({ values: [id] }: { values: readonly unknown[] }) => {
      const state = states.get(id as string);
      return state === undefined ? [] : [state];
    },
  };
  const admission: { refusal?: EngineError } = {};
  const admitTenant = () => {
    if (admission.refusal !== undefined) throw admission.refusal;
  };
  const front = { now, reads, admitTenant } as unknown as FrontDeps;
  return {
    registry,
    asked,
    admission,
    failures,
    states,
    keys,
    clock,
    /** How often a revocation was asked for. */
    tries: () => asked.filter(({ operation }) => operation === 'keys.revoke').length,
    mint: async (more: object = {}): Promise<KeyMinted> => {
      const body = { tenant_id: 'a', capabilities: ['operator'], ...more };
      const call = frontCall('apiKeys.mint', { bodyText: JSON.stringify(body) });
      const reply = await keys.operations['apiKeys.mint'](front, call);
      return JSON.parse(String(reply?.body)) as KeyMinted;
    },
    revoke: async (id: string) => {
      const call = frontCall('apiKeys.revoke', { params: { id } });
      return (await keys.operations['apiKeys.revoke'](front, call))?.status;
    },
    use: ({ secret }: KeyMinted) =>
      registry.use(createHash('sha256').update(secret).digest('hex'))?.id,
    /** Runs the timers that are due by then, and what follows from them. */
    pass: async (ms: number) => {
      clock.pass(ms);
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

let world: Awaited<ReturnType<typeof newWorld>>;
beforeEach(async () => {
  world = await newWorld();
});

test('a key is valid once its row is stored, which holds no part of its secret', async () => {
  const key = await world.mint();
  assert.equal(world.use(key), key.id);
  assert.ok(!JSON.stringify(world.asked).includes(key.secret.slice(3, 12)), 'only its hash');
  world.failures.push(UNKNOWN_OUTCOME);
  await assert.rejects(world.mint(), { code: 'ENG_DATABASE_DOWN' });
  assert.equal(world.registry.size, 1);
});

test('a key is refused from the moment its revocation is taken up', async () => {
  const key = await world.mint();
  const revoked = world.revoke(key.id);
  assert.equal(world.use(key), undefined);
  assert.equal(await revoked, 204);
});

test('a revocation whose outcome is unknown is told so, stays in force and is carried through', async () => {
  const key = await world.mint();
  world.failures.push(UNKNOWN_OUTCOME, UNKNOWN_OUTCOME);
  await assert.rejects(world.revoke(key.id), { code: 'ENG_DATABASE_DOWN' });
  assert.deepEqual([world.use(key), world.tries()], [undefined, 1]);
  await world.pass(1_000);
  assert.equal(world.tries(), 2);
  await world.pass(1_000);
  assert.equal(world.tries(), 3);
  await world.pass(10_000);
  assert.equal(world.tries(), 3, 'it went through, and is not asked for again');
  assert.equal(world.use(key), undefined);
});

test('a revocation is not tried again where its tenant has left, which would leave the key in force', async () => {
  const key = await world.mint();
  world.failures.push(UNKNOWN_OUTCOME);
  await assert.rejects(world.revoke(key.id), { code: 'ENG_DATABASE_DOWN' });
  world.admission.refusal = unavailable('ENG_TENANT_MOVING', 'is being moved');
  await world.pass(1_000);
  assert.equal(world.tries(), 1);
  delete world.admission.refusal;
  await world.pass(1_000);
  assert.equal(world.tries(), 2, 'it stays');
  const other = await world.mint();
  world.failures.push(UNKNOWN_OUTCOME);
  await assert.rejects(world.revoke(other.id), { code: 'ENG_DATABASE_DOWN' });
  world.admission.refusal = wrongCell('west', 'east');
  await world.pass(10_000);
  delete world.admission.refusal;
  await world.pass(10_000);
  assert.equal(world.tries(), 3);
});

test('revoking again what was revoked, or never known, does as the table says', async () => {
  const last_used_at = '2029-01-01T00:00:00.000Z';
  world.states.set('ak_revoked', { tenant_id: 'a', name: '', revoked: true, last_used_at: null });
  world.states.set('ak_expired', { tenant_id: 'a', name: '', revoked: false, last_used_at });
  assert.equal(await world.revoke('ak_revoked'), 204);
  assert.deepEqual(world.asked, []);
  assert.equal(await world.revoke('ak_expired'), 204);
  const body: KeyUse = { id: 'ak_expired', last_used_at };
  assert.deepEqual(world.asked, [{ operation: 'keys.revoke', body }]);
  await assert.rejects(world.revoke('ak_unknown'), { code: 'ENG_NOT_FOUND' });
});

test('uses are stored once a minute, all together, and again when that failed', async () => {
  const [a, b] = [await world.mint(), await world.mint()];
  const stored = () =>
    world.asked.filter(({ operation }) => operation === 'keys.used').map(({ body }) => body);
  for (let count = 0; count < 5; count++) world.use(a);
  world.use(b);
  assert.deepEqual(stored(), []);
  world.failures.push(UNKNOWN_OUTCOME);
  const last_used_at = new Date(NOW).toISOString();
  const both = [a, b].map(({ id }) => ({ id, last_used_at }));
  await world.pass(MINUTE_MS);
  assert.deepEqual(stored(), [both]);
  await world.pass(MINUTE_MS);
  assert.deepEqual(stored(), [both, both]);
  await world.pass(MINUTE_MS);
  assert.equal(stored().length, 2, 'nothing was used since');
});

test('a use that was noted before a revocation does not undo it', async () => {
  const key = await world.mint();
  world.use(key);
  await world.revoke(key.id);
  await world.pass(MINUTE_MS);
  const operations = world.asked.map(({ operation }) => operation);
  assert.deepEqual(operations, ['keys.insert', 'keys.revoke']);
  assert.deepEqual(world.asked[1]?.body, { id: key.id, last_used_at: new Date(NOW).toISOString() });
});

const REFUSAL: HttpReply = { status: 401, body: '{}' };

/** An exchange that notes what is done to it, bound to the key `k`, which expires in a second. */
async function newExchange() {
  let now = NOW;
  const registry = new KeyRegistry({ now: () => now, keysMax: 10, refusal: () => undefined });
  await registry.load(async () => []);
  registry.reserve('k');
  registry.add({
    ...{ id: 'k', name: 'k', tenant_id: 'a', capabilities: '["operator"]', secret_hash: 'digest' },
    ...{ groups: '', expires_at: '2030-01-01T00:00:01.000Z', last_used_at: null },
  });
  const key = registry.use('digest');
  assert.ok(key !== undefined);
  const exchange = new NotedExchange();
  exchange.onEnd(registry.whenGone(key, () => exchange.end(REFUSAL)));
  const { seen } = exchange;
  exchange.onAbort(() => seen.push('aborted'));
  return {
    registry,
    key,
    seen,
    exchange,
    pass: (ms: number) => {
      now += ms;
    },
  };
}

const HEAD = { status: 200, contentType: 'text/event-stream' };

test('what is not answered yet is refused when the key is revoked, once and for good', async () => {
  const { registry, seen, exchange } = await newExchange();
  registry.remove('k');
  assert.deepEqual(seen, ['reply 401', 'aborted']);
  assert.equal(exchange.aborted, true);
  exchange.reply({ status: 200, body: '{}' });
  assert.equal(exchange.stream(HEAD).write('x'), false);
  exchange.onAbort(() => seen.push('late'));
  assert.deepEqual(seen, ['reply 401', 'aborted', 'late']);
});

test('a stream ends when the key is revoked, and swallows what its producer still writes', async () => {
  const { registry, seen, exchange } = await newExchange();
  const body = exchange.stream(HEAD);
  assert.equal(body.write('a'), true);
  registry.remove('k');
  assert.equal(body.write('b'), false);
  body.end();
  assert.deepEqual(seen, ['write a', 'end', 'aborted']);
});

test('a stream ends when its key is found to have expired', async () => {
  const { registry, seen, exchange, pass } = await newExchange();
  exchange.stream(HEAD);
  pass(999);
  registry.dropExpired();
  assert.deepEqual(seen, []);
  pass(1);
  registry.dropExpired();
  assert.deepEqual(seen, ['end', 'aborted']);
});

test('a stream that has ended, or whose client went away, holds nothing', async () => {
  for (const how of ['ended', 'left'] as const) {
    const { key, exchange } = await newExchange();
    const body = exchange.stream(HEAD);
    assert.equal(key.bound?.size, 1);
    if (how === 'ended') body.end();
    else exchange.abort();
    assert.equal(key.bound?.size, 0, how);
  }
});

test('a key that is gone already ends the exchange at once', async () => {
  const { registry, key } = await newExchange();
  registry.remove('k');
  const exchange = new NotedExchange();
  exchange.onEnd(registry.whenGone(key, () => exchange.end(REFUSAL)));
  assert.equal(exchange.aborted, true);
  assert.deepEqual(exchange.seen, ['reply 401']);
});
