/**
 * A tenant that has something of everything: `openShop` fills a running server by its API, with real workers, in a
 * few seconds and always in the same way. What pages show, tests look for and pictures are taken of is here:
 * instances in every state, failures of several reasons, people who are asked, a canary under way, schedules,
 * webhooks that do not arrive. A second tenant has the same names, and nobody who looks at the first one may see it.
 *
 * The server needs `SHOP_ENV`, since receivers of webhooks run on this machine and credentials are sealed.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { bucketOf, cohortSeed } from '../../../actors/release/core/routes.js';
import { Client, type CreateInstance, type Release } from '../../../client/src/index.js';
import { type Receiver, startReceiver, statusOf } from '../../../test/helpers/receiver.js';
import { BILLING, ORDER, SEQUENCES, SHOP } from './sequences.js';
import { CARDS, startWorkers } from './workers.js';

export const SHOP_ENV = {
  ENGINE_ALLOW_INTERNAL_URLS: 'true',
  ENGINE_ENCRYPTION_KEY: 'a7'.repeat(32),
  ENGINE_UI_LINKS: JSON.stringify([
    { label: 'Logs', url: 'https://logs.example/?q={instance_id}' },
    { label: 'Trace', url: 'https://traces.example/{trace_id}' },
    {
      label: 'Logs of the step',
      url: 'https://logs.example/?q={instance_id}+{block_id}',
      on: 'step',
    },
  ]),
} as const;

export const TENANT = 'acme';
/** The customer of everything that the neighbour has. */
export const NEIGHBOUR_CUSTOMER = 'eve@acme-eu.example';

/** What a failed instance of the shop says, by the reason. */
export const REASONS = {
  declined: 'the card was declined',
  deadBank: 'the bank does not answer',
  noAmount: 'the amount is missing',
} as const;

export interface ShopOptions {
  readonly url: string;
  /** The root key; null of a server that asks for none. */
  readonly apiKey: string | null;
  /** Default: `acme`. On a server with other shops it needs a name of its own. */
  readonly tenant?: string;
}

/** Ids by what is so about them. */
export interface ShopInstances {
  /** Declined cards, the oldest first. */
  readonly declined: readonly string[];
  readonly deadBank: string;
  readonly completed: string;
  /** Orders that somebody has to decide on, the oldest first. */
  readonly asked: readonly string[];
  /** A worker has its task, and goes on having it. */
  readonly running: string;
  readonly paused: string;
  readonly cancelled: string;
  /** Waits for an event in version 1; version 2 takes it over, version 3 cannot. */
  readonly migratable: string;
  /** Has run every kind of block, and waits in a race. */
  readonly everyKind: string;
  readonly loop: string;
  readonly forEach: string;
  readonly parent: string;
  readonly saga: string;
  /** No worker serves its handler. */
  readonly starving: string;
  /** Waits for the slot of one whose endpoint is paused. */
  readonly queued: string;
}

export interface ShopKeys {
  readonly operator: string;
  readonly auditor: string;
  readonly approver: string;
  readonly publisher: string;
  readonly starter: string;
  readonly worker: string;
  /** An operator of the other tenant. */
  readonly neighbour: string;
}

export interface Shop {
  readonly tenant: string;
  /** The name of the second tenant, which begins with that of the first. */
  readonly neighbour: string;
  /** As the root key, for the tenant. */
  readonly client: Client;
  readonly instances: ShopInstances;
  /** Secrets by what they may do. */
  readonly keys: ShopKeys;
  /** Under way with gates that pass. */
  readonly canary: Release;
  /** Ids by `name version`, such as `checkout 2`. */
  readonly sequences: ReadonlyMap<string, string>;
  /** One more order. Resolves with its id. */
  order(data: object): Promise<string>;
  /** Resolves when the instance is in this state. */
  until(id: string, state: string): Promise<void>;
  /** Ends the workers and the receiver. */
  stop(): Promise<void>;
}

