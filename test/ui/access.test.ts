/** Who gets into the dashboard, and what they see there: by root key, by the key of a tenant, and where no key is asked for. */

import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import type { Page } from 'playwright-core';
import { type Api, startApi } from '../helpers/api.js';
import { expectNoAxeFindings, useBrowser } from '../helpers/browser.js';
import {
  expectNoHorizontalScroll,
  expectPage,
  open,
  PAGES,
  signIn,
  signInByHand,
} from '../helpers/dashboard.js';
import { NEIGHBOUR, NEIGHBOUR_CUSTOMER, type ShopKeys, TENANT } from '../helpers/shop/shop.js';
import { useShop } from '../helpers/shop/use-shop.js';

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
      if (typeof path !== 'string') continue;
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

/** Labels that the navigation has for a key, beside those in between. */
const REACHES: Readonly<Record<string, { sees: readonly string[]; misses: readonly string[] }>> = {
  operator: { sees: ['Overview', 'Instances', 'Releases', 'Webhooks'], misses: [] },
  auditor: { sees: ['Overview', 'Instances', 'Releases', 'Webhooks'], misses: [] },
  approver: { sees: ['Approvals'], misses: ['Overview', 'Instances', 'Sequences', 'Webhooks'] },
  publisher: { sees: ['Sequences', 'Releases'], misses: ['Overview', 'Approvals', 'Webhooks'] },
  starter: { sees: ['Instances', 'Sequences'], misses: ['Overview', 'Releases', 'Approvals'] },
};

for (const [capability, { sees, misses }] of Object.entries(REACHES)) {
  test(
    `a key with ${capability} is led to what it may do, and to nothing else`,
    at,
    async (visit) => {
      const { page, context } = visit;
      await signIn(context, ofKey(capability as keyof ShopKeys));
      await page.goto(`${server.api.url}/ui/server`);
      await expectPage(page, 'Server');
      for (const name of sees)
        await navigation(page).getByRole('link', { name, exact: true }).waitFor();
      for (const name of misses) {
        assert.equal(
          await navigation(page).getByRole('link', { name, exact: true }).count(),
          0,
          name,
        );
      }
    },
  );
}

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
