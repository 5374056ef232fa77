/**
 * The entry check on every JSON text that can reach a row. One row that Postgres refuses makes a
 * whole batch fail, and a text that parses can still overflow the stack when it is written again:
 * so the text is looked at before it is parsed, and what could harm the writer is refused with the
 * place where it stands. Ordinary texts pass three native searches; only a text in which one of them
 * found something is scanned, and only a refused one has its place worked out.
 */

import { clip } from './bounds.js';
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from './json-codes.js';

export interface JsonLimits {
  /** How deep arrays and objects may nest; the outermost one counts as 1. */
  readonly maxDepth: number;
  /** The longest text of a number, in characters. */
  readonly maxNumberLength: number;
  /** Most values and names of members together; absent: any number. */
  readonly maxValues?: number;
  /** No object may have two members of one name. */
  readonly areNamesUnique?: true;
}

/**
 * 256 levels: 64 nested blocks are some 200 levels, and neither a stack nor a column is in danger
 * below 1,000. 400 characters hold every double written out in full digits.
 */
export const DEFAULT_JSON_LIMITS: JsonLimits = { maxDepth: 256, maxNumberLength: 400 };

/**
 * Of the bodies of requests. What a text costs goes by its values and not by its bytes: three million empty
 * lists are 10 MB and take seconds. Half a million lists, numbers or small objects are a tenth of a second,
 * and 240,000 names, each another one, three tenths, in pieces of 19 ms at most (`json-cut.ts`; all on a busy
 * machine). It is more than any context of 256 KiB can hold, and 500 for each instance of a batch of 1,000. Of
 * two members with one name nobody knows which one was meant, least of all a proxy that looked at the other.
 */
export const BODY_JSON_LIMITS: JsonLimits = {
  ...DEFAULT_JSON_LIMITS,
  maxValues: 500_000,
  areNamesUnique: true,
};

export interface JsonProblem {
  readonly kind: 'syntax' | 'nul' | 'surrogate' | 'depth' | 'number' | 'utf8' | 'values' | 'name';
  /** For the reply: says what is wrong, and names the JSON path and the offset where it is known. */
  readonly message: string;
}

export type JsonResult =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly problem: JsonProblem };

/**
 * Parses `text` like `JSON.parse` and refuses beyond that what cannot be stored unchanged: U+0000
 * and lone surrogates (raw or escaped), nesting and numbers over `limits`, integers beyond 2^53,
 * and exponents that make a number infinite or zero
 * (docs/decisions/0018-request-bodies.md), and what else `limits` name. Never throws. Of a
 * repeated key that is let through the last value counts, and `__proto__` becomes an own property like
 * any other key.
 */
export function parseJson(text: string, limits: JsonLimits = DEFAULT_JSON_LIMITS): JsonResult {
  const { maxValues, areNamesUnique } = limits;
  if (maxValues !== undefined && hasMoreValues(text, maxValues)) {
    return { ok: false, problem: { kind: 'values', message: tooManyValues(limits) } };
  }
  if (!isWellFormed(text)) return { ok: false, problem: rawSurrogateProblem(text) };
  if (isSuspicious(text, limits)) {
    const hazard = findHazard(text, limits);
    if (hazard !== undefined) return { ok: false, problem: hazardProblem(text, hazard) };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { ok: false, problem: syntaxProblem(text, error) };
  }
  const isAsked = areNamesUnique === true && mayRepeatName(text, value);
  const repeated = isAsked ? findRepeatedName(text) : undefined;
  if (repeated === undefined) return { ok: true, value };
  return { ok: false, problem: hazardProblem(text, repeated) };
}

export function tooManyValues({ maxValues }: JsonLimits): string {
  return `the body has more than ${maxValues} values and names of members`;
}

/**
 * Whether there are more than `most` values and names of members. It is asked before anything else, and
 * counts on the first look only where the text is long enough to hold so many.
 */
function hasMoreValues(text: string, most: number): boolean {
  // Each takes a character of its own and one that parts it from the next.
  if (text.length < 2 * most) return false;
  let count = 1;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === COMMA || code === COLON) count += 1;
    else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
      const next = text.charCodeAt(at + 1);
      // What an empty one holds is nothing; the first of others has no comma before it.
      if (next !== CLOSE_BRACKET && next !== CLOSE_BRACE) count += 1;
    }
    if (count > most) return true;
  }
  return false;
}

/**
 * The same of a text that comes in pieces, as its bytes: what has too many is refused before it is whole. Beyond
 * the first piece an empty list that is cut in two counts as one with a value.
 */
export class ValueCount {
  readonly #most: number;
  #count = 1;
  #isInString = false;
  #isEscaped = false;

  constructor(most: number) {
    this.#most = most;
  }

