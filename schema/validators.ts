/**
 * The rows of the routes table as compiled checks. A thread compiles only the rows that it parses, on
 * first use. Every message is meant for the caller: it names the field and what is asked of it, and
 * shows nothing of the schemas. Values are changed in place where a row says so: ids and priorities
 * become lower case, numbers are lowered to their cap, `{"custom": name}` becomes `custom:name`.
 */

import type { TObject, TSchema } from '@sinclair/typebox';
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { Ajv, type SchemaValidateFunction } from 'ajv/dist/ajv.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../src/core/json.js';
import { Block, RETRY_DEFAULTS } from './blocks.js';
import { toUnixMs, UNSUPPORTED_VALUES } from './common.js';
import {
  type BodyOf,
  type BodyRouteId,
  type ParamsOf,
  type QueryOf,
  ROUTES,
  type RouteId,
} from './routes.js';
import { findSchemaProblem, USER_SCHEMA_BYTES_MAX } from './sequence.js';

export type Checked<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly message: string };

export interface Validators {
  /**
   * Checks a parsed body whose JSON depth is already bounded. `value` is changed in place and handed
   * back with its type; a refusal is a 400 with `message`.
   */
  validateBody<Id extends BodyRouteId>(id: Id, value: unknown): Checked<BodyOf<Id>>;
  /**
   * Reads the text after `?`: known parameters typed and with their defaults, others ignored, lists
   * split at commas, `metadata.<key>` collected. A refusal is a 400.
   */
  parseQuery<Id extends RouteId>(id: Id, rawQuery: string): Checked<QueryOf<Id>>;
  /** Checks the path parameters of a match; ids become lower case. A refusal is a 400. */
  parseParams<Id extends RouteId>(
    id: Id,
    params: Readonly<Record<string, string>>,
  ): Checked<ParamsOf<Id>>;
  /** What is wrong with an answer that the server gave, for tests; undefined when it is as agreed. */
  describeReply(id: RouteId, status: number, body: unknown): string | undefined;
}

/** One thread's validators. They share compiled parts and are not made per request. */
export function createValidators(): Validators {
  const ajv = newContractAjv();
  const compiled = new Map<TSchema, ValidateFunction>();

  function check<T>(schema: TSchema, value: unknown, what: string): Checked<T> {
    let validate = compiled.get(schema);
    if (validate === undefined) {
      // Without its name: the same schema may stand by itself here and inside a list elsewhere.
      const { $id: _, ...unnamed } = schema;
      validate = ajv.compile(unnamed);
      compiled.set(schema, validate);
    }
    try {
      if (validate(value)) return { ok: true, value: value as T };
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return { ok: false, message: `${what} is nested too deeply` };
    }
    return { ok: false, message: describeError(validate.errors?.[0], what) };
  }

  return {
    validateBody: (id, value) => {
      const schema = ROUTES[id].body;
      if (schema === undefined) throw new Error(`operation ${id} takes no body`);
      return check(schema, value, 'the body');
    },
    parseQuery: <Id extends RouteId>(id: Id, rawQuery: string): Checked<QueryOf<Id>> => {
      const schema = ROUTES[id].query;
      if (schema === undefined) return { ok: true, value: {} as QueryOf<Id> };
      const read = readQuery(schema, rawQuery);
      return read.ok ? check(schema, read.value, 'the query') : read;
    },
    parseParams: <Id extends RouteId>(id: Id, params: Readonly<Record<string, string>>) => {
      const schema = ROUTES[id].params;
      if (schema === undefined) return { ok: true, value: {} as ParamsOf<Id> };
      return check(schema, { ...params }, 'the path');
    },
    describeReply: (id, status, body) => {
      const schema = ROUTES[id].replies[status];
      if (schema === undefined) return `status ${status} is not declared`;
      if (schema === null) return body === undefined ? undefined : 'a body was not expected';
      const result = check(schema, body, 'the body');
      return result.ok ? undefined : result.message;
    },
  };
}

