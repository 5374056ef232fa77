/** Evaluates an expression tree within a budget. Never throws: what cannot be computed is null. */

import { type JsonValue, ownValue } from '../../base/json.js';
import { callFunction } from './functions.js';
import {
  combine,
  compare,
  EVALUATION_BUDGET,
  type Evaluation,
  isTruthy,
  toNumber,
} from './operators.js';
import { follow, readRooted, type Scope } from './scope.js';
import type { Expression } from './syntax.js';

/** Null when the budget is exceeded, never a partial result. */
export function evaluateExpression(expression: Expression, scope: Scope): JsonValue {
  let left = EVALUATION_BUDGET;
  const spend = (cost: number): boolean => {
    left -= cost;
    return left >= 0;
  };
  const value = evaluate(expression, { scope, spend });
  return left >= 0 ? value : null;
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
    case 'call':
      return callFunction(
        node.name,
        node.args.map((arg) => evaluate(arg, run)),
        run,
      );
  }
}

/** Looks in context.data first, then in the roots (docs/reference/expressions.md). */
function resolve(path: readonly string[], run: Evaluation): JsonValue | undefined {
  run.spend(path.length);
  const value = follow(run.scope.data, path, 0);
  return value === undefined ? readRooted(path, run.scope) : value;
}
