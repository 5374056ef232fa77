/**
 * What the engine evaluates later, written as TypeScript: `input.total.gt(100)` is the text
 * `data.total > 100`, `input.name` is `{{ data.name }}`. Two languages, two types: a `Value` may stand in
 * parameters, where the engine knows no operators; a `Term` may stand in conditions. A `Ref`, which is a path,
 * is both. The types are those of the value that the engine will find (docs/builder.md).
 */

declare const VALUE: unique symbol;
declare const TERM: unique symbol;

/** What a template gives: for parameters, prompts and collections. */
export interface Value<T> {
  readonly [VALUE]: T;
}

/** What a condition gives: for `when`, routes, loops, `retry_if` and `assert`. */
export interface Term<T> {
  readonly [TERM]: T;
}

export type Primitive = string | number | boolean | null;

/** A value of which nothing is known, as `JSON.parse` gives it: whatever is done with it compiles. */
export type Untyped = ReturnType<typeof JSON.parse>;

type Widened<T> = T extends string ? string : T extends number ? number : T;

/** What a term is compared or reckoned with. */
export type Operand<T> = (T & Primitive) | null | Term<Widened<T> | null>;

/** The operators, from docs/reference/expressions.md. Every term has them. */
export interface Operators<T> extends Term<T> {
  /** Equal, also arrays and objects by their members; nothing is converted. */
  eq(other: Operand<T>): Expression<boolean>;
  ne(other: Operand<T>): Expression<boolean>;
  /** Two numbers or two texts; anything else is false. */
  lt(other: Operand<T & (string | number)>): Expression<boolean>;
  le(other: Operand<T & (string | number)>): Expression<boolean>;
  gt(other: Operand<T & (string | number)>): Expression<boolean>;
  ge(other: Operand<T & (string | number)>): Expression<boolean>;
  /** Whether it is a member of the array. */
  in(list: readonly Operand<T>[] | Term<readonly T[] | null>): Expression<boolean>;
  /** Both hold. Null, false, 0, the empty text and the empty array do not. */
  and(other: Term<unknown>): Expression<boolean>;
  or(other: Term<unknown>): Expression<boolean>;
  not(): Expression<boolean>;
  /** The sum of numbers, or two texts as one; null when they are neither. */
  plus(other: Operand<T & (string | number)>): Expression<Widened<T & (string | number)> | null>;
  minus(other: Operand<T & number>): Expression<number | null>;
  times(other: Operand<T & number>): Expression<number | null>;
  /** Null by zero. */
  dividedBy(other: Operand<T & number>): Expression<number | null>;
}

/** What every path has beside its members. A member of the same name is reached by `at`. */
export interface PathMethods<T> extends Operators<T>, Value<T> {
  /** The member of the name, or the item at the place. */
  at<K extends KeyOf<T>>(key: K): Ref<MemberOf<T, K>>;
  /** The same path, of which you know more than the types do. */
  as<U>(): Ref<U>;
  /** In a template: what stands in for null, another path or a value. */
  orElse<const U extends Primitive>(other: U): Template<NonNullable<T> | U>;
  orElse<U>(other: Value<U>): Template<NonNullable<T> | U>;
}

/** The names of members of a value, whatever of a union it is. */
export type KeyOf<T> = T extends readonly unknown[]
  ? number
  : T extends object
    ? keyof T & string
    : never;

/** A member as the engine reads it: null where there is none. */
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

/** A path: its members are paths, too. What may be missing has null in its type, and so have its members. */
export type Ref<T> = 0 extends 1 & T
  ? Untyped
  : PathMethods<T> & {
      readonly [K in Exclude<KeyOf<T>, keyof PathMethods<unknown>>]: Ref<MemberOf<T, K>>;
    };

// ---------------------------------------------------------------- conditions

