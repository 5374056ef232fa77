/**
 * What can be done from the pages, one by one: each is clicked through, and the API says that it happened.
 *
 * Cost: 28 s, since it clicks through every action in a Chromium.
 */

import assert from 'node:assert/strict';
import { describe } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import type { BulkJob } from '../../../schema/bulk-job.js';
import type { EffectReceipt } from '../../../schema/continuity.js';
import type { OutboxEntry } from '../../../schema/webhook.js';
import type { Json, Tenant } from '../../helpers/api.js';
import { eventually, newHandler, step, transform, useSharedApi } from '../../helpers/api.js';
import { useBrowser, type Visit } from '../../helpers/browser.js';
import { expectStatus } from '../../helpers/client.js';
import { open, settled, signIn } from '../../helpers/dashboard.js';
import { DEFAULT_API_KEY } from '../../helpers/engine.js';
import { statusOf, useReceiver } from '../../helpers/receiver.js';

const api = useSharedApi();

const receiver = useReceiver();

interface Entered extends Visit {
  readonly tenant: Tenant;
}

const at = useBrowser().at(() => ({ url: api.url }));
/** As the root key, for a tenant of its own. */
const test = (name: string, use: (entered: Entered) => Promise<void>) =>
  at(name, async (visit) => {
    const tenant = api.tenant();
    await signIn(visit.context, { apiKey: DEFAULT_API_KEY, tenant: tenant.name });
    await use({ ...visit, tenant });
  });

// ---------------------------------------------------------------- hands

const go = (page: Page, path: string, title: RegExp | string) => open(page, api.url, path, title);

const told = (page: Page, text: string | RegExp) =>
  page.getByRole('status').getByText(text).waitFor();

const press = (within: Page | Locator, name: string) =>
  within.getByRole('button', { name, exact: true }).click();

const rowWith = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text });

/** Presses the button that opens a dialog. */
async function dialogOf(page: Page, button: string, title: string): Promise<Locator> {
  await press(page.getByRole('main'), button);
  const dialog = page.getByRole('dialog', { name: title });
  await dialog.waitFor();
  return dialog;
}

/** Of the instance whose page it is. */
async function actionOf(page: Page, name: string, title: string): Promise<Locator> {
  await press(page, 'Actions');
  await page.getByRole('menuitem', { name, exact: true }).click();
  const dialog = page.getByRole('dialog', { name: title });
  await dialog.waitFor();
  return dialog;
}

/** By keys, as people do. */
async function write(editor: Locator, value: unknown): Promise<void> {
  await editor.click();
  await editor.press('ControlOrMeta+a');
  await editor.press('Delete');
  await editor.page().keyboard.insertText(JSON.stringify(value));
}

/** While the page reads, others of its tenant may be asked to wait. */
const list = <T = Json>(tenant: Tenant, path: string): Promise<T[]> =>
  eventually(async () => expectStatus(await tenant.get<T[]>(path), 200));

/** An instance that a worker would have to go on with. */
const waiting = (tenant: Tenant, data: Json = {}) =>
  tenant.runUntil('waiting', [step('work', newHandler())], data);

/** Its page is open. */
async function onWaiting(tenant: Tenant, page: Page, data: Json = {}): Promise<string> {
  const id = await waiting(tenant, data);
  await go(page, `/instances/${id}`, /^s-/);
  return id;
}

const COPYING = [transform('first', { n: '{{data.n}}' }), transform('second', { n: '{{data.n}}' })];

const gave = (tenant: Tenant, id: string, outputs: Json) =>
  eventually(async () => assert.deepEqual(await tenant.outputsOf(id), outputs));

