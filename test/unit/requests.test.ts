/** How a request gets to whoever answers it: routes, shards, bodies, and answers that cannot be sent. */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import type { TSchema } from '@sinclair/typebox';
import fc from 'fast-check';
import { continuityOperations } from '../../actors/continuity/room.js';
import { eventOperations } from '../../actors/event/room.js';
import { type InstanceParts, instanceOperations } from '../../actors/instance/operations.js';
import { queueOperations } from '../../actors/queue/room.js';
import type { Operations } from '../../actors/runtime/operation.js';
import type { Reply, RequestPost } from '../../actors/runtime/protocol.js';
import type { Effect } from '../../actors/runtime/turn.js';
import { ShardClient } from '../../actors/shard/client.js';
import { Requests } from '../../actors/shard/requests.js';
import { type MatchResult, matchRoute } from '../../schema/route-match.js';
import type { Lead } from '../../schema/route-row.js';
import { ROUTES, type RouteId } from '../../schema/routes.js';
import { keyedInstanceId, routeOf, routeOfName, shardOf } from '../../src/base/ids.js';
import { ValueCount } from '../../src/base/json-guard.js';
import { LIMITS } from '../../src/base/limits.js';
import { createLogger } from '../../src/base/log.js';
import { IN_PLACE } from '../../src/base/offload.js';
import { TenantActivity } from '../../src/base/quota/tenant-activity.js';
import { realClock } from '../../src/base/real-clock.js';
import { CellPlacement, wrongCell } from '../../src/cluster/placement.js';
import { type CreationBody, idempotencyKeyOf } from '../../src/core/creation-key.js';
import { createAuth } from '../../src/http/auth.js';
import { leadIn } from '../../src/http/lead.js';
import type { FrontDeps, FrontOperations } from '../../src/http/operation.js';
import { frontBodies } from '../../src/http/operation.js';
import type { RouterDeps } from '../../src/http/pipeline/context.js';
import { RequestWatch } from '../../src/http/request-watch.js';
import { createRouter } from '../../src/http/router.js';
import { type HttpReply, type HttpServer, startHttpServer } from '../../src/http/server.js';
import type { ShardReply } from '../../src/http/shards.js';
import { Gate } from '../../src/server/gate.js';
import { BACKENDS } from '../helpers/backends.js';
import { check } from '../helpers/properties.js';
import { Client } from '../helpers/raw-client.js';

const INSTANCE = '0195ffff-0000-7000-8000-000000000001';
const SHARDS = 2;
const OWNER = shardOf(routeOf(INSTANCE), SHARDS);

/** What a shard without any part does with one request. */
function askShard(operation: string, body = '', { shard = OWNER, isBehind = false } = {}) {
  let ms = 0;
  let isLeft = false;
  let seen: unknown;
  const effects: Effect[] = [];
  const lines: string[] = [];
  const sent: string[] = [];
  const requests = new Requests({
    shard,
    shards: SHARDS,
    clock: { monotonic: () => (ms += 1) },
    offload: IN_PLACE,
    actions: { begin: () => undefined },
    log: createLogger('info', 'test', { write: (line) => void lines.push(line) }),
    operations: instanceOperations({
      instances: {
        send: (id: string, message: { kind: string }) => {
          sent.push(`${message.kind} ${id}`);
          seen = message;
        },
      },
    } as unknown as InstanceParts),
    callMsMax: 300_000,
    isBehind: () => isBehind,
    takeHints: () => undefined,
    release: (released) => effects.push(...released),
    schedule: (work) => work(),
    takeUp: () => {
      isLeft = true;
    },
  });
  const request = { id: 1, operation, tenant: 'a', target: INSTANCE, body };
  let turns = 1;
  isLeft = requests.handle(request);
  const toTheEnd = () => {
    for (; isLeft; turns += 1) isLeft = requests.handle(request);
    return { effects, sent, seen, turns };
  };
  return { request, effects, lines, sent, toTheEnd };
}

const statusOf = ([effect]: readonly Effect[]) =>
  effect?.kind === 'error' ? effect.error.status : effect?.kind;

