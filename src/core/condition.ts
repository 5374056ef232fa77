/**
 * Conditions of routers, loops and other blocks: parsed once per definition and evaluated many times. The two plain
 * forms, `path` and `path == value`, are tried first and allow hyphens in names; any other text is an expression
 * (docs/reference/expressions.md).
 */

import { clip } from '../base/bounds.js';
import { type JsonValue, ownValue } from '../base/json.js';
import { FUNCTIONS } from './expression/functions.js';
import {
  combine,
  compare,
  EVALUATION_BUDGET,
  type Evaluation,
  isTruthy,
  toNumber,
} from './expression/operators.js';
import { parseExpression, plainValue } from './expression/parser.js';
import {
  follow,
  isRootedPath,
  type OutputReads,
  outputReads,
  readRooted,
  type Scope,
  SECTIONS,
} from './expression/scope.js';
import { childrenOf, type Expression } from './expression/syntax.js';
import { type Parsed, refused } from './parsed.js';

export interface Condition {
  readonly expression: Expression;
  /** The blocks whose outputs it can read: only these have to be loaded. */
  readonly outputs: OutputReads;
}

/** In characters. The limit bounds the size of the expression tree. */
export const CONDITION_LENGTH_MAX = 32 * 1024;

/** Never throws. Ignores a surrounding `{{ }}`; a blank text never holds. The message gives the position. */
export function parseCondition(text: string): Parsed<Condition> {
  if (text.length > CONDITION_LENGTH_MAX) {
    return refused(`the condition is longer than ${CONDITION_LENGTH_MAX} characters`);
  }
  const trimmed = text.trim();
  const isBraced = trimmed.startsWith('{{') && trimmed.endsWith('}}');
  const bare = isBraced ? trimmed.slice(2, -2).trim() : trimmed;
  if (bare === '') return { ok: true, value: NEVER };
  const simple = parseSimple(bare);
  if (simple !== undefined) return { ok: true, value: toCondition(simple) };
  const parsed = parseExpression(bare);
  if (parsed.ok) return { ok: true, value: toCondition(parsed.value) };
  return refused(`cannot parse the condition ${clip(bare)}: ${parsed.message}`);
}

/** Gives null for a value that cannot be computed. Never throws; the work is bounded. May share values with the scope. */
export function evaluateCondition({ expression }: Pick<Condition, 'expression'>, scope: Scope) {
  let left = EVALUATION_BUDGET;
  const spend = (cost: number): boolean => {
    left -= cost;
    return left >= 0;
  };
  const value = evaluate(expression, { scope, spend });
  // Never a partial result.
  return left >= 0 ? value : null;
}

export function holds(condition: Condition | undefined, scope: Scope): boolean {
  return condition !== undefined && isTruthy(evaluateCondition(condition, scope));
}

const NEVER: Condition = { expression: { kind: 'literal', value: null }, outputs: new Set() };

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

/** Names joined by dots, hyphens allowed; a text that begins with a sign is an expression. */
const PATH = /^(?!-)[\w\u0080-\uffff-]+(?:\.[\w\u0080-\uffff-]+)*$/;
const LETTER = /[A-Za-z_\u0080-\uffff]/;
const QUOTED = /^(?:"([^"]*)"|'([^']*)')$/;

function parsePath(text: string): Expression | undefined {
  if (!PATH.test(text) || !LETTER.test(text) || plainValue(text) !== undefined) return undefined;
  const path = text.split('.');
  return SECTIONS.has(text) ? { kind: 'key', key: text } : { kind: 'path', path };
}

/** A number, a keyword, a quoted string, a path that begins with a root; else the text itself. */
function parseValue(text: string): Expression {
  const quoted = QUOTED.exec(text);
  const value = quoted === null ? plainValue(text) : (quoted[1] ?? quoted[2]);
  if (value !== undefined) return { kind: 'literal', value };
  if (isRootedPath(text) && PATH.test(text)) return { kind: 'path', path: text.split('.') };
  return { kind: 'literal', value: text, isBare: true };
}

/** Operators that unquoted text cannot contain, and the last character of a `===`. */
const LOGICAL = /&&|\|\||[=!]=|^=|^$/;
const OPENING = /^[([!"']/;
const ARITHMETIC = /\s[-+*/]\s/;
const CALL = /^([A-Za-z_]\w*)\s*\(/;

/** Whether the text after `path ==` is an expression: it has operators or calls, and parses as a whole. */
function isMeantAsExpression(text: string, value: string): boolean {
  if (QUOTED.test(value) || PATH.test(value)) return false;
  if (LOGICAL.test(value)) return true;
  const called = CALL.exec(value)?.[1];
  const isComputed =
    called === undefined
      ? OPENING.test(value) ||
        (value.includes(' ? ') && value.includes(' : ')) ||
        (isRootedPath(value) && ARITHMETIC.test(value))
      : FUNCTIONS.has(called);
  return isComputed && parseExpression(text).ok;
}

function toCondition(expression: Expression): Condition {
  return { expression, outputs: outputReads(pathsOf(expression)) };
}

/** The parser bounds the depth of the recursion. */
function* pathsOf(node: Expression): Generator<readonly string[]> {
  if (node.kind === 'path' || node.kind === 'word') yield node.path;
  for (const child of childrenOf(node)) yield* pathsOf(child);
}

function evaluate(node: Expression, run: Evaluation): JsonValue {
  if (!run.spend(1)) return null;
  switch (node.kind) {
    case 'literal':
      return node.value;
    case 'path':
      return resolve(node.path, run) ?? null;
    case 'key':
      return ownValue(run.scope.data, node.key) ?? null;
    case 'word': {
      const value = resolve(node.path, run);
      return value === undefined ? node.text : value;
    }
    case 'array':
      return node.items.map((item) => evaluate(item, run));
    case 'not':
      return !isTruthy(evaluate(node.operand, run));
    case 'negate': {
      const operand = toNumber(evaluate(node.operand, run));
      return operand === null ? null : -operand;
    }
    case 'arithmetic':
      return node.rest.reduce(
        (total: JsonValue, term) => combine(term.operator, total, evaluate(term.operand, run), run),
        evaluate(node.first, run),
      );
    case 'compare':
      return compare(node.operator, evaluate(node.left, run), evaluate(node.right, run), run);
    case 'and':
      return node.operands.every((operand) => isTruthy(evaluate(operand, run)));
    case 'or':
      return node.operands.some((operand) => isTruthy(evaluate(operand, run)));
    case 'choose':
      return evaluate(isTruthy(evaluate(node.test, run)) ? node.yes : node.no, run);
    case 'call': {
      const args = node.args.map((arg) => evaluate(arg, run));
      return FUNCTIONS.get(node.name)?.(args, run) ?? null;
    }
  }
}

/** Looks in context.data first, then in the roots (docs/reference/expressions.md). */
function resolve(path: readonly string[], run: Evaluation): JsonValue | undefined {
  run.spend(path.length);
  const value = follow(run.scope.data, path, 0);
  return value === undefined ? readRooted(path, run.scope) : value;
}
