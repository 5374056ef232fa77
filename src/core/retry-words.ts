/** What a retry runs once more, in sentences: those of every place that tells it. */

import type { RunsAgain, RunsAgainBlock } from '../../schema/explanation.js';

/** A block without its sentence. */
export type RunsAgainFacts = Omit<RunsAgainBlock, 'summary'>;

type Words = (block: RunsAgainFacts) => string;

const AS: Readonly<Record<RunsAgainFacts['kind'], Words>> = {
  step: ({ path }) => `Step ${path} runs again.`,
  block: ({ path }) => `Block ${path} goes on.`,
  compensation: ({ path }) => `Compensation ${path} runs again.`,
  finally: ({ path, repeats, repeats_effects }) =>
    repeats_effects
      ? `Finally block ${path} runs once more, behind what goes on: ${twice(repeats)}.`
      : `Finally block ${path} runs again.`,
  saga: ({ path, repeats, repeats_effects }) =>
    `Saga ${path} runs again as a whole` + (repeats_effects ? `: ${twice(repeats)}.` : '.'),
  child: ({ path, child_id, repeats, repeats_effects }) => {
    if (child_id === undefined) {
      return repeats_effects
        ? `Block ${path} starts another child in place of the one that was cancelled: all of it runs from the beginning.`
        : `Block ${path} starts a child.`;
    }
    const child = `Child ${child_id} of block ${path} is retried`;
    if (!repeats_effects) return `${child}; what completed in it stays.`;
    return repeats.length === 0
      ? `${child}, and may repeat effects outside.`
      : `${child}: in it ${twice(repeats)}.`;
  },
  hook: ({ path }) => `Hook ${path} runs again.`,
};

export function summaryOf(block: RunsAgainFacts): string {
  return AS[block.kind](block);
}

/** What a retry does, in a few sentences. */
export function retryText(again: RunsAgain): string {
  const { blocks, blocks_count: count, ends, repeats_effects } = again;
  const repeated = blocks.filter((block) => block.repeats_effects);
  const [first] = repeated.length > 0 ? repeated : blocks;
  const more = count > 1 && first !== undefined ? ` In all ${count} blocks run again.` : '';
  const what = first === undefined ? 'Nothing runs again.' : `${first.summary}${more}`;
  const stays = repeats_effects
    ? 'What is repeated has new idempotency keys.'
    : 'What completed is not repeated.';
  return `${what} ${stays}${ends === undefined ? '' : ` ${END_WORDS[ends]}`}`;
}

const END_WORDS: Readonly<Record<NonNullable<RunsAgain['ends']>, string>> = {
  cancelled: 'Then it is cancelled, as it was to be.',
  failed: 'Then it fails for the reason that it had; only a retry after that runs more.',
};

const LISTED_MAX = 5;

function twice(names: readonly string[]): string {
  const shown = names.slice(0, LISTED_MAX).join(', ');
  const more = names.length > LISTED_MAX ? ' and others' : '';
  return `what had completed (${shown}${more}) acts outside a second time`;
}
