/**
 * YAML as another way to write JSON, for those who prefer it: a file of its own, so that it is loaded for such a file
 * only. What JSON has no word for is refused with the line where it stands, since it would be stored as something else.
 */

import {
  isAlias,
  isCollection,
  isPair,
  isScalar,
  LineCounter,
  type Node,
  parseDocument,
  visit,
} from 'yaml';

/** @throws Error that names the line and the reason */
export function parseYaml(text: string): unknown {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const refuse = (offset: number, why: string): never => {
    const { line, col } = lines.linePos(offset);
    throw new Error(`line ${line}, column ${col}: ${why}`);
  };
  const [error] = document.errors;
  if (error !== undefined) refuse(error.pos[0], error.message);
  visit(document, (_key, node, path) => {
    if (isPair(node)) {
      const { key } = node;
      const at = (key as Node | null)?.range?.[0] ?? 0;
      if (isCollection(key))
        refuse(at, 'a member has no name of text; an expression, {{ … }}, has to stand in quotes');
      if (isScalar(key) && key.value === '<<') refuse(at, 'merged members (<<) are not taken');
      return;
    }
    if (!isScalar(node) && !isCollection(node) && !isAlias(node)) return;
    const at = node.range?.[0] ?? 0;
    if (isAlias(node)) {
      const to = node.resolve(document);
      if (path.includes(to as never)) refuse(at, `*${node.source} stands for what it is a part of`);
      return;
    }
    if (node.tag !== undefined && !isOfJson(node.tag)) {
      refuse(at, `the tag ${node.tag.replace('tag:yaml.org,2002:', '!!')} is not taken`);
    }
    if (!isScalar(node)) return;
    const why = refusalOf(node.value, node.source ?? '');
    if (why !== undefined) refuse(at, why);
  });
  return document.toJS();
}

const isOfJson = (tag: string) =>
  /^tag:yaml\.org,2002:(?:str|int|float|bool|null|map|seq)$/.test(tag);

/** Why the value would not be what was written. */
function refusalOf(value: unknown, source: string): string | undefined {
  if (typeof value !== 'number') return undefined;
  if (!Number.isFinite(value)) return `${source} is no number of JSON`;
  const isInteger = /^[-+]?(?:\d+|0[xo][\da-f]+)$/i.test(source);
  if (isInteger && !Number.isSafeInteger(value)) return `the integer ${source} is beyond 2^53`;
  if (value === 0 && /[1-9]/.test(source.split(/e/i)[0] ?? '') && !/^0[xo]/i.test(source)) {
    return `${source} is too small to be told from 0`;
  }
  return undefined;
}
