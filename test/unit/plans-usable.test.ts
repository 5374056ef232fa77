/** Which sequences may still take instances, seen by who looked one up a while ago. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Plans } from '../../actors/catalog/plans.js';
import type { Loads } from '../../actors/shard/loads.js';

const newPlans = () => new Plans({} as Loads);

test('a sequence that was deleted after it was looked up is not used, others are', () => {
  const plans = newPlans();
  const before = plans.deletions;
  plans.sequenceEvicted('a');
  assert.throws(() => plans.checkUsable('a', before), /sequence a is being deleted/);
  plans.checkUsable('a', plans.deletions);
  plans.checkUsable('b', before);
});

test('a sequence whose deletion is under way is not used', () => {
  const plans = newPlans();
  plans.block('a');
  assert.throws(() => plans.checkUsable('a'), /being deleted/);
  plans.unblock('a');
  plans.checkUsable('a');
});

test('who looked it up very many deletions ago has to look again', () => {
  const plans = newPlans();
  const before = plans.deletions;
  for (let i = 0; i < 1_000; i++) plans.sequenceEvicted(`b${i}`);
  plans.checkUsable('a', before);
  plans.sequenceEvicted('c');
  assert.throws(() => plans.checkUsable('a', before), /being deleted/);
});

test('items of a batch that name a sequence of another tenant share one read', async () => {
  const ids: string[] = [];
  const row = {
    id: 'a',
    tenant_id: 'owner',
    namespace: 'n',
    name: 's',
    version: 1,
    status: 'production',
  };
  const sequence = async (id: string) => {
    ids.push(id);
    return id === 'a'
      ? { ...row, deprecated: false, hold: false, definition: DEFINITION }
      : undefined;
  };
  const plans = new Plans({ sequence } as unknown as Loads);
  await plans.load('a');
  const found = await Promise.all(Array.from({ length: 100 }, () => plans.seek('a', 'other')));
  assert.deepEqual([ids.length, found.every((one) => one?.tenantId === 'owner')], [2, true]);
  await plans.seek('a', 'other');
  assert.equal(ids.length, 3);
});

const DEFINITION = JSON.stringify({ blocks: [{ type: 'step', id: 'a', handler: 'noop' }] });
