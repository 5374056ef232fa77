/**
 * Writing, comparing and starting sequences in the dashboard, under its real content security policy.
 *
 * Cost: 11 s, since it edits in a Chromium.
 */

import assert from 'node:assert/strict';
import type { Locator, Page } from 'playwright-core';
import type { SequenceListed } from '../../../schema/sequence.js';
import { type Json, step, useSharedApi } from '../../helpers/api.js';
import { expectNoAxeFindings, useBrowser, type Visit } from '../../helpers/browser.js';
import { column } from '../../helpers/columns.js';
import { expectNoHorizontalScroll, expectPage, open, signIn } from '../../helpers/dashboard.js';
import { DEFAULT_API_KEY } from '../../helpers/engine.js';
import { HOSTILE, whole } from '../../helpers/hostile.js';

const api = useSharedApi();

const viewport = { width: 1280, height: 900 };
const test = useBrowser().at(() => ({ url: api.url, viewport }));

/** A tenant of its own, signed in. */
async function enter({ context }: Visit) {
  const tenant = api.tenant();
  await signIn(context, { apiKey: DEFAULT_API_KEY, tenant: tenant.name });
  return tenant;
}

const editorOf = (page: Page) => page.getByRole('textbox', { name: 'Definition as JSON' });
const storeButton = (page: Page) => page.getByRole('button', { name: 'Review and publish' });

async function typed(editor: Locator, text: string): Promise<void> {
  await editor.click();
  await editor.press('Control+A');
  await editor.page().keyboard.insertText(text);
}

const write = (page: Page, definition: object) =>
  typed(editorOf(page), JSON.stringify(definition, null, 2));

test('a first sequence is written from the empty list on, mended, and stored', async (visit) => {
  const { page, complaints } = visit;
  // What cannot be stored is answered 400.
  complaints.allow(/400/);
  const tenant = await enter(visit);
  await open(page, api.url, '/sequences', 'Sequences');
  await page.getByText('No sequences yet').waitFor();
  await expectNoAxeFindings(page);
  await page.getByRole('link', { name: 'Open in the editor' }).click();
  await expectPage(page, 'New sequence');
  await page.getByText('It can be published.').waitFor();

  const twice = [step('a', 'noop'), step('a', 'nop')];
  await write(page, { namespace: 'test', name: 'mended', version: 1, blocks: twice });
  await page.getByText('It cannot be published: 1 error. 1 warning.').waitFor();
  assert.ok(await storeButton(page).isDisabled());
  await page.getByRole('button', { name: /blocks\[1\]\.id/ }).click();
  assert.equal(await page.evaluate(SELECTED), '"id": "a"');
  const underlined = page.locator('.cm-lintRange-error');
  assert.match(await underlined.evaluate(DECORATION), /wavy/);
  await underlined.hover();
  await page.locator('.cm-tooltip').getByText('block id a is not unique').waitFor();
  await expectNoAxeFindings(page);

  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: /blocks\[1\]\.id/ }).click();
  await page.keyboard.insertText('"id": "b"');
  await page.getByText('It can be published. 1 warning.').waitFor();
  await page.locator('[data-path="b"]').waitFor();

  await page.getByRole('link', { name: 'Limits', exact: true }).click();
  await expectPage(page, 'Limits');
  await page.goBack();
  await expectPage(page, 'New sequence');
  await page.getByText('It can be published. 1 warning.').waitFor();
  await storeButton(page).click();
  await page.getByText('This is the first version of mended').waitFor();
  await page.getByRole('button', { name: 'Publish version 1' }).click();
  await expectPage(page, /^mended/);
  const stored = await tenant.get<SequenceListed[]>('/sequences?name=mended');
  const seen = stored.body.map(({ version, blocks }) => [version, blocks?.map(({ id }) => id)]);
  assert.deepEqual(seen, [[1, ['a', 'b']]]);
});

/** What is selected within the shadow tree of the editor. */
const SELECTED = `[...document.querySelectorAll('*')].find((element) => element.shadowRoot)
  .shadowRoot.getSelection().toString()`;
const DECORATION = (element: unknown) =>
  (
    globalThis as unknown as { getComputedStyle(e: unknown): Record<string, string> }
  ).getComputedStyle(element).textDecoration ?? '';

