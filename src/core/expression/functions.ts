/** The functions of expressions (docs/reference/expressions.md). Unknown names and wrong arguments give null. */

import { canonicalText, compareText, lengthOf } from '../../base/bounds.js';
import { uuidText } from '../../base/ids.js';
import { isJsonObject, type JsonValue } from '../../base/json.js';
import { dayOfWeek, formatDate } from './dates.js';
import {
  type Evaluation,
  isEqual,
  mapNumber,
  occurrences,
  spendSize,
  toNumber,
} from './operators.js';

type Arg = JsonValue | undefined;
type ExpressionFunction = (args: readonly JsonValue[], run: Evaluation) => JsonValue;

/** A map, so that a name such as `constructor` finds nothing. */
export const FUNCTIONS: ReadonlyMap<string, ExpressionFunction> = new Map([
  ['abs', ([value = null]) => mapNumber(value, Math.abs)],
  ['len', ([value = null], run) => chargedLength(value, run)],
  ['json', ([value = null], run) => (spendSize(value, run) ? JSON.stringify(value) : null)],
  ['now', (_, { scope }) => new Date(scope.now).toISOString()],
  ['uuid', (_, { scope }) => uuidFrom(scope.random)],
  ['random', ([min, max], { scope }) => randomBetween(min, max, scope.random)],
  ['format_date', ([time, format], run) => textPair(time, format, run, formatDate)],
  ['day_of_week', ([time]) => (typeof time === 'string' ? dayOfWeek(time) : null)],
  ['keys', ([value], run) => members(value, run, Object.keys)],
  ['values', ([value], run) => members<JsonValue>(value, run, Object.values)],
  ['contains', ([whole = null, part = null], run) => contains(whole, part, run)],
  ['starts_with', ([text, part], run) => textPair(text, part, run, (a, b) => a.startsWith(b))],
  ['ends_with', ([text, part], run) => textPair(text, part, run, (a, b) => a.endsWith(b))],
  ['sum', (args, run) => aggregate(args, run, (numbers) => total(numbers))],
  ['avg', (args, run) => aggregate(args, run, (numbers) => total(numbers) / numbers.length)],
  ['min', (args, run) => aggregate(args, run, (numbers) => fold(numbers, Math.min))],
  ['max', (args, run) => aggregate(args, run, (numbers) => fold(numbers, Math.max))],
  ['first', ([list]) => (Array.isArray(list) ? (list[0] ?? null) : null)],
  ['last', ([list]) => (Array.isArray(list) ? (list.at(-1) ?? null) : null)],
  ['slice', ([value, from, to], run) => slice(value, from, to, run)],
  ['sort', ([list, direction], run) => sort(list, direction === 'desc', run)],
  ['unique', ([list], run) => unique(list, run)],
  ['count', ([list]) => (Array.isArray(list) ? list.length : null)],
  ['change_pct', ([from, to]) => changePercent(from, to)],
  ['clamp', ([value, low, high]) => clamp(value, low, high)],
]);

export const FUNCTION_NAMES: readonly string[] = [...FUNCTIONS.keys()];
const finite = (value: number): number | null => (Number.isFinite(value) ? value : null);

/** The length of an array costs nothing; keys and bytes have to be counted. */
function chargedLength(value: JsonValue, run: Evaluation): number | null {
  const length = lengthOf(value);
  return Array.isArray(value) || run.spend(length ?? 0) ? length : null;
}

function members<T extends JsonValue>(
  value: Arg,
  run: Evaluation,
  list: (object: Record<string, JsonValue>) => T[],
): T[] | null {
  if (value === undefined || !isJsonObject(value)) return null;
  const found = list(value);
  return run.spend(found.length) ? found : null;
}

function textPair<T extends JsonValue>(
  first: Arg,
  second: Arg,
  run: Evaluation,
  apply: (first: string, second: string) => T,
): T | null {
  if (typeof first !== 'string' || typeof second !== 'string') return null;
  return run.spend(second.length) ? apply(first, second) : null;
}

