/** JSON Schemas of users for inputs and outputs: which are accepted, and their compiled checks. */

import { Ajv2020 } from 'ajv/dist/2020.js';
import { Ajv, type ValidateFunction } from 'ajv/dist/ajv.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../src/base/json.js';
import { isCalendarDay, isTimestamp, isUuid } from './formats.js';
import { fieldPath } from './messages.js';
import {
  examineSchema,
  USER_SCHEMA_BYTES_MAX,
  USER_SCHEMA_DEPTH_MAX,
  USER_SCHEMA_LOOP_FROM,
  USER_SCHEMA_PARTS_MAX,
} from './user-schema-rules.js';

type MetaSchema = { readonly name: string; readonly create: (meta: boolean) => Ajv };

const META_SCHEMAS: readonly MetaSchema[] = [
  {
    name: 'json-schema.org/draft/2020-12/schema',
    create: (meta) => new Ajv2020(userOptions(meta)),
  },
  { name: 'json-schema.org/draft-07/schema', create: (meta) => new Ajv(userOptions(meta)) },
];

/** One checker per draft and thread: compiling a meta-schema takes 50 ms. */
const metaCheckers = new Map<string, Ajv>();

/**
 * Why a user's `input_schema` or `output_schema` is refused, as the end of a sentence; undefined if `compileUserSchema`
 * accepts it quickly. Compiles nothing and takes microseconds.
 */
export function checkUserSchema(schema: JsonObject): string | undefined {
  return findTooLarge(schema) ?? findProblem(schema);
}

/** Checked first, and only for new schemas: stored ones were checked against earlier limits. */
function findTooLarge(schema: JsonObject): string | undefined {
  if (JSON.stringify(schema).length > USER_SCHEMA_BYTES_MAX) {
    return `must have at most ${USER_SCHEMA_BYTES_MAX} bytes`;
  }
  const { parts, depth } = examineSchema(schema);
  if (parts > USER_SCHEMA_PARTS_MAX) {
    return (
      `is too complex: more than ${USER_SCHEMA_PARTS_MAX} schemas, keywords and listed names ` +
      'with references followed'
    );
  }
  if (depth <= USER_SCHEMA_DEPTH_MAX) return undefined;
  return `is too complex: more than ${USER_SCHEMA_DEPTH_MAX} schemas within one another with references followed`;
}

function findProblem(schema: JsonObject): string | undefined {
  const meta = metaSchemaOf(schema);
  if (meta === undefined) return 'must be written in JSON Schema 2020-12 or draft-07';
  const checker = metaCheckers.get(meta.name) ?? meta.create(true);
  metaCheckers.set(meta.name, checker);
  const findInvalid = (part: JsonObject): string | undefined => {
    if (checker.validateSchema(withoutNames(part))) return undefined;
    const error = checker.errors?.[0];
    return `must be a valid JSON Schema: ${fieldPath(error?.instancePath ?? '')} ${error?.message}`;
  };
  return findInvalid(schema) ?? examineSchema(schema, findInvalid).problem;
}

/**
 * Values of a schema times values of the data, since each of the former may examine each of the latter. Ten million
 * take some tenths of a second: a schema of 100 values checks 100,000 values.
 */
const USER_SCHEMA_STEPS_MAX = 10_000_000;

/**
 * Compiles a schema that `checkUserSchema` accepts; throws on others. The result describes the first error of a value,
 * or undefined. `format` is asserted for date-time, date and uuid, and a remark otherwise.
 */
export function compileUserSchema(schema: JsonObject): (value: JsonValue) => string | undefined {
  const problem = findProblem(schema);
  if (problem !== undefined) throw new Error(`schema ${problem}`);
  const ajv = (metaSchemaOf(schema) as MetaSchema).create(false);
  ajv.removeKeyword('uniqueItems').addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    error: { message: 'must NOT have duplicate items' },
    validate: (isAsked: boolean, items: JsonValue[]) =>
      !isAsked || new Set(items.map(canonicalText)).size === items.length,
  });
  const nodes = examineSchema(schema).nodes + 1;
  const validate = compiled(ajv, withoutNames(schema));
  if (validate === undefined) {
    return () => `cannot be judged: its schema of ${nodes} values is too large to be compiled`;
  }
  const valuesMax = Math.floor(USER_SCHEMA_STEPS_MAX / nodes);
  return (value) => {
    if (hasMoreValues(value, valuesMax)) {
      return `has more than ${valuesMax} values, the most that a schema of ${nodes} values may judge`;
    }
    try {
      if (validate(value)) return undefined;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return 'is nested too deeply';
    }
    const error = validate.errors?.[0];
    return `${fieldPath(error?.instancePath ?? '')} ${error?.message ?? 'is not valid'}`.trim();
  };
}

/** Undefined for schemas stored before the limit of parts that were always too large. */
function compiled(ajv: Ajv, schema: JsonObject): ValidateFunction<JsonValue> | undefined {
  try {
    return ajv.compile<JsonValue>(schema);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return undefined;
  }
}

function metaSchemaOf(schema: JsonObject): MetaSchema | undefined {
  if (schema.$schema === undefined) return META_SCHEMAS[0];
  const name = String(schema.$schema)
    .replace(/^https?:\/\//, '')
    .replace(/#$/, '');
  return META_SCHEMAS.find((meta) => meta.name === name);
}

/** Whether a value of any size has more than `most` members and items, itself included. */
export function hasMoreValues(value: unknown, most: number): boolean {
  let count = 0;
  const left: unknown[] = [value];
  for (let at = left.pop(); at !== undefined; at = left.pop()) {
    count += 1;
    if (count > most) return true;
    if (typeof at !== 'object' || at === null) continue;
    for (const inner of Object.values(at)) left.push(inner);
  }
  return false;
}

/** References are resolved within the document, so that the user's names for it do not matter. */
function withoutNames(schema: JsonObject): JsonObject {
  const { $schema: _schema, $id: _id, ...rest } = schema;
  return rest;
}

/** The same text for equal values; pairwise comparison takes minutes for a long array. */
function canonicalText(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join()}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const entries = Object.entries(value).map(
    ([key, inner]) => `${JSON.stringify(key)}:${canonicalText(inner)}`,
  );
  return `{${entries.sort().join()}}`;
}

/**
 * Own properties only: `required: ["constructor"]` must not match every object. Optimized code takes ten times as long
 * to generate and runs no faster.
 */
function userOptions(meta: boolean) {
  return {
    strict: false,
    allErrors: false,
    ownProperties: true,
    validateSchema: meta,
    meta,
    logger: false,
    code: { optimize: false },
    loopRequired: USER_SCHEMA_LOOP_FROM,
    loopEnum: USER_SCHEMA_LOOP_FROM,
    formats: { 'date-time': isTimestamp, date: isCalendarDay, uuid: isUuid },
  } as const;
}
