/**
 * A long JSON text becomes a value a piece at a time, so that whoever parses it can do other things in
 * between. What is short within it is parsed natively, run by run of neighbours; only what holds more than a
 * run is put together here. Each character is looked at once.
 *
 * What comes out is what `parseJson` makes of the whole, or that it refuses it. Why it does is not said:
 * `parseJson` can be asked, by whoever has the time.
 */

import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from './json-codes.js';
import { endOfString, type JsonLimits, type JsonResult, parseJson } from './json-guard.js';

export type CutResult =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly hasTooMany: boolean };

/** In characters, of a run that is parsed at a time: a millisecond at worst, some tens of microseconds as a rule. */
const RUN_LENGTH = 16_384;

const REFUSED: CutResult = { ok: false, hasTooMany: false };

/** An array or object that is open. */
interface Level {
  readonly isList: boolean;
  /** Of its bracket. */
  readonly open: number;
  /** Where the members begin that are not parsed. */
  from: number;
  /** Where the member at hand begins. */
  member: number;
  /** What was put together of it; undefined while all of it may be a part of a longer run. */
  built: unknown[] | Record<string, unknown> | undefined;
  /** The member at hand was put together, and nothing comes behind it. */
  isBehindBuilt: boolean;
}

/**
 * @param limits undefined: whatever is JSON is taken, of a repeated name the last value
 * @returns yields between pieces
 */
export function* cutJson(
  text: string,
  limits: JsonLimits | undefined,
  runLength = RUN_LENGTH,
): Generator<void, CutResult, void> {
  const parse = parserFor(limits);
  const valuesMax = limits?.maxValues ?? Number.POSITIVE_INFINITY;
  const depthMax = limits?.maxDepth ?? Number.POSITIVE_INFINITY;
  const isUnique = limits?.areNamesUnique === true;
  const levels: Level[] = [];
  let level: Level | undefined;
  let root: CutResult | undefined;
  let values = 1;
  let pause = runLength;
  let begin = 0;
  while (isSpace(text.charCodeAt(begin))) begin += 1;
  if (text[begin] !== '[' && text[begin] !== '{') return resultOf(parse(text));
  for (let at = begin; at < text.length; at += 1) {
    if (at >= pause) {
      yield;
      pause = at + runLength;
    }
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      if (level === undefined) return REFUSED;
      at = endOfString(text, at);
    } else if (code === COMMA || code === COLON) {
      if (level === undefined) return REFUSED;
      values += 1;
      if (code === COLON) continue;
      if (level.isBehindBuilt) {
        if (!isBlank(text, level.from, at)) return REFUSED;
        level.isBehindBuilt = false;
        level.from = at + 1;
      } else if (at - level.from >= runLength) {
        if (!take(level, at)) return REFUSED;
        level.from = at + 1;
      }
      level.member = at + 1;
    } else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
      if (root !== undefined || levels.length >= depthMax) return REFUSED;
      const next = text.charCodeAt(at + 1);
      if (next !== CLOSE_BRACKET && next !== CLOSE_BRACE) values += 1;
      level = {
        isList: code === OPEN_BRACKET,
        open: at,
        from: at + 1,
        member: at + 1,
        built: undefined,
        isBehindBuilt: false,
      };
      levels.push(level);
    } else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) {
      const closed = levels.pop();
      if (closed === undefined || closed.isList !== (code === CLOSE_BRACKET)) return REFUSED;
      level = levels.at(-1);
      if (!close(closed, level, at)) return REFUSED;
      if (level === undefined) {
        root =
          closed.built === undefined
            ? resultOf(parse(text.slice(closed.open, at + 1)))
            : { ok: true, value: closed.built };
        if (!root.ok) return REFUSED;
      }
    } else if (level === undefined && !isSpace(code)) return REFUSED;
    if (values > valuesMax) return { ok: false, hasTooMany: true };
  }
  return root ?? REFUSED;

  /** Parses the members that are not, up to `end`. There is one at least. */
  function take(of: Level, end: number): boolean {
    const run = text.slice(of.from, end);
    const parsed = parse(of.isList ? `[${run}]` : `{${run}}`);
    if (!parsed.ok) return false;
    if (of.isList) {
      const items = parsed.value as unknown[];
      if (of.built === undefined) of.built = items;
      else for (const item of items) (of.built as unknown[]).push(item);
      return items.length > 0;
    }
    const members = parsed.value as Record<string, unknown>;
    let hasAny = false;
    const isFirst = of.built === undefined;
    if (isFirst) of.built = members;
    for (const name in members) {
      hasAny = true;
      if (isFirst) break;
      if (!put(of, name, members[name])) return false;
    }
    return hasAny;
  }

  /** What was put together becomes a member of what is around it; all else stays text for now. */
  function close(closed: Level, parent: Level | undefined, at: number): boolean {
    const isShort = at - closed.open < runLength || isBlank(text, closed.from, at);
    if (closed.built === undefined && isShort) return true;
    const isWhole = closed.isBehindBuilt ? isBlank(text, closed.from, at) : take(closed, at);
    if (!isWhole || parent === undefined) return isWhole;
    if (parent.isBehindBuilt) return false;
    if (parent.member > parent.from && !take(parent, parent.member - 1)) return false;
    const head = text.slice(parent.member, closed.open);
    parent.from = at + 1;
    parent.isBehindBuilt = true;
    if (parent.isList) {
      parent.built ??= [];
      (parent.built as unknown[]).push(closed.built);
      return isBlank(head, 0, head.length);
    }
    const named = parse(`{${head}[]}`);
    if (!named.ok) return false;
    const names = Object.keys(named.value as object);
    parent.built ??= {};
    return names.length === 1 && put(parent, names[0] as string, closed.built);
  }

  function put(of: Level, name: string, value: unknown): boolean {
    const built = of.built as Record<string, unknown>;
    if (isUnique && Object.hasOwn(built, name)) return false;
    if (name !== '__proto__') built[name] = value;
    else {
      const own = { value, writable: true, enumerable: true, configurable: true };
      Object.defineProperty(built, name, own);
    }
    return true;
  }
}

function resultOf(parsed: JsonResult): CutResult {
  return parsed.ok ? parsed : REFUSED;
}

/** How many values there are, and how deep, is seen while the runs are found. */
function parserFor(limits: JsonLimits | undefined): (text: string) => JsonResult {
  if (limits === undefined) return parseAny;
  const { maxValues: _, ...others } = limits;
  const ofRuns = { ...others, maxDepth: Number.POSITIVE_INFINITY };
  return (text) => parseJson(text, ofRuns);
}

function parseAny(text: string): JsonResult {
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch (error) {
    return { ok: false, problem: { kind: 'syntax', message: String(error) } };
  }
}

function isBlank(text: string, from: number, to: number): boolean {
  for (let at = from; at < to; at += 1) if (!isSpace(text.charCodeAt(at))) return false;
  return true;
}

function isSpace(code: number): boolean {
  return code === 32 || code === 10 || code === 13 || code === 9;
}