/** @throws Error when something does not come to be as it should */
export async function openShop({ url, apiKey, tenant = TENANT }: ShopOptions): Promise<Shop> {
  const neighbour = `${tenant}-eu`;
  const clientOf = (name: string) =>
    new Client({ url, apiKey: apiKey ?? undefined, tenant: name, namespace: SHOP });
  const client = clientOf(tenant);
  const receiver = await startReceiver();
  receiver.answer('/orders-down', statusOf(503, 'the receiver is being updated'));
  const sequences = await storeSequences(client);
  const settings = keepSettings(client, sequences, tenant);
  await Promise.all([
    subscribe(client, receiver),
    settings,
    serveEndpoints(client, receiver),
    openNeighbour(clientOf(neighbour)),
  ]);
  const keys = await mintKeys(client, tenant, neighbour);
  const by = (key: keyof ShopKeys) =>
    new Client({ url, apiKey: apiKey === null ? undefined : keys[key], tenant });
  const workers = await startWorkers(by('worker'));
  const run = runner(client, sequences);
  const instances = await runInstances(client, run, by('operator'));
  const canary = await release(client, sequences, by('publisher'));
  return {
    tenant,
    neighbour,
    client,
    instances,
    keys,
    canary,
    sequences,
    order: (data) => run('order-fulfilment 2', data),
    until: (id, state) => until(client, id, state),
    stop: async () => {
      await workers.stop();
      receiver.stop();
    },
  };
}

// ---------------------------------------------------------------- what does not run

async function storeSequences(client: Client): Promise<ReadonlyMap<string, string>> {
  const ids = new Map<string, string>();
  for (const sequence of SEQUENCES) {
    const { id } = await client.sequences.create(sequence);
    ids.set(`${sequence.name} ${sequence.version}`, id);
  }
  return ids;
}

async function subscribe(client: Client, receiver: Receiver): Promise<void> {
  await client.webhooks.subscribe({ url: receiver.url('/orders') });
  await client.webhooks.subscribe({
    url: receiver.url('/orders-down'),
    events: ['instance.failed'],
  });
}

/** Nothing listens at the address of `customs`, so that it is paused. */
async function serveEndpoints(client: Client, receiver: Receiver): Promise<void> {
  const secret = 'whsec_c29tZSByYW5kb20gYnl0ZXMgb2YgdGhlIHNob3A=';
  await client.workerEndpoints.put('couriers', {
    ...{ handlers: ['book_courier'], url: receiver.url('/couriers'), secret },
  });
  await client.workerEndpoints.put('customs', {
    ...{ handlers: ['declare_customs'], url: 'http://127.0.0.1:9/tasks', secret, concurrency: 2 },
  });
}

async function keepSettings(
  client: Client,
  sequences: ReadonlyMap<string, string>,
  tenant: string,
): Promise<void> {
  // Slugs are unique across tenants.
  const slug = (name: string) => (tenant === TENANT ? name : `${name}-${tenant}`);
  const report = { sequence: 'monthly-report', namespace: BILLING, timezone: 'Europe/Berlin' };
  const context = { data: { month: 'the last one' } };
  await client.cron.create({ ...report, cron_expr: '0 0 6 1 * * *', context });
  await client.cron.create({
    sequence: 'stock-count',
    namespace: BILLING,
    cron_expr: '0 30 2 * * Mon-Fri *',
    timezone: 'America/New_York',
    overlap_policy: 'skip',
    priority: 'low',
  });
  await client.cron.create({
    sequence_id: sequences.get('invoice-run 1'),
    namespace: BILLING,
    cron_expr: '@monthly',
    enabled: false,
  });
  await client.triggers.create({
    slug: slug('orders-in'),
    namespace: SHOP,
    sequence_name: ORDER,
    secret: 'correct horse battery staple',
  });
  await client.triggers.create({
    slug: slug('stripe-in'),
    publish: { event: 'stripe.{{ body.type }}', key: '{{ body.data.object.metadata.order }}' },
    verify: { scheme: 'stripe', secret: 'whsec_of_the_payments' },
  });
  await client.triggers.create({
    slug: slug('on-refund-asked'),
    namespace: BILLING,
    sequence_name: 'bank-transfer',
    trigger_type: 'event',
    config: { event_name: 'refund.asked' },
    enabled: false,
  });
  await client.credentials.create({
    id: 'bank-api',
    value: 'what the bank knows us by',
    description: 'of the bank that charges cards',
  });
  const expires_at = '2099-01-01T00:00:00Z';
  const relay = { id: 'mail-relay', kind: 'basic', value: 'shop:secret', expires_at } as const;
  await client.credentials.create(relay);
  const wanted = { event_name: 'newsletter.wanted', producer_event_id: 'form-17' };
  await client.events.send({ ...wanted, payload: { by: 'zoe@shop.example' } });
  await client.rateLimits.put('bank', { max_count: 2, window_seconds: 3_600 });
  await client.rateLimits.put('bank:*', { max_count: 5, window_seconds: 60 });
  await client.rateLimits.put('newsletter', { max_count: 100, window_seconds: 60 });
}

