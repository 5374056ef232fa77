/**
 * Instances are read, listed, changed and told things, over HTTP. `sweep.test.ts` has the ids that are
 * unknown or of another tenant, for every route.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { before, describe, test } from 'node:test';
import type { BatchActionResult } from '../../schema/edits.js';
import type {
  AuditEntry,
  BulkUpdated,
  InstanceCounts,
  TaskInstance,
} from '../../schema/instance.js';
import type { Tenant } from '../helpers/api.js';
import {
  beforeWith,
  FAR,
  newHandler,
  sleep,
  step,
  transform,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus, type Reply } from '../helpers/client.js';

const api = useSharedApi();
const tenant = api.tenant();

const listed = async (tenant: Tenant, query = '', path = '/instances') =>
  expectStatus(await tenant.get<TaskInstance[]>(`${path}${query}`), 200).map(({ id }) => id);
const later = { next_fire_at: FAR };

test('Outputs are visible while later steps run, and empty for a new instance; a retry does not repeat a completed block', async () => {
  assert.deepEqual(await tenant.outputs(await tenant.run([sleep('a', 600_000)])), []);
  const failing = step('b', 'assert', { params: { condition: 'ok' } });
  const id = await tenant.runUntil('failed', [transform('a', { n: 1 }), failing]);
  const [first] = await tenant.outputs(id);
  assert.deepEqual(first?.output, { n: 1 });
  await tenant.signal(id, 'update_context', { ok: true });
  expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
  await tenant.until(id, 'completed');
  assert.deepEqual((await tenant.outputs(id))[0], first);
  assert.deepEqual(await tenant.rowsOf(id), ['a', 'b']);
});

describe('A retry reschedules a failed instance with its context and does not repeat completed blocks; other states are 400, an unknown instance 404', () => {
  const retry = (tenant: Tenant, id: string) => tenant.post(`/instances/${id}/retry`);

  test('failed goes back to scheduled; context is kept; completed blocks are not run twice', async () => {
    const handler = newHandler();
    const data = { kept: { n: 1 } };
    const blocks = [
      step('a', handler),
      transform('b', { n: '{{ data.kept.n }}' }),
      step('c', handler),
    ];
    const id = await tenant.run(blocks, { context: { data, config: { c: 1 } } });
    await tenant.complete(await tenant.task(handler), { done: true });
    await tenant.fail(await tenant.task(handler), 'no');
    await tenant.until(id, 'failed');
    const rows = await tenant.outputs(id);
    const { body, status } = await retry(tenant, id);
    assert.deepEqual([status, body], [200, { id, state: 'scheduled' }]);
    const task = await tenant.task(handler);
    assert.equal(task.block_id, 'c');
    const { context } = await tenant.instance(id);
    assert.deepEqual([context.data, context.config], [{ ...data, done: true }, { c: 1 }]);
    await tenant.complete(task);
    await tenant.until(id, 'completed');
    assert.deepEqual((await tenant.outputs(id)).slice(0, 2), rows);
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'b', 'c']);
  });

  test('non-failed is 400', async () => {
    for (const [state, id] of Object.entries(ids)) {
      if (state === 'failed') continue;
      assert.equal((await retry(lister, id)).status, 400, state);
      assert.equal((await lister.instance(id)).state, state);
    }
  });
});

test('A list and a timeline show the same context as the instance itself, which names it once it runs', async () => {
  const id = await tenant.runUntil('completed', [transform('a', { n: 1 })]);
  const { context } = expectStatus(await tenant.get<TaskInstance>(`/instances/${id}`), 200);
  assert.equal(context.runtime.instance_id, id);
  const list = expectStatus(await tenant.get<TaskInstance[]>(`/instances?ids=${id}`), 200);
  assert.deepEqual(list[0]?.context, context);
  const path = `/instances/${id}/timeline`;
  const timeline = expectStatus(await tenant.get<{ instance: TaskInstance }>(path), 200);
  assert.deepEqual(timeline.instance.context, context);
});

test('The DLQ lists only failed instances of the tenant', async () => {
  const tenant = api.tenant();
  const other = api.tenant();
  const failed = await tenant.runUntil('failed', [step('a', 'fail')]);
  await tenant.runUntil('completed', [step('a', 'noop')]);
  await tenant.run([step('a', newHandler())]);
  const retried = await tenant.runUntil('failed', [
    step('a', 'assert', { params: { condition: 'ok' } }),
  ]);
  const theirs = await other.runUntil('failed', [step('a', 'fail')]);
  assert.deepEqual(await tenant.deadLetters(), [retried, failed]);
  await tenant.signal(retried, 'update_context', { ok: true });
  expectStatus(await tenant.post(`/instances/${retried}/retry`), 200);
  assert.deepEqual(await tenant.deadLetters(), [failed]);
  await tenant.until(retried, 'completed');
  assert.deepEqual(await tenant.deadLetters(), [failed]);
  assert.deepEqual(await other.deadLetters(), [theirs]);
});

describe('A signal returns signal_id and needs no payload; to a completed or cancelled instance it is 400, to an unknown one 404', () => {
  const send = (tenant: Tenant, id: string, signal_type = 'custom:hello') =>
    tenant.post<{ signal_id: string }>(`/instances/${id}/signals`, { signal_type });

  test('to a completed or cancelled instance it is 400', async () => {
    for (const id of some('completed', 'cancelled')) {
      for (const type of ['pause', 'resume', 'cancel', 'update_context', 'custom:hello']) {
        assert.equal((await send(lister, id, type)).status, 400, type);
      }
    }
  });

  test('without payload it is accepted, and the reply has signal_id', async () => {
    const id = await tenant.run([step('a', newHandler())]);
    const [one, two] = [await send(tenant, id), await send(tenant, id, 'pause')];
    assert.deepEqual([one.status, two.status], [201, 201]);
    assert.match(one.body.signal_id, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    assert.notEqual(one.body.signal_id, two.body.signal_id);
  });
});

test('Pause and resume work in any alternation, and the instance continues after the last resume', async () => {
  const handler = newHandler();
  const ids = [
    await tenant.run([step('a', handler)]),
    await tenant.run([sleep('a', 50), step('b', handler)]),
    await tenant.run([step('d', 'noop', { delay: { duration: 50 } }), step('b', handler)]),
  ];
  const unborn = await tenant.run([step('a', handler)], later);
  for (const id of [...ids, unborn]) {
    for (const _round of [1, 2]) {
      await tenant.signal(id, 'pause');
      assert.equal((await tenant.instance(id)).state, 'paused');
      await tenant.signal(id, 'resume');
      assert.notEqual((await tenant.instance(id)).state, 'paused');
    }
  }
  for (const _ of ids) await tenant.complete(await tenant.task(handler));
  for (const id of ids) await tenant.until(id, 'completed');
  assert.equal((await tenant.instance(unborn)).state, 'scheduled');
});

test('update_context changes a paused instance, which stays paused', async () => {
  const id = await tenant.inState('paused', { context: { data: { old: 1 } } });
  await tenant.signal(id, 'update_context', { fresh: { n: 2 } });
  const { state, context } = await tenant.instance(id);
  assert.equal(state, 'paused');
  assert.deepEqual(context.data, { old: 1, fresh: { n: 2 } });
});

test('The audit of a completed instance has id, event_type and timestamps in each entry; an unknown instance is 404', async () => {
  const tenant = api.tenant();
  const id = await tenant.runUntil('completed', [step('a', 'noop')]);
  const audit = expectStatus(await tenant.get<AuditEntry[]>(`/instances/${id}/audit`), 200);
  assert.notEqual(audit.length, 0);
  assert.equal(new Set(audit.map((entry) => entry.id)).size, audit.length);
  for (const entry of audit) {
    assert.deepEqual([entry.instance_id, entry.tenant_id], [id, tenant.name]);
    assert.notEqual(entry.event_type, '');
    assert.ok(Math.abs(Date.parse(entry.created_at) - Date.now()) < 60_000);
  }
  const times = audit.map((entry) => entry.created_at);
  assert.deepEqual(times, [...times].sort().reverse(), 'newest first');
  const moves = audit.filter((entry) => entry.event_type === 'state_transition');
  assert.deepEqual([moves[0]?.from_state, moves[0]?.to_state], ['running', 'completed']);
  for (const [at, { from_state }] of moves.slice(0, -1).entries()) {
    assert.equal(from_state, moves[at + 1]?.to_state, 'each goes on where the last one led');
  }
});

// `sweep.test.ts` has those of another tenant.
test('Timeline, tree and outputs of an unknown instance are 404', async () => {
  for (const report of ['timeline', 'tree', 'outputs']) {
    assert.equal((await tenant.get(`/instances/${randomUUID()}/${report}`)).status, 404, report);
  }
});

// ---------------------------------------------------------------- lists

const lister = api.tenant();

/** One instance per state that can be had at will, by its state. */
const ids: Record<string, string> = {};
let failing: string;