function newContractAjv(): Ajv2020 {
  const ajv = new Ajv2020({
    strict: true,
    discriminator: true,
    allErrors: false,
    // The contract's own schemas are checked by its tests, not again by every thread that starts.
    validateSchema: false,
    formats: {
      uuid: isUuid,
      'date-time': isTimestamp,
      'calendar-day': isCalendarDay,
      'time-zone': isTimeZone,
    },
  });
  ajv.addKeyword({
    keyword: 'x-lower-case',
    schemaType: 'boolean',
    before: 'enum',
    modifying: true,
    errors: false,
    validate: lowerCase,
  });
  ajv.addKeyword({
    keyword: 'x-cap',
    type: 'number',
    schemaType: 'number',
    modifying: true,
    errors: false,
    validate: capNumber,
  });
  ajv.addKeyword({
    keyword: 'x-check',
    schemaType: 'string',
    modifying: true,
    validate: runNamedCheck,
  });
  ajv.addSchema(Block);
  return ajv;
}

// ---------------------------------------------------------------- formats

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Any version and variant (06 row 75), only in the form with hyphens. */
function isUuid(text: string): boolean {
  return UUID.test(text);
}

function isTimestamp(text: string): boolean {
  return toUnixMs(text) !== undefined;
}

function isCalendarDay(text: string): boolean {
  return text.length === 10 && isTimestamp(`${text}T00:00:00Z`);
}

const zonesSeen = new Set(['UTC']);
/** There are some 600 zones and aliases; spellings in other cases must not fill the memory. */
const ZONES_SEEN_MAX = 1_000;

/** Offsets such as `+02:00`, which newer runtimes accept here, are no zones (06 row 38). */
function isTimeZone(text: string): boolean {
  if (zonesSeen.has(text)) return true;
  if (text.length > 64 || !/^[a-z]/i.test(text)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: text });
  } catch {
    // The constructor's one error for a string is that the zone is unknown.
    return false;
  }
  if (zonesSeen.size < ZONES_SEEN_MAX) zonesSeen.add(text);
  return true;
}

// ---------------------------------------------------------------- keywords of the contract

type Place = Parameters<SchemaValidateFunction>[3];

function replace(place: Place, value: unknown): void {
  if (place !== undefined) place.parentData[place.parentDataProperty] = value;
}

function lowerCase(_: boolean, value: unknown, _schema: unknown, place: Place): boolean {
  if (typeof value === 'string') replace(place, value.toLowerCase());
  return true;
}

function capNumber(max: number, value: number, _schema: unknown, place: Place): boolean {
  if (value > max) replace(place, max);
  return true;
}

const runNamedCheck: SchemaValidateFunction = (name: string, value, _schema, place) => {
  const check = CHECKS[name];
  if (check === undefined) throw new Error(`unknown check ${name}`);
  const message = check(value, place);
  if (message === undefined) return true;
  runNamedCheck.errors = [{ keyword: 'x-check', params: {}, message }];
  return false;
};

/**
 * Rules beyond JSON Schema: each gives the end of a sentence that begins with the field, or nothing.
 * They may run before the types of inner fields were checked.
 */
const CHECKS: Readonly<Record<string, (value: unknown, place: Place) => string | undefined>> = {
  'empty-is-absent': (value, place) => {
    if (value === '') replace(place, null);
    return undefined;
  },
  'plain-name': (value) =>
    value === '__proto__' || value === 'constructor' || value === 'prototype'
      ? `must not be ${value}`
      : undefined,
  'json-schema': (value) => (isJsonObject(value) ? checkUserSchema(value) : undefined),
  retry: checkRetry,
  router: (value) => {
    if (!isJsonObject(value)) return undefined;
    const routes = value.routes ?? [];
    const hasNone =
      Array.isArray(routes) && routes.length === 0 && (value.default ?? null) === null;
    return hasNone ? 'must have at least one route or a default' : undefined;
  },
  heartbeat: (value) => {
    if (!isJsonObject(value) || (value.checkpoint ?? null) === null) return undefined;
    return (value.checkpoint_seq ?? null) === null
      ? 'must have checkpoint_seq when it has a checkpoint'
      : undefined;
  },
  'signal-type': checkSignalType,
};

