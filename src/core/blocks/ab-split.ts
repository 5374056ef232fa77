/**
 * ab_split: one of its variants, which follows from the ids of the instance and of the block and from the
 * weights, and from nothing else (docs/reference/blocks.md). Decided once, as the list of a router is.
 */

import { createHash } from 'node:crypto';
import type { AbSplitBlock } from '../../../schema/blocks.js';
import { COMPLETED, type RouterRecord } from '../../../schema/execution.js';
import type { NodePlace } from '../plan-nodes.js';
import { composite } from './kind.js';
import { afterChild, startAt } from './list.js';

/** Lists: the variants. */
export interface AbSplitNode extends NodePlace {
  readonly type: 'ab_split';
  readonly names: readonly string[];
  readonly weights: readonly number[];
}

export const abSplit = composite<AbSplitBlock, AbSplitNode, RouterRecord>({
  isKept: true,
  order: 'one',
  leavesRow: 'first',
  compile: ({ variants }) => ({
    names: variants.map(({ name }) => name),
    weights: variants.map(({ weight }) => weight),
  }),
  lists: (block) => block.variants.map(({ blocks }) => blocks),
  enter(run, node) {
    const kept = run.takeKept(node) as RouterRecord | undefined;
    const variant = kept?.r ?? variantOf(run.snapshot.id, node.id, node.weights);
    run.open(node, { b: run.offset, r: variant });
    if (kept === undefined) {
      const row = { variant: node.names[variant]!, variant_index: variant };
      run.storeOutput(node, 0, row, null, 'next');
    }
    if (!startAt(run, node.lists[variant]!, 0)) run.finish(node, COMPLETED);
  },
  childDone(run, node, record, child, code) {
    const result = afterChild(run, node.lists[record.r]!, child, code);
    if (result !== 'open') run.finish(node, result);
  },
  runsList: (record, branch) => record.r === branch,
  awaits: (record, branch) => record.x !== 1 && record.r === branch,
});

/**
 * The variant in whose share of the weights the hash of the two ids falls.
 *
 * @param weights some of which is above 0
 */
export function variantOf(instance: string, block: string, weights: readonly number[]): number {
  const hash = createHash('sha256')
    .update(Buffer.from(instance.replaceAll('-', ''), 'hex'))
    .update(Buffer.of(0))
    .update(block)
    .digest();
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let target = Number(hash.readBigUInt64BE(0) % BigInt(total));
  for (const [variant, weight] of weights.entries()) {
    if (target < weight) return variant;
    target -= weight;
  }
  throw new Error('the weights of the variants are all 0');
}
