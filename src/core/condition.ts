/**
 * Conditions of routers, loops and other blocks: a text is parsed once per definition into a closed
 * tree and evaluated many times. The specification's two forms, `path` and `path == value`, come
 * first and allow hyphens in names; any other text is the expression language
 * (docs/reference/expressions.md).
 */

import { clip } from './expression/bounds.js';
import { evaluateExpression } from './expression/evaluate.js';
import { plainValue } from './expression/lexer.js';
import { parseExpression } from './expression/parser.js';
import { type OutputReads, outputReads, type Scope } from './expression/scope.js';
import { childrenOf, type Expression, type Parsed } from './expression/syntax.js';
import type { JsonValue } from './json.js';

export { isTruthy } from './expression/operators.js';
export type { OutputReads, OutputsView, Scope } from './expression/scope.js';
export type { Parsed } from './expression/syntax.js';

/** A parsed condition: immutable plain data, to be kept beside the definition. */
export interface Condition {
  readonly expression: Expression;
  /** Which blocks' outputs it can read, so that only those have to be loaded. */
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

const NEVER: Condition = { expression: { kind: 'literal', value: null }, outputs: new Set() };

function withoutBraces(text: string): string {
  return text.startsWith('{{') && text.endsWith('}}') ? text.slice(2, -2).trim() : text;
}

/** The two forms of the specification; undefined when the text has neither. */
function parseSimple(text: string): Expression | undefined {
  const path = parsePath(text);
  if (path !== undefined) return path;
  const at = text.indexOf('==');
  if (at < 0) return undefined;
  const left = parsePath(text.slice(0, at).trim());
  const right = parseValue(text.slice(at + 2).trim());
  if (left === undefined || right === undefined) return undefined;
  return { kind: 'compare', operator: '==', left, right };
}

/** Names joined by dots, hyphens allowed: what begins with a sign is an expression. */
const PATH = /^(?!-)[\w\u0080-\uffff-]+(?:\.[\w\u0080-\uffff-]+)*$/;
const LETTER = /[A-Za-z_\u0080-\uffff]/;
/** A bare word has more inside than a path, as in `user@host:80`. */
const BARE_WORD = /^(?!-)[\w.\u0080-\uffff:@#-]+$/;
const QUOTED = /^(?:"([^"]*)"|'([^']*)')$/;

function parsePath(text: string): Expression | undefined {
  if (!PATH.test(text) || !LETTER.test(text) || plainValue(text) !== undefined) return undefined;
  return { kind: 'path', path: text.split('.') };
}

/** A number, a keyword, a text in quotes or a bare word; undefined for anything longer. */
function parseValue(text: string): Expression | undefined {
  const quoted = QUOTED.exec(text);
  const value = quoted === null ? plainValue(text) : (quoted[1] ?? quoted[2]);
  if (value !== undefined) return { kind: 'literal', value };
  return BARE_WORD.test(text) ? { kind: 'word', path: text.split('.'), text } : undefined;
}

function toCondition(expression: Expression): Condition {
  return { expression, outputs: outputReads(pathsOf(expression)) };
}

/** Every path of the tree. Recursion is safe: the parser bounds the depth. */
function* pathsOf(node: Expression): Generator<readonly string[]> {
  if (node.kind === 'path' || node.kind === 'word') yield node.path;
  for (const child of childrenOf(node)) yield* pathsOf(child);
}
