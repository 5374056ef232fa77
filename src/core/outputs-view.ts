/**
 * Which output of a block an expression sees (docs/reference/expressions.md): outside of loops the latest
 * one, in an item or a run of a saga that of the same item or run, in a loop that of the latest pass until
 * the block begins in the present one. Of a block that failed, or that this pass went by, it sees none.
 */

import { CANCELLED, type Execution, FAILED } from '../../schema/execution.js';
import type { JsonObject, JsonValue } from '../base/json.js';
import type { Evaluation } from './evaluation.js';
import type { OutputsView } from './expression/scope.js';
import { isErrorRow } from './failures.js';
import { copyOf, passOf } from './paths.js';
import type { NodePlace, PlanNode } from './plan-nodes.js';
import type { KeptOutput } from './progress.js';

/** What expressions outside of all loops see. */
export function latestOutputs(outputs: ReadonlyMap<string, KeptOutput>): OutputsView {
  return viewOf(
    () => outputs.keys(),
    (blockId) => outputs.get(blockId)?.output,
  );
}

/** What expressions at a node in loops see; it follows what the run comes to. */
export function outputsIn(run: Evaluation, reader: NodePlace): OutputsView {
  const { plan, snapshot } = run;
  const ids = () => {
    const own = reader.lanes.flatMap((lane) => run.lanes.ownIn(reader, lane));
    return new Set([...snapshot.outputs.keys(), ...own.map(({ block }) => block)]);
  };
  return viewOf(ids, (blockId) => {
    const block = plan.nodes[plan.indexOf.get(blockId) ?? -1];
    if (block === undefined) return snapshot.outputs.get(blockId)?.output;
    const kept = keptFor(run, reader, block);
    if (kept === undefined) return undefined;
    const common = commonLoops(run, reader, block);
    if (common > 0 && isErrorRow(kept.output)) return undefined;
    return isOfThisPass(run, reader, block, kept.iteration, common) ? kept.output : undefined;
  });
}

function viewOf(
  ids: () => Iterable<string>,
  get: (blockId: string) => JsonValue | undefined,
): OutputsView {
  const all = () => {
    const found = Array.from(ids(), (id) => [id, get(id)] as const);
    return Object.fromEntries(found.filter(([, output]) => output !== undefined)) as JsonObject;
  };
  return { get, all };
}

/** Of blocks in items that run side by side a node sees the outputs of its own item. */
function keptFor(run: Evaluation, reader: NodePlace, block: PlanNode): KeptOutput | undefined {
  const { nodes } = run.plan;
  const lane = reader.lanes.findLast((index) => {
    const { index: from, end } = nodes[nodes[index]!.first]!;
    return from < block.index && block.index < end;
  });
  if (lane === undefined) return run.snapshot.outputs.get(block.id);
  return run.lanes.ownIn(reader, lane).find((own) => own.block === block.id);
}

/** How many of the loops around the one are around the other, too. */
function commonLoops({ plan }: Evaluation, reader: NodePlace, block: PlanNode): number {
  const { nodes } = plan;
  const first = (index: number | undefined) => (index === undefined ? -1 : nodes[index]!.first);
  const apart = reader.loops.findIndex((loop, at) => nodes[loop]!.first !== first(block.loops[at]));
  return apart < 0 ? reader.loops.length : apart;
}

function isOfThisPass(
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
    (loop, at) => Number(path[at]) !== passOf(execution.o[loop], reader.slots[at]!),
  );
  if (apart < 0) return true;
  const isCarried = loops.slice(apart).every((loop) => plan.nodes[loop]!.kind.carriesOutputs);
  return isCarried && !hasCome(run, reader, block, loops.at(-1)!);
}

/**
 * Whether the present pass of the loop has come to the block, or has gone by it. What a block says of itself
 * is the same in all of its tries.
 */
function hasCome(run: Evaluation, reader: NodePlace, block: PlanNode, loop: number): boolean {
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
    if (record === undefined) return isPassedBy(run, place);
    const inner = chain[at + 1];
    if (inner === undefined) return place.index !== reader.index;
    if (!isReached(execution, inner) && !place.kind.awaits(record, inner.branch)) return true;
  }
  return false;
}

function isReached({ o, d }: Execution, { index }: PlanNode): boolean {
  return o[index] !== undefined || d[index] !== undefined;
}

/** Something before it has ended its list. */
function isPassedBy({ plan, execution }: Evaluation, node: PlanNode): boolean {
  const list = plan.nodes[node.parent]?.lists[node.branch] ?? [];
  return list.slice(0, node.position).some((index) => {
    const code = execution.d[index]?.[0];
    return code === FAILED || code === CANCELLED;
  });
}
