/**
 * Pages in a real Chromium. A test file has one browser, each of its tests a profile of its own, and whatever a page
 * complains of fails the test: errors on its console, violations of its policy, requests that fail or that go anywhere
 * but to the server it came from.
 */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, type TestContext, test } from 'node:test';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { launchChromium, PAGE_PATIENCE_MS } from './chromium.js';

const require = createRequire(import.meta.url);

// ---------------------------------------------------------------- what a page complains of

/** On a busy machine a tenant or everybody is asked to wait, which pages do. */
const ASKED_TO_WAIT = /answered (?:429|503)$|status of (?:429|503) /;

export interface Complaints {
  /** From now on, what matches is no complaint. */
  allow(pattern: RegExp): void;
  /** The origins that were asked. */
  readonly origins: ReadonlySet<string>;
  /** The paths that were asked. */
  readonly paths: ReadonlySet<string>;
  /** @throws AssertionError when there were any since the last call */
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
      const expected = [ASKED_TO_WAIT, ...allowed];
      const left = found.splice(0).filter((text) => !expected.some((one) => one.test(text)));
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
   * Makes tests with a page, which has nothing to complain of at their end. They are skipped where there is no browser.
   *
   * @param options asked when a test begins
   */
  at(options: () => VisitOptions | Promise<VisitOptions>): BrowserTest;
  /**
   * The same for tests that leave nothing behind in their page: it stays open for the next one, since a profile and
   * the first load cost more than most of what is tried.
   *
   * @param enter what is done once in each page, such as signing in
   */
  tabs(options: () => VisitOptions, enter: (visit: Visit) => Promise<void>): BrowserTest;
}

type BrowserTest = (name: string, run: (visit: Visit) => Promise<void>) => void;

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
  /** Runs with a page, which is given back when there was nothing wrong. */
  const run = async (
    t: TestContext,
    take: () => Promise<Visit>,
    use: (visit: Visit) => Promise<void>,
    giveBack?: (visit: Visit) => void,
  ) => {
    if (browser === undefined) return t.skip('no Chromium; set CHROMIUM_PATH');
    const visited = await take();
    let isGood = false;
    try {
      await use(visited);
      visited.complaints.expectNone();
      isGood = true;
    } catch (error) {
      throw await withPage(error, visited.page);
    } finally {
      if (isGood && giveBack !== undefined) giveBack(visited);
      else {
        // What is being asked for by a route is not awaited, and its failure is nobody's.
        await visited.page.unrouteAll({ behavior: 'ignoreErrors' });
        await visited.context.close();
      }
    }
  };
  return {
    get browser() {
      return browser;
    },
    visit,
    at: (options) => (name, use) =>
      void test(name, (t) => run(t, async () => visit(await options()), use)),
    tabs: (options, enter) => {
      const idle: Visit[] = [];
      const take = async () => {
        const open = idle.pop();
        if (open !== undefined) return open;
        const opened = await visit(options());
        await enter(opened);
        return opened;
      };
      return (name, use) => void test(name, (t) => run(t, take, use, (it) => idle.push(it)));
    },
  };
}

/** The error, with what a person would have seen. */
async function withPage(error: unknown, page: Page): Promise<unknown> {
  if (!(error instanceof Error) || page.isClosed()) return error;
  const seen = await page
    .locator('main')
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
 * @param rules only these
 * @throws AssertionError that names what is wrong, and where
 */
export async function expectNoAxeFindings(page: Page, rules?: readonly string[]): Promise<void> {
  // Evaluated by the debugger: the page's policy lets in no script of anybody else. It is large, and once is enough.
  if (await page.evaluate('!globalThis.axe')) await page.evaluate(AXE);
  const findings = await page.evaluate(async (only) => {
    const { axe } = globalThis as unknown as { axe: { run(options: object): Promise<Results> } };
    type Results = { readonly violations: readonly AxeFinding[] };
    const runOnly = only && { runOnly: [...only] };
    return (await axe.run({ resultTypes: ['violations'], ...runOnly })).violations;
  }, rules);
  const told = findings.flatMap(({ id, help, nodes }) =>
    nodes.map(
      ({ target, failureSummary = '' }) => `${id}: ${help}: ${target.join(' ')}: ${failureSummary}`,
    ),
  );
  assert.deepEqual(told, [], `axe has findings at ${page.url()}`);
}

/** From now on the engine seems to refuse these requests of the page. */
export const refuse = (page: Page, path: string, status: number, code: string, error: string) =>
  page.route(path, (route) =>
    route.fulfill({
      status,
      headers: { 'x-request-id': 'sample', 'x-error-code': code },
      json: { error },
    }),
  );
