/**
 * Text to tokens, by hand and in one pass: no regular expression sees a user's text. A token that
 * cannot begin here ends the list with a message.
 */

import type { Parsed } from './syntax.js';

export type Token =
  | { readonly kind: 'number'; readonly value: number; readonly at: number }
  | { readonly kind: 'string'; readonly value: string; readonly at: number }
  /** A path, a function name or a keyword: letters, digits, `_` and `.`. */
  | { readonly kind: 'word'; readonly text: string; readonly at: number }
  | { readonly kind: 'symbol'; readonly text: string; readonly at: number };

const SYMBOLS_OF_TWO: ReadonlySet<string> = new Set(['==', '!=', '>=', '<=', '&&', '||']);
const SYMBOLS_OF_ONE: ReadonlySet<string> = new Set('><+-*/!?:()[],');

export function tokenize(text: string): Parsed<readonly Token[]> {
  const tokens: Token[] = [];
  let at = skipSpace(text, 0);
  while (at < text.length) {
    const code = text.charCodeAt(at);
    let end = at;
    if (isDigit(code)) {
      end = numberEnd(text, at);
      const value = Number(text.slice(at, end));
      if (!Number.isFinite(value)) return failure('a number out of range', at);
      if (isWordPart(text.charCodeAt(end))) return failure('a malformed number', at);
      tokens.push({ kind: 'number', value, at });
    } else if (code === 34 || code === 39) {
      const close = text.indexOf(text.charAt(at), at + 1);
      if (close < 0) return failure('an unclosed string', at);
      tokens.push({ kind: 'string', value: text.slice(at + 1, close), at });
      end = close + 1;
    } else if (isWordPart(code)) {
      end = wordEnd(text, at);
      tokens.push({ kind: 'word', text: text.slice(at, end), at });
    } else {
      const symbol = symbolAt(text, at);
      if (symbol === undefined) return failure(`unexpected ${quoteCharacter(text, at)}`, at);
      tokens.push({ kind: 'symbol', text: symbol, at });
      end = at + symbol.length;
    }
    at = skipSpace(text, end);
  }
  return { ok: true, value: tokens };
}

function failure(what: string, at: number): { readonly ok: false; readonly message: string } {
  return { ok: false, message: `${what} at character ${at}` };
}

function symbolAt(text: string, at: number): string | undefined {
  const two = text.slice(at, at + 2);
  if (SYMBOLS_OF_TWO.has(two)) return two;
  const one = text.charAt(at);
  return SYMBOLS_OF_ONE.has(one) ? one : undefined;
}

function quoteCharacter(text: string, at: number): string {
  return JSON.stringify(String.fromCodePoint(text.codePointAt(at) ?? 0));
}

export function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && isSpace(text.charCodeAt(at))) at += 1;
  return at;
}

function isSpace(code: number): boolean {
  return code === 32 || (code >= 9 && code <= 13);
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

/** Everything beyond ASCII counts as a letter, so that names in any script work. */
export function isWordPart(code: number): boolean {
  return (
    (code >= 97 && code <= 122) ||
    (code >= 65 && code <= 90) ||
    isDigit(code) ||
    code === 95 ||
    code === 46 ||
    code > 127
  );
}

function wordEnd(text: string, from: number): number {
  let at = from;
  while (at < text.length && isWordPart(text.charCodeAt(at))) at += 1;
  return at;
}

/** A finite number in the form of JSON. `007` and `1.2.3` are words: a text may look like that. */
export function isJsonNumber(text: string): boolean {
  const start = text.startsWith('-') ? 1 : 0;
  const code = text.charCodeAt(start);
  if (!isDigit(code) || numberEnd(text, start) !== text.length) return false;
  const next = text.charCodeAt(start + 1);
  const hasLeadingZero = code === 48 && isDigit(next);
  return !hasLeadingZero && Number.isFinite(Number(text));
}

/** Digits, a fraction, an exponent. A dot or an `e` without digits behind it is not taken. */
function numberEnd(text: string, from: number): number {
  let at = digitsEnd(text, from);
  if (text.charCodeAt(at) === 46) {
    const end = digitsEnd(text, at + 1);
    if (end > at + 1) at = end;
  }
  const letter = text.charCodeAt(at);
  if (letter === 101 || letter === 69) {
    const sign = text.charCodeAt(at + 1);
    const start = sign === 43 || sign === 45 ? at + 2 : at + 1;
    const end = digitsEnd(text, start);
    if (end > start) at = end;
  }
  return at;
}

function digitsEnd(text: string, from: number): number {
  let at = from;
  while (isDigit(text.charCodeAt(at))) at += 1;
  return at;
}
