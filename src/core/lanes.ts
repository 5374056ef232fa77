/**
 * What the items of for_each blocks have given in one turn and before: the last outputs, which such a block
 * collects, and for items that run side by side what each has for itself (docs/blocks.md).
 */

import type { Execution, ForEachRecord, ItemChange } from '../../schema/execution.js';
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
import { passOf } from './paths.js';
import type { NodePlace, Plan, StepNode } from './plan-nodes.js';
import type { KeptOutput, Snapshot } from './progress.js';

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
  keep(node: NodePlace, kept: KeptOutput): boolean {
    if (!node.isRead && (node as Partial<StepNode>).isMerged !== true) return false;
    for (const index of node.lanes) {
      // It takes the place of the output before, and not of what that has merged.
      this.#keepMerged(node, index);
      setOwn(this.#outputsIn(index), this.itemIn(node, index), node.id, kept);
    }
    return node.lanes.length > 0;
  }

  /**
   * The output that is kept is merged into context.data.
   *
   * @returns what of it becomes part of the data: what a later item has said stands
   */
  merge(node: NodePlace, output: JsonObject): JsonObject {
    const index = node.lanes.at(-1);
    if (index !== undefined) {
      const own = this.ownIn(node, index).find(({ block }) => block === node.id);
      if (own !== undefined) own.isMerged = true;
      const over = this.#recordOf(index).v?.[this.itemIn(node, index)] ?? {};
      for (const key of Object.keys(output)) delete over[key];
    }
    return this.#changed(node, output);
  }

  /** The same for values that are no output: they lie over what the item sees. */
  lay(node: NodePlace, values: JsonObject): JsonObject {
    const index = node.lanes.at(-1);
    if (index !== undefined) this.#lay(index, this.itemIn(node, index), values);
    return this.#changed(node, values);
  }

  #lay(lane: number, item: number, values: JsonObject): void {
    const record = this.#recordOf(lane);
    record.v ??= {};
    record.v[item] = { ...record.v[item], ...values };
  }

  /** Notes the change with the items around the node, from the innermost one outwards. */
  #changed(node: NodePlace, values: JsonObject): JsonObject {
    changeBefore(this.#run, values, node);
    let rest = values;
    for (const index of node.lanes.toReversed()) {
      const item = this.itemIn(node, index);
      if (index !== node.lanes.at(-1)) this.#lay(index, item, rest);
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

/**
 * Somebody outside of the instance gives it other data: items that are at work see what has changed.
 *
 * @param given the values that were merged, changed or not; absent: what differs
 */
export function putData(
  plan: Plan,
  snapshot: Snapshot,
  data: JsonObject,
  given?: JsonObject,
): void {
  const { data: before, execution } = snapshot;
  snapshot.data = data;
  if (plan.lanes.length === 0) return;
  changeBefore({ plan, execution }, given ?? differenceOf(before, data));
}

/** The values of keys that differ; null where there is none any more. */
function differenceOf(before: JsonObject, data: JsonObject): JsonObject {
  const keys = Object.keys({ ...before, ...data });
  const changed = keys.filter((key) => ownValue(before, key) !== ownValue(data, key));
  return Object.fromEntries(changed.map((key) => [key, ownValue(data, key) ?? null]));
}

/**
 * Something beside the items of for_each blocks has changed keys of context.data: the items see that, but for
 * what is their own.
 *
 * @param by a block that is in none of the items; absent: somebody outside of the instance
 */
function changeBefore(
  { plan, execution }: { readonly plan: Plan; readonly execution: Execution },
  values: JsonObject,
  by?: NodePlace,
): void {
  for (const index of plan.lanes) {
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

/** Whether all the items that the block is in are around the for_each, too, and neither is inside of the other. */
function isBeside({ index, loops, slots }: NodePlace, by: NodePlace | undefined): boolean {
  if (by === undefined) return true;
  if (by.lanes.includes(index) || (by.index <= index && index < by.end)) return false;
  return by.lanes.every((lane) => {
    const [at, own] = [loops.indexOf(lane), by.loops.indexOf(lane)];
    return at >= 0 && slots[at] === by.slots[own];
  });
}
