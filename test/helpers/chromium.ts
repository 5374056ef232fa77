/**
 * A real browser for tests of what is served to people, and what a page of it does: whom it asks, and what its
 * console says. Without Chromium such tests are left out, and say so.
 */

import { existsSync } from 'node:fs';
import { after, before } from 'node:test';
import { type Browser, chromium, type Page } from 'playwright-core';

/** Rendering takes seconds on a busy machine; a page that does not come fails the test all the same. */
const PATIENCE_MS = 300_000;

const CHROME = [
  process.env.CHROME_PATH ?? '',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find((file) => file !== '' && existsSync(file));

/** Starts it for the tests of the file. @returns what gives a new page; undefined: there is no browser */
export function useChromium(): () => Promise<Page> | undefined {
  let browser: Browser | undefined;
  before(async () => {
    if (CHROME === undefined) {
      process.stderr.write(
        'SKIPPED: no Chromium found, so the pages were tried in no browser; ' +
          'install one or set CHROME_PATH\n',
      );
      return;
    }
    browser = await chromium.launch({
      executablePath: CHROME,
      args: ['--no-sandbox'],
      timeout: PATIENCE_MS,
    });
  });
  after(() => browser?.close());
  return () => browser && openPage(browser);
}

async function openPage(browser: Browser): Promise<Page> {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
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
