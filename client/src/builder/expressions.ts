/**
 * Expressions that the engine evaluates later, written in TypeScript: `input.total.gt(100)` becomes the text
 * `data.total > 100`, `input.name` becomes `{{ data.name }}`. There are two languages: a `Value` is for parameters,
 * where the engine has no operators; a `Term` is for conditions; a `Ref`, which is a path, is both. Types are those of
 * the evaluated value (docs/builder.md).
 */

declare const VALUE: unique symbol;
declare const TERM: unique symbol;

/** The value of a template: for parameters, prompts and collections. */
export interface Value<T> {
  readonly [VALUE]: T;
}

/** The value of a condition: for `when`, routes, loops, `retry_if` and `assert`. */
export interface Term<T> {
  readonly [TERM]: T;
}

export type Primitive = string | number | boolean | null;

/** A value of unknown type, as `JSON.parse` returns it: any use compiles. */
export type Untyped = ReturnType<typeof JSON.parse>;

type Widened<T> = T extends string ? string : T extends number ? number : T;

/** The right-hand side of an operator. */
export type Operand<T> = (T & Primitive) | null | Term<Widened<T> | null>;

/** The operators of docs/reference/expressions.md, available on every term. */
export interface Operators<T> extends Term<T> {
  /** Equality, also of arrays and objects by their members, without conversion. */
  eq(other: Operand<T>): Expression<boolean>;
  ne(other: Operand<T>): Expression<boolean>;
  /** For two numbers or two strings; false for anything else. */
  lt(other: Operand<T & (string | number)>): Expression<boolean>;
  le(other: Operand<T & (string | number)>): Expression<boolean>;
  gt(other: Operand<T & (string | number)>): Expression<boolean>;
  ge(other: Operand<T & (string | number)>): Expression<boolean>;
  /** Whether it is an item of the array. */
  in(list: readonly Operand<T>[] | Term<readonly T[] | null>): Expression<boolean>;
  /** Whether both are truthy. Null, false, 0, the empty string and the empty array are not. */
  and(other: Term<unknown>): Expression<boolean>;
  or(other: Term<unknown>): Expression<boolean>;
  not(): Expression<boolean>;
  /** The sum of two numbers or the concatenation of two strings; null for anything else. */
  plus(other: Operand<T & (string | number)>): Expression<Widened<T & (string | number)> | null>;
  minus(other: Operand<T & number>): Expression<number | null>;
  times(other: Operand<T & number>): Expression<number | null>;
  /** Null for a division by zero. */
  dividedBy(other: Operand<T & number>): Expression<number | null>;
}

/** The methods of a path. A member with the name of a method is accessed with `at`. */
export interface PathMethods<T> extends Operators<T>, Value<T> {
  /** The member with this name, or the item at this index. */
  at<K extends KeyOf<T>>(key: K): Ref<MemberOf<T, K>>;
  /** The same path with another type. */
  as<U>(): Ref<U>;
  /** In a template: the fallback for null, which is another path or a value. */
  orElse<const U extends Primitive>(other: U): Template<NonNullable<T> | U>;
  orElse<U>(other: Value<U>): Template<NonNullable<T> | U>;
}

/** The names of the members of a value, of any type in a union. */
export type KeyOf<T> = T extends readonly unknown[]
  ? number
  : T extends object
    ? keyof T & string
    : never;

/** The type of a member as the engine reads it: null if it is missing. */
export type MemberOf<T, K> = T extends readonly (infer Item)[]
  ? K extends number
    ? Item | null
    : null
  : T extends object
    ? K extends keyof T
      ? undefined extends T[K]
        ? Exclude<T[K], undefined> | null
        : T[K]
      : null
    : null;

/** A path, whose members are paths, too. What may be missing includes null in its type, and so do its members. */
export type Ref<T> = 0 extends 1 & T
  ? Untyped
  : PathMethods<T> & {
      readonly [K in Exclude<KeyOf<T>, keyof PathMethods<unknown>>]: Ref<MemberOf<T, K>>;
    };

// ---------------------------------------------------------------- conditions

/** Precedence of the parts of an expression: an operand of lower precedence is put in parentheses. */
const STRENGTH = { choice: 0, or: 1, and: 2, compared: 3, sum: 4, product: 5, sign: 6, whole: 7 };
type Strength = keyof typeof STRENGTH;

interface Piece {
  readonly text: string;
  readonly strength: Strength;
}

/** A computed condition. */
export class Expression<T> implements Operators<T> {
  declare readonly [TERM]: T;
  readonly text: string;
  readonly strength: Strength;

  constructor({ text, strength }: Piece) {
    this.text = text;
    this.strength = strength;
  }

