/**
 * What stands over a page: dialogs give the focus back, and toasts are there for who has one open.
 *
 * Cost: 9 s, since it works in a Chromium.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { useSharedApi } from '../../helpers/api.js';
import { refuse, useBrowser } from '../../helpers/browser.js';
import { expectStatus } from '../../helpers/client.js';
import { open, signIn } from '../../helpers/dashboard.js';
import { DEFAULT_API_KEY } from '../../helpers/engine.js';

const api = useSharedApi();
const tenant = api.tenant();

const test = useBrowser().at(() => ({ url: api.url }));
const asRoot = () => ({ apiKey: DEFAULT_API_KEY, tenant: tenant.name });

/** A schedule that does not fire by itself, and its page. */
async function openSchedules(page: Page): Promise<void> {
  const sequence_id = await tenant.sequence([{ type: 'step', id: 'a', handler: 'noop' }]);
  const body = {
    tenant_id: tenant.name,
    namespace: 'test',
    sequence_id,
    cron_expr: '0 0 0 1 1 ? 2099',
  };
  expectStatus(await tenant.post('/cron', body), 201);
  await open(page, api.url, '/schedules', 'Schedules');
}

test('Escape closes a dialog, and gives the focus back to what opened it', async (visit) => {
  const { page, context } = visit;
  await signIn(context, asRoot());
  await open(page, api.url, '/limits', 'Limits');
  const opener = page.getByRole('main').getByRole('button', { name: 'New limit' });
  await opener.focus();
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  await dialog.waitFor();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  assert.equal(await opener.evaluate((element) => element.matches(':focus')), true);
});

test('what was done is told within the dialog that is open, and can be followed', async (visit) => {
  const { page, context } = visit;
  await signIn(context, asRoot());
  await openSchedules(page);
  await page.getByRole('button', { name: 'Run now' }).first().click();
  await page.getByRole('link', { name: 'the instance' }).waitFor();
  await page.getByRole('button', { name: 'New schedule' }).click();
  await page.getByRole('dialog').getByRole('link', { name: 'the instance' }).click();
  await page.waitForURL(/\/instances\//);
});

test('an action that fails says so where nothing else shows it', async (visit) => {
  const { page, context, complaints } = visit;
  complaints.allow(/409/);
  await signIn(context, asRoot());
  await openSchedules(page);
  await refuse(page, '**/cron/*/run', 409, 'ENG_CONFLICT', 'conflict: it runs already');
  await page.getByRole('button', { name: 'Run now' }).first().click();
  await page.getByRole('status').getByText('conflict: it runs already').waitFor();
});

test('an action that fails in a dialog says so there, and only there', async (visit) => {
  const { page, context, complaints } = visit;
  complaints.allow(/400/);
  await signIn(context, asRoot());
  await open(page, api.url, '/schedules', 'Schedules');
  await page.getByRole('button', { name: 'New schedule' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Sequence').fill(randomUUID());
  await dialog.getByLabel('Expression').fill('never');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.getByRole('alert').first().waitFor();
  assert.equal(await dialog.getByRole('status').textContent(), '');
});

test('without a clipboard a text is selected, to be copied by hand', async (visit) => {
  const { page, context } = visit;
  // As on plain HTTP at a host other than this machine.
  await context.addInitScript(`
    Object.defineProperty(navigator, 'clipboard', { value: undefined });
    Object.defineProperty(crypto, 'randomUUID', { value: undefined });`);
  await signIn(context, asRoot());
  const id = await tenant.run([{ type: 'step', id: 'a', handler: 'noop' }]);
  await open(page, api.url, `/instances/${id}`, /./);
  await page.getByRole('button', { name: 'Copy the id' }).click();
  await page.getByLabel('Press Ctrl+C to copy').waitFor();
  assert.equal(await page.evaluate('getSelection().toString()'), id);
  await page.keyboard.press('Tab');
  await page.getByRole('button', { name: 'Copy the id' }).waitFor();

  await open(page, api.url, '/triggers/events', /Triggers/);
  await page.getByRole('button', { name: 'Send event' }).click();
  await page.getByRole('dialog').getByLabel('Name').waitFor();
});
