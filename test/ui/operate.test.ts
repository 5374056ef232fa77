/**
 * Triggers of providers, worker endpoints, patterns of limits and pending starts, each worked with once.
 *
 * Cost: 15 s, since it works in a Chromium.
 */

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import type { PendingStart } from '../../schema/pending-start.js';
import type { Trigger } from '../../schema/trigger.js';
import type { WorkerEndpoint } from '../../schema/worker-endpoint.js';
import { eventually, type Tenant, useSharedApi } from '../helpers/api.js';
import { expectNoAxeFindings, useBrowser } from '../helpers/browser.js';
import { expectStatus } from '../helpers/client.js';
import { expectPage, open, signIn } from '../helpers/dashboard.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';

const api = useSharedApi();
const browser = useBrowser().at(() => ({ url: api.url }));

/** As the root key, for a tenant of its own. */
const test = (name: string, use: (page: Page, tenant: Tenant) => Promise<void>) =>
  browser(name, async ({ page, context }) => {
    const tenant = api.tenant();
    await signIn(context, { apiKey: DEFAULT_API_KEY, tenant: tenant.name });
    await use(page, tenant);
  });

const press = (within: Page | Locator, name: string) =>
  within.getByRole('button', { name, exact: true }).click();
const told = (page: Page, text: string | RegExp) =>
  page.getByRole('status').getByText(text).waitFor();
const rowWith = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text });

/** While the page reads, others of its tenant may be asked to wait. */
const read = <Body>(tenant: Tenant, path: string): Promise<Body> =>
  eventually(async () => expectStatus(await tenant.get<Body>(path), 200));

