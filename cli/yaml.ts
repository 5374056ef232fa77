/**
 * YAML definitions: a separate module, so that the parser is loaded only for such a file. What JSON cannot express is
 * rejected with its line, since it would be stored as something else.
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

/** @throws Error with the line and the reason */
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
        refuse(at, 'a member name must be text; put expressions, {{ … }}, in quotes');
      if (isScalar(key) && key.value === '<<') refuse(at, 'merge keys (<<) are not supported');
      return;
    }
    if (!isScalar(node) && !isCollection(node) && !isAlias(node)) return;
    const at = node.range?.[0] ?? 0;
    if (isAlias(node)) {
      const to = node.resolve(document);
      if (path.includes(to as never))
        refuse(at, `*${node.source} refers to a value that contains it`);
      return;
    }
    if (node.tag !== undefined && !isOfJson(node.tag)) {
      refuse(at, `the tag ${node.tag.replace('tag:yaml.org,2002:', '!!')} is not supported`);
    }
    if (!isScalar(node)) return;
    const why = refusalOf(node.value, node.source ?? '');
    if (why !== undefined) refuse(at, why);
  });
  return document.toJS();
}

const isOfJson = (tag: string) =>
  /^tag:yaml\.org,2002:(?:str|int|float|bool|null|map|seq)$/.test(tag);

/** Why the value would differ from what was written. */
function refusalOf(value: unknown, source: string): string | undefined {
  if (typeof value !== 'number') return undefined;
  if (!Number.isFinite(value)) return `${source} is not a valid JSON number`;
  const isInteger = /^[-+]?(?:\d+|0[xo][\da-f]+)$/i.test(source);
  if (isInteger && !Number.isSafeInteger(value)) return `the integer ${source} is beyond 2^53`;
  if (value === 0 && /[1-9]/.test(source.split(/e/i)[0] ?? '') && !/^0[xo]/i.test(source)) {
    return `${source} is too small to be distinguished from 0`;
  }
  return undefined;
}
