/**
 * The pool of in-process steps over handlers, a clock and instances that do as the test says: who may
 * start, who has to wait, and when a slot is given back.
 *
 * Cost: 3 s, since it fills the pool up to its real limit of 75,000 waiting steps.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { InProcessStep } from '../../actors/runtime/turn.js';
import { HandlerPool } from '../../actors/shard/handler-pool.js';
import type { JsonValue } from '../../src/base/json.js';
import { LIMITS } from '../../src/base/limits.js';
import type { StepOutcome } from '../../src/core/builtin.js';
import type { EffectHandler, HandlerContext } from '../../src/handlers/registry.js';
import { HandClock } from '../helpers/hand-clock.js';

interface Call {
  readonly key: string;
  readonly context: HandlerContext;
  readonly end: (outcome?: StepOutcome) => void;
}

const DONE: StepOutcome = { kind: 'success', output: {} };

function makePool() {
  const calls: Call[] = [];
  const taken: string[] = [];
  const outcomes: StepOutcome[] = [];
  const clock = new HandClock();
  const busy = new Set<string>();
  let wakes = 0;
  const handler: EffectHandler = (_params, context) =>
    new Promise((resolve) => {
      const end = (outcome = DONE) => resolve(outcome);
      calls.push({ key: context.idempotencyKey, context, end });
    });
  const pool = new HandlerPool({
    secrets: { fill: () => Promise.reject(new Error('no secret is named')) },
    callMsMax: 300_000,
    handlers: new Map([['h', Object.assign(handler, { limitMs: limitOf })]]),
    clock,
    log: { debug: () => undefined, info: () => undefined, warn: () => undefined },
    wakeShard: () => {
      wakes += 1;
    },
    isSuspended: () => false,
    canTake: (instance) => !busy.has(instance),
    onOutcome(instance, { node }, outcome) {
      taken.push(`${instance}/${node} ${outcome.kind}`);
      outcomes.push(outcome);
    },
  });
  /** Starts that many steps of it. */
  const start = async (instance: string, count = 1, more: Partial<InProcessStep> = {}) => {
    for (let node = 0; node < count; node += 1) {
      pool.begin(instance, { ...stepOf(instance, node), ...more });
    }
    await settled();
  };
  const call = (key: string) => {
    const found = calls.find((made) => made.key === key);
    assert.ok(found, `no call of ${key}`);
    return found;
  };
  return {
    pool,
    calls,
    taken,
    outcomes,
    clock,
    busy,
    wakes: () => wakes,
    start,
    atWork: (prefix: string) => calls.filter(({ key }) => key.startsWith(prefix)).length,
    abort: (instance: string, node: number) => pool.abort(instance, { node, iteration: '' }),
    handOver: (hasTime = () => true) => pool.handOver(hasTime),
    call,
    /** These calls end, and what came of them is handed over. */
    async end(...keys: string[]) {
      for (const key of keys) call(key).end();
      await settled();
      const isMore = pool.handOver(() => true);
      await settled();
      return isMore;
    },
  };
}

/** As `timeout_ms` of http_request. */
const limitOf = (params: JsonValue) => (params as { ms?: number }).ms ?? 10_000;

const stepOf = (instance: string, node: number, attempt = 0): InProcessStep => ({
  node,
  iteration: '',
  attempt,
  tenant: instance.split(':')[0]!,
  handler: 'h',
  params: {},
  idempotencyKey: `${instance}/${node}`,
});