/** A substring, a member of an array, or a key of an object. */
function contains(whole: JsonValue, part: JsonValue, run: Evaluation): boolean | null {
  if (Array.isArray(whole)) return whole.some((item) => isEqual(item, part, run));
  if (typeof part !== 'string') return null;
  if (isJsonObject(whole)) return Object.hasOwn(whole, part);
  if (typeof whole !== 'string' || !run.spend(whole.length + part.length)) return null;
  return part === '' || occurrences(whole, part, 1).length > 0;
}

/** Takes one array or several arguments; null when a member is not a number. */
function aggregate(
  args: readonly JsonValue[],
  run: Evaluation,
  apply: (numbers: readonly number[]) => number,
): number | null {
  const list = args.length === 1 && Array.isArray(args[0]) ? args[0] : args;
  if (!run.spend(list.length)) return null;
  const numbers: number[] = [];
  for (const item of list) {
    const number = toNumber(item);
    if (number === null) return null;
    numbers.push(number);
  }
  return finite(apply(numbers));
}

const total = (numbers: readonly number[]) => numbers.reduce((sum, number) => sum + number, 0);

/** NaN, which becomes null, for an empty list. */
function fold(numbers: readonly number[], pick: (a: number, b: number) => number): number {
  return numbers.length === 0 ? Number.NaN : numbers.reduce((a, b) => pick(a, b));
}

function slice(value: Arg, from: Arg, to: Arg, run: Evaluation): JsonValue {
  if (!Array.isArray(value) && typeof value !== 'string') return null;
  const start = toNumber(from ?? 0);
  const end = to === undefined || to === null ? undefined : toNumber(to);
  if (start === null || end === null || !run.spend(value.length)) return null;
  // By code points, so that surrogate pairs stay whole.
  if (typeof value === 'string') return Array.from(value).slice(start, end).join('');
  return value.slice(start, end);
}

function sort(list: Arg, isDescending: boolean, run: Evaluation): JsonValue {
  // The largest sort that fits the budget visits each member some twenty times.
  if (!Array.isArray(list) || !spendSize(list, run) || !run.spend(list.length * 20)) return null;
  const sign = isDescending ? -1 : 1;
  return list.toSorted((a, b) => sign * compareMembers(a, b));
}

const TYPE_ORDER = ['boolean', 'number', 'string', 'object'];

/** Numbers and strings by value; other types in a fixed order, equal among themselves. */
function compareMembers(a: JsonValue, b: JsonValue): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b);
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b);
  return TYPE_ORDER.indexOf(typeof a) - TYPE_ORDER.indexOf(typeof b);
}

function unique(list: Arg, run: Evaluation): JsonValue {
  if (!Array.isArray(list) || !spendSize(list, run)) return null;
  const seen = new Set<string>();
  return list.filter((item) => {
    const text = canonicalText(item);
    const isNew = !seen.has(text);
    seen.add(text);
    return isNew;
  });
}

/** The change from `from` to `to` in percent; null for a change from zero. */
function changePercent(from: Arg, to: Arg): number | null {
  const start = toNumber(from ?? null);
  const end = toNumber(to ?? null);
  if (start === null || end === null || start === 0) return null;
  return finite(((end - start) / Math.abs(start)) * 100);
}

function clamp(value: Arg, low: Arg, high: Arg): number | null {
  const number = toNumber(value ?? null);
  const least = toNumber(low ?? null);
  const most = toNumber(high ?? null);
  if (number === null || least === null || most === null || least > most) return null;
  return Math.min(Math.max(number, least), most);
}

/** In [0, 1) without bounds; an integer in [min, max] when both are integers; else in [min, max). */
function randomBetween(min: Arg, max: Arg, random: () => number): number | null {
  if (min === undefined && max === undefined) return random();
  const low = toNumber(min ?? null);
  const high = toNumber(max ?? null);
  if (low === null || high === null || low > high) return null;
  const isWhole = Number.isInteger(low) && Number.isInteger(high);
  if (!isWhole) return finite(low + random() * (high - low));
  return Math.min(high, low + Math.floor(random() * (high - low + 1)));
}

function uuidFrom(random: () => number): string {
  const digits = Array.from({ length: 32 }, () => Math.floor(random() * 16).toString(16));
  digits[12] = '4';
  digits[16] = '89ab'.charAt(Math.floor(random() * 4));
  return uuidText(digits.join(''));
}
