/**
 * The dashboard as people use it: how they get in, which pages there are, and when one has come to rest. What
 * holds of every page is measured here.
 */

import assert from 'node:assert/strict';
import type { BrowserContext, Page } from 'playwright-core';
import type { Visit } from './browser.js';
import { type Shop, type ShopInstances, TENANT } from './shop/shop.js';

export interface DashboardPage {
  /** Of its test, and of its pictures. */
  readonly name: string;
  /** Below `/ui`. */
  readonly path: string | ((shop: Shop) => string);
  /** Its heading. */
  readonly title: RegExp | string;
  /** Of its picture. */
  readonly caption: string;
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
  caption: 'A key is asked for, and kept until the tab is closed.',
};

/** Every page with something on it, in the order of the navigation. */
export const PAGES: readonly DashboardPage[] = [
  {
    name: 'overview',
    path: '/',
    title: 'Overview',
    caption: 'The overview: what fails by reason, what waits, throughput, canaries, schedules.',
  },
  {
    name: 'instances',
    path: '/instances',
    title: 'Instances',
    caption: 'Instances, narrowed by filters, and what can be done with all that match.',
  },
  {
    name: 'instance',
    path: instance('declined'),
    title: /order-fulfilment/,
    caption: 'An order that failed: why, what can be done about it, and its flow.',
  },
  {
    name: 'instance-waiting',
    path: instance('everyKind'),
    title: /onboarding/,
    caption: 'An instance that waits, with blocks of every kind: for what, and since when.',
  },
  {
    name: 'instance-timeline',
    path: instance('forEach', '/timeline'),
    title: /invoice-run/,
    caption: 'The timeline of an instance: a bar for each try, and passes side by side.',
  },
  {
    name: 'instance-data',
    path: instance('completed', '/data'),
    title: /order-fulfilment/,
    caption: 'The data of an instance: its context and what its blocks gave.',
  },
  {
    name: 'instance-logs',
    path: instance('completed', '/logs'),
    title: /order-fulfilment/,
    caption: 'What the steps of an instance logged.',
  },
  {
    name: 'instance-signals',
    path: instance('paused', '/signals'),
    title: /order-fulfilment/,
    caption: 'The signals of an instance, and what became of each.',
  },
  {
    name: 'instance-history',
    path: instance('saga', '/history'),
    title: /trip-booking/,
    caption: 'The history of an instance: every change of its state.',
  },
  {
    name: 'instance-children',
    path: instance('parent', '/children'),
    title: /gift-order/,
    caption: 'The instances that an instance started.',
  },
  {
    name: 'failures',
    path: '/failures',
    title: 'Failures',
    caption: 'Failures by their reason, each to be looked at or retried as a whole.',
  },
  {
    name: 'approvals',
    path: '/approvals',
    title: 'Approvals',
    caption: 'What people are asked, with the answers as buttons.',
  },
  {
    name: 'schedules',
    path: '/schedules',
    title: 'Schedules',
    caption: 'Schedules, and when each starts its next instance.',
  },
  {
    name: 'jobs',
    path: '/jobs',
    title: 'Bulk jobs',
    caption: 'Bulk jobs: changes of many instances, and how far each is.',
  },
  {
    name: 'sequences',
    path: '/sequences',
    title: 'Sequences',
    caption: 'Sequences, with the newest version of each.',
  },
  {
    name: 'new-sequence',
    path: '/sequences/new',
    title: /New/,
    caption: 'A sequence is written: its text is checked and drawn while one types.',
  },
  {
    name: 'sequence',
    path: sequence('order-fulfilment 2'),
    title: /order-fulfilment/,
    caption: 'One version of a sequence as a drawing.',
  },
  {
    name: 'definition',
    path: sequence('order-fulfilment 2', '/definition'),
    title: /order-fulfilment/,
    caption: 'The same version as text.',
  },
  {
    name: 'versions',
    path: sequence('order-fulfilment 2', '/versions'),
    title: /order-fulfilment/,
    caption: 'The versions of a sequence, and what differs between two of them.',
  },
  {
    name: 'start',
    path: sequence('order-fulfilment 2', '/start'),
    title: /order-fulfilment/,
    caption: 'An instance is started by a form that its input schema makes.',
  },
  {
    name: 'releases',
    path: '/releases',
    title: 'Releases',
    caption: 'Releases: drafts, canaries and those that have ended.',
  },
  {
    name: 'release',
    path: release(),
    title: /checkout/,
    caption: 'A canary: how far it is, its gates, and both versions over time.',
  },
  {
    name: 'release-changes',
    path: release('/changes'),
    title: /checkout/,
    caption: 'What the new version of a release changes.',
  },
  {
    name: 'release-evidence',
    path: release('/evidence'),
    title: /checkout/,
    caption: 'What the replay of ended runs showed before a release.',
  },
  {
    name: 'release-decisions',
    path: release('/decisions'),
    title: /checkout/,
    caption: 'Who moved a release, when and why.',
  },
  {
    name: 'workers',
    path: '/workers',
    title: /Workers/,
    caption: 'Queues: what waits in each, and whether somebody takes it.',
  },
  {
    name: 'worker-list',
    path: '/workers/list',
    title: /Workers/,
    caption: 'Workers, with their versions, and when each was last heard of.',
  },
  {
    name: 'tasks',
    path: '/workers/tasks',
    title: /Workers/,
    caption: 'The tasks of workers.',
  },
  {
    name: 'webhooks',
    path: '/webhooks',
    title: 'Webhooks',
    caption: 'Who is told of ended instances.',
  },
  {
    name: 'outbox',
    path: '/webhooks/outbox',
    title: 'Webhooks',
    caption: 'Webhooks that are not delivered yet, and why.',
  },
  {
    name: 'deliveries',
    path: '/webhooks/deliveries',
    title: 'Webhooks',
    caption: 'Deliveries of webhooks, with what became of each.',
  },
  {
    name: 'triggers',
    path: '/triggers',
    title: /Triggers/,
    caption: 'Triggers: what outside starts instances.',
  },
  {
    name: 'events',
    path: '/triggers/events',
    title: /Triggers/,
    caption: 'Events, and who took each.',
  },
  {
    name: 'keys',
    path: '/keys',
    title: /Keys/,
    caption: 'The keys of a tenant, and what each may do.',
  },
  {
    name: 'secrets',
    path: '/keys/secrets',
    title: /Keys/,
    caption: 'The secrets that steps name, none of which is ever shown.',
  },
  {
    name: 'limits',
    path: '/limits',
    title: 'Limits',
    caption: 'How fast steps and the tenant may go.',
  },
  { name: 'server', path: '/server', title: 'Server', caption: 'How the server itself is.' },
  {
    name: 'cells',
    path: '/cells',
    title: 'Cells',
    caption: 'The cells of a cluster, and the moves of tenants between them.',
  },
  {
    name: 'not-found',
    path: '/no/such/page',
    title: 'Not found',
    caption: 'An address that no page has.',
  },
];

export function addressOf({ path }: DashboardPage, shop: Shop): string {
  return typeof path === 'string' ? path : path(shop);
}

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

/** Milliseconds from the navigation to the first text on the screen. */
export function firstPaintMs(page: Page): Promise<number> {
  return page.evaluate(
    `performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Number.NaN`,
  );
}
