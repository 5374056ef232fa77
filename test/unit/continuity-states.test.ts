/** Every pair of states: what the specification lists may happen, and nothing else (05 §1, §3, §9, §16). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  EFFECT_STATES,
  EXECUTION_STATES,
  forbidsRollback,
  HANDOFF_STATES,
  holdsExecution,
  isFinalEffect,
  isFinalHandoff,
  isResolvedEffect,
  MIGRATION_STATES,
  mayMoveEffect,
  mayMoveExecution,
  mayMoveHandoff,
  mayMoveMigration,
} from '../../src/core/continuity/states.js';

/** The pairs that are allowed, as `from>to`. */
function moves<S extends string>(states: readonly S[], may: (from: S, to: S) => boolean): string[] {
  return states
    .flatMap((from) => states.filter((to) => may(from, to)).map((to) => `${from}>${to}`))
    .sort();
}

/** Reads the notation of the specification: `a→b|c; d→e`. */
function listed(text: string): string[] {
  return text
    .split(';')
    .flatMap((line) => {
      const [from = '', to = ''] = line.split('→');
      return to.split('|').map((one) => `${from.trim()}>${one.trim()}`);
    })
    .sort();
}

test('a handoff moves as 05 §9 lists it', () => {
  const expected = listed(
    'requested → quiescing | rejected | failed; quiescing → exported | failed; ' +
      'exported → accepted | expired | revoked | failed; accepted → resumed | failed; ' +
      'resumed → completed | failed',
  );
  assert.deepEqual(moves(HANDOFF_STATES, mayMoveHandoff), expected);
});

test('completed, rejected, failed, expired and revoked handoffs are final', () => {
  assert.deepEqual(HANDOFF_STATES.filter(isFinalHandoff), [
    'completed',
    'rejected',
    'failed',
    'expired',
    'revoked',
  ]);
});

test('an execution belongs to a handoff while it is quiescing or exported', () => {
  assert.deepEqual(HANDOFF_STATES.filter(holdsExecution), ['quiescing', 'exported']);
});

test('an effect moves as 05 §3 lists it', () => {
  const expected = listed(
    'planned→prepared|abandoned; prepared→dispatched|abandoned; dispatched→committed|unknown; ' +
      'unknown→verified|committed|compensated|abandoned; committed→compensated; ' +
      'verified→compensated',
  );
  assert.deepEqual(moves(EFFECT_STATES, mayMoveEffect), expected);
});

test('four states of an effect are resolved, two of them final, four forbid a rollback', () => {
  assert.deepEqual(EFFECT_STATES.filter(isResolvedEffect), [
    'committed',
    'verified',
    'compensated',
    'abandoned',
  ]);
  assert.deepEqual(EFFECT_STATES.filter(isFinalEffect), ['compensated', 'abandoned']);
  assert.deepEqual(EFFECT_STATES.filter(forbidsRollback), [
    'dispatched',
    'committed',
    'unknown',
    'verified',
  ]);
});

test('an execution goes back and forth between owned and transferring until it is completed', () => {
  assert.deepEqual(
    moves(EXECUTION_STATES, mayMoveExecution),
    listed('owned→transferring|completed; transferring→owned'),
  );
});

test('a migration is applied once and rolled back once', () => {
  assert.deepEqual(
    moves(MIGRATION_STATES, mayMoveMigration),
    listed('planned→applied; applied→rolled_back'),
  );
});
