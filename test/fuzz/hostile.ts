/**
 * What is wrong with a request: every single violation of its schema, which must be refused, and
 * values that are hostile without being wrong, which must do no harm.
 */

import { conforms, deref, type Parameter, type Schema } from '../helpers/contract.js';
import { words } from '../helpers/table.js';

/** A value with exactly one thing wrong. */
export interface Violation {
  /** Where and what, such as `/blocks/0/id: too long`. */
  readonly what: string;
  readonly value: unknown;
}

/** Longer texts and lists cost more than they tell. */
const LENGTH_MAX = 20_000;
const ITEMS_MAX = 1_100;
const WRONG_TYPES: readonly unknown[] = [null, true, 12.5, 'text', [], {}];
const WRONG_FORMATS: Readonly<Record<string, readonly string[]>> = {
  uuid: ['', 'not-a-uuid', '0192f0c1-6b1a-7c3e-9d41-2f6a8b0c1d2', "' or 1=1 --"],
  'date-time': [
    ...['', 'yesterday', '2031-02-30T00:00:00Z', '2031-05-01T10:00:00', '99999-01-01T00:00:00Z'],
  ],
  date: ['2031-13-01', '2031-02-29', 'monday'],
  'time-zone': ['Mars/Olympus', '+02:00', '__proto__', ''],
};

/** Every violation of a body, one at a time. */
export function violationsOf(schema: Schema, body: unknown): Violation[] {
  const found: Violation[] = [];
  collect(schema, body, '', (what, value) => found.push({ what, value }));
  return found;
}

type Report = (what: string, value: unknown) => void;

function collect(given: Schema, value: unknown, place: string, report: Report): void {
  const schema = branchOf(deref<Schema>(given), value);
  for (const [what, wrong] of wrongValues(schema, value)) {
    if (isWrong(schema, wrong)) report(`${place}: ${what}`, wrong);
  }
  if (Array.isArray(value)) collectItems(schema, value, place, report);
  else if (typeof value === 'object' && value !== null) {
    collectFields(schema, value as Record<string, unknown>, place, report);
  }
}

/** Checks of formats that only the server knows are believed to be as their words say. */
function isWrong(schema: Schema, wrong: unknown): boolean {
  if (!conforms(schema, wrong)) return true;
  return schema.format === 'time-zone' && typeof wrong === 'string';
}

function collectItems(schema: Schema, items: unknown[], place: string, report: Report): void {
  for (const [index, item] of items.entries()) {
    collect((schema.items as Schema | undefined) ?? {}, item, `${place}/${index}`, (what, wrong) =>
      report(what, items.with(index, wrong)),
    );
  }
}

function collectFields(
  schema: Schema,
  object: Readonly<Record<string, unknown>>,
  place: string,
  report: Report,
): void {
  for (const name of (schema.required as string[] | undefined) ?? []) {
    const { [name]: _, ...rest } = object;
    report(`${place}/${name}: missing`, rest);
  }
  for (const [name, property] of Object.entries((schema.properties as object | undefined) ?? {})) {
    if (!Object.hasOwn(object, name)) continue;
    collect(property as Schema, object[name], `${place}/${name}`, (what, wrong) => {
      report(what, { ...object, [name]: wrong });
    });
  }
}

/** Of a tagged union, the branch of the value's tag. */
function branchOf(schema: Schema, value: unknown): Schema {
  const branches = schema.oneOf as Schema[] | undefined;
  if (branches === undefined) return schema;
  return deref<Schema>(branches.find((branch) => conforms(branch, value)) ?? schema);
}

