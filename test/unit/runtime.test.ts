/** The small parts that a shard is made of, what a defect in them reaches, and how threads share memory. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import fc from 'fast-check';
import type { SequenceRow } from '../../actors/catalog/loads.js';
import type { NewInstance } from '../../actors/instance/record.js';
import type { RateLimitRow } from '../../actors/limits/loads.js';
import { RATE_LIMIT } from '../../actors/limits/tables.js';
import { compareTasks, LAST_PLACE, type ReadyTask, ReadyTasks } from '../../actors/queue/window.js';
import { CommitLog, type Settlement } from '../../actors/runtime/commit-log.js';
import { linkControl, serveControl } from '../../actors/runtime/control.js';
import { Line } from '../../actors/runtime/eviction.js';
import { ActorHost } from '../../actors/runtime/host.js';
import type { PeerMessage, Request } from '../../actors/runtime/protocol.js';
import { Service } from '../../actors/runtime/service.js';
import { TimerHeap } from '../../actors/runtime/timer.js';
import { Turn } from '../../actors/runtime/turn.js';
import type { ScheduleRow } from '../../actors/schedule/loads.js';
import { FairInbox } from '../../actors/shard/inbox.js';
import {
  residentBytesMax,
  threadHeapMib,
  threadYoungMib,
} from '../../actors/shard/thread-memory.js';
import {
  createIdGenerator,
  keyedInstanceId,
  rateLimitId,
  routeForShard,
  routeOf,
  shardOf,
} from '../../src/base/ids.js';
import { joined, withParts } from '../../src/base/rooms.js';
import { isoTime } from '../../src/base/time.js';
import { insert, mutations } from '../../src/db/mutation.js';
import { table } from '../../src/db/table.js';
import { HandShard, rowsOf, TENANT } from '../helpers/hand-shard.js';
import { hostDeps } from '../helpers/host-deps.js';
import { newInstance } from '../helpers/instances.js';
import { work } from '../helpers/player.js';
import { check } from '../helpers/properties.js';

const request = (id: number, tenant: string): Request => ({
  ...{ id, operation: 'instances.get', tenant, target: '', body: '' },
});

/** An inbox, and a shard that takes so much time for each request of it. */
function serving(costOf: (tenant: string) => number) {
  const inbox = new FairInbox();
  let at = 0;
  const serve = () => {
    const next = inbox.shift(at);
    if (next === undefined) return undefined;
    at += costOf(next.tenant);
    inbox.charge(at);
    return next;
  };
  return {
    inbox,
    serve,
    push: (tenant: string, ...ids: number[]) => {
      for (const id of ids) inbox.push(request(id, tenant));
    },
    idsOf: (count: number) => Array.from({ length: count }, () => serve()?.id),
    /** How many of the next ones are of the tenant. */
    countOf: (tenant: string, count: number) =>
      Array.from({ length: count }, serve).filter((next) => next?.tenant === tenant).length,
    pass: (time: number) => {
      at += time;
    },
  };
}

const upTo = (count: number, from = 1) => Array.from({ length: count }, (_, n) => from + n);

test('parts come before their room, and a row that two rooms have is refused', () => {
  interface Rows {
    readonly a: number;
    readonly b: number;
  }
  interface Opened {
    readonly rows: Partial<Rows>;
    readonly parts?: readonly (Opened | undefined)[];
  }
  const inner: Opened = { rows: { a: 1 } };
  const outer: Opened = { parts: [inner, undefined], rows: { b: 2 } };
  const rooms = withParts<Opened>([undefined, outer]);
  assert.deepEqual(rooms, [inner, outer]);
  assert.deepEqual(joined<Rows>(rooms.map(({ rows }) => rows)), { a: 1, b: 2 });
  assert.throws(() => joined<Rows>([inner.rows, outer.rows, inner.rows]), /two rooms take a/);
});

test('requests of one tenant leave in order of arrival, and a flood of one does not delay the others', () => {
  const { push, idsOf } = serving(() => 1);
  push('t', 1, 2, 3);
  assert.deepEqual(idsOf(4), [1, 2, 3, undefined]);
  const flooded = serving(() => 0);
  flooded.push('flood', ...upTo(100));
  flooded.push('quiet', 1_000);
  assert.ok(flooded.idsOf(2).includes(1_000));
  assert.equal(flooded.inbox.size, 99);
});

