/** Every pair of states: what is listed may happen, and nothing else. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  EFFECT_STATES,
  forbidsRollback,
  HANDOFF_STATES,
  holdsExecution,
  isEffectInDoubt,
  MIGRATION_STATES,
  mayMoveEffect,
  mayMoveHandoff,
  mayMoveMigration,
} from '../../src/core/continuity/states.js';

/** The pairs that are allowed, as `from>to`. */
function moves<S extends string>(states: readonly S[], may: (from: S, to: S) => boolean): string[] {
  return states
    .flatMap((from) => states.filter((to) => may(from, to)).map((to) => `${from}>${to}`))
    .sort();
}

/** Reads the notation of the lists: `a→b|c; d→e`. */
function listed(text: string): string[] {
  return text
    .split(';')
    .flatMap((line) => {
      const [from = '', to = ''] = line.split('→');
      return to.split('|').map((one) => `${from.trim()}>${one.trim()}`);
    })
    .sort();
}

test('a handoff moves as listed, and in no other way', () => {
  const expected = listed(
    'requested → quiescing | rejected | failed; quiescing → exported | failed; ' +
      'exported → accepted | expired | revoked | failed; accepted → resumed | failed; ' +
      'resumed → completed | failed',
  );
  assert.deepEqual(moves(HANDOFF_STATES, mayMoveHandoff), expected);
});

test('an execution belongs to a handoff while it is quiescing or exported', () => {
  assert.deepEqual(HANDOFF_STATES.filter(holdsExecution), ['quiescing', 'exported']);
});

test('an effect moves as listed, and in no other way', () => {
  const expected = listed(
    'planned→prepared|abandoned; prepared→dispatched|abandoned; ' +
      'dispatched→committed|failed|unknown; ' +
      'unknown→verified|committed|failed|compensated|abandoned; committed→compensated; ' +
      'failed→verified|compensated|abandoned; verified→compensated',
  );
  assert.deepEqual(moves(EFFECT_STATES, mayMoveEffect), expected);
});

test('an effect is in doubt while somebody is at it or silent, and what went out forbids a rollback', () => {
  assert.deepEqual(EFFECT_STATES.filter(isEffectInDoubt), ['dispatched', 'unknown']);
  assert.deepEqual(EFFECT_STATES.filter(forbidsRollback), [
    'dispatched',
    'committed',
    'failed',
    'unknown',
    'verified',
  ]);
});

test('a migration is applied once and rolled back once', () => {
  const seen = moves(MIGRATION_STATES, mayMoveMigration);
  assert.deepEqual(seen, listed('planned→applied; applied→rolled_back'));
});
