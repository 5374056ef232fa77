/**
 * What has to hold of what an execution has done outside before and after a migration, judged on the
 * receipts of its effects.
 */

import type { EffectReceipt } from '../../../schema/continuity.js';
import type { EffectState } from '../../../schema/continuity-words.js';

export interface JudgedReceipt
  extends Pick<
    EffectReceipt,
    'block_id' | 'state' | 'destination_fingerprint' | 'idempotency_key'
  > {
  /** The pass of the loops around its step, '' outside of loops; null where it is not known. */
  readonly iteration: string | null;
}

/** The first rule that does not hold, or of which nobody knows whether it does. */
export function brokenRule(receipts: readonly JudgedReceipt[]): string | undefined {
  if (isDoneTwice(receipts)) return 'effect_at_most_once: fail';
  const states = new Set(receipts.map(({ state }) => state));
  if (states.has('unknown')) return 'no_unknown_effects: fail';
  return states.has('dispatched') ? 'no_unknown_effects: unknown' : undefined;
}

/** Undone effects, such as those that were compensated, may be done again. */
const DONE: ReadonlySet<EffectState> = new Set<EffectState>(['committed', 'verified']);

/** Done twice: by one step in one pass, or under one idempotency key at one destination. */
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

/** What may stand in one receipt only. */
function namesOf(receipt: JudgedReceipt): string[] {
  const { block_id, iteration, idempotency_key, destination_fingerprint } = receipt;
  const names: string[] = [];
  if (iteration !== null) names.push(JSON.stringify(['step', block_id, iteration]));
  if (idempotency_key !== null) {
    names.push(JSON.stringify(['key', destination_fingerprint, idempotency_key]));
  }
  return names;
}
