/**
 * Parses a long JSON text in pieces, so that the thread can do other work in between. Runs of consecutive members are
 * parsed natively; only an array or object longer than a run is assembled here. The result is that of `parseJson`, or
 * a refusal without its reason.
 */

import { type JsonLimits, type JsonResult, parseJson } from '../base/json-guard.js';
import {
  CLOSE_LIST,
  COMMA,
  END,
  isBlank,
  isClosing,
  isOneMore,
  isOpening,
  JsonTokens,
  OPEN_LIST,
} from '../base/json-text.js';

export type CutResult =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly hasTooMany: boolean };

/** The length of a run in characters: at worst a millisecond to parse, usually some tens of microseconds. */
const RUN_LENGTH = 16_384;
const REFUSED: CutResult = { ok: false, hasTooMany: false };

interface Level {
  readonly isList: boolean;
  readonly open: number;
  /** The start of the unparsed members. */
  from: number;
  member: number;
  /** The assembled value; undefined while the level may still be part of a longer run. */
  built: unknown[] | Record<string, unknown> | undefined;
  /** The current member was assembled, and only white space may follow it. */
  isBehindBuilt: boolean;
}

/** Yields between pieces. @param limits undefined: any JSON; the last of duplicate names counts */
export function* cutJson(
  text: string,
  limits: JsonLimits | undefined,
  runLength = RUN_LENGTH,
): Generator<void, CutResult, void> {
  const tokens = new JsonTokens(text);
  const pieces = new Pieces(text, limits, runLength);
  const valuesMax = limits?.maxValues ?? Number.POSITIVE_INFINITY;
  const depthMax = limits?.maxDepth ?? Number.POSITIVE_INFINITY;
  const levels: Level[] = [];
  let values = 1;
  let pause = runLength;
  if (!isOpening(tokens.peek())) return resultOf(pieces.parse(text));
  for (let code = tokens.next(); code !== END; code = tokens.nextDivider()) {
    const at = tokens.start;
    if (at >= pause) {
      yield;
      pause = at + runLength;
    }
    if (isOneMore(tokens, code)) values += 1;
    if (isOpening(code)) {
      if (levels.length >= depthMax) return REFUSED;
      levels.push(newLevel(code === OPEN_LIST, at));
    } else if (isClosing(code)) {
      const closed = levels.pop() as Level;
      if (closed.isList !== (code === CLOSE_LIST)) return REFUSED;
      const parent = levels.at(-1);
      if (!pieces.close(closed, parent, at)) return REFUSED;
      if (parent === undefined) {
        return isBlank(text, at + 1, text.length) ? pieces.whole(closed, at) : REFUSED;
      }
    } else if (code === COMMA && !pieces.endMember(levels.at(-1) as Level, at)) return REFUSED;
    if (values > valuesMax) return { ok: false, hasTooMany: true };
  }
  return REFUSED;
}

function newLevel(isList: boolean, open: number): Level {
  const from = open + 1;
  return { isList, open, from, member: from, built: undefined, isBehindBuilt: false };
}

/** Parses runs of members and assembles values longer than a run. Methods return false for invalid input. */
class Pieces {
  readonly parse: (text: string) => JsonResult;
  readonly #text: string;
  readonly #runLength: number;
  readonly #isUnique: boolean;

  constructor(text: string, limits: JsonLimits | undefined, runLength: number) {
    this.parse = parserFor(limits);
    this.#text = text;
    this.#runLength = runLength;
    this.#isUnique = limits?.areNamesUnique === true;
  }

  endMember(level: Level, comma: number): boolean {
    if (level.isBehindBuilt) {
      if (!isBlank(this.#text, level.from, comma)) return false;
      level.isBehindBuilt = false;
      level.from = comma + 1;
    } else if (comma - level.from >= this.#runLength) {
      if (!this.#take(level, comma)) return false;
      level.from = comma + 1;
    }
    level.member = comma + 1;
    return true;
  }

  /** Adds an assembled value to its parent; anything else remains text for now. */
  close(closed: Level, parent: Level | undefined, at: number): boolean {
    const isShort = at - closed.open < this.#runLength || isBlank(this.#text, closed.from, at);
    if (closed.built === undefined && isShort) return true;
    const isWhole = closed.isBehindBuilt
      ? isBlank(this.#text, closed.from, at)
      : this.#take(closed, at);
    if (!isWhole || parent === undefined) return isWhole;
    if (parent.isBehindBuilt) return false;
    if (parent.member > parent.from && !this.#take(parent, parent.member - 1)) return false;
    parent.from = at + 1;
    parent.isBehindBuilt = true;
    return this.#adopt(parent, closed);
  }

  whole({ built, open }: Level, at: number): CutResult {
    if (built !== undefined) return { ok: true, value: built };
    return resultOf(this.parse(this.#text.slice(open, at + 1)));
  }

  /** Parses the unparsed members up to `end`. There is at least one. */
  #take(level: Level, end: number): boolean {
    const run = this.#text.slice(level.from, end);
    const parsed = this.parse(level.isList ? `[${run}]` : `{${run}}`);
    if (!parsed.ok) return false;
    const isFirst = level.built === undefined;
    if (level.isList) {
      const items = parsed.value as unknown[];
      if (isFirst) level.built = items;
      else for (const item of items) (level.built as unknown[]).push(item);
      return items.length > 0;
    }
    const members = parsed.value as Record<string, unknown>;
    if (isFirst) level.built = members;
    let hasAny = false;
    for (const name in members) {
      hasAny = true;
      if (isFirst) break;
      if (!this.#put(level, name, members[name])) return false;
    }
    return hasAny;
  }

  #adopt(parent: Level, { open, built }: Level): boolean {
    const head = this.#text.slice(parent.member, open);
    if (parent.isList) {
      parent.built ??= [];
      (parent.built as unknown[]).push(built);
      return isBlank(head, 0, head.length);
    }
    const named = this.parse(`{${head}[]}`);
    if (!named.ok) return false;
    const names = Object.keys(named.value as object);
    parent.built ??= {};
    return names.length === 1 && this.#put(parent, names[0] as string, built);
  }

  #put(level: Level, name: string, value: unknown): boolean {
    const built = level.built as Record<string, unknown>;
    if (this.#isUnique && Object.hasOwn(built, name)) return false;
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

/** The number of values and the depth are counted while runs are found. */
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
