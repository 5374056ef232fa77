/**
 * Conditions of routers, loops and other blocks: a text is parsed once per definition into a closed
 * tree and evaluated many times. The two plain forms, `path` and `path == value`, come first and allow
 * hyphens in names; any other text is the expression language (docs/reference/expressions.md).
 */

import { clip } from '../base/bounds.js';
import type { JsonValue } from '../base/json.js';
import { evaluateExpression } from './expression/evaluate.js';
import { isFunction } from './expression/functions.js';
import { plainValue } from './expression/lexer.js';
import { parseExpression } from './expression/parser.js';
import {
  isRootedPath,
  isSection,
  type OutputReads,
  outputReads,
  type Scope,
} from './expression/scope.js';
import { childrenOf, type Expression, type Parsed } from './expression/syntax.js';

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

/** The two plain forms; undefined when the text has neither. */
function parseSimple(text: string): Expression | undefined {
  const path = parsePath(text);
  if (path !== undefined) return path;
  const at = text.indexOf('==');
  if (at < 0) return undefined;
  const left = parsePath(text.slice(0, at).trim());
  const value = text.slice(at + 2).trim();
  if (left === undefined || isMeantAsExpression(text, value)) return undefined;
  return { kind: 'compare', operator: '==', left, right: parseValue(value) };
}

/** Names joined by dots, hyphens allowed: what begins with a sign is an expression. */
const PATH = /^(?!-)[\w\u0080-\uffff-]+(?:\.[\w\u0080-\uffff-]+)*$/;
const LETTER = /[A-Za-z_\u0080-\uffff]/;
const QUOTED = /^(?:"([^"]*)"|'([^']*)')$/;

function parsePath(text: string): Expression | undefined {
  if (!PATH.test(text) || !LETTER.test(text) || plainValue(text) !== undefined) return undefined;
  const path = text.split('.');
  return isSection(text) ? { kind: 'key', key: text } : { kind: 'path', path };
}

/** A number, a keyword, a text in quotes, a path that begins with a root; else the text as it stands. */
function parseValue(text: string): Expression {
  const quoted = QUOTED.exec(text);
  const value = quoted === null ? plainValue(text) : (quoted[1] ?? quoted[2]);
  if (value !== undefined) return { kind: 'literal', value };
  if (isRootedPath(text) && PATH.test(text)) return { kind: 'path', path: text.split('.') };
  return { kind: 'literal', value: text, isBare: true };
}

/** A plain text has these only in quotes: what joins or compares, and what is left of `===`. */
const LOGICAL = /&&|\|\||[=!]=|^=|^$/;
const OPENING = /^[([!"']/;
const ARITHMETIC = /\s[-+*/]\s/;
const CALL = /^([A-Za-z_]\w*)\s*\(/;

/**
 * Whether what stands behind `path ==` is more than a value. Anything may be a plain text, so it is
 * taken for an expression only by signs that a text would not have, and only if the whole can be read
 * as one; with `&&` or `||` it always is.
 */
function isMeantAsExpression(text: string, value: string): boolean {
  if (QUOTED.test(value) || PATH.test(value)) return false;
  if (LOGICAL.test(value)) return true;
  const called = CALL.exec(value)?.[1];
  const isComputed =
    called === undefined
      ? OPENING.test(value) ||
        (value.includes(' ? ') && value.includes(' : ')) ||
        (isRootedPath(value) && ARITHMETIC.test(value))
      : isFunction(called);
  return isComputed && parseExpression(text).ok;
}

function toCondition(expression: Expression): Condition {
  return { expression, outputs: outputReads(pathsOf(expression)) };
}

/** Every path of the tree. Recursion is safe: the parser bounds the depth. */
function* pathsOf(node: Expression): Generator<readonly string[]> {
  if (node.kind === 'path' || node.kind === 'word') yield node.path;
  for (const child of childrenOf(node)) yield* pathsOf(child);
}
