/**
 * What people come to the dashboard for, from what is wrong or waits to its end.
 *
 * Cost: 22 s, since it follows people through the pages in a Chromium.
 */

import assert from 'node:assert/strict';
import type { Locator, Page, Route } from 'playwright-core';
import { REASONS } from '../../../scripts/dashboard/shop/shop.js';
import { CARDS } from '../../../scripts/dashboard/shop/workers.js';
import { eventually, useSharedApi } from '../../helpers/api.js';
import { useBrowser } from '../../helpers/browser.js';
import { expectPage, open, settled, signIn } from '../../helpers/dashboard.js';
import { useShop } from '../../helpers/use-shop.js';

const server = useShop(() => useSharedApi());

const test = useBrowser().at(() => ({ url: server.api.url }));

/** As the operator of the tenant. */
async function start(page: Page, path: string, title: string | RegExp): Promise<void> {
  await signIn(page.context(), { apiKey: server.shop.keys.operator, tenant: null });
  await open(page, server.api.url, path, title);
}

const navigation = (page: Page) => page.getByRole('navigation', { name: 'Main' });
const told = (page: Page, text: string | RegExp) =>
  page.getByRole('status').getByText(text).waitFor();
const isNow = (page: Page, state: string | RegExp) =>
  page
    .getByRole('heading', { level: 1, name: new RegExp(`${new RegExp(state).source}$`) })
    .waitFor();

test('a failed order is found by its reason, understood, and mended with other data', async (visit) => {
  const { page } = visit;
  await start(page, '/', 'Overview');
  await navigation(page).getByRole('link', { name: 'Failures' }).click();
  await expectPage(page, 'Failures');
  const reason = page
    .getByRole('row')
    .filter({ hasText: REASONS.declined })
    .filter({ hasText: 'order-fulfilment' })
    .filter({ hasNotText: 'child' });
  await reason.getByRole('link').first().click();
  await expectPage(page, 'Instances');
  const table = page.getByRole('table', { name: 'Instances' });
  await table.getByText(REASONS.declined).first().waitFor();
  await table.getByRole('link').first().click();

  await expectPage(page, /^order-fulfilment/);
  await isNow(page, 'failed');
  const why = page.getByRole('region', { name: 'Why it failed' });
  await why.getByText(REASONS.declined).waitFor();
  await why.getByText('worker_failed').waitFor();
  await why.getByRole('link', { name: 'charge' }).waitFor();

  await why.getByRole('button', { name: 'Change the data and retry' }).click();
  const dialog = page.getByRole('dialog', { name: 'Retry with other data' });
  const data = dialog.getByRole('textbox', { name: 'Data' });
  const text = (await data.textContent()) ?? '';
  await data.press('Space');
  await page.keyboard.press('Escape');
  const question = page.getByRole('dialog', { name: 'Discard your changes?' });
  await question.getByRole('button', { name: 'Cancel', exact: true }).click();
  await question.waitFor({ state: 'detached' });
  // By keys, as people do: replaced by script, the browser would leave styles of its own in it.
  await data.press('ControlOrMeta+a');
  await data.press('Delete');
  await page.keyboard.insertText(text.replace(CARDS.declined, CARDS.good));
  await dialog.getByRole('button', { name: 'Retry', exact: true }).click();
  await told(page, 'The instance runs again.');
  await isNow(page, 'completed');
});

test('all instances of a reason are retried at once, and how many is said first', async (visit) => {
  const { page } = visit;
  await start(page, '/failures', 'Failures');
  const reason = page.getByRole('row').filter({ hasText: REASONS.deadBank });
  await reason.getByRole('button', { name: 'Retry…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Retry many instances?' });
  await dialog.getByText('3 instances would be retried').waitFor();
  await dialog.getByRole('button', { name: 'Retry 3 instances' }).click();
  await told(page, '3 instances retried.');
});

