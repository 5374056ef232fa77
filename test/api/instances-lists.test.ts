/** Lists of instances and the dead letter queue: filters, order, pages. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { TaskInstance } from '../../schema/instance.js';
import { beforeWith, newHandler, step, useSharedApi } from '../helpers/api.js';
import type { Reply } from '../helpers/client.js';

/** One instance per state that can be had at will, by its state. */
const ids: Record<string, string> = {};
let failing: string;

const api = useSharedApi();
const tenant = api.tenant();

beforeWith(api, async () => {
  const external = await tenant.sequence([step('a', newHandler())]);
  failing = await tenant.sequence([step('a', 'fail')]);
  const noop = await tenant.sequence([step('a', 'noop')]);
  const sleeping = await tenant.sequence([
    step('a', 'sleep', { params: { duration_ms: 600_000 } }),
  ]);
  const metadata = { colour: 'red', size: 'L' };
  ids.completed = await tenant.create(noop, { metadata });
  ids.failed = await tenant.create(failing, { metadata: { colour: 'red' }, namespace: 'other' });
  ids.waiting = await tenant.create(external, { metadata: { colour: 'blue' } });
  ids.scheduled = await tenant.create(noop, { next_fire_at: '2100-01-01T00:00:00Z' });
  ids.paused = await tenant.create(external, { metadata: { 'a b&c=d': 'x y' } });
  await tenant.post(`/instances/${ids.paused}/signals`, { signal_type: 'pause' });
  ids.cancelled = await tenant.create(external, { metadata: { colour: 7 } });
  await tenant.post(`/instances/${ids.cancelled}/signals`, { signal_type: 'cancel' });
  ids.running = await tenant.create(sleeping);
  await Promise.all(Object.entries(ids).map(([state, id]) => tenant.until(id, state)));
});

const list = async (query = '', path = '/instances') => {
  const reply = await tenant.get<TaskInstance[]>(`${path}${query}`);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.map((item) => item.id);
};
const some = (...states: string[]) => states.map((state) => ids[state] as string).sort();

describe('filters', () => {
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
    // Another tenant's sequence of the same name is another sequence.
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
    assert.deepEqual(
      (await found(`created_before=${berlin}`)).sort(),
      [first.id, second.id].sort(),
    );
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

  test('what is wrong in a query is 400 and named', async () => {
    for (const [query, says] of [
      ['?state=done', /state/],
      ['?state=running,done', /state/],
      ['?sequence_id=x', /sequence_id must be a UUID/],
      ['?limit=x', /limit must be an integer/],
      ['?limit=-1', /limit must be >= 0/],
      ['?limit=1.5', /limit must be an integer/],
      ['?offset=-1', /offset must be >= 0/],
      ['?offset=%31e3', /offset must be an integer/],
      ['?namespace=%00', /query/],
      ['?namespace=%ff', /query/],
    ] as const) {
      for (const path of ['/instances', '/instances/dlq']) {
        const reply = await tenant.get<{ error: string }>(path + query);
        assert.equal(reply.status, 400, query);
        assert.match(reply.body.error, says);
      }
    }
  });

  test('text that looks like SQL is only text', async () => {
    const text = encodeURIComponent("x' or '1'='1");
    assert.deepEqual(await list(`?namespace=${text}`), []);
    assert.deepEqual(await list(`?metadata.${text}=${text}`), []);
  });
});

