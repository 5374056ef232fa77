/**
 * Compiled checks for the rows of the routes table. A thread compiles only the rows that it uses, on first use.
 * Messages name the field and its rule, and do not show the schemas. Schemas may change values in place: ids and
 * priorities become lower case, numbers are lowered to their cap, `{"custom": name}` becomes `custom:name`.
 */

import type { TSchema } from '@sinclair/typebox';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { Block } from './blocks.js';
import { CapsulePayload, type SealedPayload } from './capsule.js';
import { FINDINGS_MAX, type Finding, type ShapeErrors } from './finding.js';
import { isCalendarDay, isTimestamp, isTimeZone, isUuid } from './formats.js';
import { KEYWORDS } from './keywords.js';
import { findingOfError } from './messages.js';
import { readQuery } from './query.js';
import {
  type BodyOf,
  type BodyRouteId,
  type ParamsOf,
  type QueryOf,
  ROUTES,
  type RouteId,
} from './routes.js';
import { hasMoreValues } from './user-schema.js';

export type Checked<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly message: string };

export type Validators = ReturnType<typeof createValidators>;

/** One thread's validators. They share compiled parts and are not created per request. */
export function createValidators() {
  const compile = compilerOf(() => newContractAjv());
  // Slower, since it continues after the first error.
  const compileForAll = compilerOf(() => newContractAjv(true));

  function check<T>(schema: TSchema, value: unknown, what: string): Checked<T> {
    const validate = compile(schema);
    try {
      if (validate(value)) return { ok: true, value: value as T };
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return { ok: false, message: `${what} is nested too deeply` };
    }
    const [error] = validate.errors ?? [];
    const message = error && findingOfError(error, what).message;
    return { ok: false, message: message ?? `${what} is not valid` };
  }

  return {
    /** Checks a parsed body of bounded JSON depth, changed in place. An error is a 400 with `message`. */
    validateBody<Id extends BodyRouteId>(id: Id, value: unknown): Checked<BodyOf<Id>> {
      const schema = ROUTES[id].body;
      if (schema === undefined) throw new Error(`operation ${id} takes no body`);
      return check(schema, value, 'the body');
    },
    /** All errors of a refused body with their paths. For a very large body, only the first. */
    describeBody(id: BodyRouteId, value: unknown): ShapeErrors {
      const schema = ROUTES[id].body as TSchema;
      const isLarge = hasMoreValues(value, VALUES_MAX);
      const validate = isLarge ? compile(schema) : compileForAll(schema);
      validate(value);
      // A choice between two shapes is reported by the errors of the chosen one.
      const errors = (validate.errors ?? []).filter(({ keyword }) => keyword !== 'if');
      const found = new Map<string, Finding>();
      for (const error of errors.slice(0, ERRORS_READ_MAX)) {
        const finding = findingOfError(error, 'the body');
        if (!found.has(finding.path)) found.set(finding.path, finding);
      }
      const areAll = errors.length <= ERRORS_READ_MAX && found.size <= FINDINGS_MAX;
      return { found: [...found.values()], extent: isLarge ? 'first' : areAll ? 'all' : 'some' };
    },
    /**
     * Parses the text after `?`: typed parameters with defaults, lists split at commas, `metadata.<key>` collected.
     * Unknown parameters are ignored, or refused if the query is strict. An error is a 400.
     */
    parseQuery<Id extends RouteId>(id: Id, rawQuery: string): Checked<QueryOf<Id>> {
      const schema = ROUTES[id].query;
      if (schema === undefined) return { ok: true, value: {} as QueryOf<Id> };
      const read = readQuery(schema, rawQuery);
      return read.ok ? check(schema, read.value, 'the query') : read;
    },
    /** Checks the path parameters; ids become lower case. An error is a 400. */
    parseParams<Id extends RouteId>(
      id: Id,
      params: Readonly<Record<string, string>>,
    ): Checked<ParamsOf<Id>> {
      const schema = ROUTES[id].params;
      if (schema === undefined) return { ok: true, value: {} as ParamsOf<Id> };
      return check(schema, { ...params }, 'the path');
    },
    /** Checks an unsealed capsule in the same way. */
    checkPayload: (value: unknown): Checked<SealedPayload> =>
      check(CapsulePayload, value, 'the payload'),
    /** For tests: how a response violates the contract, or undefined. */
    describeReply(id: RouteId, status: number, body: unknown): string | undefined {
      const schema = ROUTES[id].replies[status];
      if (schema === undefined) return `status ${status} is not declared`;
      if (schema === null) return body === undefined ? undefined : 'a body was not expected';
      const result = check(schema, body, 'the body');
      return result.ok ? undefined : result.message;
    },
  };
}

/** Above any sensible definition without its parameters and schemas. */
const VALUES_MAX = 100_000;

/** Several errors may concern one path; only one is reported. */
const ERRORS_READ_MAX = 10 * FINDINGS_MAX;

/** Keeps each `$id` only at its first occurrence: the compiler refuses repeated ones. */
function namedOnce(schema: unknown): unknown {
  const names = new Set<unknown>();
  const copy = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(copy);
    if (typeof value !== 'object' || value === null) return value;
    const { $id, ...rest } = value as Record<string, unknown>;
    const isNew = typeof $id === 'string' && !names.has($id);
    if (isNew) names.add($id);
    const members = Object.entries(rest).map(([key, inner]) => [key, copy(inner)] as const);
    return { ...Object.fromEntries(members), ...(isNew && { $id }) };
  };
  return copy(schema);
}

/** Schemas, and their compiler, are created on first use. */
function compilerOf(create: () => Ajv2020): (schema: TSchema) => ValidateFunction {
  const compiled = new Map<TSchema, ValidateFunction>();
  let ajv: Ajv2020 | undefined;
  return (schema) => {
    let validate = compiled.get(schema);
    if (validate === undefined) {
      ajv ??= create();
      // Without its `$id`: the same schema may also occur inside a list.
      const { $id: _, ...unnamed } = schema;
      validate = ajv.compile(namedOnce(unnamed) as TSchema);
      compiled.set(schema, validate);
    }
    return validate;
  };
}

function newContractAjv(allErrors = false): Ajv2020 {
  const ajv = new Ajv2020({
    strict: true,
    discriminator: true,
    allErrors,
    // Messages derive suggestions from the value and schema of an error.
    verbose: true,
    // Tests check the contract's own schemas, not every starting thread.
    validateSchema: false,
    formats: {
      uuid: isUuid,
      'date-time': isTimestamp,
      'calendar-day': isCalendarDay,
      'time-zone': isTimeZone,
    },
  });
  for (const keyword of KEYWORDS) ajv.addKeyword(keyword);
  return ajv.addSchema(Block);
}