// Two at a time: each waits now for the browser and now for the server.
describe('an instance', { concurrency: 2 }, () => {
  test('is sent a signal, which ends its wait', async ({ page, tenant }) => {
    const id = await tenant.runUntil('waiting', [
      step('wait', 'wait_for_event', { params: { name: 'go' } }),
    ]);
    await go(page, `/instances/${id}`, /^s-/);
    const dialog = await actionOf(page, 'Send a signal…', 'Send a signal');
    await dialog.getByLabel('Name').fill('go');
    await write(dialog.getByRole('textbox', { name: 'Payload' }), { by: 'hand' });
    await press(dialog, 'Send');
    await told(page, 'Signal sent.');
    await tenant.until(id, 'completed');
    const signals = await list(tenant, `/instances/${id}/signals`);
    const seen = signals.map(({ signal_type, payload, status }) => [signal_type, payload, status]);
    assert.deepEqual(seen, [['custom:go', { by: 'hand' }, 'taken']]);
  });

  test('is paused, goes on, and is cancelled once that was asked', async ({ page, tenant }) => {
    const id = await onWaiting(tenant, page);
    await press(page, 'Pause');
    await told(page, 'The instance is paused: no new steps start.');
    await tenant.until(id, 'paused');
    await press(page, 'Resume');
    await told(page, 'The instance was resumed.');
    await tenant.until(id, 'waiting');
    await press(await actionOf(page, 'Cancel…', 'Cancel this instance?'), 'Cancel the instance');
    await told(page, 'The instance is being cancelled.');
    await tenant.until(id, 'cancelled');
  });

  test('is forked from a block, with other data, and so runs again', async ({ page, tenant }) => {
    const id = await tenant.runUntil('completed', COPYING, { n: 1 });
    await go(page, `/instances/${id}`, /^s-/);
    const fork = await actionOf(page, 'Fork from a block…', 'Fork from a block');
    await fork.getByLabel('Start from block').selectOption('second');
    await fork.getByRole('checkbox', { name: /^Dry run/ }).uncheck();
    await write(fork.getByRole('textbox', { name: 'Data' }), { n: 2 });
    await press(fork, 'Fork');
    await told(page, 'You are viewing the copy.');
    const copy = new URL(page.url()).pathname.split('/').at(-1) ?? '';
    assert.notEqual(copy, id);
    await tenant.until(copy, 'completed');
    await gave(tenant, copy, { first: { n: 1 }, second: { n: 2 } });
    await gave(tenant, id, { first: { n: 1 }, second: { n: 1 } });

    await go(page, `/instances/${copy}`, /^s-.*completed$/);
    const again = await actionOf(page, 'Run again from a block…', 'Run again from a block');
    await again.getByLabel('Start from block').selectOption('second');
    await write(again.getByRole('textbox', { name: 'Data' }), { n: 3 });
    await press(again, 'Run again');
    await told(page, 'The instance runs again.');
    await gave(tenant, copy, { first: { n: 1 }, second: { n: 3 } });
  });

  test('asks before its retry repeats effects outside, and names them', async ({
    page,
    tenant,
  }) => {
    const charge = newHandler();
    const steps = [
      { id: 'pay', action: step('charge', charge), compensation: step('back', 'noop') },
      { id: 'send', action: step('ship', 'fail') },
    ];
    const id = await tenant.run([step('first', 'noop'), { type: 'saga', id: 'trip', steps }]);
    await tenant.complete(await tenant.task(charge));
    await tenant.until(id, 'failed');
    await go(page, `/instances/${id}`, /^s-/);
    const dialog = await dialogOf(page, 'Retry from ship', 'Repeat external effects?');
    await dialog.getByText(/^Saga trip runs again as a whole.*trip\[0\]\/charge/).waitFor();
    await dialog.getByText('Completed blocks are kept: first.').waitFor();
    assert.equal((await tenant.instance(id)).state, 'failed');
    await press(dialog, 'Retry and repeat effects');
    await told(page, 'The instance runs again.');
    await tenant.complete(await tenant.task(charge));
    await tenant.until(id, 'failed');
    await go(page, '/failures', 'Failures');
    const many = await dialogOf(page, 'Retry…', 'Retry many instances?');
    await many.getByText('1 of them repeats external effects').waitFor();
  });

  test('is given other data', async ({ page, tenant }) => {
    const id = await onWaiting(tenant, page, { amount: 1 });
    const dialog = await actionOf(page, 'Change the data…', 'Change the data');
    await write(dialog.getByRole('textbox', { name: 'Data' }), { amount: 2 });
    await press(dialog, 'Change the data');
    await told(page, 'Data changed.');
    assert.deepEqual((await tenant.instance(id)).context.data, { amount: 2 });
  });

  test('the dashboard does not overwrite a concurrent change until a person has seen both', async (visit) => {
    const { page, tenant, complaints } = visit;
    complaints.allow(/409/);
    const id = await onWaiting(tenant, page, { amount: 1 });
    const dialog = await actionOf(page, 'Change the data…', 'Change the data');
    const theirs = { context: { data: { amount: 1, paid: true } } };
    expectStatus(await tenant.patch(`/instances/${id}/context`, theirs), 200);
    await write(dialog.getByRole('textbox', { name: 'Data' }), { amount: 2 });
    await press(dialog, 'Change the data');
    const both = dialog.getByRole('alert', { name: 'Changed by somebody else' });
    await both.getByText('"paid": true').waitFor();
    assert.deepEqual((await tenant.instance(id)).context.data, theirs.context.data);
    await press(both, 'Overwrite with my version');
    await told(page, 'Data changed.');
    assert.deepEqual((await tenant.instance(id)).context.data, { amount: 2 });
  });

  test('has an effect in doubt, of which somebody says what became', async ({ page, tenant }) => {
    const handler = newHandler();
    const id = await tenant.run([step('pay', handler)]);
    await tenant.task(handler);
    // Behind the worker’s back.
    await tenant.move(id, 'failed');
    await go(page, `/instances/${id}/history`, /^s-/);
    const dialog = await dialogOf(page, 'Resolve…', 'Resolve the effect of pay');
    await dialog.getByLabel('Outcome').selectOption('It happened and was undone');
    await dialog.getByLabel('Receipt of the provider').fill('refund-7');
    await press(dialog, 'Resolve');
    await told(page, 'Receipt resolved.');
    const receipts = await list<EffectReceipt>(tenant, `/instances/${id}/effects`);
    const found = receipts.map(({ state, provider_receipt_id }) => [state, provider_receipt_id]);
    assert.deepEqual(found, [['compensated', 'refund-7']]);
  });
});

