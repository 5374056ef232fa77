/**
 * The entry check of every JSON text that can reach a row: a row that Postgres rejects fails its whole batch, and a
 * deeply nested value cannot be serialised again. Ordinary texts cost three native searches. Only a text with a match
 * is scanned, to find the position of the fault.
 */

import { clip } from './bounds.js';
import {
  behindString,
  COLON,
  COMMA,
  END,
  isClosing,
  isEscaped,
  isOneMore,
  isOpening,
  JsonTokens,
  OPEN_LIST,
  QUOTE,
} from './json-text.js';

export interface JsonLimits {
  /** The outermost array or object has depth 1. */
  readonly maxDepth: number;
  readonly maxNumberLength: number;
  /** The most values and member names together; absent: no limit. */
  readonly maxValues?: number;
  readonly areNamesUnique?: true;
}

/** 64 nested blocks have about 200 levels. 400 characters hold every double in full digits. */
export const DEFAULT_JSON_LIMITS: JsonLimits = { maxDepth: 256, maxNumberLength: 400 };

/**
 * For request bodies. Parsing costs by the number of values, not bytes: three million empty lists are 10 MB and take
 * seconds; half a million small objects take a tenth of a second, in pieces of at most 19 ms (`json-cut.ts`). That is
 * more than a context of 256 KiB holds, and 500 for each instance of a batch of 1,000. Duplicate names are rejected
 * because a proxy may have checked the other member.
 */
export const BODY_JSON_LIMITS: JsonLimits = {
  ...DEFAULT_JSON_LIMITS,
  maxValues: 500_000,
  areNamesUnique: true,
};

export interface JsonProblem {
  readonly kind: 'syntax' | 'nul' | 'surrogate' | 'depth' | 'number' | 'values' | 'name';
  /** For the response, with the JSON path and the offset where known. */
  readonly message: string;
}

export type JsonResult =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly problem: JsonProblem };

/**
 * Like `JSON.parse`, but rejects what cannot be stored unchanged (docs/decisions/0018-request-bodies.md): U+0000,
 * lone surrogates, integers beyond 2^53, exponents that make a number infinite or zero, and values beyond `limits`.
 * Never throws.
 */
export function parseJson(text: string, limits: JsonLimits = DEFAULT_JSON_LIMITS): JsonResult {
  const { maxValues, areNamesUnique } = limits;
  const mayHaveMore = maxValues !== undefined && text.length >= 2 * maxValues;
  if (mayHaveMore && new ValueCount(maxValues).takeText(text)) {
    return { ok: false, problem: { kind: 'values', message: tooManyValues(limits) } };
  }
  if (!text.isWellFormed()) {
    return { ok: false, problem: hazardProblem(text, halfPair(text.search(/\p{Surrogate}/u))) };
  }
  const hazard =
    (mayBeDeep(text, limits) ? tooDeep(text, limits) : undefined) ??
    (isSuspicious(text) ? valueHazard(text, limits) : undefined);
  if (hazard !== undefined) return { ok: false, problem: hazardProblem(text, hazard) };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { ok: false, problem: syntaxProblem(text, error) };
  }
  const isScanned = areNamesUnique === true && mayRepeatName(text, value);
  const repeated = isScanned ? findRepeatedName(text) : undefined;
  if (repeated === undefined) return { ok: true, value };
  return { ok: false, problem: hazardProblem(text, repeated) };
}

export function tooManyValues({ maxValues }: JsonLimits): string {
  return `the body has more than ${maxValues} values and names of members`;
}

/** Counts values and names in pieces of a text, so that a body with too many is rejected before its end. */
export class ValueCount {
  readonly #most: number;
  #count = 1;
  /** Whether the last piece ended inside a string, and with a backslash that escapes the next character. */
  #isInString = false;
  #isEscaped = false;

  constructor(most: number) {
    this.#most = most;
  }

  /** Like `takeText`. UTF-8 can be read as Latin-1 here: its marks have the same bytes. */
  take(piece: Buffer): boolean {
    return this.takeText(piece.toString('latin1'));
  }

  /** @returns whether there are more than `most` */
  takeText(piece: string): boolean {
    if (piece === '') return this.#count > this.#most;
    const text = this.#isEscaped ? piece.slice(1) : piece;
    const from = this.#isInString ? behindString(text, text.indexOf('"')) : 0;
    const tokens = new JsonTokens(text, from);
    let count = this.#count;
    for (let code = tokens.nextDivider(); code !== END && count <= this.#most; ) {
      if (isOneMore(tokens, code)) count += 1;
      code = tokens.nextDivider();
    }
    this.#count = count;
    this.#isInString = tokens.end > text.length;
    this.#isEscaped = this.#isInString && isEscaped(text, text.length);
    return count > this.#most;
  }
}