test('a new version shows what it changes before it is stored, and versions are compared', async (visit) => {
  const { page } = visit;
  const tenant = await enter(visit);
  const id = await tenant.sequence([step('a', 'noop')], { name: 'grown', version: 4 });
  await open(page, api.url, `/sequences/${id}`, /^grown/);
  await page.getByRole('link', { name: 'New version' }).click();
  await expectPage(page, 'New version of grown');
  await write(page, {
    namespace: 'test',
    name: 'grown',
    version: 5,
    blocks: [step('a', 'noop'), step('later', 'noop')],
  });
  await page.getByText('It can be published.').waitFor();
  await storeButton(page).click();
  await page.getByRole('dialog').getByText('1 block added').waitFor();
  await page
    .getByRole('checkbox', { name: 'On hold: the name grown does not refer to this version' })
    .check();
  await page.getByRole('button', { name: 'Publish version 5' }).click();
  await expectPage(page, /^grown.*version 5/);
  await page.getByRole('link', { name: 'Versions' }).click();
  await page.getByRole('table', { name: 'Versions of grown' }).waitFor();
  await page.getByText('1 block added').waitFor();
  await page.getByRole('textbox', { name: 'Text from version 4 to version 5' }).waitFor();
  await expectNoAxeFindings(page);
  await page.setViewportSize({ width: 380, height: 800 });
  await page.reload();
  await expectPage(page, /^grown/);
  await expectNoHorizontalScroll(page);
  await page.setViewportSize({ width: 1280, height: 900 });

  const rowOf = (version: number) =>
    page
      .getByRole('row')
      .filter({ has: page.getByRole('cell', { name: new RegExp(`^${version}(?:,|$)`) }) });
  await rowOf(5).getByText('on hold', { exact: true }).waitFor();
  await rowOf(5).getByRole('button', { name: 'Lift hold' }).click();
  await page.getByText('If version 5 is the newest, all new instances').waitFor();
  await expectNoAxeFindings(page);
  await page.getByRole('dialog').getByRole('button', { name: 'Lift hold' }).click();
  await rowOf(5).getByText('on hold', { exact: true }).waitFor({ state: 'detached' });
  assert.equal(await page.getByRole('button', { name: 'Lift hold' }).count(), 0);

  const row = rowOf(4);
  await row.getByRole('button', { name: 'Deprecate' }).click();
  await page.getByRole('button', { name: 'Deprecate version' }).click();
  await row.getByText('deprecated', { exact: true }).waitFor();
  await row.getByRole('button', { name: 'Delete' }).click();
  await page.getByText('No instances will be deleted.').waitFor();
  await page.getByRole('button', { name: 'Delete version' }).click();
  await row.getByText('deprecated', { exact: true }).waitFor({ state: 'detached' });
  const left = await tenant.get<SequenceListed[]>('/sequences?name=grown');
  assert.deepEqual(column(left.body, 'version'), [5]);
});