test('a request that is not done goes on before the others of its tenant, with other tenants in between', () => {
  const { inbox, push } = serving(() => 1);
  push('large', 1, 2);
  push('other', 10, 11);
  let left = 2;
  const served: number[] = [];
  for (let at = 1; inbox.size > 0; at += 1) {
    const next = inbox.shift(at - 1) as Request;
    served.push(next.id);
    inbox.charge(at, next.id === 1 && left-- > 0 ? next : undefined);
  }
  assert.deepEqual(served, [1, 10, 1, 11, 1, 2]);
});

test('tenants share the time of a shard and not the number of its requests; who comes late saved nothing', () => {
  const { push, countOf } = serving((tenant) => (tenant === 'dear' ? 100 : 10));
  push('dear', ...upTo(4));
  push('cheap', ...upTo(40));
  assert.equal(countOf('cheap', 22), 20);
  const equal = serving(() => 10);
  equal.push('early', ...upTo(50));
  equal.idsOf(30);
  equal.push('late', ...upTo(10, 101));
  assert.equal(equal.countOf('late', 10), 5);
});

test('what a tenant took is held against it although nobody was heard of meanwhile', () => {
  const { push, idsOf, pass } = serving((tenant) => (tenant === 'dear' ? 25 : 10));
  push('dear', 1);
  idsOf(1);
  pass(1);
  push('dear', 2);
  push('cheap', 3, 4, 5);
  assert.deepEqual(idsOf(4), [3, 4, 5, 2]);
});

test('time that nobody wanted is held against no one', () => {
  const { push, idsOf, pass } = serving((tenant) => (tenant === 'dear' ? 25 : 10));
  push('dear', 1);
  idsOf(1);
  pass(25);
  push('dear', 2);
  idsOf(1);
  pass(100);
  push('cheap', 3);
  assert.deepEqual(idsOf(1), [3]);
  push('dear', 4);
  push('cheap', 5);
  assert.deepEqual(idsOf(1), [4]);
});

test('a large request is known before it leaves', () => {
  const { inbox, push, serve } = serving(() => 1);
  push('a', 1);
  inbox.push({ ...request(2, 'b'), body: ' '.repeat(100_000) });
  assert.equal(inbox.isLargeNext, false);
  serve();
  assert.equal(inbox.isLargeNext, true);
});

test('the timer heap gives what is due in the order of time and nothing early', (t) => {
  const time = fc.integer({ min: 0, max: 50 });
  check(t, 100, fc.tuple(fc.array(time), time), ([times, now]) => {
    const heap = new TimerHeap<number>();
    for (const at of times) heap.push(at, at);
    const due: number[] = [];
    for (let at = heap.popDue(now); at !== undefined; at = heap.popDue(now)) due.push(at);
    const expected = times.filter((at) => at <= now).sort((a, b) => a - b);
    assert.deepEqual(due, expected);
    let left = 0;
    while (heap.popDue(50) !== undefined) left += 1;
    assert.equal(left, times.length - due.length);
  });
});

test('ready tasks leave in the order of their queue, whatever was removed or had no room', (t) => {
  const tasks = fc.array(
    fc.record({
      rank: fc.integer({ min: 0, max: 3 }),
      createdAt: fc.integer({ min: 0, max: 5 }),
      isRemoved: fc.boolean(),
    }),
    { maxLength: 200 },
  );
  check(t, 100, fc.tuple(tasks, fc.integer({ min: 2, max: 100 })), ([specs, max]) => {
    const count = { tasks: 0 };
    const ready = new ReadyTasks(count, max, LAST_PLACE);
    const kept: ReadyTask[] = [];
    specs.forEach(({ rank, createdAt, isRemoved }, index) => {
      const id = `t${String(index).padStart(4, '0')}`;
      const item = { id, instance: '', tenant: 't', queue: '', rank, createdAt };
      ready.add(item);
      if (isRemoved) ready.remove(id);
      else kept.push(item);
      assert.ok(ready.size <= max && ready.size === count.tasks);
    });
    const { horizon } = ready;
    const taken: string[] = [];
    for (let item = ready.first(); item; item = ready.first()) {
      taken.push(item.id);
      ready.remove(item.id);
    }
    const known = kept.filter((item) => compareTasks(item, horizon) <= 0).sort(compareTasks);
    const expected = known.map(({ id }) => id);
    assert.deepEqual(taken, expected);
    assert.equal(count.tasks, 0);
  });
});

