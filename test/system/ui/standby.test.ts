/** A dashboard that a standby serves: it says so, and becomes live when the standby takes over. */

import assert from 'node:assert/strict';
import { after } from 'node:test';
import { beforeWith, useApi } from '../../helpers/api.js';
import { useBrowser } from '../../helpers/browser.js';
import { signIn } from '../../helpers/dashboard.js';
import type { Engine } from '../../helpers/engine.js';

const TENANT = 'acme';

let standby: Engine | undefined;
// Before the server on the same database: hooks behind a test run in the order in which they are written.
after(() => standby?.stop());
const api = useApi();
beforeWith(api, async () => {
  standby = await api.engine.beside({ waitFor: 'listening' });
});
const { test } = useBrowser();

const there = () => {
  assert.ok(standby);
  return standby;
};

test(
  'a page that was opened on a standby becomes live when that takes over',
  () => ({ url: there().url }),
  async ({ page, context, complaints }) => {
    complaints.allow(/503/);
    await signIn(context, { apiKey: api.engine.apiKey, tenant: TENANT });
    await page.goto(`${there().url}/ui/`);
    const state = page.getByRole('banner').getByRole('status');
    await state.getByText('Engine away').waitFor();
    await page.getByRole('link', { name: /^Not ready.*standby/ }).waitFor();

    await api.engine.stop();
    await state.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('link', { name: /^Healthy/ }).waitFor();
    await page.getByRole('heading', { name: 'Nobody is asked anything' }).waitFor();
    await page.getByRole('alert').first().waitFor({ state: 'detached' });
  },
);
