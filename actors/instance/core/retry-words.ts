/** The texts about what a retry runs again, shared by all places that show them. */

import type { RunsAgain, RunsAgainBlock, RunsAgainParent } from '../../../schema/explanation.js';
import { type InstanceState, isEnded } from '../../../schema/states.js';

export type RunsAgainFacts = Omit<RunsAgainBlock, 'summary'>;

/** The block with the state of its child; absent: failed. */
type Known = RunsAgainFacts & { readonly child_state?: InstanceState | undefined };

type Summary = (block: Known) => string;

const SUMMARIES: Readonly<Record<RunsAgainFacts['kind'], Summary>> = {
  step: ({ path }) => `Step ${path} runs again.`,
  block: ({ path }) => `Block ${path} goes on.`,
  compensation: ({ path }) => `Compensation ${path} runs again.`,
  finally: ({ path, repeats, repeats_effects }) =>
    repeats_effects
      ? `Finally block ${path} runs once more, behind what goes on: ${repeatedText(repeats)}.`
      : `Finally block ${path} runs again.`,
  saga: ({ path, repeats, repeats_effects }) =>
    `Saga ${path} runs again as a whole` + (repeats_effects ? `: ${repeatedText(repeats)}.` : '.'),
  child: ({ path, child_id, child_state = 'failed', cleans_up, repeats, repeats_effects }) => {
    if (child_id === undefined) {
      return repeats_effects
        ? `Block ${path} starts another child in place of the one that was cancelled: all of it runs from the beginning.`
        : `Block ${path} starts a child.`;
    }
    if (child_state === 'completed') {
      return `Child ${child_id} of block ${path} has completed by itself, and its result is taken.`;
    }
    if (!isEnded(child_state)) {
      return `Block ${path} waits for its child ${child_id}, which is ${child_state}.`;
    }
    if (child_state === 'cancelled') {
      return `Child ${child_id} of block ${path} was cancelled, and what it had to clean up was given up.`;
    }
    if (cleans_up === true && !repeats_effects) {
      return `Child ${child_id} of block ${path} goes on with what it has left to clean up.`;
    }
    const child = `Child ${child_id} of block ${path} is retried`;
    if (!repeats_effects) return `${child}; what completed in it stays.`;
    return repeats.length === 0
      ? `${child}, and may repeat effects outside.`
      : `${child}: in it ${repeatedText(repeats)}.`;
  },
  hook: ({ path }) => `Hook ${path} runs again.`,
};

export function summaryOf(block: Known): string {
  return SUMMARIES[block.kind](block);
}

/** Whether the result of the child is no longer taken, because an instance above it has continued. */
export function isOrphan(parent: Pick<RunsAgainParent, 'stands'> | undefined): boolean {
  return parent?.stands === 'went_on' || parent?.stands === 'ended';
}

export interface ParentFacts extends Omit<RunsAgainParent, 'summary'> {
  /** Absent: the parent no longer exists. */
  readonly state?: InstanceState | undefined;
}

/** @param leftBy the instance above the parent that has continued without it */
export function parentText({ id, state, stands }: ParentFacts, leftBy?: string): string {
  if (leftBy !== undefined) {
    return (
      `Its parent ${id} takes what it comes to in a retry of its own, but the instance ${leftBy} above them ` +
      'has gone on without both: they run for themselves.'
    );
  }
  switch (stands) {
    case 'waits':
      return `Its parent ${id} waits for it, and takes what it comes to.`;
    case 'takes':
      return `Its parent ${id} has failed, too, and takes what it comes to in a retry of its own.`;
    case 'went_on':
      return `Its parent ${id} has gone on without it and is ${state}: it runs for itself, and nobody takes what it comes to.`;
    case 'ended': {
      const how = state === undefined ? 'is not there any more' : `is ${state}, without it`;
      return `Its parent ${id} ${how}: it runs for itself, and nobody takes what it comes to.`;
    }
  }
}

export function retryText(again: RunsAgain): string {
  const { blocks, blocks_count: count, ends, parent } = again;
  const repeats_effects = blocks.some((block) => block.repeats_effects);
  const repeated = blocks.filter((block) => block.repeats_effects);
  const [first] = repeated.length > 0 ? repeated : blocks;
  const more = count > 1 && first !== undefined ? ` In all ${count} blocks run again.` : '';
  const what = first === undefined ? 'Nothing runs again.' : `${first.summary}${more}`;
  const stays = repeats_effects
    ? 'What is repeated has new idempotency keys.'
    : 'What completed is not repeated.';
  const parts = [what, stays, ...(ends === undefined ? [] : [END_TEXTS[ends]])];
  return [...parts, ...(parent === undefined ? [] : [parent.summary])].join(' ');
}

const END_TEXTS: Readonly<Record<NonNullable<RunsAgain['ends']>, string>> = {
  cancelled: 'Then it is cancelled, as it was to be.',
  failed: 'Then it fails for the reason that it had; only a retry after that runs more.',
};

const LISTED_MAX = 5;

function repeatedText(names: readonly string[]): string {
  const shown = names.slice(0, LISTED_MAX).join(', ');
  const more = names.length > LISTED_MAX ? ' and others' : '';
  return `what had completed (${shown}${more}) acts outside a second time`;
}
