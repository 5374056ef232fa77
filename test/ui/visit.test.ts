/**
 * One visit to each page of the dashboard: it shows what it has to, and the browser has nothing to complain of.
 *
 * Cost: 15 s, since it opens every page in a Chromium.
 */

import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { addressOf, PAGES } from '../../scripts/dashboard/pages.js';
import { useSharedApi } from '../helpers/api.js';
import { useBrowser } from '../helpers/browser.js';
import { open, pushTo, signIn } from '../helpers/dashboard.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';
import { useShop } from '../helpers/use-shop.js';

const server = useShop(() => useSharedApi());
const test = useBrowser().tabs(
  () => ({ url: server.api.url, viewport: { width: 1280, height: 900 } }),
  async ({ page, context }) => {
    await signIn(context, { apiKey: DEFAULT_API_KEY, tenant: server.shop.tenant });
    await open(page, server.api.url, '/limits', 'Limits');
  },
);

/** The server that files share is no cell. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  cells: 'This server is not part of a cluster.',
};

// Two at a time: each waits now for the browser and now for the server.
describe('every page', { concurrency: 2 }, () => {
  for (const wanted of PAGES) {
    test(`${wanted.name} shows what there is, and nothing goes wrong`, async ({ page }) => {
      await pushTo(page, addressOf(wanted, server.shop), wanted.title);
      const shows = ELSEWHERE[wanted.name] ?? wanted.shows;
      await page.getByRole('main').getByText(shows).first().waitFor();
      assert.match(await page.title(), / · Durable workflow engine$/);
    });
  }
});
