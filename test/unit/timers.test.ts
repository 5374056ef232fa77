/** Timers of a shard, which are due and what is loaded before; cron expressions and instances of schedules. */

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { Cron } from 'croner';
import fc from 'fast-check';
import { IANAZone } from 'luxon';
import type { LoadedInstance } from '../../actors/instance/loads.js';
import { Reachability } from '../../actors/runtime/reachability.js';
import { nextFire, nextFires } from '../../actors/schedule/core/cron.js';
import { type CronFields, parseCron } from '../../actors/schedule/core/cron-fields.js';
import type { ScheduleRow } from '../../actors/schedule/loads.js';
import type { Loads } from '../../actors/shard/loads.js';
import { DueTimers, ShardTimers } from '../../actors/shard/timers.js';
import type { Clock } from '../../src/base/clock.js';
import { LIMITS } from '../../src/base/limits.js';
import type { Logger } from '../../src/base/log.js';
import type { UnitEnvelope } from '../../src/db/units.js';
import type { Json } from '../helpers/api.js';
import { column } from '../helpers/columns.js';
import { byDepth } from '../helpers/depth.js';
import { HandClock } from '../helpers/hand-clock.js';
import { HandShard, rowsOf, SEQUENCE, sequenceOf, TENANT } from '../helpers/hand-shard.js';
import { check, isWholeRun } from '../helpers/properties.js';
import { casesIn } from '../helpers/table.js';

const NOW = 1_000_000;
const LEAD = LIMITS.timerLeadMs;

const wake = (instance: string, tenant = 'a') =>
  ({ kind: 'wake', instance, rank: 2, tenant }) as const;

/** Everything that may be loaded ahead at that time. */
function ahead(timers: DueTimers, now: number, max: number): string[] {
  const instances: string[] = [];
  for (;;) {
    const instance = timers.nextAhead(now, max);
    if (instance === undefined) return instances;
    if (instance !== '') instances.push(instance);
  }
}

test('an instance is loaded ahead when its time is near, and those that are due first come first', () => {
  const timers = new DueTimers();
  timers.pushFar(NOW + 3, wake('third'));
  timers.pushFar(NOW + 1, wake('first'));
  timers.pushFar(NOW + LEAD + 50, wake('later'));
  timers.pushFar(NOW + 2, wake('second'));
  assert.deepEqual(ahead(timers, NOW, 10), ['first', 'second', 'third']);
  assert.deepEqual(ahead(timers, NOW + 49, 10), []);
  assert.deepEqual(ahead(timers, NOW + 50, 10), ['later']);
});

test('the shard sleeps until the first is due or to be loaded, and no longer than that', () => {
  const timers = new DueTimers();
  assert.equal(timers.nextAt(NOW), undefined);
  timers.pushFar(NOW + LEAD + 50, wake('later'));
  assert.equal(timers.nextAt(NOW), NOW + 50);
  timers.push(NOW + 7, { kind: 'expire', request: 1 });
  assert.equal(timers.nextAt(NOW), NOW + 7);
  assert.deepEqual(timers.popDue(NOW + 7), { kind: 'expire', request: 1 });
  assert.equal(timers.nextAt(NOW + 50), NOW + LEAD + 50, 'no place is left: until it is due');
  assert.deepEqual(ahead(timers, NOW + 50, 10), ['later']);
  assert.equal(timers.nextAt(NOW + 50), NOW + LEAD + 50);
});

test('what is due comes in its order, whether or not it was loaded ahead', () => {
  const timers = new DueTimers();
  for (const n of [4, 2, 3, 1]) timers.pushFar(NOW + n, wake(`${n}`));
  timers.push(NOW + 2.5, { kind: 'expire', request: 1 });
  assert.deepEqual(ahead(timers, NOW, 2), ['1', '2']);
  const due: unknown[] = [];
  for (let timer = timers.popDue(NOW + 9); timer; timer = timers.popDue(NOW + 9)) {
    due.push('instance' in timer ? timer.instance : timer.kind);
  }
  assert.deepEqual(due, ['1', '2', 'expire', '3', '4']);
});

test('one tenant has three quarters of the places at most, and gets others when its instances are due', () => {
  const timers = new DueTimers();
  for (let n = 0; n < 10; n += 1) timers.pushFar(NOW + 100 + n, wake(`a${n}`));
  for (let n = 0; n < 10; n += 1) timers.pushFar(NOW + 200 + n, wake(`b${n}`, 'b'));
  for (let n = 0; n < 10; n += 1) timers.pushFar(NOW + 300 + n, wake(`c${n}`));
  assert.deepEqual(ahead(timers, NOW, 8), ['a0', 'a1', 'a2', 'a3', 'a4', 'a5', 'b0', 'b1']);
  for (let n = 0; n < 10; n += 1) timers.popDue(NOW + 109);
  assert.deepEqual(ahead(timers, NOW + 150, 8), ['b2', 'b3', 'b4', 'b5', 'c0', 'c1']);
});

