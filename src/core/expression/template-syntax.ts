/**
 * What stands between `{{` and `}}` (docs/reference/expressions.md): a path or a function, then
 * fallbacks and filters separated by `|`. A chain that cannot work is kept as its problem, which
 * fails the step that renders it; finding it here makes it fail on every run alike.
 */

import type { JsonValue } from '../json.js';
import { clip } from './bounds.js';
import { type FilterCall, isBareFilter, parseFilter } from './filters.js';
import { isJsonNumber } from './lexer.js';
import { isRoot } from './scope.js';
import type { Parsed } from './syntax.js';

export type Source =
  | { readonly kind: 'path'; readonly path: readonly string[] }
  | { readonly kind: 'json' | 'len'; readonly path: readonly string[] };

export type Step =
  /** Taken when the value so far is null. A literal is the last fallback that is looked at. */
  | { readonly kind: 'fallback'; readonly source: Source }
  | { readonly kind: 'literal'; readonly value: JsonValue }
  | { readonly kind: 'filter'; readonly filter: FilterCall };

export interface Chain {
  readonly source: Source;
  readonly steps: readonly Step[];
}

export type Part = string | Parsed<Chain>;

/**
 * Cuts a string into literal text and chains; undefined when it holds no chain. A `{{` that is not
 * closed before the next one, or not at all, is literal. Linear in the length of the text.
 */
export function splitTemplate(text: string): readonly Part[] | undefined {
  const parts: Part[] = [];
  let literalFrom = 0;
  let open = text.indexOf('{{');
  while (open >= 0) {
    // One character on, so that of three braces the last two are the opening ones.
    const end = findEnd(text, open + 1);
    if (end.kind === 'none') break;
    if (end.kind === 'close') {
      if (open > literalFrom) parts.push(text.slice(literalFrom, open));
      parts.push(parseChain(text.slice(open + 2, end.at)));
      literalFrom = end.at + 2;
      open = text.indexOf('{{', literalFrom);
    } else open = end.at;
  }
  if (parts.length === 0) return undefined;
  if (literalFrom < text.length) parts.push(text.slice(literalFrom));
  return parts;
}

type End = { readonly kind: 'close' | 'reopen'; readonly at: number } | { readonly kind: 'none' };

/** The next `}}` or `{{` outside quotes. */
function findEnd(text: string, from: number): End {
  let at = from;
  while (at < text.length) {
    const character = text.charAt(at);
    if (character === '"' || character === "'") {
      const close = text.indexOf(character, at + 1);
      if (close < 0) return { kind: 'none' };
      at = close + 1;
    } else if (text.startsWith('}}', at)) return { kind: 'close', at };
    else if (text.startsWith('{{', at)) return { kind: 'reopen', at };
    else at += 1;
  }
  return { kind: 'none' };
}

function parseChain(text: string): Parsed<Chain> {
  const [first = '', ...others] = splitOutside(text, '|');
  const source = parseSource(first);
  if (!source.ok) return source;
  const steps: Step[] = [];
  for (const segment of others) {
    const step = parseStep(segment);
    if (!step.ok) return step;
    steps.push(step.value);
  }
  return { ok: true, value: { source: source.value, steps } };
}

/** The parts of `text` between separators that stand outside quotes and parentheses, trimmed. */
function splitOutside(text: string, separator: string): readonly string[] {
  const parts: string[] = [];
  let from = 0;
  let nesting = 0;
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (character === '"' || character === "'") {
      const close = text.indexOf(character, at + 1);
      at = close < 0 ? text.length : close;
    } else if (character === '(') nesting += 1;
    else if (character === ')') nesting -= 1;
    else if (character === separator && nesting <= 0) {
      parts.push(text.slice(from, at).trim());
      from = at + 1;
    }
  }
  parts.push(text.slice(from).trim());
  return parts;
}

