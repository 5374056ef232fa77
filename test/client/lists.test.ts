/** Lists of a real server: one page when awaited, everything when iterated, however the server pages. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client } from '../../client/src/index.js';
import { beforeWith, useSharedApi } from '../helpers/api.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';

const api = useSharedApi();
const TENANT = `client-lists-${process.pid}`;
const COUNT = 7;
const client = () => new Client({ url: api.url, apiKey: DEFAULT_API_KEY, tenant: TENANT });
const ids: string[] = [];

beforeWith(api, async () => {
  await client().sequences.create({
    name: 'wait',
    version: 1,
    blocks: [{ type: 'step', id: 'work', handler: 'nobody-does-it' }],
  });
  for (let n = 0; n < COUNT; n++) {
    ids.push((await client().instances.create({ sequence: 'wait' })).id);
    await client().rateLimits.put(`limit-${n}`, { max_count: 1, window_seconds: 1 });
  }
});

test('a list by cursor is awaited as a page, and iterated to its end', async () => {
  const list = client().instances.list({ limit: 3 });
  const page = await list;
  assert.deepEqual([page.items.length, page.hasMore], [3, true]);
  assert.match(page.nextCursor ?? '', /./);
  const found: string[] = [];
  for await (const { id } of list) found.push(id);
  assert.deepEqual([...found].sort(), [...ids].sort());
});

test('a list that counts is iterated to its end', async () => {
  const found: string[] = [];
  for await (const { key } of client().rateLimits.list({ limit: 3 })) found.push(key);
  assert.deepEqual([new Set(found).size, found.length], [COUNT, COUNT]);
});

test('a page goes on from the cursor of the one before', async () => {
  const cursor = (await client().instances.list({ limit: 5 })).nextCursor;
  const second = await client().instances.list({ limit: 5, cursor });
  assert.equal(second.items.length, COUNT - 5);
  assert.deepEqual([second.hasMore, second.nextCursor], [false, undefined]);
});

test('the pages of a list come one by one', async () => {
  const lengths: number[] = [];
  const pages = client().instances.list({ limit: 4 }).pages();
  for await (const { items } of pages) lengths.push(items.length);
  assert.deepEqual(lengths, [4, 3]);
});

test('changes are listed to the present', async () => {
  const seen = new Set<string>();
  for await (const change of client().changes.list({ limit: 5 })) seen.add(change.instance_id);
  assert.deepEqual([...seen].sort(), [...ids].sort());
});

test('approvals tell how many there are on all pages', async () => {
  const page = await client().approvals.list();
  assert.deepEqual([page.total, page.items, page.hasMore], [0, [], false]);
});

test('leaving a list early asks for no further page', async () => {
  let asked = 0;
  const counting = new Client({
    url: api.url,
    apiKey: DEFAULT_API_KEY,
    tenant: TENANT,
    fetch: (url, init) => {
      asked += 1;
      return fetch(url, init);
    },
  });
  for await (const { id } of counting.instances.list({ limit: 2 })) {
    assert.match(id, /./);
    break;
  }
  assert.equal(asked, 1);
});
