/**
 * The result of a list of blocks: the output of its last block that has one, nested blocks included, in the order of
 * the definition (docs/reference/blocks.md). The output of a race or a for_each already contains the results of its
 * blocks.
 */

import {
  CATCH_LIST,
  COMPLETED,
  type DoneCode,
  FAILED,
  TRY_LIST,
} from '../../../schema/execution.js';
import type { JsonValue } from '../../base/json.js';
import type { Evaluation } from '../evaluation.js';
import type { OutputsView } from '../expression/scope.js';
import type { NodePlace, PlanNode } from '../plan-nodes.js';

/** The result of a completed list in the current iteration; null when no block has an output. */
export function resultOf(run: Evaluation, around: NodePlace, branch: number): JsonValue {
  const { outputs } = run.scopeOf(around);
  return latest(run, outputs, around.lists[branch]!) ?? null;
}

function latest(run: Evaluation, outputs: OutputsView, list: readonly number[]) {
  for (const index of list.toReversed()) {
    if (!hasEnded(run, index, COMPLETED)) continue;
    const found = outputOf(run, outputs, run.plan.nodes[index]!);
    if (found !== undefined) return found;
  }
  return undefined;
}

function outputOf(run: Evaluation, outputs: OutputsView, node: PlanNode): JsonValue | undefined {
  const { kind, id } = node;
  const own = outputs.get(id);
  if (kind.outputRow === 'last') return own;
  const found = latest(run, outputs, ranLists(run, node).flat());
  return kind.outputRow === 'first' ? (found ?? own) : found;
}

/** Ignores a catch list that ran before a retry in which nothing was caught. */
function ranLists(run: Evaluation, { type, lists }: PlanNode): readonly (readonly number[])[] {
  if (type !== 'try_catch' || lists[TRY_LIST]!.some((index) => hasEnded(run, index, FAILED))) {
    return lists;
  }
  return lists.filter((_, branch) => branch !== CATCH_LIST);
}

function hasEnded({ execution }: Evaluation, index: number, code: DoneCode): boolean {
  return execution.d[index]?.[0] === code;
}

/** The blocks whose outputs may be the result of the list. @param isWhole false: the list may end at any block */
export function resultBlocks(
  nodes: readonly NodePlace[],
  list: readonly number[],
  isWhole = true,
): Set<string> {
  const blocks = new Set<string>();
  for (const index of list.toReversed()) {
    const { id, type, kind, lists, when } = nodes[index]!;
    if (kind.outputRow !== 'never') blocks.add(id);
    if (kind.outputRow !== 'last') {
      for (const [branch, inner] of lists.entries()) {
        const isTried = type === 'try_catch' && branch === TRY_LIST;
        for (const one of resultBlocks(nodes, inner, !isTried)) blocks.add(one);
      }
    }
    // Earlier blocks are not read: this block has an output whenever the list completes.
    const isSure = kind.outputRow !== 'never' && kind.repeats === 'never';
    if (isWhole && isSure && when === undefined) break;
  }
  return blocks;
}
