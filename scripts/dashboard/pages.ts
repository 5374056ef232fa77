/** The pages of the dashboard with content on each, for their pictures and for the tests of all pages. */

import type { Shop, ShopInstances } from './shop/shop.js';

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
    ['instance-queued', instance('queued'), /customs/, /waits for a slot of/],
    ['instance-timeline', instance('forEach', '/timeline'), /invoice-run/, 'iteration 24'],
    ['instance-data', instance('completed', '/data'), ORDERS, 'C-order-1001'],
    ['instance-logs', instance('completed', '/logs'), ORDERS, 'order order-1001 is closed'],
    ['instance-signals', instance('paused', '/signals'), ORDERS, 'applied'],
    ['instance-history', instance('saga', '/history'), /trip-booking/, 'Saga compensated'],
    ['instance-children', instance('parent', '/children'), /gift-order/, /^the card was declined$/],
    ['instance-compare', instance('declined', '/compare'), ORDERS, 'first difference'],
    ['failures', '/failures', 'Failures', 'the bank does not answer'],
    ['logs', '/logs', 'Logs', 'how was it?'],
    ['approvals', '/approvals', 'Approvals', /^Sell yacht to /],
    ['schedules', '/schedules', 'Schedules', '0 30 2 * * Mon-Fri *'],
    ['pending-starts', '/pending-starts', 'Pending starts', 'Nordholz'],
    ['jobs', '/jobs', 'Bulk jobs', /^2 retried/],
    ['sequences', '/sequences', 'Sequences', 'bank-transfer'],
    ['new-sequence', '/sequences/new', /New/, 'It can be published.'],
    ['sequence', sequence(ORDER_2), ORDERS, 'charge_card'],
    ['sequence-limits', sequence('customs 1'), /customs/, /further ones wait for a free slot/],
    ['definition', sequence(ORDER_2, '/definition'), ORDERS, '"namespace"'],
    ['versions', sequence(ORDER_2, '/versions'), ORDERS, '8 blocks added'],
    ['versions-canary', sequence('checkout 2', '/versions'), /checkout/, '25 %'],
    ['start', sequence(ORDER_2, '/start'), ORDERS, 'Order number'],
    ['releases', '/releases', 'Releases', /^rolled back$/],
    ['release', release(), /checkout/, /is within 15\.56 %/],
    ['release-changes', release('/changes'), /checkout/, '1 block added'],
    ['release-evidence', release('/evidence'), /checkout/, 'No replay yet'],
    ['release-decisions', release('/decisions'), /checkout/, 'canary at 25% of new instances'],
    ['workers', '/workers', /Workers/, 'render_report'],
    ['queue', '/workers?handler=parcel_status', /Workers/, 'Start a worker'],
    ['worker-list', '/workers/list', /Workers/, 'warehouse-1'],
    ['endpoints', '/workers/endpoints', /Workers/, 'couriers'],
    ['tasks', '/workers/tasks', /Workers/, 'parcel_status'],
    ['webhooks', '/webhooks', 'Webhooks', /\/orders-down$/],
    ['outbox', '/webhooks/outbox', 'Webhooks', 'the receiver is being updated'],
    ['deliveries', '/webhooks/deliveries', 'Webhooks', /\/orders-down$/],
    ['triggers', '/triggers', /Triggers/, 'verification: Stripe'],
    ['events', '/triggers/events', /Triggers/, 'newsletter.wanted'],
    ['keys', '/keys', /Keys/, 'old back office'],
    ['secrets', '/keys/secrets', /Keys/, 'of the bank that charges cards'],
    ['limits', '/limits', 'Limits', 'newsletter'],
    ['activity', '/activity', 'Activity', /^started the canary of release .* of checkout/],
    [
      'server',
      '/server',
      'Server',
      'Ready means that the server owns the database and can reach it.',
    ],
    ['cells', '/cells', 'Cells', 'europe_1'],
    ['not-found', '/no/such/page', 'Page not found', 'No page has this address'],
  ] as const
).map(([name, path, title, shows]) => ({ name, path, title, shows }));

export const addressOf = ({ path }: DashboardPage, shop: Shop): string =>
  typeof path === 'string' ? path : path(shop);
