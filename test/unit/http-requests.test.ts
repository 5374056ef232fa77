/**
 * Requests as they come in: heads, bodies, ids, who is answered at all, and pages of lists.
 *
 * Cost: 2 s, since it loads the operations of every route.
 */

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import fc from 'fast-check';
import { EngineError } from '../../src/base/errors.js';
import { LIMITS } from '../../src/base/limits.js';
import { realClock } from '../../src/base/real-clock.js';
import type { PlaceKey, PlaceKeyType } from '../../src/core/page-cursor.js';
import { pageCursor, placeIn } from '../../src/core/page-cursor.js';
import type { Page } from '../../src/db/reads/reader.js';
import { type InsecureSettings, insecureGuard } from '../../src/http/insecure-guard.js';
import { tenantsIn, tenantsQueried } from '../../src/http/named-tenants.js';
import { pageReply } from '../../src/http/operation.js';
import { corsPolicy } from '../../src/http/reply.js';
import {
  BodyBudget,
  BodyDeadlines,
  BodyReader,
  type BodyReaderOptions,
  DISCARD_BYTES_MAX,
} from '../../src/http/request-body.js';
import { newRequestId, RequestHead, requestIdFrom } from '../../src/http/request-head.js';
import { RefusalThrottle } from '../../src/http/request-watch.js';
import { readConfig } from '../../src/server/config.js';
import { Gate } from '../../src/server/gate.js';
import { frontCall } from '../helpers/front-call.js';
import { check } from '../helpers/properties.js';

const LISTED = 'https://a.example';

const headersIn = (headers: readonly (readonly [string, string])[]) => Object.fromEntries(headers);

test('an origin of the list is named in the reply, and caches are told; it is compared exactly', () => {
  const cors = corsPolicy([LISTED, 'https://b.example']);
  const headers = headersIn(cors.replyHeaders(LISTED));
  assert.equal(headers['access-control-allow-origin'], LISTED);
  assert.match(headers['access-control-expose-headers'] ?? '', /x-request-id/);
  assert.equal(headers.vary, 'Origin');
  const other = ['https://LISTED.example', 'http://a.example', 'null'];
  for (const origin of [...other, `${LISTED}:443`, `${LISTED}.evil`]) {
    assert.deepEqual(cors.replyHeaders(origin), [['vary', 'Origin']]);
    assert.deepEqual(cors.preflightHeaders(origin), []);
  }
});

test('without origins no reply has a CORS header; * allows all, with one reply for all of them', () => {
  const none = corsPolicy([]);
  assert.deepEqual([none.replyHeaders(LISTED), none.preflightHeaders(LISTED)], [[], []]);
  const all = corsPolicy(['*']);
  const headers = headersIn(all.replyHeaders('https://any.example'));
  assert.deepEqual([headers['access-control-allow-origin'], headers.vary], ['*', undefined]);
  assert.notDeepEqual(all.preflightHeaders('https://any.example'), []);
});

function serving() {
  let now = 1_000;
  const gate = new Gate({ ...realClock, monotonic: () => now });
  gate.times = { confirmedAt: now, trustedUntil: now + 6_000 };
  gate.set('serving');
  const pass = (ms: number) => {
    now += ms;
  };
  return { gate, pass };
}

const codes = (gate: Gate) => [gate.unreadiness()?.code, gate.refusal()?.code];

test('a database that has been silent for too long makes the engine unready, and refuses nothing', () => {
  const { gate, pass } = serving();
  pass(LIMITS.databaseSilenceMs);
  assert.deepEqual([codes(gate), gate.isDatabaseUp], [[undefined, undefined], true]);
  pass(1);
  assert.deepEqual([codes(gate), gate.isDatabaseUp], [['ENG_DATABASE_DOWN', undefined], false]);
});

test('after a pause longer than the lease nothing is answered until the lease was looked at', () => {
  for (const state of ['serving', 'database-unavailable'] as const) {
    const { gate, pass } = serving();
    gate.set(state);
    pass(6_000);
    assert.equal(gate.state, state);
    pass(1);
    assert.equal(gate.state, 'paused');
    assert.deepEqual(codes(gate), ['ENG_STANDBY', 'ENG_STANDBY']);
    gate.times = { confirmedAt: 7_001, trustedUntil: 13_000 };
    assert.equal(gate.state, state);
  }
});

