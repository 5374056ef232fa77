/** Ids that follow from what they name. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isUuid } from '../../schema/formats.js';
import {
  implicitContinuityId,
  inProcessEffectId,
} from '../../src/core/continuity/continuity-ids.js';
import { routeOf } from '../../src/core/ids.js';

const INSTANCE = '0198c0de-0000-7000-8000-00000000beef';

const PLACE = {
  tenant_id: 't',
  continuity_id: '0198c0de-0000-7000-8000-000000000001',
  epoch: 0,
  instance_id: INSTANCE,
  block_id: 'b',
  attempt: 0,
};

test('they are UUIDs of version 8 that lead to the owner of the instance', () => {
  for (let i = 0; i < 50; i += 1) {
    const ids = [
      implicitContinuityId(`t${i}`, INSTANCE),
      inProcessEffectId({ ...PLACE, attempt: i }, ''),
    ];
    for (const id of ids) {
      assert.ok(isUuid(id));
      assert.match(id, /^.{14}8.{4}[89ab]/);
      assert.equal(routeOf(id), 0xbeef);
    }
  }
});

test('the same step has the same id, and every other step another one', () => {
  assert.equal(inProcessEffectId({ ...PLACE }, ''), inProcessEffectId(PLACE, ''));
  const others = [
    inProcessEffectId(PLACE, ''),
    inProcessEffectId(PLACE, '1'),
    inProcessEffectId({ ...PLACE, attempt: 1 }, ''),
    inProcessEffectId({ ...PLACE, epoch: 1 }, ''),
    inProcessEffectId({ ...PLACE, block_id: 'c' }, ''),
    inProcessEffectId({ ...PLACE, continuity_id: INSTANCE }, ''),
    inProcessEffectId({ ...PLACE, instance_id: PLACE.continuity_id }, ''),
    implicitContinuityId('t', INSTANCE),
    implicitContinuityId('u', INSTANCE),
    implicitContinuityId('t', PLACE.continuity_id),
  ];
  assert.equal(new Set(others).size, others.length);
});
