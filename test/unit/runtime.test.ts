/** The small parts that a shard is made of. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { CommitLog, type Settlement } from '../../actors/commit-log.js';
import { FairInbox } from '../../actors/inbox.js';
import type { Request } from '../../actors/protocol.js';
import { compareTasks, type ReadyTask, ReadyTasks } from '../../actors/ready-tasks.js';
import { TimerHeap } from '../../actors/timer-heap.js';
import { Turn } from '../../actors/turn.js';
import {
  createIdGenerator,
  keyedInstanceId,
  routeForShard,
  routeOf,
  shardOf,
} from '../../src/core/ids.js';

const request = (id: number, tenant: string): Request => [id, 'instances.get', tenant, '', ''];

test('requests of one tenant leave in order of arrival', () => {
  const inbox = new FairInbox();
  for (let id = 1; id <= 3; id++) inbox.push(request(id, 't'));
  assert.deepEqual([inbox.shift()?.[0], inbox.shift()?.[0], inbox.shift()?.[0]], [1, 2, 3]);
  assert.equal(inbox.shift(), undefined);
});

test('tenants take turns, so a flood of one does not delay the other', () => {
  const inbox = new FairInbox();
  for (let id = 1; id <= 100; id++) inbox.push(request(id, 'flood'));
  inbox.push(request(1_000, 'quiet'));
  const first = [inbox.shift()?.[0], inbox.shift()?.[0]];
  assert.ok(first.includes(1_000));
  assert.equal(inbox.size, 99);
});

test('the timer heap gives what is due in the order of time and nothing early', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 50 })),
      fc.integer({ min: 0, max: 50 }),
      (times, now) => {
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
    ),
  );
});

test('ready tasks leave in the order of their queue, whatever was removed in between', () => {
  const tasks = fc.array(
    fc.record({
      rank: fc.integer({ min: 0, max: 3 }),
      createdAt: fc.integer({ min: 0, max: 5 }),
      isRemoved: fc.boolean(),
    }),
  );
  fc.assert(
    fc.property(tasks, (specs) => {
      const ready = new ReadyTasks();
      const kept: ReadyTask[] = [];
      specs.forEach(({ rank, createdAt, isRemoved }, index) => {
        const id = `t${String(index).padStart(4, '0')}`;
        const item = { id, instance: '', tenant: `t${index % 2}`, queue: '', rank, createdAt };
        ready.add(item);
        if (isRemoved) ready.remove(id);
        else kept.push(item);
      });
      const taken: string[] = [];
      for (let item = ready.take('', undefined); item; item = ready.take('', undefined)) {
        taken.push(item.id);
      }
      assert.deepEqual(
        taken,
        kept.sort(compareTasks).map((item) => item.id),
      );
    }),
  );
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

test('an id made for a shard falls on it', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 64 }), fc.nat(), fc.nat(), (shards, pick, random) => {
      const shard = pick % shards;
      const route = routeForShard(shard, shards, () => random);
      assert.ok(route >= 0 && route <= 0xffff);
      assert.equal(shardOf(route, shards), shard);
    }),
  );
});

test('an idempotency key names one instance per tenant, and keys cannot be shifted into tenants', () => {
  assert.equal(keyedInstanceId('a', 'bc'), keyedInstanceId('a', 'bc'));
  assert.notEqual(keyedInstanceId('a', 'bc'), keyedInstanceId('ab', 'c'));
  assert.match(keyedInstanceId('a', 'bc'), /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab]/);
});

test('a barrier passes when every unit made before it is settled, not later ones', () => {
  const log = new CommitLog();
  const outcomes: Settlement[] = [];
  const owner = {
    key: 'a',
    incarnation: 0,
    settled: (_unit: unknown, outcome: Settlement) => outcomes.push(outcome),
  };
  log.append(owner, new Turn());
  log.append(owner, new Turn());
  let passed = false;
  log.whenSettled(() => {
    passed = true;
  });
  log.append(owner, new Turn());
  log.settle([[1, 'committed']]);
  assert.equal(passed, false);
  log.settle([[2, 'committed']]);
  assert.equal(passed, true);
  log.lose();
  assert.deepEqual(outcomes.at(-1), [3, 'lost']);
});
