/** What holds of every page of the dashboard: for readers of screens, in the dark, on a telephone, while it loads. */

import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { expectNoAxeFindings, useBrowser, type Visit } from '../helpers/browser.js';
import {
  addressOf,
  type DashboardPage,
  expectNoHorizontalScroll,
  expectNoLayoutShift,
  firstPaintMs,
  open,
  PAGES,
  settled,
  signIn,
  watchLayoutShifts,
} from '../helpers/dashboard.js';
import { useShop } from '../helpers/shop/use-shop.js';

const server = useShop();
const { test } = useBrowser();

const TELEPHONE = { width: 380, height: 800 };
const DESK = { width: 1280, height: 900 };

/** What the other colours of the same page can break. */
const OF_COLOURS = ['color-contrast', 'link-in-text-block'];

// Two at a time: each waits now for the browser and now for the server.
describe('every page', { concurrency: 2 }, () => {
  for (const wanted of PAGES) {
    test(
      `${wanted.name}: nobody is shut out, and nothing jumps or reaches over the edge`,
      options,
      (visit) => tryPage(visit, wanted),
    );
  }
});

test('the sign-in: nobody is shut out', options, async ({ page, complaints }) => {
  complaints.allow(/401/);
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await page.goto(`${server.api.url}/ui/`);
    await page.getByLabel('API key').waitFor();
    await expectNoAxeFindings(page);
  }
  await page.setViewportSize(TELEPHONE);
  await expectNoHorizontalScroll(page);
});

function options() {
  return { url: server.api.url, viewport: DESK };
}

async function tryPage({ page, context }: Visit, wanted: DashboardPage): Promise<void> {
  const { api, shop } = server;
  const { title } = wanted;
  await signIn(context, { apiKey: api.engine.apiKey });
  await watchLayoutShifts(context);
  const address = addressOf(wanted, shop);
  await open(page, api.url, address, title);
  await expectNoLayoutShift(page);
  process.stdout.write(`first paint of ${address}: ${Math.round(await firstPaintMs(page))} ms\n`);
  await expectNoAxeFindings(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  await expectNoAxeFindings(page, OF_COLOURS);

  await page.setViewportSize(TELEPHONE);
  await settled(page);
  await expectNoHorizontalScroll(page);
  await expectNoAxeFindings(page);
  await page.emulateMedia({ colorScheme: 'light' });
  await expectNoAxeFindings(page, OF_COLOURS);
  assert.match(await page.title(), / · Durable workflow engine$/);
}
