/** Lists without cursors are led through to their end, too. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'durable-workflow-engine-client';
import { type PageAsked, pageByOffset, pageOf } from '../src/lib/offset.ts';

const ROWS = Array.from({ length: 7 }, (_, at) => at);

const byOffset = (asked: PageAsked) =>
  pageByOffset(asked, async ({ limit, offset }) => ({
    items: ROWS.slice(offset, offset + limit),
    hasMore: offset + limit < ROWS.length,
  }));

async function all(read: (asked: PageAsked) => Promise<Page<number>>) {
  const found: number[][] = [];
  let cursor: string | undefined;
  do {
    const page = await read({ limit: 3, cursor });
    found.push([...page.items]);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return found;
}

const PAGES = [[0, 1, 2], [3, 4, 5], [6]];

test('a list that pages by offset is read page by page, to its last row', async () => {
  assert.deepEqual(await all(byOffset), PAGES);
});

test('rows that are all there are shown page by page, and counted', async () => {
  assert.deepEqual(await all(async (asked) => pageOf(ROWS, asked)), PAGES);
  assert.equal(pageOf(ROWS, { limit: 3, cursor: '3' }).total, 7);
});

test('an offset that is none leads to the first page', async () => {
  for (const cursor of ['', 'abc', '-3', '1.5']) {
    assert.deepEqual((await byOffset({ limit: 3, cursor })).items, [0, 1, 2]);
  }
});
