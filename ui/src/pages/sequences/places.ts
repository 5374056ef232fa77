/** Finds the position in a JSON text of a path that the engine reports. Pure. */

import { jsonLanguage } from '@codemirror/lang-json';

type SyntaxNode = ReturnType<typeof jsonLanguage.parser.parse>['topNode'];

export interface TextRange {
  readonly from: number;
  readonly to: number;
}

/**
 * Returns a function that finds the range of a path such as `blocks[2].branches[0][1].retry.max_attempts`: the name of
 * the member, or the value if it has no name. A path to something missing resolves to its nearest existing parent; the
 * empty path to the start of the text.
 */
export function placesIn(text: string): (path: string) => TextRange {
  const root = jsonLanguage.parser.parse(text).topNode.firstChild;
  return (path) => {
    if (root === null) return { from: 0, to: 0 };
    let node = root;
    let place = firstCharacter(root);
    for (let rest = path; rest !== ''; ) {
      const next = memberOf(text, node, rest) ?? itemOf(node, rest);
      if (next === undefined) break;
      [node, rest, place] = [next.value, next.rest, next.place];
    }
    return place;
  };
}

interface Found {
  readonly value: SyntaxNode;
  readonly place: TextRange;
  /** The remaining part of the path. */
  readonly rest: string;
}

/** Names may contain dots: the longest match counts. */
function memberOf(text: string, node: SyntaxNode, path: string): Found | undefined {
  if (node.name !== 'Object') return undefined;
  let found: Found | undefined;
  let length = -1;
  for (const property of node.getChildren('Property')) {
    const name = property.getChild('PropertyName');
    const value = property.lastChild;
    if (name === null || value === null) continue;
    const written = nameIn(text.slice(name.from, name.to));
    const next = path.charAt(written.length);
    const isMeant = path.startsWith(written) && (next === '' || next === '.' || next === '[');
    if (!isMeant || written.length <= length) continue;
    length = written.length;
    const rest = path.slice(length + (next === '.' ? 1 : 0));
    const isWhole = rest === '' && value !== name && !isList(value);
    const place = { from: name.from, to: isWhole ? value.to : name.to };
    found = { value, place, rest };
  }
  return found;
}

function itemOf(node: SyntaxNode, path: string): Found | undefined {
  const [index, at] = /^\[(\d+)\]\.?/.exec(path) ?? [];
  if (node.name !== 'Array' || index === undefined) return undefined;
  const item = itemsOf(node)[Number(at)];
  if (item === undefined) return undefined;
  return { value: item, place: firstCharacter(item), rest: path.slice(index.length) };
}

function itemsOf(node: SyntaxNode): SyntaxNode[] {
  const items: SyntaxNode[] = [];
  for (let child = node.firstChild; child !== null; child = child.nextSibling) {
    if (!PUNCTUATION.has(child.name) && !child.type.isError) items.push(child);
  }
  return items;
}

const PUNCTUATION: ReadonlySet<string> = new Set(['[', ']', ',', '{', '}', ':']);

const isList = ({ name }: SyntaxNode) => name === 'Object' || name === 'Array';

/** Only the bracket of a list or object: marking all of it would be too much. */
function firstCharacter(node: SyntaxNode): TextRange {
  return { from: node.from, to: isList(node) ? node.from + 1 : node.to };
}

function nameIn(quoted: string): string {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return quoted;
  }
}