/** Everything that promises lead to has happened. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('slots', () => {
  const { handlersPerInstanceMax, handlersPerShardMax, handlersPerTenantMax } = LIMITS;

  test('an instance gets its share of them, a shard all of them, and who waits goes in turns', async () => {
    const { pool, start, atWork, ...world } = makePool();
    const share = handlersPerInstanceMax;
    const rest = handlersPerShardMax - 2 * share;
    for (const instance of ['a', 'b', 'c']) await start(instance, handlersPerShardMax);
    assert.deepEqual(['a', 'b', 'c'].map(atWork), [share, share, rest]);
    assert.equal(pool.active, handlersPerShardMax);
    await world.end('a/0', 'a/1');
    assert.deepEqual(['a', 'b', 'c'].map(atWork), [share + 1, share, rest + 1]);
  });

  test('of a tenant leave a quarter to the others, and who waits goes in turns per tenant', async () => {
    const { pool, start, atWork, ...world } = makePool();
    for (const instance of ['a:1', 'a:2', 'a:3']) await start(instance, 100);
    assert.equal(atWork('a:'), handlersPerTenantMax);
    await start('b:1', handlersPerShardMax - handlersPerTenantMax + 1);
    await start('c:1');
    assert.equal(pool.active, handlersPerShardMax);
    // One of b waits before the one of c, and a hundred of a before both.
    await world.end('b:1/0', 'b:1/1');
    assert.deepEqual(['a:', 'b:', 'c:'].map(atWork), [192, 65, 1]);
  });

  test('of long calls are others than those of short ones', async () => {
    const { pool, start, calls } = makePool();
    const { longHandlersPerInstanceMax: share } = LIMITS;
    await start('a', share + 1, { params: { ms: 60_001 } });
    assert.deepEqual([calls.length, calls[0]?.context.isLong], [share, true]);
    const shorts: Partial<InProcessStep>[] = [
      { node: 1_000, params: { ms: 60_000 } },
      { node: 1_001, params: { ms: 100_000 }, timeoutMs: 30_000 },
      { node: 1_002, params: { ms: 100_000 }, maxMs: 30_000 },
    ];
    for (const more of shorts) await start('a', 1, more);
    assert.equal(pool.active, share + 3);
    assert.ok(calls.slice(share).every(({ context }) => !context.isLong));
  });

  test('are waited for by so many of a tenant, and the next one fails retryably with the bound', async () => {
    const { pool, start, handOver, outcomes, taken } = makePool();
    const max = handlersPerInstanceMax + LIMITS.handlersWaitingPerTenantMax;
    await start('a:1', max + 1);
    await start('b:1');
    handOver();
    assert.deepEqual(taken, [`a:1/${max} failure`]);
    assert.match(JSON.stringify(outcomes), /"retryable".*75000 of this tenant.*OVERLOADED/);
    assert.equal(pool.active, handlersPerInstanceMax + 1);
  });

  test('of a step that was withdrawn comes free at once, although its handler goes on', async () => {
    const { pool, start, abort, call, clock, taken, ...world } = makePool();
    await start('a');
    abort('a', 0);
    assert.equal(call('a/0').context.signal.aborted, true);
    assert.deepEqual([pool.active, clock.waiting], [0, 0]);
    assert.equal(await world.end('a/0'), false);
    assert.deepEqual([taken, pool.active], [[], 0]);
  });

  test('a step that is withdrawn while it waits is never called', async () => {
    const { start, abort, calls } = makePool();
    start('a', handlersPerInstanceMax + 1);
    abort('a', handlersPerInstanceMax);
    abort('a', 0);
    await settled();
    assert.equal(calls.length, handlersPerInstanceMax - 1);
  });

  test('a step that is started again replaces what ran under its name', async () => {
    const { pool, start, calls, handOver, taken } = makePool();
    await start('a');
    await start('a', 1, { attempt: 1 });
    assert.equal(calls[0]?.context.signal.aborted, true);
    for (const call of calls) call.end();
    await settled();
    handOver();
    assert.deepEqual([taken, pool.active], [['a/0 success'], 0]);
  });
});

describe('the cap', () => {
  test('is the maximum of the server, and ends a handler as a failure, whatever it says later', async () => {
    const { pool, start, call, clock, outcomes, taken, ...world } = makePool();
    await start('a', 1, { params: { ms: 86_400_000 } });
    clock.pass(300_000);
    assert.equal(call('a/0').context.signal.aborted, true);
    await world.end('a/0');
    assert.deepEqual([taken, pool.active, clock.waiting], [['a/0 failure'], 0, 0]);
    assert.match(JSON.stringify(outcomes), /did not end within 300000 ms.*STEP_TIMEOUT_MAX_SECS/);
  });

  test('does not count while the call waits for something of the engine', async () => {
    const { start, clock, call } = makePool();
    await start('a');
    let come: (what: string) => void = () => undefined;
    const waited = call('a/0').context.waitFor(new Promise<string>((resolve) => (come = resolve)));
    assert.equal(clock.waiting, 0);
    come('here');
    assert.equal(await waited, 'here');
    assert.equal(clock.waiting, 1);
  });
});

describe('an outcome', () => {
  test('waits with its slot until its instance can take it, and others pass it', async () => {
    const { pool, start, busy, handOver, taken, ...world } = makePool();
    for (const instance of ['a', 'b']) await start(instance);
    busy.add('a');
    assert.equal(await world.end('a/0', 'b/0'), false);
    assert.deepEqual([taken, pool.active], [['b/0 success'], 1]);
    busy.clear();
    handOver();
    assert.deepEqual([taken, pool.active], [['b/0 success', 'a/0 success'], 0]);
  });

  test('is the only one of its turn when time is short, and the pool says that there are more', async () => {
    const { start, call, handOver, taken } = makePool();
    for (const instance of ['a', 'b', 'c']) await start(instance);
    for (const instance of ['a', 'b', 'c']) call(`${instance}/0`).end();
    await settled();
    const seen = handOver(() => false);
    assert.equal(seen, true);
    assert.deepEqual(taken, ['a/0 success']);
  });

  test('lets go of what its handler holds when it is taken, withdrawn, or was withdrawn before', async () => {
    const { start, abort, call, ...world } = makePool();
    const released: string[] = [];
    for (const instance of ['taken', 'withdrawn', 'gone']) await start(instance);
    const hold = (instance: string) =>
      call(`${instance}/0`).context.whenTaken?.(() => released.push(instance));
    hold('taken');
    hold('withdrawn');
    call('taken/0').end();
    await settled();
    assert.deepEqual(released, []);
    world.handOver();
    assert.deepEqual(released, ['taken']);
    abort('withdrawn', 0);
    assert.deepEqual(released, ['taken', 'withdrawn']);
    abort('gone', 0);
    hold('gone');
    assert.deepEqual(released, ['taken', 'withdrawn', 'gone']);
  });
});
