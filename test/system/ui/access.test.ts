/** Who gets into the dashboard, and what they see there: by root key, by the key of a tenant, and where no key is asked for. */

import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import type { Page } from 'playwright-core';
import { type Api, startApi } from '../../helpers/api.js';
import { expectNoAxeFindings, useBrowser } from '../../helpers/browser.js';
import {
  expectNoHorizontalScroll,
  expectPage,
  open,
  PAGES,
  signIn,
  signInByHand,
} from '../../helpers/dashboard.js';
import { NEIGHBOUR, NEIGHBOUR_CUSTOMER, type ShopKeys, TENANT } from '../../helpers/shop/shop.js';
import { useShop } from '../../helpers/shop/use-shop.js';

const server = useShop();
const { test } = useBrowser();

const at = () => ({ url: server.api.url });

/** Of a tenant: the server asks for no name of one. */
const ofKey = (name: keyof ShopKeys) => ({ apiKey: server.shop.keys[name], tenant: null });

const navigation = (page: Page) => page.getByRole('navigation', { name: 'Main' });

const rootKey = () => server.api.engine.apiKey ?? '';

test('with the root key a person chooses a tenant', at, async ({ page, complaints }) => {
  complaints.allow(/401/);
  await page.goto(`${server.api.url}/ui/`);
  await page.getByLabel('API key').fill(rootKey());
  await page.keyboard.press('Enter');
  const tenants = page.getByRole('list', { name: 'Tenants' });
  await tenants.getByRole('button', { name: NEIGHBOUR, exact: true }).waitFor();
  await page.getByRole('textbox', { name: 'Tenant' }).fill(TENANT);
  await tenants.getByRole('button', { name: TENANT, exact: true }).click();
  await expectPage(page, 'Overview');
  await page.getByRole('banner').getByText(TENANT, { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Change' }).click();
  await tenants.getByRole('button', { name: NEIGHBOUR, exact: true }).click();
  await page.getByRole('banner').getByText(NEIGHBOUR, { exact: true }).waitFor();
});

test(
  'a key that is not valid is refused in words, and the right one goes on',
  at,
  async (visit) => {
    visit.complaints.allow(/401/);
    const { page } = visit;
    await signInByHand(visit, { ...at(), apiKey: 'sk_wrong', tenant: null });
    await page.getByText('This key is not valid').waitFor();
    await page.getByLabel('API key').fill(server.shop.keys.operator);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await expectPage(page, 'Overview');
  },
);

test('a key that was refused may be typed again', at, async (visit) => {
  visit.complaints.allow(/401/);
  const { page } = visit;
  const apiKey = server.shop.keys.operator;
  await page.route('**/api/v1/whoami', (route) => route.fulfill(UNKNOWN), { times: 2 });
  await signInByHand(visit, { ...at(), apiKey, tenant: null });
  await page.getByText('This key is not valid').waitFor();
  await page.getByLabel('API key').fill(apiKey);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expectPage(page, 'Overview');
});

test(
  'where one address serves several cells, the key of a tenant signs in with its tenant',
  at,
  async (visit) => {
    visit.complaints.allow(/401/);
    const { page } = visit;
    // As a proxy does it: nobody knows the key in the cell to which a request without a tenant is led.
    await page.route('**/api/v1/whoami', (route) =>
      route.request().headers()['x-tenant-id'] === TENANT
        ? route.continue()
        : route.fulfill(UNKNOWN),
    );
    await signInByHand(visit, { ...at(), apiKey: server.shop.keys.operator, tenant: null });
    await page.getByText('This key is not valid').waitFor();
    await page.getByLabel('API key').fill(server.shop.keys.operator);
    await page.getByRole('textbox', { name: 'Tenant' }).fill(TENANT);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await expectPage(page, 'Overview');
    await page.getByRole('banner').getByText(TENANT, { exact: true }).waitFor();
  },
);

const UNKNOWN = {
  status: 401,
  headers: { 'x-request-id': 'sample', 'x-error-code': 'ENG_UNAUTHORIZED' },
  json: { error: 'unauthorized' },
};

test(
  'a link that names a tenant leads to it, also after signing in and a reload',
  at,
  async (visit) => {
    visit.complaints.allow(/401/);
    const { page } = visit;
    await page.goto(`${server.api.url}/ui/limits?tenant=${NEIGHBOUR}`);
    await page.getByLabel('API key').fill(rootKey());
    await page.keyboard.press('Enter');
    await expectPage(page, 'Limits');
    const tenant = page.getByRole('banner').getByText(NEIGHBOUR, { exact: true });
    await tenant.waitFor();
    await page.goto(`${server.api.url}/ui/limits?tenant=${TENANT}`);
    await page.getByRole('banner').getByText(TENANT, { exact: true }).waitFor();
    await page.reload();
    await page.getByRole('banner').getByText(TENANT, { exact: true }).waitFor();
  },
);

test('a key is forgotten with its tab, and by signing out', at, async (visit) => {
  visit.complaints.allow(/401/);
  const { page, context } = visit;
  await signInByHand(visit, { ...at(), apiKey: rootKey() });
  await expectPage(page, 'Overview');
  await page.reload();
  await expectPage(page, 'Overview');
  assert.equal(await page.evaluate('document.cookie + JSON.stringify({ ...localStorage })'), '{}');
  const other = await context.newPage();
  await other.goto(`${server.api.url}/ui/`);
  await other.getByLabel('API key').waitFor();
  await page.goto(`${server.api.url}/ui/sequences/new`);
  await page.getByRole('textbox', { name: 'Definition as JSON' }).press('End');
  await page.keyboard.insertText(' ');
  await page.waitForFunction('Object.keys(sessionStorage).some((key) => key.startsWith("draft"))');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('API key').waitFor();
  assert.deepEqual(await page.evaluate('({ ...sessionStorage })'), { session: '{}' });
});

test(
  'the key of a tenant leads to that tenant, and shows nothing of another',
  at,
  async (visit) => {
    const { page, context, complaints } = visit;
    await signIn(context, ofKey('operator'));
    for (const { path, title } of PAGES) {
      // That one is for the root key.
      if (typeof path !== 'string' || path === '/cells') continue;
      await open(page, server.api.url, path, title);
      const text = (await page.locator('body').textContent()) ?? '';
      assert.ok(!text.includes(NEIGHBOUR_CUSTOMER), `${path} shows ${NEIGHBOUR_CUSTOMER}`);
      assert.ok(!text.includes(NEIGHBOUR), `${path} shows ${NEIGHBOUR}`);
    }
    complaints.allow(/404/);
    const [foreign] = await server.api.tenant(NEIGHBOUR).deadLetters();
    await page.goto(`${server.api.url}/ui/instances/${foreign}`);
    await page.getByRole('heading', { name: 'Instance not found' }).waitFor();
  },
);

/** Where a key lands, and labels that the navigation has for it, beside those in between. */
const REACHES: Readonly<
  Record<string, { lands: string; sees: readonly string[]; misses: readonly string[] }>
> = {
  operator: {
    lands: 'Overview',
    sees: ['Overview', 'Instances', 'Releases', 'Webhooks'],
    misses: [],
  },
  auditor: {
    lands: 'Overview',
    sees: ['Overview', 'Instances', 'Releases', 'Webhooks'],
    misses: [],
  },
  approver: {
    lands: 'Approvals',
    sees: ['Approvals'],
    misses: ['Overview', 'Instances', 'Sequences', 'Webhooks'],
  },
  publisher: {
    lands: 'Sequences',
    sees: ['Sequences', 'Releases'],
    misses: ['Overview', 'Approvals', 'Webhooks'],
  },
  starter: {
    lands: 'Instances',
    sees: ['Instances', 'Sequences'],
    misses: ['Overview', 'Releases', 'Approvals'],
  },
  worker: { lands: 'Server', sees: ['Server'], misses: ['Overview', 'Instances', 'Workers'] },
};

/** Every page that the navigation leads to is opened: an answer of 403 would be a complaint. */
for (const [capability, { lands, sees, misses }] of Object.entries(REACHES)) {
  test(
    `a key with ${capability} is led to what it may do, and to nothing else`,
    at,
    async (visit) => {
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
    },
  );
}

test('a page that a key may not see names the capability that it takes', at, async (visit) => {
  const { page, context } = visit;
  await signIn(context, ofKey('approver'));
  await open(page, server.api.url, '/limits', 'Your key may not see this');
  await page.getByText('It takes a key with the capability auditor or operator').waitFor();
});

test('links to pages that a key may not see are not offered', at, async ({ page, context }) => {
  await signIn(context, ofKey('publisher'));
  await open(page, server.api.url, '/sequences', 'Sequences');
  const main = page.getByRole('main');
  await main.getByRole('link', { name: 'order-fulfilment' }).click();
  await expectPage(page, /order-fulfilment/);
  await main.getByRole('link', { name: 'Versions' }).click();
  await main.getByRole('table', { name: /Versions/ }).waitFor();
  assert.equal(await main.locator('a[href*="/instances"]').count(), 0);
});

test('an auditor sees what people are asked, and cannot answer', at, async ({ page, context }) => {
  await signIn(context, ofKey('auditor'));
  await open(page, server.api.url, '/approvals', 'Approvals');
  await page
    .getByText(/^Sell \w+ to /)
    .first()
    .waitFor();
  assert.equal(await page.getByRole('button', { name: 'Sell' }).count(), 0);
});

test(
  'the key of a tenant sees what became of the webhooks of its own subscription',
  at,
  async (visit) => {
    const { page, context } = visit;
    await signIn(context, ofKey('auditor'));
    await open(page, server.api.url, '/webhooks', 'Webhooks');
    const tabs = page.getByRole('navigation', { name: 'Webhooks' });
    assert.deepEqual(await tabs.getByRole('link').allTextContents(), ['Subscriptions']);
    const down = page.getByRole('row').filter({ hasText: '/orders-down' });
    await down.getByRole('link', { name: 'Deliveries' }).click();
    const table = page.getByRole('table', { name: 'Deliveries' });
    await table.getByText('not delivered 503').first().waitFor();
    assert.equal(await table.getByText('instance.completed').count(), 0);
    await tabs.getByRole('link', { name: 'Subscriptions' }).click();
    await page.getByRole('table', { name: 'Webhook subscriptions' }).waitFor();
  },
);

test('an approver answers, and that is all', at, async ({ page, context }) => {
  const asked = await server.shop.order({
    order: 'order-for-the-sales-desk',
    customer: 'zoe',
    item: 'yacht',
    amount: 77_000,
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
    .getByText(/^Answered: Sell yacht to zoe/)
    .waitFor();
  await question.waitFor({ state: 'detached' });
  await server.shop.until(asked, 'completed');
});

// ---------------------------------------------------------------- without tenants

let tenantless: Api;
before(async () => {
  tenantless = await startApi({
    env: { ENGINE_REQUIRE_TENANT_HEADER: 'false', ENGINE_ALLOW_NO_TENANT_ISOLATION: 'true' },
  });
});
after(() => tenantless.stop());

test(
  'where requests need name no tenant, the root key looks at one or at all of them',
  () => ({ url: tenantless.url }),
  async (visit) => {
    visit.complaints.allow(/401/);
    const { page } = visit;
    const banner = page.getByRole('banner');
    const apiKey = tenantless.engine.apiKey ?? '';
    await signInByHand(visit, { url: tenantless.url, apiKey, tenant: 'acme' });
    await expectPage(page, 'Overview');
    await banner.getByText('Live', { exact: true }).waitFor();
    await banner.getByRole('button', { name: 'Change' }).click();
    await page.getByRole('button', { name: 'All tenants' }).click();
    await expectPage(page, 'Overview');
    await banner.getByText('All tenants').waitFor();
    await banner.getByText('Every 5 s').waitFor();
    await page.getByRole('link', { name: 'Healthy Engine' }).waitFor();
    await page.reload();
    await banner.getByText('All tenants').waitFor();
  },
);

// ---------------------------------------------------------------- without keys

let keyless: Api;
before(async () => {
  keyless = await startApi({
    apiKey: null,
    env: { ENGINE_ENV_LABEL: 'production', ENGINE_ENV_COLOR: '#b3261e' },
  });
});
after(() => keyless.stop());

test(
  'where no key is asked for, only the tenant is',
  () => ({ url: keyless.url }),
  async ({ page }) => {
    await page.goto(`${keyless.url}/ui/`);
    await page.getByRole('textbox', { name: 'Tenant' }).fill('demo');
    await page.getByRole('button', { name: 'Open' }).click();
    await expectPage(page, 'Overview');
    assert.equal(await page.getByRole('button', { name: 'Sign out' }).count(), 0);
  },
);

test(
  'every page says in its first line which engine it is, in a colour that can be read',
  () => ({ url: keyless.url }),
  async ({ page, context }) => {
    await signIn(context, { tenant: 'demo' });
    await open(page, keyless.url, '/limits', 'Limits');
    const label = page.getByRole('banner').getByText('production');
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await label.waitFor();
      assert.match(
        await label.evaluate((element) => element.getAttribute('style') ?? ''),
        /rgb\(179, 38, 30\).*rgb\(255, 255, 255\)/,
      );
      await expectNoAxeFindings(page);
    }
    await page.setViewportSize({ width: 380, height: 800 });
    await expectNoHorizontalScroll(page);
    await label.waitFor();
  },
);
