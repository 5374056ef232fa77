/**
 * A form from a JSON Schema: which fields it has, what they begin with, and what can be said of their values before
 * the engine is asked. What no field can show is left to a text of JSON. Pure.
 */

import { wordsOf } from '../../lib/format.ts';
import { readJson } from '../../lib/json-text.ts';
import { type NumberLimits, numberDoubt } from '../../lib/numbers.ts';

export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [name: string]: Json };
export type JsonObject = { readonly [name: string]: Json };

interface FieldBase {
  /** Of the member; of an item of a list a number is put in its place. */
  readonly name: string;
  readonly label: string;
  readonly hint: string;
  readonly isRequired: boolean;
  /** What it begins with; undefined: nothing. */
  readonly initial: Json | undefined;
}

export type TextFormat = 'text' | 'long' | 'date' | 'date-time' | 'email' | 'url';

export type FormField = FieldBase &
  (
    | { readonly kind: 'text'; readonly format: TextFormat; readonly limits: TextLimits }
    | { readonly kind: 'number'; readonly limits: NumberLimits }
    | { readonly kind: 'yes-no' }
    | { readonly kind: 'choice'; readonly choices: readonly Json[] }
    | { readonly kind: 'group'; readonly fields: readonly FormField[] }
    | { readonly kind: 'list'; readonly item: FormField }
    | { readonly kind: 'json' }
  );

export interface TextLimits {
  readonly min: number | undefined;
  readonly max: number | undefined;
}

/** Deeper ones are left to a text of JSON. */
const DEPTH_MAX = 5;

/**
 * The fields of an object that conforms to the schema.
 * @param schema `input_schema` of a sequence, as the engine accepted it: references lead to places within it, and
 *   never to themselves
 * @returns undefined where the schema says nothing that fields could be made of
 */
export function fieldsOf(schema: JsonObject | undefined): readonly FormField[] | undefined {
  if (schema === undefined) return undefined;
  const root = fieldOf(schema, schema, '', true, 0);
  return root.kind === 'group' && root.fields.length > 0 ? root.fields : undefined;
}

function fieldOf(
  root: JsonObject,
  given: Json | undefined,
  name: string,
  isRequired: boolean,
  depth: number,
): FormField {
  const schema = resolved(root, given);
  const base: FieldBase = {
    name,
    label: textOf(schema.title) ?? wordsOf(name),
    hint: textOf(schema.description) ?? '',
    isRequired,
    initial: schema.default ?? schema.const,
  };
  if (Array.isArray(schema.enum)) return { ...base, kind: 'choice', choices: schema.enum };
  if (schema.const !== undefined) return { ...base, kind: 'choice', choices: [schema.const] };
  if (COMBINED.some((keyword) => schema[keyword] !== undefined)) return { ...base, kind: 'json' };
  switch (typeOf(schema)) {
    case 'string':
      return {
        ...base,
        kind: 'text',
        format: formatOf(schema),
        limits: { min: numberOf(schema.minLength), max: numberOf(schema.maxLength) },
      };
    case 'integer':
    case 'number':
      return {
        ...base,
        kind: 'number',
        limits: { ...limitsOf(schema), isInteger: typeOf(schema) === 'integer' },
      };
    case 'boolean':
      return { ...base, kind: 'yes-no' };
    case 'object': {
      const fields = depth < DEPTH_MAX ? membersOf(root, schema, depth) : [];
      return fields.length === 0 ? { ...base, kind: 'json' } : { ...base, kind: 'group', fields };
    }
    case 'array': {
      const item = fieldOf(root, schema.items, '', true, depth + 1);
      const isShown = isObject(schema.items) && item.kind !== 'json' && depth < DEPTH_MAX;
      return isShown ? { ...base, kind: 'list', item } : { ...base, kind: 'json' };
    }
    default:
      return { ...base, kind: 'json' };
  }
}

/** They say more than one field can ask for. */
const COMBINED = ['anyOf', 'oneOf', 'allOf', 'not', 'if', 'prefixItems', 'dependentSchemas'];

function membersOf(root: JsonObject, schema: JsonObject, depth: number): FormField[] {
  const { properties, required } = schema;
  const names = new Set(Array.isArray(required) ? required : []);
  return Object.entries(isObject(properties) ? properties : {}).map(([name, member]) =>
    fieldOf(root, member, name, names.has(name), depth + 1),
  );
}

/** Without the alternative null: what is left empty is left out. */
function typeOf(schema: JsonObject): Json | undefined {
  const { type } = schema;
  if (!Array.isArray(type)) return type ?? (isObject(schema.properties) ? 'object' : undefined);
  const others = type.filter((one) => one !== 'null');
  return others.length === 1 ? others[0] : undefined;
}

