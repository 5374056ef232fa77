/**
 * Masks secrets in data that comes from outside (docs/secrets.md), also within longer texts: as plain text
 * in any case, escaped up to twice for JSON, HTML or a URL, as hex and as base64. Pure.
 */

import { REDACTED } from '../../schema/common.js';
import type { JsonObject, JsonValue } from '../base/json.js';

/** Shorter secrets would match everywhere. */
const MASKED_LENGTH_MIN = 4;
/** Levels of escaping that are undone. */
const ESCAPED_MAX = 2;

interface Hidden {
  /** Normalized by `folded`. */
  readonly folded: readonly Form[];
  readonly base64: readonly Form[];
}

/** `before`, `behind`: adjacent base64 characters that encode only part of the secret. */
type Form = { readonly text: string; readonly before: number; readonly behind: number };

/** Masks the texts in all strings, numbers and member names; returns the same value without a match. */
export function masked<T extends object>(value: T, texts: readonly string[]): T {
  const long = texts.filter(({ length }) => length >= MASKED_LENGTH_MIN);
  if (long.length === 0) return value;
  const numbers = new Set(long.map(Number));
  return maskedIn(value as JsonObject, long.map(hiddenOf), numbers) as T;
}

function maskedIn(value: JsonValue, hidden: readonly Hidden[], numbers: Set<number>): JsonValue {
  if (typeof value === 'string') return hide(value, hidden);
  if (typeof value === 'number') {
    const text = String(value);
    return numbers.has(value) || hide(text, hidden) !== text ? REDACTED : value;
  }
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const items = value.map((item) => maskedIn(item, hidden, numbers));
    return items.some((item, i) => item !== value[i]) ? items : value;
  }
  const names = new Set(Object.keys(value));
  let isOther = false;
  const members = Object.entries(value).map(([name, member]): [string, JsonValue] => {
    let shown = hide(name, hidden);
    // Masked names may collide, and no member may be lost.
    for (let n = 2; shown !== name && names.has(shown); n += 1) shown = `${REDACTED} ${n}`;
    names.add(shown);
    const left = maskedIn(member, hidden, numbers);
    isOther ||= shown !== name || left !== member;
    return [shown, left];
  });
  return isOther ? Object.fromEntries(members) : value;
}

/** A decoded text, and the position of each of its code units in the original. */
interface Reading {
  readonly says: string;
  /** Absent: the positions are the same. */
  readonly at?: { readonly from: Uint32Array; readonly to: Uint32Array };
}

function hide(text: string, hidden: readonly Hidden[]): string {
  if (text.length < MASKED_LENGTH_MIN) return text;
  const found: [from: number, to: number][] = [];
  for (const reading of readingsOf(text)) {
    const plain = folded(reading);
    const coded = asBase64(reading);
    for (const forms of hidden) {
      for (const form of forms.folded) found.push(...placesOf(plain, form));
      for (const form of forms.base64) found.push(...placesOf(coded, form));
    }
  }
  return found.length === 0 ? text : without(text, found);
}

/** Yields the text itself, and the text unescaped in each of the ways and in all of them. */
function* readingsOf(text: string): Generator<Reading> {
  yield { says: text };
  for (const pattern of ESCAPES) {
    let reading: Reading = { says: text };
    for (let level = 0; level < ESCAPED_MAX; level += 1) {
      const next = rewritten(reading, pattern, unescaped);
      if (next === reading) break;
      yield next;
      reading = next;
    }
  }
}

function without(text: string, found: [from: number, to: number][]): string {
  found.sort(([a], [b]) => a - b);
  let shown = '';
  let end = -1;
  for (const [from, to] of found) {
    if (from >= end) shown += `${text.slice(Math.max(end, 0), from)}${REDACTED}`;
    end = Math.max(end, to);
  }
  return shown + text.slice(end);
}

function* placesOf({ says, at }: Reading, { text, before, behind }: Form) {
  for (let from = says.indexOf(text); from >= 0; from = says.indexOf(text, from + text.length)) {
    const first = Math.max(from - before, 0);
    const last = Math.min(from + text.length + behind, says.length) - 1;
    yield [at?.from[first] ?? first, at?.to[last] ?? last + 1] as [number, number];
  }
}

