/**
 * Parses the text between `{{` and `}}` (docs/reference/expressions.md): a path or a function, then fallbacks and
 * filters separated by `|`. An invalid chain is compiled to its problem, which fails every step that renders it.
 */

import { clip } from '../../base/bounds.js';
import type { JsonValue } from '../../base/json.js';
import { placesOf } from '../../base/template-places.js';
import { FILTER_NAMES, type FilterCall, isBareFilter, parseFilter } from './filters.js';
import { plainValue } from './parser.js';
import { isRoot } from './scope.js';

export interface Source {
  readonly kind: 'path' | 'json' | 'len';
  readonly path: readonly string[];
}

export type Step =
  /** Used when the value so far is null. A literal is the last fallback; `isWord`: it is unquoted. */
  | { readonly kind: 'fallback'; readonly source: Source }
  | { readonly kind: 'literal'; readonly value: JsonValue; readonly isWord: boolean }
  | { readonly kind: 'filter'; readonly filter: FilterCall };

export interface Chain {
  readonly source: Source;
  readonly steps: readonly Step[];
  /** The text of a chain that names a secret, to be filled in by `core/secret-texts.ts`. */
  readonly secret?: string;
}

/** The root of secrets. Expressions cannot read it: only handlers receive secrets. */
export const SECRET_ROOT = 'secrets';

export interface ChainProblem {
  readonly message: string;
  /** The name that does not exist, and the kind of thing it should name. */
  readonly unknown?: { readonly kind: 'root' | 'function' | 'filter'; readonly name: string };
}

/** `message` is the first problem, with which rendering fails. */
export type ParsedChain =
  | { readonly ok: true; readonly value: Chain }
  | { readonly ok: false; readonly message: string; readonly problems: readonly ChainProblem[] };

export type Part = string | ParsedChain;

/** Whether a path may begin with the word. */
export type IsRoot = (word: string) => boolean;

/** Splits a string into text and chains, in linear time; undefined without a chain. An unclosed `{{` is text. */
export function splitTemplate(
  text: string,
  isKnown: IsRoot = isTemplateRoot,
): readonly Part[] | undefined {
  const parts: Part[] = [];
  let literalFrom = 0;
  for (const { from, to } of placesOf(text)) {
    if (from > literalFrom) parts.push(text.slice(literalFrom, from));
    parts.push(parseChain(text.slice(from + 2, to - 2), isKnown));
    literalFrom = to;
  }
  if (parts.length === 0) return undefined;
  if (literalFrom < text.length) parts.push(text.slice(literalFrom));
  return parts;
}

/** Whether a part of the text is a `{{` that nothing closes, or that another one follows. */
export function hasUnclosed(text: string, parts = splitTemplate(text)): boolean {
  return (parts ?? [text]).some((part) => typeof part === 'string' && part.includes('{{'));
}

function parseChain(text: string, isKnown: IsRoot): ParsedChain {
  const [first = '', ...others] = splitOutside(text, '|');
  const problems: ChainProblem[] = [];
  const source = attempt(() => parseSource(first, isKnown), problems);
  const steps = others.map((other) => attempt(() => parseStep(other, isKnown), problems)) as Step[];
  const isSecret = source?.path[0] === SECRET_ROOT;
  if (isSecret) attempt(() => checkSecret(source, steps), problems);
  const [problem] = problems;
  if (problem !== undefined) return { ok: false, message: problem.message, problems };
  const chain = { source: source!, steps };
  return { ok: true, value: isSecret ? { ...chain, secret: text.trim() } : chain };
}

/** Undefined for an invalid part, whose problem is collected. */
function attempt<T>(parse: () => T, problems: ChainProblem[]): T | undefined {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof ChainFault)) throw error;
    problems.push(error.problem);
    return undefined;
  }
}

class ChainFault extends Error {
  readonly problem: ChainProblem;

  constructor(message: string, unknown?: ChainProblem['unknown']) {
    super(message);
    this.problem = unknown === undefined ? { message } : { message, unknown };
  }
}

/** A secret takes only filters: a fallback or a length would reveal something about it. */
function checkSecret({ kind, path }: Source, steps: readonly Step[]): void {
  if (kind !== 'path') throw new ChainFault(`${kind} does not take a secret`);
  if (path.length < 2 || path.includes('')) {
    throw new ChainFault(`a secret is named as ${SECRET_ROOT}.name`);
  }
  if (steps.some((step) => step?.kind !== 'filter')) {
    throw new ChainFault('a secret has no fallback, it can only have filters');
  }
}

