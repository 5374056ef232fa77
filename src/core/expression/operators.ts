/**
 * Truth, equality, order and arithmetic over JSON values (docs/reference/expressions.md). Whatever
 * looks at data of the instance pays for it from the budget of its evaluation.
 */

import { compareText, isDeepEqual, sizeWithin } from '../../base/bounds.js';
import type { JsonValue } from '../../base/json.js';
import type { Scope } from './scope.js';
import type { ArithmeticOperator, ComparisonOperator } from './syntax.js';

/**
 * What one evaluation may cost, in members and characters looked at: some 10 ms at worst, and far
 * more than any sensible condition over the largest context needs.
 */
export const EVALUATION_BUDGET = 4_000_000;

/** The scope and the budget of one evaluation. `spend` says whether the cost was still covered. */
export interface Evaluation {
  readonly scope: Scope;
  readonly spend: (cost: number) => boolean;
}

/** False: null, false, 0, the empty string and the empty array. True: all else, `{}` too. */
export function isTruthy(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return value !== null && value !== false && value !== 0 && value !== '';
}

/** A number, a numeric string or a boolean as a finite number; null for anything else. */
export function toNumber(value: JsonValue): number | null {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value !== 'string' || value.length > 400) return null;
  const text = value.trim();
  // Number() would also take the empty text, 0x10 and Infinity.
  if (text === '' || /[^0-9eE.+-]/.test(text)) return null;
  const number = Number(text);
  return Number.isFinite(number) ? number : null;
}

export function combine(
  operator: ArithmeticOperator,
  left: JsonValue,
  right: JsonValue,
  run: Evaluation,
): JsonValue {
  if (operator === '+' && typeof left === 'string' && typeof right === 'string') {
    return run.spend(left.length + right.length) ? left + right : null;
  }
  const a = toNumber(left);
  const b = toNumber(right);
  if (a === null || b === null) return null;
  const result = calculate(operator, a, b);
  return Number.isFinite(result) ? result : null;
}

function calculate(operator: ArithmeticOperator, a: number, b: number): number {
  switch (operator) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '/':
      return a / b;
  }
}

export function compare(
  operator: ComparisonOperator,
  left: JsonValue,
  right: JsonValue,
  run: Evaluation,
): boolean {
  switch (operator) {
    case '==':
      return isEqual(left, right, run);
    case '!=':
      return !isEqual(left, right, run);
    case 'in':
      return Array.isArray(right) && right.some((item) => isEqual(left, item, run));
    case '>':
    case '>=':
    case '<':
    case '<=':
      return isOrdered(operator, left, right, run);
  }
}

/** Deep equality: numbers by value, no conversion between types. */
export function isEqual(left: JsonValue, right: JsonValue, run: Evaluation): boolean {
  if (typeof left === 'object' && typeof right === 'object' && left !== null && right !== null) {
    return spendSize(left, run) && spendSize(right, run) && isDeepEqual(left, right);
  }
  // Texts are compared some 16 characters at a time.
  const cost = typeof left === 'string' && typeof right === 'string' ? left.length / 16 : 0;
  return run.spend(1 + cost) && left === right;
}

/** Pays for a look at the whole value; false when it is too deep or too large for the budget. */
export function spendSize(value: JsonValue, run: Evaluation): boolean {
  const size = sizeWithin(value, EVALUATION_BUDGET);
  return run.spend(size ?? EVALUATION_BUDGET) && size !== undefined;
}

function isOrdered(
  operator: '>' | '>=' | '<' | '<=',
  left: JsonValue,
  right: JsonValue,
  run: Evaluation,
): boolean {
  let order: number;
  if (typeof left === 'number' && typeof right === 'number') order = left - right;
  else if (typeof left === 'string' && typeof right === 'string') {
    if (!run.spend(Math.min(left.length, right.length))) return false;
    order = compareText(left, right);
  } else return false;
  if (operator === '>') return order > 0;
  if (operator === '>=') return order >= 0;
  return operator === '<' ? order < 0 : order <= 0;
}
