/** How many calls of a tenant go out in a second, from several threads that share one table. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CallRate, callRateMemory } from '../../src/handlers/call-rate.js';
import { HandClock } from '../helpers/hand-clock.js';

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

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
  test(`no second has more calls than the bound and the tenth that may come at once, from ${threads} threads`, async () => {
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

test('calls of a tenant begin in the order in which they came', async () => {
  const { call, pass, names } = world(2);
  for (const name of ['1', '2', '3', '4']) void call(name);
  await settled();
  assert.deepEqual(names(), ['1']);
  await pass(500);
  assert.deepEqual(names(), ['1', '2']);
  await pass(1_000);
  assert.deepEqual(names(), ['1', '2', '3', '4']);
});

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
