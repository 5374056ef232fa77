/**
 * One example of each named schema, derived from the schema: a required member has its value in the story
 * (`example-values.ts`), the example of its own schema, its default, or the plainest value of its type. Pure.
 */

import type { TSchema } from '@sinclair/typebox';
import { isJsonObject, type JsonValue } from '../src/base/json.js';
import {
  AT,
  EXAMPLE_DIGEST,
  EXAMPLE_IDS,
  EXAMPLES,
  exampleId,
  FIELDS,
  PATH_IDS,
} from './example-values.js';

/** Of a named schema; undefined when a required member has no example. */
export function exampleOf(schema: TSchema): JsonValue | undefined {
  const name = schema.$id ?? '';
  const given = EXAMPLES[name] ?? {};
  const isWhole = schema.oneOf !== undefined || !isJsonObject(given);
  return isWhole ? given : exampleObject(schema, name, given);
}

/** Of a parameter in a path or a query. */
export function parameterExample(name: string, path: string): JsonValue | undefined {
  if (name !== 'id') return FIELDS[name] ?? idOf(name);
  const resource = /([\w-]+)\/\{id\}/.exec(path)?.[1] ?? '';
  const found = PATH_IDS[resource] ?? resource.replace(/s$/, '');
  return found in EXAMPLE_IDS ? exampleId(found) : found;
}

function exampleObject(
  schema: TSchema,
  owner: string,
  given: Readonly<Record<string, JsonValue>> = {},
): JsonValue | undefined {
  const required = new Set<string>(schema.required);
  const found: Record<string, JsonValue> = {};
  for (const [name, inner] of Object.entries<TSchema>(schema.properties ?? {})) {
    if (!(name in given) && !required.has(name)) continue;
    const value = name in given ? given[name] : memberExample(name, inner, owner);
    if (value === undefined) return undefined;
    found[name] = value;
  }
  return found;
}

/** @param owner the name of the schema with the member; '' inside others */
function memberExample(name: string, schema: TSchema, owner: string): JsonValue | undefined {
  const told = FIELDS[name];
  if (told !== undefined && admits(schema, told)) return told;
  if (schema.$id !== undefined) return exampleOf(schema);
  if (schema.default !== undefined) return schema.default;
  if (mayBeNull(schema)) return null;
  if (schema.const !== undefined || schema.enum !== undefined)
    return schema.const ?? schema.enum[0];
  if (schema.format === 'date-time') return AT;
  if (schema.format === 'uuid') return name === 'id' ? exampleId(nounOf(owner)) : idOf(name);
  if (schema['x-check'] === 'plain-name') return 'archive';
  if (SHA256.test(schema.pattern)) return EXAMPLE_DIGEST;
  if (schema.type === 'array') return listExample(name, schema.items, owner);
  if (schema.type === 'object') return exampleObject(schema, owner);
  return schema.minimum ?? PLAINEST[schema.type] ?? {};
}

const SHA256 = /\{64\}\$$/;

const mayBeNull = ({ type, enum: words, anyOf }: TSchema): boolean =>
  type?.includes('null') || words?.includes(null) || (anyOf?.some(mayBeNull) ?? false);

const PLAINEST: Readonly<Record<string, JsonValue>> = {
  string: 'text',
  integer: 1,
  number: 1,
  boolean: false,
};

/** One item where it is an object or a known text, otherwise none. */
function listExample(name: string, items: TSchema, owner: string): JsonValue {
  const singular = name.replace(/s$/, '');
  if (items.properties === undefined && FIELDS[singular] === undefined) return [];
  const item = memberExample(singular, items, owner);
  return item === undefined ? [] : [item];
}

/** `from_sequence_id` has the id of the story's sequence. */
function idOf(name: string): string {
  return exampleId(name.replace(/_id$/, '').split('_').at(-1) ?? name);
}

/** What an object of the schema is, by the first name of an id that the schema's name contains. */
function nounOf(owner: string): string {
  const lower = owner.toLowerCase();
  return Object.keys(EXAMPLE_IDS).find((noun) => lower.includes(noun)) ?? owner;
}

/** Whether the value has the type of the schema, and is one of its words. */
function admits(schema: TSchema, value: JsonValue): boolean {
  if (schema.const !== undefined) return schema.const === value;
  if (schema.enum !== undefined) return schema.enum.includes(value);
  if (schema.anyOf !== undefined) return schema.anyOf.some((one: TSchema) => admits(one, value));
  if (schema.type === undefined) return true;
  const type = Array.isArray(value) ? 'array' : typeof value;
  const types: readonly unknown[] = [schema.type].flat();
  if (type === 'array' && types.includes('array')) {
    return (value as JsonValue[]).every((item) => admits(schema.items, item));
  }
  if (type === 'number') return types.includes('number') || types.includes('integer');
  return types.includes(type) && (type !== 'object' || schema.required === undefined);
}
