/**
 * The rows of the routes table as compiled checks. A thread compiles only the rows that it parses, on
 * first use. Every message is meant for the caller: it names the field and what is asked of it, and
 * shows nothing of the schemas. Values are changed in place where a row says so: ids and priorities
 * become lower case, numbers are lowered to their cap, `{"custom": name}` becomes `custom:name`.
 */

import type { TSchema } from '@sinclair/typebox';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { Block } from './blocks.js';
import { CapsulePayload, type SealedPayload } from './capsule.js';
import { isCalendarDay, isTimestamp, isTimeZone, isUuid } from './formats.js';
import { capNumber, lowerCase, runNamedCheck } from './keywords.js';
import { describeError } from './messages.js';
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

function newContractAjv(): Ajv2020 {
  const ajv = new Ajv2020({
    strict: true,
    discriminator: true,
    allErrors: false,
    // An error knows its value and schema: what its message suggests is made of them.
    verbose: true,
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
