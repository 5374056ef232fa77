/**
 * What a migration must not change at the position of an instance: the calls made so far, and the effects on their
 * receipts. Pure.
 */

import type { EffectReceipt } from '../../../schema/continuity.js';
import type { EffectState } from '../../../schema/continuity-words.js';
import {
  differingMembers,
  isSameCall,
  isSameRequest,
  type RecordedCall,
  stepNamed,
} from './calls.js';
import type { Recording } from './recording.js';
import type { Rerun } from './rerun.js';

export interface OtherCall {
  readonly block: string;
  readonly reason: string;
}

/**
 * The first recorded call that the target would not have made; undefined when all agree.
 * @param before the replay with the source
 * @param after the replay with the target, with the same steps
 * @param isOver whether the step makes no further attempt in this iteration
 */
export function otherCallIn(
  before: Rerun,
  after: Rerun,
  { calls }: Recording,
  isOver: (place: string) => boolean,
): OtherCall | undefined {
  for (const place of new Set([...before.taken, ...after.taken])) {
    const pass = place.slice(0, place.lastIndexOf('/'));
    // Later attempts of an open step use the target's call.
    if (!isOver(pass)) continue;
    const block = pass.slice(0, pass.lastIndexOf('/'));
    const reason = problemAt(block, place, before, after, calls.get(place));
    if (reason !== undefined) return { block, reason };
  }
  return undefined;
}

/**
 * A call agrees when it is recorded the same, or when both versions of the step are written the same and render the
 * same.
 */
function problemAt(
  block: string,
  place: string,
  { plan: source, calls: made }: Rerun,
  { plan: target, calls: wanted }: Rerun,
  recorded: RecordedCall | undefined,
): string | undefined {
  const [old, now] = [made.get(place), wanted.get(place)];
  if (old === undefined && now === undefined) return undefined;
  if (recorded !== undefined && now !== undefined && isSameCall(recorded, now)) return undefined;
  // One of the two is evaluated in place.
  if (old === undefined || now === undefined) return another(block, ['handler']);
  if (!isSameCall(old, now)) return another(block, differingMembers(old, now));
  if (isSameRequest(stepNamed(source, block), stepNamed(target, block))) return undefined;
  return recorded === undefined
    ? `step ${block} says otherwise what it asks for, and nobody recorded what it asked`
    : another(block, differingMembers(recorded, now));
}

function another(block: string, members: readonly string[]): string {
  return `step ${block} makes another call: ${members.join(', ')}`;
}

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
  const names = receipts.filter(({ state }) => DONE.has(state)).flatMap(namesOf);
  if (new Set(names).size < names.length) return 'effect_at_most_once: fail';
  const states = new Set(receipts.map(({ state }) => state));
  if (states.has('unknown')) return 'no_unknown_effects: fail';
  return states.has('dispatched') ? 'no_unknown_effects: unknown' : undefined;
}

/** Undone effects, such as compensated ones, may be done again. */
const DONE: ReadonlySet<EffectState> = new Set<EffectState>(['committed', 'verified']);

/** One step in one iteration, and one idempotency key at one destination, has one effect. */
function namesOf(receipt: JudgedReceipt): string[] {
  const { block_id, iteration, idempotency_key, destination_fingerprint } = receipt;
  const names: string[] = [];
  if (iteration !== null) names.push(JSON.stringify(['step', block_id, iteration]));
  if (idempotency_key !== null) {
    names.push(JSON.stringify(['key', destination_fingerprint, idempotency_key]));
  }
  return names;
}
