/** An entry of the audit as it is stored, as text. Pure. */

import type { AuditEntry } from '../../../schema/instance.js';
import { INSTANCE_STATES, type InstanceState } from '../../../schema/states.js';
import type { AuditEvent } from '../../../src/core/progress.js';

type StoredEntry = Omit<AuditEntry, 'id' | 'instance_id' | 'tenant_id' | 'created_at'>;

/** The others of a unit have ids that follow from its first one's (`IdGenerator.first`, `ENTRY_ID` of `audit-reads.ts`). */
export const hasOwnId = (place: number): boolean => place === 0 || place >= SERIES;

/** As many as the ids of a series. */
const SERIES = 0x4000;

/**
 * Most entries are transitions without more, which are stored as `[id, from, to]`, the states as `codeOf` has them.
 * @param id undefined: it follows from that of the first entry
 */
export function entryText(id: string | undefined, event: AuditEvent): string {
  const { eventType, fromState, toState, blockId, details, failure } = event;
  const more = blockId ?? details ?? failure;
  if (eventType === 'state_transition' && more === undefined) {
    if (fromState !== undefined && toState !== undefined) {
      return `[${id === undefined ? '' : `"${id}",`}${codeOf(fromState)},${codeOf(toState)}]`;
    }
  }
  return JSON.stringify({
    id,
    event_type: eventType === 'state_transition' ? undefined : eventType,
    from_state: fromState,
    to_state: toState,
    block_id: blockId,
    details,
    failure,
  });
}

/** @param text of `entryText`, also of older engines: states as words, absent members null */
export function entryIn(text: string): StoredEntry {
  const stored = JSON.parse(text);
  const entry = { event_type: 'state_transition', details: {} } as const;
  if (!Array.isArray(stored)) return { ...entry, ...stored };
  const [from, to] = stored.slice(-2) as [StoredState, StoredState];
  return { ...entry, from_state: stateOf(from), to_state: stateOf(to) };
}

type StoredState = number | InstanceState;

/** The place of the state in the table of states, which therefore only grows at its end. */
const codeOf = (state: InstanceState): number => INSTANCE_STATES.indexOf(state);

const stateOf = (stored: StoredState): InstanceState =>
  typeof stored === 'string' ? stored : INSTANCE_STATES[stored]!;
