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
} from './calls.js';
import type { Recording } from './recording.js';
import type { Rerun } from './rerun.js';

export interface OtherCall {
  readonly block: string;
  readonly reason: string;
}

/**
 * The first of the calls so far that the target would not have made; undefined when it would have made
 * all of them.
 *
 * @param before the replay with the source, which made the same steps
 * @param after the replay with the target
 * @param isOver whether the step, in this pass, will make no further try
 */
export function otherCallIn(
  before: Rerun,
  after: Rerun,
  { calls }: Recording,
  isOver: (place: string) => boolean,
): OtherCall | undefined {
  for (const place of new Set([...before.taken, ...after.taken])) {
    const pass = place.slice(0, place.lastIndexOf('/'));
    // A try that failed is followed by others, which ask as the target has it.
    if (!isOver(pass)) continue;
    const block = pass.slice(0, pass.lastIndexOf('/'));
    const reason = problemAt(block, place, before, after, calls.get(place));
    if (reason !== undefined) return { block, reason };
  }
  return undefined;
}

/**
 * A call is the one that was made when it is recorded so, and when the step says the same in both versions
 * and comes to the same with them: whatever it followed from then, it was one call.
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
