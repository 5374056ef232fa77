/** Truth, equality, order and arithmetic over JSON values (docs/reference/expressions.md), charged to a budget. */

import { compareText, isDeepEqual, sizeWithin } from '../../base/bounds.js';
import type { JsonValue } from '../../base/json.js';
import type { Scope } from './scope.js';
import type { ArithmeticOperator, ComparisonOperator } from './syntax.js';

/** In members and characters visited: some 10 ms at worst, far more than realistic conditions need. */
export const EVALUATION_BUDGET = 4_000_000;

/** The scope and the budget of one evaluation. `spend` returns whether the budget covered the cost. */
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
  // Number() also accepts the empty text, 0x10 and Infinity.
  if (text === '' || /[^0-9eE.+-]/.test(text)) return null;
  const number = Number(text);
  return Number.isFinite(number) ? number : null;
}

export function mapNumber(value: JsonValue, apply: (number: number) => number): number | null {
  const number = toNumber(value);
  return number === null ? null : apply(number);
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
  const result = CALCULATE[operator](a, b);
  return Number.isFinite(result) ? result : null;
}

const CALCULATE: Readonly<Record<ArithmeticOperator, (a: number, b: number) => number>> = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
};

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
    default: {
      const order = orderOf(left, right, run);
      return order !== undefined && HOLDS[operator](order);
    }
  }
}

type OrderOperator = Exclude<ComparisonOperator, '==' | '!=' | 'in'>;

const HOLDS: Readonly<Record<OrderOperator, (order: number) => boolean>> = {
  '>': (order) => order > 0,
  '>=': (order) => order >= 0,
  '<': (order) => order < 0,
  '<=': (order) => order <= 0,
};

function orderOf(left: JsonValue, right: JsonValue, run: Evaluation): number | undefined {
  if (typeof left === 'number' && typeof right === 'number') return left - right;
  if (typeof left !== 'string' || typeof right !== 'string') return undefined;
  return run.spend(Math.min(left.length, right.length)) ? compareText(left, right) : undefined;
}

/** Deep equality, without conversion between types. */
export function isEqual(left: JsonValue, right: JsonValue, run: Evaluation): boolean {
  if (typeof left === 'object' && typeof right === 'object' && left !== null && right !== null) {
    return spendSize(left, run) && spendSize(right, run) && isDeepEqual(left, right);
  }
  // Strings are compared some 16 characters at a time.
  const cost = typeof left === 'string' && typeof right === 'string' ? left.length / 16 : 0;
  return run.spend(1 + cost) && left === right;
}

/** Charges the whole value; false when it is too deep, or too large for the budget. */
export function spendSize(value: JsonValue, run: Evaluation): boolean {
  const size = sizeWithin(value, EVALUATION_BUDGET);
  return run.spend(size ?? EVALUATION_BUDGET) && size !== undefined;
}

/** The built-in search is linear while the needle fits its skip table of 250 characters. */
const NATIVE_NEEDLE_MAX = 250;

/**
 * Every offset at which `needle` occurs, without overlaps, in time linear in both texts. The built-in search takes 2.4 s
 * for a needle of 100,000 characters in 200,000 (measured).
 */
export function occurrences(text: string, needle: string, most = Number.POSITIVE_INFINITY) {
  if (needle.length > NATIVE_NEEDLE_MAX) return longOccurrences(text, needle, most);
  const found: number[] = [];
  let at = needle.length === 0 ? -1 : text.indexOf(needle);
  while (at >= 0 && found.length < most) {
    found.push(at);
    at = text.indexOf(needle, at + needle.length);
  }
  return found;
}

/** Knuth–Morris–Pratt: `borders[i]` is the longest proper border of the first i + 1 characters. */
function longOccurrences(text: string, needle: string, most: number): number[] {
  const found: number[] = [];
  if (needle.length > text.length) return found;
  const borders = new Int32Array(needle.length);
  for (let i = 1, matched = 0; i < needle.length; i += 1) {
    const unit = needle.charCodeAt(i);
    while (matched > 0 && needle.charCodeAt(matched) !== unit) matched = borders[matched - 1]!;
    if (needle.charCodeAt(matched) === unit) matched += 1;
    borders[i] = matched;
  }
  for (let i = 0, matched = 0; i < text.length && found.length < most; i += 1) {
    const unit = text.charCodeAt(i);
    while (matched > 0 && needle.charCodeAt(matched) !== unit) matched = borders[matched - 1]!;
    if (needle.charCodeAt(matched) === unit) matched += 1;
    if (matched === needle.length) {
      found.push(i - needle.length + 1);
      matched = 0;
    }
  }
  return found;
}