/** An initial wait above the longest one would silently be cut; a low maximum alone is meant so. */
function checkRetry(value: unknown): string | undefined {
  if (!isJsonObject(value)) return undefined;
  const initial = value.initial_backoff;
  const max = value.max_backoff ?? RETRY_DEFAULTS.max_backoff;
  if (typeof initial !== 'number' || typeof max !== 'number' || initial <= max) return undefined;
  const origin = value.max_backoff === max ? '' : ', its default';
  return `must have an initial_backoff that is not above max_backoff (${max}${origin})`;
}

const PLAIN_SIGNALS = ['pause', 'resume', 'cancel', 'update_context'];
const CUSTOM_SIGNAL = 'custom:';
const CUSTOM_NAME_LENGTH_MAX = 255;

function checkSignalType(value: unknown, place: Place): string | undefined {
  let text = value;
  if (isJsonObject(value) && typeof value.custom === 'string') {
    text = CUSTOM_SIGNAL + value.custom;
    replace(place, text);
  }
  if (typeof text === 'string') {
    if (PLAIN_SIGNALS.includes(text)) return undefined;
    const name = text.slice(CUSTOM_SIGNAL.length);
    const isCustom = text.startsWith(CUSTOM_SIGNAL) && name.trim() !== '';
    if (isCustom && name.length <= CUSTOM_NAME_LENGTH_MAX) return undefined;
  }
  return `must be ${PLAIN_SIGNALS.join(', ')} or custom:<name> with a name of at most ${CUSTOM_NAME_LENGTH_MAX} characters`;
}

// ---------------------------------------------------------------- messages

const FORMAT_TEXTS: Readonly<Record<string, string>> = {
  uuid: 'must be a UUID',
  'date-time': 'must be an RFC 3339 timestamp with an offset, in the years 1970 to 9999',
  'calendar-day': 'must be a calendar day as YYYY-MM-DD',
  'time-zone': 'must be a known IANA time zone',
};

const TYPE_TEXTS: Readonly<Record<string, string>> = {
  string: 'a string',
  integer: 'an integer',
  number: 'a number',
  boolean: 'a boolean',
  object: 'an object',
  array: 'an array',
};

/** A sentence for the caller about the first thing that is wrong with `what`. */
export function describeError(error: ErrorObject | undefined, what: string): string {
  if (error === undefined) return `${what} is not valid`;
  const path = fieldPath(error.instancePath);
  const field = path === '' ? what : path;
  switch (error.keyword) {
    case 'required':
      return `${joinField(path, String(error.params.missingProperty))} is required`;
    case 'discriminator':
      return describeTag(joinField(path, String(error.params.tag)), error.params.tagValue);
    case 'enum':
      return describeWords(field, error.params.allowedValues);
    case 'x-check':
      return `${field} ${error.message}`;
    default:
      return `${field} ${ruleText(error)}`;
  }
}

function ruleText(error: ErrorObject): string {
  const { params } = error;
  const limit = String(params.limit);
  switch (error.keyword) {
    case 'type':
      return `must be ${typeText(params.type)}`;
    case 'format':
      return FORMAT_TEXTS[params.format] ?? 'is not valid';
    case 'pattern':
      // The contract's one pattern asks for a character that is not white space.
      return 'must not be blank';
    case 'const':
      return `must be ${String(params.allowedValue)}`;
    case 'minLength':
      return 'must not be empty';
    case 'maxLength':
      return `must have at most ${limit} characters`;
    case 'minItems':
      return params.limit === 1 ? 'must not be empty' : `must have at least ${limit} items`;
    case 'maxItems':
      return `must have at most ${limit} items`;
    case 'minimum':
      return `must be >= ${limit}`;
    case 'exclusiveMinimum':
      return `must be > ${limit}`;
    case 'maximum':
      return `must be <= ${limit}`;
    default:
      return 'is not valid';
  }
}