describe('on a shard', () => {
  test('an operation that it does not know is answered at once with 500, and logged', () => {
    for (const operation of ['no.such', 'toString', 'instances.list']) {
      const { effects, lines } = askShard(operation);
      assert.equal(statusOf(effects), 500, operation);
      assert.match(String(lines), /no room serves .*"operation":"[^"]+","msg":"defect"/);
    }
  });

  test('what only the first shard has is a defect elsewhere, and not left unanswered', () => {
    const { effects, lines } = askShard('releases.pause');
    assert.deepEqual([statusOf(effects), lines.length], [500, 1]);
  });

  test('a body that leads to another shard is handed on as it came', () => {
    const body = JSON.stringify({ instance_id: INSTANCE, target_sequence_id: INSTANCE });
    const operation = 'sequences.migrateInstance';
    assert.deepEqual(askShard(operation, body).sent, [`migrate ${INSTANCE}`]);
    const { request, effects, sent } = askShard(operation, body, { shard: 1 - OWNER });
    const message = { kind: 'request', request };
    assert.deepEqual([effects, sent], [[{ kind: 'peer', shard: OWNER, message }], []]);
  });

  test('while the database is behind, reads alone are served', () => {
    assert.equal(statusOf(askShard('instances.retry', '', { isBehind: true }).effects), 503);
    assert.equal(askShard('instances.tree', '', { isBehind: true }).sent.length, 1);
  });

  const large = (payload: unknown, more = '') =>
    `{"signal_type":"custom:x","payload":${JSON.stringify(payload)}${more}}`;
  const many = Array.from({ length: 20_000 }, (_, at) => ({ at }));

  test('a large body is parsed in turns, with those of others in between, and is what it is at once', () => {
    const { turns, sent, seen } = askShard('instances.signal', large(many)).toTheEnd();
    // Of a clock that goes on by a millisecond whenever it is asked.
    assert.ok(turns > 3, `${turns} turns`);
    assert.deepEqual(sent, [`signal ${INSTANCE}`]);
    assert.deepEqual((seen as { body: { payload: unknown } }).body.payload, many);
    assert.equal(askShard('instances.signal', large([])).toTheEnd().turns, 1);
  });

  test('a large body is refused as a small one is', async () => {
    const refusalOf = async (text: string) => {
      const asked = askShard('instances.signal', text);
      for (asked.toTheEnd(); asked.effects.length === 0; asked.toTheEnd()) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      const [effect] = asked.effects;
      assert.ok(effect?.kind === 'error');
      return [effect.error.status, effect.error.message.replace(/\d+/g, '#')];
    };
    for (const text of [
      ...[',"payload":1', ',"n":1e999', ',"n":"\\u0000"', ','].map(
        (more) => (payload: unknown) => large(payload, more),
      ),
      (payload: unknown) => large(payload).replace('custom', 'costum'),
      (payload: unknown) => `[${large(payload)}]`,
    ]) {
      const small = await refusalOf(text([1]));
      assert.equal(small[0], 400);
      assert.deepEqual(await refusalOf(text(many)), small);
    }
  });
});

test('what may have been handed on to a shard that dies is answered, whichever shard was asked', () => {
  const refusedAlone: string[] = [
    ...(['instances.create', 'workers.pollQueue', 'sequences.migrateInstance'] as const),
    ...(['continuity.create', 'capsules.import'] as const),
  ];
  const others = ['instances.createBatch', 'instances.get', 'instances.watch'] as const;
  const never = () => undefined;
  const client = new ShardClient({ shards: SHARDS, clock: realClock, setImmediate: never });
  const channels = [new MessageChannel(), new MessageChannel()];
  for (const [shard, { port1 }] of channels.entries()) client.attach(shard, port1);
  const refused: string[] = [];
  for (const operation of [...refusedAlone, ...others]) {
    const onReply = (reply: ShardReply) => {
      const isRefused = 'error' in reply && reply.error.code === 'ENG_SHARD_RESTARTING';
      if (isRefused) refused.push(operation);
    };
    client.send(0, { operation, tenant: 'a', target: '', body: '' }, onReply);
  }
  client.detach(1);
  client.stop();
  assert.deepEqual(refused, refusedAlone);
});

const NOTHING = () => undefined;

const SIGNAL = { operation: 'instances.signal', target: INSTANCE };

