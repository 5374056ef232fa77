/**
 * Iterates over the tokens of a JSON text without parsing or allocation. Strings, brackets, braces, commas and colons
 * are marks; a run of other characters, such as a number, is a word. Whether the tokens form valid JSON is left to
 * the parser. Positions are UTF-16 units.
 */

export const QUOTE = 34;
export const COMMA = 44;
export const COLON = 58;
export const OPEN_LIST = 91;
export const CLOSE_LIST = 93;
export const OPEN_OBJECT = 123;
export const CLOSE_OBJECT = 125;
/** Returned instead of a token at the end of the text. */
export const END = -1;
const BACKSLASH = 92;
/** Kinds of characters outside strings, and of the tokens that begin with them. */
const WORD = 0;
const SPACE = 1;
const STRING = 2;
const DIVIDER = 3;
const BRACKET = 4;
const KINDS = new Uint8Array(128);
for (const [kind, characters] of ['', '\t\n\r ', '"', ',:', '[]{}'].entries()) {
  for (const character of characters) KINDS[character.charCodeAt(0)] = kind;
}

function isOf(kind: number, code: number): boolean {
  return code < 128 ? KINDS[code] === kind : kind === WORD;
}

export class JsonTokens {
  readonly text: string;
  /** The range of the token, end exclusive. The end of an unterminated string is beyond the text. */
  start = 0;
  end = 0;
  isCompact = true;
  /** Without escapes the next quote closes a string. */
  readonly #hasEscapes: boolean;

  /** @param from the position of the first token, outside strings */
  constructor(text: string, from = 0) {
    this.text = text;
    this.end = from;
    this.#hasEscapes = text.includes('\\', from);
  }

  /** The code of the first character of the next token, or `END`. Does not move to the token. */
  peek(): number {
    const { text } = this;
    while (this.end < text.length && isOf(SPACE, text.charCodeAt(this.end))) {
      this.end += 1;
      this.isCompact = false;
    }
    return this.end < text.length ? text.charCodeAt(this.end) : END;
  }

  /** Moves to the next token. @returns the code of its first character, or `END` */
  next(): number {
    const { text } = this;
    const code = this.peek();
    if (code === END || !isOf(WORD, code)) return this.nextMark();
    this.start = this.end;
    let at = this.start + 1;
    while (at < text.length && isOf(WORD, text.charCodeAt(at))) at += 1;
    this.end = at;
    return code;
  }

  /** Moves to the next mark, skipping words. @returns its code, or `END` */
  nextMark(): number {
    return this.#find(STRING);
  }

  /** Moves to the next comma, colon, bracket or brace, skipping words and strings. */
  nextDivider(): number {
    return this.#find(DIVIDER);
  }

  /** Moves to the next bracket or brace. */
  nextBracket(): number {
    return this.#find(BRACKET);
  }

  /** The hot loop of all readers: reads each character once, and none beyond the text. */
  #find(least: number): number {
    const { text } = this;
    const { length } = text;
    let at = this.end;
    while (at < length) {
      const code = text.charCodeAt(at);
      const kind = KINDS[code & 127]!;
      let end = at + 1;
      if (kind !== WORD && code < 128) {
        if (kind === STRING) {
          const close = text.indexOf('"', end);
          end = this.#hasEscapes || close < 0 ? behindString(text, close) : close + 1;
        }
        if (kind >= least) {
          this.start = at;
          this.end = end;
          return code;
        }
        if (kind === SPACE) this.isCompact = false;
      }
      at = end;
    }
    this.start = length;
    this.end = at;
    return END;
  }
}

/** @returns the position after the quote that closes the string; beyond the text without one */
export function behindString(text: string, quote: number): number {
  let at = quote;
  while (at >= 0 && isEscaped(text, at)) at = text.indexOf('"', at + 1);
  return at < 0 ? text.length + 1 : at + 1;
}

/** An odd number of backslashes before `at` escapes it: each two of them are one character. */
export function isEscaped(text: string, at: number): boolean {
  let before = at - 1;
  while (before >= 0 && text.charCodeAt(before) === BACKSLASH) before -= 1;
  return (at - before) % 2 === 0;
}

export function isBlank(text: string, from: number, to: number): boolean {
  for (let at = from; at < to; at += 1) if (!isOf(SPACE, text.charCodeAt(at))) return false;
  return true;
}

export function isOpening(code: number): boolean {
  return code === OPEN_OBJECT || code === OPEN_LIST;
}

export function isClosing(code: number): boolean {
  return code === CLOSE_OBJECT || code === CLOSE_LIST;
}

/** Whether the token implies one more value or name: after a comma or colon, or the first of a container. */
export function isOneMore({ text, end }: JsonTokens, code: number): boolean {
  if (code === COMMA || code === COLON) return true;
  return isOpening(code) && !(end < text.length && isClosing(text.charCodeAt(end)));
}
