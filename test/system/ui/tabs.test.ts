/**
 * Many tabs of one browser, which opens six connections to a server: they share one stream of changes.
 *
 * Cost: 20 s, since it opens eight pages in a Chromium, twice.
 */

import assert from 'node:assert/strict';
import type { Page, Request } from 'playwright-core';
import { eventually, useSharedApi } from '../../helpers/api.js';
import { useBrowser } from '../../helpers/browser.js';
import { open, signIn } from '../../helpers/dashboard.js';
import { DEFAULT_API_KEY } from '../../helpers/engine.js';

const api = useSharedApi();
const test = useBrowser().at(() => ({ url: api.url }));

for (const [kind, missing] of [
  ['with locks', []],
  [
    'on plain HTTP, where there are none',
    ['Navigator.prototype, "locks"', 'Crypto.prototype, "subtle"'],
  ],
] as const) {
  test(`eight tabs have one stream, and the others go on when one is closed (${kind})`, async (visit) => {
    const { context, complaints } = visit;
    // Of a tab before it has a page.
    complaints.allow(/'sessionStorage'.*Access is denied/);
    const tenant = api.tenant();
    await signIn(context, { apiKey: DEFAULT_API_KEY, tenant: tenant.name });
    const removals = missing.map((what) => `Object.defineProperty(${what}, { value: undefined });`);
    await context.addInitScript(removals.join('\n'));
    const streams = new Map<Request, Page>();
    context.on('request', (request) => {
      if (request.url().includes('/changes/stream')) streams.set(request, request.frame().page());
    });
    context.on('requestfailed', (request) => streams.delete(request));
    const leaders = () => [...streams.values()].filter((one) => !one.isClosed());

    const pages = await Promise.all(Array.from({ length: 8 }, () => context.newPage()));
    for (const one of pages) {
      await open(one, api.url, '/approvals', 'Approvals');
      await one.getByRole('banner').getByText('Live', { exact: true }).waitFor();
    }
    assert.equal(leaders().length, 1);
    for (const prompt of ['Do all see it?', 'Do the others?']) {
      const ask = { type: 'step', id: 'ask', handler: 'noop', wait_for_input: { prompt } };
      await tenant.run([ask]);
      const left = pages.filter((one) => !one.isClosed());
      await Promise.all(left.map((one) => one.getByText(prompt).waitFor()));
      await eventually(async () => assert.equal(leaders().length, 1));
      await leaders()[0]?.close();
    }
  });
}