/** The first segment has to be a path, or a function of one. */
function parseSource(text: string): Parsed<Source> {
  const call = parseCall(text);
  if (call !== undefined) return parseFunction(call);
  if (text === '') return { ok: false, message: 'the template {{ }} is empty' };
  const literal = typedLiteral(text);
  if (literal !== undefined) {
    return { ok: false, message: `a template must begin with a path, not with ${clip(text)}` };
  }
  const path = text.split('.');
  const problem = rootProblem(path);
  if (problem !== undefined) return { ok: false, message: problem };
  return { ok: true, value: { kind: 'path', path } };
}

function parseFunction(call: Call): Parsed<Source> {
  const { name, args } = call;
  if (name !== 'json' && name !== 'len') {
    return { ok: false, message: `unknown template function "${clip(name)}"` };
  }
  const path = (args[0] ?? '').split('.');
  if (args.length !== 1) return { ok: false, message: `${name} takes one path` };
  const problem = rootProblem(path);
  return problem === undefined
    ? { ok: true, value: { kind: name, path } }
    : { ok: false, message: problem };
}

/** Says why the path cannot be read; undefined when its root is known. */
function rootProblem(path: readonly string[]): string | undefined {
  const [root = '', section] = path;
  // The key-value store of an instance has no writer yet: every key of it is missing.
  if (root === 'state') return undefined;
  if (!isRoot(root)) return `unknown template root "${clip(root)}"`;
  if (root !== 'context' || section === 'data' || section === 'config') return undefined;
  const name = section === undefined ? 'context' : `context.${clip(section)}`;
  return `unknown template root "${name}": context has the sections data and config`;
}

function parseStep(text: string): Parsed<Step> {
  if (text === '') return { ok: false, message: 'a template has an empty fallback' };
  const call = parseCall(text);
  if (call !== undefined) return parseCallStep(call);
  if (isBareFilter(text)) return parseCallStep({ name: text, args: [] });
  const literal = typedLiteral(text);
  if (literal !== undefined) return { ok: true, value: { kind: 'literal', value: literal } };
  const path = text.split('.');
  const [root = ''] = path;
  if (root !== 'state' && !isRoot(root)) {
    return { ok: true, value: { kind: 'literal', value: text } };
  }
  const problem = rootProblem(path);
  if (problem !== undefined) return { ok: false, message: problem };
  return { ok: true, value: { kind: 'fallback', source: { kind: 'path', path } } };
}

function parseCallStep(call: Call): Parsed<Step> {
  if (call.name === 'json' || call.name === 'len') {
    const source = parseFunction(call);
    return source.ok ? { ok: true, value: { kind: 'fallback', source: source.value } } : source;
  }
  const filter = parseFilter(call.name, call.args.map(literalOf));
  return filter.ok ? { ok: true, value: { kind: 'filter', filter: filter.value } } : filter;
}

interface Call {
  readonly name: string;
  readonly args: readonly string[];
}

/** `name(…)` as a whole; undefined for anything else, such as a path or a text in quotes. */
function parseCall(text: string): Call | undefined {
  const open = text.indexOf('(');
  if (open <= 0 || !text.endsWith(')')) return undefined;
  const name = text.slice(0, open).trimEnd();
  for (const character of name) {
    const isNamePart = (character >= 'a' && character <= 'z') || character === '_';
    if (!isNamePart && !(character >= '0' && character <= '9')) return undefined;
  }
  const inside = text.slice(open + 1, -1);
  return { name, args: inside.trim() === '' ? [] : splitOutside(inside, ',') };
}

/** The value of a literal: as `typedLiteral`, and any other word is itself. */
function literalOf(text: string): JsonValue {
  const value = typedLiteral(text);
  return value === undefined ? text : value;
}

/** A text in quotes, a number, true, false or null; undefined for a bare word. */
function typedLiteral(text: string): JsonValue | undefined {
  if (text === 'true') return true;
  if (text === 'false') return false;
  if (text === 'null') return null;
  const quote = text.charAt(0);
  if (quote === '"' || quote === "'") {
    return text.length > 1 && text.endsWith(quote) ? text.slice(1, -1) : text;
  }
  return isJsonNumber(text) ? Number(text) : undefined;
}
