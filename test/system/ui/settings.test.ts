/**
 * The dashboard and the documentation by settings of the server, and while it has no database.
 *
 * Cost: 14 s, since each of its settings takes a server.
 */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { useApi } from '../../helpers/api.js';
import { expectNoAxeFindings, useBrowser } from '../../helpers/browser.js';
import {
  expectNoHorizontalScroll,
  expectPage,
  open,
  signIn,
  signInByHand,
} from '../../helpers/dashboard.js';
import { DEFAULT_API_KEY, type Engine, startEngine } from '../../helpers/engine.js';

const TENANT = 'acme';
const PREFIXES = ['', '/api/v1'];

const browsers = useBrowser();

// ---------------------------------------------------------------- without a database

/** A server that is never ready, since nobody answers at the address of its database. */
function useUnready(env: Record<string, string>): () => string {
  let engine: Engine | undefined;
  before(async () => {
    const databaseUrl = 'postgres://nobody@127.0.0.1:9/none';
    engine = await startEngine({ databaseUrl, env, waitFor: 'listening' });
  });
  after(() => engine?.stop());
  return () => engine?.url ?? '';
}

async function ask(url: string, headers: Record<string, string> = {}) {
  const reply = await fetch(url, { headers, redirect: 'manual' });
  return { status: reply.status, headers: reply.headers, text: await reply.text() };
}

describe('a server that protects its document, without a database', () => {
  const url = useUnready({ ENGINE_PROTECT_DOCS: 'true' });

  test('ENGINE_PROTECT_DOCS puts the document behind key and tenant; the page itself is always served', async () => {
    const key = { 'x-api-key': DEFAULT_API_KEY };
    const tenant = { 'x-tenant-id': TENANT };
    for (const prefix of PREFIXES) {
      const document = `${url()}${prefix}/api-docs/openapi.json`;
      assert.equal((await ask(document)).status, 401);
      assert.equal((await ask(document, tenant)).status, 401);
      assert.equal((await ask(document, key)).status, 400);
      const { status, headers, text } = await ask(document, { ...key, ...tenant });
      assert.deepEqual([status, headers.get('cache-control')], [200, 'no-store']);
      assert.equal(JSON.parse(text).openapi, '3.1.0');
      for (const path of ['/swagger-ui', '/swagger-ui/swagger-ui.css']) {
        assert.equal((await ask(`${url()}${prefix}${path}`)).status, 200, path);
      }
    }
  });

  test('its dashboard asks for no key, and the root key is known', async () => {
    assert.equal((await ask(`${url()}/ui/`)).status, 200);
    const whoami = `${url()}/api/v1/whoami`;
    const known = await ask(whoami, { 'x-api-key': DEFAULT_API_KEY });
    assert.deepEqual([known.status, JSON.parse(known.text).is_root], [200, true]);
    const { status, headers } = await ask(whoami);
    assert.deepEqual([status, headers.get('x-error-code')], [401, 'ENG_UNAUTHENTICATED']);
  });

  browsers.at(() => ({ url: url() }))(
    'its page asks for key and tenant, and then shows the document',
    async ({ page, complaints }) => {
      complaints.allow(/Could not find component: JsonSchema_string_/);
      await page.goto(`${url()}/swagger-ui`);
      await page.fill('#key', 'wrong');
      await page.fill('#tenant', TENANT);
      await page.click('#unlock button');
      await page.getByText(/refused with status \d/).waitFor();
      await page.fill('#key', DEFAULT_API_KEY);
      await page.click('#unlock button');
      await page.locator('#operations-tag-Instances').waitFor();
      assert.equal(await page.locator('#unlock').count(), 0);
    },
  );
});

describe('a server without dashboard and database', () => {
  const url = useUnready({ ENGINE_UI: 'false' });

  test('ENGINE_UI=false switches the dashboard off, and leads browsers to the page of the API', async () => {
    for (const place of ['/ui', '/ui/', '/ui/icon.svg', '/api/v1/ui/']) {
      assert.equal((await ask(url() + place)).status, 404, place);
    }
    const { status, headers } = await ask(`${url()}/`, { accept: 'text/html' });
    assert.deepEqual([status, headers.get('location')], [302, 'swagger-ui']);
    for (const place of ['/api-docs/openapi.json', '/swagger-ui']) {
      assert.equal((await ask(url() + place)).status, 200, place);
    }
  });
});

// ---------------------------------------------------------------- without tenants, without keys

describe('a server whose requests need name no tenant', () => {
  const api = useApi({
    env: {
      ENGINE_REQUIRE_TENANT_HEADER: 'false',
      ENGINE_ALLOW_NO_TENANT_ISOLATION: 'true',
      ENGINE_ENV_LABEL: 'production',
      ENGINE_ENV_COLOR: '#b3261e',
    },
  });
  const test = browsers.at(() => ({ url: api.url }));
  const label = (page: Page) => page.getByRole('banner').getByText('production');

  test('the root key looks at one tenant or at all of them', async (visit) => {
    visit.complaints.allow(/401/);
    const { page } = visit;
    const banner = page.getByRole('banner');
    await signInByHand(visit, { url: api.url, apiKey: DEFAULT_API_KEY, tenant: TENANT });
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
  });

  test('every page says in its first line which engine it is, in a colour that can be read', async (visit) => {
    const { page, context } = visit;
    await signIn(context, { apiKey: DEFAULT_API_KEY, tenant: TENANT });
    await open(page, api.url, '/limits', 'Limits');
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await label(page).waitFor();
      const text = await label(page).evaluate((element) => element.getAttribute('style') ?? '');
      assert.match(text, /rgb\(179, 38, 30\).*rgb\(255, 255, 255\)/);
      await expectNoAxeFindings(page, ['color-contrast']);
    }
    await page.setViewportSize({ width: 380, height: 800 });
    await expectNoHorizontalScroll(page);
    await label(page).waitFor();
  });
});

describe('a server that asks for no key', () => {
  const api = useApi({ apiKey: null });
  const test = browsers.at(() => ({ url: api.url }));

  test('only the tenant is asked for', async ({ page }) => {
    await page.goto(`${api.url}/ui/`);
    await page.getByRole('textbox', { name: 'Tenant' }).fill(TENANT);
    await page.getByRole('button', { name: 'Open' }).click();
    await expectPage(page, 'Overview');
    assert.equal(await page.getByRole('button', { name: 'Sign out' }).count(), 0);
  });
});