function* wrongValues(schema: Schema, value: unknown): Generator<[string, unknown]> {
  for (const wrong of WRONG_TYPES) yield ['of a wrong type', wrong];
  if (schema.enum !== undefined || schema.const !== undefined)
    yield ['no such word', 'no-such-word'];
  const { minimum, exclusiveMinimum, maximum, maxLength, minItems, maxItems } = schema as Readonly<
    Record<string, number | undefined>
  >;
  if (minimum !== undefined) yield ['too small', minimum - 1];
  if (exclusiveMinimum !== undefined) yield ['too small', exclusiveMinimum];
  if (maximum !== undefined && Number.isSafeInteger(maximum + 1)) yield ['too large', maximum + 1];
  if (maxLength !== undefined && maxLength < LENGTH_MAX) {
    yield ['too long', 'x'.repeat(maxLength + 1)];
    yield ['too long', '\u{1f600}'.repeat(maxLength + 1)];
  }
  if (schema.pattern !== undefined) yield ['blank', ' \t '];
  for (const text of WRONG_FORMATS[String(schema.format)] ?? []) yield ['of a wrong format', text];
  if (minItems !== undefined && minItems > 0) yield ['too few items', []];
  if (maxItems !== undefined && maxItems < ITEMS_MAX && Array.isArray(value)) {
    yield ['too many items', new Array(maxItems + 1).fill(value[0] ?? 'x')];
  }
}

/** Texts that a parameter of the path or the query must be refused for. */
export function wrongTexts({ schema }: Parameter): string[] {
  const found: string[] = [];
  const types = [schema.type ?? []].flat();
  if (types.includes('integer')) found.push('x', '1.5', ' 1', '0x10', '1e2', '--1');
  if (types.includes('boolean')) found.push('maybe', 'TRUE', '2');
  const { minimum, maxLength } = schema as Readonly<Record<string, number | undefined>>;
  if (minimum !== undefined) found.push(String(minimum - 1));
  if (maxLength !== undefined && maxLength < 4_096) found.push('x'.repeat(maxLength + 1));
  if (schema.pattern !== undefined) found.push(' ');
  const words = (schema.items as Schema | undefined) ?? schema;
  if (words.enum !== undefined) found.push('no-such-word');
  if (schema.format === 'uuid') found.push('not-a-uuid', "' or 1=1 --", '0');
  return found;
}

// ---------------------------------------------------------------- hostile, not wrong

/** JSON that `JSON.stringify` cannot write: put into the text in place of a mark. */
const RAW_JSON: readonly string[] = [
  ...words(String.raw`
    1e400 -1e400 9007199254740993 1e-400 -0 "\u0000" "\ud800" "\udfff\ud800" {"\u0000":1}
    {"\ud800":1} {"__proto__":{"polluted_by_fuzz":true}}
    {"constructor":{"prototype":{"polluted_by_fuzz":true}}} {"a":1,"a":2}
    {"toString":null,"valueOf":1,"hasOwnProperty":false,"then":{}} {"toJSON":"x","length":-1}
  `),
  `1${'0'.repeat(500)}`,
  `${'['.repeat(300)}${']'.repeat(300)}`,
  `${'{"a":'.repeat(300)}1${'}'.repeat(300)}`,
  `${'['.repeat(250)}${']'.repeat(250)}`,
  `{"${'k'.repeat(70_000)}":1}`,
];

export const HOSTILE_TEXTS: readonly string[] = [
  ...words(`
    {{context.data.__proto__.polluted_by_fuzz}} {{context}} ../../../../etc/passwd
    <script>alert(1)</script> __proto__ constructor prototype.polluted_by_fuzz
    __proto__.polluted_by_fuzz toString null undefined NaN true -1 1e400
    9223372036854775808 infinity 2031-05-01T10:00:00Z 00000000-0000-0000-0000-000000000000
  `),
  ...['', ' ', '\u0000', 'a\u0000b', '\u{1f600}\u{1f468}\u200d\u{1f469}', '\u202eabc\u202c'],
  ...['\ufeff', '\ufffe\uffff', '\u0301', "'; drop table instances; --", "' or '1'='1"],
  '$1 $$ %s %n %x {} $' + '{7*7} {{7*7}} #{7*7}',
  '\r\nx-injected: 1',
  'x'.repeat(5_000),
  '\u{10ffff}'.repeat(300),
];

