/**
 * Admission by cost and fairness between tenants: buckets, rows, work, slots, rates and queues.
 *
 * Cost: 6 s, since it parses and counts bodies of many megabytes.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BoundedRows, TenantAdmission } from '../../actors/limits/front/admission.js';
import { type SetLimits, TenantLimitRegistry } from '../../actors/limits/front/tenant-limits.js';
import { RunQueue } from '../../actors/shard/run-queue.js';
import { WorkInProgress } from '../../actors/shard/work-in-progress.js';
import { ROUTES, type RouteId } from '../../schema/routes.js';
import type { EngineError } from '../../src/base/errors.js';
import { itemsIn } from '../../src/base/json-members.js';
import { LIMITS } from '../../src/base/limits.js';
import { IN_PLACE, type Offload } from '../../src/base/offload.js';
import { FairSlots, type LevelLimits } from '../../src/base/quota/fair-slots.js';
import { lastUsed, valueFor } from '../../src/base/quota/last-used.js';
import { SecondLimit, TokenBucket } from '../../src/base/quota/rates.js';
import { Tally } from '../../src/base/quota/tally.js';
import { TenantActivity } from '../../src/base/quota/tenant-activity.js';
import { ReadPace } from '../../src/db/reads/read-pace.js';
import { CallRate, callRateMemory } from '../../src/handlers/call-rate.js';
import { HandClock } from '../helpers/hand-clock.js';
import { noop } from '../helpers/player.js';

const PARTIES = { activeMax: 2 };
const BOUNDS: [LevelLimits, LevelLimits] = [{ activeMax: 3, waitingMax: 4 }, PARTIES];
const ONE_PLACE: [LevelLimits, LevelLimits] = [{ activeMax: 1 }, PARTIES];

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Asks for slots and notes, by name, in which order they are granted. */
function requester(slots: FairSlots) {
  const granted: string[] = [];
  const releases = new Map<string, () => void>();
  const ask = async (name: string, path: string, signal?: AbortSignal, places?: number) => {
    const slot = await slots.acquire(path.split('/'), signal, places);
    granted.push(slot.ok ? name : `${name} ${slot.reason}`);
    if (slot.ok) releases.set(name, slot.release);
  };
  return {
    granted,
    /** By default of the party that is the first letter of the name. */
    async ask(name: string, path = name[0]!, signal?: AbortSignal, places?: number) {
      void ask(name, path, signal, places);
      await settled();
    },
    async release(name: string) {
      releases.get(name)?.();
      await settled();
    },
    settled,
  };
}

test('a party takes no more than its bound, and another is served before it', async () => {
  const { ask, granted } = requester(new FairSlots(BOUNDS));
  for (const name of ['a1', 'a2', 'a3']) await ask(name);
  await ask('b1');
  assert.deepEqual(granted, ['a1', 'a2', 'b1']);
});

test('a slot that is released twice is given away once', async () => {
  const { ask, release, granted } = requester(new FairSlots(ONE_PLACE));
  for (const name of ['a1', 'a2', 'a3']) await ask(name);
  await release('a1');
  await release('a1');
  assert.deepEqual(granted, ['a1', 'a2']);
});

test('a request that is aborted leaves the queue to the next', async () => {
  const { ask, release, granted, settled } = requester(new FairSlots(ONE_PLACE));
  const controller = new AbortController();
  await ask('a1');
  await ask('a2', 'a', controller.signal);
  await ask('a3');
  controller.abort();
  await settled();
  await release('a1');
  await ask('late', 'a', controller.signal);
  assert.deepEqual(granted, ['a1', 'a2 aborted', 'a3', 'late aborted']);
});

test('closing refuses who waits and who comes, and leaves who holds a slot', async () => {
  const slots = new FairSlots(ONE_PLACE);
  const { ask, release, granted, settled } = requester(slots);
  for (const name of ['a1', 'a2', 'a3']) await ask(name);
  await ask('b1');
  slots.close();
  await settled();
  await ask('c1');
  await release('a1');
  assert.deepEqual(granted, ['a1', 'a2 closed', 'a3 closed', 'b1 closed', 'c1 closed']);
});