  // The interface has the types of the operands; here every operand is only converted to text.

  eq(other: unknown): Expression<boolean> {
    return this.#compare('==', other);
  }

  ne(other: unknown): Expression<boolean> {
    return this.#compare('!=', other);
  }

  lt(other: unknown): Expression<boolean> {
    return this.#binary('<', 'compared', other);
  }

  le(other: unknown): Expression<boolean> {
    return this.#binary('<=', 'compared', other);
  }

  gt(other: unknown): Expression<boolean> {
    return this.#binary('>', 'compared', other);
  }

  ge(other: unknown): Expression<boolean> {
    return this.#binary('>=', 'compared', other);
  }

  in(list: unknown): Expression<boolean> {
    return this.#binary('in', 'compared', list);
  }

  and(other: unknown): Expression<boolean> {
    return this.#binary('&&', 'and', other);
  }

  or(other: unknown): Expression<boolean> {
    return this.#binary('||', 'or', other);
  }

  not(): Expression<boolean> {
    return new Expression({ text: `!${held(this, 'sign')}`, strength: 'sign' });
  }

  plus(other: unknown): Expression<Widened<T & (string | number)> | null> {
    return this.#binary('+', 'sum', other);
  }

  minus(other: unknown): Expression<number | null> {
    return this.#binary('-', 'sum', other);
  }

  times(other: unknown): Expression<number | null> {
    return this.#binary('*', 'product', other);
  }

  dividedBy(other: unknown): Expression<number | null> {
    return this.#binary('/', 'product', other);
  }

  /** After `==` the engine reads anything but a plain value as text, unless it is in parentheses. */
  #compare(operator: string, other: unknown): Expression<boolean> {
    const right = pieceOf(other);
    const isPlain =
      typeof other === 'number' || (right.strength === 'whole' && !isWord(right.text));
    const text = isPlain ? right.text : `(${right.text})`;
    return new Expression({
      text: `${held(this, 'sum')} ${operator} ${text}`,
      strength: 'compared',
    });
  }

  /** `&&`, `||`, `+` and `*` associate to the left; comparisons do not associate. */
  #binary<U>(operator: string, strength: Strength, other: unknown): Expression<U> {
    const isLogical = strength === 'and' || strength === 'or';
    const left = held(this, strength === 'compared' ? 'sum' : strength);
    const right = held(pieceOf(other), isLogical ? strength : NEXT[strength]);
    return new Expression({ text: `${left} ${operator} ${right}`, strength });
  }
}

/** The precedence that the right side needs. */
const NEXT: Readonly<Record<Strength, Strength>> = {
  choice: 'or',
  or: 'and',
  and: 'compared',
  compared: 'sum',
  sum: 'product',
  product: 'sign',
  sign: 'whole',
  whole: 'whole',
};

function held({ text, strength }: Piece, least: Strength): string {
  return STRENGTH[strength] < STRENGTH[least] ? `(${text})` : text;
}

/** A word without a dot is read as text to the right of `==`. */
const isWord = (text: string) =>
  /^[A-Za-z_]\w*$/.test(text) && !['true', 'false', 'null'].includes(text);

/** A call `name(a, b)` of a function of conditions. */
export function call<T>(name: string, given: readonly unknown[]): Expression<T> {
  const args = given.map((arg) => pieceOf(arg).text).join(', ');
  return new Expression({ text: `${name}(${args})`, strength: 'whole' });
}

/** `test ? yes : no`. */
export function choose(test: unknown, yes: unknown, no: unknown): Expression<Untyped> {
  const [condition, first, second] = [test, yes, no].map((part) => held(pieceOf(part), 'or'));
  return new Expression({ text: `${condition} ? ${first} : ${second}`, strength: 'choice' });
}

/** The text of a condition. @throws TypeError for anything else */
export function conditionText(condition: unknown): string {
  return pieceOf(condition).text;
}

/** @throws TypeError for a value that cannot be used in a condition */
function pieceOf(given: unknown): Piece {
  if (given instanceof Expression) return given;
  const path = pathOf(given);
  if (path !== undefined) return { text: conditionPath(path), strength: 'whole' };
  if (given instanceof Raw) return { text: `(${given.text})`, strength: 'whole' };
  if (Array.isArray(given)) {
    return { text: `[${given.map((item) => pieceOf(item).text).join(', ')}]`, strength: 'whole' };
  }
  if (typeof given === 'string') return textPiece(given);
  if (typeof given === 'number' && Number.isFinite(given)) {
    return { text: String(given), strength: given < 0 ? 'sign' : 'whole' };
  }
  if (typeof given === 'boolean' || given === null)
    return { text: String(given), strength: 'whole' };
  throw new TypeError(`${describe(given)} cannot be used in a condition`);
}