/** Parts of a path or query as they stand on the line. */
export const HOSTILE_ENCODED: readonly string[] = [
  ...words(`
    % %0 %zz %00 %2e%2e ..%2f..%2fetc%2fpasswd %2f %252e%252e %c0%80 %ed%a0%80 %ff%fe
    %u0041 __proto__ constructor %5f%5fproto%5f%5f %27%20or%201%3d1-- %0d%0ax-injected:%201
    %F0%9F%98%80 %E2%80%AE ; @ * null
  `),
  `${'a'.repeat(3_000)}`,
];

export const HOSTILE_QUERIES: readonly string[] = [
  ...words(`
    &&&=&= __proto__=1&constructor=2 __proto__[polluted_by_fuzz]=1
    metadata.__proto__=x&metadata.constructor=y metadata.=x limit=1&limit=2
    offset=9007199254740993 offset=99999999999999999999999 limit=0 limit=1000000000
    n=50&n=50 tenant_id=&namespace= cursor=e30 cursor=%00 state=,,, delivered=1&delivered=0
    a=%ff a=% %00=1 a=%u0041 tenant_id=%F0%9F%98%80 namespace=%27%3B--
  `),
  Array.from({ length: 20 }, (_, index) => `metadata.k${index}=v`).join('&'),
  `a=${'x'.repeat(8_000)}`,
];

/** Bodies that are no JSON, or not the JSON of any operation. */
export const MALFORMED_BODIES: readonly (string | Buffer)[] = [
  ...['{', '{"a":1,}', "{'a':1}", '{"a":1} {"b":2}', 'NaN', '[1,2', '"unterminated', '\u0000'],
  ...['{"a":01}', '{"a":+1}', '{"a":"\t"}', '\ufeff{', '// comment', 'a=1&b=2'],
  Buffer.from([0xff, 0xfe, 0x7b, 0x7d]),
  Buffer.from([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d]),
  Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]),
];

/** The place of a value within a body, as keys from the outside. */
type Place = readonly (string | number)[];

const POISON: readonly string[] = [...RAW_JSON, ...HOSTILE_TEXTS.map((it) => JSON.stringify(it))];
const INHERITED = ['constructor', '__proto__', 'toString', 'valueOf', 'hasOwnProperty'];
const POISONED_KEYS = ['__proto__', 'constructor', 'prototype', '\u0001', 'x'.repeat(300)];

/**
 * A body with one hostile value or key somewhere in it, as text.
 *
 * @param pick chooses one of a list
 */
export function hostileBody(body: unknown, pick: <T>(list: readonly T[]) => T): string {
  const key = pick([undefined, pick(POISONED_KEYS)]);
  const places = placesIn(body);
  const texts = places.filter((place) => typeof valueAt(body, place) === 'string');
  // Names that every object has are found by careless look-ups of a word, and only there.
  if (texts.length > 0 && pick([true, false, false])) {
    const marked = replaceAt(body, pick(texts), undefined);
    return JSON.stringify(marked).replace(RAW_MARK, () => JSON.stringify(pick(INHERITED)));
  }
  const marked = replaceAt(body, pick(places), key);
  const poison = pick(POISON);
  return JSON.stringify(marked).replace(RAW_MARK, () => poison);
}

const RAW_MARK = '"@@raw@@"';

function placesIn(value: unknown, place: Place = []): Place[] {
  if (typeof value !== 'object' || value === null) return [place];
  const inner = Object.entries(value).flatMap(([key, member]) => placesIn(member, [...place, key]));
  return [place, ...inner];
}

const valueAt = (value: unknown, place: Place): unknown =>
  place.reduce((at, key) => (at as Record<string, unknown>)[key], value);

/** A copy with the mark at the place, or under a key of the object at that place. */
function replaceAt(value: unknown, place: Place, key: string | undefined): unknown {
  const [first, ...rest] = place;
  if (first === undefined) {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    if (key === undefined || !isObject) return '@@raw@@';
    return Object.fromEntries([...Object.entries(value), [key, '@@raw@@']]);
  }
  if (Array.isArray(value))
    return value.with(Number(first), replaceAt(value[Number(first)], rest, key));
  const object = value as Record<string, unknown>;
  return Object.fromEntries(
    Object.entries(object).map(([name, member]) => [
      name,
      name === first ? replaceAt(member, rest, key) : member,
    ]),
  );
}
