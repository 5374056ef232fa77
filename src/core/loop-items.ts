/**
 * The outputs of items of for_each blocks: the last output of each item, for the output of the block, and the outputs
 * that only the same concurrent item sees (docs/adding-blocks.md). Not stored: rebuilt from the output rows when an instance is
 * loaded.
 */

import { COLLECTED_BYTES_MAX } from '../../schema/blocks.js';
import type { ForEachRecord, ItemChange } from '../../schema/execution.js';
import { sizeWithin } from '../base/bounds.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../base/json.js';
import type { Evaluation } from './evaluation.js';
import { iterationAt, recordOf } from './paths.js';
import type { NodePlace, Plan, PlannedExecution, StepNode } from './plan-nodes.js';
import type { KeptOutput, Snapshot } from './progress.js';

export interface OwnOutput extends KeptOutput {
  readonly block: string;
  readonly size: number;
  isMerged: boolean;
}

export interface ItemOutputs {
  /** By item number; absent when the outputs together are too large, and only their count is shown. */
  lasts?: Record<number, JsonValue>;
  /** Of `lasts`, in characters. */
  lastsSize: number;
  /** For items in flight, in order; a later output of a block replaces the earlier one. */
  own: Record<number, OwnOutput[]>;
  ownSize: number;
}

export const noItemOutputs = (): ItemOutputs => ({ lasts: {}, lastsSize: 0, own: {}, ownSize: 0 });

/** Whether the row is the progress of a for_each and not an output. */
export function isProgressNote(output: JsonValue): boolean {
  return isJsonObject(output) && ownValue(output, '_snapshot_ref') !== undefined;
}

export function setLast(outputs: ItemOutputs, item: number, output: JsonValue): void {
  const { lasts } = outputs;
  if (lasts === undefined) return;
  const before = lasts[item];
  outputs.lastsSize += sizeOf(output) - (before === undefined ? 0 : sizeOf(before));
  lasts[item] = output;
  if (outputs.lastsSize <= COLLECTED_BYTES_MAX) return;
  outputs.lastsSize = 0;
  delete outputs.lasts;
}

/** In characters of JSON, approximately; a value over the limit counts as just over it. */
function sizeOf(output: JsonValue): number {
  return sizeWithin(output, COLLECTED_BYTES_MAX) ?? COLLECTED_BYTES_MAX + 1;
}

export function setOwn(
  outputs: ItemOutputs,
  item: number,
  block: string,
  { iteration, output }: KeptOutput,
  isMerged = false,
): void {
  const own = (outputs.own[item] ?? []).filter((known) => known.block !== block);
  forgetOwn(outputs, item);
  const size = sizeWithin(output, Number.MAX_SAFE_INTEGER) ?? 0;
  own.push({ block, iteration, output, size, isMerged });
  outputs.own[item] = own;
  for (const { size } of own) outputs.ownSize += size;
}

/** Removes outputs that no longer count, such as errors when the instance is retried. */
export function dropOwn(outputs: ItemOutputs, isDropped: (output: JsonValue) => boolean): void {
  for (const item of Object.keys(outputs.own).map(Number)) {
    const own = outputs.own[item]!;
    outputs.own[item] = own.filter(({ output }) => !isDropped(output));
    for (const { output, size } of own) if (isDropped(output)) outputs.ownSize -= size;
  }
}

function forgetOwn(outputs: ItemOutputs, item: number): void {
  const own = outputs.own[item];
  if (own === undefined) return;
  for (const { size } of own) outputs.ownSize -= size;
  delete outputs.own[item];
}

export function collected(outputs: ItemOutputs | undefined, count: number): JsonValue {
  const lasts = outputs === undefined ? {} : outputs.lasts;
  const truncated = { count, truncated: true };
  if (lasts === undefined) return truncated;
  const all = Array.from({ length: count }, (_, item) => lasts[item] ?? null);
  // `setLast` counts characters, but the limit is in bytes.
  return Buffer.byteLength(JSON.stringify(all)) <= COLLECTED_BYTES_MAX ? all : truncated;
}

/** The number of characters that the for_each blocks of an instance keep in memory. */
export function charactersKept(items: Readonly<Record<string, ItemOutputs>> | undefined): number {
  const all = Object.values(items ?? {});
  return all.reduce((sum, { lastsSize, ownSize }) => sum + lastsSize + ownSize, 0);
}

/** The members that an item has merged into context.data. The item sees them whatever other items merge. */
export function mergedOf(own: readonly OwnOutput[] = []): (readonly [string, JsonValue])[] {
  return own.flatMap(({ output, isMerged }) =>
    isMerged ? (Object.entries(output as JsonObject) as [string, JsonValue][]) : [],
  );
}

export function outputsOf(run: Evaluation, node: NodePlace): ItemOutputs | undefined {
  return run.snapshot.items?.[run.snapshotKey(node)];
}

/** The outputs of the item of this for_each that contains the node. */
export function ownIn(run: Evaluation, node: NodePlace, loop: number): readonly OwnOutput[] {
  return outputsOf(run, run.plan.nodes[loop]!)?.own[itemIn(run, node, loop)] ?? [];
}