/** `params.type` is a word or a list of them; null is left out, since it only means absent. */
function typeText(type: unknown): string {
  const names = Array.isArray(type) ? type : String(type).split(',');
  return names
    .filter((name) => name !== 'null')
    .map((name) => TYPE_TEXTS[name] ?? name)
    .join(' or ');
}

function describeWords(field: string, allowed: readonly unknown[]): string {
  const isUnsupported = UNSUPPORTED_VALUES.every((value, index) => allowed[index] === value);
  if (isUnsupported) return `${field} is not supported`;
  return `${field} must be one of ${allowed.filter((word) => word !== null).join(', ')}`;
}

const SHOWN_LENGTH_MAX = 100;

function describeTag(field: string, value: unknown): string {
  if (typeof value !== 'string') return `${field} must be a string`;
  return `${field} is an unknown block type: ${value.slice(0, SHOWN_LENGTH_MAX)}`;
}

/** `/blocks/2/branches/0` as `blocks[2].branches[0]`. */
function fieldPath(pointer: string): string {
  let path = '';
  for (const part of pointer.split('/').slice(1)) {
    path = joinField(path, part.replaceAll('~1', '/').replaceAll('~0', '~'));
  }
  return path;
}

function joinField(path: string, key: string): string {
  if (/^\d+$/.test(key)) return `${path}[${key}]`;
  const name = key.slice(0, SHOWN_LENGTH_MAX);
  return path === '' ? name : `${path}.${name}`;
}

// ---------------------------------------------------------------- query strings

/** More equalities than this on one list are no question that a client has. */
const METADATA_FILTERS_MAX = 16;
const METADATA_PREFIX = 'metadata.';

/**
 * Text to typed values, by hand: general coercion would take ` 5`, `1e2` and `0x10` for numbers. What
 * is wrong in type stays as text, for the schema to refuse.
 */
function readQuery(schema: TObject, rawQuery: string): Checked<Record<string, unknown>> {
  const values: Record<string, unknown> = {};
  const metadata: Record<string, string> = Object.create(null);
  let metadataCount = 0;
  for (const pair of rawQuery.split('&')) {
    const decoded = decodePair(pair);
    if (decoded === undefined) {
      return { ok: false, message: 'the query is not valid percent-encoded UTF-8 without NUL' };
    }
    const [name, text] = decoded;
    if (name.startsWith(METADATA_PREFIX) && schema.properties.metadata !== undefined) {
      metadataCount += 1;
      metadata[name.slice(METADATA_PREFIX.length)] = text;
      continue;
    }
    const property = Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
    if (property === undefined || property.type === 'object') continue;
    if (values[name] !== undefined && property.type !== 'array') {
      return { ok: false, message: `${name} is given more than once` };
    }
    const value = typedValue(property, text, values[name]);
    if (value !== undefined) values[name] = value;
  }
  if (metadataCount > METADATA_FILTERS_MAX) {
    return { ok: false, message: `at most ${METADATA_FILTERS_MAX} metadata filters are possible` };
  }
  if (metadataCount > 0) values.metadata = metadata;
  for (const [name, property] of Object.entries(schema.properties)) {
    if (values[name] === undefined && property.default !== undefined)
      values[name] = property.default;
  }
  return { ok: true, value: values };
}

/** Empty text and an empty list mean that the parameter was not given; numbers must be there. */
function typedValue(property: TSchema, text: string, before: unknown): unknown {
  switch (property.type) {
    case 'integer':
      return /^-?\d{1,400}$/.test(text) ? clampInteger(Number(text)) : text;
    case 'boolean':
      if (text === 'true' || text === '1') return true;
      return text === 'false' || text === '0' ? false : text;
    case 'array': {
      const words = text.split(',').map((word) => word.trim());
      const all = [...((before as string[] | undefined) ?? []), ...words.filter((word) => word)];
      return all.length === 0 ? undefined : all;
    }
    default:
      return text === '' ? undefined : text;
  }
}

