/**
 * The dashboard as people use it: how they get in, which pages there are, and when one has come to rest. What
 * holds of every page is measured here.
 */

import assert from 'node:assert/strict';
import type { BrowserContext, Page } from 'playwright-core';
import { type Shop, type ShopInstances, TENANT } from '../../scripts/dashboard/shop/shop.js';
import type { Visit } from './browser.js';

export interface DashboardPage {
  /** Of its test, and of its pictures. */
  readonly name: string;
  /** Below `/ui`. */
  readonly path: string | ((shop: Shop) => string);
  /** Its heading. */
  readonly title: RegExp | string;
  /** A text on it when the shop is open. */
  readonly shows: RegExp | string;
}

const instance = (name: keyof ShopInstances, tab = '') => {
  return ({ instances }: Shop) => `/instances/${[instances[name]].flat()[0]}${tab}`;
};

const sequence =
  (name: string, tab = '') =>
  ({ sequences }: Shop) =>
    `/sequences/${sequences.get(name)}${tab}`;

const release = (tab = '') => {
  return ({ canary }: Shop) => `/releases/${canary.id}${tab}`;
};

/** Where a key is asked for: what is shown to nobody in particular. */
export const SIGN_IN: DashboardPage = {
  name: 'sign-in',
  path: '/',
  title: 'Sign in',
  shows: 'API key',
};

const ORDERS = /order-fulfilment/;
const ORDER_2 = 'order-fulfilment 2';

/** Every page with something on it, in the order of the navigation, and a text that it then shows. */
export const PAGES: readonly DashboardPage[] = (
  [
    ['overview', '/', 'Overview', 'the card was declined'],
    ['instances', '/instances', 'Instances', /^cohort_key: visitor-/],
    ['instance', instance('declined'), ORDERS, 'the card was declined'],
    ['instance-waiting', instance('everyKind'), /onboarding/, /confirmed by phone\?/],
    ['instance-timeline', instance('forEach', '/timeline'), /invoice-run/, 'item 24'],
    ['instance-data', instance('completed', '/data'), ORDERS, 'C-order-1001'],
    ['instance-logs', instance('completed', '/logs'), ORDERS, 'order order-1001 is closed'],
    ['instance-signals', instance('paused', '/signals'), ORDERS, 'applied'],
    ['instance-history', instance('saga', '/history'), /trip-booking/, 'Saga compensated'],
    ['instance-children', instance('parent', '/children'), /gift-order/, /^the card was declined$/],
    ['failures', '/failures', 'Failures', 'the bank does not answer'],
    ['approvals', '/approvals', 'Approvals', /^Sell yacht to /],
    ['schedules', '/schedules', 'Schedules', '0 30 2 * * Mon-Fri *'],
    ['jobs', '/jobs', 'Bulk jobs', 'No bulk jobs'],
    ['sequences', '/sequences', 'Sequences', 'bank-transfer'],
    ['new-sequence', '/sequences/new', /New/, 'It can be stored.'],
    ['sequence', sequence(ORDER_2), ORDERS, 'charge_card'],
    ['definition', sequence(ORDER_2, '/definition'), ORDERS, '"namespace"'],
    ['versions', sequence(ORDER_2, '/versions'), ORDERS, '8 blocks added'],
    ['start', sequence(ORDER_2, '/start'), ORDERS, 'Order number'],
    ['releases', '/releases', 'Releases', /^rolled back$/],
    ['release', release(), /checkout/, /is within 15\.56 %/],
    ['release-changes', release('/changes'), /checkout/, '1 block added'],
    ['release-evidence', release('/evidence'), /checkout/, 'No replay yet'],
    ['release-decisions', release('/decisions'), /checkout/, 'canary at 25% of new instances'],
    ['workers', '/workers', /Workers/, 'render_report'],
    ['worker-list', '/workers/list', /Workers/, 'warehouse-1'],
    ['tasks', '/workers/tasks', /Workers/, 'parcel_status'],
    ['webhooks', '/webhooks', 'Webhooks', /\/orders-down$/],
    ['outbox', '/webhooks/outbox', 'Webhooks', 'the receiver is being updated'],
    ['deliveries', '/webhooks/deliveries', 'Webhooks', /\/orders-down$/],
    ['triggers', '/triggers', /Triggers/, 'refund.asked'],
    ['events', '/triggers/events', /Triggers/, 'newsletter.wanted'],
    ['keys', '/keys', /Keys/, 'old back office'],
    ['secrets', '/keys/secrets', /Keys/, 'of the bank that charges cards'],
    ['limits', '/limits', 'Limits', 'newsletter'],
    ['server', '/server', 'Server', 'It owns the database, and reaches it.'],
    ['cells', '/cells', 'Cells', 'europe_1'],
    ['not-found', '/no/such/page', 'Not found', 'There is no page at this address'],
  ] as const
).map(([name, path, title, shows]) => ({ name, path, title, shows }));

export const addressOf = ({ path }: DashboardPage, shop: Shop): string =>
  typeof path === 'string' ? path : path(shop);

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
