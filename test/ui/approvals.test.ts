/**
 * The inbox of approvals: what is asked and what it is about, answers by keys, and answers that are taken back.
 *
 * Cost: 12 s, since answers are held for five seconds in a Chromium.
 */

import assert from 'node:assert/strict';
import type { Locator, Page } from 'playwright-core';
import { step, type Tenant, useSharedApi } from '../helpers/api.js';
import { useBrowser } from '../helpers/browser.js';
import { open, signIn } from '../helpers/dashboard.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';

const api = useSharedApi();
const test = useBrowser().at(() => ({ url: api.url, viewport: { width: 1280, height: 900 } }));

const ask = (tenant: Tenant, prompt: string, more: object = {}) =>
  tenant.runUntil('waiting', [step('ask', 'noop', { wait_for_input: { prompt, ...more } })], {
    amount: 4_200,
  });

const cardOf = (page: Page, prompt: string): Locator =>
  page.getByRole('listitem').filter({ hasText: prompt });

test('an answer is sent five seconds after it was given, and not at all if it was taken back', async ({
  page,
  context,
}) => {
  const tenant = api.tenant();
  const [first, second] = [await ask(tenant, 'Pay it?'), await ask(tenant, 'Ship it?')];
  await signIn(context, { apiKey: DEFAULT_API_KEY, tenant: tenant.name });
  await page.clock.install();
  await open(page, api.url, '/approvals', 'Approvals');
  const sent: string[] = [];
  page.on('request', (one) => one.method() === 'POST' && sent.push(one.url()));
  const pay = cardOf(page, 'Pay it?');
  await pay.getByRole('button', { name: 'Yes' }).click();
  await page.getByRole('status').getByText('Answer: Yes – Pay it?').waitFor();
  await page.getByRole('status').getByRole('button', { name: 'Undo' }).click();
  await pay.getByText('sent in a few seconds').waitFor({ state: 'detached' });
  // By keys: the next approval, its second choice, and what lies behind it.
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  const ship = cardOf(page, 'Ship it?');
  await ship.getByText('4200').waitFor();
  await ship.getByRole('application', { name: /^Flow of/ }).waitFor();
  await page.keyboard.press('2');
  await ship.getByText('No: sent in a few seconds').waitFor();
  assert.deepEqual(sent, []);
  await page.clock.fastForward(5_000);
  await ship.getByText('answered: No').waitFor();
  assert.equal(sent.length, 1);
  await tenant.until(second, 'completed');
  assert.equal((await tenant.instance(first)).state, 'waiting');
});

test('an answer that is held is sent when the user goes to another page or leaves', async ({
  page,
  context,
}) => {
  const tenant = api.tenant();
  const [first, second] = [await ask(tenant, 'Pay it?'), await ask(tenant, 'Ship it?')];
  const other = await context.newPage();
  await signIn(context, { apiKey: DEFAULT_API_KEY, tenant: tenant.name });
  await page.clock.install();
  await open(page, api.url, '/approvals', 'Approvals');
  await cardOf(page, 'Pay it?').getByRole('button', { name: 'Yes' }).click();
  await page.getByRole('link', { name: 'Limits', exact: true }).click();
  await page.clock.fastForward(5_000);
  await tenant.until(first, 'completed');
  await open(other, api.url, '/approvals', 'Approvals');
  await cardOf(other, 'Ship it?').getByRole('button', { name: 'Yes' }).click();
  other.on('dialog', (dialog) => void dialog.accept());
  await other.close({ runBeforeUnload: true });
  await tenant.until(second, 'completed');
});

test('an approver sees what is for the groups of the key, and what happens at the deadline', async ({
  page,
  context,
}) => {
  const tenant = api.tenant();
  await ask(tenant, 'For finance?', { approvers: ['finance'], timeout: 600_000 });
  await ask(tenant, 'For legal?', { approvers: ['legal'] });
  const key = { tenant_id: tenant.name, capabilities: ['approver'], groups: ['finance'] };
  const { body } = await api.root.post<{ secret: string }>('/api-keys', key);
  await signIn(context, { apiKey: body.secret, tenant: null });
  await open(page, api.url, '/approvals', 'Approvals');
  const card = cardOf(page, 'For finance?');
  await card.getByText('for finance', { exact: true }).waitFor();
  await card.getByText('then the step fails').waitFor();
  assert.equal(await cardOf(page, 'For legal?').count(), 0);
  assert.equal(await card.getByRole('button', { name: 'Data and flow' }).count(), 0);
});

test('a key answers only what is seen, a long choice stays within its card, and a group narrows the list as it is typed', async ({
  page,
  context,
}) => {
  const tenant = api.tenant();
  const label = `Ask the customer ${'once more '.repeat(20)}`;
  const choices = [
    { label, value: 'ask' },
    { label: 'Refuse', value: 'refuse' },
  ];
  await ask(tenant, 'The first?', { choices });
  for (const name of ['second', 'third', 'fourth', 'fifth', 'sixth', 'seventh']) {
    await ask(tenant, `The ${name}?`, { approvers: ['legal'] });
  }
  await signIn(context, { apiKey: DEFAULT_API_KEY, tenant: tenant.name });
  await open(page, api.url, '/', 'Overview');
  const widths = await cardOf(page, 'The first?').evaluate((card) => [
    card.scrollWidth,
    card.clientWidth,
  ]);
  assert.ok((widths[0] as number) <= (widths[1] as number), `${widths}`);
  await open(page, api.url, '/approvals', 'Approvals');
  const first = cardOf(page, 'The first?');
  const isSeen = () => first.evaluate((card) => card.getBoundingClientRect().bottom > 0);
  await page.mouse.wheel(0, 5_000);
  await cardOf(page, 'The seventh?').getByRole('button', { name: 'Yes' }).hover();
  assert.equal(await isSeen(), false);
  await page.keyboard.press('2');
  assert.deepEqual(
    [await isSeen(), await first.getByText('sent in a few seconds').count()],
    [true, 0],
  );
  await page.keyboard.press('2');
  await first.getByText('Refuse: sent in a few seconds').waitFor();
  await page.keyboard.press('u');
  await page.getByRole('textbox', { name: 'Group' }).fill('legal');
  await first.waitFor({ state: 'detached' });
  await page.waitForURL(/group=legal/);
});