describe('many instances', { concurrency: 2 }, () => {
  test('are cancelled by a job, which is watched to its end', async ({ page, tenant, context }) => {
    const ids = [await waiting(tenant), await waiting(tenant)];
    // As when it takes longer than an answer may: what is counted first is not.
    await context.route('**/instances/batch-action', (route) => {
      const isCount = (route.request().postDataJSON() as { dry_run?: boolean }).dry_run;
      const url = route.request().url();
      return route.continue({ url: isCount ? url : `${url}?async=true` });
    });
    await go(page, '/instances', 'Instances');
    await press(await dialogOf(page, 'Cancel', 'Cancel many instances?'), 'Cancel 2 instances');
    await told(page, '2 instances cancelled.');
    await page.getByRole('status').getByRole('link', { name: 'bulk job' }).click();
    const table = page.getByRole('table', { name: 'Bulk jobs' });
    await table.getByText('completed', { exact: true }).waitFor();
    for (const id of ids) await tenant.until(id, 'cancelled');
    const jobs = await list<BulkJob>(tenant, '/instances/bulk/jobs');
    const seen = jobs.map(({ state, applied }) => [state, applied]);
    assert.deepEqual(seen, [['completed', 2]]);
  });
});

test('an incomplete filter changes no instances, and what was changed is reported', async (visit) => {
  const { page, tenant } = visit;
  await waiting(tenant);
  await go(page, '/instances', 'Instances');
  const main = page.getByRole('main');
  await main.getByLabel('Created', { exact: true }).selectOption('between');
  const from = main.getByLabel('Created after');
  await from.focus();
  await page.keyboard.type('0102');
  await main.getByText('This value is incomplete').waitFor();
  assert.ok(await main.getByRole('button', { name: 'Cancel', exact: true }).isDisabled());
  await from.fill('2026-01-02T10:00');
  const dialog = await dialogOf(page, 'Cancel', 'Cancel many instances?');
  await dialog.getByText('Created after').waitFor();
  await press(dialog, 'Keep them');
  await dialog.waitFor({ state: 'detached' });
});

test('a filter with a percent sign is what was typed, also after a reload', async ({ page }) => {
  await go(page, '/instances', 'Instances');
  const failure = page.getByRole('main').getByLabel('Failure');
  await failure.fill('100%25 of %41');
  await page.waitForURL(/failure=100%2525/);
  await page.reload();
  await failure.waitFor();
  assert.equal(await failure.inputValue(), '100%25 of %41');
});

