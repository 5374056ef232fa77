/**
 * Failures as an incident: causes of a period, what they have in common, and a retry that is followed to its outcome.
 *
 * Cost: 6 s, since it retries instances in a Chromium.
 */

import assert from 'node:assert/strict';
import type { BulkJob } from '../../schema/bulk-job.js';
import { eventually, step, useSharedApi } from '../helpers/api.js';
import { useBrowser } from '../helpers/browser.js';
import { expectStatus } from '../helpers/client.js';
import { open, signIn } from '../helpers/dashboard.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';

const api = useSharedApi();
const test = useBrowser().at(() => ({ url: api.url, viewport: { width: 1280, height: 900 } }));

test('a cause is opened, one instance is retried first, and the outcome stays on the page', async ({
  page,
  context,
}) => {
  const tenant = api.tenant();
  const sequence = await tenant.sequence([step('a', 'fail', { params: { message: 'no 1' } })]);
  for (const region of ['eu', 'eu', 'us']) {
    await tenant.until(await tenant.create(sequence, { metadata: { region } }), 'failed');
  }
  await signIn(context, { apiKey: DEFAULT_API_KEY, tenant: tenant.name });
  await open(page, api.url, '/failures?period=1h', 'Failures');
  const row = page.getByRole('row').filter({ hasText: 'no #' });
  await row.getByText('new', { exact: true }).waitFor();
  await row.getByText('100%').waitFor();
  await row.getByRole('button', { name: 'Details' }).click();
  const common = page.getByRole('region', { name: 'In common' });
  await common
    .getByRole('listitem')
    .filter({ hasText: /^eu67%67% of runs/ })
    .waitFor();

  await row.getByRole('button', { name: 'Retry…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('3 instances').first().waitFor();
  await dialog.getByLabel('Retry', { exact: true }).selectOption('probe');
  await dialog.getByRole('button', { name: 'Retry 1 instance' }).click();
  const result = page.getByRole('dialog', { name: 'Result of the bulk change' });
  await result.getByText('no 1').waitFor();
  const retries = page.getByRole('table', { name: 'Recent retries' });
  const probe = retries.getByRole('row').filter({ hasText: '1 retried · 1 failed again' });
  await probe.getByText(/^no # · .* · 1 selected instance$/).waitFor();

  await result.getByRole('button', { name: 'Retry the others…' }).click();
  await dialog.getByLabel('Retry', { exact: true }).selectOption('pace');
  await dialog.getByLabel('Instances per minute').fill('1');
  await dialog.getByRole('button', { name: 'Retry 3 instances' }).click();
  await result.getByRole('button', { name: 'Done' }).click();
  const paced = retries.getByRole('row').filter({ hasText: 'Retry, 1 per minute' });
  await paced.getByText(/^1 retried/).waitFor();
  await paced.getByRole('button', { name: 'Cancel' }).click();
  await paced.getByText('cancelled', { exact: true }).waitFor();
  await eventually(async () => {
    const jobs = expectStatus(await tenant.get<BulkJob[]>('/instances/bulk/jobs'), 200);
    assert.deepEqual(
      jobs.map(({ state, applied }) => [state, applied]),
      [
        ['cancelled', 1],
        ['completed', 1],
      ],
    );
  });
});

test('a retry reaches as many instances as one change may, and says when there are more', async ({
  page,
  context,
}) => {
  const tenant = api.tenant();
  const sequence = await tenant.sequence([step('a', 'fail', { params: { message: 'no 1' } })]);
  await tenant.until(await tenant.create(sequence), 'failed');
  await signIn(context, { apiKey: DEFAULT_API_KEY, tenant: tenant.name });
  await page.route('**/instances/batch-action', (route) => {
    const { limit } = route.request().postDataJSON() as { limit?: number };
    const applied = limit ?? 1_000;
    const none = { skipped: 0, failed: 0, repeats_effects: 0 };
    const json = { matched: applied, applied, ...none, dry_run: true };
    return route.fulfill({ headers: { 'x-request-id': 'sample' }, json });
  });
  await open(page, api.url, '/failures', 'Failures');
  await page.getByRole('button', { name: 'Retry…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('One change reaches at most 10,000: repeat it for the others.').waitFor();
  await dialog.getByRole('button', { name: 'Retry 10,000 instances' }).waitFor();
});

test('the overview has the failures of the last day, and leads to them', async ({
  page,
  context,
}) => {
  const tenant = api.tenant();
  const sequence = await tenant.sequence([step('a', 'fail', { params: { message: 'no 1' } })]);
  await tenant.until(await tenant.create(sequence), 'failed');
  await signIn(context, { apiKey: DEFAULT_API_KEY, tenant: tenant.name });
  await open(page, api.url, '/', 'Overview');
  const cause = page.getByRole('row').filter({ hasText: 'no #' });
  await cause.getByText('new', { exact: true }).waitFor();
  await page.getByRole('link', { name: '1 Failed in the last 24 hours' }).click();
  await page.getByRole('heading', { name: 'By cause, in the last 24 hours' }).waitFor();
  // All columns fit beside the navigation of a small screen.
  await page.setViewportSize({ width: 1024, height: 768 });
  const table = page.getByRole('table', { name: 'Failures by cause' });
  const hidden = await table.evaluate(({ parentElement: frame }) =>
    frame === null ? 0 : frame.scrollWidth - frame.clientWidth,
  );
  assert.equal(hidden, 0);
  await cause.getByRole('link', { name: 'no #' }).waitFor();
  // Two days later.
  await page.clock.setFixedTime(Date.now() + 2 * 86_400_000);
  await open(page, api.url, '/', 'Overview');
  await page.getByText('Nothing failed in the last 24 hours').waitFor();
});
