/** What one shard reads again when it is told of changes: routes of releases, and subscriptions. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import type { Routable } from '../../actors/release/attribution.js';
import type { RoutingRow } from '../../actors/release/core/routes.js';
import { Routing } from '../../actors/release/routing.js';
import { EVERY_TENANT } from '../../actors/runtime/tenant-replica.js';
import type { SubscriptionRow } from '../../actors/webhook/loads.js';
import { Subscribers } from '../../actors/webhook/subscribers.js';
import { createLogger } from '../../src/base/log.js';
import { HandClock } from '../helpers/hand-clock.js';
import { type PromiseWithResolvers, withResolvers } from '../helpers/resolvers.js';

const TENANT = 'tenant';
const AT = '2026-01-01T00:00:00.000Z';

const PROMOTED: RoutingRow = {
  ...{ id: '00000000-0000-4000-8000-000000000001', tenant_id: TENANT, baseline_sequence_id: 'v1' },
  ...{ candidate_sequence_id: 'v2', state: 'promoted', canary_percent: 1, created_at: AT },
  ...{ updated_at: AT, is_deprecated: false },
};

/** Reads under way, oldest first. */
let reads: PromiseWithResolvers<RoutingRow[]>[];
/** What waits for the units that were made before. */
let unsettled: (() => void)[];
/** Versions that the owner was told of. */
let told: number[];
/** Releases of whose ended instances the owner was told. */
let ended: string[];
let clock: HandClock;
let routing: Routing;

beforeEach(() => {
  reads = [];
  unsettled = [];
  told = [];
  ended = [];
  clock = new HandClock();
  routing = new Routing({
    shard: 3,
    commits: { whenSettled: (then) => void unsettled.push(then) },
    loader: {
      routingReleases: () => {
        reads.push(withResolvers());
        return reads.at(-1)!.promise;
      },
    },
    clock,
    log: createLogger('silent', 'test'),
    release: (effects) => {
      for (const effect of effects) {
        assert.ok(effect.kind === 'peer' && effect.shard === 0);
        const { message } = effect;
        if (message.kind === 'release.ended') ended.push(message.release);
        else {
          assert.ok(message.kind === 'routes.settled' && message.shard === 3);
          told.push(message.version);
        }
      }
    },
    schedule: (work) => work(),
  });
});

async function answer(...rows: RoutingRow[]): Promise<void> {
  reads.shift()?.resolve(rows);
  await new Promise(setImmediate);
}

async function fail(): Promise<void> {
  reads.shift()?.reject(new Error('the database is away'));
  await new Promise(setImmediate);
}

async function started(...rows: RoutingRow[]): Promise<void> {
  const starting = routing.prepare();
  await answer(...rows);
  await starting;
}

/** Everything that was made before becomes durable. */
function settle(): void {
  for (const then of unsettled.splice(0)) then();
}

const readRoutes = (version: number) =>
  routing.messages['routes.read']({ kind: 'routes.read', version });

const route = () => routing.route('v1', TENANT, () => 'key')?.sequenceId ?? 'none';

test('before the rows are known nothing is routed, and nothing is taken for the baseline', async () => {
  assert.throws(route, { code: 'ENG_SHARD_RESTARTING' });
  readRoutes(1);
  assert.throws(route, { code: 'ENG_SHARD_RESTARTING' });
  await answer(PROMOTED);
  assert.equal(route(), 'v2');
});

test('a first read that fails is tried again, and after three tries the start fails', async () => {
  const starting = assert.rejects(routing.prepare());
  for (let tries = 1; tries <= 3; tries++) {
    await fail();
    clock.pass(1_000);
    await new Promise(setImmediate);
  }
  await starting;
  const again = routing.prepare();
  await fail();
  clock.pass(1_000);
  await new Promise(setImmediate);
  await answer(PROMOTED);
  await again;
  assert.equal(route(), 'v2');
});