/** A full queue of this many to which as many are added as `rounds` times its size; who is in it then. */
function crowded(size: number, rounds: number): readonly number[] {
  const line = new Line<Queued>(size);
  for (let number = 0; number < size * (rounds + 1); number += 1) {
    line.push(new Queued(number));
    const surplus = line.isFull ? line.surplus() : undefined;
    if (surplus !== undefined) line.remove(surplus);
  }
  const numbers: number[] = [];
  for (let at = line.oldest; at !== undefined; at = at.newer) numbers.push(at.number);
  return numbers;
}

class Queued {
  bytes = 1;
  line: Line<Queued> | undefined;
  older: Queued | undefined;
  newer: Queued | undefined;
  readonly number: number;

  constructor(number: number) {
    this.number = number;
  }
}

test('of actors whose tasks wait, the first ones and the latest ones stay, and even the first ones not for ever', () => {
  const SIZE = 1_024;
  const after = crowded(SIZE, 5);
  const latest = after.slice(-SIZE / 16);
  assert.equal(after.length, SIZE);
  assert.ok(after.filter((number) => number < SIZE).length > SIZE / 2);
  assert.ok(SIZE * 6 - latest[0]! < SIZE / 8, 'the latest are still together');
  assert.equal(crowded(SIZE, 100).filter((number) => number < SIZE).length, 0);
});

test('ids of one generator are valid, unique and ordered, and carry their routing bits', () => {
  let now = 1_700_000_000_000;
  const ids = createIdGenerator(
    () => now,
    () => Math.floor(Math.random() * 0x1_0000_0000),
  );
  const made: string[] = [];
  for (let i = 0; i < 10_000; i++) {
    if (i % 5_000 === 0) now += 1;
    made.push(i % 3 === 0 ? ids.first(i & 0xffff) : ids.next(i & 0xffff));
  }
  const form = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
  assert.ok(made.every((id) => form.test(id)));
  assert.deepEqual([...new Set(made)].sort(), made);
  assert.ok(made.every((id, index) => routeOf(id) === (index & 0xffff)));
  assert.ok(made.every((id, index) => index % 3 !== 0 || id.slice(19, 23) === '8000'));
});

test('an id made for a shard falls on it', (t) => {
  const cases = fc.tuple(fc.integer({ min: 1, max: 64 }), fc.nat(), fc.nat());
  check(t, 100, cases, ([shards, pick, random]) => {
    const shard = pick % shards;
    const route = routeForShard(shard, shards, () => random);
    assert.ok(route >= 0 && route <= 0xffff);
    assert.equal(shardOf(route, shards), shard);
  });
});

test('an idempotency key names one instance per tenant, and keys cannot be shifted into tenants', () => {
  assert.equal(keyedInstanceId('a', 'bc'), keyedInstanceId('a', 'bc'));
  assert.notEqual(keyedInstanceId('a', 'bc'), keyedInstanceId('ab', 'c'));
  assert.match(keyedInstanceId('a', 'bc'), /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab]/);
});

test('a mutation of no store is refused where it is put, not by the writer', () => {
  const { add } = mutations('stray', { add: insert(table('strays', ['id'], { id: 'uuid' })) });
  assert.throws(() => new Turn().put(add, 'key', '{}'), /stray.add is in no store/);
});

/** Of units, with what it was told of them. */
function newOwner() {
  const outcomes: Settlement[] = [];
  const settled = (_unit: unknown, outcome: Settlement) => void outcomes.push(outcome);
  return { owner: { key: 'a', incarnation: 0, settled }, outcomes };
}

test('a barrier passes when every unit made before it is settled, not later ones', () => {
  const log = new CommitLog();
  const { owner, outcomes } = newOwner();
  log.append(owner, new Turn());
  log.append(owner, new Turn());
  let passed = false;
  log.whenSettled(() => {
    passed = true;
  });
  log.append(owner, new Turn());
  log.settle([{ seq: 1, outcome: 'committed' }]);
  assert.equal(passed, false);
  log.settle([{ seq: 2, outcome: 'committed' }]);
  assert.equal(passed, true);
  log.lose();
  assert.deepEqual(outcomes.at(-1), { seq: 3, outcome: 'lost' });
});

