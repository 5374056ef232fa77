/**
 * A handoff as callers see it. Two states are derived on every read before they are stored: expired
 * when the capsule is, completed when the instance at the destination has ended.
 */

import { toUnixMs } from '../../../schema/common.js';
import type { HandoffState } from '../../../schema/continuity-words.js';
import type { Handoff } from '../../../schema/handoff.js';
import { type InstanceState, isTerminal } from '../../../schema/states.js';
import type { UnixMs } from '../../../src/base/time.js';
import type { StoredRow } from '../../../src/db/table.js';
import type { HANDOFFS } from '../tables.js';
import type { PlacementTerms } from './requirements.js';

/** `terms` is the JSON text of PlacementTerms. */
export interface HandoffFacts extends Omit<StoredRow<typeof HANDOFFS>, 'state'> {
  readonly state: HandoffState;
}

/** @param destination state of the instance at the epoch after the expected one, if it is here */
export function handoffView(
  row: HandoffFacts,
  now: UnixMs,
  destination?: InstanceState | undefined,
): Handoff {
  const { capsule_expires_at: _, terms: text, ...shown } = row;
  const { requirements, policy, classification } = handoffTerms(row);
  return {
    ...shown,
    state: handoffStateAt(row, now, destination),
    data_classification: classification,
    ...(policy && { locality_policy: policy }),
    requirements,
  };
}

export function handoffTerms({ terms }: Pick<HandoffFacts, 'terms'>): PlacementTerms {
  return JSON.parse(terms) as PlacementTerms;
}

export function handoffStateAt(
  { state, capsule_expires_at }: Pick<HandoffFacts, 'state' | 'capsule_expires_at'>,
  now: UnixMs,
  destination?: InstanceState | undefined,
): HandoffState {
  const expiresMs = capsule_expires_at === null ? undefined : toUnixMs(capsule_expires_at);
  if (state === 'exported' && expiresMs !== undefined && expiresMs <= now) return 'expired';
  const isOver = destination !== undefined && isTerminal(destination);
  return state === 'resumed' && isOver ? 'completed' : state;
}
