/**
 * The texts of members within the JSON of an object, so that a value that nobody changes is written as it
 * came. Only for texts that a parser has taken: nothing is checked here. Texts that are not compact are
 * left alone: what is stored is as large as its value, whatever space a caller puts between.
 */

import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  SPACE,
} from './json-codes.js';
import { endOfString } from './json-guard.js';

/** Goes through a text once. Every method returns false, or nothing, at the first thing that is not compact. */
export class JsonReader {
  readonly text: string;
  /** Of the next character. */
  at = 0;

  constructor(text: string) {
    this.text = text;
  }

  /**
   * Stands at an object, and then behind it. `take` is called with each name, at its value, and goes behind
   * that. Of a repeated name the last value counts, as for the parser.
   */
  eachMember(take: (name: string) => boolean): boolean {
    if (!this.#skip(OPEN_BRACE)) return false;
    if (this.#skip(CLOSE_BRACE)) return true;
    do {
      const name = this.#name();
      if (name === undefined || !this.#skip(COLON) || !take(name)) return false;
    } while (this.#skip(COMMA));
    return this.#skip(CLOSE_BRACE);
  }

  /** The same for the items of an array. */
  eachItem(take: () => boolean): boolean {
    if (!this.#skip(OPEN_BRACKET)) return false;
    if (this.#skip(CLOSE_BRACKET)) return true;
    do {
      if (!take()) return false;
    } while (this.#skip(COMMA));
    return this.#skip(CLOSE_BRACKET);
  }

  get isObject(): boolean {
    return this.text.charCodeAt(this.at) === OPEN_BRACE;
  }

  /** The text of the value that begins here, and goes behind it. */
  value(): string | undefined {
    const from = this.at;
    return this.skipValue() ? this.text.slice(from, this.at) : undefined;
  }

  skipValue(): boolean {
    const { text } = this;
    let depth = 0;
    let { at } = this;
    for (; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) at = endOfString(text, at);
      else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth += 1;
      else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
        if (depth === 0) break;
        depth -= 1;
      } else if (code === COMMA && depth === 0) break;
      else if (code <= SPACE) return false;
    }
    this.at = at;
    return true;
  }

  /** Undefined for one with an escape in it: it may be any name. */
  #name(): string | undefined {
    const from = this.at;
    if (this.text.charCodeAt(from) !== QUOTE) return undefined;
    const end = endOfString(this.text, from);
    this.at = end + 1;
    const name = this.text.slice(from + 1, end);
    return name.includes('\\') ? undefined : name;
  }

  #skip(code: number): boolean {
    if (this.text.charCodeAt(this.at) !== code) return false;
    this.at += 1;
    return true;
  }
}