test('within a party its parts take turns, and no other party waits for them', async () => {
  const { ask, release, granted } = requester(
    new FairSlots([{ activeMax: 3 }, { activeMax: 2 }, { activeMax: 1 }]),
  );
  for (const name of ['a1', 'a2']) await ask(name, 'a/1');
  for (const name of ['a3', 'a4']) await ask(name, 'a/2');
  await ask('a5', 'a/3');
  await ask('b1', 'b/1');
  assert.deepEqual(granted, ['a1', 'a3', 'b1'], 'a part has its bound, and the party, too');
  for (const name of ['a1', 'a3', 'a2']) await release(name);
  assert.deepEqual(granted.slice(3), ['a2', 'a4', 'a5']);
});

test('a party of many waits no more than its turn beside one that floods', async () => {
  const { ask, release, granted } = requester(new FairSlots([{ activeMax: 4 }, { activeMax: 3 }]));
  for (let n = 1; n <= 9; n += 1) await ask(`a${n}`, 'a');
  await ask('b1');
  for (const name of ['b2', 'b3']) await ask(name);
  for (const name of ['a1', 'a2', 'a3']) await release(name);
  assert.deepEqual(granted, ['a1', 'a2', 'a3', 'b1', 'a4', 'b2', 'a5']);
});

test('the bound on who waits is each party its own, too', async () => {
  const ofParty = { activeMax: 1, waitingMax: 2 };
  const { ask, granted } = requester(new FairSlots([{ ...ofParty, waitingMax: 3 }, ofParty]));
  for (const name of ['a1', 'a2', 'a3', 'a4']) await ask(name);
  for (const name of ['b1', 'b2']) await ask(name);
  assert.deepEqual(granted, ['a1', 'a4 full', 'b2 full']);
});

test('a place that is taken at once is given or not, and nobody waits', () => {
  const slots = new FairSlots([{ activeMax: 2 }, { activeMax: 1 }]);
  const release = slots.take(['a']);
  assert.ok(release);
  assert.equal(slots.take(['a']), undefined);
  assert.ok(slots.take(['b']));
  assert.equal(slots.take(['c']), undefined);
  release();
  assert.ok(slots.take(['c']));
  assert.equal(slots.active, 2);
});

test('who takes many places waits for all of them, and nobody who wants less goes before', async () => {
  const slots = new FairSlots([{ activeMax: 10 }, { activeMax: 8 }]);
  const { ask: askAs, release, granted } = requester(slots);
  const ask = (name: string, places: number, signal?: AbortSignal) =>
    askAs(name, undefined, signal, places);
  const controller = new AbortController();
  await ask('a1', 6);
  await ask('b1', 6, controller.signal);
  await ask('c1', 1);
  assert.equal(slots.take(['d']), undefined, 'it is the turn of b');
  assert.deepEqual(granted, ['a1']);
  controller.abort();
  await ask('a2', 3);
  await ask('a3', 1);
  assert.deepEqual(granted, ['a1', 'b1 aborted', 'c1'], 'a has 8 at most, in its order');
  await ask('b2', 100);
  await release('a1');
  assert.deepEqual(granted.slice(3), ['a2'], 'then it is the turn of b, which has to be alone');
  for (const name of ['c1', 'a2']) await release(name);
  assert.deepEqual(granted.slice(4), ['b2']);
  await ask('b3', 1);
  await release('b2');
  assert.deepEqual(granted.slice(5), ['a3', 'b3']);
  for (const name of ['a3', 'b3']) await release(name);
  assert.equal(slots.active, 0);
});

/** Threads that share a table, and when each call began. */
function world(perSecond: number, threads = 1) {
  const clock = new HandClock(5_000);
  const memory = callRateMemory();
  const rates = Array.from({ length: threads }, () => new CallRate(perSecond, memory, clock));
  const begun: { readonly name: string; readonly ms: number }[] = [];
  return {
    clock,
    rates,
    begun,
    names: () => begun.map(({ name }) => name),
    call(name: string, { tenant = 'a', thread = 0, signal = new AbortController().signal } = {}) {
      const rate = rates[thread % threads] as CallRate;
      return rate.wait(tenant, signal).then((refusal) => {
        begun.push({ name: refusal === undefined ? name : `${name} ${refusal}`, ms: clock.ms });
      });
    },
    /** In steps, since who waited makes room for the next one by a promise. */
    async pass(ms: number) {
      const until = clock.ms + ms;
      await settled();
      while (clock.step(until)) await settled();
      clock.ms = until;
    },
  };
}