beforeWith(api, async () => {
  for (const [state, more] of Object.entries({
    completed: { metadata: { colour: 'red', size: 'L' } },
    failed: { metadata: { colour: 'red' }, namespace: 'other' },
    waiting: { metadata: { colour: 'blue' } },
    scheduled: {},
    paused: { metadata: { 'a b&c=d': 'x y' } },
    cancelled: { metadata: { colour: 7 } },
    running: {},
  })) {
    ids[state] = await lister.inState(state, more);
  }
  failing = (await lister.instance(ids.failed ?? '')).sequence_id;
});

const list = (query = '', path = '/instances') => listed(lister, query, path);
const some = (...states: string[]) => states.map((state) => ids[state] as string).sort();

describe('Lists filter by state, tenant, namespace and sequence; pages by limit and offset do not overlap', () => {
  test('by tenant, namespace and sequence', async () => {
    const all = some(...Object.keys(ids));
    assert.deepEqual((await list(`?tenant_id=${tenant.name}`)).sort(), all);
    assert.deepEqual(await list('?namespace=other'), [ids.failed]);
    assert.deepEqual(await list(`?sequence_id=${failing}`), [ids.failed]);
    assert.deepEqual(await list(`?sequence_id=${randomUUID()}`), []);
    assert.deepEqual(await list(`?sequence_id=${failing}&state=failed&namespace=test`), []);
  });

  test('limit and offset page without overlap', async () => {
    const paged = api.tenant();
    const item = paged.creation(await paged.sequence([step('a', 'noop')]), later);
    expectStatus(await paged.post('/instances/batch', { instances: Array(23).fill(item) }), 201);
    const pages: string[] = [];
    for (let offset = 0; offset < 25; offset += 5) {
      pages.push(...(await listed(paged, `?limit=5&offset=${offset}`)));
    }
    assert.equal(new Set(pages).size, 23);
    assert.deepEqual(pages, await listed(paged));
  });

  test('each state finds the instance in it, and a list of states finds all of them', async () => {
    for (const [state, id] of Object.entries(ids))
      assert.deepEqual(await list(`?state=${state}`), [id]);
    assert.deepEqual((await list('?state=failed,%20paused,,')).sort(), some('failed', 'paused'));
    assert.equal((await list('?state=')).length, 7);
    assert.equal((await list('?state=,%20')).length, 7);
  });

  test('metadata by top-level text, all conditions at once', async () => {
    assert.deepEqual((await list('?metadata.colour=red')).sort(), some('completed', 'failed'));
    assert.deepEqual(await list('?metadata.colour=red&metadata.size=L'), [ids.completed]);
    assert.deepEqual(await list('?metadata.a%20b%26c%3Dd=x+y'), [ids.paused]);
    // A number is compared by its text, since a query has nothing but text.
    assert.deepEqual(await list('?metadata.colour=7'), [ids.cancelled]);
    assert.deepEqual(await list('?metadata.nothing='), []);
  });

  test('the name of the sequence finds the instances of all its versions', async () => {
    const name = 'shipping';
    const [some, other] = [api.tenant(), api.tenant()];
    const versions = [
      await some.sequence([step('a', 'noop')], { name }),
      await some.sequence([step('b', 'noop')], { name, version: 2 }),
    ];
    const own = await Promise.all(versions.map((version) => some.create(version)));
    await some.run([step('a', 'noop')]);
    // Another lister's sequence of the same name is another sequence.
    const theirs = await other.create(await other.sequence([step('a', 'noop')], { name }));
    const found = async (query: string, whose = some) =>
      (await whose.get<TaskInstance[]>(`/instances${query}`)).body.map(({ id }) => id).sort();
    for (const member of ['sequence_name', 'sequence']) {
      assert.deepEqual(await found(`?${member}=${name}`), [...own].sort());
    }
    assert.deepEqual(await found(`?sequence_name=${name}&sequence_id=${versions[0]}`), [own[0]]);
    assert.deepEqual(await found(`/dlq?sequence_name=${name}`), []);
    assert.deepEqual(await found('?sequence_name=nothing'), []);
    assert.deepEqual(await found(`?sequence_name=${name}`, other), [theirs]);
  });

  test('times of creation and of the last change cut a list, without what lies at the bound', async () => {
    const some = api.tenant();
    const sequence = await some.sequence([step('a', newHandler())]);
    const created: TaskInstance[] = [];
    for (let count = 0; count < 3; count++) {
      created.push(await some.until(await some.create(sequence), 'waiting'));
    }
    const [first, second, third] = created as [TaskInstance, TaskInstance, TaskInstance];
    const found = async (query: string) =>
      (await some.get<TaskInstance[]>(`/instances?${query}`)).body.map(({ id }) => id);
    const at = second.created_at;
    assert.deepEqual(await found(`created_after=${at}`), [third.id]);
    assert.deepEqual(await found(`created_before=${at}`), [first.id]);
    assert.deepEqual(
      await found(`created_after=${first.created_at}&created_before=${third.created_at}`),
      [second.id],
    );
    // With another offset, whose plus nobody encodes, and finer than the server counts.
    const berlin = new Date(Date.parse(at) + 7_200_000).toISOString().replace('Z', '500+02:00');
    assert.deepEqual(await found(`created_after=${berlin}`), [third.id]);
    await some.signal(first.id, 'update_context', { touched: true });
    const touched = await some.until(first.id, 'waiting');
    assert.deepEqual(await found(`updated_after=${third.updated_at}`), [first.id]);
    assert.deepEqual(
      await found(`updated_before=${touched.updated_at}&created_after=${first.created_at}`),
      [third.id, second.id],
    );
  });

  test('a part of why it failed finds an instance, in any case, by its message or its code', async () => {
    const some = api.tenant();
    const failing = (message: string) => [step('a', 'fail', { params: { message } })];
    const card = await some.runUntil('failed', failing('Card DECLINED by the bank'));
    const stock = await some.runUntil('failed', failing('out of stock: 100%_sure'));
    await some.runUntil('completed', [step('a', 'noop')]);
    const found = async (path: string, text: string) => {
      const reply = await some.get<TaskInstance[]>(`${path}?failure=${encodeURIComponent(text)}`);
      assert.equal(reply.status, 200, reply.text);
      return reply.body.map(({ id }) => id);
    };
    for (const path of ['/instances', '/instances/dlq']) {
      assert.deepEqual(await found(path, 'card declined'), [card]);
      assert.deepEqual(await found(path, '100%_'), [stock]);
      assert.deepEqual(await found(path, 'HANDLER_failed'), [stock, card]);
      assert.deepEqual(await found(path, 'timeout'), []);
    }
    // So does a change of many.
    const action = { filter: { failure: 'declined' }, action: 'cancel' };
    const reply = await some.post<{ matched: number }>('/instances/batch-action', action);
    assert.equal(reply.body.matched, 1);
    assert.deepEqual(await found('/instances/dlq', 'fail'), [stock]);
  });
});

