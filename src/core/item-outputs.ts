/**
 * What the items of a running for_each have produced: the last output of each item, which form the output of the block,
 * and, for concurrent items, the outputs that an item sees as its own. Not stored: it is rebuilt from the output rows
 * when an instance is loaded. Plain JSON.
 */

import { COLLECTED_BYTES_MAX } from '../../schema/blocks.js';
import { sizeWithin } from '../base/bounds.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../base/json.js';
import type { KeptOutput } from './progress.js';

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

export function noItemOutputs(): ItemOutputs {
  return { lasts: {}, lastsSize: 0, own: {}, ownSize: 0 };
}

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

export function forgetOwn(outputs: ItemOutputs, item: number): void {
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
  // Until here characters were counted, but the limit is in bytes.
  return Buffer.byteLength(JSON.stringify(all)) <= COLLECTED_BYTES_MAX ? all : truncated;
}

/** How many characters the for_each blocks of an instance keep in memory. */
export function charactersKept(items: Readonly<Record<string, ItemOutputs>> | undefined): number {
  const all = Object.values(items ?? {});
  return all.reduce((sum, { lastsSize, ownSize }) => sum + lastsSize + ownSize, 0);
}

/** What an item has merged into context.data, which it sees whatever other items merge. */
export function mergedOf(own: readonly OwnOutput[] = []): (readonly [string, JsonValue])[] {
  return own.flatMap(({ output, isMerged }) =>
    isMerged ? (Object.entries(output as JsonObject) as [string, JsonValue][]) : [],
  );
}