test('a unit is settled once, however often it is acknowledged or lost', () => {
  const log = new CommitLog();
  const { owner, outcomes } = newOwner();
  log.append(owner, new Turn());
  const ack = { seq: 1, outcome: 'committed' } as const;
  log.settle([ack, ack]);
  log.lose();
  log.settle([ack]);
  assert.deepEqual(outcomes, [ack]);
});

test('threads share what the front and what is no heap leave them, within bounds', () => {
  const cases: readonly [memory: number, threads: number, heapMib: number, youngMib?: number][] = [
    [128, 2, 64],
    [512, 3, 64],
    [1_024, 2, 288],
    [2_048, 5, 268],
    [2_048, 2, 672, 96],
    [16_384, 9, 1_344, 96],
    [262_144, 3, 2_000, 96],
  ];
  for (const [memory, threads, heapMib, youngMib] of cases) {
    assert.equal(threadHeapMib(memory, threads), heapMib);
    assert.equal(threadYoungMib(memory, threads), youngMib);
  }
});

test('actors take a quarter of a heap, and no more than collections stay short with', () => {
  assert.equal(residentBytesMax(288), 72 * 2 ** 20);
  assert.equal(residentBytesMax(4_096), 512 * 2 ** 20);
});

test('a call without an answer is given up, and one that waits for the database is not', async () => {
  const { port1, port2 } = new MessageChannel();
  let give: (text: string) => void = () => undefined;
  const answer = new Promise<string>((resolve) => {
    give = resolve;
  });
  const surface = { quick: () => new Promise<void>(() => undefined), patient: () => answer };
  serveControl(surface, port2);
  const link = linkControl<typeof surface>(port1, 1, ['patient']);
  const waiting = link.remote.patient();
  await assert.rejects(link.remote.quick(), /no answer in time/);
  give('done');
  assert.equal(await waiting, 'done');
  link.close('over');
  port2.close();
});

const ID = '01950000-0000-7000-8000-000000000000';
const SEQUENCE: SequenceRow = {
  ...{ id: ID, tenant_id: TENANT, namespace: 'n', name: 's', version: 1, deprecated: false },
  definition: JSON.stringify({ blocks: [work('a')] }),
};

const INSTANCE = newInstance(ID, { sequence_id: ID, tenant_id: TENANT });

/** Of actors that are named by their ids and belong to nobody. */
const NAMES = {
  keyOf: (id: string) => id,
  nameOf: (actor: string) => ({ actor }),
  tenantOf: () => undefined,
};

const creation = (request: number, instance: NewInstance): PeerMessage => {
  return { kind: 'create', request, creation: JSON.stringify(instance) };
};

const limit = (key: string, window_seconds: number): RateLimitRow => {
  const updated_at = isoTime(0);
  const id = rateLimitId(TENANT, key);
  return { id, tenant_id: TENANT, limit_key: key, max_count: 1, window_seconds, updated_at };
};

test('a schedule that throws in the middle of its fire commits nothing of it', async () => {
  const due: ScheduleRow = {
    ...{ id: ID, tenant_id: TENANT, namespace: 'n', sequence_id: ID, sequence: null },
    ...{ version: null, cron_expr: 'never mind', timezone: 'UTC', enabled: true, metadata: '{}' },
    ...{ context: '{"data":{},"config":{}}', priority: 'Normal', timeout: null },
    ...{ overlap_policy: 'allow', skipped_fires: 0, last_skipped_at: null },
    ...{ last_triggered_at: null, next_fire_at: isoTime(1_600_000_000_000), last_error: null },
    ...{ created_at: isoTime(0), updated_at: isoTime(0) },
  };
  const shard = new HandShard({
    dueSchedules: async ({ id }) =>
      id === ID ? [] : [{ id: ID, next_fire_at: due.next_fire_at as string }],
    schedules: async () => new Map([[ID, due]]),
    sequence: async () => SEQUENCE,
  });
  await shard.start();
  await shard.pass(1);
  assert.ok(shard.errors.some(({ msg }) => msg === 'defect'));
  assert.deepEqual(rowsOf(shard.units, 'instance.insert'), []);
});