describe('when it failed, and how many there are', () => {
  test('the time of the failure cuts lists and changes of many, until a retry', async () => {
    const some = api.tenant();
    const fails = () => some.runUntil('failed', [step('a', 'fail')]);
    const [first, second] = [await fails(), await fails()];
    const { failure } = await some.instance(second);
    const found = async (query: string) =>
      (await some.get<TaskInstance[]>(`/instances${query}`)).body.map(({ id }) => id);
    const before = `failed_before=${failure?.at}`;
    for (const path of ['', '/dlq']) {
      assert.deepEqual(await found(`${path}?${before}`), [first], path);
      assert.deepEqual(await found(`${path}?failed_after=${failure?.at}`), [], path);
    }
    assert.deepEqual(await found(`?state=failed&${before}`), [first]);
    const filter = { failed_before: failure?.at };
    const reply = await some.post<{ matched: number }>('/instances/batch-action', {
      ...{ filter, action: 'cancel' },
    });
    assert.equal(reply.body.matched, 1);
  });

  test('matches are counted by state, with every filter of the list', async () => {
    const some = api.tenant();
    const sequence = await some.sequence([step('a', newHandler())], { name: 'counted' });
    for (let count = 0; count < 3; count++) {
      const metadata = { customer: count === 0 ? 'ada' : 'bob' };
      await some.until(await some.create(sequence, { metadata }), 'waiting');
    }
    await some.runUntil('failed', [step('a', 'fail')]);
    const counts = async (query = '') =>
      expectStatus(await some.get<InstanceCounts>(`/instances/counts?${query}`), 200);
    const none = {
      ...{ scheduled: 0, running: 0, waiting: 0, paused: 0, completed: 0, failed: 0, cancelled: 0 },
      ...{ looked_at: 4, complete: true },
    };
    assert.deepEqual(await counts(), { ...none, waiting: 3, failed: 1 });
    assert.deepEqual(await counts('metadata.customer=bob'), { ...none, waiting: 2 });
    const ofOne = { ...none, waiting: 3, looked_at: 3 };
    // Those of other names are not looked at.
    assert.deepEqual(await counts('sequence=counted'), ofOne);
    assert.deepEqual(await counts(`sequence_id=${sequence}`), ofOne);
    assert.equal((await some.get('/instances/counts?state=failed')).status, 400);
  });
});

