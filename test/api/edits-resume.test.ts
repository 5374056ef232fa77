/** Going back to a top-level block of an instance. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ResumedFrom } from '../../schema/edits.js';
import {
  forEach,
  type Json,
  loop,
  newHandler,
  parallel,
  sleep,
  step,
  transform,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { auditOf, inject, resumeFrom, signalsOf } from '../helpers/edits.js';

const UNKNOWN = '0195ffff-0000-7000-8000-000000000000';

const api = useSharedApi();
const tenant = api.tenant();

type Refusal = ResumedFrom & { error: string };

const ask = (id: string, block: string, body?: Json, as = tenant) =>
  as.post<Refusal>(`/instances/${id}/resume-from/${block}`, body);

/** a, then b, which fails until context.data.ok is set, then c and d. */
const FOUR = [
  transform('a', { n: '{{ data.n }}' }),
  step('b', 'assert', { params: { condition: 'data.ok' } }),
  step('c', 'noop'),
  step('d', 'noop'),
];

describe('an instance is resumed from a block', () => {
  test('that failed: the block and all later ones run again, with the context merged', async () => {
    const id = await tenant.runUntil('failed', FOUR, { n: 1, keep: true });
    const reply = await resumeFrom(tenant, id, 'b', { context: { ok: true, n: 2 } });
    assert.deepEqual(reply, {
      id,
      state: 'scheduled',
      resumed_from: 'b',
      // Its error row.
      outputs_deleted: 1,
      signals_enqueued: 0,
    });
    const { context } = await tenant.until(id, 'completed');
    assert.deepEqual(context.data, { n: 2, keep: true, ok: true });
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'b', 'c', 'd']);
    assert.deepEqual((await tenant.outputsOf(id)).a, { n: 1 });
    assert.deepEqual(await tenant.deadLetters(), []);
  });

  test('when it is completed: outputs_deleted counts the rows of all blocks within', async () => {
    const id = await tenant.runUntil(
      'completed',
      [
        step('a', 'noop'),
        loop('l', 'true', [step('b', 'noop')], 3),
        forEach('f', 'items', [step('c', 'noop')]),
        step('d', 'noop'),
      ],
      { items: [1, 2] },
    );
    const rows = await tenant.rowsOf(id);
    const before = rows.filter((block) => block === 'a');
    const { outputs_deleted: deleted } = await resumeFrom(tenant, id, 'l');
    assert.equal(deleted, rows.length - before.length);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), rows);
  });

  test('when it is cancelled, although nothing else leaves that state', async () => {
    const handler = newHandler();
    const id = await tenant.runUntil('waiting', [step('a', handler), step('b', 'noop')]);
    await tenant.signal(id, 'cancel');
    assert.equal((await tenant.post(`/instances/${id}/retry`)).status, 400);
    await resumeFrom(tenant, id, 'a');
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
  });

  test('when it is paused: what is open is withdrawn, in earlier blocks too', async () => {
    const [early, late] = [newHandler(), newHandler()];
    const id = await tenant.runUntil('waiting', [
      step('a', early),
      step('b', 'noop'),
      step('c', late),
    ]);
    const task = await tenant.task(early);
    await tenant.signal(id, 'pause');
    await resumeFrom(tenant, id, 'c');
    await tenant.until(id, 'waiting');
    assert.equal(await tenant.call('complete', task), 404);
    assert.equal(await tenant.call('complete', task, { claim_epoch: task.claim_epoch }), 409);
    assert.deepEqual(await tenant.tasks(early), []);
    assert.deepEqual(await tenant.nodeStates(id), { a: 'cancelled', b: 'skipped', c: 'waiting' });
    await tenant.complete(await tenant.task(late));
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['c']);
  });

  test('that has a concurrency key: it waits for a slot like any other', async () => {
    const handler = newHandler();
    const key = { concurrency_key: 'k', max_concurrency: 1 };
    const sequence = await tenant.sequence([step('a', handler)]);
    const first = await tenant.create(sequence, key);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(first, 'completed');
    const second = await tenant.create(sequence, key);
    const task = await tenant.task(handler);
    await resumeFrom(tenant, first, 'a');
    assert.deepEqual(await tenant.poll(handler), []);
    assert.equal((await tenant.instance(first)).state, 'scheduled');
    await tenant.complete(task);
    await tenant.until(second, 'completed');
    await tenant.complete(await tenant.task(handler));
    await tenant.until(first, 'completed');
  });

  test('from an injected one', async () => {
    const id = await tenant.runUntil('completed', [step('a', 'noop')]);
    await inject(tenant, id, [step('x', 'noop'), step('y', 'noop')]);
    assert.equal((await resumeFrom(tenant, id, 'y')).outputs_deleted, 0);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'y']);
  });

  test('whose id needs escaping in a path', async () => {
    const id = await tenant.runUntil('completed', [step('a/b ü', 'noop')]);
    assert.equal((await resumeFrom(tenant, id, 'a/b ü')).resumed_from, 'a/b ü');
    await tenant.until(id, 'completed');
  });

  test('with an empty body, an empty object, or nulls', async () => {
    const id = await tenant.runUntil('completed', [step('a', 'noop')]);
    for (const body of [undefined, {}, { context: null, signals: null }]) {
      await resumeFrom(tenant, id, 'a', body);
      await tenant.until(id, 'completed');
    }
    assert.deepEqual(await tenant.rowsOf(id), ['a']);
  });
});

