/** Texts that describe what a retry repeats. */

import type { RunsAgain, RunsAgainBlock, RunsAgainParent } from '../../../schema/explanation.js';
import { type InstanceState, isEnded } from '../../../schema/states.js';

export type RunsAgainFacts = Omit<RunsAgainBlock, 'summary'>;
/** Without a `child_state`, the child has failed. */
type Known = RunsAgainFacts & { readonly child_state?: InstanceState | undefined };

const SUMMARIES: Readonly<Record<RunsAgainFacts['kind'], (block: Known) => string>> = {
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
      return `Child ${child_id} of block ${path} has completed, and its result is used.`;
    }
    if (!isEnded(child_state)) {
      return `Block ${path} waits for its child ${child_id}, which is ${child_state}.`;
    }
    if (child_state === 'cancelled') {
      return `Child ${child_id} of block ${path} was cancelled, and its remaining clean-up was given up.`;
    }
    if (cleans_up === true && !repeats_effects) {
      return `Child ${child_id} of block ${path} continues with its remaining clean-up.`;
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

/** Whether the parent no longer uses the result of the child. */
export function isOrphan(parent: Pick<RunsAgainParent, 'stands'> | undefined): boolean {
  return parent?.stands === 'went_on' || parent?.stands === 'ended';
}

export interface ParentFacts extends Omit<RunsAgainParent, 'summary'> {
  /** Absent: the parent no longer exists. */
  readonly state?: InstanceState | undefined;
}

/** @param leftBy the ancestor that has continued without the parent */
export function parentText({ id, state, stands }: ParentFacts, leftBy?: string): string {
  if (leftBy !== undefined) {
    return (
      `Its parent ${id} would use its result in a retry, but instance ${leftBy} above them ` +
      'has continued without both: they run on their own.'
    );
  }
  switch (stands) {
    case 'waits':
      return `Its parent ${id} waits for it and uses its result.`;
    case 'takes':
      return `Its parent ${id} has failed, too, and uses its result when it is retried.`;
    case 'went_on':
      return `Its parent ${id} has continued without it and is ${state}: it runs on its own, and its result is not used.`;
    case 'ended': {
      const how = state === undefined ? 'no longer exists' : `is ${state} without it`;
      return `Its parent ${id} ${how}: it runs on its own, and its result is not used.`;
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
  cancelled: 'Then it is cancelled, as requested.',
  failed: 'Then it fails for its original reason; only another retry runs more.',
};

const LISTED_MAX = 5;

function repeatedText(names: readonly string[]): string {
  const shown = names.slice(0, LISTED_MAX).join(', ');
  const more = names.length > LISTED_MAX ? ' and others' : '';
  return `what had completed (${shown}${more}) acts outside a second time`;
}