async function mintKeys(client: Client, tenant: string, neighbour: string): Promise<ShopKeys> {
  const mint = async (
    name: string,
    capability: Exclude<keyof ShopKeys, 'neighbour'>,
    tenant_id = tenant,
    groups: readonly string[] = [],
  ) => (await client.apiKeys.mint({ tenant_id, name, capabilities: [capability], groups })).secret;
  const old = { tenant_id: tenant, name: 'old back office' };
  const revoked = await client.apiKeys.mint({ ...old, capabilities: ['operator', 'secrets'] });
  await client.apiKeys.revoke(revoked.id);
  return {
    operator: await mint('night shift', 'operator'),
    auditor: await mint('audit', 'auditor'),
    approver: await mint('sales desk', 'approver', tenant, ['sales']),
    publisher: await mint('build server', 'publisher'),
    starter: await mint('web shop', 'starter'),
    worker: await mint('workers', 'worker'),
    neighbour: await mint('night shift', 'operator', neighbour),
  };
}

/** The same order numbers and reasons, of another customer. */
async function openNeighbour(client: Client): Promise<void> {
  const run = runner(client, await storeSequences(client));
  const customer = NEIGHBOUR_CUSTOMER;
  const failed = await run('order-fulfilment 2', { order: 'order-1003', customer });
  await run('order-fulfilment 2', { order: 'order-1004', customer, item: 'yacht', amount: 90_000 });
  await run('subscription 1', { subscription: 'S-1', customer });
  await until(client, failed, 'failed');
}

// ---------------------------------------------------------------- what runs

type Run = (sequence: string, data: object, more?: Partial<CreateInstance>) => Promise<string>;

function runner(client: Client, sequences: ReadonlyMap<string, string>): Run {
  return async (sequence, data, more = {}) => {
    const [name] = sequence.split(' ');
    const { namespace } = SEQUENCES.find((stored) => stored.name === name) ?? {};
    const { customer } = data as { customer?: string };
    const { id } = await client.instances.create({
      namespace,
      sequence_id: sequences.get(sequence),
      context: { data },
      metadata: { ...(customer === undefined ? {} : { customer }), channel: 'web' },
      ...more,
    });
    return id;
  };
}

const CUSTOMERS = ['ada', 'bob', 'cid', 'dee', 'eli', 'fay'].map((name) => `${name}@shop.example`);
const ITEMS = ['lamp', 'desk', 'chair', 'shelf'];

const orderOf = (number: number, card: string, more: object = {}) => ({
  order: `order-${number}`,
  customer: CUSTOMERS[number % CUSTOMERS.length],
  item: ITEMS[number % ITEMS.length],
  amount: 20 + ((number * 37) % 400),
  card,
  ...more,
});

const DAY_MS = 86_400_000;
const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();