describe('a person', { concurrency: 2 }, () => {
  test('makes a trigger that verifies a provider and publishes its events, and changes its secret', async (page, tenant) => {
    const slug = `shopify-${tenant.name}`;
    await open(page, api.url, '/triggers', /^Triggers/);
    await page.getByRole('main').getByRole('button', { name: 'New trigger' }).click();
    const form = page.getByRole('dialog', { name: 'New trigger' });
    await form.getByLabel('Name', { exact: true }).fill(slug);
    await form.getByLabel('Verified by').selectOption('HMAC of the body');
    await form.getByLabel('Header').fill('x-shopify-hmac-sha256');
    await form.getByLabel('Encoding').selectOption('base64');
    await form.getByLabel('Secret').fill('the first secret of the shop');
    await form.getByLabel('Effect').selectOption('Publishes an event');
    await form.getByLabel('Published event').fill('order.{{ body.state }}');
    await form.getByLabel('Its correlation key').fill('{{ body.order }}');
    await form.getByLabel('Payload').fill('{"total": "{{ body.total }}"}');
    await press(form, 'Create');
    await told(page, `Created: ${slug}`);
    const row = rowWith(page, slug);
    await row.getByText('publishes order.{{ body.state }}').waitFor();
    await row.getByText('verification: HMAC of the body in x-shopify-hmac-sha256').waitFor();
    const made = await read<Trigger>(tenant, `/triggers/${slug}`);
    assert.deepEqual(made.publish, {
      event: 'order.{{ body.state }}',
      key: '{{ body.order }}',
      payload: { total: '{{ body.total }}' },
    });

    await press(row, 'Change');
    const editing = page.getByRole('dialog', { name: `Change the trigger ${slug}` });
    assert.equal(await editing.getByLabel('New secret').inputValue(), '');
    await editing.getByLabel('Prefix').fill('sha256=');
    await press(editing, 'Save');
    await editing.getByText('This field is required').waitFor();
    await editing.getByLabel('New secret').fill('the second secret of the shop');
    await editing.getByLabel('Old secret').fill('the first secret of the shop');
    await press(editing, 'Save');
    await told(page, `Changed: ${slug}`);
    const { verify } = await read<Trigger>(tenant, `/triggers/${slug}`);
    assert.deepEqual([verify?.prefix, verify?.encoding], ['sha256=', 'base64']);
  });

  test('makes a worker endpoint, changes it without its secret, disables and deletes it', async (page, tenant) => {
    const get = () => read<WorkerEndpoint>(tenant, '/worker-endpoints/billing');
    await open(page, api.url, '/workers/endpoints', /^Workers/);
    await press(page.getByRole('main'), 'New endpoint');
    const form = page.getByRole('dialog', { name: 'New endpoint' });
    await form.getByLabel('Name', { exact: true }).fill('billing');
    await form.getByLabel('URL').fill('https://shop.example/tasks');
    await form.getByLabel('Handlers').fill('charge\nrefund\n');
    await form.getByLabel('Secret', { exact: true }).fill('a long random text of the shop');
    await press(form, 'Create');
    await told(page, 'The endpoint billing was saved.');
    assert.deepEqual((await get()).handlers, ['charge', 'refund']);

    const row = rowWith(page, 'billing');
    await row.getByText('0 of 10').waitFor();
    await press(row, 'Change');
    const editing = page.getByRole('dialog', { name: 'Endpoint billing' });
    await editing.getByLabel('Concurrency').fill('3');
    await press(editing, 'Save');
    await row.getByText('0 of 3').waitFor();
    await press(row, 'Disable');
    await row.getByRole('cell', { name: 'disabled', exact: true }).waitFor();
    await row.getByRole('button', { name: 'Enable', exact: true }).waitFor();
    const { concurrency, enabled, url } = await get();
    assert.deepEqual([concurrency, enabled, url], [3, false, 'https://shop.example/tasks']);

    await press(row, 'Delete');
    const question = page.getByRole('dialog', { name: 'Delete the endpoint billing?' });
    await press(question, 'Delete endpoint');
    await told(page, 'Deleted: billing');
    assert.deepEqual(await read(tenant, '/worker-endpoints'), []);
  });

  test('is asked before a schedule that was typed is discarded', async (page) => {
    await open(page, api.url, '/schedules', 'Schedules');
    await press(page, 'New schedule');
    const form = page.getByRole('dialog', { name: 'New schedule' });
    await form.getByLabel('Expression').fill('0 3 * * *');
    await page.keyboard.press('Escape');
    const question = page.getByRole('dialog', { name: 'Discard your changes?' });
    await press(question, 'Cancel');
    assert.equal(await form.getByLabel('Expression').inputValue(), '0 3 * * *');
    await page.keyboard.press('Escape');
    await press(question, 'Discard');
    await form.waitFor({ state: 'detached' });
  });

  test('sees by which pattern a key is limited', async (page, tenant) => {
    const limit = { max_count: 5, window_seconds: 60 };
    expectStatus(await tenant.put('/rate-limits/bank:*', limit), 200);
    await open(page, api.url, '/limits', 'Limits');
    await rowWith(page, 'bank:*').getByText('pattern').waitFor();
    await page.getByLabel('Limit of a key').fill('bank:c-17');
    await page.getByText('5 in 60 seconds, by the pattern bank:*').waitFor();
  });

  test('starts what a sequence has collected, and drops what shall not start', async (page, tenant) => {
    const sequence = 'reindex';
    await tenant.sequence([{ type: 'step', id: 'a', handler: 'noop' }], {
      ...{ name: sequence, namespace: 'default' },
      debounce: { key: '{{ data.item }}', wait_ms: 3_600_000 },
    });
    for (const item of ['lamp', 'lamp', 'desk']) {
      const body = { tenant_id: tenant.name, namespace: 'default', sequence };
      expectStatus(await tenant.post('/instances', { ...body, context: { data: { item } } }), 202);
    }
    await open(page, api.url, `/pending-starts?sequence=${sequence}`, 'Pending starts');
    const lamp = rowWith(page, 'lamp');
    await lamp.getByRole('cell', { name: '2', exact: true }).waitFor();
    await press(rowWith(page, 'desk'), 'Drop');
    await press(page.getByRole('dialog', { name: 'Drop 1 creation of reindex?' }), 'Drop');
    await told(page, 'Dropped: 1 creation');
    const [left, ...others] = await read<PendingStart[]>(tenant, '/pending-starts');
    assert.deepEqual([left?.key, others.length], ['lamp', 0]);

    await press(lamp, 'Start now');
    await page.getByRole('status').getByRole('link', { name: 'the instance' }).click();
    await page.waitForURL(`**/instances/${left?.id}`);
    await page.getByRole('heading', { level: 1, name: /^reindex/ }).waitFor();
  });

  // The pages of one browser have one clipboard.
  describe('with the clipboard', { concurrency: 1 }, () => {
    test('copies a failed instance for the channel of an incident, and without a clipboard by hand', async (page, tenant) => {
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
      const id = await tenant.run([
        {
          type: 'step',
          id: 'charge',
          handler: 'fail',
          params: { message: 'the card was declined' },
        },
      ]);
      await open(page, api.url, `/instances/${id}`, /failed/);
      const copyAs = async (form: string) => {
        await page.getByRole('button', { name: 'Copy as' }).click();
        await page.getByRole('menuitem', { name: form, exact: true }).click();
      };
      await copyAs('Markdown');
      await told(page, 'Copied: Markdown');
      const text = await page.evaluate<string>('navigator.clipboard.readText()');
      const link = `${api.url}/ui/t/${tenant.name}/instances/${id}`;
      for (const part of [id, tenant.name, 'Failed at: `charge`', 'the card was declined', link]) {
        assert.ok(text.includes(part), part);
      }
      // As on plain HTTP at a host other than this machine.
      await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })");
      await copyAs('curl');
      const byHand = page.getByRole('dialog', { name: 'Copy as: curl' });
      await byHand.getByLabel('Press Ctrl+C to copy').waitFor();
      assert.match(
        await page.evaluate<string>('getSelection().toString()'),
        /^curl .*"x-api-key: \$KEY"/,
      );
      await page.keyboard.press('Control+c');
      await byHand.waitFor({ state: 'detached' });
    });

    test('copies a version of a sequence as a command and for a channel', async (page, tenant) => {
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
      const id = await tenant.sequence([{ type: 'step', id: 'a', handler: 'noop' }]);
      await open(page, api.url, `/sequences/${id}`, /version 1/);
      for (const [form, part] of [
        ['CLI command', `sequences get ${id}`],
        ['Markdown', `/ui/t/${tenant.name}/sequences/${id}`],
      ] as const) {
        await page.getByRole('button', { name: 'Copy as' }).click();
        await page.getByRole('menuitem', { name: form, exact: true }).click();
        await told(page, `Copied: ${form}`);
        assert.ok((await page.evaluate<string>('navigator.clipboard.readText()')).includes(part));
      }
    });
  });

  test('writes a version with completion, and runs it dry on the data of an instance', async (page, tenant) => {
    const sequence = await tenant.sequence([{ type: 'step', id: 'a', handler: 'noop' }]);
    const id = await tenant.create(sequence, { context: { data: { n: 7 } } });
    await tenant.until(id, 'completed');
    await open(page, api.url, `/sequences/new?from=${sequence}`, /New version/);
    const editor = page.getByLabel('Definition as JSON');
    const completions = page.getByRole('listbox', { name: 'Completions' });
    await page.getByText('It can be published.').waitFor();
    await editor.click();
    await page.keyboard.press('Control+Home');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.type('"hol');
    await completions.getByRole('option', { name: /^hold/ }).waitFor();
    await expectNoAxeFindings(page);
    await page.keyboard.press('Enter');
    await page.keyboard.press('Control+ ');
    await completions.getByRole('option', { name: 'true' }).click();
    await page.keyboard.type(',');
    await editor.getByText('"hold": true,').waitFor();
    await page.getByText('It can be published.').waitFor();

    await page.getByLabel('Data of the instance').fill(id);
    await press(page, 'Dry run');
    await page.getByText('No step was sent out, and nothing was stored.').waitFor();
    await page.getByRole('group', { name: 'Data at the end' }).getByText('7').waitFor();
    await page.getByRole('button', { name: /^a, .*completed/ }).click();
    await page.getByRole('group', { name: 'Output of a' }).waitFor();
    await expectNoAxeFindings(page);
  });

  test('finds the trace of an instance and the logs of its step by links to other systems', async (page, tenant) => {
    const sequence_id = await tenant.sequence([{ type: 'step', id: 'a', handler: 'noop' }]);
    const trace = randomBytes(16).toString('hex');
    const headers = { traceparent: `00-${trace}-${'b'.repeat(16)}-01` };
    const body = { tenant_id: tenant.name, namespace: 'default', sequence_id };
    const { id } = expectStatus(
      await tenant.request<{ id: string }>('POST', '/instances', { body, headers }),
      201,
    );
    await tenant.until(id, 'completed');
    await open(page, api.url, `/instances/${id}?block=a`, /completed/);
    const hrefOf = (name: RegExp) => page.getByRole('link', { name }).getAttribute('href');
    assert.equal(await hrefOf(/^Trace/), `https://traces.example/${trace}`);
    assert.equal(await hrefOf(/^Logs opens/), `https://logs.example/?q=${id}+a`);
  });

  test('gets about by keys, and sees the state of an instance in the tab of the browser', async (page, tenant) => {
    const id = await tenant.inState('failed');
    await open(page, api.url, `/instances/${id}`, /failed/);
    assert.match(await page.title(), / · failed · .{4}….{6} · Durable workflow engine$/);
    const icon = () => page.locator('link[rel="icon"]').getAttribute('href');
    assert.equal(await icon(), './icon-failed.svg');
    assert.equal((await page.request.get(`${api.url}/ui/icon-failed.svg`)).status(), 200);

    await page.keyboard.press('?');
    const listed = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
    await listed.getByText('Approvals', { exact: true }).waitFor();
    await expectNoAxeFindings(page);
    await page.keyboard.press('g');
    await page.keyboard.press('a');
    await page.keyboard.press('Escape');
    await listed.waitFor({ state: 'detached' });
    await page.keyboard.press('r');
    await told(page, 'Refreshed');

    await page.keyboard.press('g');
    await page.keyboard.press('i');
    await expectPage(page, 'Instances');
    assert.equal(await icon(), './icon.svg');
    const field = page.getByRole('main').getByRole('textbox').first();
    await field.pressSequentially('g f');
    assert.equal(await field.inputValue(), 'g f');
    // By keys that are pressed by accident, nothing is done once they are switched off.
    await page.keyboard.press('Escape');
    await field.blur();
    await page.keyboard.press('?');
    await listed.getByRole('checkbox', { name: 'Single-key shortcuts' }).uncheck();
    await page.keyboard.press('Escape');
    await page.reload();
    await expectPage(page, 'Instances');
    for (const key of ['?', '/', 'g', 'f']) await page.keyboard.press(key);
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Find' }).fill('keyboard');
    await page.keyboard.press('Enter');
    await listed.getByRole('checkbox', { name: 'Single-key shortcuts' }).check();
    await page.keyboard.press('Escape');
    await page.keyboard.press('g');
    await page.keyboard.press('f');
    await expectPage(page, 'Failures');
    // Editors have a shadow root, which hides from the page what has the focus.
    await open(page, api.url, '/sequences/new', 'New sequence');
    const editor = page.getByLabel('Definition as JSON');
    await editor.click();
    await page.keyboard.type('?/r');
    await editor.getByText('?/r').waitFor();
    assert.equal(await page.getByRole('dialog').count(), 0);
  });
  test('sees who paused an instance, and resumes it from there', async (page, tenant) => {
    const id = await tenant.inState('paused');
    await open(page, api.url, '/activity', 'Activity');
    const row = rowWith(page, 'paused instance');
    await row.getByText('root', { exact: true }).waitFor();
    await press(row, 'Resume');
    const dialog = page.getByRole('dialog', { name: 'Resume the instance?' });
    await dialog.getByText('The instance is paused now.').waitFor();
    await expectNoAxeFindings(page);
    await press(dialog, 'Resume');
    await told(page, 'Undone.');
    await rowWith(page, 'resumed instance').waitFor();
    assert.notEqual((await tenant.instance(id)).state, 'paused');
    await press(rowWith(page, 'paused instance'), 'Resume');
    await dialog.getByText(/: there is nothing to undo\.$/).waitFor();
    assert.equal(await dialog.getByRole('button', { name: 'Resume' }).isDisabled(), true);
    await press(dialog, 'Cancel');
    await page.getByLabel('About').selectOption('Sequence');
    await rowWith(page, 'published sequence').waitFor();
    await rowWith(page, 'resumed instance').waitFor({ state: 'detached' });
  });
});
