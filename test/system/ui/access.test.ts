/**
 * Who gets into the dashboard, and what they see there: by root key, and by the key of a tenant.
 *
 * Cost: 26 s, since it signs in with every sort of key in a Chromium.
 */

import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { PAGES } from '../../../scripts/dashboard/pages.js';
import { NEIGHBOUR_CUSTOMER, type ShopKeys } from '../../../scripts/dashboard/shop/shop.js';
import { useSharedApi } from '../../helpers/api.js';
import { useBrowser } from '../../helpers/browser.js';
import { expectPage, open, pushTo, signIn, signInByHand } from '../../helpers/dashboard.js';
import { DEFAULT_API_KEY } from '../../helpers/engine.js';
import { useShop } from '../../helpers/use-shop.js';

const server = useShop(() => useSharedApi());

const at = () => ({ url: server.api.url });
const test = useBrowser().at(at);

/** Of a tenant: the server asks for no name of one. */
const ofKey = (name: keyof ShopKeys) => ({ apiKey: server.shop.keys[name], tenant: null });

const navigation = (page: Page) => page.getByRole('navigation', { name: 'Main' });

test('a key that is not valid is refused in words, and the right one goes on', async (visit) => {
  visit.complaints.allow(/401/);
  const { page } = visit;
  await signInByHand(visit, { ...at(), apiKey: 'sk_wrong', tenant: null });
  await page.getByText('This key is not valid').waitFor();
  await page.getByLabel('API key').fill(server.shop.keys.operator);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expectPage(page, 'Overview');
});

test('where one address serves several cells, the key of a tenant signs in with its tenant', async (visit) => {
  visit.complaints.allow(/401/);
  const { page } = visit;
  const { tenant } = server.shop;
  // As a proxy does it: nobody knows the key in the cell to which a request without a tenant is led.
  await page.route('**/api/v1/whoami', (route) =>
    route.request().headers()['x-tenant-id'] === tenant ? route.continue() : route.fulfill(UNKNOWN),
  );
  await signInByHand(visit, { ...at(), apiKey: server.shop.keys.operator, tenant: null });
  await page.getByText('This key is not valid').waitFor();
  await page.getByLabel('API key').fill(server.shop.keys.operator);
  await page.getByRole('textbox', { name: 'Tenant' }).fill(tenant);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expectPage(page, 'Overview');
  await page.getByRole('banner').getByText(tenant, { exact: true }).waitFor();
});

const UNKNOWN = {
  status: 401,
  headers: { 'x-request-id': 'sample', 'x-error-code': 'ENG_UNAUTHORIZED' },
  json: { error: 'unauthorized' },
};

test('a link that names a tenant leads to it, also after signing in and a reload', async (visit) => {
  visit.complaints.allow(/401/);
  const { page } = visit;
  const { tenant, neighbour } = server.shop;
  const shown = (name: string) => page.getByRole('banner').getByText(name, { exact: true });
  await page.goto(`${server.api.url}/ui/limits?tenant=${neighbour}`);
  await page.getByLabel('API key').fill(DEFAULT_API_KEY);
  await page.keyboard.press('Enter');
  await expectPage(page, 'Limits');
  await shown(neighbour).waitFor();
  await page.goto(`${server.api.url}/ui/limits?tenant=${tenant}`);
  await shown(tenant).waitFor();
  await page.reload();
  await shown(tenant).waitFor();
});

test('a key is forgotten with the last tab, and by signing out', async (visit) => {
  visit.complaints.allow(/401/);
  const { page, context } = visit;
  await signInByHand(visit, { ...at(), apiKey: DEFAULT_API_KEY, tenant: server.shop.tenant });
  await expectPage(page, 'Overview');
  await page.reload();
  await expectPage(page, 'Overview');
  assert.equal(await page.evaluate('document.cookie + JSON.stringify({ ...localStorage })'), '{}');
  await page.goto('about:blank');
  const other = await context.newPage();
  await other.goto(`${server.api.url}/ui/`);
  await other.getByLabel('API key').waitFor();
  await other.close();
  await page.goto(`${server.api.url}/ui/sequences/new`);
  await page.getByRole('textbox', { name: 'Definition as JSON' }).press('End');
  await page.keyboard.insertText(' ');
  await page.waitForFunction('Object.keys(sessionStorage).some((key) => key.startsWith("draft"))');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('API key').waitFor();
  assert.deepEqual(await page.evaluate('({ ...sessionStorage })'), { session: '{}' });
});

test('the key of a tenant leads to that tenant, and shows nothing of another', async (visit) => {
  const { page, context, complaints } = visit;
  const { neighbour } = server.shop;
  await signIn(context, ofKey('operator'));
  await open(page, server.api.url, '/', 'Overview');
  for (const { path, title } of PAGES) {
    // That one is for the root key.
    if (typeof path !== 'string' || path === '/cells') continue;
    await pushTo(page, path, title);
    const text = (await page.locator('body').textContent()) ?? '';
    for (const foreign of [neighbour, NEIGHBOUR_CUSTOMER]) {
      assert.ok(!text.includes(foreign), `${path} shows ${foreign}`);
    }
  }
  complaints.allow(/404/);
  const [foreign] = await server.api.tenant(neighbour).deadLetters();
  await page.goto(`${server.api.url}/ui/instances/${foreign}`);
  await page.getByRole('heading', { name: 'Instance not found' }).waitFor();
});

