/**
 * The pool of in-process steps over handlers, a clock and instances that do as the test says: who may
 * start, who has to wait, and when a slot is given back.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { InProcessStep } from '../../actors/runtime/turn.js';
import { HandlerPool } from '../../actors/shard/handler-pool.js';
import type { StepOutcome } from '../../src/core/builtin.js';
import type { JsonValue } from '../../src/core/json.js';
import type { EffectHandler, HandlerContext } from '../../src/handlers/registry.js';
import { LIMITS } from '../../src/limits.js';

interface Call {
  readonly token: string;
  readonly context: HandlerContext;
  readonly end: (outcome?: StepOutcome) => void;
}

/** No step of these tests names one. */
const NO_SECRETS = { fill: () => Promise.reject(new Error('no secret is named')) };

const DONE: StepOutcome = { kind: 'success', output: {} };

function makePool() {
  const calls: Call[] = [];
  const taken: string[] = [];
  const outcomes: StepOutcome[] = [];
  const timers = new Map<object, () => void>();
  const busy = new Set<string>();
  let wakes = 0;
  const handler: EffectHandler = (_params, context) =>
    new Promise((resolve) => {
      const end = (outcome = DONE) => resolve(outcome);
      calls.push({ token: context.idempotencyToken, context, end });
    });
  const pool = new HandlerPool({
    secrets: NO_SECRETS,
    callMsMax: 300_000,
    handlers: new Map([['h', Object.assign(handler, { limitMs: limitOf })]]),
    clock: {
      now: () => 7,
      monotonic: () => 0,
      setTimeout(fn) {
        const handle = {};
        timers.set(handle, fn);
        return handle;
      },
      clearTimeout: (handle) => void timers.delete(handle as object),
    },
    log: { debug: () => undefined, info: () => undefined, warn: () => undefined },
    wakeShard: () => {
      wakes += 1;
    },
    canTake: (instance) => !busy.has(instance),
    onOutcome(instance, { node }, outcome) {
      taken.push(`${instance}/${node} ${outcome.kind}`);
      outcomes.push(outcome);
    },
  });
  return {
    pool,
    calls,
    taken,
    outcomes,
    timers,
    busy,
    wakes: () => wakes,
    start: (instance: string, node: number, attempt = 0, more: Partial<InProcessStep> = {}) =>
      pool.start(instance, { ...stepOf(instance, node, attempt), ...more }),
    abort: (instance: string, node: number) => pool.abort(instance, { node, iteration: '' }),
    handOver: (hasTime = () => true) => pool.handOver(hasTime),
    call: (token: string) => {
      const call = calls.find((made) => made.token === token);
      assert.ok(call, `no call of ${token}`);
      return call;
    },
  };
}

/** As `timeout_ms` of http_request. */
const limitOf = (params: JsonValue) => (params as { ms?: number }).ms ?? 10_000;

const stepOf = (instance: string, node: number, attempt: number): InProcessStep => ({
  node,
  iteration: '',
  attempt,
  tenant: instance.split(':')[0]!,
  handler: 'h',
  params: {},
  token: `${instance}/${node}`,
});

