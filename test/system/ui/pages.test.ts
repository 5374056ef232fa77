/** What holds of every page of the dashboard: for readers of screens, in the dark, on a telephone, while it loads. */

import assert from 'node:assert/strict';
import { describe } from 'node:test';
import type { Page } from 'playwright-core';
import { expectNoAxeFindings, useBrowser, type Visit } from '../../helpers/browser.js';
import {
  addressOf,
  type DashboardPage,
  expectNoHorizontalScroll,
  expectNoLayoutShift,
  firstPaintMs,
  open,
  PAGES,
  SIGN_IN,
  settled,
  signIn,
  watchLayoutShifts,
} from '../../helpers/dashboard.js';
import { useShop } from '../../helpers/shop/use-shop.js';

const server = useShop({ isInCells: true });
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

/** Those of the navigation: what has an address below theirs is a part of them. */
const NAVIGATED = PAGES.filter(({ path }) => typeof path === 'string' && /^\/\w*$/.test(path));

describe('every page of a tenant that has nothing yet', { concurrency: 2 }, () => {
  for (const { name, path, title } of NAVIGATED) {
    test(
      `${name}: nobody is shut out, and nothing reaches over the edge`,
      options,
      async (visit) => {
        const { page, context } = visit;
        await signIn(context, { apiKey: server.api.engine.apiKey, tenant: 'nobody-yet' });
        await open(page, server.api.url, path as string, title);
        await expectNoAxeFindings(page);
        await page.setViewportSize(TELEPHONE);
        await settled(page);
        await expectNoHorizontalScroll(page);
      },
    );
  }
});

/** One of each kind, and what leads to it. */
const DIALOGS = [
  { page: 'instance-waiting', presses: ['Actions', 'Send a signal…'], title: 'Send a signal' },
  { page: 'instances', presses: ['Pause'], title: 'Pause many instances?' },
  { page: 'schedules', presses: ['New schedule'], title: 'New schedule' },
  { page: 'keys', presses: ['New key'], title: 'New API key' },
] as const;

describe('a dialog', { concurrency: 2 }, () => {
  for (const { page: name, presses, title } of DIALOGS) {
    test(`${title}: nobody is shut out, and nothing reaches over the edge`, options, (visit) =>
      tryDialog(visit, name, presses, title),
    );
  }
});

test(
  'sign-in: nobody is shut out, and nothing jumps or reaches over the edge',
  options,
  async (visit) => {
    const { page, complaints, context } = visit;
    complaints.allow(/401/);
    await watchLayoutShifts(context);
    await open(page, server.api.url, SIGN_IN.path as string, SIGN_IN.title);
    await expectNoLayoutShift(page);
    await tryLooks(page);
    await page.getByLabel('API key').fill(server.api.engine.apiKey ?? '');
    await page.keyboard.press('Enter');
    await page.getByRole('list', { name: 'Tenants' }).getByRole('button').first().waitFor();
    await page.setViewportSize(DESK);
    await tryLooks(page);
  },
);

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
  await tryLooks(page);
  assert.match(await page.title(), / · Durable workflow engine$/);
}

async function tryDialog(
  { page, context }: Visit,
  name: string,
  presses: readonly string[],
  title: string,
): Promise<void> {
  const { api, shop } = server;
  const wanted = PAGES.find((one) => one.name === name);
  assert.ok(wanted, name);
  await signIn(context, { apiKey: api.engine.apiKey });
  await open(page, api.url, addressOf(wanted, shop), wanted.title);
  for (const label of presses) {
    const button = page.getByRole('button', { name: label, exact: true });
    await button.or(page.getByRole('menuitem', { name: label, exact: true })).click();
  }
  await page.getByRole('dialog', { name: title }).waitFor();
  await tryLooks(page);
}

/** At a desk and on a telephone, by day and by night. */
async function tryLooks(page: Page): Promise<void> {
  await settled(page);
  await expectNoAxeFindings(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  await expectNoAxeFindings(page, OF_COLOURS);

  await page.setViewportSize(TELEPHONE);
  await settled(page);
  await expectNoHorizontalScroll(page);
  await expectNoAxeFindings(page);
  await page.emulateMedia({ colorScheme: 'light' });
  await expectNoAxeFindings(page, OF_COLOURS);
}
