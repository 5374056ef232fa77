/**
 * Pages that follow what changes: by what the engine reports, without moving what somebody is about to click.
 *
 * Cost: 25 s, since it watches pages in a Chromium while instances change.
 */

import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { Page, Request } from 'playwright-core';
import { CARDS } from '../../scripts/dashboard/shop/workers.js';
import { useSharedApi } from '../helpers/api.js';
import { useBrowser } from '../helpers/browser.js';
import { expectPage, open, signIn } from '../helpers/dashboard.js';
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
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
}

/** Somebody has to decide on it. */
async function asked(order: string): Promise<string> {
  const { shop } = server;
  const customer = 'liv@shop.example';
  const id = await shop.order({ order, customer, item: 'desk', amount: 1_500, card: CARDS.good });
  await shop.until(id, 'waiting');
  return id;
}

const cancel = (id: string) => server.shop.client.instances.patchState(id, { state: 'cancelled' });

test('new instances wait behind a button, and those shown change in their place', async ({
  page,
}) => {
  const before = await asked('live-1');
  await start(page, '/instances', 'Instances');
  const table = page.getByRole('table', { name: 'Instances' });
  const rowOf = (id: string) =>
    table.getByRole('row').filter({ has: page.locator(`a[href$="${id}"]`) });
  await rowOf(before).getByText('waiting', { exact: true }).waitFor();
  const after = await asked('live-2');
  const news = page.getByRole('button', { name: '1 new', exact: true });
  await news.waitFor();
  await cancel(before);
  await rowOf(before).getByText('cancelled', { exact: true }).waitFor();
  assert.equal(await rowOf(after).count(), 0, 'nothing has moved');
  await page.getByText(/^as of \d\d:\d\d:\d\d/).waitFor();
  await news.click();
  await rowOf(after).waitFor();
  await news.waitFor({ state: 'detached' });
});

test('an instance that matches no longer stays in its place until the list is asked for', async ({
  page,
}) => {
  const id = await asked('live-3');
  await start(page, '/instances?state=waiting', 'Instances');
  const row = page.getByRole('row').filter({ has: page.locator(`a[href$="${id}"]`) });
  await row.waitFor();
  await cancel(id);
  const gone = page.getByRole('button', { name: '1 gone', exact: true });
  await gone.waitFor();
  assert.equal(await row.count(), 1);
  await gone.click();
  await row.waitFor({ state: 'detached' });
});

test('an open instance is read when the engine reports a change, not by the clock', async ({
  page,
}) => {
  const id = await asked('live-4');
  const reads: string[] = [];
  page.on('request', (request) => reads.push(new URL(request.url()).pathname));
  await start(page, `/instances/${id}`, /^order-fulfilment/);
  const isOf = (path: string) => (request: Request) =>
    new URL(request.url()).pathname.endsWith(`/instances/${id}${path}`);
  const polled = () => page.waitForRequest(isOf('/explain'));
  // What follows the first report is over when only the explanation is read, whose workers come and go.
  for (let before = -1; before !== reads.length; ) {
    await polled();
    before = reads.length;
    await polled();
    const between = reads.slice(before, -1);
    if (!between.some((path) => path.endsWith(id))) break;
  }
  await cancel(id);
  await page.getByRole('heading', { level: 1, name: /cancelled$/ }).waitFor();
});

test('the step that runs is followed, until a block is selected', async ({ page }) => {
  const { client } = server.shop;
  const ask = (block: string) => ({
    ...{ type: 'step', id: block, handler: 'noop', params: {} },
    wait_for_input: { prompt: `go on from ${block}?` },
  });
  const { id: sequence_id } = await client.sequences.create({
    ...{ namespace: 'shop', name: 'followed', version: 1 },
    blocks: [ask('first'), ask('second'), ask('third')] as never,
  });
  const { id } = await client.instances.create({ namespace: 'shop', sequence_id });
  await start(page, `/instances/${id}`, /^followed/);
  const follow = page.getByRole('button', { name: 'Follow', exact: true });
  await follow.click();
  const panel = (block: string) =>
    page.getByRole('heading', { level: 2, name: new RegExp(`^${block}`) });
  await panel('first').waitFor();
  const goOn = async (block: string) => {
    const { items } = await client.approvals.list({ sequence_id });
    const open = items.find(({ block_id }) => block_id === block);
    assert.ok(open);
    await client.approvals.answer(open.id, { value: 'yes' });
  };
  await goOn('first');
  await panel('second').waitFor();
  await page
    .getByRole('button', { name: /^first/ })
    .first()
    .click();
  assert.equal(await follow.getAttribute('aria-pressed'), 'false');
  await goOn('second');
  await page.getByText('go on from third?').first().waitFor();
  await panel('first').waitFor();
});

/** What changes a second, and for how long. */
const BUSY = { count: 50, rounds: 10 };

test('the overview of a busy tenant costs the engine at most a read a second', async ({ page }) => {
  const { client, sequences } = server.shop;
  await start(page, '/', 'Overview');
  await expectPage(page, 'Overview');
  const reads: string[] = [];
  const sequence_id = sequences.get('subscription 1');
  const isRead = (request: Request) => /\/api\/v1\/(?!changes)/.test(request.url());
  const startedAt = performance.now();
  page.on('request', (request) => isRead(request) && reads.push(new URL(request.url()).pathname));
  for (let round = 0; round < BUSY.rounds; round++) {
    const nextAt = startedAt + (round + 1) * 1000;
    await client.instances.createBatch({
      instances: Array.from({ length: BUSY.count }, (_, at) => ({
        ...{ namespace: 'billing', sequence_id },
        context: { data: { subscription: `busy-${round}-${at}`, customer: 'liv@shop.example' } },
      })),
    } as never);
    await pause(Math.max(0, nextAt - performance.now()));
  }
  const seconds = (performance.now() - startedAt) / 1000;
  // One more, since the second that begins the count is not whole.
  assert.ok(reads.length <= seconds + 1, `${reads.length} in ${seconds} s: ${reads.join(' ')}`);
  assert.ok(reads.length > 2, 'the overview follows');
});
