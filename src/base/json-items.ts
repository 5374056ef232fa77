/**
 * Where the items of one list stand in the text of an object, so that each can be judged as a text of its
 * own. Only for what is JSON: that was found out before.
 */

import { endOfString } from './json-guard.js';

/** The place of a text in another: from its first character to behind its last. */
export type Span = readonly [start: number, end: number];

export interface ListSpans {
  /** With its brackets. */
  readonly list: Span;
  readonly items: readonly Span[];
}

/** Undefined when the text is no object, or its member no list. Of a repeated member the last counts. */
export function listIn(text: string, member: string): ListSpans | undefined {
  const start = skipSpace(text, 0);
  if (text[start] !== '{') return undefined;
  let found: Span | undefined;
  for (const [at, behind] of partsOf(text, start)) {
    const keyEnd = endOfString(text, at) + 1;
    if (JSON.parse(text.slice(at, keyEnd)) !== member) continue;
    found = [skipSpace(text, skipSpace(text, keyEnd) + 1), behind];
  }
  if (found === undefined || text[found[0]] !== '[') return undefined;
  return { list: found, items: partsOf(text, found[0]) };
}

/** What stands between the commas of an array or object, members with their keys. */
function partsOf(text: string, open: number): Span[] {
  const parts: Span[] = [];
  let depth = 0;
  let from = skipSpace(text, open + 1);
  let behind = from;
  for (let at = from; at < text.length; at += 1) {
    const character = text[at] as string;
    if (depth === 0 && (character === ',' || character === ']' || character === '}')) {
      if (behind > from) parts.push([from, behind]);
      if (character !== ',') return parts;
      from = skipSpace(text, at + 1);
      behind = from;
      at = from - 1;
      continue;
    }
    if (character === '"') at = endOfString(text, at);
    else if (character === '[' || character === '{') depth += 1;
    else if (character === ']' || character === '}') depth -= 1;
    if (!SPACE.has(character)) behind = at + 1;
  }
  return parts;
}

const SPACE: ReadonlySet<string> = new Set([' ', '\t', '\n', '\r']);

function skipSpace(text: string, from: number): number {
  let at = from;
  while (SPACE.has(text[at] as string)) at += 1;
  return at;
}
