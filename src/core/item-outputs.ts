/**
 * What the items of a for_each that runs have given so far: the last output of each, which become the
 * output of the block, and where items run side by side, the outputs that an item sees of its own. Nothing
 * of this is stored: it follows from the rows of outputs, and is read from them when an instance is loaded.
 * Plain JSON.
 */

import { COLLECTED_BYTES_MAX } from '../../schema/blocks.js';
import { sizeWithin } from '../base/bounds.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../base/json.js';
import type { KeptOutput } from './progress.js';

/** An output of a block in an item. */
export interface OwnOutput extends KeptOutput {
  readonly block: string;
  readonly size: number;
  /** It was merged into context.data. */
  isMerged: boolean;
}

export interface ItemOutputs {
  /** By the number of the item; absent when they are too large together, and only the count is told. */
  lasts?: Record<number, JsonValue>;
  /** Of `lasts`, in characters. */
  lastsSize: number;
  /** Of items in flight, in the order in which they came; a later one of a block takes its place. */
  own: Record<number, OwnOutput[]>;
  ownSize: number;
}

export function noItemOutputs(): ItemOutputs {
  return { lasts: {}, lastsSize: 0, own: {}, ownSize: 0 };
}

/** What a for_each says of how far it has come, and no output. */
export function isProgressNote(output: JsonValue): boolean {
  return isJsonObject(output) && ownValue(output, '_snapshot_ref') !== undefined;
}

/** The output is the last one of its item so far. */
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

/** About as many characters as it has as JSON; of one that is too large by itself, just that. */
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

/** Outputs that are none any more, such as errors when the instance is retried. */
export function dropOwn(outputs: ItemOutputs, isDropped: (output: JsonValue) => boolean): void {
  for (const item of Object.keys(outputs.own).map(Number)) {
    const own = outputs.own[item]!;
    outputs.own[item] = own.filter(({ output }) => !isDropped(output));
    for (const { output, size } of own) if (isDropped(output)) outputs.ownSize -= size;
  }
}

/** The item has ended. */
export function forgetOwn(outputs: ItemOutputs, item: number): void {
  const own = outputs.own[item];
  if (own === undefined) return;
  for (const { size } of own) outputs.ownSize -= size;
  delete outputs.own[item];
}

/** The output of a for_each that has gone through all its items. */
export function collected(outputs: ItemOutputs | undefined, count: number): JsonValue {
  const lasts = outputs === undefined ? {} : outputs.lasts;
  const truncated = { count, truncated: true };
  if (lasts === undefined) return truncated;
  const all = Array.from({ length: count }, (_, item) => lasts[item] ?? null);
  // Characters were counted until now.
  return Buffer.byteLength(JSON.stringify(all)) <= COLLECTED_BYTES_MAX ? all : truncated;
}

/** Characters that the for_each blocks of an instance keep. */
export function charactersKept(items: Readonly<Record<string, ItemOutputs>> | undefined): number {
  let characters = 0;
  for (const key in items) {
    const { lastsSize, ownSize } = items[key]!;
    characters += lastsSize + ownSize;
  }
  return characters;
}

/** What an item has merged into context.data lies over it, whatever other items do. */
export function mergedOf(own: readonly OwnOutput[] = []): (readonly [string, JsonValue])[] {
  return own.flatMap(({ output, isMerged }) =>
    isMerged ? (Object.entries(output as JsonObject) as [string, JsonValue][]) : [],
  );
}