test('a thread that is being replaced makes the engine unready, and refuses nothing', () => {
  const { gate } = serving();
  gate.isComplete = false;
  assert.deepEqual(codes(gate), ['ENG_SHARD_RESTARTING', undefined]);
});

const deadlines = new BodyDeadlines(60_000);
after(() => deadlines.stop());

function reader(options: Partial<BodyReaderOptions> = {}) {
  const seen: { body?: Buffer; status?: number } = {};
  const made = new BodyReader({
    maxBodyBytes: 10,
    contentLength: undefined,
    mustCopy: false,
    refusal: undefined,
    budget: new BodyBudget(100),
    deadlines,
    owner: {
      complete: (body) => {
        seen.body = body;
      },
      refuse: ({ status }) => {
        seen.status = status;
      },
    },
    ...options,
  });
  return { made, seen };
}

test('a body beyond the limit is read to its end before it is refused, and cut off if it has none', () => {
  const ending = reader();
  ending.made.push(Buffer.alloc(11), false);
  assert.equal(ending.seen.status, undefined);
  ending.made.push(Buffer.alloc(1_000), true);
  assert.deepEqual(ending.seen, { status: 413 });
  const endless = reader();
  endless.made.push(Buffer.alloc(DISCARD_BYTES_MAX), false);
  assert.equal(endless.seen.status, undefined);
  endless.made.push(Buffer.alloc(11), false);
  assert.deepEqual([endless.seen.status, endless.made.isOver], [413, true]);
});

test('a body that finds no memory is a 503; it is given back when one is complete, refused or cancelled', () => {
  const budget = new BodyBudget(10);
  const ends: ((made: BodyReader) => void)[] = [
    (made) => made.push(Buffer.alloc(1), true),
    (made) => made.push(Buffer.alloc(9), true),
    (made) => made.cancel(),
    (made) => made.tick(0, 0),
  ];
  for (const end of ends) {
    const { made } = reader({ budget });
    made.push(Buffer.alloc(9), false);
    assert.equal(budget.take(2), false);
    end(made);
    assert.equal(budget.take(10), true);
    budget.give(10);
  }
  const { made, seen } = reader({ budget: new BodyBudget(3) });
  for (const isLast of [false, true]) made.push(Buffer.from('ab'), isLast);
  assert.equal(seen.status, 503);
});

test('idle ticks in a row, or all ticks together, end a body with 408', () => {
  const idle = reader();
  idle.made.tick(1, 100);
  idle.made.push(Buffer.alloc(1), false);
  idle.made.tick(1, 100);
  assert.equal(idle.seen.status, undefined);
  idle.made.tick(1, 100);
  assert.equal(idle.seen.status, 408);

  const trickling = reader();
  for (let i = 0; i < 3; i += 1) {
    trickling.made.push(Buffer.alloc(1), false);
    trickling.made.tick(100, 2);
  }
  assert.equal(trickling.seen.status, 408);
});

test('nothing is reported after a cancel', () => {
  const { made, seen } = reader();
  made.push(Buffer.from('a'), false);
  made.cancel();
  made.push(Buffer.from('b'), true);
  made.cancel();
  assert.deepEqual(seen, {});
});

const HEAD_LIMITS = { maxBodyBytes: 100, maxHeaderBytes: 1_000 };

function headOf(headers: string, target = '/') {
  const made = new RequestHead('POST', target, '');
  made.add('host', 'h');
  for (const line of headers.split('|').filter((text) => text !== '')) {
    const [name = '', value = ''] = line.split(/:(.*)/s);
    made.add(name, value);
  }
  return { made, refusal: made.settle(HEAD_LIMITS, () => 'fresh') };
}

test('what says who calls, or where the request ends, may come once only', () => {
  for (const name of ['content-length', 'host', 'authorization', 'x-api-key', 'x-tenant-id']) {
    const { refusal } = headOf(`${name}:1|${name}:1`);
    assert.equal(refusal?.status, 400, name);
    assert.match(refusal?.message ?? '', /^invalid argument: /);
  }
  const { made, refusal } = headOf('accept:a|accept:b');
  assert.deepEqual([refusal, made.header('accept')], [undefined, 'a'], 'others count by the first');
});

const fresh = () => 'fresh';