for (const threads of [1, 4]) {
  test(`no second has more calls than the limit and a burst of a tenth, from ${threads} threads`, async () => {
    const { call, pass, begun } = world(20, threads);
    for (let n = 0; n < 100; n += 1) void call(`c${n}`, { thread: n });
    await pass(10_000);
    assert.equal(begun.length, 100);
    for (const { ms } of begun) {
      const within = begun.filter((other) => other.ms >= ms && other.ms < ms + 1_000);
      assert.ok(within.length <= 22, `${within.length} calls from ${ms} on`);
    }
    const last = begun.at(-1)?.ms ?? 0;
    assert.ok(last >= 5_000 + 4_850 && last <= 5_000 + 5_100, `the last one began at ${last}`);
  });
}

test('a tenant does not wait for what another one has called', async () => {
  const { call, names } = world(1, 2);
  for (let n = 0; n < 50; n += 1) void call(`a${n}`, { thread: n });
  for (const tenant of ['b', 'c', '']) void call(tenant, { tenant });
  await settled();
  assert.deepEqual(names().sort(), ['', 'a0', 'b', 'c']);
});

test('calls that are withdrawn while they wait leave their time to the others', async () => {
  const { call, pass, names } = world(10);
  const controllers = Array.from({ length: 1_000 }, () => new AbortController());
  void call('first');
  for (const { signal } of controllers) void call('none', { signal });
  void call('last');
  await settled();
  for (const controller of controllers) controller.abort();
  await pass(300);
  assert.equal(names().filter((name) => name === 'none aborted').length, 1_000);
  assert.ok(names().includes('last'));
});

test('more tenants than the table has places are served all the same', async () => {
  const { call, pass, begun } = world(1_000);
  for (let n = 0; n < 6_000; n += 1) void call('', { tenant: `t${n}` });
  await pass(1_000);
  assert.equal(begun.length, 6_000);
});

test('who waits when the engine stops is refused, and who comes then', async () => {
  const { call, rates, names, pass } = world(1);
  for (const name of ['1', '2', '3']) void call(name);
  await settled();
  for (const rate of rates) rate.close();
  void call('4');
  await pass(5_000);
  assert.deepEqual(names().sort(), ['1', '2', '3 closed', '4 closed']);
});

const LONG_MS = LIMITS.longReadMs + 1;

function sharedAt(now: number): TenantActivity {
  const activity = new TenantActivity();
  activity.came('a', now);
  activity.came('b', now);
  return activity;
}

describe('the activity of tenants', () => {
  test('is no tenant, one tenant, and requests of nobody', () => {
    const activity = new TenantActivity();
    assert.equal(activity.isShared(0), false);
    for (const tenant of ['a', '', 'a', '']) {
      activity.came(tenant, 1);
      assert.equal(activity.isShared(1), false);
    }
  });

  test('is over a while after another tenant was there last', () => {
    const activity = sharedAt(0);
    assert.equal(activity.isShared(LIMITS.sharedForMs - 1), true);
    assert.equal(activity.isShared(LIMITS.sharedForMs), false);
    activity.came('b', LIMITS.sharedForMs);
    assert.equal(activity.isShared(LIMITS.sharedForMs), false);
    activity.came('a', LIMITS.sharedForMs);
    assert.equal(activity.isShared(LIMITS.sharedForMs), true);
  });
});

describe('the pace of reads', () => {
  test('lets a tenant read as many at once as it may while they are short, or it is alone', () => {
    const short = new ReadPace(sharedAt(0));
    short.begin('a', 0);
    short.took('a', LIMITS.longReadMs, 0);
    assert.equal(short.begin('a', 0), false);
    const alone = new ReadPace(new TenantActivity());
    alone.begin('a', 0);
    alone.took('a', LONG_MS, 0);
    assert.equal(alone.begin('a', 0), false);
  });

  test('concurrent long reads of a tenant run with pauses as long as the reads', () => {
    const pace = new ReadPace(sharedAt(0));
    pace.begin('a', 0);
    pace.begin('a', 0);
    pace.took('a', LONG_MS, 100);
    pace.end('a');
    assert.equal(pace.begin('a', 100), true);
    assert.equal(pace.restMs('a', 100), LONG_MS);
    assert.equal(pace.restMs('a', 110), LONG_MS - 10);
    assert.deepEqual([pace.begin('b', 100), pace.restMs('b', 100)], [false, 0]);
    pace.took('a', 60_000, 200);
    assert.ok(pace.restMs('a', 200) < LIMITS.readWaitMs);
  });

  test('knows nothing of one who asks for one after the other', () => {
    const pace = new ReadPace(sharedAt(0));
    pace.begin('a', 0);
    pace.took('a', LONG_MS, 0);
    pace.end('a');
    assert.deepEqual([pace.begin('a', 0), pace.restMs('a', 0)], [false, 0]);
  });
});

