/**
 * The dashboard and the documentation by settings of the server, while it has no database, and while it is away or a
 * standby, after which they go on by themselves.
 *
 * Cost: 50 s, since each of its settings takes a server, one is killed below an open page, and eight are opened.
 */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Page, Request } from 'playwright-core';
import { eventually, useApi, useSharedApi } from '../../helpers/api.js';
import { expectNoAxeFindings, refuse, useBrowser } from '../../helpers/browser.js';
import { expectStatus } from '../../helpers/client.js';
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

  test('ENGINE_PROTECT_DOCS requires key and tenant for the document; the page itself is always served', async () => {
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
  const api = useSharedApi('open');
  const test = browsers.at(() => ({ url: api.url }));

  test('only the tenant is asked for', async ({ page }) => {
    await page.goto(`${api.url}/ui/`);
    await page.getByRole('textbox', { name: 'Tenant' }).fill(TENANT);
    await page.getByRole('button', { name: 'Open' }).click();
    await expectPage(page, 'Overview');
    assert.equal(await page.getByRole('button', { name: 'Sign out' }).count(), 0);
  });
});

// ---------------------------------------------------------------- away, or a standby

describe('a server that is killed, stopped and replaced', () => {
  let standby: Engine | undefined;
  // Before the server on the same database: hooks behind a test run in the order in which they are written.
  after(() => standby?.stop());
  const api = useApi();
  const { at, visit } = browsers;
  const test = at(() => ({ url: api.url }));

  /** What a browser says of requests to nobody. */
  const NOBODY_THERE =
    /ERR_CONNECTION_(?:REFUSED|RESET)|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE|ERR_SOCKET|ERR_NETWORK|ERR_FAILED|50[023]/;

  const isShown = (page: Page, state: string) =>
    page.getByRole('status').getByText(state, { exact: true }).waitFor();

  const isStream = (request: { url(): string }) => request.url().includes('/changes/stream');

  /** Resolves with the secret of a key of the tenant, and with the way to revoke it. */
  async function mint(capability: string) {
    const body = { tenant_id: TENANT, name: capability, capabilities: [capability] };
    const reply = await api.root.post<{ id: string; secret: string }>('/api-keys', body);
    const { id, secret } = expectStatus(reply, 201);
    return { secret, revoke: () => api.root.delete(`/api-keys/${id}`) };
  }

  /** An instance that asks this until it is cancelled. */
  const ask = (prompt: string) =>
    api
      .tenant(TENANT)
      .run([{ type: 'step', id: 'ask', handler: 'noop', wait_for_input: { prompt } }]);

  test('a page says that its server is away, and goes on when it is back', async (visited) => {
    const { page, context, complaints } = visited;
    complaints.allow(NOBODY_THERE);
    await signIn(context, { apiKey: DEFAULT_API_KEY, tenant: TENANT });
    const question = await ask('Is it sent?');
    await open(page, api.url, '/approvals', 'Approvals');
    await isShown(page, 'Live');
    // A key without the stream of changes looks by itself, and finds out so.
    const other = await visit({ url: api.url });
    other.complaints.allow(NOBODY_THERE);
    await signIn(other.context, { apiKey: (await mint('approver')).secret, tenant: null });
    await open(other.page, api.url, '/approvals', 'Approvals');
    await isShown(other.page, 'Every 5 s');

    await api.engine.kill();
    await page
      .getByRole('alert')
      .getByText(/is unreachable. Data shown is as of \d/)
      .waitFor();
    await isShown(page, 'Engine unavailable');
    await isShown(other.page, 'Engine unavailable');
    for (const one of [page, other.page]) {
      await one.getByRole('button', { name: /^yes$/i }).click();
      await one.getByText(/^The request was not sent, so nothing has changed/).waitFor();
    }
    // What was there stays to be read; what has to be loaded comes when the server is back.
    await expectPage(page, 'Approvals');
    await page.getByRole('link', { name: 'Limits', exact: true }).click();
    await api.restart();
    await expectPage(page, 'Limits');
    await isShown(page, 'Live');
    await page.getByRole('alert').first().waitFor({ state: 'detached' });
    await isShown(other.page, 'Every 5 s');
    assert.equal((await api.tenant(TENANT).instance(question)).state, 'waiting');
    await api.tenant(TENANT).signal(question, 'cancel');
    other.complaints.expectNone();
    await other.context.close();
  });

  test('what could not be read again says so, beside what is old', async (visited) => {
    const { page, context, complaints } = visited;
    complaints.allow(/404/);
    await signIn(context, { apiKey: DEFAULT_API_KEY, tenant: TENANT });
    const question = await ask('Is it old?');
    await open(page, api.url, '/approvals', 'Approvals');
    await isShown(page, 'Live');
    await page.getByText('Is it old?').waitFor();
    await refuse(page, '**/api/v1/approvals*', 404, 'ENG_NOT_FOUND', 'not found: the list is gone');
    await api.tenant(TENANT).signal(question, 'cancel');
    await page
      .getByRole('alert')
      .getByText(/latest update failed: not found: the list is gone/)
      .waitFor();
    await page.getByText('Is it old?').waitFor();
  });

  test('a page whose key is revoked asks for another one, without being touched', async (visited) => {
    const { page, context, complaints } = visited;
    complaints.allow(/401/);
    const { secret, revoke } = await mint('auditor');
    await signIn(context, { apiKey: secret, tenant: null });
    await open(page, api.url, '/server', 'Server');
    await isShown(page, 'Live');
    await revoke();
    await page.getByText('This key is not valid').waitFor();
  });

  test('a stream that is refused is asked for again, and meanwhile the page looks by itself', async (visited) => {
    const { page, context, complaints } = visited;
    complaints.allow(/421/);
    await signIn(context, { apiKey: DEFAULT_API_KEY, tenant: TENANT });
    await refuse(
      page,
      '**/changes/stream*',
      421,
      'ENG_OTHER_CELL',
      'the tenant lives in another cell',
    );
    await open(page, api.url, '/approvals', 'Approvals');
    await isShown(page, 'Every 5 s');
    const question = await ask('Is it seen?');
    await page.getByText('Is it seen?').waitFor();
    await page.unroute('**/changes/stream*');
    await isShown(page, 'Live');
    await api.tenant(TENANT).signal(question, 'cancel');
    await page.getByText('no longer open').waitFor();
  });

  test('a tab that nobody looks at gives its connection away, and is current when it is looked at again', async (visited) => {
    const { page, context } = visited;
    await signIn(context, { apiKey: DEFAULT_API_KEY, tenant: TENANT });
    await page.clock.install();
    await open(page, api.url, '/approvals', 'Approvals');
    await isShown(page, 'Live');
    const isGiven = page.waitForEvent('requestfailed', isStream);
    await hide(page, true);
    await page.clock.fastForward(31_000);
    await isGiven;
    const question = await ask('What came meanwhile?');
    assert.equal(await page.getByText('What came meanwhile?').count(), 0);
    await hide(page, false);
    await page.getByText('What came meanwhile?').waitFor();
    await isShown(page, 'Live');
    await api.tenant(TENANT).signal(question, 'cancel');
    await page.getByText('no longer open').waitFor();
  });

  for (const [kind, missing] of [
    ['with locks', ''],
    [
      'on plain HTTP',
      '(Navigator.prototype, "locks", {}), Object.defineProperty(Crypto.prototype, "subtle", {})',
    ],
  ] as const) {
    test(`eight tabs have one stream, and go on when its tab is closed (${kind})`, async (visited) => {
      const { context, complaints } = visited;
      // Of a tab before it has a page.
      complaints.allow(/'sessionStorage'.*Access is denied/);
      await signIn(context, { apiKey: DEFAULT_API_KEY, tenant: TENANT });
      if (missing !== '') await context.addInitScript(`Object.defineProperty${missing}`);
      const streams = new Map<Request, Page>();
      context.on('request', (one) => isStream(one) && streams.set(one, one.frame().page()));
      context.on('requestfailed', (one) => streams.delete(one));
      const leaders = () => [...streams.values()].filter((one) => !one.isClosed());
      const pages = await Promise.all(Array.from({ length: 8 }, () => context.newPage()));
      for (const one of pages) {
        await open(one, api.url, '/approvals', 'Approvals');
        await isShown(one, 'Live');
      }
      for (const prompt of ['Do all see it?', 'Do the others?']) {
        assert.equal(leaders().length, 1);
        const question = await ask(prompt);
        const left = pages.filter((one) => !one.isClosed());
        await Promise.all(left.map((one) => one.getByText(prompt).waitFor()));
        await api.tenant(TENANT).signal(question, 'cancel');
        await leaders()[0]?.close();
        await eventually(async () => assert.equal(leaders().length, 1));
      }
    });
  }

  /** As if another tab had been chosen, or this one again. */
  const hide = (page: Page, isHidden: boolean) =>
    page.evaluate(`
      Object.defineProperty(document, 'hidden', { configurable: true, value: ${isHidden} });
      Object.defineProperty(document, 'visibilityState', {
        configurable: true, value: '${isHidden ? 'hidden' : 'visible'}',
      });
      document.dispatchEvent(new Event('visibilitychange', { bubbles: true }));`);

  const onStandby = at(async () => {
    standby = await api.engine.beside({ waitFor: 'listening' });
    return { url: standby.url };
  });
  onStandby(
    'a page that was opened on a standby becomes live when that takes over',
    async ({ page, context }) => {
      assert.ok(standby);
      const { url } = standby;
      // Its dashboard and the root key work without the database; what has to be looked up does not.
      const ask = async (path: string, key: string) => {
        const reply = await fetch(`${url}/api/v1/${path}`, { headers: { 'x-api-key': key } });
        return [reply.status, reply.headers.get('x-error-code')];
      };
      await eventually(async () =>
        assert.deepEqual(await ask('tenants', DEFAULT_API_KEY), [503, 'ENG_STANDBY']),
      );
      assert.deepEqual(await ask('whoami', DEFAULT_API_KEY), [200, null]);
      assert.deepEqual(await ask('whoami', 'sk_other'), [503, 'ENG_STANDBY']);

      await signIn(context, { apiKey: DEFAULT_API_KEY, tenant: TENANT });
      await page.goto(`${url}/ui/`);
      const state = page.getByRole('banner').getByRole('status');
      await state.getByText('Engine unavailable').waitFor();
      await page.getByRole('link', { name: /^Not ready.*standby/ }).waitFor();

      await api.engine.stop();
      await state.getByText('Live', { exact: true }).waitFor();
      await page.getByRole('link', { name: /^Healthy/ }).waitFor();
      await page.getByRole('alert').first().waitFor({ state: 'detached' });
    },
  );
});
