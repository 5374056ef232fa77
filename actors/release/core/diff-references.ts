/**
 * What the texts of a definition refer to by name: outputs of other blocks, and credentials. Texts
 * are searched as they are, since a reference also counts where no template is around it, such as in
 * the condition of an `assert`. Every search takes time linear in the text, and makes nothing for a
 * place that names what another one has named. Pure.
 */

import type { JsonValue } from '../../../src/base/json.js';

/** What may follow the root of a path, up to where its segment may end; ids have no more. */
const SEGMENT = /[^.|{}()[\]"'\n]{1,255}/uy;
/** The part of it that is a name for sure. */
const WORD = /^[\p{L}\p{N}_-]+/u;
/** Before a root, this makes it the end of another name or of a path. */
const NAME_END = /[\p{L}\p{N}_.-]$/u;

const CREDENTIAL = /[^\s"'`<>{}|\\^,;)]+/y;

/**
 * The ids of blocks that `outputs.<id>` in the strings of `value` names and that do not exist, as
 * does `steps.<id>`, which is the same, where a template may be.
 */
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

/**
 * The ids that may be meant: in templates all up to the next dot, in conditions a word, which may be
 * the left side of a subtraction.
 */
function candidatesOf(segment: string, word: string): string[] {
  return [segment.trimEnd(), word, word.split('-', 1)[0] ?? word];
}

/** The ids in `credentials://ID` in any string of `value`. */
export function credentialsIn(value: JsonValue): Set<string> {
  const ids = new Set<string>();
  visitStrings(value, (text) => collect(text, 'credentials://', CREDENTIAL, ids));
  return ids;
}

/** Adds what follows each `prefix` in the text that is not part of a longer name. */
function collect(text: string, prefix: string, rest: RegExp, found: Set<string>): void {
  for (let at = text.indexOf(prefix); at >= 0; at = text.indexOf(prefix, at + prefix.length)) {
    if (at > 0 && NAME_END.test(text.slice(Math.max(0, at - 2), at))) continue;
    rest.lastIndex = at + prefix.length;
    if (rest.test(text)) found.add(text.slice(at + prefix.length, rest.lastIndex));
  }
}

/** Keys are no texts. The entry check bounds the depth. */
function visitStrings(value: JsonValue, visit: (text: string) => void): void {
  if (typeof value === 'string') visit(value);
  else if (typeof value === 'object' && value !== null) {
    for (const inner of Object.values(value)) visitStrings(inner, visit);
  }
}