/** A client of one shard that answers when it is sent to. */
function openClient(activity = new TenantActivity()) {
  const posted: string[] = [];
  const flushes: (() => void)[] = [];
  const later = (fn: () => void) => void flushes.push(fn);
  const client = new ShardClient({ shards: 1, clock: realClock, setImmediate: later, activity });
  let answerOne: (request: number) => void = () => undefined;
  const port = {
    on: (_: string, listener: (replies: Reply[]) => void) => {
      answerOne = (request) => listener([{ request, status: 200, body: '' }]);
    },
    postMessage: ({ requests }: RequestPost) => {
      for (const { id, tenant } of requests) posted.push(`${tenant}${id}`);
    },
    close: () => undefined,
  } as unknown as MessagePort;
  client.attach(0, port);
  const settled = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    for (const flush of flushes.splice(0)) flush();
  };
  const answer = (request: number) => answerOne(request);
  return { client, port, posted, settled, answer };
}

test('tenants that share a shard have some requests each in progress, and the rest are taken in turns', async () => {
  const activity = new TenantActivity();
  const { client, posted, settled, answer } = openClient(activity);
  const send = (tenant: string) => {
    activity.came(tenant, realClock.monotonic());
    return client.send(0, { operation: 'instances.get', tenant, target: 'x', body: '' }, NOTHING);
  };
  const alone = Array.from({ length: LIMITS.sharedRequestsPerShard + 2 }, () => send('a'));
  await settled();
  assert.equal(posted.length, alone.length, 'who is alone has all');
  posted.length = 0;
  const ofB = send('b');
  const ofA = alone.map(() => send('a'));
  await settled();
  const first = ofA.slice(0, LIMITS.sharedRequestsPerShard);
  assert.deepEqual(posted, [`b${ofB}`, ...first.map((id) => `a${id}`)]);
  posted.length = 0;
  answer(first[0]!);
  await settled();
  assert.deepEqual(posted, [`a${ofA[first.length]}`]);
  client.stop();
});

test('of large bodies a shard has a part at a time, tenants take turns, and small ones never wait', async () => {
  const { client, port, posted, settled, answer } = openClient();
  const body = ' '.repeat(LIMITS.workBytesPerShard / 4);
  const send = (tenant: string, text = body) =>
    client.send(0, { ...SIGNAL, tenant, body: text }, NOTHING);
  const ofA = Array.from({ length: 6 }, () => send('a'));
  const ofB = Array.from({ length: 2 }, () => send('b'));
  const small = send('a', '{}');
  await settled();
  const [first, second, third, fourth, fifth] = ofA.map((id) => `a${id}`);
  assert.deepEqual(posted.sort(), [first, second, third, `b${ofB[0]}`, `a${small}`].sort());
  posted.length = 0;
  for (const id of [ofA[0], ofA[1], ofB[0]]) {
    answer(id as number);
    await settled();
  }
  assert.deepEqual(posted, [fourth, `b${ofB[1]}`, fifth]);
  client.detach(0);
  assert.equal(client.workInProgress, 0, 'what waits is answered, too');
  client.attach(0, port);
  posted.length = 0;
  const later = send('c');
  await settled();
  assert.deepEqual(posted, [`c${later}`]);
  client.stop();
});

const INSTANCE_PATH = '/instances/0195ffff-0000-7000-8000-000000000001';
const UNSENDABLE: HttpReply = { status: 200, body: '{}', headers: [['x-a', 'line\nbreak']] };

/** As of a cell whose name came from a place where nobody looked at it. */
const UNSENDABLE_REFUSAL = wrongCell('w\u00e9st', 'east');

const lines: string[] = [];
/** How often a request has given back the room that it was admitted to. */
let left = 0;
/** The shards that requests were posted to; -1: any. */
const posted: number[] = [];
const servers: HttpServer[] = [];

