/**
 * What the items of for_each blocks have produced, in this turn and before: the last outputs, which form the output of
 * the block, and what each of several concurrent items sees as its own (docs/blocks.md).
 */

import type { ForEachRecord, ItemChange } from '../../schema/execution.js';
import { type JsonObject, type JsonValue, ownValue } from '../base/json.js';
import type { Evaluation } from './evaluation.js';
import {
  forgetOwn,
  type ItemOutputs,
  mergedOf,
  noItemOutputs,
  type OwnOutput,
  setLast,
  setOwn,
} from './item-outputs.js';
import { iterationAt } from './paths.js';
import type { NodePlace, Plan, PlannedExecution, StepNode } from './plan-nodes.js';
import type { KeptOutput, Snapshot } from './progress.js';

export class LoopItems {
  readonly #run: Evaluation;

  constructor(run: Evaluation) {
    this.#run = run;
  }

  outputsOf(node: NodePlace): ItemOutputs | undefined {
    return this.#run.snapshot.items?.[this.#run.snapshotKey(node)];
  }

  /** The outputs of the item of this for_each that contains the node. */
  ownIn(node: NodePlace, loop: number): readonly OwnOutput[] {
    return this.outputsOf(this.#run.plan.nodes[loop]!)?.own[this.itemIn(node, loop)] ?? [];
  }

  itemIn(node: NodePlace, loop: number): number {
    return iterationAt(this.#run.execution.o[loop], node.slots[node.loops.indexOf(loop)]!);
  }

  /** Records the output as the last one of the items around the block. */
  collect(node: NodePlace, output: JsonValue): void {
    for (const index of node.collectors) {
      setLast(this.#outputsIn(index), this.itemIn(node, index), output);
    }
  }

  /** @returns whether the change is visible to expressions */
  keep(node: NodePlace, kept: KeptOutput): boolean {
    if (!node.isRead && (node as Partial<StepNode>).isMerged !== true) return false;
    for (const index of node.concurrentLoops) {
      // It replaces the previous output, but not what that has merged.
      this.#keepMerged(node, index);
      setOwn(this.#outputsIn(index), this.itemIn(node, index), node.id, kept);
    }
    return node.concurrentLoops.length > 0;
  }

  /** Merges the kept output into context.data. @returns the members that no later item has set */
  merge(node: NodePlace, output: JsonObject): JsonObject {
    const index = node.concurrentLoops.at(-1);
    if (index !== undefined) {
      const own = this.ownIn(node, index).find(({ block }) => block === node.id);
      if (own !== undefined) own.isMerged = true;
      const over = this.#recordOf(index).v?.[this.itemIn(node, index)] ?? {};
      for (const key of Object.keys(output)) delete over[key];
    }
    return this.#changed(node, output);
  }

  /** The same for values that are not an output: the item sees them over the data. */
  lay(node: NodePlace, values: JsonObject): JsonObject {
    const index = node.concurrentLoops.at(-1);
    if (index !== undefined) this.#lay(index, this.itemIn(node, index), values);
    return this.#changed(node, values);
  }

  #lay(loop: number, item: number, values: JsonObject): void {
    const record = this.#recordOf(loop);
    record.v ??= {};
    record.v[item] = { ...record.v[item], ...values };
  }

  /** Records the change in the items around the node, innermost first. */
  #changed(node: NodePlace, values: JsonObject): JsonObject {
    changeBefore(this.#run, values, node);
    let rest = values;
    for (const index of node.concurrentLoops.toReversed()) {
      const item = this.itemIn(node, index);
      if (index !== node.concurrentLoops.at(-1)) this.#lay(index, item, rest);
      const record = this.#recordOf(index);
      const { data } = this.#run.scopeOf(this.#run.plan.nodes[index]!);
      const isLast = (key: string) => (changeOf(record, key)?.[0] ?? item) <= item;
      const taken = Object.entries(rest).filter(([key]) => isLast(key));
      const changes = taken.map(([key]): [string, ItemChange] => {
        const known = changeOf(record, key);
        return [key, [item, known === undefined ? (ownValue(data, key) ?? null) : known[1]]];
      });
      record.t = { ...record.t, ...Object.fromEntries(changes) };
      rest = Object.fromEntries(taken);
      changeBefore(this.#run, rest, this.#run.plan.nodes[index]!);
    }
    return rest;
  }

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

/** Replaces the data from outside; running items see the change. @param given the merged values, if known */
export function putData(
  plan: Plan,
  snapshot: Snapshot,
  data: JsonObject,
  given?: JsonObject,
): void {
  const { data: before, execution } = snapshot;
  snapshot.data = data;
  if (plan.concurrentLoops.length === 0) return;
  changeBefore({ plan, execution }, given ?? differenceOf(before, data));
}

/** The values of keys that differ; null for keys that were removed. */
function differenceOf(before: JsonObject, data: JsonObject): JsonObject {
  const keys = Object.keys({ ...before, ...data });
  const changed = keys.filter((key) => ownValue(before, key) !== ownValue(data, key));
  return Object.fromEntries(changed.map((key) => [key, ownValue(data, key) ?? null]));
}

/** Items see new values of keys that changed outside of them. @param by the block; absent: a change from outside */
function changeBefore(run: PlannedExecution, values: JsonObject, by?: NodePlace): void {
  const { plan, execution } = run;
  for (const index of plan.concurrentLoops) {
    const record = execution.o[index] as ForEachRecord | undefined;
    if (record?.t === undefined || !isBeside(plan.nodes[index]!, by)) continue;
    for (const [key, value] of Object.entries(values)) {
      const known = changeOf(record, key);
      if (known !== undefined) record.t = { ...record.t, [key]: [known[0], value] };
    }
  }
}

function changeOf({ t = {} }: ForEachRecord, key: string): ItemChange | undefined {
  return Object.hasOwn(t, key) ? t[key] : undefined;
}

/** Whether the for_each runs in all items that contain the block, and neither contains the other. */
function isBeside({ index, loops, slots }: NodePlace, by: NodePlace | undefined): boolean {
  if (by === undefined) return true;
  if (by.concurrentLoops.includes(index) || (by.index <= index && index < by.end)) return false;
  return by.concurrentLoops.every((loop) => {
    const [at, own] = [loops.indexOf(loop), by.loops.indexOf(loop)];
    return at >= 0 && slots[at] === by.slots[own];
  });
}
