/**
 * What holds of every page of the dashboard: for readers of screens, in the dark, on a telephone, while it loads.
 *
 * Cost: 60 s, since it opens every page in another theme and size, with accessibility checks.
 */

import assert from 'node:assert/strict';
import { after, describe } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import type { BrowserContext, Page } from 'playwright-core';
import { LAYOUT, NOTE_TEXTS, viewportOf } from '../../../scripts/dashboard/layout.js';
import { addressOf, PAGES, SIGN_IN } from '../../../scripts/dashboard/pages.js';
import { openCells } from '../../../scripts/dashboard/shop/cells.js';
import { SHOP_ENV } from '../../../scripts/dashboard/shop/shop.js';
import { useApi } from '../../helpers/api.js';
import { expectNoAxeFindings, useBrowser, type Visit } from '../../helpers/browser.js';
import {
  expectNoHorizontalScroll,
  expectNoLayoutShift,
  expectPage,
  open,
  pushTo,
  settled,
  signIn,
  watchLayoutShifts,
} from '../../helpers/dashboard.js';
import { createTestDatabase, type TestDatabase } from '../../helpers/database.js';
import { DEFAULT_API_KEY } from '../../helpers/engine.js';
import { useShop } from '../../helpers/use-shop.js';

let database: TestDatabase | undefined;
// A server of its own: as one of three cells it has something on the page of the cells, too.
const server = useShop(() =>
  useApi(async () => {
    database = await createTestDatabase({ isMigrated: false });
    return { database, env: { ...SHOP_ENV, ...(await openCells(database.connectionString)) } };
  }),
);
after(() => database?.drop());
const { at, tabs } = useBrowser();

const DESK = { width: 1280, height: 900 };
const TELEPHONE = { width: 380, height: 800 };

const options = () => ({ url: server.api.url, viewport: DESK });
const test = at(options);

const enter = async ({ context }: Visit, tenant = server.shop.tenant) => {
  await signIn(context, { apiKey: DEFAULT_API_KEY, tenant });
  await watchLayoutShifts(context);
};

/** Of a slow server: what names and explains, which stands above, comes behind what fills the lists. */
const answerApart = (context: BrowserContext) =>
  context.route(/\/(?:explain|sequences)\b(?!.*\.js)/, async (route) => {
    await setTimeout(route.request().url().endsWith('/explain') ? 250 : 500);
    await route.fallback();
  });