/** How strongly the parts of a text hold together: an operand that holds less gets parentheses. */
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

  // The interface has the types of the operands: here every one of them is something that has a text.

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

  /** The engine takes what is no plain value behind `==` for a text, unless it is in parentheses. */
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

  /** Chains of `&&`, `||`, `+` and `*` are read from the left, comparisons not at all. */
  #binary<U>(operator: string, strength: Strength, other: unknown): Expression<U> {
    const isLogical = strength === 'and' || strength === 'or';
    const left = held(this, strength === 'compared' ? 'sum' : strength);
    const right = held(pieceOf(other), isLogical ? strength : NEXT[strength]);
    return new Expression({ text: `${left} ${operator} ${right}`, strength });
  }
}

/** What the right side has to hold like. */
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

/** A word without a dot is a text to the right of `==`. */
const isWord = (text: string) =>
  /^[A-Za-z_]\w*$/.test(text) && !['true', 'false', 'null'].includes(text);

/** `name(a, b)`: the functions of conditions. */
export function call<T>(name: string, given: readonly unknown[]): Expression<T> {
  const args = given.map((arg) => pieceOf(arg).text).join(', ');
  return new Expression({ text: `${name}(${args})`, strength: 'whole' });
}

/** `test ? yes : no`. */
export function choose(test: unknown, yes: unknown, no: unknown): Expression<Untyped> {
  const [condition, first, second] = [test, yes, no].map((part) => held(pieceOf(part), 'or'));
  return new Expression({ text: `${condition} ? ${first} : ${second}`, strength: 'choice' });
}

/** The text of a condition. @throws TypeError for what is none */
export function conditionText(condition: unknown): string {
  return pieceOf(condition).text;
}

/** @throws TypeError for what cannot stand in a condition */
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
  throw new TypeError(`${describe(given)} cannot stand in a condition`);
}

