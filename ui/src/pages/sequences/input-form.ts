/**
 * Generates a form from a JSON Schema: its fields, their initial values, and checks that need no request. What no field
 * can represent is edited as JSON. Pure.
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
  /** Name of the member; list items get an index instead. */
  readonly name: string;
  readonly label: string;
  readonly hint: string;
  readonly isRequired: boolean;
  /** The initial value; undefined if there is none. */
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

/** Deeper structures are edited as JSON. */
const DEPTH_MAX = 5;

/**
 * The fields of an object that matches the schema.
 * @param schema `input_schema` of a sequence, as the engine accepted it: references are local and not recursive
 * @returns undefined if no fields can be made from the schema
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

/** Schemas with these keywords express more than a single field can. */
const COMBINED = ['anyOf', 'oneOf', 'allOf', 'not', 'if', 'prefixItems', 'dependentSchemas'];

function membersOf(root: JsonObject, schema: JsonObject, depth: number): FormField[] {
  const { properties, required } = schema;
  const names = new Set(Array.isArray(required) ? required : []);
  return Object.entries(isObject(properties) ? properties : {}).map(([name, member]) =>
    fieldOf(root, member, name, names.has(name), depth + 1),
  );
}

/** Without the alternative null: an empty field is omitted. */
function typeOf(schema: JsonObject): Json | undefined {
  const { type } = schema;
  if (!Array.isArray(type)) return type ?? (isObject(schema.properties) ? 'object' : undefined);
  const others = type.filter((one) => one !== 'null');
  return others.length === 1 ? others[0] : undefined;
}

/** The target of a reference, merged with its siblings. */
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

/** The initial input: defaults, and objects that are required or contain defaults. */
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

/** The object with the member changed, or removed for undefined. */
export function withMember(of: JsonObject, name: string, value: Json | undefined): JsonObject {
  if (value !== undefined) return { ...of, [name]: value };
  const { [name]: _, ...rest } = of;
  return rest;
}

/** Why a value is invalid, as far as the form can tell; undefined for an absent value. */
export function doubtOf(field: FormField, value: Json | undefined): string | undefined {
  if (value === undefined) return undefined;
  if (field.kind === 'number') {
    return typeof value === 'number' ? numberDoubt(value, field.limits) : 'Must be a number';
  }
  if (field.kind !== 'text' || typeof value !== 'string') return undefined;
  const { min, max } = field.limits;
  const length = [...value].length;
  if (min !== undefined && length < min) return `Must have at least ${min} characters`;
  if (max !== undefined && length > max) return `Must have at most ${max} characters`;
  return undefined;
}

/** The object in a text; undefined if it is invalid. */
export function objectIn(text: string | undefined): JsonObject | undefined {
  const read = readJson(text ?? '');
  return read.wrong === undefined && isObject(read.value) ? read.value : undefined;
}

/** Why the text is not a valid object, in the engine's words if it would reject the text. */
export function objectDoubt(text: string): string | undefined {
  if (objectIn(text) !== undefined) return undefined;
  const read = readJson(text);
  return read.wrong === undefined || read.at === undefined
    ? 'This is not a JSON object yet.'
    : `The definition is not valid: ${read.wrong}`;
}

export interface InputRefusal {
  /** Such as `address.lines[0]`; empty for the input as a whole. */
  readonly path: string;
  readonly message: string;
}

/** The field that the engine's message about an input refers to; undefined for other messages. */
export function inputRefusalOf(message: string): InputRefusal | undefined {
  const [, path = '', said] = /context\.data(?: (\S+))? (must (?:.|\n)*)$/.exec(message) ?? [];
  if (said === undefined) return undefined;
  const missing = /^must have required property '(.*)'$/.exec(said)?.[1];
  if (missing === undefined) return { path, message: said };
  return { path: joined(path, missing), message: 'is required' };
}

/** The path of a member, or of a list item. */
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