test('whatever is sent, the id is safe to log and to echo', (t) => {
  check(t, 100, fc.string({ unit: 'binary', maxLength: 300 }), (sent) => {
    assert.match(requestIdFrom(sent, fresh), /^[A-Za-z0-9_-]{1,128}$/);
  });
});

test('a new id is a random UUID of version 4, and no two are alike', () => {
  const ids = Array.from({ length: 2_000 }, newRequestId);
  const form = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
  assert.equal(new Set(ids.filter((id) => form.test(id))).size, ids.length);
});

const HERE: InsecureSettings = { isAnywhere: false, corsOrigins: [] };
const ANYWHERE: InsecureSettings = { isAnywhere: true, corsOrigins: [] };

/** The status that it is refused with; 0: it is not. */
function statusOf(
  settings: InsecureSettings,
  headers: Readonly<Record<string, string>>,
  body = '',
): number {
  try {
    insecureGuard(settings)({ header: (name) => headers[name], body: Buffer.from(body) });
    return 0;
  } catch (error) {
    assert.ok(error instanceof EngineError);
    return error.status;
  }
}

describe('without keys', () => {
  test('names of this machine and its pages are served, others only if requests may come from anywhere', () => {
    const served = ['localhost', 'a.localhost:80', '127.0.0.1:8080', '127.9.9.9', '[::1]:8080'];
    const refused = ['evil.example', 'localhost.evil.example', '127.0.0.1.nip.io', '10.0.0.1:80'];
    for (const host of [...served, ...refused, '']) {
      assert.equal(statusOf(HERE, { host }), served.includes(host) ? 0 : 403, host);
      assert.equal(statusOf(ANYWHERE, { host }), 0, host);
    }
    for (const [origin, here, anywhere] of [
      ['http://localhost:3000', 0, 0],
      ['http://127.0.0.1:8080', 0, 0],
      ['https://evil.example', 403, 403],
      ['http://localhost.evil.example', 403, 403],
      ['null', 403, 403],
      ['http://engine:8080', 403, 0],
    ] as const) {
      assert.equal(statusOf(HERE, { host: 'localhost:8080', origin }), here, origin);
      assert.equal(statusOf(ANYWHERE, { host: 'engine:8080', origin }), anywhere, origin);
    }
  });

  test('origins that are named may call', () => {
    const settings = { isAnywhere: false, corsOrigins: ['https://ui.example'] };
    assert.equal(statusOf(settings, { host: 'localhost', origin: 'https://ui.example' }), 0);
    assert.equal(statusOf(settings, { host: 'localhost', origin: 'https://ui.example.evil' }), 403);
  });

  test('a body is read only if it is declared as JSON, and a request without one needs no type', () => {
    const status = (type: string) => [
      statusOf(HERE, { host: 'localhost', 'content-type': type }, '{}'),
      statusOf(ANYWHERE, { host: 'localhost', 'content-type': type }, '{}'),
    ];
    for (const type of ['application/json', 'Application/JSON; charset=utf-8']) {
      assert.deepEqual(status(type), [0, 0], type);
    }
    for (const type of [
      ...['application/jsonp', 'text/plain', 'text/plain; application/json', ''],
      ...['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'],
    ]) {
      assert.deepEqual(status(type), [400, 400], type);
    }
    assert.equal(statusOf(HERE, { host: 'localhost' }), 0);
  });

  test('other addresses than those of this machine are listened on only if that is said', () => {
    for (const address of ['0.0.0.0:8080', '[::]:8080', '10.0.0.1:8080']) {
      const env = { ENGINE_HTTP_ADDR: address };
      assert.throws(() => readConfig(env, ['--insecure-auth']), /--insecure-auth-anywhere/);
      assert.equal(readConfig(env, ['--insecure-auth-anywhere']).insecureAuth, true);
    }
  });
});

test('each tenant of a body, of its items or of a query is named once, and what no tenant can be called is none', () => {
  assert.deepEqual(tenantsIn({ tenant_id: 'a', name: 'k' }), ['a']);
  const instances = [{ tenant_id: 'a' }, { tenant_id: 'b' }, { tenant_id: 'a' }, {}, 5];
  assert.deepEqual(tenantsIn({ instances }), ['a', 'b']);
  assert.deepEqual(tenantsIn({ events: [{ tenant_id: 'c' }] }), ['c']);
  assert.deepEqual(tenantsIn({ tenant_id: 5, instances: 'none' }), []);
  assert.deepEqual(tenantsIn([]), []);
  assert.deepEqual(tenantsQueried('limit=5&tenant_id=a%20b&tenant_id=c'), ['a b', 'c']);
  assert.deepEqual(tenantsQueried('tenant_id=%00&tenant_id='), []);
  const longest = 'n'.repeat(255);
  assert.deepEqual(tenantsQueried(`tenant_id=${longest}&tenant_id=${longest}n`), [longest]);
});

