/**
 * Which output of a block an expression sees (docs/reference/expressions.md): outside of loops the latest one, in an
 * item or a run of a saga that of the same item or run, in a loop that of the latest iteration until the block begins
 * in the current one. The outputs of blocks that failed, or that the current iteration has skipped, are not visible.
 */

import type { JsonObject } from '../base/json.js';
import type { Evaluation } from './evaluation.js';
import type { OutputsView } from './expression/scope.js';
import { isErrorRow } from './failures.js';
import { ownIn } from './loop-items.js';
import { isFailure } from './owed.js';
import { copyOf, iterationAt } from './paths.js';
import type { NodePlace, PlanNode } from './plan-nodes.js';
import type { KeptOutput } from './progress.js';

export function latestOutputs(outputs: ReadonlyMap<string, KeptOutput>): OutputsView {
  return viewOf(
    () => outputs.keys(),
    (blockId) => outputs.get(blockId)?.output,
  );
}

/** What expressions at a node inside loops see; the view follows the run. */
export function outputsIn(run: Evaluation, reader: NodePlace): OutputsView {
  const { plan, snapshot } = run;
  const ids = () => {
    const own = reader.concurrentLoops.flatMap((loop) => ownIn(run, reader, loop));
    return new Set([...snapshot.outputs.keys(), ...own.map(({ block }) => block)]);
  };
  return viewOf(ids, (blockId) => {
    const block = plan.nodes[plan.indexOf.get(blockId) ?? -1];
    if (block === undefined) return snapshot.outputs.get(blockId)?.output;
    const kept = keptFor(run, reader, block);
    if (kept === undefined) return undefined;
    const common = commonLoops(run, reader, block);
    if (common > 0 && isErrorRow(kept.output)) return undefined;
    return isOfCurrentIteration(run, reader, block, kept.iteration, common)
      ? kept.output
      : undefined;
  });
}

function viewOf(ids: () => Iterable<string>, get: OutputsView['get']): OutputsView {
  const all = () => {
    const found = Array.from(ids(), (id) => [id, get(id)] as const);
    return Object.fromEntries(found.filter(([, output]) => output !== undefined)) as JsonObject;
  };
  return { get, all };
}

/** A node in a concurrent item sees only the outputs of its own item. */
function keptFor(run: Evaluation, reader: NodePlace, block: PlanNode): KeptOutput | undefined {
  const { nodes } = run.plan;
  const loop = reader.concurrentLoops.findLast((index) => {
    const { index: from, end } = nodes[nodes[index]!.first]!;
    return from < block.index && block.index < end;
  });
  if (loop === undefined) return run.snapshot.outputs.get(block.id);
  return ownIn(run, reader, loop).find((own) => own.block === block.id);
}

function commonLoops({ plan }: Evaluation, reader: NodePlace, block: PlanNode): number {
  const { nodes } = plan;
  const first = (index: number | undefined) => (index === undefined ? -1 : nodes[index]!.first);
  const apart = reader.loops.findIndex((loop, at) => nodes[loop]!.first !== first(block.loops[at]));
  return apart < 0 ? reader.loops.length : apart;
}

function isOfCurrentIteration(
  run: Evaluation,
  reader: NodePlace,
  block: PlanNode,
  iteration: string,
  common: number,
): boolean {
  const { execution, plan } = run;
  const path = iteration.split('.');
  const loops = reader.loops.slice(0, common);
  const apart = loops.findIndex(
    (loop, at) => Number(path[at]) !== iterationAt(execution.o[loop], reader.slots[at]!),
  );
  if (apart < 0) return true;
  const isCarried = loops.slice(apart).every((loop) => plan.nodes[loop]!.kind.carriesOutputs);
  return isCarried && !hasReached(run, reader, block, loops.at(-1)!);
}

/** Whether the current iteration has reached or passed the block; the same for all tries of a step. */
function hasReached(run: Evaluation, reader: NodePlace, block: PlanNode, loop: number): boolean {
  const { execution, plan } = run;
  const chain: PlanNode[] = [];
  const slotIn = ({ first }: PlanNode) => {
    const at = reader.loops.findIndex((index) => plan.nodes[index]!.first === first);
    return reader.slots[at] ?? 0;
  };
  let node = copyOf(plan, block, slotIn);
  for (; node !== undefined && node.index !== loop; node = plan.nodes[node.parent]) {
    chain.unshift(node);
  }
  for (const [at, place] of chain.entries()) {
    if (execution.d[place.index] !== undefined) return true;
    const record = execution.o[place.index];
    if (record === undefined) return isSkippedOver(run, place);
    const inner = chain[at + 1];
    if (inner === undefined) return place.index !== reader.index;
    const isReached =
      execution.o[inner.index] !== undefined || execution.d[inner.index] !== undefined;
    if (!isReached && !place.kind.awaits(record, inner.branch)) return true;
  }
  return false;
}

function isSkippedOver({ plan, execution }: Evaluation, node: PlanNode): boolean {
  const list = plan.nodes[node.parent]?.lists[node.branch] ?? [];
  return list.slice(0, node.position).some((index) => isFailure(execution.d[index]?.[0]));
}