before(async () => {
  const log = createLogger('error', 'test', { write: (line) => void lines.push(line) });
  const gate = new Gate(realClock);
  gate.set('serving');
  const keys: RouterDeps['keys'] = { whenGone: () => () => undefined };
  const throwing = () => {
    throw new Error('no feed');
  };
  const handler = createRouter({
    gate,
    authorise: createAuth({
      ...{ apiKey: undefined, requireTenantHeader: false, protectDocs: false },
      keys: { use: () => undefined },
    }),
    admission: {
      admit: async () => () => {
        left += 1;
      },
    },
    keys,
    placement: new CellPlacement({
      cell: 'east',
      directory: { placementsOf: async () => [], settle: async () => new Map() },
      onUnavailable: () => undefined,
      clock: realClock,
    }),
    ...frontBodies(IN_PLACE),
    client: {
      shards: SHARDS,
      shardOf: () => 0,
      anyShard: () => -1,
      abort: () => undefined,
      send: (shard, _request, onReply) => {
        posted.push(shard);
        setImmediate(onReply, { status: 42, body: '{}' });
        return 1;
      },
    },
    rows: {
      committedInstance: () => assert.fail(),
      instanceIsThere: async () => undefined,
      tenantsOfWebhook: async () => [],
    },
    activity: new TenantActivity(),
    operations: {
      info: () => UNSENDABLE,
      handlers: async () => UNSENDABLE,
      'tenants.list': async () => {
        throw UNSENDABLE_REFUSAL;
      },
      'instances.stream': async () => throwing,
    } as Partial<FrontOperations> as FrontOperations,
    pages: () => undefined,
    front: { reads: { of: () => undefined } } as unknown as FrontDeps,
    protectDocs: false,
    watch: new RequestWatch({ log, monotonic: realClock.monotonic, tracer: undefined }),
    log,
  });
  const options = {
    ...{ host: '127.0.0.1', port: 0, maxBodyBytes: 1_000, maxHeaderBytes: 10_000 },
    ...{ corsOrigins: [], newRequestId: () => 'made-here', bodyIdleTimeoutMs: 10_000, log },
  };
  for (const backend of BACKENDS) servers.push(await startHttpServer(backend, options, handler));
});

after(async () => {
  for (const server of servers) await server.close();
});

for (const [at, backend] of BACKENDS.entries()) {
  const portOf = () => servers[at]?.port as number;

  test(`an answer that cannot be sent is a 500 and a line with the request, and gives its room back once (${backend})`, async () => {
    for (const [by, path] of [
      ['probe', '/info'],
      ['front', '/handlers'],
      ['refusal', '/tenants'],
      ['stream', `${INSTANCE_PATH}/stream`],
      ['shard', INSTANCE_PATH],
    ]) {
      [lines.length, left] = [0, 0];
      const url = `http://127.0.0.1:${portOf()}/api/v1${path}`;
      const reply = await fetch(url, { headers: { 'x-request-id': `by-${by}` } });
      assert.deepEqual([reply.status, await reply.text()], [500, '{"error":"internal error"}'], by);
      const sent = by === 'refusal' ? 'an answer could not be sent' : 'defect';
      const line = lines.find((text) => text.includes(`"msg":"${sent}"`));
      assert.match(String(line), new RegExp(`"requestId":"by-${by}"`), by);
      assert.equal(left, by === 'probe' ? 0 : 1, `${by}: its room is given back once`);
    }
  });

  test(`a cell that none can be called is refused without its name, whatever bytes it has (${backend})`, async () => {
    for (const named of ['w\u00e9st', 'a'.repeat(64), 'no cell']) {
      const client = await Client.open(portOf());
      const head = `GET /api/v1/tenants HTTP/1.1\r\nHost: h\r\nx-cell: ${named}\r\n\r\n`;
      client.send(Buffer.from(head, 'latin1'));
      const { status, headers, body } = await client.reply();
      assert.deepEqual([status, headers['x-cell']], [400, undefined], named);
      assert.equal(body, '{"error":"invalid argument: x-cell is no name of a cell"}');
      client.close();
    }
  });
}

test('a poll is posted to the shard of its handler, and a body that does not tell to any', async () => {
  const ask = async (body: string) => {
    posted.length = 0;
    const url = `http://127.0.0.1:${servers[0]?.port}/api/v1/workers/tasks/poll`;
    await fetch(url, { method: 'POST', body });
    return posted;
  };
  for (const handler of ['charge', 'ship', 'pack', 'ünïcode']) {
    const body = JSON.stringify({ worker_id: 'w', handler_name: handler });
    assert.deepEqual(await ask(body), [shardOf(routeOfName(handler), SHARDS)], handler);
  }
  assert.deepEqual(await ask('{"worker_id":"w","handler\\u005fname":"charge"}'), [-1]);
});