test('a limit that throws at the end of the turn takes no other one with it', async () => {
  const poisoned = rateLimitId(TENANT, 'poisoned');
  const shard = new HandShard({
    rateLimit: async (id) => (id === poisoned ? limit('poisoned', Number.NaN) : limit('sound', 1)),
  });
  await shard.start();
  const step = { node: 0, iteration: '', attempt: 0 };
  const ask = (name: string) => {
    const limit = rateLimitId(TENANT, name);
    shard.hint({ kind: 'rate.asked', limit, tenant: TENANT, name, instance: ID, ...step });
  };
  ask('poisoned');
  await shard.run();
  ask('poisoned');
  ask('sound');
  const other = shard.ask('rateLimits.put', 'other', { max_count: 1, window_seconds: 1 });
  await shard.run();
  const limits = rowsOf(shard.units, 'rateGrant.insert').map(({ limit_id }) => limit_id);
  assert.deepEqual(limits, [rateLimitId(TENANT, 'sound')]);
  await shard.ack();
  assert.equal(shard.answer(other), 200);
});

test('an effect that cannot be performed holds up neither its unit nor those behind it', async () => {
  const shard = new HandShard({ sequence: async () => SEQUENCE });
  await shard.start();
  const sound = `${ID.slice(0, -1)}1`;
  // There is no rank for this priority, by which the instance would go on.
  const odd = { ...INSTANCE, body: { ...INSTANCE.body, priority: 'odd' as 'low' } };
  shard.hint(creation(91, odd), creation(92, { ...INSTANCE, id: sound }));
  await shard.run();
  await shard.ack();
  const unsound = shard.ask('instances.patchState', ID, { state: 'running' });
  const other = shard.ask('instances.patchState', sound, { state: 'running' });
  await shard.run();
  await shard.ack();
  const seen = [unsound, other].map((request) => shard.answer(request));
  assert.deepEqual(seen, [200, 200]);
});

test('a reply that cannot be posted is a 500, and the others of its post leave', async () => {
  const shard = new HandShard({}, (replies) => {
    if (replies.some((reply) => reply.request === 1 && 'status' in reply))
      throw new Error('not cloned');
  });
  await shard.start();
  const place = { tenant_id: TENANT, namespace: 'n', version: 1, blocks: [work('a')] };
  const asked = ['a', 'b'].map((name) => shard.ask('sequences.create', '', { ...place, name }));
  await shard.run();
  await shard.ack();
  const seen = asked.map((request) => shard.answer(request));
  assert.deepEqual(seen, ['ENG_INTERNAL', 201]);
});

test('a parent hears that a child which it retries is gone, wherever it lives', async () => {
  const child = '01950000-0000-7000-8000-000000000001';
  const parent = '01950000-0000-7000-8000-000000000002';
  const shard = new HandShard();
  await shard.start();
  shard.hint({ kind: 'family.message', to: child, from: parent, id: 'note', word: 'retry' });
  await shard.run();
  const told = rowsOf(shard.units, 'familyMessage.set');
  assert.deepEqual(told, [{ to_id: parent, from_id: child, id: 'note', word: 'gone' }]);
  const heard = rowsOf(shard.units, 'familyMessage.clear');
  assert.deepEqual(heard, [{ to_id: child, from_id: parent, id: 'note' }]);
});

test('a parent hears that a child is gone which is cancelled after it has failed', async () => {
  const parent = '01950000-0000-7000-8000-000000000002';
  const shard = new HandShard({ sequence: async () => SEQUENCE });
  await shard.start();
  const next_fire_at = isoTime(shard.now + 60_000);
  shard.hint(creation(91, { ...INSTANCE, parent, body: { ...INSTANCE.body, next_fire_at } }));
  const requests = [
    ['instances.patchState', { state: 'running' }],
    ['instances.patchState', { state: 'failed' }],
    ['instances.signal', { signal_type: 'cancel' }],
  ] as const;
  const words: unknown[] = [];
  for (const [operation, body] of requests) {
    await shard.run();
    await shard.ack();
    shard.ask(operation, ID, body);
    await shard.run();
    words.push(...rowsOf(shard.units, 'familyMessage.set').map((row) => row.word));
  }
  assert.deepEqual(words, ['failed', 'gone']);
});

