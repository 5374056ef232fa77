/**
 * Checks the text of a statement against what works in a schema that Citus distributes (docs/operate/citus.md). The
 * rules are stricter than those of Citus, and know the functions that the engine uses.
 */

interface Rule {
  readonly says: string;
  readonly isBroken: (text: string) => boolean;
}

/** A call of anything but a few immutable functions, or a cast, which may depend on settings. */
const MUTABLE =
  /\b(?!(?:coalesce|greatest|least|any|array|and|or|not|in)\b)\w+\s*\(|::|\bcurrent_|\blocaltime/i;
const VOLATILE = /\b(?:clock_timestamp|random|nextval|gen_random_uuid|timeofday)\s*\(/gi;
const CHANGES_ROWS = /\binsert\s+into\b|\bupdate\s+[\w.]+(?:\s+\w+)?\s+set\b|\bdelete\s+from\b/i;
const PLACES = /\b(?:select|set|where|returning|values|on)\b/gi;
const UNLESS_OTHERS = /\binsert\s+into\b[^;]*\bselect\b[^;]*\bnot\s+exists\b/i;

const RULES: readonly Rule[] = [
  {
    says: 'a function in returning that may not be immutable',
    isBroken: (text) => clausesOf(text, /\breturning\b/gi).some((clause) => MUTABLE.test(clause)),
  },
  {
    says: 'a function in do update set that may not be immutable',
    isBroken: (text) => clausesOf(text, /\bdo\s+update\s+set\b/gi).some((it) => MUTABLE.test(it)),
  },
  {
    says: 'a volatile function in a change of rows, outside of a select list',
    isBroken: (text) =>
      CHANGES_ROWS.test(text) &&
      [...text.matchAll(VOLATILE)].some(
        ({ index }) => text.slice(0, index).match(PLACES)?.at(-1)?.toLowerCase() !== 'select',
      ),
  },
  {
    says: 'insert … select … where not exists without a materialized CTE',
    isBroken: (text) => UNLESS_OTHERS.test(text) && !/\bas materialized \(/i.test(text),
  },
  {
    says: 'an advisory lock in a statement that reads a table: it is taken on the node of the table',
    isBroken: (text) => /\bpg_\w*advisory_\w*lock\b/i.test(text) && /\bfrom\b/i.test(text),
  },
];

/** The rules that the statement breaks. */
export function refusalsOf(text: string): string[] {
  return RULES.filter(({ isBroken }) => isBroken(text)).map(({ says }) => says);
}

/** The text behind each keyword, up to the end of the clause. */
function clausesOf(text: string, word: RegExp): string[] {
  return [...text.matchAll(word)].map(({ 0: found, index }) => {
    const rest = text.slice(index + found.length);
    let depth = 0;
    const end = [...rest].findIndex((letter) => {
      depth += letter === '(' ? 1 : letter === ')' ? -1 : 0;
      return depth < 0;
    });
    return (end < 0 ? rest : rest.slice(0, end)).split(/\breturning\b/)[0] ?? '';
  });
}
