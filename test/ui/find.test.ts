/**
 * Finding things from every page, one sign-in for all tabs, and addresses that can be sent.
 *
 * Cost: 20 s, since it opens pages in a Chromium.
 */

import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { useSharedApi } from '../helpers/api.js';
import { useBrowser } from '../helpers/browser.js';
import { expectPage, open, signIn, signInByHand } from '../helpers/dashboard.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';
import { useShop } from '../helpers/use-shop.js';

const server = useShop(() => useSharedApi());
const test = useBrowser().at(() => ({
  url: server.api.url,
  viewport: { width: 1280, height: 900 },
}));

const root = () => ({ apiKey: DEFAULT_API_KEY, tenant: server.shop.tenant });
const finder = (page: Page) => page.getByRole('combobox', { name: 'Find' });
const option = (page: Page, name: RegExp | string) => page.getByRole('option', { name });
const banner = (page: Page, name: string) =>
  page.getByRole('banner').getByText(name, { exact: true });
const keyField = (page: Page) => page.getByLabel('API key');
const pathOf = (page: Page) => new URL(page.url()).pathname;
const inTenant = (path: string, tenant = server.shop.tenant) =>
  `/ui/t/${encodeURIComponent(tenant)}${path}`;

test('an order number leads to its instance by keyboard alone, and is offered again', async ({
  page,
  context,
}) => {
  await signIn(context, root());
  await open(page, server.api.url, '/limits', 'Limits');
  await page.keyboard.press('Control+k');
  await finder(page).fill('order-1001');
  await option(page, /^order-1001 order-fulfilment/)
    .first()
    .waitFor();
  await page.keyboard.press('Enter');
  await expectPage(page, /order-fulfilment/);
  const opened = pathOf(page);
  await page.keyboard.press('/');
  await finder(page).waitFor();
  assert.match(
    (await option(page, /order-1001/)
      .first()
      .textContent()) ?? '',
    /order-1001/,
  );
  await page.keyboard.press('Escape');
  await finder(page).waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Find' }).click();
  await finder(page).fill(opened.split('/').at(-1)?.slice(0, 13) ?? '');
  await page.keyboard.press('Enter');
  await expectPage(page, /order-fulfilment/);
});

test('pages, sequences and actions are found, and keys choose among them', async (visit) => {
  visit.complaints.allow(/401/);
  const { page, context } = visit;
  await signIn(context, root());
  await open(page, server.api.url, '/', 'Overview');
  const find = async (text: string) => {
    await page.keyboard.press('Control+k');
    await finder(page).fill(text);
  };
  await find('queues');
  await page.keyboard.press('Enter');
  await expectPage(page, /Workers/);
  await find('bank-trans');
  await option(page, /^bank-transfer version/).click();
  await expectPage(page, /bank-transfer/);
  await find('s');
  const selected = page.locator('[role=option][aria-selected=true]');
  const first = await selected.textContent();
  await page.keyboard.press('ArrowDown');
  assert.notEqual(await selected.textContent(), first);
  await page.keyboard.press('ArrowUp');
  assert.equal(await selected.textContent(), first);
  await finder(page).fill('nothing-like-this');
  await page.getByText('Nothing found.').waitFor();
  await finder(page).fill('sign out');
  await page.keyboard.press('Enter');
  await keyField(page).waitFor();
});

test('a key is offered what it may do, and nothing else', async ({ page, context }) => {
  await signIn(context, { apiKey: server.shop.keys.auditor, tenant: null });
  await open(page, server.api.url, '/', 'Overview');
  await page.keyboard.press('Control+k');
  await option(page, 'Sign out').waitFor();
  for (const name of ['Start an instance', 'New sequence', 'Switch tenant']) {
    assert.equal(await option(page, name).count(), 0, name);
  }
});