/** The language has two kinds of quotes and no escapes: a string with both is concatenated. */
function textPiece(text: string): Piece {
  const parts = text.match(/[^"]+|"+/g) ?? [''];
  const isMixed = text.includes('"') && text.includes("'");
  if (!isMixed) return { text: quoted(text), strength: 'whole' };
  return { text: parts.map(quoted).join(' + '), strength: 'sum' };
}

/** @throws TypeError for a string with both kinds of quotes */
export function quoted(text: string): string {
  if (!text.includes('"')) return `"${text}"`;
  if (!text.includes("'")) return `'${text}'`;
  throw new TypeError(`a string with both kinds of quotes cannot be used in a template: ${text}`);
}

// ---------------------------------------------------------------- paths

/** The paths that proxies represent. */
const PATHS = new WeakMap<object, readonly string[]>();

/** The path that a `Ref` represents; undefined for anything else. */
export function pathOf(value: unknown): readonly string[] | undefined {
  return typeof value === 'object' && value !== null ? PATHS.get(value) : undefined;
}

const METHODS: ReadonlySet<string> = new Set(
  Object.getOwnPropertyNames(Expression.prototype).filter((name) => name !== 'constructor'),
);

/** A path below one of the roots of docs/reference/expressions.md. */
export function refTo<T>(path: readonly string[]): Ref<T> {
  const target = { path: path.join('.') };
  const ref = new Proxy(target, {
    get: (_, name) => (typeof name === 'symbol' ? coerced(name, path) : memberOf(ref, path, name)),
  });
  PATHS.set(ref, path);
  return ref as unknown as Ref<T>;
}

/** `then` is not a member: a path returned by an async function would be awaited. */
function memberOf(ref: object, path: readonly string[], name: string): unknown {
  if (name === 'then' || name === 'toJSON') return undefined;
  if (name === 'as') return () => ref;
  if (name === 'at') return (key: string | number) => refTo([...path, String(key)]);
  if (name === 'orElse') return (other: unknown) => chainOf(ref).orElse(other as Primitive);
  if (!METHODS.has(name)) return refTo([...path, name]);
  const term = new Expression(pieceOf(ref)) as unknown as Record<
    string,
    (other: unknown) => unknown
  >;
  return (other: unknown) => term[name]?.(other);
}

/** Values are not known while a definition is built. */
function coerced(symbol: symbol, path: readonly string[]): undefined {
  if (symbol !== Symbol.toPrimitive) return undefined;
  throw new TypeError(`${path.join('.')} has no value yet: use t\`…\` for text with values`);
}

/** Letters, digits and `_`: all other characters have a meaning in conditions. */
const CONDITION_WORD = /^[\w\u0080-\uffff]+$/;
/** Templates exclude fewer characters. */
const TEMPLATE_WORD = /^[^\s.|,(){}[\]"'=<>!&+*/?]+$/;

/** @throws TypeError for a name that cannot be written in a condition */
function conditionPath(path: readonly string[]): string {
  const odd = path.find((name) => !CONDITION_WORD.test(name));
  if (odd === undefined) return unshadowed(path);
  throw new TypeError(
    `the name ${JSON.stringify(odd)} cannot be used in a condition: ${path.join('.')}`,
  );
}

/**
 * Conditions resolve a path among the members of the input first and then by its root: if the input has a member
 * `data`, as many events do, `data.type` would be read from that member. The roots therefore have their long names
 * here.
 */
function unshadowed(path: readonly string[]): string {
  const [root = ''] = path;
  if (root === 'data' || root === 'config') return `context.${path.join('.')}`;
  return root === 'instance_id' ? `runtime.${path.join('.')}` : path.join('.');
}

/** @throws TypeError for a name that cannot be written in a template */
function templatePath(path: readonly string[]): string {
  const odd = path.find((name) => !TEMPLATE_WORD.test(name));
  if (odd === undefined) return path.join('.');
  throw new TypeError(
    `the name ${JSON.stringify(odd)} cannot be used in a template: ${path.join('.')}`,
  );
}

// ---------------------------------------------------------------- templates

/** The content of a pair of braces. */
interface Chain {
  readonly chain: string;
}

/** Text with values in it. */
export class Template<T> implements Value<T> {
  declare readonly [VALUE]: T;
  readonly parts: readonly (string | Chain)[];

  constructor(parts: readonly (string | Chain)[]) {
    this.parts = parts;
  }

  /** The fallback for null, which is another path or a value. */
  orElse<const U extends Primitive>(other: U): Template<NonNullable<T> | U>;
  orElse<U>(other: Value<U>): Template<NonNullable<T> | U>;
  orElse(other: unknown): Template<Untyped> {
    return this.piped(fallbackText(other));
  }

  /** The single value of the template with one more filter. @throws TypeError if there is text around it */
  piped<U>(part: string): Template<U> {
    const [only, ...others] = this.parts;
    if (only === undefined || typeof only === 'string' || others.length > 0) {
      throw new TypeError('filters and fallbacks apply to the values in a text, not to the text');
    }
    return new Template([{ chain: `${only.chain} | ${part}` }]);
  }

  get text(): string {
    return this.parts
      .map((part) => (typeof part === 'string' ? part : `{{ ${part.chain} }}`))
      .join('');
  }
}

function fallbackText(other: unknown): string {
  const path = pathOf(other);
  if (path !== undefined) return templatePath(path);
  if (other instanceof Template || other instanceof Raw) {
    const [only, ...others] = chainOf(other).parts;
    if (typeof only === 'object' && others.length === 0) return only.chain;
  }
  return literalText(other);
}

/** A value as an argument or fallback in a template. @throws TypeError unless it is a plain value */
export function literalText(value: unknown): string {
  if (typeof value === 'string') return quoted(value);
  if (value === null || typeof value === 'boolean' || Number.isFinite(value)) return String(value);
  throw new TypeError(`${describe(value)} cannot be used in a template`);
}

/** @throws TypeError for a value that cannot be used in a template */
export function chainOf(value: unknown): Template<Untyped> {
  if (value instanceof Template) return value;
  if (value instanceof Raw) return new Template([{ chain: value.text }]);
  const path = pathOf(value);
  if (path !== undefined) return new Template([{ chain: templatePath(path) }]);
  throw new TypeError(`${describe(value)} cannot be used in a template`);
}

/** `name(path)` in place of a path. @throws TypeError for anything but a path */
export function ofPath<T>(name: string, value: unknown): Template<T> {
  const path = pathOf(value);
  if (path === undefined) throw new TypeError(`${name} needs a path, not ${describe(value)}`);
  return new Template([{ chain: `${name}(${templatePath(path)})` }]);
}

/** What a text may contain: null would become the word `null`. */
export type InText = string | number | boolean | Value<object | string | number | boolean>;

/**
 * A text with values in it: ``t`Order ${input.id}` ``.
 *
 * @throws TypeError for braces in the text, and for a text that consists of a single value
 */
export function t(texts: TemplateStringsArray, ...values: readonly InText[]): Template<string> {
  const parts = texts.flatMap((text, at) => {
    const value = at < values.length ? partsOf(values[at]) : [];
    return text === '' ? value : [plain(text), ...value];
  });
  const isWhole = parts.length === 1 && typeof parts[0] === 'object';
  if (isWhole) throw new TypeError('a text of a single value needs no t`…`: use the value itself');
  return new Template(parts);
}

function partsOf(value: unknown): readonly (string | Chain)[] {
  const isPlain = typeof value !== 'object';
  return isPlain ? [plain(String(value))] : chainOf(value).parts;
}

/** @throws TypeError for text that the engine would read as a template */
function plain(text: string): string {
  if (!text.includes('{{')) return text;
  throw new TypeError(`braces in a text would be read as a template: ${text}`);
}

/** An expression as text, for what these functions cannot express. */
class Raw<T> implements Value<T>, Term<T> {
  declare readonly [VALUE]: T;
  declare readonly [TERM]: T;
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Text in the engine's own language, without braces: `raw<number>('data.a.b | round(2)')`. It is not checked. */
export function raw<T>(text: string): Value<T> & Term<T> {
  return new Raw<T>(text);
}

/**
 * JSON with templates as text; undefined members are omitted.
 *
 * @throws TypeError for braces in plain text, and for values that are not JSON
 */
export function rendered(value: unknown): unknown {
  if (typeof value === 'string') return plain(value);
  if (value === undefined || value === null || typeof value === 'boolean' || Number.isFinite(value))
    return value;
  if (value instanceof Expression) return plain(value.text);
  if (value instanceof Template || value instanceof Raw || pathOf(value) !== undefined) {
    return chainOf(value).text;
  }
  if (Array.isArray(value)) return value.map(rendered);
  if (!isPlainObject(value)) throw new TypeError(`${describe(value)} is not JSON`);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(members.map(([key, member]) => [key, rendered(member)]));
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function describe(value: unknown): string {
  if (value instanceof Template) return `the template ${value.text}`;
  if (value instanceof Expression) return `the condition ${value.text}`;
  return typeof value === 'object' ? (value?.constructor.name ?? 'null') : String(value);
}
