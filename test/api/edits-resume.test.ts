/** Going back to a block, retries with other data, and other versions of the sequence. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { ResumedFrom } from '../../schema/edits.js';
import type { AuditEntry } from '../../schema/instance.js';
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
import { column } from '../helpers/columns.js';
import {
  auditOf,
  fork,
  inject,
  MIGRATE,
  migrate,
  resumeFrom,
  signalsOf,
} from '../helpers/edits.js';

const UNKNOWN = '0195ffff-0000-7000-8000-000000000000';

const api = useSharedApi();
const tenant = api.tenant();

type Refusal = ResumedFrom & { error: string };

const ask = (id: string, block: string, body?: Json) =>
  tenant.post<Refusal>(`/instances/${id}/resume-from/${block}`, body);

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
    assert.equal((await auditOf(tenant, id)).at(-1), 'resumed_from');
  });

  test('when it is completed: outputs_deleted counts the rows of all blocks within', async () => {
    const blocks = [
      step('a', 'noop'),
      loop('l/1 ü', 'true', [step('b', 'noop')], 3),
      forEach('f', 'items', [step('c', 'noop')]),
    ];
    const id = await tenant.runUntil('completed', blocks, { items: [1, 2] });
    const rows = await tenant.rowsOf(id);
    const { outputs_deleted: deleted } = await resumeFrom(tenant, id, 'l/1 ü');
    assert.equal(deleted, rows.length - 1);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), rows);
  });

  test('when it is completed: outputs of earlier blocks keep their ids and their order, each time', async () => {
    const handler = newHandler();
    const blocks = [step('a', 'noop'), step('b', handler), step('c', 'noop'), step('d', 'noop')];
    const id = await tenant.run(blocks);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
    const outputs = async () => {
      const reply = await tenant.get<{ id: string; block_id: string }[]>(
        `/instances/${id}/outputs`,
      );
      return expectStatus(reply, 200);
    };
    for (const kept of [3, 2, 3]) {
      const before = await outputs();
      assert.deepEqual(column(before, 'block_id'), ['a', 'b', 'c', 'd']);
      const from = before[kept]!.block_id;
      const { outputs_deleted: deleted } = await resumeFrom(tenant, id, from);
      assert.equal(deleted, 4 - kept);
      await tenant.until(id, 'completed');
      const after = column(await outputs(), 'id');
      assert.deepEqual(after.slice(0, kept), column(before, 'id').slice(0, kept));
      assert.ok(after.slice(kept).every((it) => !column(before, 'id').includes(it)));
    }
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
});

test('tries count afresh, and a worker’s checkpoint is not handed on', async () => {
  const handler = newHandler();
  const retry = { max_attempts: 2, initial_backoff: 0 };
  const id = await tenant.run([step('a', handler, { retry })]);
  const first = await tenant.task(handler);
  const more = { checkpoint: { page: 3 }, checkpoint_seq: 0 };
  assert.equal(await tenant.call('heartbeat', first, more), 200);
  await tenant.fail(first, 'once', true);
  const second = await tenant.task(handler);
  assert.deepEqual([second.attempt, second.resume_checkpoint], [1, { page: 3 }]);
  await tenant.fail(second, 'twice', true);
  await tenant.until(id, 'failed');
  await resumeFrom(tenant, id, 'a');
  const third = await tenant.task(handler);
  assert.deepEqual([third.attempt, third.resume_checkpoint], [0, undefined]);
});

test('signals that are given along take effect in their order before anything runs, and are stored', async () => {
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
  assert.deepEqual(await signalsOf(api, id), column(signals, 'signal_type'));
  await tenant.signal(id, 'resume');
  await tenant.until(id, 'completed');
});

describe('what is refused changes nothing', () => {
  test('any other state: 400', async () => {
    for (const [state, block] of [
      ['waiting', step('a', newHandler())],
      ['running', sleep('a', 600_000)],
    ] as const) {
      const id = await tenant.runUntil(state, [block]);
      const before = await tenant.instance(id);
      assert.equal((await ask(id, 'a')).status, 400, state);
      assert.deepEqual(await tenant.instance(id), before);
    }
  });

  test('a block that is not top level, a wrong context or signal: 400, too large: 413', async () => {
    const id = await tenant.runUntil('failed', [
      parallel('p', [step('a', 'noop')]),
      step('b', 'fail'),
    ]);
    const before = await tenant.instance(id);
    const large = { big: 'x'.repeat(262_144) };
    const cases: readonly [string, Json, number, RegExp][] = [
      ['a', {}, 400, /is not a top-level block/],
      ['__proto__', {}, 400, /is not a top-level block/],
      ['b', { context: [] }, 400, /context/],
      ['b', { signals: [{ signal_type: 'pause' }, { signal_type: 'explode' }] }, 400, /signal/],
      ['b', { signals: [{ signal_type: 'cancel' }, { signal_type: 'pause' }] }, 400, /./],
      ['b', { context: large }, 413, /context/],
      ['b', { signals: [{ signal_type: 'update_context', payload: large }] }, 413, /context/],
    ];
    for (const [block, body, status, message] of cases) {
      const reply = await ask(id, block, body);
      assert.equal(reply.status, status, reply.text);
      assert.match(reply.body.error, message);
    }
    assert.deepEqual(await tenant.instance(id), before);
  });
});

test('outputs_deleted is exact while a worker completes at the same time', async () => {
  const handler = newHandler();
  for (let round = 0; round < 5; round += 1) {
    const id = await tenant.runUntil('waiting', [
      parallel('p', [step('a', handler)], [step('b', handler)]),
    ]);
    const tasks = await tenant.poll(handler, { limit: 2 });
    await tenant.signal(id, 'pause');
    const calls = tasks.map((task) => tenant.call('complete', task));
    const { outputs_deleted: deleted } = await resumeFrom(tenant, id, 'p');
    assert.equal(deleted, (await Promise.all(calls)).filter((status) => status === 200).length);
    await tenant.signal(id, 'cancel');
  }
});

const retry = (id: string, body?: Json) =>
  tenant.post<{ error: string }>(`/instances/${id}/retry`, body);

describe('a retry with other data', () => {
  test('goes on from the failed block with the members merged', async () => {
    const id = await tenant.runUntil('failed', FOUR, { n: 1, keep: true });
    const reply = await retry(id, { context: { ok: true } });
    assert.deepEqual([reply.status, reply.body], [200, { id, state: 'scheduled' }]);
    const { context, failure } = await tenant.until(id, 'completed');
    assert.deepEqual(context.data, { n: 1, keep: true, ok: true });
    assert.equal(failure, null);
    assert.deepEqual((await tenant.outputsOf(id)).a, { n: 1 });
  });

  test('is told in the audit, without the data; without a body nothing is', async () => {
    const id = await tenant.runUntil('failed', FOUR, { n: 1 });
    await retry(id, { context: { secret: 'word' } });
    await tenant.until(id, 'failed');
    assert.equal((await retry(id)).status, 200);
    await tenant.until(id, 'failed');
    const { body } = await tenant.get<AuditEntry[]>(`/instances/${id}/audit`);
    const told = body.filter(({ event_type }) => event_type === 'data_changed');
    assert.deepEqual(column(told, 'details'), [{ by: 'retry', context_mode: 'merge' }]);
    assert.doesNotMatch(JSON.stringify(body), /secret|word/);
  });

  test('a misspelt member, and data that is too large, are refused and nothing is changed', async () => {
    const id = await tenant.runUntil('failed', FOUR, { n: 1 });
    const misspelt = await retry(id, { contxt: { ok: true } });
    assert.equal(misspelt.status, 400);
    assert.match(misspelt.body.error, /context/);
    assert.equal((await retry(id, { context: { text: 'x'.repeat(300_000) } })).status, 413);
    const { state, context } = await tenant.until(id, 'failed');
    assert.deepEqual([state, context.data], ['failed', { n: 1 }]);
  });

  test('or in place of all that was there, as resuming and forking can do, too', async () => {
    const id = await tenant.runUntil('failed', FOUR, { n: 1, keep: true });
    const given = { context: { ok: true, n: 2 }, context_mode: 'replace' };
    const forked = await fork(tenant, id, 'a', given);
    assert.deepEqual((await tenant.until(forked.id, 'completed')).context.data, given.context);
    await resumeFrom(tenant, id, 'a', given);
    assert.deepEqual((await tenant.until(id, 'completed')).context.data, given.context);
    const retried = await tenant.runUntil('failed', FOUR, { n: 1, keep: true });
    await retry(retried, given);
    assert.deepEqual((await tenant.until(retried, 'completed')).context.data, given.context);
  });
});

// ---------------------------------------------------------------- migration

const askMigration = (id: string, sequence: string, as = tenant) =>
  as.post<{ error: string }>(MIGRATE, { instance_id: id, target_sequence_id: sequence });

/** Versions 1, 2, … of one name; resolves with their ids. */
async function versions(...lists: readonly (readonly Json[])[]): Promise<string[]> {
  const name = `s-${randomUUID()}`;
  const ids: string[] = [];
  for (const blocks of lists) {
    ids.push(await tenant.sequence(blocks, { name, version: ids.length + 1 }));
  }
  return ids;
}