describe('order and pages', () => {
  test('pages by cursor have every row once, whatever is created meanwhile', async () => {
    const other = api.tenant();
    const sequence = await other.sequence([step('a', 'fail')]);
    await other.post('/instances/batch', { instances: Array(7).fill(other.creation(sequence)) });
    const all = (await other.get<TaskInstance[]>('/instances')).body.map(({ id }) => id);
    for (const id of all) await other.until(id, 'failed');
    for (const path of ['/instances', '/instances/dlq']) {
      const seen: string[] = [];
      for (let place = ''; ; ) {
        const reply: Reply<TaskInstance[]> = await other.get(`${path}?limit=3${place}`);
        assert.equal(reply.status, 200, reply.text);
        seen.push(...reply.body.map(({ id }) => id));
        const cursor = reply.headers['x-next-cursor'];
        assert.equal(cursor === undefined, reply.headers.link === undefined);
        if (cursor === undefined) break;
        const link = String(reply.headers.link);
        assert.ok(link.includes(`limit=3&cursor=${cursor}>`), link);
        place = `&cursor=${cursor}`;
        await other.run([step('a', 'fail')]);
      }
      assert.equal(new Set(seen).size, seen.length);
      const told = seen.filter((id) => all.includes(id));
      assert.deepEqual(told, all);
    }
  });

  test('a cursor that is not one of this list is 400: made up, cut, changed, or of another list', async () => {
    const page = await lister.get('/instances?limit=2');
    const cursor = String(page.headers['x-next-cursor']);
    const other = await lister.get('/workers/tasks?limit=1');
    const flipped = (at: number) =>
      cursor.slice(0, at) + (cursor[at] === 'A' ? 'B' : 'A') + cursor.slice(at + 1);
    for (const wrong of ['2', flipped(3), String(other.headers['x-next-cursor'])]) {
      const reply = await lister.get<{ error: string }>(`/instances?cursor=${wrong}`);
      assert.equal(reply.status, 400, wrong);
      assert.match(reply.body.error, /cursor is not one that an earlier page of this list gave$/);
    }
    assert.equal((await lister.get(`/instances/dlq?cursor=${cursor}`)).status, 400);
    assert.equal((await lister.get(`/instances?cursor=${cursor}&offset=1`)).status, 400);
    // A cursor is a place and no right: with another lister's nothing of that lister is seen.
    assert.deepEqual((await api.tenant().get<unknown[]>(`/instances?cursor=${cursor}`)).body, []);
  });
});