/** Where a key lands, labels that the navigation has for it, and those that it has not. */
const REACHES = {
  auditor: ['Overview', ['Overview', 'Instances', 'Releases', 'Webhooks'], []],
  approver: ['Approvals', ['Approvals'], ['Overview', 'Instances', 'Sequences', 'Webhooks']],
  publisher: ['Sequences', ['Sequences', 'Releases'], ['Overview', 'Approvals', 'Webhooks']],
  starter: ['Instances', ['Instances', 'Sequences'], ['Overview', 'Releases', 'Approvals']],
  worker: ['Server', ['Server'], ['Overview', 'Instances', 'Workers']],
} as const;

/** Every page that the navigation leads to is opened: an answer of 403 would be a complaint. */
for (const [capability, [lands, sees, misses]] of Object.entries(REACHES)) {
  test(`a key with ${capability} is led to what it may do, and to nothing else`, async (visit) => {
    const { page, context } = visit;
    await signIn(context, ofKey(capability as keyof ShopKeys));
    await open(page, server.api.url, '/', lands);
    const links = navigation(page).getByRole('list').getByRole('link');
    const names = await links.allTextContents();
    for (const name of sees) assert.ok(names.includes(name), name);
    for (const name of misses) assert.ok(!names.includes(name), name);
    for (const name of names) {
      await links.filter({ hasText: name }).click();
      await expectPage(page, name);
    }
  });
}

test('a page that a key may not see names the capability that it takes', async (visit) => {
  const { page, context } = visit;
  await signIn(context, ofKey('approver'));
  await open(page, server.api.url, '/limits', 'Access denied');
  await page.getByText('This page needs a key with the capability auditor or operator').waitFor();
});

test('links to pages that a key may not see are not offered', async ({ page, context }) => {
  await signIn(context, ofKey('publisher'));
  await open(page, server.api.url, '/sequences', 'Sequences');
  const main = page.getByRole('main');
  await main.getByRole('link', { name: 'order-fulfilment' }).click();
  await expectPage(page, /order-fulfilment/);
  await main.getByRole('link', { name: 'Versions' }).click();
  await main.getByRole('table', { name: /Versions/ }).waitFor();
  assert.equal(await main.locator('a[href*="/instances"]').count(), 0);
});

test('an auditor sees what people are asked, and cannot answer', async ({ page, context }) => {
  await signIn(context, ofKey('auditor'));
  await open(page, server.api.url, '/approvals', 'Approvals');
  await page
    .getByText(/^Sell \w+ to /)
    .first()
    .waitFor();
  assert.equal(await page.getByRole('button', { name: 'Sell' }).count(), 0);
});

test('the key of a tenant sees what became of the webhooks of its own subscription', async (visit) => {
  const { page, context } = visit;
  await signIn(context, ofKey('auditor'));
  await open(page, server.api.url, '/webhooks', 'Webhooks');
  const tabs = page.getByRole('navigation', { name: 'Webhooks' });
  assert.deepEqual(await tabs.getByRole('link').allTextContents(), ['Subscriptions']);
  const down = page.getByRole('row').filter({ hasText: '/orders-down' });
  await down.getByRole('link', { name: 'Deliveries' }).click();
  const table = page.getByRole('table', { name: 'Deliveries' });
  await table.getByText('failed 503').first().waitFor();
  assert.equal(await table.getByText('instance.completed').count(), 0);
  await tabs.getByRole('link', { name: 'Subscriptions' }).click();
  await page.getByRole('table', { name: 'Webhook subscriptions' }).waitFor();
});

test('an approver answers, and that is all', async ({ page, context }) => {
  const asked = await server.shop.order({
    ...{ order: 'order-for-the-sales-desk', customer: 'zoe', item: 'yacht', amount: 77_000 },
    card: '4242 4242',
  });
  await server.shop.until(asked, 'waiting');
  await signIn(context, ofKey('approver'));
  await open(page, server.api.url, '/approvals', 'Approvals');
  const question = page
    .getByRole('listitem')
    .filter({ hasText: 'Sell yacht to zoe for 77000 EUR?' });
  await question.getByRole('button', { name: 'Sell', exact: true }).click();
  await page
    .getByRole('status')
    .getByText(/^Answered: Sell – Sell yacht to zoe/)
    .waitFor();
  // It stays where it was, so that a second click meets no other question.
  await question.getByText('answered: Sell').waitFor();
  await server.shop.until(asked, 'completed');
  const clear = page.getByRole('button', { name: 'Remove closed approvals' });
  await clear.click();
  await question.waitFor({ state: 'detached' });
  assert.ok(await clear.isDisabled());
});
