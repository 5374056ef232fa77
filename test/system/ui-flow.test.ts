/**
 * The drawings of the dashboard in a real browser, under the content security policy that the server sends: each on
 * a page of its own, with samples instead of a server.
 *
 * Cost: 12 s, since it draws in a Chromium.
 */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before } from 'node:test';
import type { Page } from 'playwright-core';
import { expectNoAxeFindings, useBrowser } from '../helpers/browser.js';
import { bundleUi } from '../helpers/ui-bundle.js';

const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'";
const NOW = Date.parse('2026-11-23T10:01:00.000Z');

const browsers = useBrowser();
const folder = mkdtempSync(path.join(tmpdir(), 'ui-flow-'));
let server: Server;

before(async () => {
  await bundleUi(['test/flow-page.tsx'], folder, {
    platform: 'browser',
    define: { 'process.env.NODE_ENV': '"production"' },
  });
  server = createServer(({ url = '/' }, response) => {
    const file = path.join(folder, path.basename(url));
    response.setHeader('content-security-policy', POLICY);
    response.setHeader('content-type', TYPES[path.extname(url)] ?? 'text/html');
    response.statusCode = url === '/' || existsSync(file) ? 200 : 204;
    response.end(url === '/' ? html() : existsSync(file) ? readFileSync(file) : '');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
});

after(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

const TYPES: Readonly<Record<string, string>> = { '.js': 'text/javascript', '.css': 'text/css' };

/** Parts that are loaded later bring no style sheets along here. */
function html(): string {
  const sheets = readdirSync(folder).filter((name) => name.endsWith('.css'));
  const links = sheets.map((name) => `<link rel="stylesheet" href="/${name}">`).join('');
  return (
    `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width">` +
    `<title>Drawing</title>${links}<div id="root"></div><script type="module" src="/flow-page.js"></script>`
  );
}

/** Playwright's own wait for a condition is refused by the policy. */
async function until(page: Page, condition: string): Promise<void> {
  for (let frames = 0; frames < FRAMES_MAX; frames += 1) {
    if (await page.evaluate<boolean>(condition)) return;
    await page.evaluate('new Promise(requestAnimationFrame)');
  }
  assert.fail(`never: ${condition}`);
}

/** Far more than anything takes that happens at all. */
const FRAMES_MAX = 2_000;

type Use = (page: Page) => Promise<void>;

/** Runs with the page of one drawing. */
function drawn(title: string, name: string, use: Use, width = 1280): void {
  const at = () => ({ url: origin(), viewport: { width, height: 900 }, timezoneId: 'UTC' });
  browsers.at(at)(title, async ({ page }) => {
    await page.clock.setFixedTime(NOW);
    await page.goto(`${origin()}/#${name}`);
    await use(page);
  });
}

const origin = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

const block = (page: Page, place: string) => page.locator(`[data-path="${place}"]`);

/** What the button of a block is called. */
const nameOf = (page: Page, place: string) =>
  block(page, place).locator('.hidden-text').textContent();

/** The paths of the blocks that are drawn, and where they are. */
async function places(page: Page): Promise<ReadonlyMap<string, string>> {
  const found = await page
    .locator('.react-flow__node')
    .evaluateAll((nodes) =>
      nodes.map((node) => [node.getAttribute('data-id')!, node.getAttribute('style')!] as const),
    );
  return new Map(found);
}

drawn(
  'the graph has a button for each block in sight, with all of it in words',
  'run',
  async (page) => {
    await block(page, 'charge').waitFor();
    assert.equal(await nameOf(page, 'charge'), 'charge, step, completed, attempt 3 of 3, 9 s');
    await page.getByRole('button', { name: 'Fit to view' }).click();
    await block(page, '@on_cancel/tell').waitFor();
    assert.equal((await places(page)).size, 40);
    await expectNoAxeFindings(page);
  },
);

drawn('an update changes what blocks show, and moves none', 'run', async (page) => {
  await block(page, 'approve').waitFor();
  const before = await places(page);
  const view = await page.locator('.react-flow__viewport').getAttribute('style');
  assert.match((await nameOf(page, 'approve')) ?? '', /waiting for an answer/);
  await page.getByRole('button', { name: 'Update' }).click();
  await page.getByRole('button', { name: /^approve, approval, completed/ }).waitFor();
  assert.deepEqual(await places(page), before);
  assert.equal(await page.locator('.react-flow__viewport').getAttribute('style'), view);
});

drawn('the wheel scrolls the page until the drawing was clicked into', 'run', async (page) => {
  await block(page, 'charge').waitFor();
  await page.setViewportSize({ width: 1280, height: 220 });
  const scrolled = () => page.evaluate<number>('document.scrollingElement.scrollTop');
  await page.mouse.move(200, 180);
  await page.mouse.wheel(0, 60);
  await until(page, 'document.scrollingElement.scrollTop > 0');
  const before = await scrolled();
  const place = await page.locator('.react-flow__viewport').getAttribute('style');
  await page.mouse.click(200, 180);
  await page.mouse.wheel(0, 60);
  await until(
    page,
    `document.querySelector('.react-flow__viewport').getAttribute('style') !== ${JSON.stringify(place)}`,
  );
  assert.equal(await scrolled(), before);
});

drawn('keys lead from block to block, open and close groups, and select', 'run', async (page) => {
  await block(page, 'charge').focus();
  const focused = () => page.evaluate("document.activeElement?.getAttribute('data-path')");
  const press = async (...keys: string[]) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  await press('ArrowDown', 'ArrowDown');
  assert.equal(await focused(), 'approve');
  await press('ArrowUp', 'Enter');
  assert.equal(await page.locator('output').textContent(), 'ask_provider');
  assert.equal(await block(page, 'ask_provider').getAttribute('aria-pressed'), 'true');
  await press('Tab');
  assert.equal(await focused(), 'approve');
  await press('ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowDown');
  assert.equal(await focused(), 'prepare');
  await press('ArrowRight');
  assert.equal(await focused(), 'prepare/pick');
  await press('ArrowLeft');
  assert.equal(await focused(), 'prepare');
  await press('ArrowLeft');
  await page.locator('[data-path="prepare"][aria-expanded="false"]').waitFor();
  assert.equal(await block(page, 'prepare/pick').count(), 0);
  await press('ArrowRight');
  await block(page, 'prepare/pick').waitFor();
  // What was out of sight is brought into it.
  await press('End');
  await until(page, "document.activeElement?.getAttribute('data-path') === '@on_cancel/tell'");
});

drawn('every kind of block is drawn', 'kinds', async (page) => {
  await page.getByRole('button', { name: 'Fit to view' }).click();
  await block(page, '@on_cancel/tell').waitFor();
  const names = await page
    .locator('.react-flow [data-path] > .hidden-text')
    .evaluateAll((all) => all.map((each) => each.textContent?.split(', ')[1]));
  assert.deepEqual([...new Set(names)].sort(), [
    ...['A/B split', 'HTTP request', 'approval', 'cancellation scope', 'for each', 'hooks', 'loop'],
    ...['parallel', 'race', 'router', 'saga', 'sleep', 'step', 'sub-sequence', 'try and catch'],
    'wait for an event',
  ]);
});

drawn(
  'a narrow screen has the list alone, and nothing is wider than it',
  'run',
  async (page) => {
    await page.getByRole('list', { name: 'A run' }).waitFor();
    assert.equal(await page.locator('.react-flow').count(), 0);
    await page.getByRole('button', { name: 'Close prepare' }).click();
    assert.equal(await block(page, 'prepare/pick').count(), 0);
    assert.ok(await page.evaluate('document.documentElement.scrollWidth <= 380'));
    await expectNoAxeFindings(page);
  },
  380,
);

drawn('a bar tells what it is about on hover and to who asks by keys', 'timeline', async (page) => {
  const bar = page.getByRole('button', { name: /^charge, attempt 1, failed, retried/ });
  await bar.waitFor();
  await bar.hover();
  const detail = page.getByRole('status');
  await detail.waitFor();
  assert.match((await detail.textContent()) ?? '', /2026-11-23T10:00:00.000Z.*worker-7.*timed out/);
  await page.mouse.move(5, 5);
  await detail.waitFor({ state: 'detached' });
  await bar.focus();
  await detail.waitFor();
  await page.keyboard.press('Escape');
  await detail.waitFor({ state: 'detached' });
  await expectNoAxeFindings(page);
});

drawn('the axis is zoomed by buttons and by dragging over it', 'timeline', async (page) => {
  // The clock is that of the viewer's language: `10:00:45` or `10:00:45 AM`.
  const tick = (second: string) => page.getByText(new RegExp(`^10:00:${second}\\b`));
  await tick('45').waitFor();
  const axis = (await tick('00').boundingBox())!;
  await page.mouse.move(axis.x + 5, axis.y + 5);
  await page.mouse.down();
  await page.mouse.move(axis.x + 150, axis.y + 5);
  await page.mouse.up();
  await tick('02').waitFor();
  assert.equal(await tick('45').count(), 0);
  await page.getByRole('button', { name: 'Fit to view' }).click();
  await tick('45').waitFor();
  await page.getByRole('button', { name: 'Zoom in' }).click();
  await tick('45').waitFor({ state: 'detached' });
});

drawn(
  'a hundred thousand tries are paged, and only those in sight are rendered',
  'many',
  async (page) => {
    await page.getByText('1–50 of 100,000 iterations').waitFor();
    assert.ok((await page.locator('ul > li').count()) < 80);
    await page.getByRole('button', { name: 'Last iterations' }).click();
    await page.getByText('99,951–100,000 of 100,000 iterations').waitFor();
    await page.getByRole('button', { name: 'Zoom to these iterations' }).click();
    await page.getByRole('button', { name: 'Open iteration 99,951' }).click();
    await page
      .getByRole('button', { name: /^check, attempt 1, completed, queued 200 ms/ })
      .waitFor();
  },
);

drawn('a diff marks what became of each block, and lists it', 'diff', async (page) => {
  await block(page, 'cool_down').waitFor();
  assert.equal(await nameOf(page, 'cool_down'), 'cool_down, sleep, removed');
  const changes = page.getByRole('list', { name: 'Changes' });
  await changes.getByRole('button', { name: 'moved cleanup/invoice' }).click();
  const moved = page.locator('.react-flow [data-path="cleanup/invoice"][aria-pressed="true"]');
  await moved.waitFor();
  assert.ok(await moved.isVisible());
  await expectNoAxeFindings(page);
});
