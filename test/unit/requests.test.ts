/** How a request gets to whoever answers it, by the table of operations, on both of its sides. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { IN_PLACE } from '../../actors/runtime/offload.js';
import type { Call, RouteOperations } from '../../actors/runtime/operation.js';
import type { ReplyPost, RequestPost } from '../../actors/runtime/protocol.js';
import type { Effect } from '../../actors/runtime/turn.js';
import { ShardClient, type ShardReply } from '../../actors/shard/client.js';
import type { OperationParts, ShardOperation } from '../../actors/shard/operations.js';
import { Requests } from '../../actors/shard/requests.js';
import type { PatchState } from '../../schema/instance.js';
import { realClock } from '../../src/clock.js';
import { routeOf, shardOf } from '../../src/core/ids.js';
import { Crowd } from '../../src/crowd.js';
import { LIMITS } from '../../src/limits.js';
import { createLogger } from '../../src/log.js';

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
  const told: string[] = [];
  const requests = new Requests({
    shard,
    shards: SHARDS,
    clock: { monotonic: () => (ms += 1) },
    offload: IN_PLACE,
    log: createLogger('info', 'test', { write: (line) => void lines.push(line) }),
    parts: {
      instances: {
        tell: (id: string, message: { kind: string }) => {
          told.push(`${message.kind} ${id}`);
          seen = message;
        },
      },
    } as unknown as OperationParts,
    callMsMax: 300_000,
    isBehind: () => isBehind,
    takeHints: () => undefined,
    release: (released) => effects.push(...released),
    schedule: (work) => work(),
    again: () => {
      isLeft = true;
    },
  });
  const request = { id: 1, operation, tenant: 'a', target: INSTANCE, body };
  let turns = 1;
  isLeft = requests.handle(request);
  const toTheEnd = () => {
    for (; isLeft; turns += 1) isLeft = requests.handle(request);
    return { effects, told, seen, turns };
  };
  return { request, effects, lines, told, toTheEnd };
}

const statusOf = ([effect]: readonly Effect[]) =>
  effect?.kind === 'error' ? effect.error.status : effect?.kind;

describe('on a shard', () => {
  test('an operation that it does not know is answered at once with 500, and logged', () => {
    for (const operation of ['no.such', 'toString', 'instances.list']) {
      const { effects, lines } = askShard(operation);
      assert.equal(statusOf(effects), 500, operation);
      assert.match(String(lines), /no operation .*"operation":"[^"]+","msg":"defect"/);
    }
  });

  test('what only the first shard has is a defect elsewhere, and not left unanswered', () => {
    const { effects, lines } = askShard('releases.pause');
    assert.deepEqual([statusOf(effects), lines.length], [500, 1]);
  });

  test('a body that leads to another shard is handed on as it came', () => {
    const body = JSON.stringify({ instance_id: INSTANCE, target_sequence_id: INSTANCE });
    const operation = 'sequences.migrateInstance';
    assert.deepEqual(askShard(operation, body).told, [`migrate ${INSTANCE}`]);
    const { request, effects, told } = askShard(operation, body, { shard: 1 - OWNER });
    const message = { kind: 'request', request };
    assert.deepEqual([effects, told], [[{ kind: 'peer', shard: OWNER, message }], []]);
  });

  test('while the database is behind, reads alone are served', () => {
    assert.equal(statusOf(askShard('instances.retry', '', { isBehind: true }).effects), 503);
    assert.equal(askShard('instances.tree', '', { isBehind: true }).told.length, 1);
  });

  const large = (payload: unknown, more = '') =>
    `{"signal_type":"custom:x","payload":${JSON.stringify(payload)}${more}}`;
  const many = Array.from({ length: 20_000 }, (_, at) => ({ at }));

  test('a large body is parsed in turns, with those of others in between, and is what it is at once', () => {
    const { turns, told, seen } = askShard('instances.signal', large(many)).toTheEnd();
    // Of a clock that goes on by a millisecond whenever it is asked.
    assert.ok(turns > 3, `${turns} turns`);
    assert.deepEqual(told, [`signal ${INSTANCE}`]);
    assert.deepEqual((seen as { body: { payload: unknown } }).body.payload, many);
    assert.equal(askShard('instances.signal', large([])).toTheEnd().turns, 1);
  });

  test('a large body is refused as a small one is', async () => {
    const texts: readonly ((payload: unknown) => string)[] = [
      (payload) => large(payload, ',"payload":1'),
      (payload) => large(payload, ',"n":1e999'),
      (payload) => large(payload, ',"n":"\\u0000"'),
      (payload) => large(payload, ','),
      (payload) => large(payload).replace('custom', 'costum'),
      (payload) => `[${large(payload)}]`,
    ];
    for (const text of texts) {
      const [small, big] = await Promise.all(
        [[1], many].map(async (payload) => {
          const asked = askShard('instances.signal', text(payload));
          asked.toTheEnd();
          while (asked.effects.length === 0) {
            await new Promise((resolve) => setImmediate(resolve));
            asked.toTheEnd();
          }
          const [effect] = asked.effects;
          assert.ok(effect?.kind === 'error');
          return [effect.error.status, effect.error.message.replace(/\d+/g, '#')];
        }),
      );
      assert.equal(small?.[0], 400);
      assert.deepEqual(big, small);
    }
  });
});

test('what may have been handed on to a shard that dies is answered, whichever shard was asked', () => {
  const rows: [operation: ShardOperation, isRefused: boolean][] = [
    ['instances.create', true],
    ['workers.pollQueue', true],
    ['sequences.migrateInstance', true],
    ['continuity.create', true],
    ['capsules.import', true],
    ['instances.createBatch', false],
    ['instances.get', false],
    ['instances.watch', false],
  ];
  const client = new ShardClient({
    shards: SHARDS,
    clock: realClock,
    setImmediate: () => undefined,
  });
  const channels = [new MessageChannel(), new MessageChannel()];
  for (const [shard, { port1 }] of channels.entries()) client.attach(shard, port1);
  const refused = new Set<string>();
  for (const [operation] of rows) {
    const onReply = (reply: ShardReply) => {
      if ('error' in reply && reply.error.code === 'ENG_SHARD_RESTARTING') refused.add(operation);
    };
    client.send(0, operation, 'a', '', '', onReply);
  }
  client.detach(1);
  client.stop();
  const seen = rows.filter(([operation]) => refused.has(operation));
  assert.deepEqual(
    seen,
    rows.filter(([, isRefused]) => isRefused),
  );
});

/** A client of one shard that answers when it is told to. */
function openClient(crowd = new Crowd()) {
  const posted: string[] = [];
  const flushes: (() => void)[] = [];
  const client = new ShardClient({
    shards: 1,
    clock: realClock,
    setImmediate: (fn) => void flushes.push(fn),
    crowd,
  });
  let answerOne: (request: number) => void = () => undefined;
  const port = {
    on: (_: string, listener: (post: ReplyPost) => void) => {
      answerOne = (request) =>
        listener({ kind: 'replies', replies: [{ request, status: 200, body: '' }] });
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

test('while tenants share the shards each has some of its requests there, and the others wait in turns', async () => {
  const crowd = new Crowd();
  const { client, posted, settled, answer } = openClient(crowd);
  const send = (tenant: string) => {
    crowd.came(tenant, realClock.monotonic());
    return client.send(0, 'instances.get', tenant, 'x', '', () => undefined);
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
    client.send(0, 'instances.signal', tenant, INSTANCE, text, () => undefined);
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
  assert.equal(client.workUnderWay, 0, 'what waits is answered, too');
  client.attach(0, port);
  posted.length = 0;
  const later = send('c');
  await settled();
  assert.deepEqual(posted, [`c${later}`]);
  client.stop();
});

type Rows = RouteOperations<OperationParts>;

/** Never called: what must not compile. */
export function gaps(rows: Omit<Rows, 'instances.get'>): unknown[] {
  const serve = () => undefined;
  const signal = { serve: (_: OperationParts, __: Call<PatchState>) => undefined };
  return [
    // @ts-expect-error a route without its row
    rows satisfies Rows,
    // @ts-expect-error a row without its route
    { 'instances.forget': { serve } } satisfies Partial<Rows>,
    // @ts-expect-error a row for a route that the front thread answers
    { 'instances.list': { serve } } satisfies Partial<Rows>,
    // @ts-expect-error a function that takes the body of another route
    { 'instances.signal': signal } satisfies Partial<Rows>,
    // @ts-expect-error a route whose body names the owner, without saying how
    { 'workers.poll': { serve } } satisfies Partial<Rows>,
  ];
}
