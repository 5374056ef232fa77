/** Entries of the audit as rows have them. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { entryIn, entryText, hasOwnId } from '../../actors/instance/core/audit-entry.js';
import { INSTANCE_STATES } from '../../schema/states.js';
import type { AuditEvent } from '../../src/core/progress.js';

const ID = '01950000-0000-7000-8000-00000000000a';
const FAILURE = { code: 'step_failed', message: 'no', block_id: 'a' } as never;

test('an entry that was stored is read as it was', () => {
  const events: AuditEvent[] = [
    ...INSTANCE_STATES.flatMap((fromState) =>
      INSTANCE_STATES.map((toState) => ({
        ...{ eventType: 'state_transition' as const, fromState, toState },
      })),
    ),
    { eventType: 'state_transition', toState: 'running' },
    { eventType: 'state_transition', fromState: 'running', toState: 'failed', failure: FAILURE },
    { eventType: 'step_retried', blockId: 'a "quoted"', details: { attempt: 1 } },
  ];
  for (const event of events) {
    const { eventType, fromState, toState, blockId, details = {}, failure } = event;
    const entry = { event_type: eventType, block_id: blockId, details, failure };
    const expected = { ...entry, from_state: fromState, to_state: toState };
    const same = (text: string, id: object) =>
      assert.equal(
        JSON.stringify(sorted({ ...entryIn(text), ...id })),
        JSON.stringify(sorted({ ...expected, ...id })),
      );
    same(entryText(ID, event), { id: ID });
    same(entryText(undefined, event), {});
  }
});

test('only the first entry of a unit has an id, unless there are more than a series has', () => {
  assert.deepEqual([0, 1, 2, 0x3fff, 0x4000].filter(hasOwnId), [0, 0x4000]);
});

test('the codes of states are those of rows that are stored already', () => {
  const codes = ['scheduled', 'running', 'waiting', 'paused', 'failed', 'completed', 'cancelled'];
  assert.deepEqual(INSTANCE_STATES, codes);
  codes.forEach((to_state, code) => {
    assert.equal(entryIn(`["${ID}",${code},${code}]`).to_state, to_state);
    assert.equal(entryIn(`["${ID}","running","${to_state}"]`).to_state, to_state);
  });
});

function sorted(entry: object): object {
  return Object.fromEntries(Object.entries(entry).sort(([a], [b]) => (a < b ? -1 : 1)));
}