test('what is told at the start is read behind the start, whose older rows take nothing back', async () => {
  const starting = routing.prepare();
  readRoutes(1);
  await answer();
  await starting;
  assert.equal(route(), 'none');
  settle();
  assert.deepEqual(told, []);
  await answer(PROMOTED);
  assert.equal(route(), 'v2');
  settle();
  assert.deepEqual(told, [1]);
});

test('the owner is told when what was routed by the older table is durable, and again when it asks again', async () => {
  await started();
  for (const version of [5, 5]) readRoutes(version);
  assert.deepEqual([reads.length, route()], [1, 'none']);
  await answer(PROMOTED);
  assert.deepEqual([route(), told], ['v2', []]);
  settle();
  assert.deepEqual(told, [5]);
  readRoutes(5);
  settle();
  assert.deepEqual([reads.length, told], [0, [5, 5]]);
});

test('what changes while the rows are on their way is read behind them', async () => {
  await started();
  for (const version of [5, 6]) readRoutes(version);
  await answer();
  settle();
  assert.deepEqual([told, reads.length], [[5], 1]);
  await answer(PROMOTED);
  assert.equal(route(), 'v2');
  settle();
  assert.deepEqual([told, reads.length], [[5, 6], 0]);
});

test('without the database the old table holds, and the owner waits', async () => {
  await started(PROMOTED);
  readRoutes(5);
  await fail();
  assert.equal(route(), 'v2');
  readRoutes(5);
  assert.equal(reads.length, 0);
  clock.pass(60_000);
  await answer();
  settle();
  assert.deepEqual([route(), told], ['none', [5]]);
});

test('behind a new writer the rows are read again', async () => {
  await started();
  routing.writerReady();
  await answer(PROMOTED);
  assert.equal(route(), 'v2');
  for (const _ of [1, 2]) routing.writerReady();
  await answer(PROMOTED);
  await answer();
  assert.deepEqual([route(), reads, told, unsettled], ['none', [], [], []]);
});

test('of many instances of a canary that end the owner hears once, and of others nothing', async () => {
  const { id } = PROMOTED;
  await started({ ...PROMOTED, state: 'canary' });
  for (const release of [id, id, id, 'another']) routing.ended(release);
  assert.deepEqual(ended, []);
  clock.pass(60_000);
  assert.deepEqual(ended, [id]);
  routing.ended(id);
  clock.pass(60_000);
  assert.deepEqual(ended, [id, id]);
  routing.writerReady();
  await answer(PROMOTED);
  routing.ended(id);
  assert.equal(clock.waiting, 0);
});

test('an instance that no release routes is left as it is', async () => {
  await started(PROMOTED);
  const asked = (sequence_id: string) => ({ id: 'i', body: { sequence_id, tenant_id: TENANT } });
  const instance: Routable = asked('v2');
  assert.equal(routing.routed(instance), instance);
  const routed = routing.routed<Routable>(asked('v1'));
  const { id: releaseId } = PROMOTED;
  assert.deepEqual(routed.route, { releaseId, variant: 'candidate', sequenceId: 'v2' });
  assert.equal(routed.body.sequence_id, 'v1');
});

interface Read {
  /** Undefined: of all. */
  readonly tenants: readonly string[] | undefined;
  readonly rows: PromiseWithResolvers<SubscriptionRow[]>;
}

let subscriptionReads: Read[];
let settledVersions: number[];
let gone: string[];
let subscribers: Subscribers;

beforeEach(() => {
  subscriptionReads = [];
  settledVersions = [];
  gone = [];
  const read = (tenants?: readonly string[]) => {
    const rows = withResolvers<SubscriptionRow[]>();
    subscriptionReads.push({ tenants, rows });
    return rows.promise;
  };
  subscribers = new Subscribers({
    shard: 3,
    urls: ['http://deployment'],
    loader: { subscriptions: read, allSubscriptions: () => read() },
    clock,
    log: createLogger('silent', 'test'),
    schedule: (work) => work(),
    deleted: (ids) => gone.push(...ids),
    release: (effects) => {
      for (const effect of effects) {
        assert.ok(effect.kind === 'peer' && effect.shard === 0);
        const { message } = effect;
        assert.ok(message.kind === 'subscriptions.settled' && message.shard === 3);
        settledVersions.push(message.version);
      }
    },
  });
});

