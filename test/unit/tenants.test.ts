/** Tenants on a shard: those that leave their cell, limits of unknown outcome, and things of others. */

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { ChangeGroups } from '../../actors/instance/change-many.js';
import {
  TenantLimitOperations,
  TenantLimitRegistry,
} from '../../actors/limits/front/tenant-limits.js';
import { failed, TENANT_SUSPENDED } from '../../actors/runtime/commit.js';
import type { Effect } from '../../actors/runtime/turn.js';
import type { Loads } from '../../actors/shard/loads.js';
import { unavailable } from '../../src/base/errors.js';
import { realClock } from '../../src/base/real-clock.js';
import type { Call, FrontDeps } from '../../src/http/operation.js';
import type { Json } from '../helpers/api.js';
import { HandShard, rowsOf, SEQUENCE, sequenceOf, TENANT } from '../helpers/hand-shard.js';

async function started(): Promise<HandShard> {
  const shard = new HandShard(sequenceOf([{ type: 'step', id: 'a', handler: 'ship' }]));
  await shard.start();
  await shard.ack();
  return shard;
}

/** Whether the promise has resolved by the time that the shard has nothing to do. */
async function hasResolved(shard: HandShard, promise: Promise<void>): Promise<boolean> {
  let isDone = false;
  promise.then(() => {
    isDone = true;
  });
  await shard.run();
  return isDone;
}

test('a hold waits for the units that are on their way, and makes no others', async () => {
  const shard = await started();
  const created = shard.create();
  await shard.run();
  assert.equal(shard.units.length, 1);
  const hold = shard.shard.tenants.suspend(TENANT);
  assert.equal(await hasResolved(shard, hold), false);
  await shard.ack();
  assert.equal(await hasResolved(shard, hold), true);
  assert.equal(shard.answer(created), 201);
});

test('what a held tenant asks for is turned away, and nothing of it leaves the shard', async () => {
  const shard = await started();
  assert.equal(await hasResolved(shard, shard.shard.tenants.suspend(TENANT)), true);
  const before = shard.units.length;
  const one = { sequence_id: SEQUENCE, tenant_id: TENANT, namespace: 'n' };
  const asked = [
    shard.create(),
    shard.create({ idempotency_key: 'k' }),
    shard.ask('instances.createBatch', '', { instances: [one] }),
    // Where the tenant lives the key would still be taken.
    shard.ask('keys.revoke', '', { id: 'k', last_used_at: null }),
  ];
  await shard.run();
  assert.equal(shard.units.length, before);
  for (const request of asked) assert.equal(shard.answer(request), 'ENG_TENANT_MOVING');
});

test('a change of many is refused as a whole where one of them was turned away with its tenant', () => {
  const told: Effect[] = [];
  const groups = new ChangeGroups((effects) => told.push(...effects));
  const group = groups.open(7, 2);
  const one = { kind: 'changed', group, instance: 'i', result: 'applied' } as const;
  groups.count(one);
  const [turnedAway] = failed([one], TENANT_SUSPENDED);
  assert.deepEqual(turnedAway, { ...one, result: 'suspended', error: TENANT_SUSPENDED.message });
  groups.count(turnedAway as typeof one);
  assert.deepEqual(told, [{ kind: 'error', request: 7, error: TENANT_SUSPENDED }]);
});

test('a tenant that was admitted is served as before', async () => {
  const shard = await started();
  assert.equal(await hasResolved(shard, shard.shard.tenants.suspend(TENANT)), true);
  const admitted = shard.shard.tenants
    .admit(TENANT, shard.now + 60_000)
    .then(() => shard.shard.tenants.takeUp(TENANT));
  assert.equal(await hasResolved(shard, admitted), true);
  const created = shard.create();
  await shard.run();
  await shard.ack();
  assert.equal(shard.answer(created), 201);
});

test('limits whose outcome is unknown hold as soon as they are found stored, however late that is', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  const registry = new TenantLimitRegistry();
  let stored: object[] | Error = [];
  const made = new TenantLimitOperations({
    client: { ask: () => Promise.reject(unavailable('ENG_OVERLOADED', 'no answer in time')) },
    registry,
    reads: {
      rows: async () => {
        if (stored instanceof Error) throw stored;
        return stored as never[];
      },
    },
    clock: realClock,
  });
  try {
    const put = made.operations['tenantLimits.put'](
      { now: () => 0 } as unknown as FrontDeps,
      { params: { id: 'a' }, body: { rows_per_second: 5 } } as unknown as Call<'tenantLimits.put'>,
    );
    await assert.rejects(put, { status: 503 });
    const found = async () => {
      mock.timers.tick(1_000);
      for (let n = 0; n < 5; n += 1) await Promise.resolve();
      return registry.of('a')?.limits.rows_per_second;
    };
    assert.equal(await found(), undefined, 'not stored so far');
    stored = new Error('the database is away');
    assert.equal(await found(), undefined);
    stored = [{ tenant_id: 'a', limits: '{"rows_per_second":5}', set_at: '2026-01-01' }];
    assert.equal(await found(), 5);
    stored = [];
    assert.equal(await found(), undefined, 'what is removed meanwhile is found, too');
  } finally {
    made.stop();
    mock.timers.reset();
  }
});