describe('what starts instances', { concurrency: 2 }, () => {
  test('a schedule is made, run now, switched off, and deleted', async ({ page, tenant }) => {
    await tenant.sequence([step('a', 'noop')], { name: 'nightly', namespace: 'default' });
    await go(page, '/schedules', 'Schedules');
    const form = await dialogOf(page, 'New schedule', 'New schedule');
    await form.getByLabel('Sequence').fill('nightly');
    await form.getByLabel('Expression').fill('0 3 * * *');
    await form
      .getByText(/03:00:00 \+0[12]:00/)
      .first()
      .waitFor();
    await form.getByLabel('Input').fill('{"by": "the clock"}');
    await press(form, 'Save');
    await told(page, 'Schedule saved.');
    const [made] = await list(tenant, '/cron');
    const seen = [made?.sequence, made?.timezone, made?.enabled];
    assert.deepEqual(seen, ['nightly', 'Europe/Berlin', true]);

    await press(rowWith(page, 'nightly'), 'Run now');
    await told(page, /^Started/);
    await eventually(async () => {
      const [started] = await list<{ context: { data: Json } }>(tenant, '/instances');
      assert.deepEqual(started?.context.data, { by: 'the clock' });
    });

    await rowWith(page, 'nightly').getByRole('link').first().click();
    const dialog = page.getByRole('dialog', { name: 'Schedule', exact: true });
    await press(dialog, 'Disable');
    await dialog.getByRole('button', { name: 'Enable' }).waitFor();
    assert.equal((await list(tenant, '/cron'))[0]?.enabled, false);
    await press(dialog, 'Delete');
    await press(page.getByRole('dialog', { name: 'Delete this schedule?' }), 'Delete schedule');
    await told(page, /^Schedule deleted/);
    assert.deepEqual(await list(tenant, '/cron'), []);
  });

  test('a trigger by an event is made, changed, and deleted', async ({ page, tenant }) => {
    await tenant.sequence([step('a', 'noop')], { name: 'refund', namespace: 'default' });
    const slug = `on-${tenant.name}`;
    await go(page, '/triggers', /^Triggers/);
    const form = await dialogOf(page, 'New trigger', 'New trigger');
    await form.getByLabel('Name', { exact: true }).fill(slug);
    await form.getByLabel('Sequence').fill('refund');
    await press(form, 'Create');
    const missing = await form.locator('input[type=password]:invalid').count();
    assert.equal(missing, 1, 'a signed request needs a secret');
    await form.getByLabel('Fired by').selectOption('An event');
    await form.getByLabel('Event name').fill('refund.asked');
    await press(form, 'Create');
    await told(page, `Created: ${slug}`);
    const [made] = await list(tenant, '/triggers');
    assert.deepEqual([made?.slug, made?.sequence_name], [slug, 'refund']);
    assert.deepEqual(made?.config, { event_name: 'refund.asked' });

    await press(rowWith(page, slug), 'Change');
    const editing = page.getByRole('dialog', { name: `Change the trigger ${slug}` });
    await editing.getByLabel('Event name').fill('refund.granted');
    await press(editing, 'Save');
    await told(page, `Changed: ${slug}`);
    const [changed] = await list(tenant, '/triggers');
    assert.deepEqual(changed?.config, { event_name: 'refund.granted' });

    await press(rowWith(page, slug), 'Delete');
    const dialog = page.getByRole('dialog', { name: `Delete trigger ${slug}?` });
    await press(dialog, 'Delete trigger');
    await told(page, `Deleted: ${slug}`);
    assert.deepEqual(await list(tenant, '/triggers'), []);
  });

  test('an event is sent, and taken by the step that waits for it', async ({ page, tenant }) => {
    const params = { name: 'payment.settled', key: 'S-1' };
    const id = await tenant.runUntil('waiting', [step('wait', 'wait_for_event', { params })]);
    await go(page, '/triggers/events', /^Triggers/);
    const form = await dialogOf(page, 'Send event', 'Send event');
    await form.getByLabel('Name').fill('payment.settled');
    await form.getByLabel('Correlation key').fill('S-1');
    await form.getByLabel('Payload').fill('{"amount": 7}');
    await press(form, 'Send');
    await told(page, 'Consumed by 1 step.');
    await tenant.until(id, 'completed');
    await page.getByRole('button', { name: 'payment.settled' }).waitFor();
    const [event] = await list(tenant, '/events');
    assert.deepEqual([event?.event_name, event?.status], ['payment.settled', 'consumed']);
  });
});

