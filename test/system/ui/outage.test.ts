/** What the dashboard says while its server is away, and that it goes on by itself when it is back. */

import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { useApi } from '../../helpers/api.js';
import { useBrowser } from '../../helpers/browser.js';
import { expectStatus } from '../../helpers/client.js';
import { expectPage, open, signIn } from '../../helpers/dashboard.js';

const TENANT = 'acme';
const api = useApi();
const { test } = useBrowser();

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

test(
  'a page says that its server is away, and goes on when it is back',
  () => ({ url: api.url }),
  async ({ page, context, complaints }) => {
    complaints.allow(NOBODY_THERE);
    await signIn(context, { apiKey: api.engine.apiKey, tenant: TENANT });
    await open(page, api.url, '/approvals', 'Approvals');
    await isShown(page, 'Live');

    await api.engine.kill();
    await page
      .getByRole('alert')
      .getByText(/does not answer/)
      .waitFor();
    await page.getByRole('status').getByText('Engine away').waitFor();
    // What was there stays to be read; what has to be loaded comes when the server is back.
    await expectPage(page, 'Approvals');
    await page.getByRole('link', { name: 'Limits', exact: true }).click();
    await api.restart();
    await expectPage(page, 'Limits');
    await isShown(page, 'Live');
    await page.getByRole('alert').first().waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'Approvals', exact: true }).click();
    await expectPage(page, 'Approvals');
  },
);

test(
  'a page is live: what is asked appears by itself, and goes when it is withdrawn',
  () => ({ url: api.url }),
  async ({ page, context }) => {
    await signIn(context, { apiKey: api.engine.apiKey, tenant: TENANT });
    await open(page, api.url, '/approvals', 'Approvals');
    const question = await ask('Is it live?');
    await page.getByText('Is it live?').waitFor();
    await api.tenant(TENANT).signal(question, 'cancel');
    await page.getByText('Is it live?').waitFor({ state: 'detached' });
  },
);

test(
  'what could not be read again says so, beside what is old',
  () => ({ url: api.url }),
  async ({ page, context, complaints }) => {
    complaints.allow(/404/);
    await signIn(context, { apiKey: api.engine.apiKey, tenant: TENANT });
    const question = await ask('Is it old?');
    await open(page, api.url, '/approvals', 'Approvals');
    await isShown(page, 'Live');
    await page.getByText('Is it old?').waitFor();
    await page.route('**/api/v1/approvals*', (route) =>
      route.fulfill({
        status: 404,
        headers: { 'x-request-id': 'sample', 'x-error-code': 'ENG_NOT_FOUND' },
        json: { error: 'not found: the list is gone' },
      }),
    );
    await api.tenant(TENANT).signal(question, 'cancel');
    await page
      .getByRole('alert')
      .getByText(/could not be read again: not found: the list is gone/)
      .waitFor();
    await page.getByText('Is it old?').waitFor();
  },
);

test(
  'a key without the stream of changes is told, too, that the server is away',
  () => ({ url: api.url }),
  async ({ page, context, complaints }) => {
    complaints.allow(NOBODY_THERE);
    const { secret } = await mint('approver');
    await signIn(context, { apiKey: secret, tenant: null });
    await open(page, api.url, '/approvals', 'Approvals');
    await isShown(page, 'Every 5 s');
    await api.engine.kill();
    await isShown(page, 'Engine away');
    await api.restart();
    await isShown(page, 'Every 5 s');
  },
);

test(
  'a page whose key is revoked asks for another one, without being touched',
  () => ({ url: api.url }),
  async ({ page, context, complaints }) => {
    complaints.allow(/401/);
    const { secret, revoke } = await mint('auditor');
    await signIn(context, { apiKey: secret, tenant: null });
    await open(page, api.url, '/server', 'Server');
    await isShown(page, 'Live');
    await revoke();
    await page.getByText('This key is not valid').waitFor();
  },
);

test(
  'a stream that is refused is asked for again, and meanwhile the page looks by itself',
  () => ({ url: api.url }),
  async ({ page, context, complaints }) => {
    complaints.allow(/421/);
    await signIn(context, { apiKey: api.engine.apiKey, tenant: TENANT });
    await page.route('**/changes/stream*', (route) =>
      route.fulfill({
        status: 421,
        headers: { 'x-request-id': 'sample', 'x-error-code': 'ENG_OTHER_CELL' },
        json: { error: 'the tenant lives in another cell' },
      }),
    );
    await open(page, api.url, '/approvals', 'Approvals');
    await isShown(page, 'Every 5 s');
    const question = await ask('Is it seen?');
    await page.getByText('Is it seen?').waitFor();
    await page.unroute('**/changes/stream*');
    await isShown(page, 'Live');
    await api.tenant(TENANT).signal(question, 'cancel');
    await page.getByText('Is it seen?').waitFor({ state: 'detached' });
  },
);

test(
  'a tab that nobody looks at gives its connection away, and is current when it is looked at again',
  () => ({ url: api.url }),
  async ({ page, context }) => {
    await signIn(context, { apiKey: api.engine.apiKey, tenant: TENANT });
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
    await page.getByText('What came meanwhile?').waitFor({ state: 'detached' });
  },
);

/** As if another tab had been chosen, or this one again. */
const hide = (page: Page, isHidden: boolean) =>
  page.evaluate(`
    Object.defineProperty(document, 'hidden', { configurable: true, value: ${isHidden} });
    Object.defineProperty(document, 'visibilityState', {
      configurable: true, value: '${isHidden ? 'hidden' : 'visible'}',
    });
    document.dispatchEvent(new Event('visibilitychange', { bubbles: true }));`);
