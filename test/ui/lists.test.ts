/**
 * The list of instances as a tool: columns, order, counts, saved views and exports; and the logs of a tenant.
 *
 * Cost: 15 s, since it works with pages in a Chromium.
 */

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { REASONS } from '../../scripts/dashboard/shop/shop.js';
import { useSharedApi } from '../helpers/api.js';
import { useBrowser } from '../helpers/browser.js';
import {
  expectNoHorizontalScroll,
  expectNoLayoutShift,
  expectPage,
  open,
  signIn,
  watchLayoutShifts,
} from '../helpers/dashboard.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';
import { useShop } from '../helpers/use-shop.js';

const server = useShop(() => useSharedApi());
const test = useBrowser().at(() => ({
  url: server.api.url,
  viewport: { width: 1280, height: 900 },
}));

async function start(page: Page, path: string, title: string | RegExp): Promise<void> {
  await signIn(page.context(), { apiKey: DEFAULT_API_KEY, tenant: server.shop.tenant });
  await open(page, server.api.url, path, title);
}

const parameter = (page: Page, name: string) => new URL(page.url()).searchParams.get(name);

test('columns are chosen, kept by the browser, and part of the address', async ({ page }) => {
  await start(page, '/instances?sequence=order-fulfilment', 'Instances');
  const table = page.getByRole('table', { name: 'Instances' });
  const heads = () => table.getByRole('columnheader').allInnerTexts();
  await page.getByRole('button', { name: 'Columns' }).click();
  const choices = page.getByRole('region', { name: 'Columns' });
  await choices.getByLabel('metadata.customer').check();
  await choices.getByLabel('Current step').check();
  await choices.getByLabel('Created').uncheck();
  await page.keyboard.press('Escape');
  const chosen = ['', 'Instance', 'Sequence', 'State', 'Changed', 'Customer', 'Current step'];
  assert.deepEqual(await heads(), chosen);
  assert.equal(parameter(page, 'columns'), 'sequence,state,changed,metadata.customer,step');
  await table
    .getByRole('cell', { name: /@shop\.example$/ })
    .first()
    .waitFor();
  await open(page, server.api.url, '/instances', 'Instances');
  assert.deepEqual(await heads(), chosen);
});

test('the newest are sorted by duration, in both directions', async ({ page }) => {
  await start(page, '/instances?columns=duration,state', 'Instances');
  const head = page.getByRole('columnheader', { name: 'Duration' });
  await head.getByRole('button').click();
  await page.getByRole('heading', { name: 'Instances by duration' }).waitFor();
  assert.equal(await head.getAttribute('aria-sort'), 'descending');
  assert.equal(parameter(page, 'sort'), '-duration');
  await head.getByRole('button').click();
  await page.locator('th[aria-sort="ascending"]').waitFor();
  await head.getByRole('button').click();
  await page.getByRole('heading', { name: 'Instances, newest first' }).waitFor();
});

test('each state says how many match the other filters, and the list says the total', async ({
  page,
}) => {
  const { client } = server.shop;
  await start(page, '/instances?sequence=order-fulfilment', 'Instances');
  const { failed } = await client.instances.counts({ sequence_name: 'order-fulfilment' });
  const chip = page.getByRole('button', { name: `failed ${failed}`, exact: true });
  await chip.click();
  await page.getByText(`Total ${failed}`, { exact: true }).waitFor();
  await page.getByLabel('Failure').fill(REASONS.declined);
  await page.getByRole('button', { name: /^completed 0$/ }).waitFor();
});

test('when it failed is a filter, also of what changes many', async ({ page }) => {
  await start(page, '/instances', 'Instances');
  await page.getByLabel('Failed', { exact: true }).selectOption('1h');
  await page
    .getByRole('table', { name: 'Instances' })
    .getByText(REASONS.noAmount)
    .first()
    .waitFor();
  await page.getByRole('button', { name: 'Retry', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Retry many instances?' });
  await dialog.getByText('1h', { exact: true }).waitFor();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
});

test('a view is saved with its filters and columns, opened, and deleted', async ({ page }) => {
  await start(page, '/instances?state=failed&columns=state,step', 'Instances');
  await page.getByRole('button', { name: 'Views' }).click();
  await page.getByLabel('Save these filters and columns as').fill('What failed');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('list', { name: 'Saved views' }).getByRole('link').waitFor();
  await open(page, server.api.url, '/instances', 'Instances');
  await page.getByRole('button', { name: 'Views' }).click();
  await page.getByRole('link', { name: 'What failed' }).click();
  await page.getByRole('button', { name: /^failed/, pressed: true }).waitFor();
  assert.equal(parameter(page, 'columns'), 'state,step');
  const views = page.getByRole('region', { name: 'Views' });
  if (!(await views.isVisible())) await page.getByRole('button', { name: 'Views' }).click();
  await page.getByRole('button', { name: 'Delete the view What failed' }).click();
  await page.getByRole('link', { name: 'What failed' }).waitFor({ state: 'detached' });
});

test('all matches are exported as CSV, with the columns of the list', async ({ page }) => {
  await start(page, '/instances?state=failed&columns=state,metadata.customer', 'Instances');
  await page.getByRole('button', { name: 'Export' }).click();
  await page.getByRole('menuitem', { name: 'CSV' }).click();
  await page.getByText(/rows read: all matches\.$/).waitFor();
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download' }).click(),
  ]);
  assert.equal(file.suggestedFilename(), 'instances.csv');
  const [head, ...lines] = (await readFile(await file.path(), 'utf8')).trimEnd().split('\r\n');
  assert.equal(head, 'Instance,State,Customer');
  const { failed } = await server.shop.client.instances.counts();
  assert.equal(lines.length, failed);
  assert.match(lines[0] ?? '', /^[0-9a-f-]{36},failed,/);
});