type Moving = { readonly id: string; readonly from: string; readonly to: string };

/** An instance of the first version in this state, and the ids of both. */
async function instanceIn(
  state: string,
  blocks: readonly Json[],
  target: readonly Json[],
  more: Json = {},
): Promise<Moving> {
  const [from = '', to = ''] = await versions(blocks, target);
  const id = await tenant.create(from, more);
  if (state === 'paused') await tenant.signal(id, 'pause');
  await tenant.until(id, state);
  return { id, from, to };
}

async function assertRefused({ id, from, to }: Moving, status: number, message: RegExp) {
  const before = await tenant.instance(id);
  const reply = await askMigration(id, to);
  assert.equal(reply.status, status, reply.text);
  assert.match(reply.body.error, message);
  const after = await tenant.instance(id);
  assert.deepEqual(after, before);
  assert.equal(after.sequence_id, from);
}

describe('migrate-instance is 409 for a running instance, 4xx for a terminal one, 404 for unknown ids; a foreign tenant changes nothing', () => {
  describe('migrate-instance is 200 for an instance at rest, 4xx for a terminal one, 404 for unknown ids; a foreign tenant changes nothing', () => {
    test('migrate-instance moves a waiting instance, and refuses terminal or unknown instances and unknown or foreign targets', async () => {
      const handler = newHandler();
      const next = transform('b', { got: '{{ outputs.a.n }}' });
      const blocks = [step('a', handler)];
      const moving = await instanceIn('waiting', blocks, [...blocks, next]);
      const { id, from, to } = moving;
      const foreign = await api.tenant().sequence(blocks);
      await assertRefused({ ...moving, to: UNKNOWN }, 404, /sequence/);
      await assertRefused({ ...moving, to: foreign }, 404, new RegExp(`sequence ${foreign}$`));
      const [reply, missing] = [
        await askMigration(id, to, api.tenant()),
        await askMigration(UNKNOWN, to),
      ];
      assert.deepEqual([reply.status, missing.status], [404, 404]);
      assert.equal(reply.body.error.replace(id, UNKNOWN), missing.body.error);
      assert.deepEqual(await migrate(tenant, id, to), {
        migrated: true,
        instance_id: id,
        from_sequence_id: from,
        to_sequence_id: to,
      });
      assert.deepEqual(await auditOf(tenant, id), ['migrated']);
      const listed = async (sequence: string) =>
        (await tenant.get<unknown[]>(`/instances?sequence_id=${sequence}`)).body.length;
      assert.deepEqual([await listed(from), await listed(to)], [0, 1]);
      await tenant.complete(await tenant.task(handler), { n: 5 });
      await tenant.until(id, 'completed');
      assert.deepEqual((await tenant.outputsOf(id)).b, { got: 5 });
      for (const [state, how] of [
        ['completed', 'noop'],
        ['failed', 'fail'],
      ] as const) {
        const ended = await instanceIn(state, [step('a', how)], [step('a', how)]);
        await assertRefused(ended, 400, new RegExp(`is ${state}`));
      }
    });

    describe('migrate-instance is 409 for a running instance, works on scheduled, waiting and paused ones, and is 400 for another namespace or name', () => {
      test('409 while running', async () => {
        const blocks = [sleep('a', 600_000)];
        await assertRefused(await instanceIn('running', blocks, blocks), 409, /is running/);
      });

      test('409 where a saga could not take back any more what has completed', async () => {
        const trip = (more: Json) => {
          const pay = { id: 'pay', action: step('charge', 'noop'), ...more };
          const send = { id: 'send', action: step('ship', newHandler()) };
          return [{ type: 'saga', id: 'trip', steps: [pay, send] }];
        };
        const source = trip({ compensation: step('refund', 'noop') });
        const target = source.map((block) => ({
          ...block,
          steps: block.steps.map(({ id, action }) => ({ id, action })),
        }));
        const moving = await instanceIn('waiting', source, target);
        await assertRefused(moving, 409, /step pay of saga trip .* its compensation refund/);
      });

      test('at scheduled, before it began: the target runs from its beginning', async () => {
        const { id, to } = await instanceIn('scheduled', [step('a', 'noop')], [step('b', 'noop')], {
          next_fire_at: '2100-01-01T00:00:00Z',
        });
        await migrate(tenant, id, to);
        await tenant.move(id, 'running');
        await tenant.until(id, 'completed');
        assert.deepEqual(await tenant.rowsOf(id), ['b']);
      });

      test('at waiting or paused, inside a for_each in a parallel: it goes on with its item', async () => {
        const handler = newHandler();
        const body = (...before: Json[]) =>
          parallel('p', [forEach('f', 'items', [...before, step('a', handler)])]);
        const { id, to } = await instanceIn(
          'waiting',
          [body()],
          [body(step('m', 'noop')), step('z', 'noop')],
          { context: { data: { items: ['x', 'y'] } } },
        );
        const task = await tenant.task(handler);
        await migrate(tenant, id, to);
        assert.equal(await tenant.call('heartbeat', task), 200);
        await tenant.signal(id, 'pause');
        await tenant.complete(task);
        await migrate(tenant, id, to);
        await tenant.signal(id, 'resume');
        const next = await tenant.task(handler);
        assert.equal(next.context.data.item, 'y');
        await tenant.complete(next);
        await tenant.until(id, 'completed');
        // `m` came into the first item behind its turn.
        assert.deepEqual(await tenant.rowsOf(id), ['f', 'a', 'f', 'm', 'a', 'f', 'z']);
      });

      test('another name or namespace, else 400', async () => {
        const blocks = [step('a', newHandler())];
        const moving = await instanceIn('waiting', blocks, blocks);
        const { body } = await tenant.get<{ name: string }>(`/sequences/${moving.to}`);
        for (const more of [{}, { name: body.name, namespace: 'elsewhere' }]) {
          const to = await tenant.sequence(blocks, more);
          await assertRefused({ ...moving, to }, 400, /another namespace or name/);
        }
      });
    });
  });
});