const CRITICAL = 0;
const NORMAL = 2;
const LOW = 3;

const push = (queue: RunQueue, rank: number, ...instances: string[]) => {
  for (const instance of instances) queue.push({ instance, rank, tenant: instance[0]! });
};
/** All that wait, in their order. */
const drain = (queue: RunQueue) =>
  Array.from({ length: queue.size }, () => queue.shift()).join(' ');

test('instances leave by priority, within one in the order in which they became due', () => {
  const queue = new RunQueue();
  push(queue, LOW, 't low');
  push(queue, NORMAL, 't1', 't2');
  assert.equal(queue.shift(), 't1');
  push(queue, CRITICAL, 't critical');
  push(queue, NORMAL, 't3');
  assert.equal(queue.size, 4);
  assert.equal(drain(queue), 't critical t2 t3 t low');
  assert.equal(queue.shift(), undefined);
  assert.throws(() => push(queue, 4, 'x'), /no rank 4/);
});

test('an instance that waits already waits once, and again when it has left', () => {
  const queue = new RunQueue();
  push(queue, NORMAL, 'x', 'x');
  assert.equal(drain(queue), 'x');
  push(queue, NORMAL, 'x');
  assert.equal(drain(queue), 'x');
});

test('tenants take turns within one priority, and not across priorities', () => {
  const queue = new RunQueue();
  push(queue, NORMAL, 'a1', 'a2', 'a3', 'a4', 'b1', 'b2');
  push(queue, LOW, 'b3');
  assert.equal(drain(queue), 'a1 b1 a2 b2 a3 a4 b3');
});

test('it knows whether anybody else waits than the tenant that asked last, for a while', () => {
  const queue = new RunQueue();
  const unitsMax = (now: number) => {
    queue.update(now);
    return queue.unitsMax;
  };
  queue.served('a', 0);
  push(queue, NORMAL, 'a1');
  assert.equal(unitsMax(0), LIMITS.dueUnitsMax);
  queue.served('b', 0);
  queue.served('', 1);
  assert.equal(unitsMax(1), LIMITS.dueUnitsSharedMax);
  assert.equal(unitsMax(LIMITS.sharedForMs), LIMITS.dueUnitsMax);
  push(queue, LOW, 'b1');
  queue.served('a', LIMITS.sharedForMs);
  assert.equal(unitsMax(LIMITS.sharedForMs), LIMITS.dueUnitsSharedMax);
});

test('a bucket gives its burst at once, then its rate; what costs more than the burst takes a full one', () => {
  const bucket = new TokenBucket({ perSecond: 10, burst: 20 }, 0);
  assert.equal(bucket.waitMs(20, 0), 0);
  bucket.take(20);
  assert.deepEqual([bucket.waitMs(1, 0), bucket.waitMs(5, 500)], [100, 0]);
  assert.deepEqual([bucket.waitMs(50, 1_000), bucket.waitMs(50, 9_000)], [1_000, 0]);
  bucket.take(50);
  assert.equal(bucket.waitMs(1, 9_000), 3_100, 'it is in debt by 30');
});

test('a second begins with the first event in it, and with a clock that is set back', () => {
  const limit = new SecondLimit(2);
  const times = [700, 1_600, 1_699, 1_700, 1_701, 2_699, 9_000, 5_000, 5_001, 5_002];
  const admitted = times.map((now) => limit.admits(now));
  assert.deepEqual(admitted, [true, true, false, true, true, false, true, true, true, false]);
});

test('a tally is what each key holds, and their sum', () => {
  const tally = new Tally();
  for (const [key, amount] of Object.entries({ a: 3, b: 4 })) tally.add(key, amount);
  tally.add('a', -1);
  assert.deepEqual([tally.of('a'), tally.of('b'), tally.of('c'), tally.sum], [2, 4, 0, 6]);
  tally.add('a', -2);
  tally.add('a', 5);
  assert.deepEqual([tally.of('a'), tally.sum], [5, 9]);
});

