/** What the kinds of blocks decide, over HTTP. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  forEach,
  type Json,
  loop,
  newHandler,
  parallel,
  race,
  router,
  sleep,
  step,
  type Tenant,
  transform,
  tryCatch,
  useSharedApi,
} from '../helpers/api.js';

/** Never over within a test. */
const LONG_MS = 600_000;

const api = useSharedApi();

const noop = (id: string) => step(id, 'noop');
const fail = (id: string) => step(id, 'fail');

/** Runs to the state and gives the states of the nodes. */
async function nodes(state: string, blocks: Json[], data: Json = {}) {
  const tenant = api.tenant();
  return tenant.nodeStates(await tenant.runUntil(state, blocks, data));
}

describe('Race: `semantics` is honoured exactly, default `first_to_resolve`', () => {
  /** A race of two workers: who calls first, and with what, is up to the test. */
  async function contest(semantics?: string) {
    const tenant = api.tenant();
    const [one, two] = [newHandler(), newHandler()];
    const id = await tenant.run([race('r', [[step('a', one)], [step('b', two)]], semantics)]);
    return { tenant, id, first: await tenant.task(one), second: await tenant.task(two) };
  }

  for (const semantics of [undefined, 'first_to_resolve']) {
    describe(semantics ?? 'the default', () => {
      test('the first branch to finish wins by failing', async () => {
        const { tenant, id, first, second } = await contest(semantics);
        await tenant.fail(first, 'no');
        await tenant.until(id, 'failed');
        assert.equal(await tenant.call('complete', second, { claim_epoch: 1 }), 409);
      });

      test('the first branch to finish wins by succeeding', async () => {
        const { tenant, id, second } = await contest(semantics);
        await tenant.complete(second);
        await tenant.until(id, 'completed');
      });
    });
  }

  test('first_to_succeed: failures are ignored until every branch has failed', async () => {
    const won = await contest('first_to_succeed');
    await won.tenant.fail(won.first, 'no');
    assert.equal((await won.tenant.instance(won.id)).state, 'waiting');
    await won.tenant.complete(won.second);
    await won.tenant.until(won.id, 'completed');
    const lost = await contest('first_to_succeed');
    await lost.tenant.fail(lost.second, 'no');
    assert.equal((await lost.tenant.instance(lost.id)).state, 'waiting');
    await lost.tenant.fail(lost.first, 'no');
    await lost.tenant.until(lost.id, 'failed');
  });
});

describe('Siblings after a failed block in any list: Not run; `skipped`. What a race, a cancel or the end of the instance cuts off is `cancelled`', () => {
  const list = [noop('before'), fail('bad'), noop('behind')];
  const lists: readonly [string, Json[], string][] = [
    ['the root list', list, 'failed'],
    ['a branch of a parallel', [parallel('p', list, [noop('x')])], 'failed'],
    ['a branch of a race', [race('r', [list])], 'failed'],
    ['a route', [router('r', { yes: list })], 'failed'],
    ['a default', [router('r', { no: [noop('x')] }, list)], 'failed'],
    ['a try list', [tryCatch('t', list, [noop('x')])], 'completed'],
    ['a catch list', [tryCatch('t', [fail('x')], list)], 'failed'],
    ['a finally list', [tryCatch('t', [noop('x')], [], list)], 'failed'],
    ['the body of a loop', [loop('l', 'yes', list)], 'failed'],
    ['the body of a for_each', [forEach('f', 'items', list)], 'failed'],
  ];
  for (const [what, blocks, state] of lists) {
    test(`${what}: skipped`, async () => {
      const { before, bad, behind } = await nodes(state, blocks, { yes: true, items: [1, 2] });
      assert.deepEqual([before, bad, behind], ['completed', 'failed', 'skipped']);
    });
  }

  test('a race cuts off: cancelled', async () => {
    const loser = [sleep('open', LONG_MS), noop('later')];
    const { won, open, later } = await nodes('completed', [race('r', [loser, [noop('won')]])]);
    assert.deepEqual([won, open, later], ['completed', 'cancelled', 'cancelled']);
  });

  const ends: readonly [string, (tenant: Tenant, id: string) => Promise<unknown>][] = [
    ['a cancel', (tenant, id) => tenant.signal(id, 'cancel')],
    ['the end of the instance, cancelled', (tenant, id) => tenant.move(id, 'cancelled')],
    ['the end of the instance, failed', (tenant, id) => tenant.move(id, 'failed')],
    ['the end of the instance, completed', (tenant, id) => tenant.move(id, 'completed')],
  ];
  for (const [what, end] of ends) {
    test(`${what} cuts off: cancelled`, async () => {
      const tenant = api.tenant();
      const branches = [
        [sleep('open', LONG_MS), noop('later')],
        [fail('bad'), noop('behind')],
      ];
      const id = await tenant.run([noop('done'), parallel('p', ...branches), noop('after')]);
      await end(tenant, id);
      const { done, p, open, later, bad, behind, after } = await tenant.nodeStates(id);
      assert.deepEqual([done, bad, behind], ['completed', 'failed', 'skipped']);
      assert.deepEqual([p, open, later, after], Array(4).fill('cancelled'));
    });
  }
});