  /** @returns whether there are more than `most` */
  take(piece: Uint8Array): boolean {
    let count = this.#count;
    for (let at = 0; at < piece.length; at += 1) {
      if (this.#isInString) {
        at = this.#endOfString(piece, at);
        continue;
      }
      const code = piece[at];
      if (code === QUOTE) this.#isInString = true;
      else if (code === COMMA || code === COLON) count += 1;
      else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
        const next = piece[at + 1];
        if (next !== CLOSE_BRACKET && next !== CLOSE_BRACE) count += 1;
      }
    }
    this.#count = count;
    return count > this.#most;
  }

  /** Where the string ends, or the piece does. */
  #endOfString(piece: Uint8Array, from: number): number {
    let at = from;
    for (; at < piece.length; at += 1) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (piece[at] === BACKSLASH) this.#isEscaped = true;
      else if (piece[at] === QUOTE) {
        this.#isInString = false;
        break;
      }
    }
    return at;
  }
}

/**
 * Each member has a colon, and what repeats a name is not among those of the value: where the numbers are
 * the same nothing is repeated. A colon within a string costs a scan, no more.
 */
function mayRepeatName(text: string, value: unknown): boolean {
  return countUpTo(text, ':', text.length) !== countMembers(value);
}

function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += countMembers(item);
    return count;
  }
  // Of what was just parsed all that can be listed is its own.
  for (const name in value) count += 1 + countMembers((value as Record<string, unknown>)[name]);
  return count;
}

/** Objects with more members than this have a set of their names, others are compared one by one. */
const COMPARED_NAMES_MAX = 16;

/** The second member of one name in an object of a text that is JSON. */
function findRepeatedName(text: string): Hazard | undefined {
  /** Names of all objects that are open, one after the other. */
  const names: string[] = [];
  /** For each thing that is open: where its names begin, or `IN_LIST`. */
  const begins: number[] = [];
  let sets: Map<number, Set<string>> | undefined;
  let begin = IN_LIST;
  let isName = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const end = endOfString(text, at);
      if (isName) {
        isName = false;
        const raw = text.slice(at + 1, end);
        const name = raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
        const count = names.length - begin;
        let isRepeated = false;
        if (count <= COMPARED_NAMES_MAX) {
          for (let of = begin; of < names.length; of += 1) isRepeated ||= names[of] === name;
        } else {
          sets ??= new Map();
          let known = sets.get(begins.length);
          if (known === undefined) {
            known = new Set(names.slice(begin));
            sets.set(begins.length, known);
          }
          isRepeated = known.has(name);
          known.add(name);
        }
        if (isRepeated) {
          const message = `the name ${JSON.stringify(clip(name))} for a second member of one object`;
          return { kind: 'name', offset: at, message };
        }
        names.push(name);
      }
      at = end;
    } else if (code === COMMA) isName = begin !== IN_LIST;
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      begins.push(begin);
      isName = code === OPEN_BRACE;
      begin = isName ? names.length : IN_LIST;
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      isName = false;
      if (begin !== IN_LIST) {
        sets?.delete(begins.length);
        names.length = begin;
      }
      begin = begins.pop() ?? IN_LIST;
    }
  }
  return undefined;
}

const IN_LIST = -1;

const strictUtf8 = new TextDecoder('utf-8', { fatal: true });

/** The text of `bytes` without a leading byte order mark; undefined when they are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return strictUtf8.decode(bytes);
  } catch {
    // The decoder's one error says that the bytes are not UTF-8, which is the caller's to answer.
    return undefined;
  }
}

/** `String.prototype.isWellFormed` is in Node 20 but not yet in the library of ES2023. */
function isWellFormed(text: string): boolean {
  return (text as string & { isWellFormed(): boolean }).isWellFormed();
}

/** The escapes of U+0000 and of surrogates; an escaped backslash before `u` is sorted out later. */
const RISKY_ESCAPE = /\\u(?:0000|[dD][89a-fA-F])/;

/**
 * A number inside a body follows one of these separators, and is harmless while it has at most 15
 * characters after the sign and no exponent. Strings may match too: they cost a scan, no more. The
 * white space is spelled out because `\s` makes the search twice as slow.
 */
const RISKY_NUMBER = /[:,[ \t\n\r]-?\d(?:[\d.]{15}|[\d.]{0,14}[eE])/;

/** Whether the text may hold a hazard. It never says no for one that does. */
function isSuspicious(text: string, limits: JsonLimits): boolean {
  if (RISKY_NUMBER.test(text) || isNumberStart(text.charCodeAt(0))) return true;
  if (text.includes('\\') && RISKY_ESCAPE.test(text)) return true;
  // Each level takes an opening and, in valid JSON, a closing character.
  if (text.length <= 2 * limits.maxDepth) return false;
  return (
    countUpTo(text, '{', limits.maxDepth) + countUpTo(text, '[', limits.maxDepth) > limits.maxDepth
  );
}

/** How often `character` occurs, counted no further than one more than `most`. */
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

const MINUS = 45;
const DIGIT_0 = 48;
const DIGIT_9 = 57;
const LOWER_U = 117;

/** The first hazard of the text. Text that is not JSON may pass: the parser refuses it afterwards. */
function findHazard(text: string, limits: JsonLimits): Hazard | undefined {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const end = endOfString(text, at);
      const hazard = stringHazard(text, at, end);
      if (hazard !== undefined) return hazard;
      at = end;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth += 1;
      if (depth > limits.maxDepth) {
        const message = `nested deeper than ${limits.maxDepth} levels`;
        return { kind: 'depth', offset: at, message };
      }
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth -= 1;
    } else if (isNumberStart(code)) {
      const end = endOfNumber(text, at);
      const message = numberFault(text.slice(at, end), limits);
      if (message !== undefined) return { kind: 'number', offset: at, message };
      at = end - 1;
    }
  }
  return undefined;
}