test('a change of many waits until all are counted, and says what became of each', async ({
  page,
}) => {
  let isCounted = false;
  const job = () => ({
    id: JOB,
    ...{ operation: 'retry', state: isCounted ? 'completed' : 'running', error: null },
    ...{ matched: 40, applied: isCounted ? 90 : 40, skipped: 0, failed: 0 },
    ended_at: isCounted ? '2026-01-01T00:00:00.000Z' : null,
  });
  const done = {
    ...{ matched: 90, applied: 88, skipped: 1, failed: 1, dry_run: false, repeats_effects: 0 },
    refusals: [{ instance_id: JOB, error: 'conflict: it keeps 1000 signals' }],
  };
  await page.route(/\/instances\/batch-action|\/bulk\/jobs\//, (route) =>
    answer(route, 200, isReal(route) ? done : job()),
  );
  await start(page, '/instances?state=failed', 'Instances');
  await page.getByRole('button', { name: 'Retry', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Retry many instances?' });
  await dialog.getByText(/40 instances would be retried; counting/).waitFor();
  assert.ok(await dialog.getByRole('button', { name: 'Retry', exact: true }).isDisabled());
  isCounted = true;
  await dialog.getByRole('button', { name: 'Retry 90 instances' }).click();
  await told(
    page,
    '88 instances retried; 1 skipped because the action does not apply to them; 1 refused.',
  );
  const refused = page.getByRole('list', { name: 'Refused' }).getByRole('listitem');
  await refused.filter({ hasText: 'it keeps 1000 signals' }).getByRole('link').waitFor();
});

const isReal = (route: Route) => {
  const body = route.request().postDataJSON() as { dry_run?: boolean } | null;
  return body !== null && body.dry_run !== true;
};

/** In place of what the engine answers, which is known as one by the rest of its answer. */
async function answer(route: Route, status: number, json: object): Promise<void> {
  await route.fulfill({ response: await route.fetch(), status, json });
}

const JOB = '01980000-0000-7000-8000-000000000001';

test('where tasks are cut from a list, that is said', async ({ page }) => {
  await page.route(/\/queues(\?|$)/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), complete: false } });
  });
  await start(page, '/workers', 'Workers and queues');
  await page.getByText(/^Of the oldest \d+ open tasks; there are more/).waitFor();
  const waiting = page
    .getByRole('table', { name: 'Queues' })
    .getByRole('cell', { name: /^\d+\+$/ });
  await waiting.first().waitFor();
});

test('an instance that asks is answered on its own page, with a comment', async ({ page }) => {
  const [asked = ''] = server.shop.instances.asked;
  await start(page, `/instances/${asked}`, /^order-fulfilment/);
  const now = page.getByRole('region', { name: 'Now' });
  await now.getByText(/asks: Sell yacht to/).waitFor();
  await now.getByLabel('Comment').fill('the customer is known');
  await now.getByRole('button', { name: 'Sell', exact: true }).click();
  await isNow(page, 'completed');
});

test('an instance that waits is taken over to the next version', async ({ page }) => {
  await start(page, `/instances/${server.shop.instances.migratable}`, /^subscription/);
  await page.getByRole('button', { name: 'Actions' }).click();
  await page.getByRole('menuitem', { name: 'Migrate…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Migrate to another version' });
  const versions = dialog.getByLabel('From version 1 to', { exact: true });
  await versions.selectOption({ label: 'version 3' });
  await dialog.getByText(/stays on its version|cannot be migrated to this version/).waitFor();
  assert.ok(await dialog.getByRole('button', { name: 'Migrate to version 3' }).isDisabled());
  await versions.selectOption({ label: 'version 2' });
  // A step that does something outside is new in it.
  await dialog.getByText(/once somebody approves the findings/).waitFor();
  await dialog.getByText('step receipt with the handler send_mail is added').waitFor();
  const migrate = dialog.getByRole('button', { name: 'Migrate to version 2' });
  assert.ok(await migrate.isDisabled());
  const look = dialog.getByRole('checkbox', { name: /I have reviewed the findings/ });
  await look.focus();
  await page.keyboard.press('Space');
  await enabled(migrate);
  assert.ok(await hasFocus(look), 'what is said of the version stays while it is judged again');
  await migrate.click();
  await told(page, 'The instance now uses version 2.');
  await page
    .getByRole('main')
    .getByText(/version 2/i)
    .first()
    .waitFor();
});

