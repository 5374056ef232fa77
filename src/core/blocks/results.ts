/**
 * The result of a list of blocks: the output of the last block in it that has one, blocks inside of others
 * included, in the order of the definition (docs/reference/blocks.md). That of a race or a for_each tells
 * already what came of the blocks inside.
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

/** Of a list that has ended well, in the present pass; null when nothing in it has an output. */
export function resultOf(run: Evaluation, around: NodePlace, branch: number): JsonValue {
  const { outputs } = run.scopeOf(around);
  return latest(run, outputs, around.lists[branch]!) ?? null;
}

function latest(
  run: Evaluation,
  outputs: OutputsView,
  list: readonly number[],
): JsonValue | undefined {
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
  if (kind.leavesRow === 'last') return own;
  const found = latest(run, outputs, ranLists(run, node).flat());
  return kind.leavesRow === 'first' ? (found ?? own) : found;
}

/** A catch list that has run before a retry, in which there was nothing to catch, has no part in it. */
function ranLists(run: Evaluation, { type, lists }: PlanNode): readonly (readonly number[])[] {
  if (type !== 'try_catch' || lists[TRY_LIST]!.some((index) => hasEnded(run, index, FAILED))) {
    return lists;
  }
  return lists.filter((_, branch) => branch !== CATCH_LIST);
}

function hasEnded({ execution }: Evaluation, index: number, code: DoneCode): boolean {
  return execution.d[index]?.[0] === code;
}

/**
 * The blocks whose outputs may be the result of the list: these have to be kept.
 *
 * @param isWhole the list has ended well when its result is asked for; one that a catch list follows
 * may have ended anywhere
 */
export function resultBlocks(
  nodes: readonly NodePlace[],
  list: readonly number[],
  isWhole = true,
): Set<string> {
  const blocks = new Set<string>();
  for (const index of list.toReversed()) {
    const { id, type, kind, lists, when } = nodes[index]!;
    if (kind.leavesRow !== 'never') blocks.add(id);
    if (kind.leavesRow !== 'last') {
      for (const [branch, inner] of lists.entries()) {
        const isTried = type === 'try_catch' && branch === TRY_LIST;
        for (const one of resultBlocks(nodes, inner, !isTried)) blocks.add(one);
      }
    }
    // Those before it are never asked: it has one whenever the list ends well.
    const isSure = kind.leavesRow !== 'never' && kind.repeats === 'never';
    if (isWhole && isSure && when === undefined) break;
  }
  return blocks;
}