/**
 * Whether the text may contain a duplicate name, which the parsed value no longer shows. It contains none if the number
 * of colons that can follow a name equals the number of members. Such a colon inside a string only costs a scan.
 */
function mayRepeatName(text: string, value: unknown): boolean {
  let names = 0;
  for (let at = text.indexOf(':'); at >= 0; at = text.indexOf(':', at + 1)) {
    const before = text.charCodeAt(at - 1);
    if (before === QUOTE || before <= SPACE) names += 1;
  }
  return names !== countMembers(value);
}

function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += countMembers(item);
    return count;
  }
  // The members of a parsed value are all its own.
  for (const name in value) count += 1 + countMembers((value as Record<string, unknown>)[name]);
  return count;
}

/** The second of two members with the same name. The text must be valid JSON. */
function findRepeatedName(text: string): Hazard | undefined {
  const tokens = new JsonTokens(text);
  /** The names in each open array and object; undefined before the first. */
  const open: (Set<string> | undefined)[] = [];
  let start = 0;
  let end = 0;
  for (let code = tokens.nextMark(); code !== END; code = tokens.nextMark()) {
    if (code === QUOTE) {
      start = tokens.start;
      end = tokens.end;
    } else if (code === COLON) {
      const token = text.slice(start, end);
      const name: string = token.includes('\\') ? JSON.parse(token) : token.slice(1, -1);
      const names = open.at(-1) ?? new Set();
      if (names.has(name)) {
        const message = `the name ${JSON.stringify(clip(name))} for a second member of one object`;
        return { kind: 'name', offset: start, message };
      }
      open[open.length - 1] = names.add(name);
    } else if (isOpening(code)) open.push(undefined);
    else if (isClosing(code)) open.pop();
  }
  return undefined;
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true });

/** The text of `bytes` without a leading byte order mark; undefined when they are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return strictUtf8.decode(bytes);
  } catch {
    // The decoder throws only for bytes that are not UTF-8; the caller reports it.
    return undefined;
  }
}

/** Escapes of U+0000 and of surrogates, including those after an escaped backslash, which `stringHazard` sorts out. */
const RISKY_ESCAPE = /\\u(?:0000|[dD][89a-fA-F])/;

/**
 * A number follows one of these separators, and is harmless with at most 15 characters after the sign and no
 * exponent. A match inside a string only costs a scan. With `\s` the search takes twice as long.
 */
