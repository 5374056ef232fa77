/** Invariants of the effects of an execution before and after a migration, checked on their receipts. */

import type { EffectReceipt } from '../../../schema/continuity.js';
import type { EffectState } from '../../../schema/continuity-words.js';

export interface JudgedReceipt
  extends Pick<
    EffectReceipt,
    'block_id' | 'state' | 'destination_fingerprint' | 'idempotency_key'
  > {
  /** '' outside of loops; null when unknown. */
  readonly iteration: string | null;
}

/** The first violated rule, or one that cannot be decided. */
export function brokenRule(receipts: readonly JudgedReceipt[]): string | undefined {
  if (isDoneTwice(receipts)) return 'effect_at_most_once: fail';
  const states = new Set(receipts.map(({ state }) => state));
  if (states.has('unknown')) return 'no_unknown_effects: fail';
  return states.has('dispatched') ? 'no_unknown_effects: unknown' : undefined;
}

/** Undone effects, such as compensated ones, may be done again. */
const DONE: ReadonlySet<EffectState> = new Set<EffectState>(['committed', 'verified']);

/** Done twice: by one step in one iteration, or under one idempotency key at one destination. */
function isDoneTwice(receipts: readonly JudgedReceipt[]): boolean {
  const seen = new Set<string>();
  for (const receipt of receipts) {
    if (!DONE.has(receipt.state)) continue;
    for (const name of namesOf(receipt)) {
      if (seen.has(name)) return true;
      seen.add(name);
    }
  }
  return false;
}

/** Keys that only one receipt may have. */
function namesOf(receipt: JudgedReceipt): string[] {
  const { block_id, iteration, idempotency_key, destination_fingerprint } = receipt;
  const names: string[] = [];
  if (iteration !== null) names.push(JSON.stringify(['step', block_id, iteration]));
  if (idempotency_key !== null) {
    names.push(JSON.stringify(['key', destination_fingerprint, idempotency_key]));
  }
  return names;
}
