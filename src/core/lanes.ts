/**
 * What the items of for_each blocks have given in one turn and before: the last outputs, which such a block
 * collects, and for items that run side by side what each has for itself (docs/blocks.md).
 */

import type { Evaluation } from './evaluation.js';
import type { ForEachRecord } from './execution.js';
import {
  forgetOwn,
  type ItemOutputs,
  mergedOf,
  noItemOutputs,
  type OwnOutput,
  setLast,
  setOwn,
} from './item-outputs.js';
import type { JsonObject, JsonValue } from './json.js';
import { passOf } from './paths.js';
import type { NodePlace, StepNode } from './plan-nodes.js';

export class Lanes {
  readonly #run: Evaluation;

  constructor(run: Evaluation) {
    this.#run = run;
  }

  /** What the items of the block have given so far. */
  outputsOf(node: NodePlace): ItemOutputs | undefined {
    return this.#run.snapshot.items?.[this.#run.snapshotKey(node)];
  }

  /** What the blocks of an item have given: the item of that block around the node which the node is in. */
  ownIn(node: NodePlace, lane: number): readonly OwnOutput[] {
    return this.outputsOf(this.#run.plan.nodes[lane]!)?.own[this.itemIn(node, lane)] ?? [];
  }

  itemIn(node: NodePlace, loop: number): number {
    return passOf(this.#run.execution.o[loop], node.slots[node.loops.indexOf(loop)]!);
  }

  /** The output may be the last one of the items that the block is in. */
  collect(node: NodePlace, output: JsonValue): void {
    for (const index of node.collectors) {
      setLast(this.#outputsIn(index), this.itemIn(node, index), output);
    }
  }

  /** @returns whether it changes what expressions see */
  keep(node: NodePlace, output: JsonValue, isError: boolean): boolean {
    if (!node.isRead && (node as Partial<StepNode>).isMerged !== true) return false;
    for (const index of node.lanes) {
      // An error takes the place of the output, and not of what that has merged.
      if (isError) this.#keepMerged(node, index);
      setOwn(this.#outputsIn(index), this.itemIn(node, index), node.id, output);
    }
    return node.lanes.length > 0;
  }

  /** The output that is kept was merged into context.data. */
  merge(node: NodePlace, output: JsonObject): void {
    for (const index of node.lanes) {
      const own = this.ownIn(node, index).find(({ block }) => block === node.id);
      if (own !== undefined) own.isMerged = true;
      const over = this.#recordOf(index).v?.[this.itemIn(node, index)] ?? {};
      for (const key of Object.keys(output)) delete over[key];
    }
  }

  /** Lays values that are no output over what the item sees. */
  lay(node: NodePlace, values: JsonObject): void {
    const index = node.lanes.at(-1);
    if (index === undefined) return;
    const record = this.#recordOf(index);
    const item = this.itemIn(node, index);
    record.v ??= {};
    record.v[item] = { ...record.v[item], ...values };
  }

  /** The item has ended. */
  leave(node: NodePlace, item: number): void {
    const outputs = this.outputsOf(node);
    if (outputs !== undefined) forgetOwn(outputs, item);
  }

  #keepMerged(node: NodePlace, index: number): void {
    const own = this.ownIn(node, index);
    const at = own.findIndex(({ block, isMerged }) => block === node.id && isMerged);
    if (at < 0) return;
    const later = Object.fromEntries(mergedOf(own.slice(at + 1)));
    const merged = mergedOf([own[at]!]).filter(([key]) => !Object.hasOwn(later, key));
    const record = this.#recordOf(index);
    const item = this.itemIn(node, index);
    record.v ??= {};
    record.v[item] = { ...Object.fromEntries(merged), ...record.v[item] };
  }

  #recordOf(index: number): ForEachRecord {
    return this.#run.execution.o[index] as ForEachRecord;
  }

  #outputsIn(index: number): ItemOutputs {
    const { snapshot, plan } = this.#run;
    snapshot.items ??= {};
    const key = this.#run.snapshotKey(plan.nodes[index]!);
    snapshot.items[key] ??= noItemOutputs();
    return snapshot.items[key];
  }
}