function isNumberStart(code: number): boolean {
  return code === MINUS || (code >= DIGIT_0 && code <= DIGIT_9);
}

/** The offset of the quote that closes the string opened at `start`, or the length of the text. */
export function endOfString(text: string, start: number): number {
  // Looked for natively: that is several times as fast as character by character.
  let at = text.indexOf('"', start + 1);
  while (at >= 0 && isEscaped(text, at)) at = text.indexOf('"', at + 1);
  return at < 0 ? text.length : at;
}

/** Whether an odd number of backslashes stands before it: each two of them are one character. */
function isEscaped(text: string, quote: number): boolean {
  let at = quote - 1;
  while (text.charCodeAt(at) === BACKSLASH) at -= 1;
  return (quote - at) % 2 === 0;
}

/** Looks at the `\uXXXX` escapes of one string: none may be U+0000, surrogates come in pairs. */
function stringHazard(text: string, start: number, end: number): Hazard | undefined {
  let at = start + 1;
  while (at < end) {
    if (text.charCodeAt(at) !== BACKSLASH) {
      at += 1;
      continue;
    }
    const unit = escapedUnit(text, at);
    if (unit === undefined) {
      at += 2;
      continue;
    }
    if (unit === 0) return { kind: 'nul', offset: at, message: 'the character U+0000' };
    const isPair = isHighSurrogate(unit) && isLowSurrogate(escapedUnit(text, at + 6));
    if (!isPair && unit >= 0xd800 && unit <= 0xdfff) {
      return { kind: 'surrogate', offset: at, message: 'half of a surrogate pair' };
    }
    at += isPair ? 12 : 6;
  }
  return undefined;
}

/** The code unit that a `\uXXXX` at `at` stands for; undefined when there is no such escape. */
function escapedUnit(text: string, at: number): number | undefined {
  if (text.charCodeAt(at) !== BACKSLASH || text.charCodeAt(at + 1) !== LOWER_U) return undefined;
  const unit = Number(`0x${text.slice(at + 2, at + 6)}`);
  return Number.isNaN(unit) ? undefined : unit;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(unit: number | undefined): boolean {
  return unit !== undefined && unit >= 0xdc00 && unit <= 0xdfff;
}

const NUMBER_CHARACTERS = new Set('0123456789+-.eE');

function endOfNumber(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && NUMBER_CHARACTERS.has(text.charAt(at))) at += 1;
  return at;
}

const MAX_INTEGER = 2n ** 53n;

/** Why the number cannot be kept as it is, if so. A fraction may lose digits as every double does. */
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

function rawSurrogateProblem(text: string): JsonProblem {
  let offset = 0;
  for (const point of text) {
    const code = point.codePointAt(0) ?? 0;
    if (code >= 0xd800 && code <= 0xdfff) break;
    offset += point.length;
  }
  return hazardProblem(text, { kind: 'surrogate', offset, message: 'half of a surrogate pair' });
}

function syntaxProblem(text: string, error: unknown): JsonProblem {
  const nul = text.indexOf('\0');
  if (nul >= 0) {
    return hazardProblem(text, { kind: 'nul', offset: nul, message: 'the character U+0000' });
  }
  const reason = error instanceof Error ? error.message : String(error);
  return { kind: 'syntax', message: `invalid JSON: ${reason}` };
}

/** A path longer than this, in steps, is shown by its beginning. */
const PATH_STEPS_SHOWN = 12;

/**
 * The path of the value at `offset`, as in `context.items[3]`; for a key the path of its object.
 * One step per open container: an index, or the key whose value is being read.
 */
function pathAt(text: string, offset: number): string {
  const steps: (number | string | undefined)[] = [];
  for (let at = 0; at < offset; at += 1) {
    const code = text.charCodeAt(at);
    if (code === OPEN_BRACE) steps.push(undefined);
    else if (code === OPEN_BRACKET) steps.push(0);
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) steps.pop();
    else if (code === COMMA) {
      const step = steps.pop();
      steps.push(typeof step === 'number' ? step + 1 : undefined);
    } else if (code === QUOTE) {
      const end = endOfString(text, at);
      if (end < offset && steps.length > 0 && steps.at(-1) === undefined) {
        steps[steps.length - 1] = text.slice(at + 1, end);
      }
      at = end;
    }
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
