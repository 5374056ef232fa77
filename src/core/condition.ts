/**
 * Conditions of routers, loops and other blocks: a text is parsed once per definition into a closed
 * tree and evaluated many times. The specification's two forms, `path` and `path == value`, come
 * first and allow hyphens in names; any other text is the expression language
 * (docs/reference/expressions.md). The text reaches neither `eval` nor a regular expression.
 */

import { clip } from './expression/bounds.js';
import { evaluateExpression } from './expression/evaluate.js';
import { isJsonNumber, isWordPart } from './expression/lexer.js';
import { keywordValue, parseExpression } from './expression/parser.js';
import { type OutputReads, outputReads, type Scope } from './expression/scope.js';
import { childrenOf, type Expression, type Parsed } from './expression/syntax.js';
import type { JsonValue } from './json.js';

export { isTruthy } from './expression/operators.js';
export type { OutputReads, OutputsView, Scope } from './expression/scope.js';
export type { Parsed } from './expression/syntax.js';

/** A parsed condition: immutable plain data, to be kept beside the definition. */
export interface Condition {
  readonly expression: Expression;
  readonly outputs: OutputReads;
}

/** In characters. Longer texts are refused, which bounds the size of a tree. */
export const CONDITION_LENGTH_MAX = 32 * 1024;

/**
 * Parses a condition. Total: never throws. A surrounding `{{ }}` is tolerated, and a blank text is
 * the condition that never holds. A message says what is wrong and at which character.
 */
export function parseCondition(text: string): Parsed<Condition> {
  if (text.length > CONDITION_LENGTH_MAX) {
    return {
      ok: false,
      message: `the condition is longer than ${CONDITION_LENGTH_MAX} characters`,
    };
  }
  const bare = withoutBraces(text.trim());
  if (bare === '') return { ok: true, value: NEVER };
  const simple = parseSimple(bare);
  if (simple !== undefined) return { ok: true, value: toCondition(simple) };
  const parsed = parseExpression(bare);
  if (parsed.ok) return { ok: true, value: toCondition(parsed.value) };
  return { ok: false, message: `cannot parse the condition ${clip(bare)}: ${parsed.message}` };
}

/**
 * The value of the condition in `scope`; null for anything that cannot be computed. Never throws,
 * and its work is bounded. The result may share structure with the scope.
 */
export function evaluateCondition(condition: Condition, scope: Scope): JsonValue {
  return evaluateExpression(condition.expression, scope);
}

/** Which blocks' outputs the condition can read, so that only those have to be loaded. */
export function conditionOutputs(condition: Condition): OutputReads {
  return condition.outputs;
}

const NEVER: Condition = { expression: { kind: 'literal', value: null }, outputs: new Set() };

function withoutBraces(text: string): string {
  return text.startsWith('{{') && text.endsWith('}}') ? text.slice(2, -2).trim() : text;
}

/** The two forms of the specification; undefined when the text has neither. */
function parseSimple(text: string): Expression | undefined {
  const path = parsePath(text);
  if (path !== undefined) return { kind: 'path', path };
  const at = text.indexOf('==');
  if (at < 0) return undefined;
  const left = parsePath(text.slice(0, at).trim());
  const right = parseValue(text.slice(at + 2).trim());
  if (left === undefined || right === undefined) return undefined;
  return { kind: 'compare', operator: '==', left: { kind: 'path', path: left }, right };
}

/** Names joined by dots, hyphens allowed. Numbers, keywords and signs are not paths. */
function parsePath(text: string): readonly string[] | undefined {
  if (text.startsWith('-') || keywordValue(text) !== undefined) return undefined;
  let hasLetter = false;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code !== HYPHEN && !isWordPart(code)) return undefined;
    hasLetter ||= isWordPart(code) && code !== DOT && (code < 48 || code > 57);
  }
  if (!hasLetter || isJsonNumber(text)) return undefined;
  const path = text.split('.');
  return path.includes('') ? undefined : path;
}

const HYPHEN = 45;
const DOT = 46;

/** What may stand inside a bare word besides the characters of a path, as in `user@host:80`. */
const WORD_EXTRAS: ReadonlySet<string> = new Set('-:@#');

/** A number, a keyword, a text in quotes or a bare word; undefined for anything longer. */
function parseValue(text: string): Expression | undefined {
  const keyword = keywordValue(text);
  if (keyword !== undefined) return { kind: 'literal', value: keyword };
  if (isJsonNumber(text)) return { kind: 'literal', value: Number(text) };
  const quote = text.charAt(0);
  if (quote === '"' || quote === "'") {
    const isWhole = text.length > 1 && text.indexOf(quote, 1) === text.length - 1;
    return isWhole ? { kind: 'literal', value: text.slice(1, -1) } : undefined;
  }
  for (let i = 0; i < text.length; i += 1) {
    if (!isWordPart(text.charCodeAt(i)) && !WORD_EXTRAS.has(text.charAt(i))) return undefined;
  }
  // A sign belongs to an expression, as in `total == -limit`.
  if (text === '' || quote === '-') return undefined;
  return { kind: 'word', path: text.split('.'), text };
}

function toCondition(expression: Expression): Condition {
  return { expression, outputs: outputReads(pathsOf(expression)) };
}

/** Every path of the tree. Recursion is safe: the parser bounds the depth. */
function* pathsOf(node: Expression): Generator<readonly string[]> {
  if (node.kind === 'path' || node.kind === 'word') yield node.path;
  for (const child of childrenOf(node)) yield* pathsOf(child);
}
