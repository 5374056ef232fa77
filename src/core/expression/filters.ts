/**
 * The filters of templates (docs/reference/expressions.md). Arguments are checked when the template is compiled;
 * applying a filter gives a value, or a message that fails the step. String filters treat values that are not strings
 * as the empty string.
 */

import { createHash } from 'node:crypto';
import { clip, displayText } from '../../base/bounds.js';
import type { JsonValue } from '../../base/json.js';
import { type Parsed, parsing, Refusal, refused } from '../parsed.js';
import { mapNumber, occurrences } from './operators.js';

export interface FilterCall {
  readonly name: string;
  /** Distinguishes calls of one filter, when templates are compared. */
  readonly args: readonly JsonValue[];
  readonly apply: (value: JsonValue) => Parsed<JsonValue>;
}

/** In UTF-8 bytes. */
export const FILTER_RESULT_MAX = 4 * 1024 * 1024;
/** Whether `word` is a filter that needs no parentheses. */
export const isBareFilter = (word: string): boolean => FILTERS.get(word)?.most === 0;

export function parseFilter(name: string, args: readonly JsonValue[]): Parsed<FilterCall> {
  const definition = FILTERS.get(name);
  if (definition === undefined) return refused(`unknown template filter "${clip(name)}"`);
  const bound = parsingIn(name, () => {
    if (args.length < definition.least || args.length > definition.most) {
      throw new Refusal('has a wrong number of arguments');
    }
    return definition.bind(args);
  });
  if (!bound.ok) return bound;
  const apply = (value: JsonValue) => parsingIn(name, () => limited(bound.value(value)));
  return { ok: true, value: { name, args, apply } };
}

/** Prefixes refusals in `read` with the filter. */
function parsingIn<T>(name: string, read: () => T): Parsed<T> {
  const parsed = parsing(read);
  return parsed.ok ? parsed : refused(`the template filter ${name} ${parsed.message}`);
}

/** @throws Refusal for an unsupported value */
type Filter = (value: JsonValue) => JsonValue;

interface FilterDefinition {
  readonly least: number;
  readonly most: number;
  /** @throws Refusal for unsupported arguments */
  readonly bind: (args: readonly JsonValue[]) => Filter;
}

function limited(value: JsonValue): JsonValue {
  const isLarge = typeof value === 'string' && value.length * 3 > FILTER_RESULT_MAX;
  if (isLarge) checkSize(Buffer.byteLength(value, 'utf8'));
  return value;
}

function checkSize(size: number): void {
  if (size > FILTER_RESULT_MAX) throw new Refusal('gives more than 4 MiB');
}

const FILTERS: ReadonlyMap<string, FilterDefinition> = new Map<string, FilterDefinition>([
  ['upper', onText((text) => text.toUpperCase())],
  ['lower', onText((text) => text.toLowerCase())],
  ['trim', onText((text) => text.trim())],
  // A Buffer replaces a lone surrogate by U+FFFD; encodeURIComponent would throw on it.
  ['url_encode', onText((text) => encodeURIComponent(Buffer.from(text).toString()))],
  ['base64', onText((text) => Buffer.from(text, 'utf8').toString('base64'))],
  ['base64_decode', onText(decodeBase64)],
  ['abs', { least: 0, most: 0, bind: () => (value) => mapNumber(value, Math.abs) }],
  ['round', { least: 0, most: 1, bind: bindRound }],
  ['replace', { least: 2, most: 2, bind: bindReplace }],
  ['default', { least: 1, most: 1, bind: bindDefault }],
  ['truncate', { least: 1, most: 2, bind: bindTruncate }],
  ['join', { least: 1, most: 1, bind: bindJoin }],
  ['split', { least: 1, most: 1, bind: bindSplit }],
  ['hash', { least: 1, most: 1, bind: bindHash }],
]);

export const FILTER_NAMES: readonly string[] = [...FILTERS.keys()];

function onText(apply: (text: string) => JsonValue): FilterDefinition {
  return { least: 0, most: 0, bind: () => (value) => apply(textOf(value)) };
}

const textOf = (value: JsonValue): string => (typeof value === 'string' ? value : '');

function decodeBase64(text: string): string {
  const stripped = text.trim().replaceAll('=', '');
  const bytes = Buffer.from(stripped, 'base64');
  // The decoder skips invalid characters, so the input is valid only if it round-trips.
  if (bytes.toString('base64').replaceAll('=', '') !== stripped)
    throw new Refusal('got bad base64');
  const decoded = bytes.toString('utf8');
  if (decoded.includes('\0') || !Buffer.from(decoded, 'utf8').equals(bytes)) {
    throw new Refusal('got base64 of something that is not text');
  }
  return decoded;
}

/** The precision of a double. */
const ROUND_DIGITS_MAX = 15;

function bindRound([digits = 0]: readonly JsonValue[]): Filter {
  if (!isCount(digits) || digits > ROUND_DIGITS_MAX) {
    throw new Refusal(`needs a whole number from 0 to ${ROUND_DIGITS_MAX}`);
  }
  return (value) => mapNumber(value, (number) => Number(number.toFixed(digits)));
}

function isCount(value: JsonValue): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function bindReplace([search = '', replacement = '']: readonly JsonValue[]): Filter {
  const from = displayText(search);
  const to = displayText(replacement);
  if (from === '') throw new Refusal('needs a text to search for');
  return (value) => {
    const text = displayText(value);
    const pieces = piecesOf(text, from);
    checkSize(text.length + (pieces.length - 1) * (to.length - from.length));
    return pieces.join(to);
  };
}

/** Like `split`, but in linear time for every separator. */
function piecesOf(text: string, separator: string): string[] {
  const pieces: string[] = [];
  let from = 0;
  for (const at of occurrences(text, separator)) {
    pieces.push(text.slice(from, at));
    from = at + separator.length;
  }
  pieces.push(text.slice(from));
  return pieces;
}

function bindDefault([fallback = null]: readonly JsonValue[]): Filter {
  return (value) => (value === null || value === '' ? fallback : value);
}

/** Counts code points; the suffix replaces what was cut off. */
function bindTruncate([length = null, suffix = '']: readonly JsonValue[]): Filter {
  if (!isCount(length)) throw new Refusal('needs a length');
  const end = displayText(suffix);
  return (value) => {
    const text = textOf(value);
    const points = text.length <= length ? undefined : Array.from(text);
    if (points === undefined || points.length <= length) return text;
    return points.slice(0, length).join('') + end;
  };
}

/** Members of an array as text; anything else counts as an empty array. */
function bindJoin([separator = '']: readonly JsonValue[]): Filter {
  const between = displayText(separator);
  return (value) => {
    if (!Array.isArray(value)) return '';
    let size = 0;
    const texts: string[] = [];
    for (const item of value) {
      const text = displayText(item);
      size += text.length + between.length;
      checkSize(size - between.length);
      texts.push(text);
    }
    return texts.join(between);
  };
}

/** An empty separator splits into characters. */
function bindSplit([separator = '']: readonly JsonValue[]): Filter {
  const between = displayText(separator);
  return (value) => {
    const text = textOf(value);
    checkSize(text.length);
    return between === '' ? Array.from(text) : piecesOf(text, between);
  };
}

function bindHash([algorithm = null]: readonly JsonValue[]): Filter {
  if (algorithm !== 'sha256') throw new Refusal('knows only sha256');
  return (value) => createHash('sha256').update(textOf(value), 'utf8').digest('hex');
}