const { refusalsAtOnce, refusalsPerSecond, refusalHeldMsMax } = LIMITS;

const held = (throttle: RefusalThrottle, status: number) =>
  Array.from({ length: 1_000 }, () => throttle.delayMs('a', status, 0));

test('refusals beyond a few are held back, each for longer than the one before, up to a bound', () => {
  const all = held(new RefusalThrottle(), 503);
  const later = all.slice(refusalsAtOnce);
  assert.ok(all.slice(0, refusalsAtOnce).every((ms) => ms === 0));
  assert.equal(later[0], 1_000 / refusalsPerSecond);
  const expected = later.toSorted((a, b) => a - b);
  assert.deepEqual(later, expected);
  assert.equal(Math.max(...all), refusalHeldMsMax);
});

test('the pace is forgotten with time, is of each tenant, and about load only', () => {
  const throttle = new RefusalThrottle();
  held(throttle, 429);
  const over = refusalHeldMsMax + (1_000 * refusalsAtOnce) / refusalsPerSecond;
  assert.deepEqual([throttle.delayMs('b', 429, 0), throttle.delayMs('a', 413, over)], [0, 0]);
  held(throttle, 429);
  for (const status of [200, 400, 401, 404, 409, 500])
    assert.equal(throttle.delayMs('a', status, 0), 0);
});

const ORDER = 'created_at desc, id desc';
const TYPES: readonly PlaceKeyType[] = ['timestamptz', 'uuid'];
const SOME_ID = '01950000-0000-7000-8000-000000000001';
const PLACE: readonly PlaceKey[] = ['2026-01-02T03:04:05.678Z', SOME_ID];

test('a cursor gives its place back, whatever the keys are', () => {
  assert.deepEqual(placeIn(ORDER, TYPES, pageCursor(ORDER, PLACE)), PLACE);
  for (const name of ['', 'a "quoted" name', 'ünïcode 🚲', '\u2028', '__proto__']) {
    const keys = [name, -7];
    assert.deepEqual(placeIn('name', ['text', 'integer'], pageCursor('name', keys)), keys);
  }
});

test('what no list of this order gave is none', () => {
  const cursor = pageCursor(ORDER, PLACE);
  const none = (text: string) => assert.equal(placeIn(ORDER, TYPES, text), undefined, text);
  for (let at = 0; at < cursor.length; at += 1) {
    none(cursor.slice(0, at) + (cursor[at] === 'A' ? 'B' : 'A') + cursor.slice(at + 1));
    none(cursor.slice(0, at));
  }
  none(`${cursor}=`);
  none(` ${cursor}`);
  none('null');
  none(pageCursor('created_at, id', PLACE));
});

const PATH = '/api/v1/instances';

/** Its headers by name, for a page of this kind. */
function headersOf(search: string, page: Partial<Page>): Record<string, string> {
  const call = frontCall('instances.list', { path: PATH, search });
  const whole = { text: '[]', count: 0, isCut: false, isWalked: false, ...page };
  const reply = pageReply(call, call.query, whole);
  assert.equal(reply.status, 200);
  return Object.fromEntries(reply.headers ?? []);
}

const linkTo = (query: string) => `<${PATH}?${query}>; rel="next"`;

test('a page that ends because it may look no further links on by its cursor, also for who counts by offsets', () => {
  for (const count of [0, 3]) {
    const page = { count, isCut: true, isWalked: true, cursor: 'place' };
    const headers = headersOf('limit=50&namespace=rare', page);
    const link = linkTo('limit=50&namespace=rare&cursor=place');
    assert.deepEqual(headers, { link, 'x-next-cursor': 'place' });
  }
  const page = { isCut: true, isWalked: true, cursor: 'place' };
  assert.equal(headersOf('offset=10&limit=5', page).link, linkTo('limit=5&cursor=place'));
});