test('an instance is started by the fields of its input_schema, and refusals stand at their fields', async (visit) => {
  const { page, complaints } = visit;
  complaints.allow(/422/);
  const tenant = await enter(visit);
  const id = await tenant.sequence([step('a', 'noop')], { name: 'asking', input_schema: INPUT });
  await open(page, api.url, `/sequences/${id}/start`, /^asking/);
  await expectNoAxeFindings(page);
  await page.getByLabel('Customer').fill('4711');
  await page.getByLabel('Amount').fill('-1');
  await page.getByText('Must be at least 0').waitFor();
  await page.getByRole('button', { name: 'Start an instance' }).click();
  await page.getByText('must be >= 0', { exact: true }).waitFor();
  await page.getByLabel('Amount').fill('12.5');
  await page.getByRole('button', { name: 'Start an instance' }).click();
  const city = page.getByLabel('City');
  await page.getByText('is required').waitFor();
  assert.equal(await city.getAttribute('aria-invalid'), 'true');
  await city.fill('Berlin');
  await page.getByLabel('Way').selectOption('courier');
  await page.getByLabel('Gift').selectOption('Yes');
  await page.getByRole('button', { name: 'Add to Lines' }).click();
  await page.getByLabel('Lines 1', { exact: true }).fill('lamp');
  await page.getByLabel('Due').fill('2026-12-24');
  await page.getByText('Options').click();
  await page.getByLabel('Metadata').fill('{"channel": "phone"}');
  await page.getByRole('button', { name: 'Start an instance' }).click();
  await page.waitForURL(/\/instances\//);
  const instance = await tenant.instance(page.url().split('/').at(-1) ?? '');
  assert.deepEqual(instance.context.data, {
    customer: '4711',
    amount: 12.5,
    address: { city: 'Berlin' },
    way: 'courier',
    gift: true,
    lines: ['lamp'],
    due: '2026-12-24',
    urgent: false,
  });
  assert.deepEqual(instance.metadata, { channel: 'phone' });
});

const INPUT = {
  type: 'object',
  required: ['customer', 'address'],
  properties: {
    customer: { type: 'string' },
    amount: { type: 'number', minimum: 0 },
    address: { type: 'object', required: ['city'], properties: { city: { type: 'string' } } },
    way: { enum: ['post', 'courier'] },
    gift: { type: 'boolean' },
    urgent: { type: 'boolean', default: false },
    lines: { type: 'array', items: { type: 'string' } },
    due: { type: 'string', format: 'date' },
  },
};

test('what cannot be sent starts nothing and is marked, and what is typed in an item stays with it', async (visit) => {
  const { page } = visit;
  const tenant = await enter(visit);
  const item = { type: 'object', properties: { name: { type: 'string' }, more: {} } };
  const lines = { type: 'array', items: item };
  const properties = { lines, price: { type: 'number' }, tax: { type: 'number' } };
  const input_schema = { type: 'object', properties };
  const id = await tenant.sequence([step('a', 'noop')], { name: 'listed', input_schema });
  await open(page, api.url, `/sequences/${id}/start`, /^listed/);
  const start = page.getByRole('button', { name: 'Start an instance' });
  for (const name of ['lamp', 'desk']) {
    await page.getByRole('button', { name: 'Add to Lines' }).click();
    await page.getByLabel('Name', { exact: true }).last().fill(name);
    await page.getByLabel('More (JSON)').last().fill(`{"of": "${name}"}`);
  }
  await page.getByRole('button', { name: 'Remove Lines 1' }).click();
  const more = page.getByLabel('More (JSON)');
  assert.equal(await more.inputValue(), '{"of": "desk"}');
  await more.fill('{"of": ');
  const [price, tax] = [page.getByLabel('Price'), page.getByLabel('Tax')];
  await price.fill('0,05');
  await tax.fill('9007199254740993');
  await page.getByText('3 fields have an invalid value').waitFor();
  await page.getByText('Use a decimal point: 0.05').waitFor();
  await page.getByText('which is beyond 2^53 is not accepted').waitFor();
  await start.click();
  assert.equal(await more.evaluate((element) => element.matches(':focus')), true, 'the first');
  assert.ok(await page.getByRole('button', { name: 'Edit as JSON' }).isDisabled());
  await more.fill('{"of": "chair"}');
  await price.fill('1.05');
  await tax.fill('-0.5');
  await tax.hover();
  await page.mouse.wheel(0, -200);
  await start.click();
  await page.waitForURL(/\/instances\//);
  const instance = await tenant.instance(page.url().split('/').at(-1) ?? '');
  assert.deepEqual(instance.context.data, {
    lines: [{ name: 'desk', more: { of: 'chair' } }],
    price: 1.05,
    tax: -0.5,
  });
});

test('hostile input is stored and started unchanged, or refused with the message of the engine', async (visit) => {
  const { page } = visit;
  const tenant = await enter(visit);
  const id = await tenant.sequence([step('a', 'noop')], { name: 'open' });
  const input = page.getByRole('textbox', { name: 'Input as JSON' });
  const start = page.getByRole('button', { name: 'Start an instance' });
  const words = (told: string) =>
    new RegExp(`is not valid: .*${told}.* is not accepted, at .*kept`);
  await open(page, api.url, `/sequences/${id}/start`, /^open/);
  for (const { json, told } of HOSTILE.refused) {
    await typed(input, `{"kept":${whole(json)}}`);
    await start.click();
    await page.getByRole('alert').getByText(words(told)).waitFor();
  }
  await typed(input, JSON.stringify({ kept: HOSTILE.kept }));
  await start.click();
  await page.waitForURL(/\/instances\//);
  const { context } = await tenant.instance(page.url().split('/').at(-1) ?? '');
  assert.deepEqual(context.data, { kept: HOSTILE.kept });
  await page.getByRole('link', { name: 'Data', exact: true }).click();
  const shown = page.getByRole('group', { name: 'context.data' });
  assert.deepEqual(JSON.parse((await shown.textContent()) ?? ''), context.data);

  await open(page, api.url, '/sequences/new', 'New sequence');
  const block = JSON.stringify(step('a', 'any')).slice(1);
  const definition = (kept: string) =>
    `{"namespace":"test","name":"odd","version":1,"blocks":[{"params":{"kept":${kept}},${block}]}`;
  for (const { json, told } of HOSTILE.refused) {
    await typed(editorOf(page), definition(whole(json)));
    await page.getByRole('status').getByText(words(told)).waitFor();
  }
  await typed(editorOf(page), definition(JSON.stringify(HOSTILE.kept)));
  await storeButton(page).click();
  await page.getByRole('button', { name: 'Publish version 1' }).click();
  await expectPage(page, /^odd/);
  const [odd] = (await tenant.get<SequenceListed[]>('/sequences?name=odd')).body;
  assert.deepEqual(column((odd?.blocks ?? []) as Json[], 'params'), [{ kept: HOSTILE.kept }]);
  assert.equal((await tenant.get<object[]>('/instances')).body.length, 1);
});
