/**
 * A real browser for tests of what is served to people, and what a page of it does: whom it asks, and what its
 * console says.
 *
 * The browser is the one of CHROMIUM_PATH, of the usual places, or of Playwright's own cache, into which it is fetched
 * when there is none. Where that fails, too, such tests are left out, and say so loudly.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { after, before } from 'node:test';
import { type Browser, chromium, type Page } from 'playwright-core';

/** Rendering takes seconds on a busy machine; a page that does not come fails the test all the same. */
export const PAGE_PATIENCE_MS = 60_000;

const USUAL_PLACES = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/usr/bin/google-chrome-stable',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

const FETCH_TIMEOUT_MS = 180_000;

const require = createRequire(import.meta.url);

/** Resolves with undefined where there is none and none can be fetched. To be closed. */
export async function launchChromium(): Promise<Browser | undefined> {
  const found = findChromium();
  if (found !== undefined) return launch(found);
  try {
    return await launch(await fetchChromium());
  } catch (error) {
    // Nobody can fetch it without a network, and without the libraries of a desktop it does not start.
    process.stderr.write(`${(error as Error).message}\n${SKIPPED}`);
    return undefined;
  }
}

const SKIPPED = `
*** SKIPPED: there is no Chromium, and none could be fetched, so that pages were tried in no browser. ***
*** Install one, or set CHROMIUM_PATH. ***

`;

function launch(executablePath: string): Promise<Browser> {
  return chromium.launch({
    executablePath,
    // Tests run as root in containers, and the pages are our own.
    args: ['--no-sandbox', '--font-render-hinting=none'],
    timeout: PAGE_PATIENCE_MS,
  });
}

/** @throws Error when CHROMIUM_PATH names no file */
function findChromium(): string | undefined {
  const named = process.env.CHROMIUM_PATH;
  if (named !== undefined) {
    if (!existsSync(named)) throw new Error(`CHROMIUM_PATH names no file: ${named}`);
    return named;
  }
  return [...USUAL_PLACES, chromium.executablePath()].find((file) => existsSync(file));
}

/** By Playwright's own installer, which lets one process after the other do it. @throws Error when that fails */
async function fetchChromium(): Promise<string> {
  process.stderr.write('no Chromium found: fetching one for the tests of pages\n');
  const cli = path.join(path.dirname(require.resolve('playwright-core/package.json')), 'cli.js');
  const installer = spawn(process.execPath, [cli, 'install', 'chromium'], {
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: FETCH_TIMEOUT_MS,
  });
  const [code] = await once(installer, 'exit');
  if (code !== 0) throw new Error('the installer of Playwright failed');
  return chromium.executablePath();
}

/** Starts it for the tests of the file. @returns what gives a new page; undefined: there is no browser */
export function useChromium(): () => Promise<Page> | undefined {
  let browser: Browser | undefined;
  before(async () => {
    browser = await launchChromium();
  });
  after(() => browser?.close());
  return () => browser && openPage(browser);
}

async function openPage(browser: Browser): Promise<Page> {
  const page = await browser.newPage();
  page.setDefaultTimeout(PAGE_PATIENCE_MS);
  return page;
}

export interface Seen {
  readonly problems: string[];
  readonly origins: Set<string>;
  readonly paths: Set<string>;
}

/** What the page says on its console, and whom it asks. */
export function watch(page: Page): Seen {
  const seen: Seen = { problems: [], origins: new Set(), paths: new Set() };
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) seen.problems.push(message.text());
  });
  page.on('pageerror', (error) => seen.problems.push(error.message));
  page.on('requestfailed', (request) => seen.problems.push(`failed: ${request.url()}`));
  page.on('request', (request) => {
    const url = new URL(request.url());
    // Pictures within the style sheet are no requests of anyone.
    if (url.protocol === 'data:') return;
    seen.origins.add(url.origin);
    seen.paths.add(url.pathname);
  });
  return seen;
}
