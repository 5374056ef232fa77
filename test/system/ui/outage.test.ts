/**
 * What the dashboard says while its server is away or a standby, and that it goes on by itself afterwards.
 *
 * Cost: 18 s, since it kills the server below an open page.
 */

import assert from 'node:assert/strict';
import { after } from 'node:test';
import type { Page } from 'playwright-core';
import { eventually, useApi } from '../../helpers/api.js';
import { useBrowser } from '../../helpers/browser.js';
import { expectStatus } from '../../helpers/client.js';
import { expectPage, open, signIn } from '../../helpers/dashboard.js';
import { DEFAULT_API_KEY, type Engine } from '../../helpers/engine.js';

const TENANT = 'acme';
let standby: Engine | undefined;
// Before the server on the same database: hooks behind a test run in the order in which they are written.
after(() => standby?.stop());
const api = useApi();
const { at, visit } = useBrowser();
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
    .getByText(/does not answer/)
    .waitFor();
  await isShown(page, 'Engine away');
  await isShown(other.page, 'Engine away');
  // What was there stays to be read; what has to be loaded comes when the server is back.
  await expectPage(page, 'Approvals');
  await page.getByRole('link', { name: 'Limits', exact: true }).click();
  await api.restart();
  await expectPage(page, 'Limits');
  await isShown(page, 'Live');
  await page.getByRole('alert').first().waitFor({ state: 'detached' });
  await isShown(other.page, 'Every 5 s');
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
  await page.getByText('What came meanwhile?').waitFor({ state: 'detached' });
});

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
    await state.getByText('Engine away').waitFor();
    await page.getByRole('link', { name: /^Not ready.*standby/ }).waitFor();

    await api.engine.stop();
    await state.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('link', { name: /^Healthy/ }).waitFor();
    await page.getByRole('alert').first().waitFor({ state: 'detached' });
  },
);
