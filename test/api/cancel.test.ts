/**
 * Cancel over HTTP: the signal `cancel` lets protected work go on, a state asked for does
 * not. Cancellation scopes are in `sagas.test.ts`.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type Json,
  newHandler,
  sleep,
  step,
  type Tenant,
  tryCatch,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

/** Never over within a test. */
const LONG_MS = 600_000;

const api = useSharedApi();

/** What keeps an instance in each state; a paused one is paused while it sleeps. */
const STATES: readonly [string, () => Json][] = [
  ['scheduled', () => step('tried', 'noop', { delay: { duration: LONG_MS } })],
  ['running', () => sleep('tried', LONG_MS)],
  ['waiting', () => step('tried', newHandler())],
  ['paused', () => sleep('tried', LONG_MS)],
];

/** An instance in this state, whose finally list is a task of the handler. */
async function guarded(state: string, tried: Json) {
  const tenant = api.tenant();
  const handler = newHandler();
  const id = await tenant.run([
    tryCatch('t', [tried], [step('caught', 'noop')], [step('last', handler)]),
    step('after', 'noop'),
  ]);
  if (state === 'paused') await tenant.signal(id, 'pause');
  assert.equal((await tenant.instance(id)).state, state);
  return { tenant, handler, id };
}

describe('Cancel and protected work: The signal `cancel` lets `finally` lists, `cancellation_scope` and non-cancellable steps run in every state, waiting and paused included. PATCH state and bulk `cancelled` are hard: nothing more runs', () => {
  for (const [state, tried] of STATES) {
    test(`${state}: the signal lets the finally list run`, async () => {
      const { tenant, handler, id } = await guarded(state, tried());
      await tenant.signal(id, 'cancel');
      const task = await tenant.task(handler);
      assert.equal((await tenant.instance(id)).state, 'waiting');
      await tenant.complete(task, { tidy: true });
      await tenant.until(id, 'cancelled');
      assert.deepEqual(await tenant.outputsOf(id), { last: { tidy: true } });
      const nodes = await tenant.nodeStates(id);
      assert.deepEqual(
        [nodes.tried, nodes.caught, nodes.last, nodes.after],
        ['cancelled', 'skipped', 'completed', 'cancelled'],
      );
    });
  }

  for (const state of ['waiting', 'paused']) {
    test(`${state}: the signal lets a non-cancellable step run to its end`, async () => {
      const tenant = api.tenant();
      const handler = newHandler();
      const id = await tenant.run([step('a', handler, { cancellable: false }), step('b', 'noop')]);
      const task = await tenant.task(handler);
      if (state === 'paused') await tenant.signal(id, 'pause');
      await tenant.signal(id, 'cancel');
      assert.equal((await tenant.instance(id)).state, 'waiting');
      await tenant.complete(task, { n: 1 });
      await tenant.until(id, 'cancelled');
      assert.deepEqual(await tenant.outputsOf(id), { a: { n: 1 } });
      assert.deepEqual(await tenant.nodeStates(id), { a: 'completed', b: 'cancelled' });
    });

    test(`${state}: the signal lets a finally list that runs go on`, async () => {
      const tenant = api.tenant();
      const handler = newHandler();
      const last = [step('last', handler), step('tidy', 'noop')];
      const id = await tenant.run([tryCatch('t', [step('tried', 'noop')], [], last)]);
      const task = await tenant.task(handler);
      if (state === 'paused') await tenant.signal(id, 'pause');
      await tenant.signal(id, 'cancel');
      await tenant.complete(task);
      await tenant.until(id, 'cancelled');
      assert.deepEqual(await tenant.rowsOf(id), ['tried', 'last', 'tidy']);
    });
  }

  const hard: readonly [string, (tenant: Tenant, id: string) => Promise<unknown>][] = [
    ['PATCH state', (tenant, id) => tenant.move(id, 'cancelled')],
    [
      'bulk',
      async (tenant) => {
        const body = { filter: {}, state: 'cancelled' };
        expectStatus(await tenant.patch('/instances/bulk/state', body), 200);
      },
    ],
  ];
  for (const [how, cancel] of hard) {
    for (const [state, tried] of STATES) {
      test(`${state}: ${how} is hard`, async () => {
        const { tenant, handler, id } = await guarded(state, { ...tried(), cancellable: false });
        await cancel(tenant, id);
        assert.equal((await tenant.instance(id)).state, 'cancelled');
        assert.deepEqual(await tenant.poll(handler), []);
        assert.deepEqual(await tenant.outputs(id), []);
        assert.equal((await tenant.nodeStates(id)).last, 'cancelled');
      });
    }
  }
});