describe('order and pages', () => {
  test('instances come newest first', async () => {
    const reply = await tenant.get<TaskInstance[]>('/instances');
    const keys = reply.body.map((item) => [item.created_at, item.id].join());
    assert.deepEqual(keys, [...keys].sort().reverse());
    assert.equal(reply.body.length, 7);
  });

  test('a list record is the record of the instance', async () => {
    for (const listed of (await tenant.get<TaskInstance[]>('/instances')).body) {
      assert.deepEqual(listed, await tenant.instance(listed.id));
    }
  });

  test('pages do not overlap, and a full page links to the next one', async () => {
    const whole = await list();
    const pages: string[] = [];
    let path: string | undefined = '/instances?limit=3';
    while (path !== undefined) {
      const reply: Reply<TaskInstance[]> = await tenant.get(path);
      pages.push(...reply.body.map((item) => item.id));
      const next: string | undefined = /<([^>]+)>; rel="next"/.exec(
        String(reply.headers.link ?? ''),
      )?.[1];
      path = next?.replace(/^\/api\/v1/, '');
    }
    assert.deepEqual(pages, whole);
    assert.deepEqual(await list('?offset=5'), whole.slice(5));
    assert.deepEqual(await list('?offset=100'), []);
    assert.deepEqual(await list('?limit=0'), []);
  });

  test('pages by cursor have every row once, whatever is created meanwhile', async () => {
    const other = api.tenant();
    const sequence = await other.sequence([step('a', 'fail')]);
    const batch = { instances: Array(7).fill(other.creation(sequence)) };
    await other.post('/instances/batch', batch);
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
      assert.deepEqual(
        seen.filter((id) => all.includes(id)),
        all,
      );
    }
  });

  test('whoever counts by an offset gets the next offset', async () => {
    const { headers } = await tenant.get('/instances?offset=1&limit=2');
    assert.match(String(headers.link), /limit=2&offset=3>; rel="next"/);
    assert.ok(headers['x-next-cursor'] !== undefined);
  });

  test('a cursor that is not one of this list is 400: made up, cut, changed, or of another list', async () => {
    const page = await tenant.get('/instances?limit=2');
    const cursor = String(page.headers['x-next-cursor']);
    const other = await tenant.get('/workers/tasks?limit=1');
    const flipped = (at: number) =>
      cursor.slice(0, at) + (cursor[at] === 'A' ? 'B' : 'A') + cursor.slice(at + 1);
    for (const wrong of [
      '2',
      'null',
      cursor.slice(0, -1),
      `${cursor}A`,
      flipped(3),
      flipped(cursor.length - 5),
      String(other.headers['x-next-cursor']),
      Buffer.from('["2025-01-01T00:00:00Z","x"]').toString('base64url'),
    ]) {
      const reply = await tenant.get<{ error: string }>(`/instances?cursor=${wrong}`);
      assert.equal(reply.status, 400, wrong);
      assert.match(reply.body.error, /cursor is not one that an earlier page of this list gave$/);
    }
    assert.equal((await tenant.get(`/instances/dlq?cursor=${cursor}`)).status, 400);
    assert.equal((await tenant.get(`/instances?cursor=${cursor}&offset=1`)).status, 400);
    // A cursor is a place and no right: with another tenant's nothing of that tenant is seen.
    const foreign = await api.tenant().get<unknown[]>(`/instances?cursor=${cursor}`);
    assert.deepEqual(foreign.body, []);
  });

  test('100 are listed by default, 1,000 at most', async () => {
    const other = api.tenant();
    const sequence = await other.sequence([step('a', 'noop')]);
    await other.post('/instances/batch', {
      instances: Array(1_005).fill(other.creation(sequence)),
    });
    const size = async (query: string) =>
      (await other.get<unknown[]>(`/instances${query}`)).body.length;
    assert.equal(await size(''), 100);
    assert.equal(await size('?limit=1000'), 1_000);
    assert.equal(await size('?limit=5000'), 1_000);
    assert.equal(await size('?limit=99999999999999999999'), 1_000);
    assert.equal(await size('?limit=1000&offset=1000'), 5);
  });
});

describe('dead letters', () => {
  test('the list has failed instances only, whatever state is asked for', async () => {
    assert.deepEqual(await list('', '/instances/dlq'), [ids.failed]);
    assert.deepEqual(await list('?state=completed', '/instances/dlq'), [ids.failed]);
    assert.deepEqual(await list('?namespace=test', '/instances/dlq'), []);
    assert.deepEqual(await list('?metadata.colour=red', '/instances/dlq'), [ids.failed]);
    assert.deepEqual(await list(`?sequence_id=${failing}`, '/instances/dlq'), [ids.failed]);
  });
});