/** The language has two quotes and no escapes: a text with both is put together of several. */
function textPiece(text: string): Piece {
  const parts = text.match(/[^"]+|"+/g) ?? [''];
  const isMixed = text.includes('"') && text.includes("'");
  if (!isMixed) return { text: quoted(text), strength: 'whole' };
  return { text: parts.map(quoted).join(' + '), strength: 'sum' };
}

/** @throws TypeError for a text with both quotes */
export function quoted(text: string): string {
  if (!text.includes('"')) return `"${text}"`;
  if (!text.includes("'")) return `'${text}'`;
  throw new TypeError(`a text with both quotes cannot stand in a template: ${text}`);
}

// ---------------------------------------------------------------- paths

/** The paths of the proxies that stand for them. */
const PATHS = new WeakMap<object, readonly string[]>();

/** The path that a `Ref` stands for; undefined for anything else. */
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

/** `then` is none: a path that an async function returns would be waited for. */
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

/** Text that is made here has no values yet. */
function coerced(symbol: symbol, path: readonly string[]): undefined {
  if (symbol !== Symbol.toPrimitive) return undefined;
  throw new TypeError(`${path.join('.')} has no value yet: write the text as t\`…\``);
}

/** Letters, digits and `_`: any other character means something in the language of conditions. */
const CONDITION_WORD = /^[\w\u0080-\uffff]+$/;
/** In a template fewer characters do. */
const TEMPLATE_WORD = /^[^\s.|,(){}[\]"'=<>!&+*/?]+$/;

/** @throws TypeError when a name cannot be written in a condition */
function conditionPath(path: readonly string[]): string {
  const odd = path.find((name) => !CONDITION_WORD.test(name));
  if (odd === undefined) return unshadowed(path);
  throw new TypeError(
    `the name ${JSON.stringify(odd)} cannot stand in a condition: ${path.join('.')}`,
  );
}

/**
 * Conditions look for a path among the members of the input first, and then by its root: with an input that has a member
 * `data`, as events of others often do, `data.type` would be that of this member. So the sections have their long
 * names here.
 */
function unshadowed(path: readonly string[]): string {
  const [root = ''] = path;
  if (root === 'data' || root === 'config') return `context.${path.join('.')}`;
  return root === 'instance_id' ? `runtime.${path.join('.')}` : path.join('.');
}

/** @throws TypeError when a name cannot be written in a template */
function templatePath(path: readonly string[]): string {
  const odd = path.find((name) => !TEMPLATE_WORD.test(name));
  if (odd === undefined) return path.join('.');
  throw new TypeError(
    `the name ${JSON.stringify(odd)} cannot stand in a template: ${path.join('.')}`,
  );
}

// ---------------------------------------------------------------- templates

/** What stands between two braces. */
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

  /** What stands in for null, another path or a value. */
  orElse<const U extends Primitive>(other: U): Template<NonNullable<T> | U>;
  orElse<U>(other: Value<U>): Template<NonNullable<T> | U>;
  orElse(other: unknown): Template<Untyped> {
    return this.piped(fallbackText(other));
  }

  /** The one chain that it is, with one more part. @throws TypeError for text around it */
  piped<U>(part: string): Template<U> {
    const [only, ...others] = this.parts;
    if (only === undefined || typeof only === 'string' || others.length > 0) {
      throw new TypeError(
        'a text has no filters and no fallbacks: they belong to the values in it',
      );
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

/** A value as an argument or fallback in a template. @throws TypeError for what is no plain value */
export function literalText(value: unknown): string {
  if (typeof value === 'string') return quoted(value);
  if (value === null || typeof value === 'boolean' || Number.isFinite(value)) return String(value);
  throw new TypeError(`${describe(value)} cannot stand in a template`);
}

/** @throws TypeError for what no template can give */
export function chainOf(value: unknown): Template<Untyped> {
  if (value instanceof Template) return value;
  if (value instanceof Raw) return new Template([{ chain: value.text }]);
  const path = pathOf(value);
  if (path !== undefined) return new Template([{ chain: templatePath(path) }]);
  throw new TypeError(`${describe(value)} cannot stand in a template`);
}

/** `name(path)`, which stands where a path does. @throws TypeError for what is no path */
export function ofPath<T>(name: string, value: unknown): Template<T> {
  const path = pathOf(value);
  if (path === undefined) throw new TypeError(`${name} takes a path, not ${describe(value)}`);
  return new Template([{ chain: `${name}(${templatePath(path)})` }]);
}

/** What a text may hold: null would be the word `null`. */
export type InText = string | number | boolean | Value<object | string | number | boolean>;

/**
 * A text with values in it: ``t`Order ${input.id}` ``.
 *
 * @throws TypeError for braces of its own, and for a text that is one value and nothing else
 */
export function t(texts: TemplateStringsArray, ...values: readonly InText[]): Template<string> {
  const parts = texts.flatMap((text, at) => {
    const value = at < values.length ? partsOf(values[at]) : [];
    return text === '' ? value : [plain(text), ...value];
  });
  const isWhole = parts.length === 1 && typeof parts[0] === 'object';
  if (isWhole) throw new TypeError('a text of one value is that value: leave t`…` out');
  return new Template(parts);
}

function partsOf(value: unknown): readonly (string | Chain)[] {
  const isPlain = typeof value !== 'object';
  return isPlain ? [plain(String(value))] : chainOf(value).parts;
}

/** @throws TypeError for text that the engine would take for a template */
function plain(text: string): string {
  if (!text.includes('{{')) return text;
  throw new TypeError(`braces in a text would be a template: ${text}`);
}

/** What the engine can read and these functions cannot say; its text is taken as it stands. */
class Raw<T> implements Value<T>, Term<T> {
  declare readonly [VALUE]: T;
  declare readonly [TERM]: T;
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Text in the engine's own language, without braces: `raw<number>('data.a.b | round(2)')`. Nothing checks it. */
export function raw<T>(text: string): Value<T> & Term<T> {
  return new Raw<T>(text);
}

/**
 * JSON with the texts of the templates in it; members that are undefined are left out.
 *
 * @throws TypeError for braces in plain text, and for what is no JSON
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
  if (!isPlainObject(value)) throw new TypeError(`${describe(value)} is no JSON`);
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