/** Everything that promises lead to has happened. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('slots', () => {
  test('an instance gets its share of them, a shard all of them, and who waits goes in turns', async () => {
    const { pool, start, calls, call, handOver } = makePool();
    for (const instance of ['a', 'b', 'c']) {
      for (let node = 0; node < LIMITS.handlersPerShardMax; node += 1) start(instance, node);
    }
    await settled();
    const perInstance = (instance: string) =>
      calls.filter(({ token }) => token.startsWith(instance)).length;
    const share = LIMITS.handlersPerInstanceMax;
    const rest = LIMITS.handlersPerShardMax - 2 * share;
    assert.deepEqual(['a', 'b', 'c'].map(perInstance), [share, share, rest]);
    assert.equal(pool.active, LIMITS.handlersPerShardMax);
    call('a/0').end();
    call('a/1').end();
    await settled();
    handOver();
    await settled();
    assert.deepEqual(['a', 'b', 'c'].map(perInstance), [share + 1, share, rest + 1]);
  });

  test('of a tenant leave a quarter to the others, and who waits goes in turns per tenant', async () => {
    const { pool, start, calls, call, handOver } = makePool();
    const begin = (instance: string, count: number) => {
      for (let node = 0; node < count; node += 1) start(instance, node);
    };
    const atWork = (tenant: string) =>
      calls.filter(({ token }) => token.startsWith(`${tenant}:`)).length;
    for (const instance of ['a:1', 'a:2', 'a:3']) begin(instance, 100);
    await settled();
    assert.equal(atWork('a'), LIMITS.handlersPerTenantMax);
    begin('b:1', LIMITS.handlersPerShardMax - LIMITS.handlersPerTenantMax + 1);
    begin('c:1', 1);
    await settled();
    assert.equal(pool.active, LIMITS.handlersPerShardMax);
    // One of b waits before the one of c, and a hundred of a before both.
    call('b:1/0').end();
    call('b:1/1').end();
    await settled();
    handOver();
    await settled();
    assert.deepEqual([atWork('a'), atWork('b'), atWork('c')], [192, 65, 1]);
  });

  test('of long calls are others than those of short ones', async () => {
    const { pool, start, call, calls } = makePool();
    const { longHandlersPerInstanceMax: share } = LIMITS;
    for (let node = 0; node <= share; node += 1) start('a', node, 0, { params: { ms: 60_001 } });
    await settled();
    assert.equal(calls.length, share);
    start('a', 1_000, 0, { params: { ms: 60_000 } });
    start('a', 1_001, 0, { params: { ms: 100_000 }, timeoutMs: 30_000 });
    start('a', 1_002, 0, { params: { ms: 100_000 }, maxMs: 30_000 });
    await settled();
    assert.equal(pool.active, share + 3);
    assert.deepEqual(
      [0, 1_000, 1_001, 1_002].map((node) => call(`a/${node}`).context.isLong),
      [true, false, false, false],
    );
  });

  test('are waited for by so many of a tenant, and the next one fails retryably with the bound', async () => {
    const { pool, start, handOver, outcomes, taken } = makePool();
    const { handlersPerInstanceMax, handlersWaitingPerTenantMax } = LIMITS;
    const max = handlersPerInstanceMax + handlersWaitingPerTenantMax;
    for (let node = 0; node <= max; node += 1) start('a:1', node);
    start('b:1', 0);
    await settled();
    handOver();
    assert.deepEqual(taken, [`a:1/${max} failure`]);
    assert.match(JSON.stringify(outcomes), /"retryable".*75000 of this tenant.*OVERLOADED/);
    assert.equal(pool.active, handlersPerInstanceMax + 1);
  });

  test('of a step that was withdrawn comes free at once, although its handler goes on', async () => {
    const { pool, start, abort, call, timers, handOver, taken } = makePool();
    start('a', 0);
    await settled();
    abort('a', 0);
    assert.equal(call('a/0').context.signal.aborted, true);
    assert.equal(pool.active, 0);
    assert.equal(timers.size, 0);
    call('a/0').end();
    await settled();
    assert.equal(handOver(), false);
    assert.deepEqual([taken, pool.active], [[], 0]);
  });

  test('a step that is withdrawn while it waits is never called', async () => {
    const { start, abort, calls } = makePool();
    for (let node = 0; node <= LIMITS.handlersPerInstanceMax; node += 1) start('a', node);
    abort('a', LIMITS.handlersPerInstanceMax);
    abort('a', 0);
    await settled();
    assert.equal(calls.length, LIMITS.handlersPerInstanceMax - 1);
  });

  test('a step that is started again replaces what ran under its name', async () => {
    const { pool, start, calls, handOver, taken } = makePool();
    start('a', 0);
    await settled();
    start('a', 0, 1);
    await settled();
    assert.equal(calls[0]?.context.signal.aborted, true);
    calls[0]?.end();
    calls[1]?.end();
    await settled();
    handOver();
    assert.deepEqual([taken, pool.active], [['a/0 success'], 0]);
  });

  test('the end of the shard aborts all, and leaves no timer', async () => {
    const { pool, start, calls, timers } = makePool();
    for (let node = 0; node < 300; node += 1) start('a', node);
    await settled();
    pool.abortAll();
    await settled();
    assert.ok(calls.every(({ context }) => context.signal.aborted));
    assert.deepEqual([pool.active, timers.size], [0, 0]);
  });
});

describe('the cap', () => {
  test('ends a handler as a failure that may be tried again, whatever it says later', async () => {
    const { pool, start, call, timers, handOver, taken } = makePool();
    start('a', 0);
    await settled();
    for (const fire of timers.values()) fire();
    assert.equal(call('a/0').context.signal.aborted, true);
    call('a/0').end();
    await settled();
    handOver();
    assert.deepEqual([taken, pool.active, timers.size], [['a/0 failure'], 0, 0]);
  });

  test('is the maximum of the server, and the failure says so', async () => {
    const { start, timers, handOver, outcomes } = makePool();
    start('a', 0, 0, { params: { ms: 86_400_000 } });
    await settled();
    for (const fire of timers.values()) fire();
    handOver();
    assert.match(JSON.stringify(outcomes), /did not end within 300000 ms.*STEP_TIMEOUT_MAX_SECS/);
  });

  test('does not count while the call waits for something of the engine', async () => {
    const { start, timers, call } = makePool();
    start('a', 0);
    await settled();
    let come: (what: string) => void = () => undefined;
    const waited = call('a/0').context.waitFor(new Promise<string>((resolve) => (come = resolve)));
    assert.equal(timers.size, 0);
    come('here');
    assert.equal(await waited, 'here');
    assert.equal(timers.size, 1);
  });

  test('counts from the slot and not from the wait for it', async () => {
    const { start, timers } = makePool();
    for (let node = 0; node < 2 * LIMITS.handlersPerInstanceMax; node += 1) start('a', node);
    await settled();
    assert.equal(timers.size, LIMITS.handlersPerInstanceMax);
  });
});

describe('an outcome', () => {
  test('asks for a turn, and is handed over in one', async () => {
    const { start, call, handOver, taken, wakes } = makePool();
    start('a', 0);
    await settled();
    assert.equal(wakes(), 0);
    call('a/0').end();
    await settled();
    assert.deepEqual([wakes(), taken], [1, []]);
    assert.equal(handOver(), false);
    assert.deepEqual(taken, ['a/0 success']);
  });

  test('waits with its slot until its instance can take it, and others pass it', async () => {
    const { pool, start, call, busy, handOver, taken } = makePool();
    start('a', 0);
    start('b', 0);
    await settled();
    busy.add('a');
    call('a/0').end();
    call('b/0').end();
    await settled();
    assert.equal(handOver(), false);
    assert.deepEqual([taken, pool.active], [['b/0 success'], 1]);
    busy.clear();
    handOver();
    assert.deepEqual([taken, pool.active], [['b/0 success', 'a/0 success'], 0]);
  });

  test('is the only one of its turn when time is short, and the pool says that there are more', async () => {
    const { start, call, handOver, taken } = makePool();
    for (const instance of ['a', 'b', 'c']) start(instance, 0);
    await settled();
    for (const instance of ['a', 'b', 'c']) call(`${instance}/0`).end();
    await settled();
    const seen = handOver(() => false);
    assert.equal(seen, true);
    assert.deepEqual(taken, ['a/0 success']);
  });

  test('lets go of what its handler holds when it is taken, withdrawn, or was withdrawn before', async () => {
    const { start, abort, call, handOver } = makePool();
    const released: string[] = [];
    for (const instance of ['taken', 'withdrawn', 'gone']) start(instance, 0);
    await settled();
    const hold = (instance: string) =>
      call(`${instance}/0`).context.whenTaken?.(() => released.push(instance));
    hold('taken');
    hold('withdrawn');
    assert.deepEqual(released, []);
    call('taken/0').end();
    await settled();
    assert.deepEqual(released, []);
    handOver();
    assert.deepEqual(released, ['taken']);
    abort('withdrawn', 0);
    assert.deepEqual(released, ['taken', 'withdrawn']);
    abort('gone', 0);
    hold('gone');
    assert.deepEqual(released, ['taken', 'withdrawn', 'gone']);
  });

  test('of a handler that nobody knows is a failure', async () => {
    const { pool, handOver, taken } = makePool();
    pool.start('a', { ...stepOf('a', 0, 0), handler: 'unknown' });
    await settled();
    handOver();
    assert.deepEqual(taken, ['a/0 failure']);
  });
});
