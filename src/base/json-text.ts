/**
 * Walks through the tokens of a JSON text without parsing it and without allocations: strings, brackets, braces,
 * commas and colons are marks; a run of anything else, such as a number, is a word. Whether the tokens form JSON is
 * for the parser to decide. Positions are UTF-16 units of the text.
 */

export const QUOTE = 34;
export const COMMA = 44;
export const COLON = 58;
export const OPEN_LIST = 91;
export const CLOSE_LIST = 93;
export const OPEN_OBJECT = 123;
export const CLOSE_OBJECT = 125;
/** The end of the text, where another token is looked for. */
export const END = -1;

const BACKSLASH = 92;

/** Kinds of characters outside strings, and the tokens that begin with them. */
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
  /** Of the token: its first character, and the one behind its last; of an open string behind the end of the text. */
  start = 0;
  end = 0;
  /** No white space was passed. */
  isCompact = true;
  /** Without them the next quote closes a string. */
  readonly #hasEscapes: boolean;

  /** @param from where the first token is looked for, outside strings */
  constructor(text: string, from = 0) {
    this.text = text;
    this.end = from;
    this.#hasEscapes = text.includes('\\', from);
  }

  /** @returns the code of the first character of the next token, which stays the next one, or `END` */
  peek(): number {
    const { text } = this;
    while (this.end < text.length && isOf(SPACE, text.charCodeAt(this.end))) {
      this.end += 1;
      this.isCompact = false;
    }
    return this.end < text.length ? text.charCodeAt(this.end) : END;
  }

  /** Goes on to the next token. @returns the code of its first character, or `END` */
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

  /** Goes on to the next mark, past words. @returns its code, or `END` */
  nextMark(): number {
    return this.#find(STRING);
  }

  /** Goes on to the next comma, colon, bracket or brace, past words and strings. */
  nextDivider(): number {
    return this.#find(DIVIDER);
  }

  /** Goes on to the next bracket or brace, past all else. */
  nextBracket(): number {
    return this.#find(BRACKET);
  }

  /** Readers spend their time here: each character is read once, and none behind the end of the text. */
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

/**
 * @param quote the first in the string, which may be escaped; negative: there is none
 * @returns where the string has ended; more than the length of the text when nothing closes it
 */
export function behindString(text: string, quote: number): number {
  let at = quote;
  while (at >= 0 && isEscaped(text, at)) at = text.indexOf('"', at + 1);
  return at < 0 ? text.length + 1 : at + 1;
}

/** Whether an odd number of backslashes stands before `at`: each two of them are one character. */
export function isEscaped(text: string, at: number): boolean {
  let before = at - 1;
  while (before >= 0 && text.charCodeAt(before) === BACKSLASH) before -= 1;
  return (at - before) % 2 === 0;
}

/** Nothing but white space stands in this part of the text. */
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

/**
 * Whether the token stands for one more value or name of a member: each but the first in an array or object is
 * behind a comma or colon, and an array or object that is not empty has a first.
 */
export function isOneMore({ text, end }: JsonTokens, code: number): boolean {
  if (code === COMMA || code === COLON) return true;
  return isOpening(code) && !(end < text.length && isClosing(text.charCodeAt(end)));
}
