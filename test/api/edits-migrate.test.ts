/** Instances that go over to another version of their sequence. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
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
import { auditOf, inject, MIGRATE, migrate, resumeFrom } from '../helpers/edits.js';

const UNKNOWN = '0195ffff-0000-7000-8000-000000000000';

const api = useSharedApi();
const tenant = api.tenant();

const ask = (id: string, sequence: string, as = tenant) =>
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

interface Moving {
  readonly id: string;
  readonly from: string;
  readonly to: string;
}

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

async function assertRefused(
  { id, from, to }: Moving,
  status: number,
  message: RegExp,
): Promise<void> {
  const before = await tenant.instance(id);
  const reply = await ask(id, to);
  assert.equal(reply.status, status, reply.text);
  assert.match(reply.body.error, message);
  const after = await tenant.instance(id);
  assert.deepEqual(after, before);
  assert.equal(after.sequence_id, from);
}

describe('migrate-instance: running instance 409; terminal 4xx; unknown ids 404; foreign tenant header rejected and nothing changes', () => {
  describe('migrate-instance: instance at rest 200; terminal 4xx; unknown ids 404; foreign tenant header rejected and nothing changes', () => {
    describe('migrate-instance moves a waiting instance; terminal instance, unknown instance, unknown target and foreign target are refused', () => {
      test('migrate-instance moves a waiting instance', async () => {
        const handler = newHandler();
        const { id, from, to } = await instanceIn(
          'waiting',
          [step('a', handler)],
          [step('a', handler), transform('b', { got: '{{ outputs.a.n }}' })],
        );
        assert.deepEqual(await migrate(tenant, id, to), {
          migrated: true,
          instance_id: id,
          from_sequence_id: from,
          to_sequence_id: to,
        });
        assert.equal((await tenant.instance(id)).sequence_id, to);
        await tenant.complete(await tenant.task(handler), { n: 5 });
        await tenant.until(id, 'completed');
        assert.deepEqual((await tenant.outputsOf(id)).b, { got: 5 });
      });

      test('terminal instance, failed ones included', async () => {
        for (const handler of ['noop', 'fail']) {
          const state = handler === 'noop' ? 'completed' : 'failed';
          const moving = await instanceIn(state, [step('a', handler)], [step('a', handler)]);
          await assertRefused(moving, 400, new RegExp(`is ${state}`));
        }
        const moving = await instanceIn('waiting', [step('a', newHandler())], [step('a', 'noop')]);
        await tenant.signal(moving.id, 'cancel');
        await assertRefused(moving, 400, /is cancelled/);
      });

      test('unknown instance', async () => {
        const [target = ''] = await versions([step('a', 'noop')]);
        assert.equal((await ask(UNKNOWN, target)).status, 404);
      });

      test('unknown target', async () => {
        const blocks = [step('a', newHandler())];
        await assertRefused(
          { ...(await instanceIn('waiting', blocks, blocks)), to: UNKNOWN },
          404,
          /./,
        );
      });

      test('foreign target, with the text of an unknown one', async () => {
        const blocks = [step('a', newHandler())];
        const moving = await instanceIn('waiting', blocks, blocks);
        const foreign = await api.tenant().sequence(blocks);
        await assertRefused({ ...moving, to: foreign }, 404, new RegExp(`sequence ${foreign}$`));
      });

      test('an instance of another tenant, with the text of an unknown one', async () => {
        const blocks = [step('a', newHandler())];
        const { id, to, from } = await instanceIn('waiting', blocks, blocks);
        const reply = await ask(id, to, api.tenant());
        const missing = await ask(UNKNOWN, to);
        assert.deepEqual([reply.status, missing.status], [404, 404]);
        assert.equal(reply.body.error.replace(id, UNKNOWN), missing.body.error);
        assert.equal((await tenant.instance(id)).sequence_id, from);
      });
    });

    describe('409 while running; at scheduled, waiting or paused it works. Same namespace and name, else 400', () => {
      test('409 while running', async () => {
        const blocks = [sleep('a', 600_000)];
        await assertRefused(await instanceIn('running', blocks, blocks), 409, /is running/);
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

      test('at scheduled, in a delay: the deadline stays', async () => {
        const delayed = step('b', 'noop', { delay: { duration: 86_400_000 } });
        const { id, to } = await instanceIn(
          'scheduled',
          [step('a', 'noop'), delayed],
          [step('new', 'noop'), step('a', 'noop'), delayed, step('c', 'noop')],
        );
        const { next_fire_at: due } = await tenant.until(id, 'scheduled');
        await migrate(tenant, id, to);
        assert.equal((await tenant.instance(id)).next_fire_at, due);
        await tenant.move(id, 'running');
        await tenant.until(id, 'completed');
        assert.deepEqual(await tenant.rowsOf(id), ['a', 'b', 'c']);
        assert.equal((await tenant.nodeStates(id)).new, 'skipped');
      });

      test('at waiting, inside a for_each in a parallel: it goes on with its item', async () => {
        const handler = newHandler();
        const body = (...more: Json[]) =>
          parallel(
            'p',
            [forEach('f', 'items', [...more, step('a', handler)])],
            [step('s', 'noop')],
          );
        const { id, to } = await instanceIn(
          'waiting',
          [body()],
          [step('n', 'noop'), body(step('m', 'noop')), step('z', 'noop')],
          { context: { data: { items: ['x', 'y'] } } },
        );
        const task = await tenant.task(handler);
        await migrate(tenant, id, to);
        assert.equal(await tenant.call('heartbeat', task), 200);
        await tenant.complete(task);
        const next = await tenant.task(handler);
        assert.equal(next.context.data.item, 'y');
        await tenant.complete(next);
        await tenant.until(id, 'completed');
        // `m` came into the first item behind its turn.
        assert.deepEqual(await tenant.rowsOf(id), ['f', 's', 'a', 'f', 'm', 'a', 'f', 'z']);
      });

      test('at waiting: the next try of a step follows the target', async () => {
        const handler = newHandler();
        const tries = (max_attempts: number) => ({ retry: { max_attempts, initial_backoff: 0 } });
        const { id, to } = await instanceIn(
          'waiting',
          [step('a', handler, tries(9))],
          [step('x', 'noop'), step('a', handler, tries(2))],
        );
        const first = await tenant.task(handler);
        await migrate(tenant, id, to);
        await tenant.fail(first, 'once', true);
        const second = await tenant.task(handler);
        assert.equal(second.attempt, 1);
        await tenant.fail(second, 'twice', true);
        await tenant.until(id, 'failed');
      });

      test('at paused, also when all blocks ended during the pause', async () => {
        const handler = newHandler();
        const { id, to } = await instanceIn(
          'waiting',
          [step('a', handler)],
          [step('a', handler), step('b', 'noop')],
        );
        const task = await tenant.task(handler);
        await tenant.signal(id, 'pause');
        await tenant.complete(task);
        await migrate(tenant, id, to);
        assert.equal((await tenant.instance(id)).state, 'paused');
        await tenant.signal(id, 'resume');
        await tenant.until(id, 'completed');
        assert.deepEqual(await tenant.rowsOf(id), ['a', 'b']);
      });

      test('another name or namespace, else 400', async () => {
        const blocks = [step('a', newHandler())];
        const moving = await instanceIn('waiting', blocks, blocks);
        const name = await tenant.sequence(blocks);
        const { body } = await tenant.get<{ name: string }>(`/sequences/${moving.to}`);
        const namespace = await tenant.sequence(blocks, {
          name: body.name,
          namespace: 'elsewhere',
        });
        for (const to of [name, namespace]) {
          await assertRefused({ ...moving, to }, 400, /another namespace or name/);
        }
      });
    });
  });
});

describe('what is open', () => {
  const CASES: readonly (readonly [title: string, from: Json[], to: Json[], RegExp])[] = [
    ['is gone in the target', [step('a', 'h')], [step('b', 'h')], /block a is open and is not in/],
    ['has another handler', [step('a', 'h')], [step('a', 'i')], /block a .* the handler i/],
    [
      'is at another place',
      [step('a', 'h')],
      [parallel('p', [step('a', 'h')])],
      /block a .* another place/,
    ],
    [
      'is of another kind',
      [loop('l', 'true', [step('a', 'h')])],
      [forEach('l', 'items', [step('a', 'h')])],
      /block l .* a for_each/,
    ],
  ];
  for (const [title, from, to, message] of CASES) {
    test(`${title}: 409 that names the block`, async () => {
      await assertRefused(await instanceIn('waiting', from, to), 409, message);
    });
  }
});

describe('after a migration', () => {
  test('the list filter by sequence finds the instance at its new one', async () => {
    const blocks = [step('a', newHandler())];
    const { id, from, to } = await instanceIn('waiting', blocks, blocks);
    await migrate(tenant, id, to);
    const listed = async (sequence: string) =>
      (await tenant.get<{ id: string }[]>(`/instances?sequence_id=${sequence}`)).body.length;
    assert.deepEqual([await listed(from), await listed(to)], [0, 1]);
    assert.deepEqual(await auditOf(tenant, id), ['migrated']);
  });

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

  test('a retry and a resume follow the target', async () => {
    const handler = newHandler();
    const { id, to } = await instanceIn(
      'waiting',
      [step('a', 'noop'), step('b', handler)],
      [step('z', 'noop'), step('a', 'noop'), step('b', handler), step('c', 'noop')],
    );
    await migrate(tenant, id, to);
    await tenant.fail(await tenant.task(handler), 'no');
    await tenant.until(id, 'failed');
    expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'b', 'c']);
    await resumeFrom(tenant, id, 'z');
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['z', 'a', 'b', 'c']);
  });

  test('it may go back, and to the version that it has', async () => {
    const handler = newHandler();
    const { id, from, to } = await instanceIn(
      'waiting',
      [step('a', 'noop'), step('b', handler)],
      [step('b', handler)],
    );
    for (const sequence of [from, to, from]) await migrate(tenant, id, sequence);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.nodeStates(id), { a: 'skipped', b: 'completed' });
  });
});

test('a sequence is deleted or gets an instance by migration, never both', async () => {
  const handler = newHandler();
  for (let round = 0; round < 15; round += 1) {
    const { id, from, to } = await instanceIn(
      'waiting',
      [step('a', handler)],
      [step('a', handler)],
    );
    const [moved, deleted] = await Promise.all([ask(id, to), tenant.delete(`/sequences/${to}`)]);
    const outcome = `${moved.status}/${deleted.status}`;
    assert.ok(['200/409', '503/204', '404/204', '503/409'].includes(outcome), outcome);
    const { sequence_id: sequence } = await tenant.instance(id);
    assert.equal(sequence, moved.status === 200 ? to : from);
    assert.equal((await tenant.get(`/sequences/${sequence}`)).status, 200);
    await tenant.signal(id, 'cancel');
  }
});