test('the filters keep their places when the counts arrive', async ({ page, context }) => {
  await watchLayoutShifts(context);
  await page.setViewportSize({ width: 1024, height: 768 });
  let count = () => {};
  const isListed = new Promise<void>((resolve) => {
    count = resolve;
  });
  await page.route('**/instances/counts*', async (route) => {
    await isListed;
    await route.continue();
  });
  await start(page, '/instances', 'Instances');
  count();
  await page.getByText(/^Total \d/).waitFor();
  await expectNoLayoutShift(page);
});

test('long names and values leave all columns in sight', async ({ page }) => {
  const [name, customer] = ['long-'.repeat(20), 'v'.repeat(300)];
  const { client, sequences } = server.shop;
  await client.instances.create({
    sequence_id: sequences.get('parcel 1'),
    context: { data: {} },
    metadata: { customer, [name]: customer },
  });
  const columns = ['sequence', 'step', 'duration', 'attempts', `metadata.${name}`, 'changed'];
  const metadata = `customer=${customer}`;
  const query = new URLSearchParams({ columns: columns.join(','), metadata });
  await start(page, `/instances?${query}`, 'Instances');
  const head = page.getByRole('columnheader', { name: 'Changed' });
  for (const width of [1280, 1920]) {
    await page.setViewportSize({ width, height: 900 });
    const { x, width: own } = (await head.boundingBox()) ?? { x: 0, width: 0 };
    // The width of the window is used.
    assert.ok(x + own <= width && x + own > width - 60, `ends at ${x + own} of ${width}`);
  }
  await page.setViewportSize({ width: 390, height: 844 });
  await expectNoHorizontalScroll(page);
});

test('the lines of a tail keep still under the pointer, and say of when they are', async ({
  page,
}) => {
  await page.clock.install();
  await start(page, '/logs', 'Logs');
  const reads: string[] = [];
  page.on('request', (request) => {
    if (/\/logs\?/.test(request.url())) reads.push(request.url());
  });
  // From here on, time passes only in steps: a pointer at rest holds the lines for some seconds.
  await page.clock.pauseAt(Date.now() + 60_000);
  const tick = () => page.clock.runFor(3_000);
  await tick();
  assert.notEqual(reads.length, 0);
  const line = page.getByRole('main').getByRole('listitem').first();
  // The first event of a pointer is no move.
  for (const x of [5, 60]) await line.hover({ position: { x, y: 8 } });
  const asOf = await page.getByText(/^as of/).textContent();
  reads.length = 0;
  await tick();
  assert.equal(reads.length, 0);
  assert.equal(await page.getByText(/^as of/).textContent(), asOf);
});

test('what is typed into a filter just before the page is left does not lead back to it', async ({
  page,
}) => {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route('**/assets/instance-*.js', async (route) => {
    await held;
    await route.continue();
  });
  await start(page, '/logs', 'Logs');
  const link = page.getByRole('main').getByRole('listitem').getByRole('link').first();
  await link.waitFor();
  await page.getByLabel('Text').fill('no answer');
  await link.click();
  await page.waitForURL(/\/instances\//);
  // A longer timer than that of the field, and begun later: it ends later.
  await page.evaluate('new Promise((done) => setTimeout(done, 500))');
  assert.match(page.url(), /\/instances\//);
  release();
  await page.getByRole('button', { name: 'Tail', exact: true }).waitFor();
  assert.match(page.url(), /\/instances\/.*\/logs$/);
});

test('the log of all instances is searched, and leads to that of one, which is tailed', async ({
  page,
}) => {
  await start(page, '/logs', 'Logs');
  const lines = page.getByRole('main').getByRole('listitem');
  await page.getByLabel('Level').selectOption('warn,error');
  await page.getByLabel('Text').fill('NO ANSWER');
  await lines.getByText('no answer within 20 ms').first().waitFor();
  await lines
    .getByText(/^charging/)
    .first()
    .waitFor({ state: 'detached' });
  await lines.getByRole('link', { name: 'order-fulfilment / charge' }).first().click();
  await expectPage(page, /^order-fulfilment/);
  const tail = page.getByRole('button', { name: 'Tail', exact: true });
  await tail.click();
  await page.getByRole('heading', { name: 'Log, newest first' }).waitFor();
  await page.getByLabel('Text').fill('charging');
  await lines.getByText('no answer within 20 ms').first().waitFor({ state: 'detached' });
  await lines
    .getByText(/try 1$/)
    .first()
    .waitFor();
});
