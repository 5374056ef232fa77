/** The routes of one shard in virtual time: when they change, and when their owner is told so. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import type { Routable } from '../../actors/release/attribution.js';
import { Routing } from '../../actors/release/routing.js';
import type { RoutingRow } from '../../src/core/releases/routes.js';
import { createLogger } from '../../src/log.js';

const TENANT = 'tenant';
const AT = '2026-01-01T00:00:00.000Z';

const PROMOTED: RoutingRow = {
  id: '00000000-0000-4000-8000-000000000001',
  tenant_id: TENANT,
  baseline_sequence_id: 'v1',
  candidate_sequence_id: 'v2',
  state: 'promoted',
  canary_percent: 1,
  created_at: AT,
  updated_at: AT,
  is_deprecated: false,
};

interface Read {
  readonly resolve: (rows: RoutingRow[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Reads under way, oldest first. */
let reads: Read[];
/** What waits for the units that were made before. */
let unsettled: (() => void)[];
/** Versions that the owner was told of. */
let told: number[];
/** Releases of whose ended instances the owner was told. */
let ended: string[];
let timers: (() => void)[];
let routing: Routing;

beforeEach(() => {
  reads = [];
  unsettled = [];
  told = [];
  ended = [];
  timers = [];
  routing = new Routing({
    shard: 3,
    commits: { whenSettled: (then) => void unsettled.push(then) },
    loader: {
      routingReleases: () =>
        new Promise((resolve, reject) => {
          reads.push({ resolve, reject });
        }),
    },
    clock: {
      now: () => 0,
      monotonic: () => 0,
      setTimeout: (fn) => timers.push(fn),
      clearTimeout: () => undefined,
    },
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

async function answer(rows: RoutingRow[]): Promise<void> {
  reads.shift()?.resolve(rows);
  await new Promise(setImmediate);
}

async function fail(): Promise<void> {
  reads.shift()?.reject(new Error('the database is away'));
  await new Promise(setImmediate);
}

async function started(rows: RoutingRow[]): Promise<void> {
  const starting = routing.start();
  await answer(rows);
  await starting;
}

/** Everything that was made before becomes durable. */
function settle(): void {
  for (const then of unsettled.splice(0)) then();
}

function route(): string {
  return routing.route('v1', TENANT, () => 'key')?.sequenceId ?? 'none';
}

test('before the rows are known nothing is routed, and nothing is taken for the baseline', async () => {
  assert.throws(route, { code: 'ENG_SHARD_RESTARTING' });
  routing.read(1);
  assert.throws(route, { code: 'ENG_SHARD_RESTARTING' });
  await answer([PROMOTED]);
  assert.equal(route(), 'v2');
});

test('what is told at the start is read behind the start, whose older rows take nothing back', async () => {
  const starting = routing.start();
  routing.read(1);
  await answer([]);
  await starting;
  assert.equal(route(), 'none');
  settle();
  assert.deepEqual(told, []);
  await answer([PROMOTED]);
  assert.equal(route(), 'v2');
  settle();
  assert.deepEqual(told, [1]);
});

test('a start fails when the rows cannot be read', async () => {
  const starting = assert.rejects(routing.start());
  await fail();
  await starting;
});

test('the owner is told when what was routed by the older table is durable', async () => {
  await started([]);
  routing.read(5);
  assert.equal(route(), 'none');
  await answer([PROMOTED]);
  assert.equal(route(), 'v2');
  assert.deepEqual(told, []);
  settle();
  assert.deepEqual(told, [5]);
});

test('a version that is asked for again is read once, and answered again', async () => {
  await started([]);
  routing.read(5);
  routing.read(5);
  assert.equal(reads.length, 1);
  await answer([PROMOTED]);
  settle();
  routing.read(5);
  assert.equal(reads.length, 0);
  settle();
  assert.deepEqual(told, [5, 5]);
});

test('what changes while the rows are on their way is read behind them', async () => {
  await started([]);
  routing.read(5);
  routing.read(6);
  assert.equal(reads.length, 1);
  await answer([]);
  settle();
  assert.deepEqual(told, [5]);
  await answer([PROMOTED]);
  assert.equal(route(), 'v2');
  settle();
  assert.deepEqual(told, [5, 6]);
  assert.equal(reads.length, 0);
});

test('without the database the old table holds, and the owner waits', async () => {
  await started([PROMOTED]);
  routing.read(5);
  await fail();
  assert.equal(route(), 'v2');
  routing.read(5);
  assert.equal(reads.length, 0);
  timers.shift()?.();
  await answer([]);
  settle();
  assert.equal(route(), 'none');
  assert.deepEqual(told, [5]);
});

test('behind a new writer the rows are read again', async () => {
  await started([]);
  routing.reread();
  await answer([PROMOTED]);
  assert.equal(route(), 'v2');
  routing.reread();
  routing.reread();
  await answer([PROMOTED]);
  await answer([]);
  assert.equal(route(), 'none');
  assert.equal(reads.length, 0);
  assert.deepEqual([told, unsettled], [[], []]);
});

test('of many instances of a canary that end the owner hears once, and of others nothing', async () => {
  const { id } = PROMOTED;
  await started([{ ...PROMOTED, state: 'canary' }]);
  for (let count = 0; count < 3; count += 1) routing.ended(id);
  routing.ended('another');
  assert.deepEqual(ended, []);
  for (const timer of timers.splice(0)) timer();
  assert.deepEqual(ended, [id]);
  routing.ended(id);
  for (const timer of timers.splice(0)) timer();
  assert.deepEqual(ended, [id, id]);
  routing.reread();
  await answer([PROMOTED]);
  routing.ended(id);
  assert.deepEqual(timers, []);
});

test('an instance that no release routes is left as it is', async () => {
  await started([PROMOTED]);
  const asked = (sequence_id: string) => ({
    id: 'i',
    body: { sequence_id, tenant_id: TENANT },
  });
  const instance: Routable = asked('v2');
  assert.equal(routing.routed(instance), instance);
  const routed = routing.routed<Routable>(asked('v1'));
  const { id: releaseId } = PROMOTED;
  assert.deepEqual(routed.route, { releaseId, variant: 'candidate', sequenceId: 'v2' });
  assert.equal(routed.body.sequence_id, 'v1');
});