describe('Router choice: Decided once, stored, never re-evaluated', () => {
  const routed = (handler: string) => [
    router('r', { 'way == left': [step('l1', handler), noop('l2')] }, [noop('right')]),
  ];

  test('a change of what was tested does not move a run to another route', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const id = await tenant.run(routed(handler), { context: { data: { way: 'left' } } });
    await tenant.complete(await tenant.task(handler), { way: 'right' });
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['l1', 'l2']);
  });

  test('nor does a retry of the instance', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const id = await tenant.run(routed(handler), { context: { data: { way: 'left' } } });
    await tenant.fail(await tenant.task(handler), 'no');
    await tenant.until(id, 'failed');
    await tenant.signal(id, 'update_context', { way: 'right' });
    await tenant.post(`/instances/${id}/retry`);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['l1', 'l2']);
    assert.equal((await tenant.nodeStates(id)).right, 'skipped');
  });
});

describe('Loop condition: Tested before each iteration only. Conditions everywhere may read `outputs.*` too', () => {
  test('tested before each iteration only: a body goes on to its end', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const id = await tenant.run([loop('l', 'go', [step('a', handler), noop('b')])], {
      context: { data: { go: true } },
    });
    for (const go of [true, false]) await tenant.complete(await tenant.task(handler), { go });
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'b', 'l', 'a', 'b', 'l']);
  });

  test('the condition of a loop may read outputs', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const id = await tenant.run([loop('l', 'outputs.a.done != true', [step('a', handler)])]);
    for (const done of [false, true]) await tenant.complete(await tenant.task(handler), { done });
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'l', 'a', 'l']);
  });

  test('so may those of routers, guards, assertions and retries', async () => {
    const read = 'outputs.first.kind == "x"';
    const { seen, guarded } = await nodes('completed', [
      transform('first', { kind: 'x' }),
      router('r', { [read]: [noop('seen')] }),
      step('guarded', 'noop', { when: read }),
      step('asserted', 'assert', { params: { condition: read } }),
    ]);
    assert.deepEqual([seen, guarded], ['completed', 'completed']);
    const tenant = api.tenant();
    const retry = { max_attempts: 2, initial_backoff: 1, retry_if: read };
    const flaky = step('flaky', 'fail', { params: { retryable: true }, retry });
    const id = await tenant.runUntil('failed', [transform('first', { kind: 'x' }), flaky]);
    assert.equal((await tenant.outputs(id)).at(-1)?.attempt, 1);
  });
});

describe('`for_each`: Missing or empty completes at once; anything else that is not an array fails the block; a collection longer than max_iterations fails the block before the first item: nothing is dropped silently', () => {
  const block = forEach('f', 'items', [noop('a')], { max_iterations: 3 });

  for (const data of [{}, { items: null }, { items: [] }]) {
    test(`${JSON.stringify(data)} completes at once`, async () => {
      const tenant = api.tenant();
      const id = await tenant.runUntil('completed', [block, noop('after')], data);
      assert.deepEqual(await tenant.rowsOf(id), ['after']);
    });
  }

  for (const items of [{}, { 0: 'x' }, 'text', 5, true, false, 0, '']) {
    test(`${JSON.stringify(items)} is not an array`, async () => {
      const { f, after } = await nodes('failed', [block, noop('after')], { items });
      assert.deepEqual([f, after], ['failed', 'skipped']);
    });
  }

  test('longer than max_iterations: fails before the first item, and can be caught', async () => {
    const tenant = api.tenant();
    const blocks = [tryCatch('t', [block], [noop('caught')])];
    const long = await tenant.runUntil('completed', blocks, { items: [1, 2, 3, 4] });
    assert.deepEqual(await tenant.rowsOf(long), ['caught']);
    const full = await tenant.runUntil('completed', blocks, { items: [1, 2, 3] });
    assert.deepEqual(await tenant.rowsOf(full), ['f', 'a', 'f', 'a', 'f', 'a', 'f']);
  });
});

describe('Race, fine print: Finishing order is by event. An empty branch finishes at once, successfully. A branch fails when its list fails, not when a failure inside it was caught', () => {
  test('finishing order is by event, not by position', async () => {
    const tenant = api.tenant();
    const handlers = [newHandler(), newHandler(), newHandler()];
    const id = await tenant.run([
      race(
        'r',
        handlers.map((handler, index) => [step(`s${index}`, handler)]),
      ),
    ]);
    await tenant.complete(await tenant.task(handlers[2] ?? ''));
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['s2', 'r']);
  });

  for (const semantics of ['first_to_resolve', 'first_to_succeed']) {
    test(`an empty branch finishes at once, successfully, with ${semantics}`, async () => {
      const { r, a } = await nodes('completed', [
        race('r', [[sleep('a', LONG_MS)], []], semantics),
      ]);
      assert.deepEqual([r, a], ['completed', 'cancelled']);
    });
  }

  test('a caught failure does not fail its branch', async () => {
    const caught = tryCatch('t', [fail('bad')], [noop('caught')]);
    const { r, t, last } = await nodes('completed', [
      race('r', [[caught, noop('last')], [sleep('a', LONG_MS)]]),
    ]);
    assert.deepEqual([r, t, last], ['completed', 'completed', 'completed']);
  });
});
