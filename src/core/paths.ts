/** Where a block stands in a running instance, for people and for rows. */

import type { Execution, LoopRecord } from './execution.js';
import type { NodePlace, Plan } from './plan-nodes.js';

/**
 * The ids from the outermost block to it, and of each loop the iteration that runs, counted from 0, as in
 * `orders[2]/charge`; while those loops are open.
 */
export function pathOf({ nodes }: Plan, { o }: Execution, node: NodePlace): string {
  let path = node.id;
  for (let around = nodes[node.parent]; around !== undefined; around = nodes[around.parent]) {
    const isLoop = around.kind.repeats !== 'never';
    const pass = isLoop ? `[${(o[around.index] as LoopRecord | undefined)?.i ?? 0}]` : '';
    path = `${around.id}${pass}/${path}`;
  }
  return path;
}

/** The counters of the loops around the node: '' outside of loops, else such as `2.0`. */
export function iterationOf({ o }: Execution, { loops }: Pick<NodePlace, 'loops'>): string {
  if (loops.length === 0) return '';
  return loops.map((index) => (o[index] as LoopRecord | undefined)?.i ?? 0).join('.');
}
