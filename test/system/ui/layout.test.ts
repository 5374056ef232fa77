/**
 * Nothing of the dashboard overlaps, is cut off or stands empty: measured row by row of `scripts/dashboard/layout.ts`.
 *
 * Cost: 20 s, since it measures in a Chromium.
 */

import assert from 'node:assert/strict';
import { LAYOUT, NOTE_TEXTS, viewportOf } from '../../../scripts/dashboard/layout.js';
import { useSharedApi } from '../../helpers/api.js';
import { useBrowser } from '../../helpers/browser.js';
import { open, settled, signIn } from '../../helpers/dashboard.js';
import { DEFAULT_API_KEY } from '../../helpers/engine.js';
import { useShop } from '../../helpers/use-shop.js';

const server = useShop(() => useSharedApi());
const { at } = useBrowser();

for (const row of LAYOUT) {
  const test = at(() => ({ url: server.api.url, viewport: viewportOf(row) }));
  test(row.name, async ({ page, context, complaints }) => {
    complaints.allow(/ERR_FAILED/);
    await signIn(context, { apiKey: DEFAULT_API_KEY, tenant: server.shop.tenant });
    await context.addInitScript(NOTE_TEXTS);
    await open(page, server.api.url, await row.path(server.shop), /./);
    await row.prepare?.(page);
    await settled(page).catch(() => undefined);
    const pixels = await page.evaluate<number>(row.pixels);
    assert.ok(pixels <= 0.5, `${pixels} px too much`);
  });
}
