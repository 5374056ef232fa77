/** Lists of instances and the dead letter queue: filters, order, pages. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { TaskInstance } from '../../../schema/instance.js';
import { beforeWith, newHandler, step, useSharedApi } from '../../helpers/api.js';
import type { Reply } from '../../helpers/client.js';

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