describe('what leads to the owner of a request in the text of its body', () => {
  /** With members of the same names elsewhere, and in any order. */
  const bodyOf = (members: fc.Arbitrary<object>) =>
    fc
      .tuple(members, fc.jsonValue({ maxDepth: 2 }), fc.boolean(), fc.constantFrom(0, 2))
      .map(([own, any, isLast, indent]) => {
        const others = { list: [own, 'handler_name', any], nested: { own, any }, last: any };
        return JSON.stringify(isLast ? { ...others, ...own } : { ...own, ...others }, null, indent);
      });
  const text = fc.oneof(fc.string(), fc.constantFrom('"', '\\', '}', 'a "b": c', '😀'));
  const noText = fc.constantFrom(undefined, null);

  const laws: readonly (readonly [RouteId, fc.Arbitrary<object>])[] = [
    ['workers.poll', fc.record({ handler_name: text })],
    ['workers.pollQueue', fc.record({ queue_name: text, handler_name: text })],
    ['sequences.migrateInstance', fc.record({ instance_id: fc.uuid() })],
    ['continuity.create', fc.record({ instance_id: fc.uuid() })],
    ['handoffs.create', fc.record({ placement_decision_id: fc.uuid() })],
    ['migrations.plan', fc.record({ continuity_id: fc.uuid() })],
    [
      'events.send',
      fc.record({
        event_name: text,
        correlation_key: fc.oneof(text, noText),
        tenant_id: fc.oneof(text, noText),
      }),
    ],
  ];
  const none = {} as never;
  const operations: Operations = {
    ...{ ...instanceOperations(none), ...queueOperations(none) },
    ...{ ...eventOperations(none), ...continuityOperations(none) },
  };
  for (const [id, members] of laws) {
    test(`is what the shard makes of the parsed body: ${id}`, (t) => {
      const leadsTo = operations[id]?.leadsTo;
      assert.ok(typeof leadsTo === 'function');
      check(t, 200, bodyOf(members), (body) => {
        assert.equal(leadIn(body, leadOf(id), 'a'), leadsTo(JSON.parse(body) as never, 'a'));
      });
    });
  }

  test('is the idempotency key of a creation, if it has one', (t) => {
    const members = fc.record(
      { tenant_id: text, idempotency_key: fc.oneof(text, noText), dry_run: fc.boolean() },
      { requiredKeys: ['tenant_id'] },
    );
    check(t, 200, bodyOf(members), (body) => {
      const creation = JSON.parse(body) as CreationBody;
      const key = idempotencyKeyOf(creation);
      const expected = key === null ? undefined : routeOf(keyedInstanceId(creation.tenant_id, key));
      assert.equal(leadIn(body, leadOf('instances.create'), 'a'), expected);
    });
  });

  test('is the first handler of an exchange that polls', () => {
    const led = (body: unknown) => leadIn(JSON.stringify(body), leadOf('workers.exchange'), 'a');
    assert.equal(led({ poll: { handlers: ['ship', 'pack'] } }), routeOfName('ship'));
    for (const poll of [null, 5, {}, { handlers: [] }, { handlers: 5 }]) {
      assert.equal(led({ worker_id: 'w', poll }), undefined);
    }
  });

  test('is left to the shards in what is no object, cut off, or long', () => {
    const lead = leadOf('workers.poll');
    const whole = '{"worker_id":"w","handler_name":"ship"}';
    for (let end = 0; end < whole.length; end += 1) {
      assert.equal(leadIn(whole.slice(0, end), lead, 'a'), undefined, whole.slice(0, end));
    }
    for (const body of [
      '["handler_name","ship"]',
      '{"n":{"handler_name":"ship"}}',
      '"handler_name"',
    ]) {
      assert.equal(leadIn(body, lead, 'a'), undefined, body);
    }
    assert.equal(leadIn(whole.replace('w', 'w'.repeat(20_000)), lead, 'a'), undefined);
    assert.equal(leadIn(whole.replace('w', 'w'.repeat(10_000)), lead, 'a'), routeOfName('ship'));
  });
});

const leadOf = (id: RouteId) => ROUTES[id].ledBy as Lead;

const ID = '018f2f6e-0000-7000-8000-000000000001';

const idOf = (result: MatchResult): RouteId | string =>
  typeof result === 'object' && 'route' in result ? result.route.id : JSON.stringify(result);

