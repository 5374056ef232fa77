/** A retry that repeats what happened outside says so before, and asks (docs/reference/explain.md). */

import type { RunsAgain } from '../client/src/index.js';
import type { Given } from './command.js';
import { usageError } from './exit.js';
import type { Session } from './session.js';

export async function retryOne(session: Session, id: string, given: Given): Promise<unknown> {
  await expectRepeats(session, id, given, 'retry');
  return session.client.instances.retry(id);
}

/** What was paused while it was failed is retried by that. */
export async function resumeOne(session: Session, id: string, given: Given): Promise<unknown> {
  await expectRepeats(session, id, given, 'resume');
  return session.client.instances.signal(id, { signal_type: 'resume' });
}

/** @throws CommandError when nobody agrees to what is repeated */
async function expectRepeats(
  { client, out, asker }: Session,
  id: string,
  given: Given,
  action: 'retry' | 'resume',
): Promise<void> {
  if (given.flag('yes')) return;
  const { next } = await client.instances.explain(id);
  const again = next.find((one) => one.action === action)?.runs_again;
  if (again === undefined) return;
  for (const line of linesOf(again)) out.note(line);
  if (!again.repeats_effects) return;
  // Whose parent has gone on without it need not repeat any.
  const isRepeating = again.blocks.some((block) => block.repeats_effects);
  const repeated = `${id} would ${isRepeating ? 'repeat effects outside' : 'run for itself'}`;
  if (asker.isThere) return asker.confirm(`${repeated}. Go on?`);
  throw usageError(`${repeated}, and nobody is there to agree`, 'Give --yes to do it.');
}

/** What runs again and what stays, in the words of the server. */
export function linesOf({ blocks, blocks_count, stays, stays_count, parent }: RunsAgain): string[] {
  const more = blocks_count - blocks.length;
  return [
    ...blocks.map(({ summary }) => summary),
    ...(more > 0 ? [`and ${more} more`] : []),
    ...(stays_count === 0 ? [] : [`Stays: ${listed(stays, stays_count)}`]),
    ...(parent === undefined ? [] : [parent.summary]),
  ];
}

const LISTED_MAX = 10;

function listed(names: readonly string[], count: number): string {
  const shown = names.slice(0, LISTED_MAX);
  const more = count - shown.length;
  return `${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