const RISKY_NUMBER = /[:,[ \t\n\r]-?\d(?:[\d.]{15}|[\d.]{0,14}[eE])/;

/** False only for texts whose strings and numbers have no hazard. */
function isSuspicious(text: string): boolean {
  if (RISKY_NUMBER.test(text) || isNumberStart(text.charCodeAt(0))) return true;
  return text.includes('\\') && RISKY_ESCAPE.test(text);
}

function mayBeDeep(text: string, { maxDepth }: JsonLimits): boolean {
  // Each level has an opening and, in valid JSON, a closing character.
  if (text.length <= 2 * maxDepth) return false;
  return countUpTo(text, '{', maxDepth) + countUpTo(text, '[', maxDepth) > maxDepth;
}

/** Stops counting at one more than `most`. */
function countUpTo(text: string, character: string, most: number): number {
  let count = 0;
  let at = text.indexOf(character);
  while (at >= 0 && count <= most) {
    count += 1;
    at = text.indexOf(character, at + 1);
  }
  return count;
}

interface Hazard {
  readonly kind: 'nul' | 'surrogate' | 'depth' | 'number' | 'name';
  readonly offset: number;
  readonly message: string;
}

const SPACE = 32;
const MINUS = 45;
const DIGIT_0 = 48;
const DIGIT_9 = 57;

function tooDeep(text: string, { maxDepth }: JsonLimits): Hazard | undefined {
  const tokens = new JsonTokens(text);
  let depth = 0;
  for (let code = tokens.nextBracket(); code !== END; code = tokens.nextBracket()) {
    if (!isOpening(code)) depth -= 1;
    else if (++depth > maxDepth) {
      const message = `nested deeper than ${maxDepth} levels`;
      return { kind: 'depth', offset: tokens.start, message };
    }
  }
  return undefined;
}

function valueHazard(text: string, limits: JsonLimits): Hazard | undefined {
  const tokens = new JsonTokens(text);
  for (let code = tokens.next(); code !== END; code = tokens.next()) {
    const { start, end } = tokens;
    if (code === QUOTE) {
      const hazard = stringHazard(text.slice(start, end), start);
      if (hazard !== undefined) return hazard;
    } else if (isNumberStart(code)) {
      const message = numberFault(text.slice(start, end), limits);
      if (message !== undefined) return { kind: 'number', offset: start, message };
    }
  }
  return undefined;
}

function isNumberStart(code: number): boolean {
  return code === MINUS || (code >= DIGIT_0 && code <= DIGIT_9);
}

/** The upper six bits of the two halves of a surrogate pair. */
const HIGH = 0xd800 >> 10;
const LOW = 0xdc00 >> 10;

/** Rejects an escaped U+0000, and escaped surrogates that are not paired. */
function stringHazard(token: string, start: number): Hazard | undefined {
  let passed = 0;
  for (let at = token.indexOf('\\'); at >= 0; at = token.indexOf('\\', at + passed)) {
    const unit = escapedUnit(token, at);
    const offset = start + at;
    if (unit === 0) return { kind: 'nul', offset, message: 'the character U+0000' };
    const half = unit >> 10;
    const isPair = half === HIGH && escapedUnit(token, at + 6) >> 10 === LOW;
    if (!isPair && (half === HIGH || half === LOW)) return halfPair(offset);
    passed = isPair ? 12 : 2;
  }
  return undefined;
}

/** The code unit of the `\uXXXX` at `at`; -1 without one. */
function escapedUnit(token: string, at: number): number {
  return token.startsWith('\\u', at) ? Number.parseInt(token.slice(at + 2, at + 6), 16) : -1;
}

function halfPair(offset: number): Hazard {
  return { kind: 'surrogate', offset, message: 'half of a surrogate pair' };
}

const MAX_INTEGER = 2n ** 53n;

/** Why the number cannot be stored unchanged. A fraction may lose digits, as in every double. */
function numberFault(token: string, limits: JsonLimits): string | undefined {
  if (token.length > limits.maxNumberLength) {
    return `a number longer than ${limits.maxNumberLength} characters`;
  }
  if (/^-?\d{16,}$/.test(token)) {
    const value = BigInt(token);
    const isExact = value <= MAX_INTEGER && value >= -MAX_INTEGER;
    return isExact ? undefined : `the integer ${clip(token)}, which is beyond 2^53`;
  }
  const value = Number(token);
  if (value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY) {
    return `the number ${clip(token)}, which is beyond the range of a double`;
  }
  if (value === 0 && /^[-.0]*[1-9]/.test(token)) {
    return `the number ${clip(token)}, which is too close to zero for a double`;
  }
  return undefined;
}

function hazardProblem(text: string, hazard: Hazard): JsonProblem {
  const place = `at ${pathAt(text, hazard.offset)} (character ${hazard.offset})`;
  return { kind: hazard.kind, message: `${hazard.message} is not accepted, ${place}` };
}

function syntaxProblem(text: string, error: unknown): JsonProblem {
  const nul = text.indexOf('\0');
  if (nul >= 0) {
    return hazardProblem(text, { kind: 'nul', offset: nul, message: 'the character U+0000' });
  }
  const reason = error instanceof Error ? error.message : String(error);
  return { kind: 'syntax', message: `invalid JSON: ${reason}` };
}

/** Further steps are left out. */
const PATH_STEPS_SHOWN = 12;

/**
 * The path of the value at `offset`, such as `context.items[3]`; for a key the path of its object. One step per open
 * container: an index, or the key of the current value.
 */
function pathAt(text: string, offset: number): string {
  const tokens = new JsonTokens(text);
  const steps: (number | string | undefined)[] = [];
  let name = '';
  for (let code = tokens.nextMark(); code !== END && tokens.start < offset; ) {
    if (code === QUOTE) name = text.slice(tokens.start + 1, tokens.end - 1);
    else if (code === COLON) steps.splice(-1, 1, name);
    else if (isClosing(code)) steps.pop();
    else if (code === COMMA) {
      const step = steps.pop();
      steps.push(typeof step === 'number' ? step + 1 : undefined);
    } else steps.push(code === OPEN_LIST ? 0 : undefined);
    code = tokens.nextMark();
  }
  return showPath(steps.filter((step) => step !== undefined));
}

function showPath(steps: readonly (number | string)[]): string {
  if (steps.length === 0) return 'the top level';
  let path = '';
  for (const step of steps.slice(0, PATH_STEPS_SHOWN)) {
    if (typeof step === 'number') path += `[${step}]`;
    else path += path === '' ? clip(step) : `.${clip(step)}`;
  }
  return steps.length > PATH_STEPS_SHOWN ? `${path}…` : path;
}