describe('what is forgotten, and what is not', () => {
  test('tries count afresh, and a worker’s checkpoint is not handed on', async () => {
    const handler = newHandler();
    const retry = { max_attempts: 2, initial_backoff: 0 };
    const id = await tenant.run([step('a', handler, { retry })]);
    const first = await tenant.task(handler);
    const beat = { worker_id: first.worker_id, checkpoint: { page: 3 }, checkpoint_seq: 0 };
    expectStatus(await tenant.post(`/workers/tasks/${first.id}/heartbeat`, beat), 200);
    await tenant.fail(first, 'once', true);
    const second = await tenant.task(handler);
    assert.deepEqual([second.attempt, second.resume_checkpoint], [1, { page: 3 }]);
    await tenant.fail(second, 'twice', true);
    await tenant.until(id, 'failed');
    await resumeFrom(tenant, id, 'a');
    const third = await tenant.task(handler);
    assert.deepEqual([third.attempt, third.resume_checkpoint], [0, undefined]);
    await tenant.fail(third, 'again', true);
    assert.equal((await tenant.task(handler)).attempt, 1);
  });

  test('a failed block before it stays failed, and a later retry leaves it alone', async () => {
    const handler = newHandler();
    const id = await tenant.runUntil('failed', [step('a', 'fail'), step('b', handler)]);
    await resumeFrom(tenant, id, 'b');
    assert.deepEqual(await tenant.deadLetters(), []);
    await tenant.fail(await tenant.task(handler), 'no');
    await tenant.until(id, 'failed');
    assert.deepEqual(await tenant.deadLetters(), [id]);
    expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.nodeStates(id), { a: 'failed', b: 'completed' });
    await resumeFrom(tenant, id, 'b', { signals: [{ signal_type: 'cancel' }] });
  });

  test('an iteration begins anew: items are taken again from the context', async () => {
    const handler = newHandler();
    const blocks = [forEach('f', 'items', [step('a', handler)])];
    const id = await tenant.run(blocks, { context: { data: { items: [1, 2] } } });
    await tenant.complete(await tenant.task(handler));
    await tenant.fail(await tenant.task(handler), 'no');
    await tenant.until(id, 'failed');
    await resumeFrom(tenant, id, 'f', { context: { items: [7] } });
    const task = await tenant.task(handler);
    assert.deepEqual(task.context.data.item, 7);
    await tenant.complete(task);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['f', 'a', 'f']);
  });

  test('it is in the audit', async () => {
    const id = await tenant.runUntil('completed', [step('a', 'noop')]);
    await resumeFrom(tenant, id, 'a');
    assert.deepEqual(await auditOf(tenant, id), ['resumed_from']);
  });
});

