/** Finds values in a JSON text without parsing it. The result is correct only if the text is valid JSON. */

import { BODY_JSON_LIMITS } from './json-guard.js';
import {
  CLOSE_LIST,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  END,
  isClosing,
  isOpening,
  JsonTokens,
  OPEN_LIST,
  OPEN_OBJECT,
  QUOTE,
} from './json-text.js';

/** Reads consecutive values. Each method starts where a value begins, and returns false for unexpected input. */
export class JsonReader extends JsonTokens {
  /** Reads an object. `take` receives each name as it is written between its quotes, and reads the value. */
  eachMember(take: (name: string) => boolean): boolean {
    if (this.next() !== OPEN_OBJECT) return false;
    let code = this.nextMark();
    if (code === CLOSE_OBJECT) return true;
    while (code === QUOTE) {
      const name = this.text.slice(this.start + 1, this.end - 1);
      if (this.nextMark() !== COLON || !take(name)) return false;
      code = this.nextMark();
      if (code !== COMMA) return code === CLOSE_OBJECT;
      code = this.nextMark();
    }
    return false;
  }

  /** Reads an array; `take` reads each item. */
  eachItem(take: () => boolean): boolean {
    if (this.next() !== OPEN_LIST) return false;
    if (this.peek() === CLOSE_LIST) return this.next() !== END;
    do {
      if (!take()) return false;
    } while (this.nextMark() === COMMA);
    return true;
  }

  skip(): boolean {
    let depth = 0;
    for (let code = this.next(); code !== END; code = this.nextBracket()) {
      if (isOpening(code)) depth += 1;
      else if (isClosing(code)) depth -= 1;
      if (depth <= 0) return depth === 0;
    }
    return false;
  }

  value(): string | undefined {
    this.peek();
    const start = this.end;
    return this.skip() ? this.text.slice(start, this.end) : undefined;
  }
}

/** The range of a value in the text; the end is exclusive. */
export type Span = readonly [start: number, end: number];

export interface ListSpans {
  readonly list: Span;
  readonly items: readonly Span[];
}

/** The ranges of a list and its items; undefined when the last member of this name is no list. */
export function listIn(text: string, member: string): ListSpans | undefined {
  const reader = new JsonReader(text);
  let found: ListSpans | undefined;
  reader.eachMember((name) => {
    if (JSON.parse(`"${name}"`) !== member) return reader.skip();
    found = undefined;
    if (reader.peek() !== OPEN_LIST) return reader.skip();
    const start = reader.end;
    const items: Span[] = [];
    const isRead = reader.eachItem(() => {
      reader.peek();
      const from = reader.end;
      return reader.skip() && items.push([from, reader.end]) > 0;
    });
    found = { list: [start, reader.end], items };
    return isRead;
  });
  return found;
}

/** A body with more arrays and objects is rejected anyway. */
const OPENED_MAX = BODY_JSON_LIMITS.maxValues ?? Number.POSITIVE_INFINITY;

/** The number of objects directly in lists of the outermost object: the items of a batch, before it is parsed. */
export function itemsIn(text: string): number {
  const tokens = new JsonTokens(text);
  let items = 0;
  let depth = 0;
  let opened = 0;
  for (let code = tokens.nextBracket(); code !== END && opened <= OPENED_MAX; ) {
    if (isOpening(code)) {
      if (depth === 2 && code === OPEN_OBJECT) items += 1;
      depth += 1;
      opened += 1;
    } else depth -= 1;
    code = tokens.nextBracket();
  }
  return items;
}
