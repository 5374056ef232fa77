/** What the dashboard says while its server is away, and that it goes on by itself when it is back. */

import { useApi } from '../helpers/api.js';
import { useBrowser } from '../helpers/browser.js';
import { expectPage, open, signIn } from '../helpers/dashboard.js';

const TENANT = 'acme';
const api = useApi();
const { test } = useBrowser();

/** What a browser says of requests to nobody. */
const NOBODY_THERE =
  /ERR_CONNECTION_(?:REFUSED|RESET)|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE|ERR_SOCKET|ERR_NETWORK|ERR_FAILED|50[023]/;

test(
  'a page says that its server is away, and goes on when it is back',
  () => ({ url: api.url }),
  async ({ page, context, complaints }) => {
    complaints.allow(NOBODY_THERE);
    await signIn(context, { apiKey: api.engine.apiKey, tenant: TENANT });
    await open(page, api.url, '/approvals', 'Approvals');
    await page.getByRole('status').getByText('Live', { exact: true }).waitFor();

    await api.engine.kill();
    await page
      .getByRole('alert')
      .getByText(/does not answer/)
      .waitFor();
    await page.getByRole('status').getByText('Engine away').waitFor();
    // What was there stays to be read; what has to be loaded comes when the server is back.
    await expectPage(page, 'Approvals');
    await page.getByRole('link', { name: 'Limits', exact: true }).click();
    await api.restart();
    await expectPage(page, 'Limits');
    await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
    await page.getByRole('alert').first().waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'Approvals', exact: true }).click();
    await expectPage(page, 'Approvals');
  },
);

test(
  'a page is live: what is asked appears by itself, and goes when it is withdrawn',
  () => ({ url: api.url }),
  async ({ page, context }) => {
    await signIn(context, { apiKey: api.engine.apiKey, tenant: TENANT });
    await open(page, api.url, '/approvals', 'Approvals');
    const question = await api
      .tenant(TENANT)
      .run([
        { type: 'step', id: 'ask', handler: 'noop', wait_for_input: { prompt: 'Is it live?' } },
      ]);
    await page.getByText('Is it live?').waitFor();
    await api.tenant(TENANT).signal(question, 'cancel');
    await page.getByText('Is it live?').waitFor({ state: 'detached' });
  },
);