/** Splits at separators outside of quotes and parentheses, and trims the parts. */
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

/** The first segment must be a path, or a function of one. */
function parseSource(text: string, isKnown: IsRoot): Source {
  const call = parseCall(text);
  if (call !== undefined) return functionOf(call, isKnown);
  if (text === '') throw new ChainFault('the template {{ }} is empty');
  if (typedLiteral(text) !== undefined) {
    throw new ChainFault(`a template must begin with a path, not with ${clip(text)}`);
  }
  return { kind: 'path', path: pathOf(text, isKnown) };
}

function functionOf({ name, args }: Call, isKnown: IsRoot): Source {
  const kind = functionNamed(name);
  if (kind === undefined) {
    throw new ChainFault(`unknown template function "${clip(name)}"`, { kind: 'function', name });
  }
  if (args.length !== 1) throw new ChainFault(`${name} takes one path`);
  return { kind, path: pathOf(args[0]!, isKnown) };
}

export const TEMPLATE_FUNCTIONS = ['json', 'len'] as const;
const functionNamed = (name: string) => TEMPLATE_FUNCTIONS.find((known) => known === name);

/** @throws ChainFault when the root is unknown */
function pathOf(text: string, isKnown: IsRoot): readonly string[] {
  const path = text.split('.');
  const [root = '', section] = path;
  if (!isKnown(root)) {
    throw new ChainFault(`unknown template root "${clip(root)}"`, { kind: 'root', name: root });
  }
  if (root !== 'context' || section === 'data' || section === 'config') return path;
  const name = section === undefined ? 'context' : `context.${clip(section)}`;
  throw new ChainFault(`unknown template root "${name}": context has the sections data and config`);
}

/** `state`, the key-value store of an instance, cannot be written yet: its keys are always missing. */
const isTemplateRoot = (word: string) => word === 'state' || word === SECRET_ROOT || isRoot(word);

function parseStep(text: string, isKnown: IsRoot): Step {
  if (text === '') throw new ChainFault('a template has an empty fallback');
  const call = isBareFilter(text) ? { name: text, args: [] } : parseCall(text);
  if (call !== undefined) return stepOf(call, isKnown);
  const literal = typedLiteral(text);
  if (literal !== undefined) return { kind: 'literal', value: literal, isWord: false };
  const [root = ''] = text.split('.', 1);
  if (!isKnown(root)) return { kind: 'literal', value: text, isWord: true };
  if (root === SECRET_ROOT) throw new ChainFault('a secret cannot be a fallback');
  return { kind: 'fallback', source: { kind: 'path', path: pathOf(text, isKnown) } };
}

function stepOf(call: Call, isKnown: IsRoot): Step {
  const { name } = call;
  if (functionNamed(name) !== undefined) {
    const source = functionOf(call, isKnown);
    if (source.path[0] === SECRET_ROOT) throw new ChainFault(`${name} does not take a secret`);
    return { kind: 'fallback', source };
  }
  const args = call.args.map((arg) => {
    const value = typedLiteral(arg);
    return value === undefined ? arg : value;
  });
  const filter = parseFilter(name, args);
  if (!filter.ok) {
    const isKnown = FILTER_NAMES.includes(name);
    throw new ChainFault(filter.message, isKnown ? undefined : { kind: 'filter', name });
  }
  return { kind: 'filter', filter: filter.value };
}

interface Call {
  readonly name: string;
  readonly args: readonly string[];
}

const CALL = /^([a-z0-9_]+)\s*\((.*)\)$/s;

/** `name(…)` as a whole; undefined for anything else. */
function parseCall(text: string): Call | undefined {
  const [, name, inside = ''] = CALL.exec(text) ?? [];
  if (name === undefined) return undefined;
  return { name, args: inside.trim() === '' ? [] : splitOutside(inside, ',') };
}

/** A quoted string, a number, true, false or null; undefined for a bare word. */
function typedLiteral(text: string): JsonValue | undefined {
  const quote = text.charAt(0);
  if (quote === '"' || quote === "'") {
    return text.length > 1 && text.endsWith(quote) ? text.slice(1, -1) : text;
  }
  return plainValue(text);
}
