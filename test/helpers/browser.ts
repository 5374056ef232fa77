/**
 * Pages in a real Chromium. A test file has one browser, each of its tests a profile of its own, and whatever a page
 * complains of fails the test: errors on its console, violations of its policy, requests that fail or that go anywhere
 * but to the server it came from.
 *
 * The browser is the one of CHROMIUM_PATH, of the usual places, or of Playwright's own cache, into which it is fetched
 * when there is none. Where that fails, too, tests are skipped, and say so loudly.
 */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { after, before, type TestContext, type TestOptions, test } from 'node:test';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';

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

// ---------------------------------------------------------------- the browser

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

// ---------------------------------------------------------------- what a page complains of

export interface Complaints {
  /** From now on, what matches is no complaint. */
  allow(pattern: RegExp): void;
  /** The origins that were asked. */
  readonly origins: ReadonlySet<string>;
  /** The paths that were asked. */
  readonly paths: ReadonlySet<string>;
  /** @throws AssertionError when there are any */
  expectNone(): void;
}

/**
 * Listens to all pages of the profile.
 *
 * @param origin the only one that they may ask
 */
export function complaintsOf(context: BrowserContext, origin: string): Complaints {
  const found: string[] = [];
  const allowed: RegExp[] = [];
  const origins = new Set<string>();
  const paths = new Set<string>();
  context.on('console', (message) => {
    const { url } = message.location();
    if (['error', 'warning'].includes(message.type())) found.push(`${message.text()} (${url})`);
  });
  context.on('weberror', (error) => found.push(error.error().message));
  context.on('request', (request) => {
    const url = new URL(request.url());
    // Pictures within a style sheet, and files that the page made itself, are no requests of anyone.
    if (['data:', 'blob:'].includes(url.protocol)) return;
    origins.add(url.origin);
    paths.add(url.pathname);
    if (url.origin !== origin) found.push(`a request to ${url.origin}`);
  });
  context.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText ?? 'for no reason';
    // What is no longer wanted is given up, such as the stream of a page that is left.
    if (reason !== 'net::ERR_ABORTED') found.push(`${request.url()} failed: ${reason}`);
  });
  context.on('response', (response) => {
    const status = response.status();
    if (status >= 400) found.push(`${new URL(response.url()).pathname} answered ${status}`);
  });
  return {
    allow: (pattern) => void allowed.push(pattern),
    origins,
    paths,
    expectNone: () => {
      const left = found.filter((text) => !allowed.some((pattern) => pattern.test(text)));
      assert.deepEqual(left, []);
    },
  };
}

// ---------------------------------------------------------------- tests

/** A page of a test: Playwright's, and what a test of the dashboard needs beside it. */
export interface Visit {
  readonly page: Page;
  readonly complaints: Complaints;
  readonly context: BrowserContext;
}

export interface VisitOptions extends BrowserContextOptions {
  /** Where the server is; other origins may not be asked. */
  readonly url: string;
}

export interface Browsers {
  /** Undefined where there is none. */
  readonly browser: Browser | undefined;
  /** In a profile of its own. To be closed, unless it is given a test, with which it ends. */
  visit(options: VisitOptions): Promise<Visit>;
  /**
   * A test with a page, which has nothing to complain of at its end. It is skipped where there is no browser.
   *
   * @param options asked when the test begins
   */
  test(
    name: string,
    options: (() => VisitOptions) | VisitOptions,
    run: (visit: Visit, t: TestContext) => Promise<void>,
    more?: TestOptions,
  ): void;
}

/** The browser of a test file: it is started before the first and closed after the last test. */
export function useBrowser(): Browsers {
  let browser: Browser | undefined;
  before(async () => {
    browser = await launchChromium();
  });
  after(() => browser?.close());
  const visit = async ({ url, ...options }: VisitOptions): Promise<Visit> => {
    assert.ok(browser);
    const context = await browser.newContext({
      locale: 'en-GB',
      timezoneId: 'Europe/Berlin',
      reducedMotion: 'reduce',
      ...options,
    });
    context.setDefaultTimeout(PAGE_PATIENCE_MS);
    return { complaints: complaintsOf(context, url), context, page: await context.newPage() };
  };
  return {
    get browser() {
      return browser;
    },
    visit,
    test: (name, options, run, more = {}) =>
      void test(name, more, async (t) => {
        if (browser === undefined) return t.skip('no Chromium; set CHROMIUM_PATH');
        const visited = await visit(typeof options === 'function' ? options() : options);
        try {
          await run(visited, t);
          visited.complaints.expectNone();
        } catch (error) {
          throw await withPage(error, visited.page);
        } finally {
          await visited.context.close();
        }
      }),
  };
}

/** The error, with what a person would have seen. */
async function withPage(error: unknown, page: Page): Promise<unknown> {
  if (!(error instanceof Error) || page.isClosed()) return error;
  const seen = await page
    .locator('body')
    .ariaSnapshot({ timeout: 1_000 })
    .catch(() => 'nothing');
  const there = `at ${page.url()} there was:\n${seen.slice(0, SEEN_LENGTH_MAX)}`;
  return new Error(`${error.message}\n\n${there}`, { cause: error });
}

const SEEN_LENGTH_MAX = 6_000;

// ---------------------------------------------------------------- accessibility

interface AxeFinding {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly {
    readonly target: readonly unknown[];
    readonly failureSummary?: string;
  }[];
}

const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/**
 * Nothing that axe finds wrong: the rules of WCAG 2.2 AA, and its best practices.
 *
 * @param rules only these, such as `color-contrast`
 * @throws AssertionError that names what is wrong, and where
 */
export async function expectNoAxeFindings(page: Page, rules?: readonly string[]): Promise<void> {
  // Evaluated by the debugger: the page's policy lets in no script of anybody else.
  await page.evaluate(AXE);
  const findings = await page.evaluate(async (only) => {
    const { axe } = globalThis as unknown as { axe: { run(options: object): Promise<Results> } };
    interface Results {
      readonly violations: readonly AxeFinding[];
    }
    const options = only === undefined ? {} : { runOnly: { type: 'rule', values: only } };
    return (await axe.run({ ...options, resultTypes: ['violations'] })).violations;
  }, rules);
  const told = findings.flatMap(({ id, help, nodes }) =>
    nodes.map(
      ({ target, failureSummary = '' }) => `${id}: ${help}: ${target.join(' ')}: ${failureSummary}`,
    ),
  );
  assert.deepEqual(told, [], `axe has findings at ${page.url()}`);
}