describe('after a migration', () => {
  test('the old sequence can be deleted, the new one not while the instance lives', async () => {
    const handler = newHandler();
    const { id, from, to } = await instanceIn(
      'waiting',
      [step('a', handler)],
      [step('a', handler), step('b', 'noop')],
    );
    assert.equal((await tenant.delete(`/sequences/${from}`)).status, 409);
    await migrate(tenant, id, to);
    assert.equal((await tenant.delete(`/sequences/${to}`)).status, 409);
    assert.equal((await tenant.delete(`/sequences/${from}`)).status, 204);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'b']);
    assert.equal((await tenant.delete(`/sequences/${to}`)).status, 204);
    assert.equal((await tenant.get(`/instances/${id}`)).status, 404);
  });

  test('injected blocks go with the instance; an id of theirs in the target is a 409', async () => {
    const handler = newHandler();
    const lists = [[], [step('b', 'noop')], [step('x', 'noop')]];
    const ids = await versions(...lists.map((list) => [step('a', handler), ...list]));
    const [from = '', to = '', clashing = ''] = ids;
    const id = await tenant.create(from);
    await inject(tenant, id, [step('x', 'noop')]);
    await assertRefused({ id, from, to: clashing }, 409, /block id x is not unique/);
    await migrate(tenant, id, to);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'b', 'x']);
  });
});

test('a sequence is deleted or gets an instance by migration, never both', async () => {
  const handler = newHandler();
  for (let round = 0; round < 8; round += 1) {
    const { id, from, to } = await instanceIn(
      'waiting',
      [step('a', handler)],
      [step('a', handler)],
    );
    const [moved, deleted] = await Promise.all([
      askMigration(id, to),
      tenant.delete(`/sequences/${to}`),
    ]);
    const outcome = `${moved.status}/${deleted.status}`;
    assert.ok(['200/409', '503/204', '404/204', '503/409'].includes(outcome), outcome);
    const { sequence_id: sequence } = await tenant.instance(id);
    assert.equal(sequence, moved.status === 200 ? to : from);
    assert.equal((await tenant.get(`/sequences/${sequence}`)).status, 200);
    await tenant.signal(id, 'cancel');
  }
});
