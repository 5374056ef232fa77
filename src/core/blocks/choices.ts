/** router runs the first route that holds; ab_split runs a variant that its weights and the ids determine. */

import { createHash } from 'node:crypto';
import type { AbSplitBlock, RouterBlock } from '../../../schema/blocks.js';
import { conditionOf } from '../block-compiler.js';
import { type Condition, holds } from '../condition.js';
import type { NodePlace } from '../plan-nodes.js';
import { choice } from './kind.js';

/** Lists: the routes, then the default. A condition that does not parse is undefined and counts as false. */
export interface RouterNode extends NodePlace {
  readonly type: 'router';
  readonly conditions: readonly (Condition | undefined)[];
}

export const router = choice<RouterBlock, RouterNode>({
  compile(block, compiler) {
    const routes = block.routes ?? [];
    return {
      conditions: routes.map(({ condition }, index) =>
        conditionOf(compiler, condition, { member: `routes[${index}].condition` }),
      ),
    };
  },
  lists(block) {
    const routes = block.routes ?? [];
    return [...routes.map(({ blocks }) => blocks), block.default ?? []];
  },
  choose(run, node) {
    const scope = run.scopeOf(node);
    const route = node.conditions.findIndex((condition) => holds(condition, scope));
    return route < 0 ? node.conditions.length : route;
  },
});

export interface AbSplitNode extends NodePlace {
  readonly type: 'ab_split';
  readonly names: readonly string[];
  readonly weights: readonly number[];
}

export const abSplit = choice<AbSplitBlock, AbSplitNode>({
  outputRow: 'first',
  compile: ({ variants }) => ({
    names: variants.map(({ name }) => name),
    weights: variants.map(({ weight }) => weight),
  }),
  lists: (block) => block.variants.map(({ blocks }) => blocks),
  choose(run, node) {
    const variant = variantOf(run.snapshot.id, node.id, node.weights);
    const row = { variant: node.names[variant]!, variant_index: variant };
    run.storeOutput(node, 0, row, null, 'next');
    return variant;
  },
});

/** The variant whose share of the weights contains the hash of both ids. @param weights not all 0 */
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
