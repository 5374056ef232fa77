/** Where actions lead, and which can be undone. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Action } from 'durable-workflow-engine-client';
import { partsOf, shortSummaryOf } from '../src/pages/activity/action-text.ts';
import { placeOf, undoingOf } from '../src/pages/activity/undoing.ts';

const ID = '0195ffff-0000-7000-8000-000000000001';

const action = (changes: Partial<Action>): Action => ({
  id: ID,
  tenant_id: 'acme',
  at: '2026-01-01T00:00:00Z',
  by: 'night shift',
  key_id: null,
  operation: 'instances.signal',
  kind: 'instance',
  target: ID,
  name: 'order',
  instance_id: ID,
  details: {},
  summary: `paused instance ${ID} of order`,
  ...changes,
});

test('an action leads to its object, unless that is gone', () => {
  assert.equal(placeOf(action({})), `/instances/${ID}`);
  const approval = action({ kind: 'approval', target: 'a', operation: 'approvals.answer' });
  assert.equal(placeOf(approval), `/instances/${ID}`);
  const sequence = action({ kind: 'sequence', operation: 'sequences.create' });
  assert.equal(placeOf(sequence), `/sequences/${ID}`);
  assert.equal(placeOf({ ...sequence, name: null }), undefined);
  const trigger = action({ kind: 'trigger', operation: 'triggers.create', name: null });
  assert.equal(placeOf(trigger), '/triggers');
  assert.equal(placeOf({ ...trigger, operation: 'triggers.delete' }), undefined);
  assert.equal(placeOf(action({ kind: 'effect' })), undefined);
});

test('what has an opposite can be undone', () => {
  const labelOf = (changes: Partial<Action>) => undoingOf(action(changes))?.label;
  assert.equal(labelOf({ details: { signal_type: 'pause' } }), 'Resume');
  assert.equal(labelOf({ details: { signal_type: 'resume' } }), 'Pause');
  const state = { operation: 'instances.patchState', details: { state: 'paused' } };
  assert.equal(labelOf(state), 'Resume');
  assert.equal(labelOf({ details: { signal_type: 'cancel' } }), undefined);
  const many = { operation: 'instances.bulkState', details: { state: 'paused' } };
  assert.equal(labelOf(many), undefined);
  for (const operation of ['cron.update', 'triggers.update', 'credentials.update']) {
    assert.equal(labelOf({ operation, details: { enabled: false } }), 'Enable');
    assert.equal(labelOf({ operation, details: { enabled: true } }), 'Disable');
    assert.equal(labelOf({ operation, details: { changed: ['value'] } }), undefined);
  }
  assert.equal(labelOf({ operation: 'sequences.deprecate', kind: 'sequence' }), undefined);
});

test('its sentence is around the name of its object, whose id is short', () => {
  assert.deepEqual(partsOf(action({})), ['paused instance ', '0195…000001', ' of order']);
  const key = action({
    ...{ kind: 'api_key', target: 'ak_1', name: null, details: { name: 'ci' } },
    summary: 'revoked api key ci',
  });
  assert.deepEqual(partsOf(key), ['revoked api key ', 'ci', '']);
  const other = action({ target: 'x', name: null, summary: 'did something' });
  assert.deepEqual(partsOf(other), ['', 'did something', '']);
  assert.equal(shortSummaryOf(action({})), 'paused instance 0195…000001 of order');
});
