/**
 * A real browser for tests of what is served to people.
 * The browser is the one of CHROMIUM_PATH, of the usual places, or of Playwright's own cache, into which it is fetched
 * when there is none. Where that fails, too, such tests are left out, and say so loudly.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { type Browser, chromium } from 'playwright-core';

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
