/**
 * What has to hold of an execution before and after a migration, judged on the receipts of
 * its effects. Further rules join by being put into the list.
 */

import type { EffectReceipt } from '../../../schema/continuity.js';
import type { InstanceState } from '../states.js';
import type { EffectState } from './states.js';

/** Whether a rule holds; a migration needs `pass`, so that `unknown` stands in its way too. */
export type Judgement = 'pass' | 'fail' | 'unknown';

export interface JudgedReceipt
  extends Pick<
    EffectReceipt,
    'id' | 'block_id' | 'state' | 'destination_fingerprint' | 'idempotency_key'
  > {
  /** The pass of the loops around its step, '' outside of loops; null where it is not known. */
  readonly iteration: string | null;
}

/** One of the two runs of a replay, and what the execution has done outside so far. */
export interface Evidence {
  readonly state: InstanceState;
  readonly receipts: readonly JudgedReceipt[];
}

export interface Invariant {
  readonly rule: string;
  readonly judge: (evidence: Evidence) => Judgement;
}

/** Rules that every sequence has. */
export const ALWAYS_ON: readonly Invariant[] = [
  { rule: 'effect_at_most_once', judge: judgeAtMostOnce },
  { rule: 'no_unknown_effects', judge: judgeNoUnknown },
];

/** Undone effects, such as those that were compensated, may be done again. */
const DONE: ReadonlySet<EffectState> = new Set<EffectState>(['committed', 'verified']);

/** Done twice: by one step in one pass, or under one idempotency key at one destination. */
function judgeAtMostOnce({ receipts }: Evidence): Judgement {
  const seen = new Set<string>();
  for (const receipt of receipts) {
    if (!DONE.has(receipt.state)) continue;
    for (const name of namesOf(receipt)) {
      if (seen.has(name)) return 'fail';
      seen.add(name);
    }
  }
  return 'pass';
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

function judgeNoUnknown({ receipts }: Evidence): Judgement {
  if (receipts.some(({ state }) => state === 'unknown')) return 'fail';
  return receipts.some(({ state }) => state === 'dispatched') ? 'unknown' : 'pass';
}
