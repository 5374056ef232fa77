/** The small parts that a shard is made of. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import {
  compareTasks,
  LAST_PLACE,
  type ReadyTask,
  ReadyTasks,
} from '../../actors/queue/ready-tasks.js';
import { CommitLog, type Settlement } from '../../actors/runtime/commit-log.js';
import type { Request } from '../../actors/runtime/protocol.js';
import { TimerHeap } from '../../actors/runtime/timer-heap.js';
import { Turn } from '../../actors/runtime/turn.js';
import { FairInbox } from '../../actors/shard/inbox.js';
import {
  createIdGenerator,
  keyedInstanceId,
  routeForShard,
  routeOf,
  shardOf,
} from '../../src/core/ids.js';
import { LIMITS } from '../../src/limits.js';
import { check } from '../helpers/properties.js';

const request = (id: number, tenant: string): Request => ({
  id,
  operation: 'instances.get',
  tenant,
  target: '',
  body: '',
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
    serveAll: (count: number) => Array.from({ length: count }, serve),
    pass: (time: number) => {
      at += time;
    },
  };
}

test('requests of one tenant leave in order of arrival', () => {
  const { inbox, serveAll } = serving(() => 1);
  for (let id = 1; id <= 3; id++) inbox.push(request(id, 't'));
  assert.deepEqual(
    serveAll(4).map((next) => next?.id),
    [1, 2, 3, undefined],
  );
});

test('a request that is not done goes on before the others of its tenant, with other tenants in between', () => {
  const inbox = new FairInbox();
  let at = 0;
  for (const id of [1, 2]) inbox.push(request(id, 'large'));
  for (const id of [10, 11]) inbox.push(request(id, 'other'));
  let left = 2;
  const served: number[] = [];
  while (inbox.size > 0) {
    const next = inbox.shift(at) as Request;
    served.push(next.id);
    at += 1;
    inbox.charge(at, next.id === 1 && left-- > 0 ? next : undefined);
  }
  assert.deepEqual(served, [1, 10, 1, 11, 1, 2]);
});

test('tenants take turns, so a flood of one does not delay the other', () => {
  const { inbox, serveAll } = serving(() => 0);
  for (let id = 1; id <= 100; id++) inbox.push(request(id, 'flood'));
  inbox.push(request(1_000, 'quiet'));
  const first = serveAll(2).map((next) => next?.id);
  assert.ok(first.includes(1_000));
  assert.equal(inbox.size, 99);
});

test('tenants share the time of a shard and not the number of its requests', () => {
  const { inbox, serveAll } = serving((tenant) => (tenant === 'dear' ? 100 : 10));
  for (let id = 1; id <= 4; id++) inbox.push(request(id, 'dear'));
  for (let id = 1; id <= 40; id++) inbox.push(request(id, 'cheap'));
  const served = serveAll(22).map((next) => next?.tenant);
  assert.equal(served.filter((tenant) => tenant === 'cheap').length, 20, served.join(' '));
});

test('what a tenant took is held against it although nobody was heard of meanwhile', () => {
  const { inbox, serve, serveAll, pass } = serving((tenant) => (tenant === 'dear' ? 25 : 10));
  inbox.push(request(1, 'dear'));
  assert.equal(serve()?.id, 1);
  pass(1);
  inbox.push(request(2, 'dear'));
  for (let id = 3; id <= 5; id++) inbox.push(request(id, 'cheap'));
  assert.deepEqual(
    serveAll(4).map((next) => next?.id),
    [3, 4, 5, 2],
  );
});

test('time that nobody wanted is held against no one', () => {
  const { inbox, serve, pass } = serving((tenant) => (tenant === 'dear' ? 25 : 10));
  inbox.push(request(1, 'dear'));
  serve();
  pass(25);
  inbox.push(request(2, 'dear'));
  serve();
  pass(100);
  inbox.push(request(3, 'cheap'));
  assert.equal(serve()?.id, 3);
  inbox.push(request(4, 'dear'));
  inbox.push(request(5, 'cheap'));
  assert.equal(serve()?.id, 4);
});

test('a tenant that comes late has saved nothing up', () => {
  const { inbox, serveAll } = serving(() => 10);
  for (let id = 1; id <= 50; id++) inbox.push(request(id, 'early'));
  serveAll(30);
  for (let id = 101; id <= 110; id++) inbox.push(request(id, 'late'));
  const tenants = serveAll(10).map((next) => next?.tenant);
  assert.equal(tenants.filter((tenant) => tenant === 'late').length, 5);
});

test('a large request is known before it leaves', () => {
  const { inbox, serve } = serving(() => 1);
  inbox.push(request(1, 'a'));
  inbox.push({ ...request(2, 'b'), body: ' '.repeat(100_000) });
  assert.equal(inbox.isLargeNext, false);
  serve();
  assert.equal(inbox.isLargeNext, true);
});

test('the timer heap gives what is due in the order of time and nothing early', (t) => {
  check(
    t,
    100,
    fc.tuple(fc.array(fc.integer({ min: 0, max: 50 })), fc.integer({ min: 0, max: 50 })),
    ([times, now]) => {
      const heap = new TimerHeap<number>();
      for (const at of times) heap.push(at, at);
      const due: number[] = [];
      for (let at = heap.popDue(now); at !== undefined; at = heap.popDue(now)) due.push(at);
      assert.deepEqual(
        due,
        times.filter((at) => at <= now).sort((a, b) => a - b),
      );
      assert.equal(heap.size, times.length - due.length);
    },
  );
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
    assert.deepEqual(
      taken,
      known.map(({ id }) => id),
    );
    assert.equal(count.tasks, 0);
  });
});

test('ready tasks that were removed leave nothing in memory', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const used = () => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const ready = new ReadyTasks({ tasks: 0 }, LIMITS.windowTasksMax, LAST_PLACE);
  const before = used();
  for (let n = 0; n < 200_000; n++) {
    const id = `task ${n}`;
    ready.add({ id, instance: id, tenant: 't', queue: '', rank: 0, createdAt: n });
    ready.remove(id);
  }
  assert.equal(ready.first(), undefined);
  assert.ok(used() - before < 5 * 1024 * 1024);
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
    made.push(ids.next(i & 0xffff));
  }
  assert.ok(
    made.every((id) =>
      /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id),
    ),
  );
  assert.deepEqual([...made].sort(), made);
  assert.equal(new Set(made).size, made.length);
  assert.ok(made.every((id, index) => routeOf(id) === (index & 0xffff)));
});

test('an id made for a shard falls on it', (t) => {
  check(
    t,
    100,
    fc.tuple(fc.integer({ min: 1, max: 64 }), fc.nat(), fc.nat()),
    ([shards, pick, random]) => {
      const shard = pick % shards;
      const route = routeForShard(shard, shards, () => random);
      assert.ok(route >= 0 && route <= 0xffff);
      assert.equal(shardOf(route, shards), shard);
    },
  );
});

test('an idempotency key names one instance per tenant, and keys cannot be shifted into tenants', () => {
  assert.equal(keyedInstanceId('a', 'bc'), keyedInstanceId('a', 'bc'));
  assert.notEqual(keyedInstanceId('a', 'bc'), keyedInstanceId('ab', 'c'));
  assert.match(keyedInstanceId('a', 'bc'), /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab]/);
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