describe('who gets in, and with what', { concurrency: 2 }, () => {
  test('a key is made, shown once, and revoked', async ({ page, tenant }) => {
    await go(page, '/keys', /^Keys/);
    const form = await dialogOf(page, 'New key', 'New API key');
    await form.getByRole('textbox', { name: 'Name' }).fill('night watch');
    await form.getByLabel('Expires').pressSequentially('01');
    await press(form, 'Create key');
    for (const mistake of ['Choose at least one', 'This value is incomplete']) {
      await form.getByText(mistake).waitFor();
    }
    await form
      .getByRole('checkbox', { name: /^operator/ })
      .and(page.locator(':focus'))
      .waitFor();
    await form.getByRole('checkbox', { name: /^auditor/ }).check();
    await form.getByLabel('Expires').clear();
    await press(form, 'Create key');
    const made = page.getByRole('dialog', { name: 'API key created' });
    const secret = (await made.locator('code').textContent()) ?? '';
    const apiKey = api.root.with({ apiKey: secret });
    const who = expectStatus(await apiKey.get<Json>('/whoami'), 200);
    assert.deepEqual([who.tenant_id, who.capabilities], [tenant.name, ['auditor']]);
    await press(made, 'I have copied it');
    await page.reload();
    await settled(page);
    await rowWith(page, 'night watch').getByText('valid', { exact: true }).waitFor();
    assert.ok(!(await page.content()).includes(secret));

    await press(rowWith(page, 'night watch'), 'Revoke');
    await press(page.getByRole('dialog', { name: 'Revoke night watch?' }), 'Revoke key');
    await told(page, 'Revoked: night watch');
    assert.equal((await apiKey.get('/whoami')).status, 401);
  });

  test('a secret is kept without being shown, and deleted', async ({ page, tenant }) => {
    await go(page, '/keys/secrets', /^Keys/);
    const form = await dialogOf(page, 'New secret', 'New secret');
    await form.getByLabel('Name').fill('bank');
    await form.getByLabel('Description').fill('what the bank knows us by');
    await form.getByLabel('Secret', { exact: true }).fill('open sesame');
    await press(form, 'Save');
    await told(page, 'Saved: bank');
    const [kept] = await list(tenant, '/credentials');
    assert.deepEqual([kept?.id, kept?.description], ['bank', 'what the bank knows us by']);
    await rowWith(page, 'what the bank knows us by').waitFor();
    assert.ok(!(await page.content()).includes('open sesame'));

    await press(rowWith(page, 'what the bank knows us by'), 'Delete');
    await press(page.getByRole('dialog', { name: 'Delete secret bank?' }), 'Delete secret');
    await told(page, 'Deleted: bank');
    assert.deepEqual(await list(tenant, '/credentials'), []);
  });

  test('limits of steps and of the tenant are set, and removed', async ({ page, tenant }) => {
    await go(page, '/limits', 'Limits');
    const form = await dialogOf(page, 'New limit', 'New rate limit');
    await form.getByLabel('Key').fill('mail');
    await form.getByLabel('Maximum starts').fill('5');
    await form.getByLabel('Window in seconds').fill('30');
    await press(form, 'Save limit');
    await told(page, 'The limit of mail was saved.');
    const [limit] = await list(tenant, '/rate-limits');
    assert.deepEqual([limit?.key, limit?.max_count, limit?.window_seconds], ['mail', 5, 30]);
    await press(rowWith(page, 'mail'), 'Remove');
    await press(page.getByRole('dialog', { name: 'Remove the limit of mail?' }), 'Remove limit');
    await told(page, 'The limit of mail was removed.');
    assert.deepEqual(await list(tenant, '/rate-limits'), []);
    await rowWith(page, 'mail').waitFor({ state: 'detached' });

    const depthMax = async () => {
      const reply = await api.root.get<Json>(`/tenants/${tenant.name}/limits`);
      return expectStatus(reply, 200).queue_depth_max;
    };
    const limits = await dialogOf(page, 'Change', `Limits of ${tenant.name}`);
    await limits.getByLabel('queue depth max').fill('77');
    await press(limits, 'Save limits');
    await told(page, `The limits of ${tenant.name} were saved.`);
    assert.equal(await depthMax(), 77);
    await page.getByText('77', { exact: true }).waitFor();
    const title = `Reset the limits of ${tenant.name} to the defaults?`;
    await press(await dialogOf(page, 'Reset to defaults', title), 'Reset to defaults');
    await told(page, `${tenant.name} now has the default limits.`);
    assert.equal(await depthMax(), null);
  });
});