test('every operation is found under the prefix and at the bare path', () => {
  for (const route of Object.values(ROUTES)) {
    const path = route.path.replace('{id}', ID);
    for (const given of [path, `/api/v1${path}`]) {
      const match = matchRoute(route.method, given);
      assert.equal(idOf(match), route.id, `${route.method} ${given}`);
      assert.ok(typeof match === 'object' && 'params' in match);
      assert.equal(match.params.id, route.path.includes('{id}') ? ID : undefined);
      assert.equal(match.isBareAlias, given === path && route.isAtRoot !== true);
    }
  }
});

test('a fixed segment wins over a parameter', () => {
  for (const [method, path, id] of [
    ['GET', '/api/v1/instances/dlq', 'instances.deadLetters'],
    ['PATCH', '/api/v1/instances/bulk/state', 'instances.bulkState'],
    ['GET', '/api/v1/sequences/by-name', 'sequences.byName'],
    ['POST', '/workers/tasks/poll/queue', 'workers.pollQueue'],
    // Where the fixed segment leads nowhere, the parameter is tried: the id is refused later.
    ['GET', '/instances/bulk/outputs', 'instances.outputs'],
    // HEAD is served wherever GET is.
    ['HEAD', '/api/v1/instances', 'instances.list'],
  ] as const) {
    assert.equal(idOf(matchRoute(method, path)), id);
  }
});

test('a known path with another method is sent which methods it has', () => {
  assert.deepEqual(matchRoute('PUT', '/api/v1/instances'), { allow: ['POST', 'GET', 'HEAD'] });
  assert.deepEqual(matchRoute('HEAD', '/api/v1/workers/tasks/poll'), { allow: ['POST'] });
  assert.deepEqual(matchRoute('DELETE', `/instances/${ID}`), { allow: ['GET', 'HEAD'] });
});

test('paths that are not exactly those of an operation are not found', () => {
  for (const path of [
    ...['', '/', 'instances', '/instances/', '//instances', '/instances//outputs', '/Instances'],
    ...[`/instances/${ID}/`, `/instances/${ID}/unknown`, '/inst%61nces', '/instances/../instances'],
    ...['/api/v1', '/api/v1/', '/api/v1instances', '/api/v1/api/v1/instances', '/api/v2/instances'],
    ...['/constructor', '/__proto__', '/'.repeat(5_000), '/instances'.repeat(5_000)],
  ]) {
    assert.equal(matchRoute('GET', path), 'not-found', path.slice(0, 60));
  }
});

test('path parameters are percent-decoded once, and a bad encoding is sent apart', () => {
  const match = matchRoute('GET', '/instances/%2525%2Fa');
  assert.ok(typeof match === 'object' && 'params' in match);
  assert.equal(match.params.id, '%25/a');
  for (const bad of ['%', '%zz', '%c3%28', '%ed%a0%80']) {
    assert.equal(matchRoute('GET', `/instances/${bad}`), 'bad-encoding', bad);
  }
});

test('capabilities follow the table of who may do what', () => {
  const expected: readonly (readonly [capability: string, ids: readonly RouteId[]])[] = [
    ['public', ['health.live', 'info']],
    ['operator,publisher', ['sequences.create', 'releases.canary', 'sequences.compare']],
    ['operator,publisher,auditor,starter', ['sequences.list']],
    ['operator,starter', ['instances.create', 'instances.createBatch']],
    ['operator,starter,events', ['events.send', 'events.sendBatch']],
    ['operator', ['instances.batchAction', 'instances.fork', 'cron.update']],
    ['operator,auditor', ['cron.list', 'cron.preview']],
    ['operator,auditor,starter', ['instances.get', 'instances.deadLetters']],
    ['operator,approver,starter', ['instances.signal']],
    ['operator,worker', ['workers.poll']],
    ['operator,worker,auditor', ['workers.list', 'handlers']],
    ['operator,publisher,auditor', ['releases.list']],
  ];
  for (const [capability, ids] of expected) {
    for (const id of ids) assert.equal(String(ROUTES[id].capability), capability, id);
  }
});

const TENANTLESS =
  /^(triggers\.receive$|health\.|info$|metrics$|docs\.|whoami$|apiKeys\.|tenants\.|cells\.|tenantLimits\.|webhooks\.(outbox|redeliver|discard|deliver)|approvals\.(page|answerByLink))/;

