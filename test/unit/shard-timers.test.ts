/** Which overdue timers a shard finds, and how much of the table it looks at for that. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Rows } from '../../actors/runtime/loader.js';
import { ShardTimers } from '../../actors/shard/timers.js';
import type { Clock } from '../../src/core/clock.js';
import type { Logger } from '../../src/log.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const START = 1_000 * MINUTE;

/** A shard whose only events are scans, every second, over a table that the test fills. */
async function setUp() {
  const table = new Map<string, number>();
  const found: string[] = [];
  const looks: number[] = [];
  let now = START;
  let isBehind = false;
  let scan: (() => void) | undefined;
  const clock: Clock = {
    now: () => now,
    monotonic: () => now,
    setTimeout: (fn) => {
      scan = fn;
      return fn;
    },
    clearTimeout: () => undefined,
  };
  const rows: Pick<Rows, 'dueTimers' | 'overdueTimers'> = {
    dueTimers: async () => undefined,
    async overdueTimers(from, to) {
      looks.push(to - from);
      const due = [...table].filter(([, at]) => at > from && at <= to);
      return due.slice(0, 1_000).map(([instance]) => ({ instance, rank: 2, tenant: '' }));
    },
  };
  const timers = new ShardTimers({
    clock,
    loader: rows as Rows,
    log: {} as Logger,
    tickIntervalMs: SECOND,
    wakeShard: () => undefined,
    isBehind: () => isBehind,
    onOverdue({ instance }) {
      table.delete(instance);
      found.push(instance);
    },
  });
  await timers.start();
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += SECOND) {
      now += SECOND;
      scan?.();
      await new Promise(setImmediate);
    }
  };
  const setBehind = (value: boolean) => {
    isBehind = value;
  };
  return { table, found, looks, timers, pass, at: () => now, setBehind };
}

test('a scan looks at what became overdue since the last one, and seldom at more', async () => {
  const { looks, pass } = await setUp();
  await pass(20 * MINUTE);
  const back = (ms: number) => looks.filter((look) => look > ms).length;
  assert.deepEqual(
    [back(MINUTE * 1.5), back(MINUTE), back(3 * SECOND)],
    [2, 2 + 118, 2 + 118],
    'from the start every ten minutes, a minute back every ten seconds',
  );
});

test('while more wait for their turn than a scan finds only the longer looks back are made', async () => {
  const { looks, pass, table, found, at, setBehind } = await setUp();
  await pass(MINUTE);
  setBehind(true);
  const before = looks.length;
  table.set('missed', at());
  await pass(20 * SECOND);
  assert.equal(looks.length, before + 2);
  assert.ok(found.includes('missed'));
  setBehind(false);
  await pass(SECOND);
  assert.equal(looks.length, before + 3);
});

test('timers that are committed with a time in the past are found', async () => {
  const { table, found, pass, at } = await setUp();
  await pass(MINUTE);
  table.set('late by a second', at() - SECOND);
  table.set('late by half a minute', at() - MINUTE / 2);
  table.set('late by an hour', at() - 60 * MINUTE);
  await pass(2 * SECOND);
  assert.ok(found.includes('late by a second'));
  await pass(10 * SECOND);
  assert.deepEqual(found.toSorted(), ['late by a second', 'late by half a minute']);
  await pass(10 * MINUTE);
  assert.equal(found.length, 3);
});

test('after a loss of hints the next scan begins at the start', async () => {
  const { table, found, pass, at, timers } = await setUp();
  await pass(MINUTE);
  table.set('late by an hour', at() - 60 * MINUTE);
  timers.rescan();
  await pass(SECOND);
  assert.deepEqual(found, ['late by an hour']);
});

test('more than one page of overdue timers is worked off page by page', async () => {
  const { table, found, pass, at } = await setUp();
  await pass(MINUTE);
  for (let n = 0; n < 2_500; n++) table.set(`instance ${n}`, at());
  await pass(4 * SECOND);
  assert.equal(found.length, 2_500);
});

test('a shard sleeps until its first timer, whatever comes before it and however the clock is set', () => {
  let monotonic = 0;
  let offset = START;
  const set: number[] = [];
  let cleared = 0;
  let woken = 0;
  let fire: () => void = () => assert.fail('nothing was set');
  const timers = new ShardTimers({
    clock: {
      now: () => monotonic + offset,
      monotonic: () => monotonic,
      setTimeout: (fn, ms) => {
        set.push(monotonic + ms);
        fire = fn;
        return fn;
      },
      clearTimeout: (handle) => {
        if (handle !== undefined) cleared += 1;
      },
    },
    loader: {} as Rows,
    log: {} as Logger,
    tickIntervalMs: SECOND,
    isBehind: () => false,
    wakeShard: () => {
      woken += 1;
    },
    onOverdue: () => undefined,
  });
  const push = (inMs: number) =>
    timers.push(monotonic + offset + inMs, { kind: 'expire', request: inMs });
  const sleep = (afterMs: number) => {
    monotonic += afterMs;
    timers.sleep();
  };
  sleep(0);
  assert.deepEqual(set, [], 'there is nothing to sleep for');
  push(20 * SECOND);
  sleep(0);
  push(30 * SECOND);
  sleep(SECOND);
  sleep(SECOND);
  assert.deepEqual([set, cleared], [[20 * SECOND], 0], 'what is set comes in time');
  push(5 * SECOND);
  sleep(0);
  assert.deepEqual([set.at(-1), cleared], [7 * SECOND, 1]);
  offset += 3 * SECOND;
  sleep(0);
  assert.deepEqual([set.at(-1), cleared], [4 * SECOND, 2], 'its time is sooner by now');
  offset -= 3 * SECOND;
  sleep(0);
  assert.deepEqual([set.at(-1), cleared], [4 * SECOND, 2], 'to wake too soon does no harm');
  monotonic = 4 * SECOND;
  fire();
  assert.deepEqual([woken, timers.popDue()], [1, undefined]);
  sleep(0);
  assert.equal(set.at(-1), 7 * SECOND);
  monotonic = 7 * SECOND;
  fire();
  assert.deepEqual([woken, timers.popDue()], [2, { kind: 'expire', request: 5 * SECOND }]);
  sleep(0);
  assert.equal(set.at(-1), 20 * SECOND);
});