test('a key keeps its value until others were used since', () => {
  const entries = lastUsed<string, object>(2);
  const of = (key: string) => valueFor(entries, key, () => ({}));
  const first = of('a');
  of('b');
  assert.equal(of('a'), first);
  of('c');
  assert.equal(of('a'), first);
  of('b');
  of('c');
  assert.notEqual(of('a'), first);
});

test('items are counted in a text whatever it is', () => {
  const rows: [text: string, items: number][] = [
    ['', 0],
    ['{"instances":[]}', 0],
    ['{"instances":[{"context":{"data":{"a":[{}]}}},{},{"x":"},{\\"["}]}', 3],
    ['{"instances":[{"a":"', 1],
    [']]]]{{{', 0],
  ];
  for (const [text, items] of rows) assert.equal(itemsIn(text), items, text);
});

type Asked = { readonly set?: SetLimits['limits']; readonly isRoot?: boolean };

function admissionWith({ set, isRoot = false }: Asked = {}) {
  const limits = new TenantLimitRegistry();
  const clock = { now: 0 };
  const admission = new TenantAdmission({
    limits,
    reads: { rows: async () => [] },
    offload: IN_PLACE,
    monotonic: () => clock.now,
  });
  if (set !== undefined) limits.set('a', { limits: set, updatedAt: '' });
  const ask = (id: RouteId, body: string) => {
    try {
      const asked = { route: ROUTES[id], tenant: 'a', isRoot, params: {} };
      void admission.admit({ ...asked, body: Buffer.from(body) });
      return 'admitted';
    } catch (error) {
      const { status, message, retryAfterMs } = error as EngineError;
      return { status, message, retryAfterMs };
    }
  };
  return { ask, clock, limits };
}