test('tasks of the version before that come with a tenant are moved, although all others were', async () => {
  const id = '01950000-0000-7000-8000-00000000000a';
  let came: { id: string; tenant_id: string }[] = [];
  const rows: Partial<Loads> = { tasksToMove: async () => came.splice(0) };
  const shard = new HandShard(rows);
  try {
    await shard.start();
    // The first run, and its rest.
    for (let pass = 0; pass < 2; pass += 1) await shard.pass(1_000);
    await shard.ack();
    came = [{ id, tenant_id: TENANT }];
    const admitted = shard.shard.tenants.admit(TENANT, 0);
    await shard.run();
    await admitted;
    const taken = shard.shard.tenants.takeUp(TENANT);
    await shard.run();
    await taken;
    await shard.run();
    assert.deepEqual(rowsOf(shard.units, 'taskBefore.move'), [{ id }]);
  } finally {
    await shard.shard.stop();
  }
});

const NOTHING = '0195ffff-0000-7000-8000-00000000dead';

let shard: HandShard;
let reads: string[] = [];
let instance: string;
let task: string;

beforeEach(async () => {
  const noted = <Result>(name: string, result: Result) => {
    return async (ids: readonly string[]) => {
      reads.push(`${name} of ${ids.length}`);
      return result;
    };
  };
  const rows: Partial<Loads> = {
    ...sequenceOf([{ type: 'step', id: 'a', handler: 'ship' }]),
    instances: noted('instances', new Map()),
    taskOwners: noted('taskOwners', new Map()),
  };
  shard = new HandShard(rows);
  await shard.start();
  // With the first one the plan is there, so that the second one opens its task at once.
  for (let count = 0; count < 2; count += 1) {
    shard.units = [];
    shard.create();
    await shard.run();
    instance = String((rowsOf(shard.units, 'instance.insert')[0] as Json).id);
    task = String(rowsOf(shard.units, 'task.insert')[0]?.id ?? '');
    await shard.ack();
    // The owners of claimed tasks are remembered.
    shard.ask('workers.poll', '', { handler_name: 'ship', worker_id: 'w', limit: 2 });
    await shard.run();
    await shard.ack();
    await shard.ack();
  }
});
afterEach(() => shard.shard.stop());

async function asked(operation: string, target: string, tenant: string, body: Json) {
  reads = [];
  const request = shard.ask(operation, target, body, tenant);
  await shard.run();
  const reply = shard.replies.get(request);
  const answer =
    reply !== undefined && 'error' in reply
      ? { code: reply.error.code, message: reply.error.message.replace(target, 'it') }
      : shard.answer(request);
  return { answer, reads: [...reads], units: shard.units.length };
}

describe('of an instance or a task in memory another tenant is told what it is told of none', () => {
  const rows: readonly (readonly [string, Json, 'instance' | 'task'])[] = [
    ['instances.get', {}, 'instance'],
    ['instances.tree', {}, 'instance'],
    ['instances.signal', { signal_type: 'pause' }, 'instance'],
    ['instances.retry', {}, 'instance'],
    ['instances.standing', {}, 'instance'],
    ['workers.heartbeat', { worker_id: 'w' }, 'task'],
    ['workers.complete', { worker_id: 'w', output: {} }, 'task'],
  ];
  for (const [operation, body, of] of rows) {
    test(`${operation}, after the same reads`, async () => {
      const known = of === 'instance' ? instance : task;
      assert.ok(known, 'there is one');
      const unknown = await asked(operation, NOTHING, 'other', body);
      const foreign = await asked(operation, known, 'other', body);
      const again = await asked(operation, known, 'other', body);
      assert.deepEqual(foreign, unknown);
      assert.deepEqual(again, unknown);
      assert.deepEqual(unknown.reads, [`${of === 'instance' ? 'instances' : 'taskOwners'} of 1`]);
      assert.equal((unknown.answer as Json).code, 'ENG_NOT_FOUND');
      // The owner needs no read: the thing is there.
      assert.deepEqual((await asked(operation, known, 'tenant', body)).reads, []);
    });
  }
});
