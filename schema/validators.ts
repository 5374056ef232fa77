/**
 * The rows of the routes table as compiled checks. A thread compiles only the rows that it parses, on
 * first use. Every message is meant for the caller: it names the field and what is asked of it, and
 * shows nothing of the schemas. Values are changed in place where a row says so: ids and priorities
 * become lower case, numbers are lowered to their cap, `{"custom": name}` becomes `custom:name`.
 */

import type { TSchema } from '@sinclair/typebox';
import { Ajv2020, type Options, type ValidateFunction } from 'ajv/dist/2020.js';
import { Block } from './blocks.js';
import { CapsulePayload, type SealedPayload } from './capsule.js';
import { FINDINGS_MAX, type Finding, type ShapeErrors } from './finding.js';
import { isCalendarDay, isTimestamp, isTimeZone, isUuid } from './formats.js';
import { capNumber, lowerCase, runNamedCheck } from './keywords.js';
import { describeError, findingOfError } from './messages.js';
import { readQuery } from './query.js';
import {
  type BodyOf,
  type BodyRouteId,
  type ParamsOf,
  type QueryOf,
  ROUTES,
  type RouteId,
} from './routes.js';

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
   * Everything that is wrong with a body that was refused, each with its place. Of a body with very many
   * values, which could have as many mistakes, only the first.
   */
  describeBody(id: BodyRouteId, value: unknown): ShapeErrors;
  /**
   * Reads the text after `?`: known parameters typed and with their defaults, lists split at commas,
   * `metadata.<key>` collected. Others are ignored, or refused where the query is strict. A refusal is
   * a 400.
   */
  parseQuery<Id extends RouteId>(id: Id, rawQuery: string): Checked<QueryOf<Id>>;
  /** Checks the path parameters of a match; ids become lower case. A refusal is a 400. */
  parseParams<Id extends RouteId>(
    id: Id,
    params: Readonly<Record<string, string>>,
  ): Checked<ParamsOf<Id>>;
  /** What was unsealed of a capsule, changed and handed back in the same way. */
  checkPayload(value: unknown): Checked<SealedPayload>;
  /** What is wrong with an answer that the server gave, for tests; undefined when it is as agreed. */
  describeReply(id: RouteId, status: number, body: unknown): string | undefined;
}

/** One thread's validators. They share compiled parts and are not made per request. */
export function createValidators(): Validators {
  const compile = compilerOf(() => newContractAjv());
  // Slower, since it looks on behind the first mistake and keeps what it looked at.
  const compileForAll = compilerOf(() => newContractAjv({ allErrors: true, verbose: true }));

  function check<T>(schema: TSchema, value: unknown, what: string): Checked<T> {
    const validate = compile(schema);
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
    describeBody: (id, value) => {
      const schema = ROUTES[id].body as TSchema;
      const isLarge = hasMoreValues(value, VALUES_MAX);
      const validate = isLarge ? compile(schema) : compileForAll(schema);
      validate(value);
      // Of a choice between two shapes it is told what is wrong with the one that it is.
      const errors = (validate.errors ?? []).filter(({ keyword }) => keyword !== 'if');
      const found = new Map<string, Finding>();
      for (const error of errors.slice(0, ERRORS_READ_MAX)) {
        const finding = findingOfError(error, 'the body');
        if (!found.has(finding.path)) found.set(finding.path, finding);
      }
      const areAll = errors.length <= ERRORS_READ_MAX && found.size <= FINDINGS_MAX;
      return {
        found: [...found.values()],
        extent: isLarge ? 'first' : areAll ? 'all' : 'some',
      };
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
    checkPayload: (value) => check(CapsulePayload, value, 'the payload'),
    describeReply: (id, status, body) => {
      const schema = ROUTES[id].replies[status];
      if (schema === undefined) return `status ${status} is not declared`;
      if (schema === null) return body === undefined ? undefined : 'a body was not expected';
      const result = check(schema, body, 'the body');
      return result.ok ? undefined : result.message;
    },
  };
}

/** More than the largest sensible definition has outside of its parameters and schemas. */
const VALUES_MAX = 100_000;

/** Several may be about one place, of which one is told. */
const ERRORS_READ_MAX = 10 * FINDINGS_MAX;

/** Counts members and items, no further than one more than `most`. */
function hasMoreValues(value: unknown, most: number): boolean {
  let left = most;
  const count = (inner: unknown): void => {
    left -= 1;
    if (typeof inner !== 'object' || inner === null) return;
    for (const member of Object.values(inner)) if (left >= 0) count(member);
  };
  count(value);
  return left < 0;
}

/** The schema with each name where it stands first: the compiler takes a name that comes again for two schemas. */
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

/** Schemas are compiled on first use, and so is what compiles them. */
function compilerOf(create: () => Ajv2020): (schema: TSchema) => ValidateFunction {
  const compiled = new Map<TSchema, ValidateFunction>();
  let ajv: Ajv2020 | undefined;
  return (schema) => {
    let validate = compiled.get(schema);
    if (validate === undefined) {
      ajv ??= create();
      // Without its name: the same schema may stand by itself here and inside a list elsewhere.
      const { $id: _, ...unnamed } = schema;
      validate = ajv.compile(namedOnce(unnamed) as TSchema);
      compiled.set(schema, validate);
    }
    return validate;
  };
}

function newContractAjv(more: Pick<Options, 'allErrors' | 'verbose'> = {}): Ajv2020 {
  const ajv = new Ajv2020({
    strict: true,
    discriminator: true,
    allErrors: false,
    // An error knows its value and schema: what its message suggests is made of them.
    verbose: true,
    ...more,
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
  // Of a shape that is strict, so that it is refused anyway: `messages.ts` says why.
  ajv.addKeyword({ keyword: 'x-fixed', schemaType: 'array' });
  ajv.addSchema(Block);
  return ajv;
}
