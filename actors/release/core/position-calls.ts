/**
 * Checks that the target of a migration would have made the same calls as the source up to the current position. Pure.
 */

import {
  type Call,
  differingMembers,
  isSameCall,
  isSameRequest,
  type RecordedCall,
} from './calls.js';
import type { Recording } from './recording.js';
import type { Rerun } from './rerun.js';

export interface OtherCall {
  readonly block: string;
  readonly reason: string;
}

/**
 * The first recorded call that the target would not have made; undefined when all agree.
 *
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
  const [from, to] = [source, target].map((plan) => plan.nodes[plan.indexOf.get(block) ?? -1]);
  const isSaid = from?.type === 'step' && to?.type === 'step' && isSameRequest(from, to);
  return isSaid ? undefined : unproven(block, recorded, now);
}

function unproven(block: string, recorded: RecordedCall | undefined, now: Call): string {
  return recorded === undefined
    ? `step ${block} says otherwise what it asks for, and nobody recorded what it asked`
    : another(block, differingMembers(recorded, now));
}

function another(block: string, members: readonly string[]): string {
  return `step ${block} makes another call: ${members.join(', ')}`;
}
