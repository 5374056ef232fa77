/**
 * The document against a table of what the wire is promised to be: every route, field, default, limit
 * and status. Where the two differ, the document is wrong.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { DOCUMENT, jsonSchemaOf, objectAt, operationAt, operations, resolve } from './document.js';
import {
  type Fields,
  OPTIONAL_BLOCK_FIELDS,
  WIDER,
  WIRE_BLOCKS,
  WIRE_ERRORS,
  WIRE_LIMIT_TEXTS,
  WIRE_RELEASE_STATES,
  WIRE_ROUTES,
  WIRE_STATUSES,
  type WireRoute,
} from './wire-table.js';

// ---------------------------------------------------------------- the table's notation

interface Expected {
  readonly type: string;
  readonly isRequired: boolean;
  readonly byDefault: string | undefined;
  readonly maximum: number | undefined;
  readonly words: readonly string[] | undefined;
}

function readField(text: string): Expected {
  const parts = /^(\w+)( !)?(?: = (\S+))?(?: <= (\d+))?(?: of (\S+))?$/.exec(text);
  assert.ok(parts, `the table has a field that cannot be read: ${text}`);
  return {
    type: parts[1] ?? '',
    isRequired: parts[2] !== undefined,
    byDefault: parts[3],
    maximum: parts[4] === undefined ? undefined : Number(parts[4]),
    words: parts[5]?.split('|'),
  };
}

/** JSON type and format of the table's words. */
const TYPES: Readonly<Record<string, readonly [type: string, format?: string]>> = {
  uuid: ['string', 'uuid'],
  datetime: ['string', 'date-time'],
};

// ---------------------------------------------------------------- the document's side

function typesOf(schema: JsonObject): unknown[] {
  const { type } = withoutNull(schema);
  return type === undefined ? [] : [type].flat();
}

/** A list of words that may be null is a choice between the two. */
function withoutNull(schema: JsonObject): JsonObject {
  const [first, second] = (schema.anyOf ?? []) as JsonObject[];
  return first !== undefined && second?.type === 'null' ? first : schema;
}

function wordsOf(schema: JsonObject): JsonValue[] {
  const words = withoutNull(schema);
  return (words.enum ?? [words.const ?? null]) as JsonValue[];
}

/** The field, and whether it must be there; inner fields are written with dots. */
function fieldAt(schema: JsonObject, name: string): readonly [JsonObject, boolean] {
  let at = resolve(schema);
  let isRequired = true;
  for (const part of name.split('.')) {
    isRequired = ((at.required ?? []) as JsonValue[]).includes(part);
    at = objectAt(at, 'properties', part);
  }
  return [at, isRequired];
}

/** @param isAsked of the caller: then nothing may be required beyond what the table says */
function checkFields(where: string, schema: JsonObject, fields: Fields, isAsked = false): void {
  for (const [name, text] of Object.entries(fields)) {
    const [found, isRequired] = fieldAt(schema, name);
    const expected = readField(text);
    checkField(`${where}.${name}`, found, isRequired, expected);
    if (isAsked) assert.equal(isRequired, expected.isRequired, `${where}.${name} required`);
  }
  const others = isAsked ? ((resolve(schema).required ?? []) as string[]) : [];
  assert.deepEqual(
    others.filter((name) => fields[name] === undefined),
    [],
    `${where} asks for fields that the table does not know`,
  );
}

function checkField(where: string, found: JsonObject, isRequired: boolean, expected: Expected) {
  const [type, format] = TYPES[expected.type] ?? [expected.type];
  if (WIDER[where] !== undefined) {
    assert.deepEqual(typesOf(found), [], `${where} is not wider than the table`);
  } else if (expected.type !== 'any') {
    assert.ok(typesOf(found).includes(type), `${where} is ${JSON.stringify(found)}, no ${type}`);
    assert.equal(found.format, format ?? found.format, where);
  }
  if (expected.isRequired) assert.equal(isRequired, true, `${where} must be required`);
  if (expected.byDefault !== undefined) {
    assert.equal(String(found.default), expected.byDefault, `the default of ${where}`);
  }
  if (expected.maximum !== undefined) assert.equal(found['x-cap'], expected.maximum, where);
  if (expected.words !== undefined) {
    const words = wordsOf(found);
    assert.deepEqual(
      words.filter((word) => word !== null),
      expected.words,
      where,
    );
  }
}

const nameOf = ({ method, path }: WireRoute) => `${method} ${path}`;

const responseAt = (route: WireRoute, status: number): JsonObject =>
  objectAt(operationAt(route.method, route.path), 'responses', String(status));

// ---------------------------------------------------------------- routes

