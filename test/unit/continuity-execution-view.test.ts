/** An execution as callers see it: what its row says, and how its instance ended. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { executionView, type ShownExecutionRow } from '../../src/core/continuity/execution-view.js';
import { at, id } from '../helpers/continuity-facts.js';

const ROW: ShownExecutionRow = {
  continuity_id: id(1),
  tenant_id: 't',
  current_instance_id: id(1),
  owner_runtime_id: id(2),
  epoch: 1,
  state: 'owned',
  version: 4,
  updated_at: at(5),
  ended: null,
  instance_state: 'running',
  instance_updated_at: at(9),
};

const seen = (more: Partial<ShownExecutionRow>) => {
  const { state, updated_at } = executionView({ ...ROW, ...more });
  return [state, updated_at];
};

test('nothing but the record is shown', () => {
  assert.deepEqual(executionView(ROW), {
    continuity_id: id(1),
    tenant_id: 't',
    current_instance_id: id(1),
    owner_runtime_id: id(2),
    epoch: 1,
    state: 'owned',
    updated_at: at(5),
  });
});

test('it is owned until its instance ends, and again once that is retried', () => {
  for (const instance_state of ['scheduled', 'running', 'waiting', 'paused'] as const) {
    assert.deepEqual(seen({ instance_state }), ['owned', at(5)]);
  }
  for (const instance_state of ['completed', 'failed', 'cancelled'] as const) {
    assert.deepEqual(seen({ instance_state }), [instance_state, at(9)]);
    assert.deepEqual(seen({ instance_state, instance_updated_at: at(1) })[1], at(5));
    // Nothing ends behind a fence.
    assert.deepEqual(seen({ instance_state, state: 'transferring' }), ['transferring', at(5)]);
  }
});

test('of an instance that is not here it says what was written down when that was removed', () => {
  const gone = { instance_state: null, instance_updated_at: null };
  assert.deepEqual(seen(gone), ['owned', at(5)]);
  assert.deepEqual(seen({ ...gone, ended: 'completed' }), ['completed', at(5)]);
  assert.deepEqual(seen({ ...gone, ended: 'failed', state: 'transferring' })[0], 'transferring');
});
