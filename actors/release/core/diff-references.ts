/**
 * References by name in the texts of a definition: outputs of other blocks, and credentials. Texts are searched as they
 * are, because references also occur outside of templates, as in the condition of an `assert`. A search takes time
 * linear in the text. Pure.
 */

import type { JsonValue } from '../../../src/base/json.js';

/** A path segment after the root; ids cannot contain other characters. */
const SEGMENT = /[^.|{}()[\]"'\n]{1,255}/uy;
/** The part of a segment that is surely a name. */
const WORD = /^[\p{L}\p{N}_-]+/u;
/** Text before a root that makes it part of a longer name or path. */
const NAME_END = /[\p{L}\p{N}_.-]$/u;

const CREDENTIAL = /[^\s"'`<>{}|\\^,;)]+/y;

/** Ids of missing blocks that strings of `value` reference as `outputs.<id>` or `steps.<id>`. */
export function missingOutputs(value: JsonValue, exists: (id: string) => boolean): Set<string> {
  const segments = new Set<string>();
  visitStrings(value, (text) => {
    collect(text, 'outputs.', SEGMENT, segments);
    if (text.includes('{{')) collect(text, 'steps.', SEGMENT, segments);
  });
  const missing = new Set<string>();
  for (const segment of segments) {
    const word = WORD.exec(segment)?.[0];
    if (word !== undefined && !candidatesOf(segment, word).some(exists)) missing.add(word);
  }
  return missing;
}

/** In templates the id extends to the next dot; in conditions it is a word, as in a subtraction. */
function candidatesOf(segment: string, word: string): string[] {
  return [segment.trimEnd(), word, word.split('-', 1)[0] ?? word];
}

/** The ids in `credentials://ID` in any string of `value`. */
export function credentialsIn(value: JsonValue): Set<string> {
  const ids = new Set<string>();
  visitStrings(value, (text) => collect(text, 'credentials://', CREDENTIAL, ids));
  return ids;
}

/** Collects what follows each `prefix` that is not part of a longer name. */
function collect(text: string, prefix: string, rest: RegExp, found: Set<string>): void {
  for (let at = text.indexOf(prefix); at >= 0; at = text.indexOf(prefix, at + prefix.length)) {
    if (at > 0 && NAME_END.test(text.slice(Math.max(0, at - 2), at))) continue;
    rest.lastIndex = at + prefix.length;
    if (rest.test(text)) found.add(text.slice(at + prefix.length, rest.lastIndex));
  }
}

/** Values only, not keys. The entry check bounds the depth. */
function visitStrings(value: JsonValue, visit: (text: string) => void): void {
  if (typeof value === 'string') visit(value);
  else if (typeof value === 'object' && value !== null) {
    for (const inner of Object.values(value)) visitStrings(inner, visit);
  }
}