/** By day at a desk, and by night on a telephone. */
async function expectGoodLooks(page: Page): Promise<void> {
  await settled(page);
  await expectNoAxeFindings(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.setViewportSize(TELEPHONE);
  await settled(page);
  await expectNoHorizontalScroll(page);
  await expectNoAxeFindings(page);
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize(DESK);
}

// Two at a time: each waits now for the browser and now for the server.
describe('every page', { concurrency: 2 }, () => {
  const onPage = tabs(options, async (visit) => {
    await enter(visit);
    await answerApart(visit.context);
  });
  for (const wanted of PAGES) {
    onPage(
      `${wanted.name}: nobody is shut out, and nothing jumps or reaches over the edge`,
      async ({ page }) => {
        await open(page, server.api.url, addressOf(wanted, server.shop), wanted.title);
        await page.getByRole('main').getByText(wanted.shows).first().waitFor();
        await expectNoLayoutShift(page);
        await expectGoodLooks(page);
      },
    );
  }
});

at(options)(
  'what Ctrl-K finds: nobody is shut out, and nothing reaches over the edge',
  async (visit) => {
    const { page } = visit;
    await enter(visit);
    await open(page, server.api.url, '/limits', 'Limits');
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Find' }).fill('order');
    await page
      .getByRole('option', { name: /^order-/ })
      .first()
      .waitFor();
    await expectGoodLooks(page);
  },
);

/** Those of the navigation: what has an address below theirs is a part of them. */
const NAVIGATED = PAGES.filter(({ path }) => typeof path === 'string' && /^\/[\w-]*$/.test(path));

describe('every page of a tenant that has nothing yet', { concurrency: 2 }, () => {
  const onPage = tabs(options, async (visit) => {
    await enter(visit, 'nobody-yet');
    await open(visit.page, server.api.url, '/server', 'Server');
  });
  for (const { name, path, title } of NAVIGATED) {
    onPage(`${name}: nobody is shut out, and nothing reaches over the edge`, async ({ page }) => {
      await pushTo(page, path as string, title);
      await expectNoAxeFindings(page);
      await page.setViewportSize(TELEPHONE);
      await settled(page);
      await expectNoHorizontalScroll(page);
      await page.setViewportSize(DESK);
    });
  }
});

for (const row of LAYOUT) {
  const measured = at(() => ({ ...options(), viewport: viewportOf(row) }));
  measured(row.name, async ({ page, context, complaints }) => {
    complaints.allow(/ERR_FAILED/);
    await signIn(context, { apiKey: DEFAULT_API_KEY, tenant: server.shop.tenant });
    await context.addInitScript(NOTE_TEXTS);
    await open(page, server.api.url, await row.path(server.shop), /./);
    await row.prepare?.(page);
    const pixels = await page.evaluate<number>(row.pixels);
    assert.ok(pixels <= 0.5, `${pixels} px too much`);
  });
}

/** One of each kind, and what leads to it. */
const DIALOGS = [
  { name: 'instance-waiting', presses: ['Actions', 'Send a signal…'], title: 'Send a signal' },
  { name: 'instances', presses: ['Pause'], title: 'Pause many instances?' },
  { name: 'schedules', presses: ['New schedule'], title: 'New schedule' },
  { name: 'endpoints', presses: ['New endpoint'], title: 'New endpoint' },
  { name: 'triggers', presses: ['New trigger'], title: 'New trigger' },
  { name: 'keys', presses: ['New key'], title: 'New API key' },
] as const;

describe('a dialog', { concurrency: 2 }, () => {
  const onPage = tabs(options, (visit) => enter(visit));
  for (const { name, presses, title } of DIALOGS) {
    onPage(`${title}: nobody is shut out, and nothing reaches over the edge`, async ({ page }) => {
      const wanted = PAGES.find((one) => one.name === name);
      assert.ok(wanted, name);
      await open(page, server.api.url, addressOf(wanted, server.shop), wanted.title);
      for (const label of presses) {
        const button = page.getByRole('button', { name: label, exact: true });
        await button.or(page.getByRole('menuitem', { name: label, exact: true })).click();
      }
      await page.getByRole('dialog', { name: title }).waitFor();
      await expectGoodLooks(page);
    });
  }
});

test('with the root key a person chooses a tenant, and none is shut out', async (visit) => {
  const { page, complaints, context } = visit;
  const { tenant, neighbour } = server.shop;
  complaints.allow(/401/);
  await watchLayoutShifts(context);
  await open(page, server.api.url, SIGN_IN.path as string, SIGN_IN.title);
  await expectNoLayoutShift(page);
  await expectGoodLooks(page);
  await page.getByLabel('API key').fill(DEFAULT_API_KEY);
  await page.keyboard.press('Enter');
  const button = (name: string) =>
    page.getByRole('list', { name: 'Tenants' }).getByRole('button', { name, exact: true });
  await button(neighbour).waitFor();
  await expectGoodLooks(page);
  const shown = (name: string) => page.getByRole('banner').getByText(name, { exact: true });
  await page.getByRole('textbox', { name: 'Tenant' }).fill(tenant);
  await button(tenant).click();
  await expectPage(page, 'Overview');
  await shown(tenant).waitFor();
  await page.getByRole('button', { name: 'Change' }).click();
  await button(neighbour).click();
  await shown(neighbour).waitFor();
});