function row(id: string, tenant_id: string, events = ['instance.completed']): SubscriptionRow {
  const secret = '{"plain":"s"}';
  const times = { created_at: AT, updated_at: AT };
  return { id, tenant_id, url: `http://${id}`, events: JSON.stringify(events), secret, ...times };
}

async function answerWith(...rows: SubscriptionRow[]): Promise<void> {
  subscriptionReads.shift()?.rows.resolve(rows);
  await new Promise(setImmediate);
}

async function startedWith(...rows: SubscriptionRow[]): Promise<void> {
  const starting = subscribers.parts[0]!.prepare();
  await answerWith(...rows);
  await starting;
}

const readSubscriptions = (version: number, tenants: readonly string[]) =>
  subscribers.messages['subscriptions.read']({ kind: 'subscriptions.read', version, tenants });

const urlsOf = (tenant: string, event: 'instance.completed' | 'instance.failed') =>
  subscribers.targetsOf(tenant, event).map(({ url }) => url);

test('the addresses of the deployment are told of everything, subscriptions of their events', async () => {
  await startedWith(row('a', 'north'), row('b', 'north', ['instance.failed']), row('c', 'south'));
  assert.deepEqual(urlsOf('north', 'instance.completed'), ['http://deployment', 'http://a']);
  assert.deepEqual(urlsOf('north', 'instance.failed'), ['http://deployment', 'http://b']);
  assert.deepEqual(urlsOf('west', 'instance.failed'), ['http://deployment']);
});

test('the owner is answered when what it told of was read, and what is told meanwhile is read behind it', async () => {
  const starting = subscribers.parts[0]!.prepare();
  readSubscriptions(4, ['north']);
  await answerWith();
  await starting;
  const behind = [subscriptionReads[0]?.tenants, settledVersions];
  assert.deepEqual(behind, [['north'], []], 'behind the start');
  readSubscriptions(5, ['north']);
  readSubscriptions(6, ['south']);
  await answerWith(row('a', 'north'));
  assert.deepEqual(settledVersions, [4]);
  while (subscriptionReads.length > 0) await answerWith(row('a', 'north'), row('c', 'south'));
  assert.deepEqual(settledVersions, [4, 5, 6]);
  assert.deepEqual([subscribers.size, subscribers.get('a')?.tenant_id], [2, 'north']);
});

test('without the database those that are known stay, and the owner waits', async () => {
  await startedWith(row('a', 'north'));
  readSubscriptions(5, ['north']);
  subscriptionReads.shift()?.rows.reject(new Error('away'));
  await new Promise(setImmediate);
  assert.deepEqual([settledVersions, urlsOf('north', 'instance.completed').length], [[], 2]);
  clock.pass(60_000);
  await answerWith(row('a', 'north'), row('b', 'north'));
  assert.deepEqual([settledVersions, urlsOf('north', 'instance.completed').length], [[5], 3]);
});

test('those that were deleted are given up, and no others', async () => {
  await startedWith(row('a', 'north'), row('b', 'north'), row('c', 'south'));
  readSubscriptions(5, ['north']);
  await answerWith(row('b', 'north'));
  assert.deepEqual(gone, ['a']);
  readSubscriptions(6, [EVERY_TENANT]);
  await answerWith(row('b', 'north'));
  assert.deepEqual(gone, ['a', 'c']);
  assert.deepEqual([subscribers.size, subscribers.get('c')], [1, undefined]);
});

test('a word that names nobody is answered at once', async () => {
  await startedWith();
  readSubscriptions(7, []);
  assert.deepEqual([settledVersions, subscriptionReads.length], [[7], 0]);
});
