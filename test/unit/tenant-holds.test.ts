/** A tenant that leaves its cell: nothing of it is committed any more, and what was on its way is waited for. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChangeGroups } from '../../actors/instance/change-many.js';
import { failed } from '../../actors/runtime/commit.js';
import { TENANT_HELD } from '../../actors/runtime/held-tenants.js';
import type { Effect } from '../../actors/runtime/turn.js';
import { HandShard, SEQUENCE, sequenceOf, TENANT } from '../helpers/hand-shard.js';

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
  const hold = shard.shard.tenants.hold(TENANT);
  assert.equal(await hasResolved(shard, hold), false);
  await shard.ack();
  assert.equal(await hasResolved(shard, hold), true);
  assert.equal((shard.replies.get(created) as { status: number }).status, 201);
});

test('what a held tenant asks for is turned away, and nothing of it leaves the shard', async () => {
  const shard = await started();
  const hold = shard.shard.tenants.hold(TENANT);
  assert.equal(await hasResolved(shard, hold), true);
  const before = shard.units.length;
  const asked = [
    shard.create(),
    shard.create({ idempotency_key: 'k' }),
    shard.ask('instances.createBatch', '', {
      instances: [{ sequence_id: SEQUENCE, tenant_id: TENANT, namespace: 'n' }],
    }),
  ];
  await shard.run();
  assert.equal(shard.units.length, before);
  for (const request of asked) assert.equal(shard.answer(request), 'ENG_TENANT_MOVING');
});

test('a key of a held tenant is not revoked: where that lives it would still be taken', async () => {
  const shard = await started();
  const hold = shard.shard.tenants.hold(TENANT);
  assert.equal(await hasResolved(shard, hold), true);
  const before = shard.units.length;
  const revoked = shard.ask('keys.revoke', '', { id: 'k', last_used_at: null });
  await shard.run();
  assert.equal(shard.units.length, before);
  assert.equal(shard.answer(revoked), 'ENG_TENANT_MOVING');
});

test('a change of many is refused as a whole where one of them was turned away with its tenant', () => {
  const told: Effect[] = [];
  const groups = new ChangeGroups((effects) => told.push(...effects));
  const group = groups.open(7, 2);
  groups.count(group, 'applied');
  const turnedAway = failed([{ kind: 'changed', group, result: 'applied' }], TENANT_HELD);
  assert.deepEqual(turnedAway, [{ kind: 'changed', group, result: 'held' }]);
  groups.count(group, 'held');
  assert.deepEqual(told, [{ kind: 'error', request: 7, error: TENANT_HELD }]);
});

test('a tenant that was admitted is served as before', async () => {
  const shard = await started();
  const hold = shard.shard.tenants.hold(TENANT);
  assert.equal(await hasResolved(shard, hold), true);
  const admitted = shard.shard.tenants
    .admit(TENANT, shard.now + 60_000)
    .then(() => shard.shard.tenants.takeUp(TENANT));
  assert.equal(await hasResolved(shard, admitted), true);
  const created = shard.create();
  await shard.run();
  await shard.ack();
  assert.equal(shard.answer(created), 201);
});