describe('a tenant', () => {
  const batch = JSON.stringify({ instances: Array.from({ length: 1_000 }, () => ({ s: 'x' })) });

  test('is never refused by default what one server can do', () => {
    const { ask, clock } = admissionWith();
    for (let second = 0; second < 60; second += 1) {
      clock.now = second * 1_000;
      for (let n = 0; n < 25; n += 1) assert.equal(ask('instances.createBatch', batch), 'admitted');
      assert.equal(ask('instances.create', ' '.repeat(50_000_000)), 'admitted');
    }
  });

  test('that has used up a unit is told which, its bound and when to come again', () => {
    const { ask, clock } = admissionWith({ set: { rows_per_second: 100, rows_burst: 2 } });
    assert.equal(ask('instances.create', '{}'), 'admitted');
    assert.equal(ask('instances.create', '{}'), 'admitted');
    const refused = {
      status: 429,
      message:
        'too many requests: the tenant has used up its rows: 100 a second, at most 2 at once; this takes 1',
      retryAfterMs: 10,
    };
    assert.deepEqual(ask('instances.create', '{}'), refused);
    clock.now = 10;
    assert.equal(ask('instances.create', '{}'), 'admitted');
  });

  test('pays for the blocks of a long definition, too, which are counted beside the thread', async () => {
    const limits = new TenantLimitRegistry();
    limits.set('a', { limits: { blocks_per_second: 1, blocks_burst: 1_000 }, updatedAt: '' });
    const jobs: string[] = [];
    const offload: Offload = {
      run: (tenant, job, input) => {
        jobs.push(`${tenant} ${job.name}`);
        return IN_PLACE.run(tenant, job, input);
      },
    };
    const reads = { rows: async () => [] };
    const admission = new TenantAdmission({ limits, reads, offload, monotonic: () => 0 });
    const blocks = Array.from({ length: 1_000 }, (_, at) => noop(`s${at}`));
    const body = Buffer.from(JSON.stringify({ blocks, pad: 'x'.repeat(64 * 1024) }));
    const asked = { route: ROUTES['sequences.create'], tenant: 'a', isRoot: false, params: {} };
    const admit = () => admission.admit({ ...asked, body });
    await admit();
    await assert.rejects(async () => admit(), { status: 429, message: /blocks.*this takes 1000/ });
    assert.deepEqual(jobs, ['a countBlocks', 'a countBlocks']);
  });

  test('pays for the blocks of a definition wherever they are, and for nothing that looks like one', () => {
    const block = (id: string, more: object = {}) => ({ ...noop(id), ...more });
    const definition = {
      name: 'x',
      input_schema: { type: 'object', properties: { type: { type: 'string' } } },
      blocks: [
        block('a', { params: { type: 'step', list: [{ type: 'step' }], text: '{"type":"step"}' } }),
        { type: 'parallel', id: 'p', branches: [[block('b')], [block('c'), block('d')]] },
        {
          type: 'router',
          id: 'r',
          routes: [{ condition: 'x', blocks: [block('e')] }],
          default: [],
        },
      ],
      on_failure: [block('f')],
    };
    const { ask } = admissionWith({ set: { blocks_per_second: 1, blocks_burst: 8 } });
    assert.equal(ask('sequences.create', JSON.stringify(definition)), 'admitted');
    const refused = ask('sequences.validate', '{"blocks":[{"type":"step"}]}');
    assert.match(JSON.stringify(refused), /1 a second, at most 8 at once; this takes 1/);
    const { ask: askMore } = admissionWith({ set: { blocks_per_second: 1, blocks_burst: 9 } });
    askMore('sequences.create', JSON.stringify(definition));
    assert.equal(askMore('instances.injectBlocks', '{"blocks":[{"type":"step"}]}'), 'admitted');
    assert.equal(askMore('sequences.create', 'no JSON'), 'admitted', 'it is refused later');
  });

  test('pays nothing for what is refused: not its bytes when there are no rows left', () => {
    const set = { rows_per_second: 1, rows_burst: 1, bytes_per_second: 1, bytes_burst: 10 };
    const { ask, clock } = admissionWith({ set });
    assert.equal(ask('instances.create', '12345'), 'admitted');
    for (let n = 0; n < 5; n += 1) assert.notEqual(ask('instances.create', '1'), 'admitted');
    clock.now = 1_000;
    assert.equal(ask('instances.create', '123456'), 'admitted');
  });

  test('has full buckets of the new size when its limits are changed', () => {
    const { ask, limits } = admissionWith({ set: { rows_per_second: 1, rows_burst: 1 } });
    assert.equal(ask('instances.create', '{}'), 'admitted');
    assert.notEqual(ask('instances.create', '{}'), 'admitted');
    const same = { rows_per_second: 1, rows_burst: 1, bytes_per_second: 5, queue_depth_max: 7 };
    limits.set('a', { limits: same, updatedAt: '' });
    assert.notEqual(ask('instances.create', '{}'), 'admitted', 'what is as before stays spent');
    limits.set('a', undefined);
    assert.equal(ask('instances.create', '{}'), 'admitted');
  });

  test('is bound with the root key by what was set for it, and by nothing else', () => {
    const free = admissionWith({ isRoot: true });
    for (let n = 0; n < 1_000; n += 1) free.ask('instances.createBatch', batch);
    assert.equal(free.ask('instances.createBatch', batch), 'admitted');
    const bound = admissionWith({ isRoot: true, set: { rows_per_second: 1, rows_burst: 1 } });
    assert.equal(bound.ask('instances.create', '{}'), 'admitted');
    assert.notEqual(bound.ask('instances.create', '{}'), 'admitted');
    assert.notEqual(bound.ask('instances.createBatch', batch), 'admitted');
  });
});

test('rows are counted only where what is known leaves no room, by one query at a time', async () => {
  let stored = 3;
  let queries = 0;
  const rows = new BoundedRows(async () => {
    queries += 1;
    return stored;
  });
  const enter = async () => (await rows.enter('a', 1, 5)) !== undefined;
  assert.deepEqual([await enter(), await enter(), queries], [true, true, 1]);
  const three = await Promise.all([enter(), enter(), enter()]);
  assert.deepEqual([three, queries], [[false, false, false], 2], 'two are under way');
  const other = new BoundedRows(async () => stored);
  const leave = await other.enter('a', 2, 5);
  assert.equal(await other.enter('a', 1, 5), undefined);
  leave?.();
  stored = 4;
  assert.notEqual(await other.enter('a', 1, 5), undefined, 'one of the two has ended since');
});