describe('webhooks', { concurrency: 2 }, () => {
  test('an address is told of an end, which is seen, changed, and told no more', async (entered) => {
    const { page, tenant } = entered;
    const url = receiver.url(`/${tenant.name}`);
    await go(page, '/webhooks', 'Webhooks');
    const form = await dialogOf(page, 'New subscription', 'New subscription');
    await form.getByLabel('URL').fill(url);
    await form.getByRole('checkbox', { name: 'instance.failed' }).uncheck();
    await press(form, 'Subscribe');
    const made = page.getByRole('dialog', { name: 'Subscription created' });
    assert.match((await made.locator('code').textContent()) ?? '', /\S{20}/);
    await press(made, 'I have copied it');
    const [subscription] = await list(tenant, '/webhooks');
    assert.deepEqual([subscription?.url, subscription?.events], [url, ['instance.completed']]);

    await receiver.until(await tenant.runUntil('completed', [step('a', 'noop')]), 1);
    await rowWith(page, url).getByRole('link', { name: 'Deliveries' }).click();
    await rowWith(page, url).getByText('delivered', { exact: true }).waitFor();
    await press(rowWith(page, url), 'Show attempts');
    const tries = page.getByRole('table', { name: 'Attempts' });
    await tries.getByText('delivered', { exact: true }).waitFor();

    await go(page, '/webhooks', 'Webhooks');
    const other = `${url}-other`;
    await press(rowWith(page, url), 'Change');
    const editing = page.getByRole('dialog', { name: 'Change the subscription' });
    await editing.getByLabel('URL').fill(other);
    await editing.getByRole('checkbox', { name: 'instance.failed' }).check();
    await editing.getByLabel('New secret').fill('a secret that is long enough to be one');
    await press(editing, 'Save');
    await told(page, `The subscription of ${other} was changed.`);
    const [changed] = await list<{ url: string; events: string[] }>(tenant, '/webhooks');
    const seen = [changed?.url, changed?.events.toSorted()];
    assert.deepEqual(seen, [other, ['instance.completed', 'instance.failed']]);
    await press(rowWith(page, other), 'Delete');
    const dialog = page.getByRole('dialog', { name: 'Delete this subscription?' });
    await press(dialog, 'Delete subscription');
    await told(page, `${other} receives no more webhooks.`);
    assert.deepEqual(await list(tenant, '/webhooks'), []);
  });

  test('what was refused is tried again by hand, or given up', async ({ page, tenant }) => {
    // A webhook that is refused so is not tried again by itself.
    receiver.answer('/again', statusOf(400));
    receiver.answer('/never', statusOf(400));
    const [again, never] = [receiver.url('/again'), receiver.url('/never')];
    for (const url of [again, never]) expectStatus(await tenant.post('/webhooks', { url }), 201);
    const id = await tenant.runUntil('completed', [step('a', 'noop')]);
    const parked = async () =>
      (await list<OutboxEntry>(tenant, '/webhooks/outbox?limit=1000'))
        .filter(({ status, instance_id }) => status === 'parked' && instance_id === id)
        .map(({ url }) => url)
        .toSorted();
    await eventually(async () => assert.deepEqual(await parked(), [again, never]));
    // It is that of the whole server, on which other tests leave theirs.
    await page.route(/\/webhooks\/outbox\?/, async (route) => {
      const response = await route.fetch();
      const entries = (await response.json()) as OutboxEntry[];
      const own = entries.filter(({ instance_id }) => instance_id === id);
      await route.fulfill({ response, json: own });
    });
    await go(page, '/webhooks/outbox', 'Webhooks');
    receiver.answer('/again', statusOf(200));
    await press(rowWith(page, again), 'Retry now');
    await told(page, 'Delivered.');
    await rowWith(page, again).waitFor({ state: 'detached' });
    assert.deepEqual(await parked(), [never]);
    await press(rowWith(page, never), 'Discard');
    await press(page.getByRole('dialog', { name: 'Discard this delivery?' }), 'Discard');
    await told(page, 'Delivery discarded.');
    assert.deepEqual(await parked(), []);
    assert.equal(receiver.of(id).length, 3);
  });
});
