/** Retries and resumes that ask before they repeat external effects (docs/reference/explain.md). */

import type { RunsAgain } from '../client/src/index.js';
import type { Given } from './command.js';
import { usageError } from './exit.js';
import type { Session } from './session.js';

export async function retryOne(session: Session, id: string, given: Given): Promise<unknown> {
  await expectRepeats(session, id, given, 'retry');
  return session.client.instances.retry(id);
}

/** Resuming an instance that was paused after a failure retries it. */
export async function resumeOne(session: Session, id: string, given: Given): Promise<unknown> {
  await expectRepeats(session, id, given, 'resume');
  return session.client.instances.signal(id, { signal_type: 'resume' });
}

/** @throws CommandError if the user does not confirm the repetition */
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
  // An instance whose parent has continued without it need not repeat effects.
  const isRepeating = again.blocks.some((block) => block.repeats_effects);
  const repeated = `${id} would ${isRepeating ? 'repeat external effects' : 'run without its parent'}`;
  if (asker.isThere) return asker.confirm(`${repeated}. Continue?`);
  throw usageError(
    `${repeated}, and there is no terminal to ask for confirmation`,
    'Use --yes to confirm.',
  );
}

/** What runs again and what is kept, in the server's words. */
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
