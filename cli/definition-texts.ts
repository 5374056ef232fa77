/** Where the texts of two definitions differ: the changed values by path, beside the categories of a comparison. Pure. */

import { isDeepStrictEqual } from 'node:util';

/** A value that one of two definitions has not is undefined. */
export interface TextDifference {
  /** Such as `blocks.charge.params.amount`; blocks are named by id. */
  readonly path: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

/** Blocks are compared by id, so that an inserted one does not make all that follow differ. */
export function textDifferences(before: unknown, after: unknown, path = ''): TextDifference[] {
  if (isDeepStrictEqual(before, after)) return [];
  const [one, other] = [membersOf(before), membersOf(after)];
  if (one === undefined || other === undefined) return [{ path, before, after }];
  return [...new Set([...one.keys(), ...other.keys()])].flatMap((name) =>
    textDifferences(one.get(name), other.get(name), path === '' ? name : `${path}.${name}`),
  );
}

/** Members of an object, or blocks by id; undefined for other values. */
function membersOf(value: unknown): ReadonlyMap<string, unknown> | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (!Array.isArray(value)) return new Map(Object.entries(value));
  const ids = value.map((item: { readonly id?: unknown } | null) => item?.id);
  const areBlocks = value.length > 0 && ids.every((id) => typeof id === 'string');
  if (areBlocks && new Set(ids).size === ids.length)
    return new Map(value.map((item, at) => [ids[at] as string, item]));
  return new Map(value.map((item, at) => [String(at), item]));
}

/** Characters around a difference in a long text. */
const CONTEXT = 30;

/** The two values, cut to where they differ; a missing one has no line. */
export function differenceLines({ path, before, after }: TextDifference): string[] {
  const [one, other] = [textOf(before), textOf(after)];
  const [start, end] = sameEnds(one ?? '', other ?? '');
  const cut = (text: string) => {
    const from = Math.max(0, start - CONTEXT);
    const to = Math.min(text.length, text.length - end + CONTEXT);
    return `${from > 0 ? '…' : ''}${text.slice(from, to)}${to < text.length ? '…' : ''}`;
  };
  return [
    path,
    ...(one === undefined ? [] : [`  - ${cut(one)}`]),
    ...(other === undefined ? [] : [`  + ${cut(other)}`]),
  ];
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' || value === undefined ? value : JSON.stringify(value);
}

/** The lengths of the common start and, after it, of the common end. */
function sameEnds(one: string, other: string): readonly [start: number, end: number] {
  const shorter = Math.min(one.length, other.length);
  let start = 0;
  while (start < shorter && one[start] === other[start]) start += 1;
  let end = 0;
  while (end < shorter - start && one.at(-1 - end) === other.at(-1 - end)) end += 1;
  return [start, end];
}