/** @param person who pauses, cancels and retries */
async function runInstances(client: Client, run: Run, person: Client): Promise<ShopInstances> {
  let number = 1_000;
  const order = (card: string, more: object = {}, of: Partial<CreateInstance> = {}) => {
    number += 1;
    return run('order-fulfilment 2', orderOf(number, card, more), of);
  };
  const orders = async (count: number, card: string, more: object = {}) => {
    const ids: string[] = [];
    for (let at = 0; at < count; at++) ids.push(await order(card, more));
    return ids;
  };
  const completed = await orders(24, CARDS.good);
  const declined = await orders(6, CARDS.declined);
  const deadBank = await orders(3, CARDS.deadBank);
  const failed = [
    ...declined,
    ...deadBank,
    ...(await orders(2, CARDS.good, { amount: 0 })),
    await run('gift-order 1', { order: 'gift-1', customer: CUSTOMERS[0], card: CARDS.declined }),
    await run('trip-booking 1', { city: 'Rome', customer: CUSTOMERS[1] }),
    await run('fraud-check 1', { order: 'order-1001' }),
    await run('tax-export 1', {}),
    await run('tax-lookup 1', {}),
    await run('stock-count 1', {}, { timeout: 100 }),
  ];
  const slow = await orders(4, CARDS.slowBank);
  const ended = [...completed, ...slow, await order(CARDS.good, { item: 'mirror' })];
  const loop = await run('parcel-tracking 1', { parcel: 'P-7', status: 'new' });
  const customers = Array.from({ length: 24 }, (_, at) => `customer-${at + 1}@shop.example`);
  const forEach = await run('invoice-run 1', { customers });
  const asked = await orders(4, CARDS.good, { item: 'yacht', amount: 25_000 });
  const running = await order(CARDS.thinking, {}, { priority: 'high' });
  const everyKind = await run('onboarding 1', {
    customer: CUSTOMERS[2],
    gifts: ['mug', 'pen', 'bag'],
    reminders: 2,
    city: 'Rome',
    plan: 'pro',
  });
  const subscriptions = await Promise.all(
    [1, 2, 3].map((n) =>
      run('subscription 1', { subscription: `S-${n}`, customer: CUSTOMERS[n], until: '2031' }),
    ),
  );
  const reports = await Promise.all(
    ['May', 'June', 'July'].map((month) => run('monthly-report 1', { month })),
  );
  // Of a limit of two in an hour the third has to wait.
  for (const amount of [10, 20, 30]) await run('bank-transfer 1', { amount });
  const slots = { concurrency_key: 'warehouse-7', max_concurrency: 1 };
  const counting = await run('stock-count 1', {}, slots);
  const nextCount = await run('stock-count 1', {}, slots);
  const [declaring, queued] = [
    await run('customs 1', { order: 'order-1001', warehouse: 'Hamburg' }),
    await run('customs 1', { order: 'order-1002', warehouse: 'Hamburg' }),
  ];
  const booked = await run('courier 1', { parcel: 'P-7' });
  for (const item of ['lamp', 'lamp', 'desk', 'lamp']) await run('search-index 1', { item });
  for (const item of ITEMS) await run('supplier-order 1', { supplier: 'Nordholz', item });
  const paused = await order(CARDS.good, { item: 'yacht', amount: 12_000 });
  const cancelled = await order(CARDS.good, { item: 'yacht', amount: 13_000 });
  await order(CARDS.good, {}, { next_fire_at: inDays(1) });
  await order(CARDS.good, {}, { next_fire_at: inDays(3), priority: 'low' });

  const all = (ids: readonly string[], state: string) =>
    Promise.all(ids.map((id) => until(client, id, state)));
  await all([...asked, paused, cancelled, everyKind, ...subscriptions, ...reports], 'waiting');
  await person.instances.signal(paused, { signal_type: 'pause' });
  await person.instances.signal(cancelled, { signal_type: 'cancel' });
  await all([...ended, loop, forEach, booked], 'completed');
  await all(failed, 'failed');
  const ids = deadBank.slice(1);
  await person.instances.batchAction({ filter: { ids }, action: 'retry' });
  await all(ids, 'failed');
  await all([paused], 'paused');
  await all([cancelled], 'cancelled');
  await all([counting], 'running');
  await all([declaring], 'waiting');
  await all([nextCount, queued], 'scheduled');
  return {
    declined,
    deadBank: first(deadBank),
    completed: first(completed),
    asked,
    running,
    paused,
    cancelled,
    migratable: first(subscriptions),
    everyKind,
    loop,
    forEach,
    parent: failed[declined.length + deadBank.length + 2] as string,
    saga: failed[declined.length + deadBank.length + 3] as string,
    starving: first(reports),
    queued,
  };
}