describe('signals that are given along', () => {
  test('take effect in their order before anything runs, and are stored', async () => {
    const id = await tenant.runUntil('failed', FOUR);
    const signals = [
      { signal_type: 'update_context', payload: { ok: true, n: 1 } },
      { signal_type: 'custom:note' },
      { signal_type: 'update_context', payload: { n: 2 } },
      { signal_type: 'pause' },
    ];
    const reply = await resumeFrom(tenant, id, 'b', { context: { n: 0 }, signals });
    assert.equal(reply.signals_enqueued, 4);
    const paused = await tenant.instance(id);
    assert.equal(paused.state, 'paused');
    assert.deepEqual(paused.context.data, { n: 2, ok: true });
    assert.deepEqual(
      await signalsOf(api, id),
      signals.map((signal) => signal.signal_type),
    );
    await tenant.signal(id, 'resume');
    await tenant.until(id, 'completed');
  });

  test('may cancel it again', async () => {
    const id = await tenant.runUntil('failed', FOUR);
    await resumeFrom(tenant, id, 'c', { signals: [{ signal_type: 'cancel' }] });
    assert.equal((await tenant.instance(id)).state, 'cancelled');
    assert.deepEqual(await tenant.deadLetters(), []);
  });

  test('an invalid one is 400, and nothing happens', async () => {
    const id = await tenant.runUntil('failed', FOUR);
    const before = await tenant.instance(id);
    const bad = [
      [{ signal_type: 'pause' }, { signal_type: 'explode' }],
      [{ signal_type: 'cancel' }, { signal_type: 'pause' }],
      [{ payload: {} }],
      'pause',
    ];
    for (const signals of bad) {
      const reply = await ask(id, 'b', { signals, context: { ok: true } });
      assert.equal(reply.status, 400, reply.text);
    }
    assert.deepEqual(await tenant.instance(id), before);
  });
});

describe('what is refused changes nothing', () => {
  test('any other state: 400', async () => {
    const far = { next_fire_at: '2100-01-01T00:00:00Z' };
    const others = {
      scheduled: await tenant.run([step('a', 'noop')], far),
      waiting: await tenant.run([step('a', newHandler())]),
      running: await tenant.run([sleep('a', 600_000)]),
    };
    for (const [state, id] of Object.entries(others)) {
      const before = await tenant.until(id, state);
      const reply = await ask(id, 'a');
      assert.equal(reply.status, 400, state);
      assert.deepEqual(await tenant.instance(id), before);
    }
  });

  test('a block that is not top level, or not there at all: 400', async () => {
    const id = await tenant.runUntil('completed', [parallel('p', [step('a', 'noop')])]);
    for (const block of ['a', 'nothing', '__proto__']) {
      const reply = await ask(id, block);
      assert.equal(reply.status, 400);
      assert.match(reply.body.error, /is not a top-level block/);
    }
    assert.equal((await tenant.instance(id)).state, 'completed');
  });

  test('a context that is no object: 400', async () => {
    const id = await tenant.runUntil('failed', FOUR);
    for (const context of [[], 'x', 1]) {
      assert.equal((await ask(id, 'b', { context })).status, 400);
    }
  });

  test('a context that becomes too large: 413, by itself or by a signal', async () => {
    const id = await tenant.runUntil('failed', FOUR);
    const before = await tenant.instance(id);
    const context = { big: 'x'.repeat(262_144) };
    const signals = [{ signal_type: 'update_context', payload: context }];
    assert.equal((await ask(id, 'b', { context })).status, 413);
    assert.equal((await ask(id, 'b', { signals })).status, 413);
    assert.deepEqual(await tenant.instance(id), before);
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'b']);
  });

  test('an instance that is not there, or of another tenant: 404', async () => {
    const id = await tenant.runUntil('completed', [step('a', 'noop')]);
    const foreign = await ask(id, 'a', undefined, api.tenant());
    const missing = await ask(UNKNOWN, 'a');
    assert.deepEqual([foreign.status, missing.status], [404, 404]);
    assert.equal(foreign.body.error.replace(id, UNKNOWN), missing.body.error);
    assert.deepEqual(await auditOf(tenant, id), []);
  });
});

test('outputs_deleted is exact while a worker completes at the same time', async () => {
  const handler = newHandler();
  for (let round = 0; round < 10; round += 1) {
    const id = await tenant.runUntil('waiting', [
      parallel('p', [step('a', handler)], [step('b', handler)]),
    ]);
    const tasks = await tenant.poll(handler, { limit: 2 });
    await tenant.signal(id, 'pause');
    const calls = tasks.map((task) => tenant.call('complete', task));
    const { outputs_deleted: deleted } = await resumeFrom(tenant, id, 'p');
    const statuses = await Promise.all(calls);
    assert.equal(deleted, statuses.filter((status) => status === 200).length);
    await tenant.signal(id, 'cancel');
  }
});
