/** The dashboard as people use it: how they get in, and when a page has come to rest. What holds of every page is measured here. */

import assert from 'node:assert/strict';
import type { BrowserContext, Page } from 'playwright-core';
import { TENANT } from '../../scripts/dashboard/shop/shop.js';
import type { Visit } from './browser.js';

// ---------------------------------------------------------------- getting in

export interface SignedIn {
  readonly url: string;
  /** Absent where the server asks for none. */
  readonly apiKey?: string | null;
  /** Default: the shop's. A key of a tenant needs none. */
  readonly tenant?: string | null;
}

/** As if the key had been given in this tab before, so that any page can be the first. */
export async function signIn(
  context: BrowserContext,
  { apiKey, tenant = TENANT }: Omit<SignedIn, 'url'>,
): Promise<void> {
  const session = { ...(apiKey != null && { apiKey }), ...(tenant !== null && { tenant }) };
  await context.addInitScript(
    `if (sessionStorage.getItem('session') === null) sessionStorage.setItem('session', ${JSON.stringify(JSON.stringify(session))});`,
  );
}

/** Types the key, and the tenant when it is asked for. */
export async function signInByHand(
  { page }: Pick<Visit, 'page'>,
  { url, apiKey, tenant = TENANT }: SignedIn & { readonly apiKey: string },
): Promise<void> {
  await page.goto(`${url}/ui/`);
  await page.getByLabel('API key').fill(apiKey);
  await page.getByRole('button', { name: 'Sign in' }).click();
  if (tenant === null) return;
  await page.getByRole('textbox', { name: 'Tenant' }).fill(tenant);
  await page.getByRole('button', { name: 'Open' }).click();
}

/** Opens the page at this path below `/ui` and waits until it is all there. */
export async function open(page: Page, url: string, path: string, title: RegExp | string) {
  await page.goto(`${url}/ui${path}`);
  await expectPage(page, title);
}

/** The same from another page of it, without loading the dashboard again. */
export async function pushTo(page: Page, path: string, title: RegExp | string): Promise<void> {
  await page.evaluate(`history.pushState(null, '', ${JSON.stringify(`/ui${path}`)})`);
  await expectPage(page, title);
}

/** Resolves when the page with this heading is all there. */
export async function expectPage(page: Page, title: RegExp | string): Promise<void> {
  const exact = typeof title === 'string';
  await page.getByRole('heading', { level: 1, name: title, ...(exact && { exact }) }).waitFor();
  await settled(page);
}

/** Resolves when nothing on the page says that it is still loading, and it has been painted so. */
export async function settled(page: Page): Promise<void> {
  await page.waitForLoadState('load');
  await page.locator('main [aria-busy="true"]').first().waitFor({ state: 'detached' });
  await page.evaluate(
    'document.fonts.ready.then(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))))',
  );
}

// ---------------------------------------------------------------- what holds of every page

/** From now on pages of the profile note how much of them jumps. */
export async function watchLayoutShifts(context: BrowserContext): Promise<void> {
  await context.addInitScript(`
    globalThis.layoutShifts = [];
    new PerformanceObserver((list) => {
      for (const { hadRecentInput, value, sources = [] } of list.getEntries()) {
        if (hadRecentInput) continue;
        const nodes = sources.map(({ node }) => node?.outerHTML?.slice(0, 120) ?? 'a text');
        globalThis.layoutShifts.push({ value, nodes });
      }
    }).observe({ type: 'layout-shift', buffered: true });`);
}

/** What is thought good for a page that people look at: web.dev/cls. */
const LAYOUT_SHIFT_MAX = 0.1;

/** @throws AssertionError that names what jumped */
export async function expectNoLayoutShift(page: Page): Promise<void> {
  const shifts: { value: number; nodes: string[] }[] = await page.evaluate('layoutShifts');
  const sum = shifts.reduce((total, { value }) => total + value, 0);
  assert.ok(sum <= LAYOUT_SHIFT_MAX, `${sum} of ${page.url()} jumps: ${JSON.stringify(shifts)}`);
}

/** Nothing reaches over the right edge; what is wide scrolls by itself. @throws AssertionError that names it */
export async function expectNoHorizontalScroll(page: Page): Promise<void> {
  const { over, elements } = await page.evaluate<{ over: number; elements: string[] }>(`(() => {
    const root = document.scrollingElement;
    const over = root.scrollWidth - root.clientWidth;
    const elements = over <= 0 ? [] : [...document.querySelectorAll('body *')]
      .filter((element) => element.getBoundingClientRect().right > root.clientWidth + 1)
      .map((element) => element.outerHTML.slice(0, 120));
    return { over, elements: elements.slice(0, 5) };
  })()`);
  assert.ok(over <= 0, `${page.url()} is ${over} px too wide: ${elements.join('\n')}`);
}
