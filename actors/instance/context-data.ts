/**
 * `context.data` in the row of an instance: `data` as it was stored last, and `data_patch` with the members
 * that differ from it, which is what most units write. Pure.
 */

import { sizeWithin } from '../../src/base/bounds.js';
import { type JsonObject, ownValue } from '../../src/base/json.js';
import type { StoredRow, Unpatched } from '../../src/db/table.js';
import type { INSTANCES } from './tables.js';

export type DataColumns = StoredRow<typeof INSTANCES, 'data' | 'data_patch'>;

/** A larger patch is written in each unit at a cost that the stored data would not have. */
const SMALL_PATCH = 2_000;

/** @returns undefined if the whole data has to be written: a patch cannot remove or move members, or is not smaller */
export function patchText(stored: JsonObject, data: JsonObject): string | undefined {
  const names = Object.keys(data);
  let at = 0;
  for (const key in stored) if (names[at++] !== key) return undefined;
  const changed = names.filter((key) => ownValue(stored, key) !== data[key]);
  if (changed.length === names.length) return undefined;
  let members = '';
  for (const key of changed) members += `,${JSON.stringify(key)}:${JSON.stringify(data[key])}`;
  const { length } = members;
  const isLarge = length > SMALL_PATCH && sizeWithin(stored, length) !== undefined;
  return isLarge ? undefined : `{${members.slice(1)}}`;
}

/** The value shares its unchanged members with the stored data, by which the next patch is made. */
export function dataOf({ data, data_patch: patch }: DataColumns) {
  const stored = parsed(textOf(data));
  return { stored, data: patch === null ? stored : { ...stored, ...parsed(patch) } };
}

/** @param overlay what a step sees over the data, as JSON */
export function dataText(row: DataColumns, overlay: string | null = null): string {
  if (row.data_patch === null && overlay === null) return textOf(row.data);
  return JSON.stringify({ ...dataOf(row).data, ...parsed(overlay ?? '{}') });
}

export function dataLength({ data, data_patch: patch }: DataColumns): number {
  return textOf(data).length + (patch ?? '').length;
}

const textOf = (data: Unpatched) => data as unknown as string;
const parsed = (text: string) => JSON.parse(text) as JsonObject;
