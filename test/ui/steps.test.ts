/**
 * The statistics of a sequence on its graph, and finding blocks in it.
 *
 * Cost: 6 s, since it reads pages in a Chromium.
 */

import assert from 'node:assert/strict';
import { useSharedApi } from '../helpers/api.js';
import { useBrowser } from '../helpers/browser.js';
import { open, signIn } from '../helpers/dashboard.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';
import { useShop } from '../helpers/use-shop.js';

const server = useShop(() => useSharedApi());
const test = useBrowser().tabs(
  () => ({ url: server.api.url, viewport: { width: 1280, height: 900 } }),
  async ({ page, context }) => {
    await signIn(context, { apiKey: DEFAULT_API_KEY, tenant: server.shop.tenant });
    await open(page, server.api.url, addressOf('order-fulfilment 2'), /order-fulfilment/);
  },
);

const addressOf = (name: string) => `/sequences/${server.shop.sequences.get(name)}`;

test('each block shows its runs, and leads to the slowest of them', async ({ page }) => {
  const card = page.getByRole('button', { name: /^charge,.* runs, .*p50 / });
  await card.click();
  const slowest = page.getByRole('table', { name: 'Slowest runs of charge' });
  await slowest.getByRole('link').first().click();
  await page.waitForURL(/\/instances\/[\w-]+\?block=/);
  await page.goBack();
  await page.getByRole('combobox', { name: 'Runs of' }).selectOption('15m');
  await page.waitForURL(/span=15m/);
  const table = page.getByRole('table', { name: 'Steps by share of time' });
  await table.getByRole('link', { name: 'mail' }).click();
  await page.getByRole('table', { name: 'Slowest runs of mail' }).waitFor();
});

test('a version without runs leads to the one that new instances get', async ({ page }) => {
  await open(page, server.api.url, addressOf('order-fulfilment 3'), /order-fulfilment/);
  await page.getByText('No step has run in this period.').waitFor();
  await page.getByRole('link', { name: 'version 2', exact: true }).click();
  await page.getByText('Serving: this version').waitFor();
  await page
    .getByRole('table', { name: 'Steps by share of time' })
    .getByRole('link')
    .first()
    .waitFor();
});

test('a search marks the blocks that it finds, opens their groups, and goes to the next one', async ({
  page,
}) => {
  await page.getByRole('button', { name: 'Depth 1' }).click();
  const field = page.getByRole('searchbox', { name: 'Find a block' });
  await field.fill('send_mail');
  await field.press('Enter');
  await page.locator('[data-found="target"]', { hasText: 'send_mail' }).waitFor();
  await field.fill('no such block');
  await page.getByRole('status').getByText('none').waitFor();
  await field.press('Escape');
  assert.equal(await field.inputValue(), '');
});

test('a failure in a loop names its iteration, and the block shows its newest lines', async ({
  page,
}) => {
  const { client, until } = server.shop;
  const { id: sequence_id } = await client.sequences.create({
    namespace: 'shop',
    name: 'count-shelves',
    version: 1,
    blocks: [
      {
        type: 'for_each',
        id: 'shelves',
        collection: 'shelves',
        item_var: 'shelf',
        max_iterations: 60,
        body: [
          { type: 'step', id: 'say', handler: 'log', params: { message: 'shelf {{data.shelf}}' } },
          {
            type: 'step',
            id: 'check',
            handler: 'assert',
            params: { condition: 'data.shelf < 60', message: 'shelf 60 is missing' },
          },
        ],
      },
    ],
  });
  const shelves = Array.from({ length: 60 }, (_, at) => at + 1);
  const { id } = await client.instances.create({ sequence_id, context: { data: { shelves } } });
  await until(id, 'failed');
  await open(page, server.api.url, `/instances/${id}?block=shelves/say`, /count-shelves/);
  await page.getByRole('link', { name: 'shelves/check', exact: true }).waitFor();
  await page.getByText('iteration 60', { exact: true }).waitFor();
  const lines = page.getByRole('listitem').filter({ hasText: /^.*shelf \d+$/ });
  await lines.last().getByText('shelf 60', { exact: true }).waitFor();
  await page.getByText('The last 50 lines;').waitFor();
});

test('a timeline shows the slowest iterations first, and what the run waited for', async ({
  page,
}) => {
  const id = [server.shop.instances.forEach].flat()[0];
  await open(page, server.api.url, `/instances/${id}/timeline`, /invoice-run/);
  await page.getByRole('combobox', { name: 'Order of iterations' }).selectOption('slowest');
  await page.waitForURL(/order=slowest/);
  await page.getByRole('button', { name: 'Critical path' }).click();
  await page.getByText(/^\d+ attempts? one after the other/).waitFor();
});

test('the slowest iterations are those of the whole run, however many attempts it has', async ({
  page,
}) => {
  const { client } = server.shop;
  const items = Array.from({ length: 300 }, (_, at) => at);
  const work = (id: string) => ({ type: 'step', id, handler: 'transform', params: { at: id } });
  const body = [work('pack'), work('label')];
  const { id: sequence_id } = await client.sequences.create({
    namespace: 'shop',
    name: 'many-gifts',
    version: 1,
    blocks: [{ type: 'for_each', id: 'gifts', collection: 'items', item_var: 'gift', body }],
  } as never);
  const { id } = await client.instances.create({ sequence_id, context: { data: { items } } });
  await server.shop.until(id, 'completed');
  await open(page, server.api.url, `/instances/${id}/timeline?order=slowest`, /many-gifts/);
  await page.getByText('slowest first, 1–50 of 300 iterations', { exact: true }).waitFor();
});