test('a canary is followed from the overview to its gates, and promoted', async ({ page }) => {
  await start(page, '/', 'Overview');
  const canaries = page.getByRole('region', { name: 'Canaries' });
  await canaries.getByRole('link', { name: 'checkout' }).click();
  await expectPage(page, /^checkout 1 → 2/);
  const gates = page.getByRole('table', { name: 'Gates' });
  const cells = gates.getByRole('row').filter({ hasText: 'of 12' });
  await cells.filter({ hasText: 'passes' }).first().waitFor();
  await page.getByRole('button', { name: 'Promote', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Promote version 2?' });
  await dialog.getByRole('button', { name: 'Promote version 2' }).click();
  await told(page, 'All new instances run version 2.');
  await isNow(page, 'promoted');
  assert.equal(await page.getByRole('button', { name: 'Roll back' }).count(), 0);
  await page.getByRole('link', { name: 'Decisions' }).click();
  await page
    .getByRole('table', { name: 'Decisions' })
    .getByText(/promoted/)
    .first()
    .waitFor();
});

test('a release is made ready, led in, given another share, and rolled back', async (visit) => {
  const { page } = visit;
  const { client, sequences } = server.shop;
  const { id } = await client.releases.create({
    baseline_sequence_id: sequences.get('subscription 1') ?? '',
    candidate_sequence_id: sequences.get('subscription 2') ?? '',
  });
  await start(page, `/releases/${id}`, /^subscription 1 → 2/);
  await isNow(page, 'draft');
  await page.getByRole('button', { name: 'Validate' }).click();
  const validation = page.getByRole('dialog', { name: 'Validate' });
  await validation.getByRole('checkbox', { name: /Skip the replay/ }).check();
  await validation.getByRole('button', { name: 'Make ready' }).click();
  await isNow(page, 'ready');
  await page.getByRole('button', { name: 'Start canary' }).click();
  await confirm(page, 'Start canary', 'Start canary');
  await told(page, '10 % of the new instances run the candidate.');
  await isNow(page, 'canary');
  assert.equal((await client.releases.get(id)).canary_percent, 10);
  await page.getByRole('button', { name: 'Pause' }).click();
  await confirm(page, 'Pause the canary?', 'Pause');
  await told(page, 'Paused: all new instances run version 1.');
  await isNow(page, 'paused');
  await page.getByRole('button', { name: 'Restart canary' }).click();
  const dialog = page.getByRole('dialog', { name: 'Start canary' });
  const share = dialog.getByLabel('Share of new instances, in %');
  assert.equal(await share.inputValue(), '10');
  await share.fill('101');
  await dialog.getByRole('button', { name: 'Start canary' }).click();
  assert.ok(await share.evaluate((field) => field.matches(':invalid')));
  await share.fill('40');
  await dialog.getByRole('button', { name: 'Start canary' }).click();
  await told(page, '40 % of the new instances run the candidate.');
  await page.getByText(/^40 % of the new instances of version 1 run version 2/).waitFor();
  await page.getByRole('button', { name: 'Evaluate' }).click();
  await confirm(page, 'Evaluate the gates now?', 'Evaluate');
  await told(page, /^Evaluated: There are no gates/);
  await page.getByRole('button', { name: 'Roll back' }).click();
  await confirm(page, 'Roll this release back?', 'Roll back');
  await told(page, 'Rolled back: all new instances run version 1.');
  await isNow(page, /rolled.back/);
  assert.equal(await page.getByRole('button', { name: 'Restart canary' }).count(), 0);
  assert.equal((await client.releases.get(id)).state, 'rolled_back');
});

async function confirm(page: Page, title: string, action: string): Promise<void> {
  const dialog = page.getByRole('dialog', { name: title });
  await dialog.getByRole('button', { name: action, exact: true }).click();
}

test('filters live in the address: links, reloads and the back button keep them', async (visit) => {
  const { page } = visit;
  await start(page, '/instances?state=failed', 'Instances');
  const table = page.getByRole('table', { name: 'Instances' });
  const states = async () =>
    new Set(
      await table
        .getByRole('row')
        .getByText(/^(failed|cancelled|completed)$/)
        .allTextContents(),
    );
  await table.getByText(REASONS.noAmount).first().waitFor();
  assert.deepEqual(await states(), new Set(['failed']));
  await page.getByRole('button', { name: /^failed/ }).click();
  await page.getByRole('button', { name: /^cancelled/ }).click();
  await table.getByText('cancelled', { exact: true }).first().waitFor();
  assert.equal(new URL(page.url()).searchParams.get('state'), 'cancelled');
  await page.getByLabel('Metadata').fill('customer=nobody');
  await page.getByText('No matching instances').waitFor();
  await page.reload();
  await page.getByText('No matching instances').waitFor();
  assert.equal(await page.getByLabel('Metadata').inputValue(), 'customer=nobody');
  await eventually(async () => {
    await page.goBack();
    await settled(page);
    assert.equal(new URL(page.url()).searchParams.get('state'), 'failed');
  });
  await table.getByText(REASONS.noAmount).first().waitFor();
});

test('a filter that cannot be read is said at its field, and nothing is done by it', async (visit) => {
  const { page } = visit;
  await start(page, '/instances?sequence=order-fulfilment&version=v2', 'Instances');
  const cancel = page.getByRole('button', { name: 'Cancel', exact: true });
  const version = page.getByLabel('Version');
  await page.getByText('A version must be a whole number', { exact: false }).first().waitFor();
  assert.equal(await version.getAttribute('aria-invalid'), 'true');
  assert.ok(await cancel.isDisabled());
  await version.fill('2');
  await page.getByRole('table', { name: 'Instances' }).getByRole('row').nth(1).waitFor();
  await enabled(cancel);
});

test('with the keyboard alone somebody finds a question, answers it, and gets about', async (visit) => {
  const { page } = visit;
  const { shop } = server;
  const customer = 'kit@shop.example';
  const id = await shop.order({
    order: 'order-by-keys',
    customer,
    item: 'desk',
    amount: 1_500,
    card: CARDS.good,
  });
  await shop.until(id, 'waiting');
  await start(page, '/', 'Overview');
  await tabTo(page, navigation(page).getByRole('link', { name: 'Approvals' }));
  await page.keyboard.press('Enter');
  await expectPage(page, 'Approvals');
  // The heading has the focus: what comes next is the content, not the navigation again.
  const card = page.getByRole('listitem').filter({ hasText: customer });
  await tabTo(page, card.getByRole('button', { name: 'Sell', exact: true }));
  await page.keyboard.press('Space');
  await told(page, /^Answered: Sell – Sell desk to kit/);
  await shop.until(id, 'completed');

  await open(page, server.api.url, `/instances/${shop.instances.everyKind}`, /^onboarding/);
  await tabTo(page, page.getByRole('button', { name: 'Actions' }));
  await page.keyboard.press('Enter');
  await page.getByRole('menuitem').first().waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('menuitem').first().waitFor({ state: 'hidden' });
  await page.keyboard.press('Enter');
  const cancel = page.getByRole('menuitem', { name: 'Cancel…' });
  await cancel.waitFor();
  for (let presses = 0; presses < 20 && !(await hasFocus(cancel)); presses++) {
    await page.keyboard.press('ArrowDown');
  }
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: 'Cancel this instance?' });
  await dialog.waitFor();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
});

test('who begins with the Tab key can skip the navigation', async ({ page }) => {
  await start(page, '/limits', 'Limits');
  await page.keyboard.press('Shift+Tab');
  await tabTo(page, page.getByRole('button', { name: 'Skip to content' }), 'Shift+Tab');
  await page.keyboard.press('Enter');
  assert.ok(await hasFocus(page.getByRole('main')));
});

/** Presses Tab until it has the focus. @throws AssertionError when it cannot be reached so */
async function tabTo(page: Page, target: Locator, key = 'Tab'): Promise<void> {
  await target.waitFor();
  for (let presses = 0; presses < TABS_MAX; presses++) {
    if (await hasFocus(target)) return;
    await page.keyboard.press(key);
  }
  assert.fail(`${key} does not lead to ${target}`);
}

const TABS_MAX = 150;

async function enabled(button: Locator): Promise<void> {
  await eventually(async () => assert.ok(await button.isEnabled()));
}

async function hasFocus(target: Locator): Promise<boolean> {
  return (await target.and(target.page().locator(':focus')).count()) === 1;
}