/** Returns the same reading when nothing changed. */
function rewritten(reading: Reading, pattern: RegExp, by: (part: string) => string): Reading {
  const { says, at } = reading;
  // Most texts have no match.
  if (says.search(pattern) < 0) return reading;
  const parts: string[] = [];
  const from = new Uint32Array(says.length * 2);
  const to = new Uint32Array(says.length * 2);
  let length = 0;
  let end = 0;
  const keep = (until: number) => {
    for (let i = end; i < until; i += 1, length += 1) {
      from[length] = at?.from[i] ?? i;
      to[length] = at?.to[i] ?? i + 1;
    }
    parts.push(says.slice(end, until));
  };
  for (const { 0: part, index } of says.matchAll(pattern)) {
    const instead = by(part);
    if (instead === part) continue;
    keep(index);
    end = index + part.length;
    from.fill(at?.from[index] ?? index, length, length + instead.length);
    to.fill(at?.to[end - 1] ?? end, length, length + instead.length);
    parts.push(instead);
    length += instead.length;
  }
  if (parts.length === 0) return reading;
  keep(says.length);
  return { says: parts.join(''), at: { from, to } };
}

const IN_JSON = /\\(?:u[\da-f]{4}|.)/gis;
const IN_HTML = /&(?:#\d{1,7}|#x[\da-f]{1,6}|amp|lt|gt|quot|apos);/gi;
/** The UTF-8 bytes of one character. */
const IN_URL =
  /%(?:f[0-7](?:%[89ab][\da-f]){3}|e[\da-f](?:%[89ab][\da-f]){2}|[cd][\da-f]%[89ab][\da-f]|[\da-f]{2})/gi;
const ANYWHERE = new RegExp(
  [IN_JSON, IN_HTML, IN_URL].map(({ source }) => source).join('|'),
  'gis',
);
const ESCAPES = [IN_JSON, IN_HTML, IN_URL, ANYWHERE];

const NAMED: Readonly<Record<string, string>> = {
  '\\n': '\n',
  '\\r': '\r',
  '\\t': '\t',
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&apos;': "'",
};

function unescaped(part: string): string {
  const named = NAMED[part.toLowerCase()];
  if (named !== undefined) return named;
  if (part.startsWith('%')) return Buffer.from(part.replaceAll('%', ''), 'hex').toString();
  if (part.startsWith('\\')) {
    return part.length === 2 ? part.slice(1) : String.fromCharCode(Number(`0x${part.slice(2)}`));
  }
  const code = /^&#x/i.test(part) ? `0x${part.slice(3, -1)}` : part.slice(2, -1);
  return Number(code) <= 0x10ffff ? String.fromCodePoint(Number(code)) : part;
}

/** Normalizes case in all of Unicode, and spaces to the plus signs of form encoding. */
function folded(reading: Reading): Reading {
  const fold = (letter: string) => letter.toUpperCase().toLowerCase();
  const { says, at } = rewritten(reading, BEYOND_ASCII, fold);
  return { says: says.toLowerCase().replaceAll(' ', '+'), ...(at && { at }) };
}

const BEYOND_ASCII = /[^\0-\x7f]/gu;

/** Normalizes the base64 alphabet, and removes line breaks. */
function asBase64(reading: Reading): Reading {
  const { says, at } = rewritten(reading, /\s+|\\[rn]/g, () => '');
  return { says: says.replaceAll('-', '+').replaceAll('_', '/'), ...(at && { at }) };
}

function hiddenOf(text: string): Hidden {
  const bytes = Buffer.from(text);
  // At each of three positions in base64, search only for characters that encode nothing else.
  const base64 = [0, 1, 2].map((bytesBefore): Form => {
    const whole = Buffer.concat([Buffer.alloc(bytesBefore), bytes]);
    const from = Math.ceil((bytesBefore * 8) / 6);
    const to = Math.floor((whole.length * 8) / 6);
    const behind = whole.length % 3 === 0 ? 0 : 1;
    return { text: whole.toString('base64').slice(from, to), before: from > 0 ? 1 : 0, behind };
  });
  const texts = [folded({ says: text }).says, bytes.toString('hex')];
  return { folded: texts.map((one) => ({ text: one, before: 0, behind: 0 })), base64 };
}