function itemIn(run: Evaluation, node: NodePlace, loop: number): number {
  return iterationAt(run.execution.o[loop], node.slots[node.loops.indexOf(loop)]!);
}

/** Records the output as the last one of the items around the block. */
export function collectOutput(run: Evaluation, node: NodePlace, output: JsonValue): void {
  for (const index of node.collectors) {
    setLast(outputsIn(run, index), itemIn(run, node, index), output);
  }
}

/** @returns whether the change is visible to expressions */
export function keepOutput(run: Evaluation, node: NodePlace, kept: KeptOutput): boolean {
  if (!node.isRead && (node as Partial<StepNode>).isMerged !== true) return false;
  for (const index of node.concurrentLoops) {
    // The members that the replaced output has merged are kept.
    keepMerged(run, node, index);
    setOwn(outputsIn(run, index), itemIn(run, node, index), node.id, kept);
  }
  return node.concurrentLoops.length > 0;
}

/** Merges the kept output into context.data. @returns the members that no later item has set */
export function mergeIntoItems(run: Evaluation, node: NodePlace, output: JsonObject): JsonObject {
  const index = node.concurrentLoops.at(-1);
  if (index !== undefined) {
    const own = ownIn(run, node, index).find(({ block }) => block === node.id);
    if (own !== undefined) own.isMerged = true;
    const over = recordOf(run.execution, index).v?.[itemIn(run, node, index)] ?? {};
    for (const key of Object.keys(output)) delete over[key];
  }
  return noteChange(run, node, output);
}

/** Merges values that are not an output: the item sees them on top of context.data. */
export function layOverItems(run: Evaluation, node: NodePlace, values: JsonObject): JsonObject {
  const index = node.concurrentLoops.at(-1);
  if (index !== undefined) layOver(run, index, itemIn(run, node, index), values);
  return noteChange(run, node, values);
}

function layOver(run: Evaluation, loop: number, item: number, values: JsonObject): void {
  const record = recordOf(run.execution, loop);
  record.v ??= {};
  record.v[item] = { ...record.v[item], ...values };
}

/** Records the change in the items around the node, innermost first. */
function noteChange(run: Evaluation, node: NodePlace, values: JsonObject): JsonObject {
  changeBefore(run, values, node);
  let rest = values;
  for (const index of node.concurrentLoops.toReversed()) {
    const item = itemIn(run, node, index);
    if (index !== node.concurrentLoops.at(-1)) layOver(run, index, item, rest);
    const record = recordOf(run.execution, index);
    const { data } = run.scopeOf(run.plan.nodes[index]!);
    const isLast = (key: string) => (changeOf(record, key)?.[0] ?? item) <= item;
    const taken = Object.entries(rest).filter(([key]) => isLast(key));
    const changes = taken.map(([key]): [string, ItemChange] => {
      const known = changeOf(record, key);
      return [key, [item, known === undefined ? (ownValue(data, key) ?? null) : known[1]]];
    });
    record.t = { ...record.t, ...Object.fromEntries(changes) };
    rest = Object.fromEntries(taken);
    changeBefore(run, rest, run.plan.nodes[index]!);
  }
  return rest;
}

export function leaveItem(run: Evaluation, node: NodePlace, item: number): void {
  const outputs = outputsOf(run, node);
  if (outputs !== undefined) forgetOwn(outputs, item);
}

function keepMerged(run: Evaluation, node: NodePlace, index: number): void {
  const own = ownIn(run, node, index);
  const at = own.findIndex(({ block, isMerged }) => block === node.id && isMerged);
  if (at < 0) return;
  const later = Object.fromEntries(mergedOf(own.slice(at + 1)));
  const merged = mergedOf([own[at]!]).filter(([key]) => !Object.hasOwn(later, key));
  const record = recordOf(run.execution, index);
  const item = itemIn(run, node, index);
  record.v ??= {};
  record.v[item] = { ...Object.fromEntries(merged), ...record.v[item] };
}

function outputsIn(run: Evaluation, index: number): ItemOutputs {
  const { snapshot, plan } = run;
  snapshot.items ??= {};
  const key = run.snapshotKey(plan.nodes[index]!);
  snapshot.items[key] ??= noItemOutputs();
  return snapshot.items[key];
}

/** Replaces the data from outside; items see the change. @param merged the merged values, if known */
export function putData(plan: Plan, snapshot: Snapshot, data: JsonObject, merged?: JsonObject) {
  const { data: before, execution } = snapshot;
  snapshot.data = data;
  if (plan.concurrentLoops.length === 0) return;
  changeBefore({ plan, execution }, merged ?? differenceOf(before, data));
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
    // Those that have failed will see it in a retry.
    const record = recordOf(execution, index);
    if (record.t === undefined || !isBeside(plan.nodes[index]!, by)) continue;
    for (const [key, value] of Object.entries(values)) {
      const known = changeOf(record, key);
      if (known !== undefined) record.t = { ...record.t, [key]: [known[0], value] };
    }
  }
}

function changeOf({ t = {} }: Partial<ForEachRecord>, key: string): ItemChange | undefined {
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