test('an instance that throws with a unit under way is back when that is settled', async () => {
  const shard = new HandShard({ sequence: async () => SEQUENCE });
  await shard.start();
  const next_fire_at = isoTime(shard.now + 60_000);
  shard.hint(creation(91, { ...INSTANCE, body: { ...INSTANCE.body, next_fire_at } }));
  await shard.run();
  // To no time at all, which only the engine itself can ask for.
  const change = { kind: 'reschedule', offsetMs: 'x' };
  const asked = shard.ask('instances.changeMany', '', { ids: [ID], change });
  await shard.run();
  const refusals = `[{"instance_id":"${ID}","error":"internal error"}]`;
  const body = `{"applied":0,"skipped":0,"failed":1,"refusals":${refusals}}`;
  assert.deepEqual(shard.replies.get(asked), { request: asked, status: 200, body });
  const read = shard.ask('instances.get', ID);
  await shard.ack();
  // It is read again, and there are no rows here.
  assert.equal(shard.answer(read), 'ENG_NOT_FOUND');
});

test('an actor whose rows make no sense answers 500, and 503 when they cannot be read', async () => {
  const told = new Map<number, number>();
  const unrestorable: string[] = [];
  const host = new ActorHost<object, { readonly kind: 'ask'; readonly request: number }, object>(
    {
      noun: 'row',
      ...NAMES,
      residentMax: 3,
      load: async () => new Map(),
      restore: async (id) => {
        if (id === 'odd') return JSON.parse('{');
        if (id === 'away') throw new Error('Connection terminated unexpectedly');
        return {};
      },
      unrestorable: (id) => unrestorable.push(id),
      isIdle: () => true,
      handle: (resident, { request }) =>
        host.run(resident, { kind: 'ask', request }, (turn) => turn.reply(request, 200, '')),
    },
    hostDeps(told),
  );
  for (const [request, id] of ['odd', 'away', 'sound'].entries()) {
    host.tell(id, { kind: 'ask', request });
  }
  host.endTurn();
  await new Promise(setImmediate);
  assert.deepEqual(Object.fromEntries(told), { 0: 500, 1: 503, 2: 200 });
  assert.deepEqual(unrestorable, ['odd']);
});

test('when one of a batch throws, the others are decided anew and committed together', async () => {
  const commits = new CommitLog();
  const told = new Map<number, number>();
  const host = new ActorHost<
    { sum: number },
    { readonly kind: 'add'; readonly request: number; readonly by: number },
    object
  >(
    {
      noun: 'sum',
      ...NAMES,
      residentMax: 1,
      load: async () => new Map(),
      restore: () => ({ sum: 0 }),
      isIdle: () => true,
      handle: (resident, message) =>
        host.run(resident, message, (turn) => {
          resident.state.sum += message.by;
          turn.put(RATE_LIMIT.set, 'sum', JSON.stringify(resident.state));
          turn.reply(message.request, 200, '');
          if (Number.isNaN(resident.state.sum)) throw new Error('not a number');
        }),
      flush: () => 'done',
    },
    hostDeps(told, commits),
  );
  const turn = async () => {
    host.endTurn();
    await new Promise(setImmediate);
  };
  host.tell('a', { kind: 'add', request: 1, by: 1 });
  host.tell('a', { kind: 'add', request: 2, by: Number.NaN });
  host.tell('a', { kind: 'add', request: 3, by: 2 });
  // Loaded, found out, loaded again.
  for (let turns = 0; turns < 3; turns += 1) await turn();
  assert.deepEqual([...told], [[2, 500]]);
  const units = commits.take();
  assert.deepEqual(rowsOf(units, 'rateLimit.set'), [{ sum: 1 }, { sum: 3 }]);
  assert.equal(units.length, 1);
  commits.settle([{ seq: 1, outcome: 'committed' }]);
  assert.deepEqual(Object.fromEntries(told), { 1: 200, 2: 500, 3: 200 });
});

test('a request of a service is answered whatever its work comes to', async () => {
  const told = new Map<number, number>();
  const service = new Service('a service', hostDeps(told, new CommitLog()));
  const unsendable: { self?: object } = {};
  unsendable.self = unsendable;
  service.answer(1, 201, undefined, async () => ({}));
  service.answer(2, 200, 'line', async () => unsendable);
  service.answer(3, 204, 'line', async () => undefined);
  await new Promise(setImmediate);
  assert.deepEqual(Object.fromEntries(told), { 1: 201, 2: 500, 3: 204 });
});
