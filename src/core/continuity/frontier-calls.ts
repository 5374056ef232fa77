/**
 * Whether the target of a migration would have asked for what was asked for on the way to the frontier.
 * Pure.
 */

import {
  type Call,
  differingMembers,
  isSameCall,
  isSameRequest,
  type RecordedCall,
} from '../releases/calls.js';
import type { Recording } from '../releases/recording.js';
import type { Rerun } from '../releases/rerun.js';

/**
 * The first of the calls so far that the target would not have made, in words; undefined when it would
 * have made all of them.
 *
 * @param before the replay with the source, which made the same steps
 * @param after the replay with the target
 */
export function otherCallIn(before: Rerun, after: Rerun, { calls }: Recording): string | undefined {
  for (const place of new Set([...before.taken, ...after.taken])) {
    const problem = problemAt(place, before, after, calls.get(place));
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/**
 * A call is the one that was made when it is recorded so, and when the step says the same in both versions
 * and comes to the same with them: whatever it followed from then, it was one call.
 */
function problemAt(
  place: string,
  { plan: source, calls: made }: Rerun,
  { plan: target, calls: wanted }: Rerun,
  recorded: RecordedCall | undefined,
): string | undefined {
  const [old, now] = [made.get(place), wanted.get(place)];
  if (old === undefined && now === undefined) return undefined;
  if (recorded !== undefined && now !== undefined && isSameCall(recorded, now)) return undefined;
  const block = place.slice(0, place.lastIndexOf('/', place.lastIndexOf('/') - 1));
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
