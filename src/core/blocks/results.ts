/**
 * The result of a list of blocks: the output of the last block in it that has one, blocks inside of others
 * included, in the order of the definition (docs/reference/blocks.md).
 */

import type { Evaluation } from '../evaluation.js';
import { COMPLETED } from '../execution.js';
import type { JsonValue } from '../json.js';
import type { NodePlace } from '../plan-nodes.js';

/** Of a list that has ended well, in the present pass; null when nothing in it has an output. */
export function resultOf(run: Evaluation, list: readonly number[]): JsonValue {
  return latest(run, list) ?? null;
}

function latest(run: Evaluation, list: readonly number[]): JsonValue | undefined {
  for (const index of list.toReversed()) {
    if (run.execution.d[index]?.[0] !== COMPLETED) continue;
    const node = run.plan.nodes[index]!;
    const found = node.kind.leavesRow
      ? run.snapshot.outputs.get(node.id)
      : latest(run, node.lists.flat());
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The blocks whose outputs may be the result of the list: these have to be kept. */
export function resultBlocks(nodes: readonly NodePlace[], list: readonly number[]): Set<string> {
  const blocks = new Set<string>();
  for (const index of list.toReversed()) {
    const { id, kind, lists, when } = nodes[index]!;
    if (!kind.leavesRow) {
      for (const inner of lists) for (const one of resultBlocks(nodes, inner)) blocks.add(one);
      continue;
    }
    blocks.add(id);
    // Those before it are never asked: it runs whenever the list ends well.
    if (when === undefined) break;
  }
  return blocks;
}