let shard: HandShard;
afterEach(() => (shard as HandShard | undefined)?.shard.stop());

/** What the clock of a new shard shows. */
const START = 1_700_000_000_000;
const NORMAL = 2;
const BURST = 2 * LIMITS.dueLoadsMax;
const NOOP = [{ type: 'step', id: 'a', handler: 'noop' }];

/** Rows that come when the test lets them come: there are none, as of instances that are gone. */
class SlowRows {
  readonly asked: string[] = [];
  #waiting: (() => void)[] = [];

  readonly instances: Loads['instances'] = (ids) => {
    this.asked.push(...ids);
    return new Promise((resolve) => {
      this.#waiting.push(() => resolve(new Map<string, LoadedInstance>()));
    });
  };

  come(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

function idsOf(tenant: string, count: number): string[] {
  const digits = (number: number) => number.toString(16).padStart(12, '0');
  const owner = tenant.charCodeAt(0).toString(16).padStart(4, '0');
  return Array.from(
    { length: count },
    (_, at) => `01950000-0000-7000-8${owner.slice(1)}-${digits(at)}`,
  );
}

function due(tenant: string, count: number): string[] {
  const ids = idsOf(tenant, count);
  for (const instance of ids) shard.hint({ kind: 'wake', instance, at: 0, rank: NORMAL, tenant });
  return ids;
}

test('of those that are due only so many are read at once, each of them once', async () => {
  const rows = new SlowRows();
  shard = new HandShard({ ...sequenceOf(NOOP), instances: rows.instances });
  await shard.start();
  const ids = due('a', BURST);
  await shard.run();
  assert.equal(rows.asked.length, LIMITS.dueLoadsMax);
  await shard.run();
  assert.equal(rows.asked.length, LIMITS.dueLoadsMax, 'nothing came of the first ones yet');
  rows.come();
  await shard.run();
  assert.deepEqual(rows.asked.toSorted(), ids);
});

/** Without the one that notes how much was created. */
const unitsOfInstances = (): number =>
  shard.units.filter((unit) => rowsOf([unit], 'activity.set').length === 0).length;

test('instances that are due wait for the commits of those before them, and requests do not', async () => {
  shard = new HandShard(sequenceOf(NOOP));
  await shard.start();
  const dueAt = new Date(shard.now + 30_000).toISOString();
  const burst = LIMITS.dueUnitsMax + 44;
  for (let at = 0; at < burst; at += 1) shard.create({ next_fire_at: dueAt });
  await shard.run();
  await shard.ack();
  await shard.pass(30_000);
  assert.equal(unitsOfInstances(), LIMITS.dueUnitsMax);
  const request = shard.create();
  await shard.run();
  assert.equal(unitsOfInstances(), LIMITS.dueUnitsMax + 1);
  await shard.ack();
  assert.equal(shard.answer(request), 201);
  assert.equal(unitsOfInstances(), 44, 'the others went on when the first were committed');
});

test('instances are read shortly before they are due, a few at a time, and once', async () => {
  const rows = new SlowRows();
  const ids = idsOf('a', LIMITS.aheadLoadsMax + 10);
  const dueTimers: Loads['dueTimers'] = async (from, to, each) => {
    const dueAt = START + LIMITS.timerLeadMs + 5_000;
    if (from >= dueAt || to < dueAt) return;
    for (const instance of ids) each(dueAt, { instance, rank: NORMAL, tenant: 'a' });
  };
  shard = new HandShard({ ...sequenceOf(NOOP), instances: rows.instances, dueTimers });
  await shard.start();
  await shard.pass(4_999);
  assert.deepEqual(rows.asked, [], 'not before their time');
  await shard.pass(1);
  assert.equal(rows.asked.length, LIMITS.aheadLoadsMax);
  rows.come();
  await shard.run();
  assert.deepEqual(rows.asked.toSorted(), ids);
});

test('while another tenant sends requests, fewer due timers run at once', async () => {
  shard = new HandShard(sequenceOf(NOOP));
  await shard.start();
  const dueAt = new Date(shard.now + 30_000).toISOString();
  const burst = LIMITS.dueUnitsMax + 2 * LIMITS.dueUnitsSharedMax;
  for (let at = 0; at < burst; at += 1) shard.create({ next_fire_at: dueAt });
  await shard.run();
  await shard.ack();
  await shard.pass(30_000);
  assert.equal(unitsOfInstances(), LIMITS.dueUnitsMax);
  shard.ask('instances.get', '01950000-0000-7000-8000-000000000000', {}, 'b');
  await shard.run();
  await shard.ack();
  assert.equal(unitsOfInstances(), LIMITS.dueUnitsSharedMax);
});

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const SCANS_FROM = 1_000 * MINUTE;

/** A shard whose only events are scans, every second, over a table that the test fills. */
async function setUp() {
  const table = new Map<string, number>();
  const found: string[] = [];
  const looks: number[] = [];
  let now = SCANS_FROM;
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
  const rows: Pick<Loads, 'dueTimers' | 'overdueTimers'> = {
    dueTimers: async () => undefined,
    async overdueTimers(from, to) {
      looks.push(to - from);
      const due = [...table].filter(([, at]) => at > from && at <= to);
      return due.slice(0, 1_000).map(([instance]) => ({ instance, rank: 2, tenant: '' }));
    },
  };
  const timers = new ShardTimers({
    clock,
    loader: rows as Loads,
    log: {} as Logger,
    tickIntervalMs: SECOND,
    wakeShard: () => undefined,
    isBehind: () => isBehind,
    onStoodStill: () => undefined,
    onOverdue({ instance }) {
      table.delete(instance);
      found.push(instance);
    },
  });
  await timers.prepare();
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

test('after a loss of hints the next scan begins at the start, and works off page by page', async () => {
  const { table, found, pass, at, timers } = await setUp();
  await pass(MINUTE);
  table.set('late by an hour', at() - 60 * MINUTE);
  timers.peerBack();
  await pass(SECOND);
  assert.deepEqual(found, ['late by an hour']);
  for (let n = 0; n < 2_500; n++) table.set(`instance ${n}`, at());
  await pass(4 * SECOND);
  assert.equal(found.length, 2_501);
});

test('a shard sleeps until its first timer, whatever comes before it and however the clock is set', () => {
  let monotonic = 0;
  let offset = SCANS_FROM;
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
    loader: {} as Loads,
    log: {} as Logger,
    tickIntervalMs: SECOND,
    isBehind: () => false,
    onStoodStill: () => undefined,
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
  /** The time that is slept until, and how often another one was cleared. */
  const state = () => `${(set.at(-1) ?? 0) / SECOND} ${cleared}`;
  sleep(0);
  assert.deepEqual(set, [], 'there is nothing to sleep for');
  push(20 * SECOND);
  sleep(0);
  push(30 * SECOND);
  for (const _ of [1, 2]) sleep(SECOND);
  assert.deepEqual([set.length, state()], [1, '20 0'], 'what is set comes in time');
  push(5 * SECOND);
  sleep(0);
  assert.equal(state(), '7 1');
  offset += 3 * SECOND;
  sleep(0);
  assert.equal(state(), '4 2', 'its time is sooner by now');
  offset -= 3 * SECOND;
  sleep(0);
  assert.equal(state(), '4 2', 'to wake too soon does no harm');
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

const asked: string[] = [];
let scheduleId = '';

/** A schedule of every second that is committed. */
async function scheduled(rows: Partial<Loads> = {}, more: Json = {}): Promise<void> {
  asked.length = 0;
  shard = new HandShard({
    ...sequenceOf([{ type: 'step', id: 'a', handler: 'noop' }]),
    ...rows,
    instances: async (ids) => {
      asked.push(...ids);
      return new Map<string, LoadedInstance>();
    },
  });
  await shard.start();
  const body = { tenant_id: TENANT, namespace: 'n', sequence_id: SEQUENCE };
  const request = shard.ask('cron.create', '', { ...body, cron_expr: '* * * * * ? *', ...more });
  await shard.run();
  await shard.ack();
  assert.equal(shard.answer(request), 201);
  scheduleId = JSON.parse((shard.replies.get(request) as { body: string }).body).id;
}

/** The same when its first instance was decided, and is not committed. */
async function fired(): Promise<void> {
  await scheduled();
  await shard.pass(1_000);
  await shard.pass(10);
  assert.equal(rowsOf(shard.units, 'instance.insert').length, 1);
}

test('an instance of a schedule goes on when it is committed, and is not read for it', async () => {
  await fired();
  const [born] = rowsOf(shard.units, 'instance.insert');
  await shard.ack();
  const ended = [...rowsOf(shard.units, 'instance.update'), ...rowsOf(shard.units, 'instance.end')];
  assert.deepEqual(asked, []);
  assert.ok(
    shard.units.some(({ mutations }) => mutations.includes(born?.id as string)),
    `its next unit is made: ${JSON.stringify(ended)}`,
  );
});

test('an instance of a schedule that was there already is not taken for the one that was not made', async () => {
  await fired();
  await shard.ack(({ seq }) => ({ seq, outcome: 'exists' }));
  assert.equal(rowsOf(shard.units, 'instance.insert').length, 0);
  await shard.pass(10);
  const seen = shard.units.filter(({ mutations }) => mutations.length > 0);
  assert.deepEqual(seen, []);
});

describe('a change of a schedule by request', () => {
  const nextOf = () => rowsOf(shard.units, 'cron.set').map(({ next_fire_at }) => next_fire_at);
  const born = () => rowsOf(shard.units, 'instance.insert').length;

  test('keeps the fire that is due, and holds it up neither before nor after its commit', async () => {
    await fired();
    await shard.ack();
    await shard.ack();
    const [first] = nextOf();
    assert.equal(first, undefined);
    // The time comes while nobody looks.
    shard.clock.ms += 1_000;
    const id = scheduleId;
    for (const metadata of [{ n: 1 }, { n: 2 }]) shard.ask('cron.update', id, { metadata });
    await shard.run();
    const [kept, again] = nextOf();
    assert.ok(kept === again && Date.parse(kept as string) <= shard.now);
    await shard.pass(10);
    assert.equal(born(), 1, 'the changes are under way, and it fires');
    const [, , next] = nextOf();
    shard.ask('cron.update', id, { metadata: { n: 3 } });
    await shard.run();
    assert.equal(nextOf()[3], next, 'the next fire is that of the fire under way');
  });

  test('lets a look before the fire go on, unless it changes what the look is about', async () => {
    const looks: ((runs: string[]) => void)[] = [];
    const activeRuns = () => new Promise<string[]>((resolve) => looks.push(resolve));
    await scheduled({ activeRuns }, { overlap_policy: 'skip' });
    const due = async () => {
      await shard.pass(1_000);
      await shard.pass(10);
    };
    const change = async (changes: Json) => {
      shard.ask('cron.update', scheduleId, changes);
      await shard.run();
    };
    await due();
    await change({ metadata: { n: 1 } });
    looks[0]?.([]);
    await shard.run();
    assert.deepEqual([looks.length, born()], [1, 1]);
    await shard.ack();
    await due();
    await change({ overlap_policy: 'buffer_one' });
    looks[1]?.([]);
    await shard.run();
    assert.deepEqual([looks.length, born()], [2, 0]);
    await shard.ack();
    await shard.pass(10);
    looks[2]?.([SEQUENCE]);
    await shard.run();
    assert.deepEqual([looks.length, born()], [3, 0]);
  });

  test('that is refused takes the fire along, which comes again', async () => {
    const written: UnitEnvelope[] = [];
    await scheduled({
      schedules: async (ids) => {
        const row = rowsOf(written, 'cron.set').at(-1);
        const { metadata, context } = row ?? {};
        const texts = { metadata: JSON.stringify(metadata), context: JSON.stringify(context) };
        const read = { ...row, ...texts } as unknown as ScheduleRow;
        return new Map(row === undefined ? [] : ids.map((id) => [id, read]));
      },
    });
    shard.ask('cron.update', scheduleId, { metadata: { n: 1 } });
    await shard.run();
    written.push(...shard.units);
    await shard.ack();
    shard.ask('cron.update', scheduleId, { metadata: { n: 2 } });
    await shard.run();
    await shard.pass(1_000);
    await shard.pass(10);
    assert.equal(born(), 1);
    let units = 0;
    await shard.ack(({ seq }) =>
      units++ === 0
        ? { seq, outcome: 'refused', sqlState: '22000', reason: 'no' }
        : { seq, outcome: 'suffix' },
    );
    await shard.pass(10);
    assert.equal(born(), 1);
  });

  test('that meets the fire in the writer leaves the next one', async () => {
    await fired();
    const request = shard.ask('cron.update', scheduleId, {
      cron_expr: '* * * * * ? *',
      enabled: true,
    });
    await shard.run();
    const [fire, change] = nextOf();
    assert.equal(fire, change);
    await shard.ack();
    assert.equal(shard.answer(request), 200);
    await shard.pass(1_000);
    await shard.pass(10);
    assert.equal(born(), 1);
  });
});

function fieldsOf(expression: string): CronFields {
  const parsed = parseCron(expression);
  assert.ok(parsed.ok, `${expression}: ${parsed.ok ? '' : parsed.message}`);
  return parsed.fields;
}

/** The next fires after an instant, as texts without their milliseconds. */
function fires(expression: string, zone: string, after: string, count: number): string[] {
  return nextFires(fieldsOf(expression), zone, Date.parse(after), count).map((at) =>
    new Date(at).toISOString().replace('.000Z', 'Z'),
  );
}

const range = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index);

describe('fields', () => {
  test('seven, six and five of them mean the same where they say the same', () => {
    const seven = fieldsOf('0 30 9 * * MON-FRI *');
    assert.deepEqual(fieldsOf('0 30 9 * * MON-FRI'), seven);
    assert.deepEqual(fieldsOf('30 9 * * MON-FRI'), seven);
    assert.deepEqual(fieldsOf('  0\t30 9  ? * mon-Fri  ? '), seven);
    assert.deepEqual(seven, {
      seconds: [0],
      minutes: [30],
      hours: [9],
      days: range(1, 31),
      months: range(1, 12),
      weekdays: range(1, 5),
      years: [{ first: 1970, last: 2999, step: 1 }],
    });
  });

  const CASES: readonly (readonly [string, keyof CronFields, readonly number[]])[] = [
    ['5/20 * * * * * *', 'seconds', [5, 25, 45]],
    ['0 0 22,1-3,2-4 * * * *', 'hours', [1, 2, 3, 4, 22]],
    ['0 0 0 30 2 ? *', 'days', [30]],
    ['0 0 0 * jan,Mar-MAY,12 * *', 'months', [1, 3, 4, 5, 12]],
    ['0 0 0 ? * SUN,TUE-THU *', 'weekdays', [0, 2, 3, 4]],
  ];
  for (const [expression, field, values] of CASES) {
    test(`${expression} has the ${field} ${values.join(' ')}`, () => {
      assert.deepEqual(fieldsOf(expression)[field], values);
    });
  }

  const YEARS: readonly (readonly [string, object])[] = [
    ['2030-2034', { first: 2030, last: 2034, step: 1 }],
    ['2030/4', { first: 2030, last: 2999, step: 4 }],
    ['*/4', { first: 1970, last: 2999, step: 4 }],
  ];
  for (const [year, expected] of YEARS) {
    test(`the year ${year} is read`, () => {
      assert.deepEqual(fieldsOf(`0 0 0 1 1 ? ${year}`).years, [expected]);
    });
  }
});

describe('days of the week', () => {
  const SEVEN: readonly (readonly [string, readonly number[]])[] = [
    ['1', [0]],
    ['7', [6]],
    ['2/2', [1, 3, 5]],
    ['*/5', [0, 5]],
    ['SAT-SUN', [0, 6]],
    ['FRI-MON', [0, 1, 5, 6]],
    ['FRI-SUN/2', [0, 5]],
    ['7-1', [0, 6]],
    ['?', range(0, 6)],
  ];
  for (const [text, weekdays] of SEVEN) {
    test(`${text} in seven fields and in six`, () => {
      assert.deepEqual(fieldsOf(`0 0 0 ? * ${text} *`).weekdays, weekdays);
      assert.deepEqual(fieldsOf(`0 0 0 ? * ${text}`).weekdays, weekdays);
    });
  }

  const FIVE: readonly (readonly [string, readonly number[]])[] = [
    ['0', [0]],
    ['7', [0]],
    ['5-7', [0, 5, 6]],
    ['0-7', range(0, 6)],
    ['1/3', [1, 4]],
    ['SAT-SUN', [0, 6]],
  ];
  for (const [text, weekdays] of FIVE) {
    test(`${text} in five fields`, () => {
      assert.deepEqual(fieldsOf(`0 0 * * ${text}`).weekdays, weekdays);
    });
  }
});

test('shorthands stand for what they say, in any case', () => {
  const after = '2026-05-06T07:08:09Z';
  assert.deepEqual(fires('@hourly', 'UTC', after, 1), ['2026-05-06T08:00:00Z']);
  assert.deepEqual(fires('@daily', 'UTC', after, 1), ['2026-05-07T00:00:00Z']);
  assert.deepEqual(fires('@Weekly', 'UTC', after, 1), ['2026-05-10T00:00:00Z']);
  assert.deepEqual(fires('@monthly', 'UTC', after, 1), ['2026-06-01T00:00:00Z']);
  assert.deepEqual(fires('@YEARLY', 'UTC', after, 1), ['2027-01-01T00:00:00Z']);
});

describe('what is refused', () => {
  const wrongFields = `
60 * * * * * *      | 0 60 * * * * *        | 0 0 24 * * * *       | 0 0 0 0 * * *
0 0 0 32 * * *      | 0 0 0 * 0 * *         | 0 0 0 * 13 * *       | 0 0 0 * JANFEB * *
0 0 0 * FOO * *     | 0 0 0 ? * 0 *         | 0 0 0 ? * 8 *        | 0 0 * * 8
0 0 0 ? * FRI-MON/2 * | 0 0 0 ? * MON#2 *   | 0 0 0 L * ? *        | 0 0 0 15W * ? *
0 0 0 1 1 ? 1969    | 0 0 0 1 1 ? 3000      | 0 0 0 1 1 ? 2031-2030 | 0 0 0 1 1 ? 2030/0
0 30-10 * * * * *   | 0 */0 * * * * *       | 0 ,1 * * * * *       | 0 1,, * * * * *
0 1- * * * * *      | 0 -1 * * * * *        | 0 1.5 * * * * *      | 0 1e1 * * * * *
0 H * * * * *       | 0 **/2 * * * * *      | 0 ${range(0, 99).join(',')} * * * * *
*                   | * * * *               | * * * * * * * *      | soon
@reboot             | constructor           | __proto__            | toString`;
  for (const expression of ['', ...casesIn(wrongFields).flat()]) {
    test(`"${expression.slice(0, 40)}"`, () => {
      const parsed = parseCron(expression);
      assert.ok(!parsed.ok);
      assert.match(parsed.message, /^cron_expr /);
    });
  }
});

describe('the calendar', () => {
  test('years are honoured, and after the last one nothing fires', () => {
    const expression = '59 59 23 31 12 ? 2027,2030-2040/5';
    assert.deepEqual(fires(expression, 'UTC', '2026-01-01T00:00:00Z', 9), [
      '2027-12-31T23:59:59Z',
      '2030-12-31T23:59:59Z',
      '2035-12-31T23:59:59Z',
      '2040-12-31T23:59:59Z',
    ]);
    // The year is that of the zone's clocks.
    assert.deepEqual(fires('0 0 0 1 1 ? 2030', 'Asia/Tokyo', '2026-01-01T00:00:00Z', 2), [
      '2029-12-31T15:00:00Z',
    ]);
  });

  for (const expression of ['0 0 0 30 2 ? *', '0 0 0 31 4,6,9,11 ? *', '0 0 0 29 2 ? 2097-2103']) {
    test(`${expression} never fires, and the search ends`, () => {
      assert.equal(nextFire(fieldsOf(expression), 'Europe/Berlin', Date.UTC(2026, 0, 1)), null);
    });
  }
});

/** What fires after an instant: zone, expression, instant and the fires, each to the minute. */
function table(text: string): void {
  for (const [zone = '', expression = '', after = '', times = ''] of casesIn(text)) {
    const expected = times.split(' ').flatMap((time) => (time === '' ? [] : `${time}:00Z`));
    test(`${expression} in ${zone} after ${after}`, () => {
      assert.deepEqual(fires(expression, zone, after, expected.length || 1), expected);
    });
  }
}

describe('where clocks are put forward, skipped times fire once at the first minute after the gap', () => {
  table(`
# 02:00 → 03:00 on 29 March.
Europe/Berlin       | 0 30 2 * * ? *         | 2026-03-27T12:00:00Z | 2026-03-28T01:30 2026-03-29T01:00 2026-03-30T00:30
# All that was skipped is one fire, which is also that of 03:00.
Europe/Berlin       | 0 */20 1-3 29 3 ? 2026 | 2026-03-29T00:30:00Z | 2026-03-29T00:40 2026-03-29T01:00 2026-03-29T01:20 2026-03-29T01:40
# Asked just before the gap, and at its end.
Europe/Berlin       | 15 59 2 29 3 ? 2026    | 2026-03-29T00:59:59Z | 2026-03-29T01:00
Europe/Berlin       | 15 59 2 29 3 ? 2026    | 2026-03-29T01:00:00Z |
# 02:00 → 03:00 on 8 March.
America/New_York    | 0 5 2 * * SUN *        | 2026-03-02T00:00:00Z | 2026-03-08T07:00 2026-03-15T06:05
# 02:00 → 02:30 on 4 October.
Australia/Lord_Howe | 0 10,40 2 4 10 ? 2026  | 2026-10-03T00:00:00Z | 2026-10-03T15:30 2026-10-03T15:40
# 00:00 → 01:00 on 6 September.
America/Santiago    | @daily                 | 2026-09-05T12:00:00Z | 2026-09-06T04:00 2026-09-07T03:00
# A whole day, the 30th of December, is left out.
Pacific/Apia        | 0 0 12 * 12 ? 2011     | 2011-12-29T00:00:00Z | 2011-12-29T22:00 2011-12-30T10:00 2011-12-30T22:00
`);
});

describe('where clocks are put back, a fixed hour fires the first time only, and every hour each time', () => {
  table(`
# 03:00 → 02:00 on 25 October.
Europe/Berlin       | 0 30 2 * * ? *           | 2026-10-24T12:00:00Z | 2026-10-25T00:30 2026-10-26T01:30
# Asked between the two.
Europe/Berlin       | 0 30 2 * * ? *           | 2026-10-25T00:45:00Z | 2026-10-26T01:30
Europe/Berlin       | 0 30 2 * * ? *           | 2026-10-25T01:10:00Z | 2026-10-26T01:30
Europe/Berlin       | 0 0,30 1-3 25 10 ? 2026  | 2026-10-24T23:15:00Z | 2026-10-24T23:30 2026-10-25T00:00 2026-10-25T00:30 2026-10-25T02:00 2026-10-25T02:30
Europe/Berlin       | 0 0,30 * * * ? *         | 2026-10-25T00:10:00Z | 2026-10-25T00:30 2026-10-25T01:00 2026-10-25T01:30 2026-10-25T02:00
# 02:00 → 01:00 on 1 November.
America/New_York    | 0 15 1 * * ? *           | 2026-10-31T12:00:00Z | 2026-11-01T05:15 2026-11-02T06:15
America/New_York    | 0 45 * 1 11 ? *          | 2026-11-01T05:00:00Z | 2026-11-01T05:45 2026-11-01T06:45 2026-11-01T07:45
# 02:00 → 01:30 on 5 April: half an hour comes twice.
Australia/Lord_Howe | 0 0/15 * 5 4 ? 2026      | 2026-04-04T14:20:00Z | 2026-04-04T14:30 2026-04-04T14:45 2026-04-04T15:00 2026-04-04T15:15 2026-04-04T15:30
Australia/Lord_Howe | 0 0,30,45 1,2 5 4 ? 2026 | 2026-04-04T14:20:00Z | 2026-04-04T14:30 2026-04-04T14:45 2026-04-04T15:30
# 24:00 → 23:00 on 4 April, before midnight: the day has 25 hours.
America/Santiago    | 0 30 23 * * ? *          | 2026-04-04T12:00:00Z | 2026-04-05T02:30 2026-04-06T03:30
# 03:00 → 02:00 on 15 February, when Ramadan begins, and 02:00 → 03:00 on 22 March.
Africa/Casablanca   | 0 30 2 15,22 2,3 ? 2026  | 2026-02-14T12:00:00Z | 2026-02-15T01:30 2026-02-22T02:30 2026-03-15T02:30 2026-03-22T02:00
`);
});

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const ZONES = `UTC Europe/Berlin America/New_York Australia/Lord_Howe Africa/Casablanca
  America/Santiago Asia/Kathmandu Pacific/Apia`;
const zone = fc.constantFrom(...ZONES.split(/\s+/));

const MONTHS = 'JAN,FEB,MAR,APR,MAY,JUN,JUL,AUG,SEP,OCT,NOV,DEC'.split(',');
const WEEKDAYS = 'SUN,MON,TUE,WED,THU,FRI,SAT'.split(',');

/** One field: what both libraries read the same way. */
function field(min: number, max: number, names: readonly string[] = []): fc.Arbitrary<string> {
  const number = fc.integer({ min, max });
  const value = number.chain((n) => fc.constantFrom(String(n), names[n - min] ?? String(n)));
  const range = fc.tuple(number, number).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`);
  const step = fc.integer({ min: 1, max: max - min });
  const item = fc.oneof(
    value,
    range,
    fc.tuple(range, step).map(([text, by]) => `${text}/${by}`),
    step.map((by) => `*/${by}`),
  );
  const list = fc.uniqueArray(item, { minLength: 1, maxLength: 3 }).map((items) => items.join(','));
  return fc.oneof({ weight: 2, arbitrary: fc.constant('*') }, { weight: 3, arbitrary: list });
}

/** Mostly small parts of a day, so that many expressions fire rarely. */
const expression = fc
  .tuple(
    fc.oneof(fc.constant('0'), field(0, 59)),
    field(0, 59),
    field(0, 23),
    field(1, 31),
    field(1, 12, MONTHS),
    field(1, 7, WEEKDAYS),
    fc.constantFrom('*', '*', '2027-2029', '2028', '*/2', '2026,2031'),
  )
  .map((fields) => fields.join(' '));

const start = fc.integer({ min: Date.UTC(2026, 0, 1), max: Date.UTC(2030, 0, 1) });

const ORACLE = {
  mode: '7-part',
  domAndDow: true,
  alternativeWeekdays: true,
  paused: true,
} as const;
const FIRES = 12;

/** Fires around a change of clocks that the two see differently. */
function isDisputed(timezone: string, { hours, minutes, seconds }: CronFields, at: number) {
  const local = IANAZone.create(timezone);
  const [before, behind] = [local.offset(at - DAY_MS), local.offset(at + DAY_MS)];
  if (before === behind) return false;
  const isSingle = hours.length * minutes.length * seconds.length === 1;
  return before < behind || !(isSingle || hours.length === 24);
}

test('fires are those that croner finds', (t) => {
  let compared = 0;
  check(t, byDepth(120, 600), fc.tuple(expression, zone, start), ([text, timezone, from]) => {
    const fields = fieldsOf(text);
    const found = nextFires(fields, timezone, from, FIRES);
    const until = found.length < FIRES ? Number.POSITIVE_INFINITY : (found.at(-1) as number);
    const expected = new Cron(text, { ...ORACLE, timezone })
      .nextRuns(2 * FIRES, new Date(from))
      .map((date) => date.getTime());
    const shared = (times: readonly number[]) =>
      times.filter((at) => at <= until && !isDisputed(timezone, fields, at));
    assert.deepEqual(shared(found), shared(expected).slice(0, shared(found).length));
    compared += shared(found).length;
  });
  t.diagnostic(`${compared} fires compared`);
  if (isWholeRun) assert.ok(compared > byDepth(300, 1_500));
});

test('fires are whole seconds, in order, and none is passed over by whoever asks later', (t) => {
  const ahead = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  const cases = fc.tuple(expression, zone, start, ahead);
  check(t, byDepth(250, 1_000), cases, ([text, timezone, from, part]) => {
    const fields = fieldsOf(text);
    const [first, second] = nextFires(fields, timezone, from, 2);
    if (first === undefined || second === undefined) return;
    assert.ok(first > from && second > first);
    assert.equal(first % 1_000, 0);
    assert.equal(nextFire(fields, timezone, from + Math.floor((first - from) * part)), first);
    assert.equal(nextFire(fields, timezone, first + Math.floor((second - first) * part)), second);
  });
});

test('whatever is written is read or refused, and the search always ends', (t) => {
  const atom = fc.stringMatching(/^[0-9A-Za-z*?,/#LW-]{1,12}$/);
  const wild = fc.array(fc.oneof(atom, field(0, 59)), { minLength: 4, maxLength: 8 });
  check(t, byDepth(1_000, 3_000), fc.tuple(wild, zone, start), ([atoms, timezone, from]) => {
    const parsed = parseCron(atoms.join(' '));
    if (!parsed.ok) return;
    const at = nextFire(parsed.fields, timezone, from);
    assert.ok(at === null || at > from);
  });
});

describe('from when on workers can be heard', () => {
  const clock = new HandClock();
  let reachability: Reachability;
  beforeEach(() => {
    reachability = new Reachability(clock.now, 60_000);
    reachability.begin();
  });
  const since = (tenant = 't') => clock.ms - reachability.since(tenant);

  for (const what of ['database', 'writer'] as const) {
    test(`not while the ${what} is away, and from its return on`, () => {
      clock.pass(1_000);
      assert.deepEqual([since(), clock.ms - reachability.outageEnd], [1_000, clock.ms]);
      reachability.lost(what);
      clock.pass(1_000);
      assert.deepEqual([since(), clock.ms - reachability.outageEnd], [0, 0]);
      reachability.back(what);
      clock.pass(1_000);
      assert.deepEqual([since(), clock.ms - reachability.outageEnd], [1_000, 1_000]);
      reachability.back(what);
      assert.equal(since(), 1_000, 'it was there');
    });
  }

  test('not before both are back', () => {
    reachability.lost('database');
    reachability.lost('writer');
    reachability.back('database');
    clock.pass(1_000);
    assert.equal(since(), 0);
  });

  test('not before a report was turned away, or the thread stood still for long', () => {
    clock.pass(1_000);
    reachability.stoodStill(29_999);
    assert.equal(since(), 1_000);
    reachability.stoodStill(30_000);
    assert.equal(since(), 0);
    clock.pass(1_000);
    reachability.turnedAway();
    assert.equal(since(), 0);
  });

  test('of a tenant not before it came', () => {
    clock.pass(1_000);
    reachability.admitted('new');
    clock.pass(1_000);
    assert.deepEqual([since('new'), since()], [1_000, 2_000]);
  });
});

test('a claim is not lost while the database is away, nor sooner behind that than behind a heartbeat', async () => {
  const shard = new HandShard(sequenceOf([{ type: 'step', id: 'a', handler: 'ship' }]));
  await shard.start();
  shard.ask('workers.poll', '', { handler_name: 'ship', worker_id: 'w', wait_ms: 60_000 });
  await shard.run();
  shard.create();
  await shard.run();
  assert.equal(rowsOf(shard.units, 'task.claim').length, 1);
  await shard.ack();
  const states = async (ms: number) => {
    // Not at once: a thread that stands still hears nobody either.
    for (let left = ms; left > 0; left -= 10_000) await shard.pass(Math.min(left, 10_000));
    const rows = rowsOf(shard.units, 'task.claim');
    await shard.ack();
    return column(rows, 'worker_id');
  };
  assert.deepEqual(await states(50_000), []);
  shard.shard.databaseAway(true);
  assert.deepEqual(await states(100_000), []);
  shard.shard.databaseAway(false);
  assert.deepEqual(await states(50_000), []);
  assert.deepEqual(await states(20_000), [null]);
});
