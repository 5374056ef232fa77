/** Splits text into tokens, in linear time: in no pattern can two parts match the same character. */

import { Refusal } from '../parsed.js';

export type Token =
  | { readonly kind: 'literal'; readonly value: number | string; readonly at: number }
  /** A word is a path, a function name or a keyword: letters, digits, `_` and `.`. */
  | { readonly kind: 'word' | 'symbol'; readonly text: string; readonly at: number };

/** Characters beyond ASCII count as letters. A dot or an `e` is part of a number only if digits follow. */
const TOKEN =
  /(?:([A-Za-z_.\u0080-\uffff][\w.\u0080-\uffff]*)|([=!<>]=|&&|\|\||[<>+\-*/!?:()[\],])|(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|"([^"]*)"|'([^']*)')[\t-\r ]*/y;
const WORD_PART = /[\w.\u0080-\uffff]/;

/** @param text does not begin with a space @throws Refusal */
export function tokenize(text: string): readonly Token[] {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  for (let at = 0; at < text.length; at = TOKEN.lastIndex) {
    const found = TOKEN.exec(text);
    if (found === null) throw faultAt(text, at);
    // By index: destructuring it as an array is slower.
    const { 1: word, 2: symbol, 3: number } = found;
    if (word !== undefined) tokens.push({ kind: 'word', text: word, at });
    else if (symbol !== undefined) tokens.push({ kind: 'symbol', text: symbol, at });
    else if (number !== undefined) {
      const value = Number(number);
      if (!Number.isFinite(value)) throw fault('a number out of range', at);
      if (WORD_PART.test(text.charAt(at + number.length))) throw fault('a malformed number', at);
      tokens.push({ kind: 'literal', value, at });
    } else tokens.push({ kind: 'literal', value: (found[4] ?? found[5])!, at });
  }
  return tokens;
}

function faultAt(text: string, at: number): Refusal {
  const character = String.fromCodePoint(text.codePointAt(at)!);
  if (character === '"' || character === "'") return fault('an unclosed string', at);
  return fault(`unexpected ${JSON.stringify(character)}`, at);
}

function fault(what: string, at: number): Refusal {
  return new Refusal(`${what} at character ${at}`);
}

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** The value of a keyword or a finite number in JSON syntax, else undefined: `007` and `1.2.3` are words. */
export function plainValue(text: string): boolean | number | null | undefined {
  if (text === 'true') return true;
  if (text === 'false') return false;
  if (text === 'null') return null;
  const number = JSON_NUMBER.test(text) ? Number(text) : Number.NaN;
  return Number.isFinite(number) ? number : undefined;
}