// ---------------------------------------------------------------- releases

/** Resolves with the one under way; others are promoted, rolled back by a gate, and a draft. */
/** @param publisher who decides about releases */
async function release(
  client: Client,
  ids: ReadonlyMap<string, string>,
  publisher: Client,
): Promise<Release> {
  const create = (name: string, from: number, to: number, gates: Release['gates'] = []) =>
    publisher.releases.create({
      baseline_sequence_id: ids.get(`${name} ${from}`) ?? '',
      candidate_sequence_id: ids.get(`${name} ${to}`) ?? '',
      gates,
    });
  const canary = async (started: Promise<Release>, percent: number) => {
    const { id } = await started;
    await publisher.releases.validate(id, { skip: true });
    return publisher.releases.canary(id, { percent });
  };
  await publisher.releases.promote((await canary(create(ORDER, 1, 2), 100)).id);
  await create(ORDER, 2, 3);

  const gates: Release['gates'] = [
    { metric: 'error_rate', max_regression: 0.1, min_sample: 10 },
    { metric: 'cancel_rate', max_regression: 0.2, min_sample: 10 },
  ];
  const bad = await canary(create('checkout', 1, 3, gates.slice(0, 1)), 50);
  await checkouts(client, bad, 'baseline', 12, 0);
  await checkouts(client, bad, 'candidate', 12, 6);
  await eventually(async () => {
    const { state } = await client.releases.get(bad.id);
    if (state !== 'rolled_back') throw new Error(`the release of a bad version is ${state}`);
  });

  const good = await canary(create('checkout', 1, 2, gates), 25);
  await checkouts(client, good, 'baseline', 36, 2);
  await checkouts(client, good, 'candidate', 12, 0);
  return good;
}

/** So many runs of this side that have ended, some of them in failure. */
async function checkouts(
  client: Client,
  { id, baseline_sequence_id, canary_percent }: Release,
  variant: 'baseline' | 'candidate',
  count: number,
  failures: number,
): Promise<void> {
  const seed = cohortSeed(id);
  const keys: string[] = [];
  for (let at = 1; keys.length < count; at++) {
    const isCandidate = bucketOf(seed, `visitor-${at}`) < canary_percent;
    if (isCandidate === (variant === 'candidate')) keys.push(`visitor-${at}`);
  }
  const ids = await Promise.all(
    keys.map(async (cohort_key, at) => {
      const created = await client.instances.create({
        sequence_id: baseline_sequence_id,
        metadata: { cohort_key },
        context: { data: { amount: 10 + at, end: at < failures ? 'failed' : 'completed' } },
      });
      return created.id;
    }),
  );
  await Promise.all(
    ids.map((instance, at) => until(client, instance, at < failures ? 'failed' : 'completed')),
  );
}

// ---------------------------------------------------------------- waiting

const EVENTUALLY_MS = 120_000;
const LOOK_EVERY_MS = 20;

async function until(client: Client, id: string, wanted: string): Promise<void> {
  await eventually(async () => {
    const { state, failure } = await client.instances.get(id);
    if (state !== wanted) {
      throw new Error(`instance ${id} is ${state}, not ${wanted}: ${JSON.stringify(failure)}`);
    }
  });
}

async function eventually(attempt: () => Promise<void>): Promise<void> {
  const deadline = performance.now() + EVENTUALLY_MS;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
    await pause(LOOK_EVERY_MS);
  }
}

function first(ids: readonly string[]): string {
  const [id] = ids;
  if (id === undefined) throw new Error('nothing was started');
  return id;
}
