/** Whom one shard tells of ended instances: what it reads, when it answers, and what it gives up. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import type { SubscriptionRow } from '../../actors/runtime/rows.js';
import { EVERY_TENANT, Subscribers } from '../../actors/webhook/subscribers.js';
import { createLogger } from '../../src/log.js';

interface Read {
  /** Undefined: of all. */
  readonly tenants: readonly string[] | undefined;
  readonly resolve: (rows: SubscriptionRow[]) => void;
  readonly reject: (error: Error) => void;
}

const AT = '2026-01-01T00:00:00.000Z';

let reads: Read[];
let told: number[];
let gone: string[];
let timers: (() => void)[];
let subscribers: Subscribers;

beforeEach(() => {
  reads = [];
  told = [];
  gone = [];
  timers = [];
  const read = (tenants?: readonly string[]) =>
    new Promise<SubscriptionRow[]>((resolve, reject) => reads.push({ tenants, resolve, reject }));
  subscribers = new Subscribers({
    shard: 3,
    urls: ['http://deployment'],
    loader: { subscriptions: read, allSubscriptions: () => read() },
    clock: {
      now: () => 0,
      monotonic: () => 0,
      setTimeout: (fn) => timers.push(fn),
      clearTimeout: () => undefined,
    },
    log: createLogger('silent', 'test'),
    schedule: (work) => work(),
    gone: (ids) => gone.push(...ids),
    release: (effects) => {
      for (const effect of effects) {
        assert.ok(effect.kind === 'peer' && effect.shard === 0);
        const { message } = effect;
        assert.ok(message.kind === 'subscriptions.settled' && message.shard === 3);
        told.push(message.version);
      }
    },
  });
});

function row(id: string, tenant_id: string, events = ['instance.completed']): SubscriptionRow {
  const secret = '{"plain":"s"}';
  const times = { created_at: AT, updated_at: AT };
  return { id, tenant_id, url: `http://${id}`, events: JSON.stringify(events), secret, ...times };
}

async function answer(...rows: SubscriptionRow[]): Promise<void> {
  reads.shift()?.resolve(rows);
  await new Promise(setImmediate);
}

async function started(...rows: SubscriptionRow[]): Promise<void> {
  const starting = subscribers.start();
  await answer(...rows);
  await starting;
}

const urlsOf = (tenant: string, event: 'instance.completed' | 'instance.failed') =>
  subscribers.targetsOf(tenant, event).map(({ url }) => url);

test('the addresses of the deployment are told of everything, subscriptions of their events', async () => {
  await started(row('a', 'north'), row('b', 'north', ['instance.failed']), row('c', 'south'));
  assert.deepEqual(urlsOf('north', 'instance.completed'), ['http://deployment', 'http://a']);
  assert.deepEqual(urlsOf('north', 'instance.failed'), ['http://deployment', 'http://b']);
  assert.deepEqual(urlsOf('west', 'instance.failed'), ['http://deployment']);
});

test('the owner is answered when what it told of was read', async () => {
  await started();
  subscribers.read(5, ['north']);
  assert.deepEqual([reads[0]?.tenants, told], [['north'], []]);
  await answer(row('a', 'north'));
  assert.deepEqual(told, [5]);
  assert.equal(subscribers.get('a')?.tenant_id, 'north');
});

test('what is told while a read is under way is read behind it', async () => {
  await started();
  subscribers.read(5, ['north']);
  subscribers.read(6, ['south']);
  await answer(row('a', 'north'));
  assert.deepEqual(told, [5]);
  assert.deepEqual(reads[0]?.tenants, ['south']);
  await answer(row('c', 'south'));
  assert.deepEqual(told, [5, 6]);
  assert.equal(subscribers.size, 2);
});

test('what is told at the start is read behind the start', async () => {
  const starting = subscribers.start();
  subscribers.read(5, ['north']);
  await answer();
  await starting;
  assert.deepEqual(told, []);
  await answer(row('a', 'north'));
  assert.deepEqual(told, [5]);
});

test('without the database those that are known stay, and the owner waits', async () => {
  await started(row('a', 'north'));
  subscribers.read(5, ['north']);
  reads.shift()?.reject(new Error('away'));
  await new Promise(setImmediate);
  assert.deepEqual([told, urlsOf('north', 'instance.completed').length], [[], 2]);
  timers.shift()?.();
  await answer(row('a', 'north'), row('b', 'north'));
  assert.deepEqual([told, urlsOf('north', 'instance.completed').length], [[5], 3]);
});

test('those that were deleted are given up, and no others', async () => {
  await started(row('a', 'north'), row('b', 'north'), row('c', 'south'));
  subscribers.read(5, ['north']);
  await answer(row('b', 'north'));
  assert.deepEqual(gone, ['a']);
  subscribers.read(6, [EVERY_TENANT]);
  await answer(row('b', 'north'));
  assert.deepEqual(gone, ['a', 'c']);
  assert.deepEqual([subscribers.size, subscribers.get('c')], [1, undefined]);
});

test('a word that names nobody is answered at once', async () => {
  await started();
  subscribers.read(7, []);
  assert.deepEqual([told, reads.length], [[7], 0]);
});
