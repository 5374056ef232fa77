/**
 * How many items a batch has, from its text and before anybody parses it: who admits it must not spend what it
 * is there to save. Whatever the text is, there is an answer; what is not JSON is refused later. Pure.
 */

import { BODY_JSON_LIMITS, endOfString } from './json-guard.js';

const QUOTE = 34;
const OPEN_LIST = 91;
const CLOSE_LIST = 93;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;

/** With more lists and objects a body is refused, whatever it asks for. */
const OPENED_MAX = BODY_JSON_LIMITS.maxValues ?? Number.POSITIVE_INFINITY;

/** The objects that lie directly in lists of the outermost object: of a batch its items. */
export function itemsIn(text: string): number {
  let items = 0;
  let depth = 0;
  let opened = 0;
  for (let at = 0; at < text.length && opened <= OPENED_MAX; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === OPEN_OBJECT || code === OPEN_LIST) {
      if (depth === 2 && code === OPEN_OBJECT) items += 1;
      depth += 1;
      opened += 1;
    } else if (code === CLOSE_OBJECT || code === CLOSE_LIST) depth -= 1;
  }
  return items;
}