describe('every route of the table', () => {
  for (const route of WIRE_ROUTES) {
    const { body, query, reply } = route;

    test(`${nameOf(route)} is described with its fields and success`, () => {
      const operation = operationAt(route.method, route.path);
      const successes = Object.keys(objectAt(operation, 'responses')).filter((s) => s < '300');
      // A change of many may go on behind its answer.
      const job = /\/(?:bulk\/\w+|batch-action)$/.test(route.path) ? ['202'] : [];
      // With `Prefer: return=minimal`.
      const minimal = /\/tasks\/\{id\}\/(?:complete|fail)$/.test(route.path) ? ['204'] : [];
      // With `wait_ms` in the query.
      const waited = /^POST \/instances(?:\/\{id\}\/signals)?$/.test(nameOf(route))
        ? ['200', '202']
        : [];
      const expected = [String(route.status), ...job, ...minimal, ...waited].sort();
      assert.deepEqual(successes, expected);
      if (body !== undefined) {
        const schema = jsonSchemaOf(objectAt(operation, 'requestBody'));
        checkFields(`${nameOf(route)} body`, schema, body, true);
      }
      if (query !== undefined) checkQuery(route, operation, query);
      if (reply !== undefined || route.isList) checkReply(route, reply ?? {});
    });

    test(`${nameOf(route)} asks for key and tenant, a key, or nothing, and has the errors of the table`, () => {
      const alternatives = operationAt(route.method, route.path).security as JsonObject[];
      const asked = alternatives.map((alternative) => Object.keys(alternative).sort());
      const both = [
        ['apiKey', 'tenant'],
        ['bearer', 'tenant'],
      ];
      if (route.access === 'key') assert.deepEqual(asked, [['apiKey'], ['bearer']]);
      else if (route.access === 'open') {
        // An empty alternative is none, and so is no alternative.
        assert.ok(asked.length === 0 || asked.some((names) => names.length === 0), String(asked));
      } else assert.deepEqual(asked.slice(0, 2), both);
      for (const [status, applies] of Object.entries(WIRE_ERRORS)) {
        if (typeof applies !== 'function' || !applies(route)) continue;
        const schema = jsonSchemaOf(responseAt(route, Number(status)));
        checkFields(`${nameOf(route)} ${status}`, schema, WIRE_ERRORS.body);
      }
    });
  }

  test('a route with a body may be missing none of the required ones', () => {
    const optional = WIRE_ROUTES.filter(({ body }) => body !== undefined).filter(
      ({ method, path }) => objectAt(operationAt(method, path), 'requestBody').required !== true,
    );
    assert.deepEqual(optional.map(nameOf), []);
  });

  test('the words of the states of a release are those of the table', () => {
    const state = objectAt(DOCUMENT, 'components', 'schemas', 'Release', 'properties', 'state');
    assert.deepEqual(state.enum, WIRE_RELEASE_STATES);
  });
});

function checkQuery(route: WireRoute, operation: JsonObject, query: Fields): void {
  const parameters = operation.parameters as JsonObject[];
  for (const [name, text] of Object.entries(query)) {
    const parameter = parameters.find((one) => one.name === name && one.in === 'query');
    const where = `${nameOf(route)} query.${name}`;
    assert.ok(parameter, `${where} is not described`);
    const expected = readField(text);
    const isRequired = parameter.required === true;
    assert.equal(isRequired, expected.isRequired, `${where} required`);
    checkField(where, objectAt(parameter, 'schema'), isRequired, expected);
    if (expected.type === 'array') {
      assert.equal(parameter.explode, false, `${where} is separated by commas`);
    }
  }
}

function checkReply(route: WireRoute, reply: Fields): void {
  const schema = jsonSchemaOf(responseAt(route, route.status));
  if (route.isList) assert.equal(schema.type, 'array', `${nameOf(route)} gives a bare array`);
  const item = route.isList ? objectAt(schema, 'items') : schema;
  checkFields(`${nameOf(route)} reply`, item, reply);
}

// ---------------------------------------------------------------- blocks, statuses, limits

/** Kinds whose type may be written in more than one way. */
const SPLIT = 'ab_split|a_b_split';
const WORDS: Readonly<Record<string, string>> = { ab_split: SPLIT, a_b_split: SPLIT };

describe('the blocks of the table', () => {
  const schemas = objectAt(DOCUMENT, 'components', 'schemas');
  const mapping = objectAt(schemas, 'Block', 'discriminator', 'mapping');

  test('are the kinds of the document, and no others', () => {
    assert.deepEqual(Object.keys(mapping), Object.keys(WIRE_BLOCKS));
  });

  for (const [kind, fields] of Object.entries(WIRE_BLOCKS)) {
    test(`${kind} has its fields`, () => {
      const schema = resolve({ $ref: mapping[kind] ?? '' });
      const type = `string ! of ${Object.hasOwn(WORDS, kind) ? WORDS[kind] : kind}`;
      checkFields(kind, schema, { type, id: 'string !', ...fields });
      for (const place of OPTIONAL_BLOCK_FIELDS) {
        const [owner, name] = place.split('.');
        if (owner === kind) assert.equal(fieldAt(schema, name ?? '')[1], false, place);
      }
    });
  }
});

test('every status that the table names is answered by some operation', () => {
  const described = new Set(
    operations().flatMap(({ operation }) => Object.keys(objectAt(operation, 'responses'))),
  );
  const wrong = WIRE_STATUSES.filter((status) => !described.has(String(status)));
  assert.deepEqual(wrong, []);
});

test('409 is described where two callers may collide', () => {
  for (const call of ['complete', 'fail', 'heartbeat']) {
    const operation = operationAt('POST', `/workers/tasks/{id}/${call}`);
    assert.ok(objectAt(operation, 'responses')['409'], call);
  }
});

for (const [limit, place, text] of WIRE_LIMIT_TEXTS) {
  test(`the document tells the limit: ${limit}`, () => {
    const [name = '', field = ''] = place.split('.');
    const [method = '', path = ''] = place.split(' ');
    const described = place.includes(' ')
      ? operationAt(method, path)
      : fieldAt(objectAt(DOCUMENT, 'components', 'schemas', name), field)[0];
    assert.match(String(described.description), text);
  });
}

test('the document is of the prefixed paths, and of this version', () => {
  assert.deepEqual(DOCUMENT.servers, [{ url: '/api/v1' }]);
  assert.match(String(objectAt(DOCUMENT, 'info').version), /^\d+\.\d+\.\d+/);
});