test('the list of dead letters has failed instances only, whatever state is asked for', async () => {
  assert.deepEqual(await list('', '/instances/dlq'), [ids.failed]);
  assert.deepEqual(await list('?state=completed', '/instances/dlq'), [ids.failed]);
  assert.deepEqual(await list('?namespace=test', '/instances/dlq'), []);
  const query = `?sequence_id=${failing}&metadata.colour=red`;
  assert.deepEqual(await list(query, '/instances/dlq'), [ids.failed]);
});

describe('instances are selected', () => {
  const tenant = api.tenant();
  let external: string[] = [];
  let sleeping: string;
  let parent: string;

  before(async () => {
    const first = await tenant.sequence([step('a', newHandler())], { name: 'pay', version: 1 });
    const second = await tenant.sequence([step('a', newHandler())], { name: 'pay', version: 2 });
    external = await Promise.all([first, first, second].map((sequence) => tenant.create(sequence)));
    sleeping = await tenant.run([sleep('nap', 600_000)]);
    await tenant.sequence([step('c', 'noop')], { name: 'child' });
    const child = { type: 'sub_sequence', id: 's', sequence_name: 'child' };
    parent = await tenant.runUntil('completed', [child]);
    await Promise.all(external.map((id) => tenant.until(id, 'waiting')));
  });

  const selected = async (query: string) => {
    const reply = await tenant.get<TaskInstance[]>(`/instances${query}`);
    return expectStatus(reply, 200)
      .map(({ id }) => id)
      .sort();
  };

  test('by their ids, in lists and in changes of many alike', async () => {
    const chosen = external.slice(0, 2);
    assert.deepEqual(await selected(`?ids=${chosen.join(',')}`), [...chosen].sort());
    assert.deepEqual(await selected(`?ids=${chosen.join(',')}&state=completed`), []);
    const filter = { tenant_id: tenant.name, ids: chosen };
    const dry = { filter, state: 'paused', dry_run: true };
    const counted = await tenant.patch<BulkUpdated>('/instances/bulk/state', dry);
    assert.deepEqual(counted.body, { count: 2, updated: 0, dry_run: true });
    const action = { filter, action: 'pause' };
    const paused = await tenant.post<BatchActionResult>('/instances/batch-action', action);
    assert.deepEqual([paused.body.matched, paused.body.applied], [2, 2]);
    assert.deepEqual(await selected('?state=paused'), [...chosen].sort());
    await tenant.post('/instances/batch-action', { filter, action: 'resume' });
    const none = { filter: { tenant_id: tenant.name, ids: [] }, action: 'cancel' };
    assert.equal((await tenant.post('/instances/batch-action', none)).status, 400);
  });

  test('by the version of their sequence and by their parent', async () => {
    assert.deepEqual(await selected('?sequence_name=pay&sequence_version=2'), external.slice(2));
    assert.equal((await selected(`?parent_instance_id=${parent}`)).length, 1);
    assert.deepEqual(await selected(`?parent_instance_id=${parent}&state=failed`), []);
  });

  test('by what their steps wait for', async () => {
    assert.deepEqual(await selected('?waiting_for=task'), [...external].sort());
    assert.deepEqual(await selected('?waiting_for=sleep'), [sleeping]);
    assert.deepEqual(await selected('?waiting_for=approval'), []);
    assert.equal((await tenant.get('/instances?waiting_for=godot')).status, 400);
  });
});