function clampInteger(value: number): number {
  return Math.max(-Number.MAX_SAFE_INTEGER, Math.min(value, Number.MAX_SAFE_INTEGER)) + 0;
}

function decodePair(pair: string): readonly [name: string, text: string] | undefined {
  const at = pair.indexOf('=');
  const name = decodeText(at < 0 ? pair : pair.slice(0, at));
  const text = decodeText(at < 0 ? '' : pair.slice(at + 1));
  return name === undefined || text === undefined ? undefined : [name, text];
}

function decodeText(encoded: string): string | undefined {
  try {
    const text = decodeURIComponent(encoded.replaceAll('+', ' '));
    return text.includes('\u0000') ? undefined : text;
  } catch {
    // Not percent-encoded UTF-8: the caller answers 400.
    return undefined;
  }
}

// ---------------------------------------------------------------- schemas given by users

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
 * What forbids a user's `input_schema` or `output_schema`, as the end of a sentence; undefined when
 * `compileUserSchema` will accept it. Costs microseconds: nothing is compiled.
 */
export function checkUserSchema(schema: JsonObject): string | undefined {
  if (JSON.stringify(schema).length > USER_SCHEMA_BYTES_MAX) {
    return `must have at most ${USER_SCHEMA_BYTES_MAX} bytes`;
  }
  const meta = metaSchemaOf(schema);
  if (meta === undefined) return 'must be written in JSON Schema 2020-12 or draft-07';
  const checker = metaCheckers.get(meta.name) ?? meta.create(true);
  metaCheckers.set(meta.name, checker);
  const findInvalid = (part: JsonObject): string | undefined => {
    if (checker.validateSchema(withoutNames(part))) return undefined;
    const error = checker.errors?.[0];
    return `must be a valid JSON Schema: ${fieldPath(error?.instancePath ?? '')} ${error?.message}`;
  };
  return findInvalid(schema) ?? findSchemaProblem(schema, findInvalid);
}

/**
 * Compiles a schema that `checkUserSchema` accepts; throws on others. The result tells what is wrong
 * with a value, or undefined. `format` is asserted for date-time, date and uuid and a remark elsewhere.
 */
export function compileUserSchema(schema: JsonObject): (value: JsonValue) => string | undefined {
  const problem = checkUserSchema(schema);
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
  const validate = ajv.compile<JsonValue>(withoutNames(schema));
  return (value) => {
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

function metaSchemaOf(schema: JsonObject): MetaSchema | undefined {
  if (schema.$schema === undefined) return META_SCHEMAS[0];
  const name = String(schema.$schema)
    .replace(/^https?:\/\//, '')
    .replace(/#$/, '');
  return META_SCHEMAS.find((meta) => meta.name === name);
}

/** References are resolved within the document, so that the names a user gave it do not matter. */
function withoutNames(schema: JsonObject): JsonObject {
  const { $schema: _schema, $id: _id, ...rest } = schema;
  return rest;
}

/** The same text for equal values; comparing each with each takes minutes for a long array. */
function canonicalText(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join()}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const entries = Object.entries(value).map(
    ([key, inner]) => `${JSON.stringify(key)}:${canonicalText(inner)}`,
  );
  return `{${entries.sort().join()}}`;
}

/** Own properties only: `required: ["constructor"]` is not met by every object. */
function userOptions(meta: boolean) {
  return {
    strict: false,
    allErrors: false,
    ownProperties: true,
    validateSchema: meta,
    meta,
    logger: false,
    formats: { 'date-time': isTimestamp, date: isCalendarDay, uuid: isUuid },
  } as const;
}