/** What a reference leads to, with what stands beside it. */
function resolved(root: JsonObject, given: Json | undefined): JsonObject {
  let schema = isObject(given) ? given : {};
  for (let steps = 0; typeof schema.$ref === 'string' && steps < REFERENCES_MAX; steps++) {
    const { $ref, ...beside } = schema;
    schema = { ...targetOf(root, $ref as string), ...beside };
  }
  return schema;
}

const REFERENCES_MAX = 20;

function targetOf(root: JsonObject, reference: string): JsonObject {
  let at: Json | undefined = root;
  for (const part of reference.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    at = (at as { readonly [key: string]: Json } | undefined)?.[key];
  }
  return isObject(at) ? at : {};
}

const FORMATS: Readonly<Record<string, TextFormat>> = {
  date: 'date',
  'date-time': 'date-time',
  email: 'email',
  uri: 'url',
};

function formatOf({ format, maxLength }: JsonObject): TextFormat {
  const known = typeof format === 'string' ? FORMATS[format] : undefined;
  return known ?? ((numberOf(maxLength) ?? 0) > 200 ? 'long' : 'text');
}

function limitsOf(schema: JsonObject): NumberLimits {
  return {
    min: numberOf(schema.minimum),
    max: numberOf(schema.maximum),
    above: numberOf(schema.exclusiveMinimum),
    below: numberOf(schema.exclusiveMaximum),
  };
}

// ---------------------------------------------------------------- values

/** What a form begins with: defaults, and groups that must be there or have defaults in them. */
export function initialOf(fields: readonly FormField[]): JsonObject {
  return Object.fromEntries(
    fields.flatMap((field) => {
      const value = initialValueOf(field);
      return value === undefined ? [] : [[field.name, value]];
    }),
  );
}

export function initialValueOf(field: FormField): Json | undefined {
  if (field.initial !== undefined) return field.initial;
  if (field.kind === 'yes-no' && field.isRequired) return false;
  if (field.kind === 'list' && field.isRequired) return [];
  if (field.kind !== 'group') return undefined;
  const inner = initialOf(field.fields);
  return field.isRequired || Object.keys(inner).length > 0 ? inner : undefined;
}

/** The object with another value of a member; without the member for undefined. */
export function withMember(of: JsonObject, name: string, value: Json | undefined): JsonObject {
  if (value !== undefined) return { ...of, [name]: value };
  const { [name]: _, ...rest } = of;
  return rest;
}

/** What is wrong with a value, as far as a form can tell; undefined also of one that is not there. */
export function doubtOf(field: FormField, value: Json | undefined): string | undefined {
  if (value === undefined) return undefined;
  if (field.kind === 'number') {
    return typeof value === 'number' ? numberDoubt(value, field.limits) : 'Must be a number';
  }
  if (field.kind !== 'text' || typeof value !== 'string') return undefined;
  const { min, max } = field.limits;
  const length = [...value].length;
  if (min !== undefined && length < min) return `At least ${min} characters`;
  if (max !== undefined && length > max) return `At most ${max} characters`;
  return undefined;
}

/** The object that a text is; undefined when it is none, or the engine would refuse it. */
export function objectIn(text: string | undefined): JsonObject | undefined {
  const read = readJson(text ?? '');
  return read.wrong === undefined && isObject(read.value) ? read.value : undefined;
}

/** Why it is none: in the words of the engine where it would be refused, and not only not be read. */
export function objectDoubt(text: string): string | undefined {
  if (objectIn(text) !== undefined) return undefined;
  const read = readJson(text);
  return read.wrong === undefined || read.at === undefined
    ? 'This is no object of JSON that can be stored yet.'
    : `It cannot be stored: ${read.wrong}`;
}

export interface InputRefusal {
  /** Such as `address.lines[0]`; empty for the input as a whole. */
  readonly path: string;
  readonly message: string;
}

/** What the engine's refusal of an input is about; undefined when it is about something else. */
export function inputRefusalOf(message: string): InputRefusal | undefined {
  const [, path = '', said] = /context\.data(?: (\S+))? (must (?:.|\n)*)$/.exec(message) ?? [];
  if (said === undefined) return undefined;
  const missing = /^must have required property '(.*)'$/.exec(said)?.[1];
  if (missing === undefined) return { path, message: said };
  return { path: joined(path, missing), message: 'must be there' };
}

/** The path of a member, or of an item of a list. */
export function joined(path: string, member: string | number): string {
  if (typeof member === 'number') return `${path}[${member}]`;
  return path === '' ? member : `${path}.${member}`;
}

// ---------------------------------------------------------------- parts

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const textOf = (value: Json | undefined) => (typeof value === 'string' ? value : undefined);
const numberOf = (value: Json | undefined) => (typeof value === 'number' ? value : undefined);
