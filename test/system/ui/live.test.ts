/** What a page that stays open asks of its server while instances keep changing. */

import assert from 'node:assert/strict';
import type { Page, Request } from 'playwright-core';
import { sleep, step, useSharedApi } from '../../helpers/api.js';
import { useBrowser } from '../../helpers/browser.js';
import { open, signIn } from '../../helpers/dashboard.js';
import { DEFAULT_API_KEY } from '../../helpers/engine.js';

const api = useSharedApi();
const { test } = useBrowser();

/** How long a query rests at least between two reads: that of `ui/src/api/live.tsx`. */
const PACE_MS = 1_000;
/** What the clocks of the browser are apart. */
const ROUNDED_MS = 5;

/** So many instances fail one after the other, a few of them a second. */
const COUNT = 20;
const BLOCKS = [sleep('wait', 250), step('end', 'fail', { params: { message: 'as it should' } })];

/** What is seen when all of them have failed. */
const PAGES = [
  {
    path: '/instances',
    title: 'Instances',
    seen: (page: Page) => page.getByText('as it should').nth(COUNT - 1),
  },
  {
    path: '/',
    title: 'Overview',
    seen: (page: Page) => page.getByRole('link', { name: new RegExp(`^${COUNT} Failed`) }),
  },
] as const;

for (const { path, title, seen } of PAGES) {
  test(
    `${title}: however much changes, there is one stream, and each query reads once in its pace`,
    () => ({ url: api.url }),
    async ({ page, context }) => {
      const tenant = api.tenant();
      const sequence = await tenant.sequence(BLOCKS);
      const asked: Request[] = [];
      page.on('request', (request) => void asked.push(request));
      await signIn(context, { apiKey: DEFAULT_API_KEY, tenant: tenant.name });
      await open(page, api.url, path, title);
      await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
      for (let n = 0; n < COUNT; n++) await tenant.until(await tenant.create(sequence), 'failed');
      await seen(page).waitFor();
      const { streams, reads } = partsOf(asked);
      assert.equal(streams, 1);
      const soon = [...reads].flatMap(([read, starts]) => {
        const rests = starts.slice(1).map((start, before) => start - (starts[before] ?? 0));
        const hasty = rests.filter((restMs) => restMs < PACE_MS - ROUNDED_MS);
        return hasty.map((restMs) => `${read} again after ${restMs} ms`);
      });
      assert.deepEqual(soon, []);
    },
  );
}

/** How many streams were opened, and when what was read, by the browser’s own clock. */
function partsOf(asked: readonly Request[]) {
  const reads = new Map<string, number[]>();
  let streams = 0;
  for (const request of asked) {
    const { pathname, searchParams } = new URL(request.url());
    const { startTime } = request.timing();
    if (!pathname.startsWith('/api/')) continue;
    if (pathname.endsWith('/changes/stream')) streams += 1;
    // What has no answer yet has begun at no time.
    else if (startTime > 0) {
      // It moves with the clock, and the query stays the same.
      searchParams.delete('since');
      const read = `${pathname}?${searchParams}`;
      reads.set(read, [...(reads.get(read) ?? []), startTime]);
    }
  }
  return { streams, reads };
}
