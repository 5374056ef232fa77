/**
 * The functions of conditions and the filters of templates, by the engine's names (see docs/reference/expressions.md
 * for their results). Functions are for conditions, filters for parameters.
 */

import {
  call,
  chainOf,
  choose,
  type Expression,
  literalText,
  type Operand,
  ofPath,
  type Primitive,
  type Template,
  type Term,
  type Value,
} from './expressions.js';

type Text = Operand<string>;
type Amount = Operand<number>;
/** Filters do not produce paths. */
type Path = Value<unknown> & Term<unknown>;
type List<T> = Term<readonly T[] | null>;
type Item<T> = T extends readonly (infer I)[] ? I : never;

/** Overloads: a single array, or the arguments themselves. */
interface OfNumbers {
  (list: List<number>): Expression<number | null>;
  (...numbers: readonly Amount[]): Expression<number | null>;
}

/** An argument of a wrong type results in null. */
export interface Functions {
  abs(number: Amount): Expression<number | null>;
  /** The number of members of an array or object, or of bytes of a text. */
  len(value: Term<unknown>): Expression<number | null>;
  json(value: Term<unknown>): Expression<string | null>;
  /** The engine's time, in UTC. */
  now(): Expression<string>;
  uuid(): Expression<string>;
  /** With two integers an integer, both ends included; without arguments, from 0 up to but excluding 1. */
  random(): Expression<number>;
  random(min: Amount, max: Amount): Expression<number | null>;
  format_date(time: Text, format: Text): Expression<string | null>;
  /** 0 is Monday. */
  day_of_week(time: Text): Expression<number | null>;
  keys(object: Term<object | null>): Expression<readonly string[] | null>;
  values<T>(object: Term<{ readonly [name: string]: T } | null>): Expression<readonly T[] | null>;
  /** A substring of a text, an item of an array, or a key of an object. */
  contains(whole: Term<unknown>, part: Operand<Primitive>): Expression<boolean | null>;
  starts_with(text: Text, part: Text): Expression<boolean | null>;
  ends_with(text: Text, part: Text): Expression<boolean | null>;
  sum: OfNumbers;
  avg: OfNumbers;
  min: OfNumbers;
  max: OfNumbers;
  first<T>(list: List<T>): Expression<T | null>;
  last<T>(list: List<T>): Expression<T | null>;
  /** Indexes start at 0, `to` is excluded, and negative indexes count from the end. */
  slice<T extends string | readonly unknown[]>(
    value: Term<T | null>,
    from: Amount,
    to?: Amount,
  ): Expression<(T extends string ? string : readonly Item<T>[]) | null>;
  sort<T>(list: List<T>, order?: 'desc'): Expression<readonly T[] | null>;
  unique<T>(list: List<T>): Expression<readonly T[] | null>;
  count(list: List<unknown>): Expression<number | null>;
  change_pct(from: Amount, to: Amount): Expression<number | null>;
  clamp(number: Amount, low: Amount, high: Amount): Expression<number | null>;
  /** `test ? yes : no`. */
  choose<const A extends Primitive, const B extends Primitive>(
    test: Term<unknown>,
    yes: A | Term<A>,
    no: B | Term<B>,
  ): Expression<A | B>;
}

const FUNCTION_NAMES = [
  'abs',
  'len',
  'json',
  'now',
  'uuid',
  'random',
  'format_date',
  'day_of_week',
  'keys',
  'values',
  'contains',
  'starts_with',
  'ends_with',
  'sum',
  'avg',
  'min',
  'max',
  'first',
  'last',
  'slice',
  'sort',
  'unique',
  'count',
  'change_pct',
  'clamp',
] as const satisfies readonly Exclude<keyof Functions, 'choose'>[];

/** The functions of conditions: `fn.len(input.items).gt(3)`. */
export const fn = {
  ...Object.fromEntries(
    FUNCTION_NAMES.map((name) => [name, (...given: unknown[]) => call(name, given)]),
  ),
  choose,
} as unknown as Functions;

// ---------------------------------------------------------------- filters

const pipe = <T>(value: unknown, filter: string, ...args: readonly unknown[]): Template<T> => {
  const given = args.filter((arg) => arg !== undefined).map(literalText);
  return chainOf(value).piped(given.length === 0 ? filter : `${filter}(${given.join(', ')})`);
};

const ofText =
  (name: string) =>
  (text: Value<string>): Template<string> =>
    pipe(text, name);

/** The filters of templates: `filter.upper(input.name)`. Apply `orElse` first to what may be null. */
export const filter = {
  upper: ofText('upper'),
  lower: ofText('lower'),
  trim: ofText('trim'),
  url_encode: ofText('url_encode'),
  base64: ofText('base64'),
  base64_decode: ofText('base64_decode'),
  abs: (number: Value<number>) => pipe<number>(number, 'abs'),
  round: (number: Value<number>, digits: number) => pipe<number>(number, 'round', digits),
  replace: (text: Value<Primitive>, search: string, replacement: string) =>
    pipe<string>(text, 'replace', search, replacement),
  /** Like `orElse`, but also for the empty text. */
  default: <T, const U extends Primitive>(value: Value<T>, other: U) =>
    pipe<NonNullable<T> | U>(value, 'default', other),
  truncate: (text: Value<string>, length: number, suffix?: string) =>
    pipe<string>(text, 'truncate', length, suffix),
  join: (list: Value<readonly Primitive[]>, separator: string) =>
    pipe<string>(list, 'join', separator),
  split: (text: Value<string>, separator: string) =>
    pipe<readonly string[]>(text, 'split', separator),
  hash: (text: Value<string>, algorithm: 'sha256') => pipe<string>(text, 'hash', algorithm),
  /** The value at a path, as JSON text. */
  json: (path: Path) => ofPath<string>('json', path),
  /** The number of members of an array or object, or of bytes of a text. */
  len: (path: Path) => ofPath<number | null>('len', path),
} as const;