test('only what is no resource of a tenant goes without one; a batch and the change feed name it themselves', () => {
  for (const { id, tenant } of Object.values(ROUTES)) {
    const expected = TENANTLESS.test(id)
      ? 'none'
      : id === 'instances.createBatch' || id.startsWith('changes.')
        ? 'optional'
        : 'required';
    assert.equal(tenant, expected, id);
  }
});

/** What changes or selects many beyond plain lists, and what grants rights. */
const MANY: readonly RouteId[] = [
  ...(['instances.bulkState', 'instances.bulkReschedule', 'instances.batchAction'] as const),
  'instances.pruneCheckpoints',
];
const STRICT_BODIES: readonly RouteId[] = [
  ...MANY,
  ...(['instances.createBatch', 'apiKeys.mint', 'tenantLimits.put', 'events.sendBatch'] as const),
  ...(['workers.exchange', 'approvals.link', 'migrations.migrate'] as const),
  ...(['sequences.migrateInstances', 'sequences.update'] as const),
  // A misspelt `context` would run it again with the data that it failed of.
  ...(['instances.retry', 'instances.resumeFrom', 'instances.fork'] as const),
  ...(['cron.create', 'cron.preview', 'cron.update', 'cron.run', 'rateLimits.put'] as const),
  ...(['webhooks.subscribe', 'webhooks.update', 'triggers.create', 'triggers.update'] as const),
  ...(['credentials.create', 'credentials.update', 'workerEndpoints.put'] as const),
  ...(['releases.create', 'releases.validate', 'releases.canary', 'releases.promote'] as const),
];
const STRICT_QUERIES: readonly RouteId[] = [
  ...(['instances.timeline', 'sequences.delete', 'changes.list', 'changes.stream'] as const),
  ...(['workers.stats', 'handlers', 'approvals.list', 'instances.failures'] as const),
  ...(['queues.list', 'activity.get', 'releases.series', 'instances.createBatch'] as const),
  ...(['instances.counts', 'instances.failureAttributes', 'queues.series'] as const),
  ...(['sequences.steps', 'instances.slowest'] as const),
];

test('lists, settings, bulk changes and grants of rights reject unknown members; other requests ignore them', () => {
  const isClosed = (schema: TSchema | undefined) => schema?.additionalProperties === false;
  for (const { id, body, query, replies } of Object.values(ROUTES)) {
    assert.equal(isClosed(body), STRICT_BODIES.includes(id), `the body of ${id}`);
    if (query === undefined) continue;
    const isList = replies[200]?.type === 'array';
    assert.equal(isClosed(query), isList || STRICT_QUERIES.includes(id), `the query of ${id}`);
  }
  assert.ok(isClosed(ROUTES['instances.batchAction'].body?.properties.filter));
});

test('whatever changes many can be asked for a dry run', () => {
  for (const id of [...MANY, 'sequences.delete'] as RouteId[]) {
    const { body, query } = ROUTES[id];
    assert.ok((body ?? query)?.properties.dry_run !== undefined, id);
  }
});

/** Whether it has more than `most`, in pieces of so many bytes. */
function hasMore(text: string, most: number, piece: number): boolean {
  const bytes = Buffer.from(text);
  const count = new ValueCount(most);
  let isMore = false;
  for (let at = 0; at < bytes.length; at += piece) {
    isMore = count.take(bytes.subarray(at, at + piece));
  }
  return isMore;
}

/** Values and names of members. */
function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  const parts: unknown[] = Array.isArray(value) ? value : Object.entries(value).flat();
  return 1 + parts.reduce<number>((sum, part) => sum + valuesIn(part), 0);
}

test('a text has as many values as what is parsed of it', (t) => {
  check(t, 100, fc.jsonValue(), (value) => {
    const text = JSON.stringify(value);
    const count = valuesIn(value);
    assert.equal(hasMore(text, count, text.length + 1), false);
    assert.equal(hasMore(text, count - 1, Buffer.byteLength(text)), true);
  });
});

test('strings that are cut anywhere hold no values', () => {
  const text = '{"a":"[,:{\\"],\\\\","b":[1,"\u00fc,",2]}';
  for (let piece = 1; piece < text.length; piece += 1) {
    assert.equal(hasMore(text, 8, piece), false, `${piece}`);
    assert.equal(hasMore(text, 7, piece), true, `${piece}`);
  }
});