describe('work under way', () => {
  const room = LIMITS.workBytesUnmeasured;
  const begin = (work: WorkInProgress, tenant: string, bytes: number, rows = 1, now = 0) => {
    try {
      return work.begin(tenant, bytes, rows, now);
    } catch (error) {
      return (error as EngineError).status;
    }
  };

  test('of 16 clients of one tenant with batches of 500 of 4 KiB is not refused, 256 batches of 1,000 mostly are', () => {
    const normal = new WorkInProgress();
    const ofFourKib = 500 * (4_096 + 150);
    for (let n = 0; n < 16; n += 1) assert.ok(begin(normal, 'a', ofFourKib, 500) > 503);
    const flood = new WorkInProgress();
    const answers = Array.from({ length: 256 }, () => begin(flood, 'a', 300_000, 1_000));
    const taken = answers.filter((answer) => answer !== 503);
    assert.deepEqual(taken.length, Math.floor((room * 0.75) / (300_000 + 1_000 * 3_072)));
  });

  test('of one tenant leaves room for the others, and is given back with the answer', () => {
    const work = new WorkInProgress();
    const weight = begin(work, 'a', room * 0.7);
    assert.equal(begin(work, 'a', room * 0.1), 503);
    assert.notEqual(begin(work, 'b', room * 0.1), 503);
    work.end('a', weight, 1);
    assert.notEqual(begin(work, 'a', room * 0.1), 503);
  });

  test('that goes on with what is there is refused later than what makes more', () => {
    const work = new WorkInProgress();
    begin(work, 'a', room * 0.7);
    begin(work, 'b', room * 0.2);
    assert.equal(begin(work, 'b', room * 0.15), 503);
    assert.notEqual(begin(work, 'b', room * 0.15, 0), 503);
    assert.equal(work.refusalOf(LIMITS.workBytesMax * 0.05), undefined);
    assert.equal(work.refusalOf(LIMITS.workBytesMax * 0.2)?.status, 503, 'also before it has come');
  });

  test('has as much room as was answered lately in a second, within its bounds', () => {
    const work = new WorkInProgress();
    begin(work, 'a', LIMITS.workBytesMin);
    assert.notEqual(begin(work, 'b', 1), 503, 'nothing was measured yet');
    for (let now = 0; now < 60_000; now += 1_000) {
      work.end('c', begin(work, 'c', 1_000_000, 0, now) as number, now + 1_000);
    }
    // A megabyte a second: the least counts, which is under way.
    assert.equal(begin(work, 'd', LIMITS.workBytesMin / 2, 1, 60_000), 503);
    assert.equal(begin(work, 'a', 1, 1, 60_000), 503);
    assert.notEqual(begin(work, 'd', 1, 1, 60_000), 503, 'who has little finds room all the same');
    for (let now = 60_000; now < 70_000; now += 1_000) {
      work.end('c', begin(work, 'c', 20_000_000, 0, now) as number, now + 1_000);
    }
    assert.notEqual(begin(work, 'd', LIMITS.workBytesMin / 2, 1, 70_000), 503);
  });

  /** 16 clients with batches of 500 of 4 KiB, of which the answers of one round come at these times. */
  const rounds = (work: WorkInProgress, times: readonly (readonly number[])[]) => {
    const bytes = 500 * (4_096 + 150);
    const refused: number[] = [];
    let open = Array.from({ length: 16 }, () => begin(work, 'a', bytes, 500));
    for (const answers of times) {
      const next: number[] = [];
      open.forEach((weight, n) => {
        const now = answers[n]!;
        work.end('a', weight, now);
        const begun = begin(work, 'a', bytes, 500, now);
        if (begun === 503) refused.push(now);
        else next.push(begun);
      });
      open = next;
    }
    return refused;
  };

  const answersFrom = (ms: number, apart: number) =>
    Array.from({ length: 16 }, (_, n) => ms + n * apart);

  test('of few clients with batches is not refused for a wait of a second, or for answers that come together', () => {
    const together = [1, 2, 3, 4, 5].map((round) => answersFrom(round * 1_100, 3));
    assert.deepEqual(rounds(new WorkInProgress(), together), []);
    const behindAStop = [answersFrom(1_500, 100), answersFrom(3_200, 100)];
    assert.deepEqual(rounds(new WorkInProgress(), behindAStop), []);
  });

  test('is refused where nothing is answered any more, once that has lasted', () => {
    const work = new WorkInProgress();
    assert.deepEqual(rounds(work, [answersFrom(500, 10)]), []);
    assert.notEqual(begin(work, 'b', 1_000_000, 1, 2_000), 503);
    assert.equal(begin(work, 'a', 1_000_000, 1, 12_000), 503);
  });

  test('of a single body is served, however large it is', () => {
    assert.notEqual(begin(new WorkInProgress(), 'a', LIMITS.workBytesMax * 2), 503);
  });
});