test('a tab takes over the sign-in of another one, and signing out ends both', async (visit) => {
  visit.complaints.allow(/401/);
  const { page, context } = visit;
  const waiting = await context.newPage();
  await waiting.goto(`${server.api.url}/ui/instances`);
  await keyField(waiting).waitFor();
  await signInByHand(visit, { url: server.api.url, ...root() });
  await expectPage(page, 'Overview');
  await waiting.getByRole('textbox', { name: 'Tenant' }).fill(server.shop.tenant);
  await waiting.getByRole('button', { name: 'Open' }).click();
  await expectPage(waiting, 'Instances');
  const later = await context.newPage();
  await later.goto(`${server.api.url}/ui/limits`);
  await expectPage(later, 'Limits');
  assert.equal(await later.evaluate('document.cookie + JSON.stringify({ ...localStorage })'), '{}');
  await later.getByRole('button', { name: 'Sign out' }).click();
  for (const tab of [page, waiting, later]) await keyField(tab).waitFor();
});

test('the address of a page names its tenant, and leads a colleague there after the sign-in', async (visit) => {
  visit.complaints.allow(/401/);
  const { page, context } = visit;
  await signIn(context, root());
  await open(page, server.api.url, '/instances?state=failed', 'Instances');
  assert.equal(page.url(), `${server.api.url}${inTenant('/instances?state=failed')}`);
  const sent = page.url();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await keyField(page).fill(DEFAULT_API_KEY);
  await page.keyboard.press('Enter');
  await expectPage(page, 'Instances');
  assert.equal(page.url(), sent);
  await page.goto(`${server.api.url}/ui/limits?tenant=${server.shop.neighbour}`);
  await expectPage(page, 'Limits');
  assert.equal(pathOf(page), inTenant('/limits', server.shop.neighbour));
  await page.goBack();
  await banner(page, server.shop.tenant).waitFor();
  await expectPage(page, 'Instances');
});

test('a key that may not see the page of an address is led on, in its tenant', async ({
  page,
  context,
}) => {
  await signIn(context, { apiKey: server.shop.keys.starter, tenant: null });
  await open(page, server.api.url, '/', 'Instances');
  assert.equal(pathOf(page), inTenant('/instances'));
});

test('an address of another tenant is not opened with the key of one', async ({
  page,
  context,
}) => {
  await signIn(context, { apiKey: server.shop.keys.operator, tenant: null });
  await page.goto(`${server.api.url}${inTenant('/limits', server.shop.neighbour)}`);
  await page.getByRole('heading', { name: 'Another tenant' }).waitFor();
  await page.getByRole('button', { name: `Open ${server.shop.tenant}` }).click();
  await expectPage(page, 'Limits');
  assert.equal(pathOf(page), inTenant('/limits'));
});

test('another tenant is shown on the same page, and instead of one thing the list', async ({
  page,
  context,
}) => {
  const { neighbour } = server.shop;
  await signIn(context, root());
  const change = async (from: string, title: RegExp | string) => {
    await open(page, server.api.url, from, title);
    await page.getByRole('button', { name: 'Change', exact: true }).click();
    await page.getByRole('textbox', { name: 'Tenant' }).fill(neighbour);
    await page.getByRole('button', { name: 'Open' }).click();
  };
  await change(inTenant('/workers/tasks').slice('/ui'.length), /Workers/);
  await expectPage(page, /Workers/);
  assert.equal(pathOf(page), inTenant('/workers/tasks', neighbour));
  const one = `/instances/${[server.shop.instances.declined].flat()[0]}`;
  await change(inTenant(one).slice('/ui'.length), /order-fulfilment/);
  await expectPage(page, 'Instances');
  assert.equal(pathOf(page), inTenant('/instances', neighbour));
});

test('a key or a tenant that cannot be sent leads back to the form, not to an empty page', async ({
  page,
  complaints,
}) => {
  complaints.allow(/401/);
  await page.goto(`${server.api.url}/ui/failures`);
  await page.getByLabel('API key').fill('pasted…');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').getByText('must be printable ASCII').waitFor();
  await page.getByRole('button', { name: 'Enter another key' }).click();
  await page.getByLabel('API key').fill(DEFAULT_API_KEY);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('textbox', { name: 'Tenant' }).fill('店');
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByRole('alert').getByText('the tenant "店" cannot be sent').waitFor();
  await page.reload();
  await page.getByRole('button', { name: 'Choose another tenant' }).click();
  await page.getByRole('textbox', { name: 'Tenant' }).fill(server.shop.tenant);
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByRole('heading', { name: 'By cause, in the last 24 hours' }).waitFor();
});
