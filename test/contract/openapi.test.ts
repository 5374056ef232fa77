/**
 * The OpenAPI document: valid, current, and complete with regard to the rows and the catalogue of
 * errors that the server works by.
 */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { Block } from '../../schema/blocks.js';
import { EXAMPLES } from '../../schema/example-values.js';
import { isCalendarDay, isTimestamp, isTimeZone, isUuid } from '../../schema/formats.js';
import { openApiDocument, operationIdOf } from '../../schema/openapi.js';
import { OPERATION_NOTES, QUERY_NOTES, REFUSALS } from '../../schema/openapi-descriptions.js';
import { CHECK_TEXTS } from '../../schema/openapi-schemas.js';
import { ROUTES, type Route } from '../../schema/routes.js';
import { ERROR_STATUS } from '../../src/base/errors.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/base/json.js';
import {
  DOCUMENT,
  jsonSchemaOf,
  objectAt,
  operationAt,
  operations,
  resolve,
  VERSION,
} from './document.js';

const routes = Object.values(ROUTES);
const SCHEMAS = objectAt(DOCUMENT, 'components', 'schemas');

// ---------------------------------------------------------------- the document as a whole

test('the document is valid OpenAPI 3.1', async () => {
  const copy = structuredClone(DOCUMENT) as Record<string, unknown>;
  const { valid, errors } = await new Validator().validate(copy);
  assert.equal(valid, true, JSON.stringify(errors));
  assert.equal(DOCUMENT.openapi, '3.1.0');
});

test('docs/openapi.json is the document of this version: npm run generate writes it', () => {
  const committed: unknown = JSON.parse(readFileSync('docs/openapi.json', 'utf8'));
  // Not `equal`, which would print both of them.
  assert.ok(JSON.stringify(committed) === JSON.stringify(DOCUMENT), 'docs/openapi.json is old');
});

test('the same version gives the same text, and nobody can change the document', () => {
  assert.equal(JSON.stringify(openApiDocument(VERSION)), JSON.stringify(DOCUMENT));
  const info = objectAt(DOCUMENT, 'info');
  assert.throws(() => {
    info.title = 'another';
  }, TypeError);
});

test('The OpenAPI document has the semantic version of the server', () => {
  assert.equal(objectAt(DOCUMENT, 'info').version, VERSION);
  assert.equal(objectAt(openApiDocument('9.8.7'), 'info').version, '9.8.7');
});

test('every limit is documented in the OpenAPI document', () => {
  const prose = String(objectAt(DOCUMENT, 'info').description).replace(/\s+/g, ' ');
  const caps = ['10 MiB', '256 KiB', '64 levels', '5,000', '256 branches', '100,000 iterations'];
  const wrong = caps.filter((cap) => !prose.includes(cap));
  assert.deepEqual(wrong, []);
  for (const kind of ['LoopBlock', 'ForEachBlock']) {
    assert.equal(objectAt(SCHEMAS, kind, 'properties', 'max_iterations').maximum, 100_000);
  }
  for (const kind of ['ParallelBlock', 'RaceBlock']) {
    assert.equal(objectAt(SCHEMAS, kind, 'properties', 'branches').maxItems, 256);
  }
  const blocks = objectAt(SCHEMAS, 'CreateSequence', 'properties', 'blocks');
  assert.match(String(blocks.description), /5000 blocks.*64 levels/);
  const context = objectAt(SCHEMAS, 'CreateInstance', 'properties', 'context');
  assert.match(String(context.description), /256 KiB/);
});

// ---------------------------------------------------------------- operations

describe('operations', () => {
  test('are the rows, each once and under a name of its own', () => {
    assert.deepEqual(
      operations()
        .map(({ method, path }) => `${method} ${path}`)
        .sort(),
      routes.map(({ method, path }) => `${method} ${path}`).sort(),
    );
    const ids = routes.map(({ method, path }) => operationAt(method, path).operationId);
    const expected = routes.map(({ id }) => operationIdOf(id));
    assert.deepEqual(ids, expected);
    assert.equal(new Set(ids).size, routes.length);
  });

  for (const route of routes) {
    test(`${route.method} ${route.path} tells what its row asks for and answers`, () => {
      const operation = operationAt(route.method, route.path);
      assert.deepEqual(parameterNames(operation, 'path'), route.paramNames);
      const asked = Object.keys(route.query?.properties ?? {});
      assert.deepEqual(parameterNames(operation, 'query'), asked);
      assert.equal(operation.requestBody === undefined, route.body === undefined);
      assert.deepEqual(statusesOf(operation), expectedStatuses(route));
      assert.ok(
        objectAt(DOCUMENT, 'paths', route.path, 'x-other-methods').description,
        'what another method is answered',
      );
    });
  }
});

function parameterNames(operation: JsonObject, place: string): unknown[] {
  const parameters = (operation.parameters ?? []) as JsonObject[];
  return parameters.filter((one) => one.in === place).map((one) => one.name);
}

/** Those that are told one by one. */
const statusesOf = (operation: JsonObject) =>
  Object.keys(objectAt(operation, 'responses'))
    .filter((status) => status !== 'default')
    .map(Number);

/** What any route may answer, and who asks for a key to anyone. */
function expectedStatuses({ replies, capability, isDocument, mayBeMinimal }: Route): number[] {
  const isGuarded = capability !== 'public' || isDocument === true;
  const anywhere = [
    400,
    500,
    503,
    ...(isGuarded ? [401, 403] : []),
    ...(mayBeMinimal ? [204] : []),
  ];
  return [...new Set([...Object.keys(replies).map(Number), ...anywhere])].sort((a, b) => a - b);
}

// ---------------------------------------------------------------- answers and headers

describe('answers', () => {
  const answers = operations().flatMap(({ method, path, operation }) =>
    statusesOf(operation).map((status) => ({
      what: `${method} ${path} ${status}`,
      status,
      answer: objectAt(operation, 'responses', String(status)),
    })),
  );

  test('all carry x-request-id', () => {
    const without = answers.filter(({ answer }) => !isRequired(answer, 'x-request-id'));
    assert.deepEqual(without, []);
  });

  test('refusals have the body of every error, and the code where there is one', () => {
    for (const { what, status, answer } of answers.filter((one) => one.status >= 400)) {
      assert.deepEqual(jsonSchemaOf(answer), SCHEMAS.ErrorBody, what);
      assert.equal(isRequired(answer, 'x-error-code'), status !== 408, what);
      assert.equal(isRequired(answer, 'retry-after'), status === 429 || status === 503, what);
    }
  });

  test('a 503 says when to ask again, a 405 which methods there are', () => {
    const responses = objectAt(DOCUMENT, 'components', 'responses');
    assert.ok(isRequired(objectAt(responses, 'Unavailable'), 'retry-after'));
    assert.ok(isRequired(objectAt(responses, 'MethodNotAllowed'), 'allow'));
  });

  test('of deprecated aliases may carry what says so, and lists the way to their next page', () => {
    const { answer } = answers.find(({ what }) => what === 'GET /instances 200') ?? {};
    assert.ok(answer);
    for (const name of ['deprecation', 'sunset', 'link']) objectAt(answer, 'headers', name);
    const { answer: health } = answers.find(({ what }) => what === 'GET /health/live 200') ?? {};
    assert.ok(health);
    assert.deepEqual(Object.keys(objectAt(health, 'headers')), ['x-request-id']);
  });

  test('streams are event streams, metrics are text', () => {
    const typesOf = (path: string) =>
      Object.keys(objectAt(operationAt('GET', path), 'responses', '200', 'content'));
    assert.deepEqual(typesOf('/instances/{id}/stream'), ['text/event-stream']);
    assert.deepEqual(typesOf('/metrics'), ['text/plain; version=0.0.4; charset=utf-8']);
  });

  test('every error code stands at its status, and no other code does', () => {
    const responses = objectAt(DOCUMENT, 'components', 'responses');
    const described = Object.entries(REFUSALS).flatMap(([status, [name]]) => {
      const { 'x-error-code': header } = objectAt(responses, name, 'headers');
      const codes = isJsonObject(header) ? (objectAt(header, 'schema').enum as string[]) : [];
      return codes.map((code) => [code, Number(status)]);
    });
    assert.deepEqual(described.sort(), Object.entries(ERROR_STATUS).sort());
  });
});

function isRequired(answer: JsonObject, header: string): boolean {
  const found = objectAt(answer, 'headers')[header];
  return isJsonObject(found) && resolve(found).required === true;
}

// ---------------------------------------------------------------- schemas

describe('schemas', () => {
  test('hold none of the names that only our validators know', () => {
    const text = JSON.stringify(DOCUMENT);
    for (const name of ['"$id"', '"x-lower-case"', '"x-check"', '"x-fixed"', '"calendar-day"']) {
      assert.ok(!text.includes(name), name);
    }
  });

  test('every named check has its words', () => {
    const asked = new Set(schemasIn([routes, Block]).map((schema) => schema['x-check']));
    asked.delete(undefined);
    // Told by schemas of their own.
    for (const own of ['signal-type', 'secrets']) asked.delete(own);
    assert.deepEqual([...asked].sort(), Object.keys(CHECK_TEXTS).sort());
  });

  test('what is noted about an operation or a parameter is about one that exists', () => {
    for (const id of Object.keys(OPERATION_NOTES)) assert.ok(id in ROUTES, id);
    const asked = new Set(routes.flatMap(({ query }) => Object.keys(query?.properties ?? {})));
    for (const name of Object.keys(QUERY_NOTES)) assert.ok(asked.has(name), name);
  });

  test('a schema has one meaning under its name', () => {
    const texts = new Map<string, string>();
    for (const schema of schemasIn([routes, Block])) {
      if (typeof schema.$id !== 'string') continue;
      const text = JSON.stringify(schema);
      assert.equal(texts.get(schema.$id) ?? text, text, schema.$id);
      texts.set(schema.$id, text);
    }
  });
});

/** Every schema object of the rows, however deep. */
function schemasIn(value: unknown): Record<string, unknown>[] {
  if (typeof value !== 'object' || value === null) return [];
  return [value as Record<string, unknown>, ...Object.values(value).flatMap(schemasIn)];
}

// ---------------------------------------------------------------- examples

describe('examples', () => {
  const ajv = new Ajv2020({
    strict: false,
    formats: {
      uuid: isUuid,
      'date-time': isTimestamp,
      date: isCalendarDay,
      'time-zone': isTimeZone,
    },
  });
  ajv.addSchema(DOCUMENT, 'document');
  const checkOf = (pointer: string) => ajv.compile({ $ref: `document#${pointer}` });

  test('every named schema has one, and there is none without a schema', () => {
    // The document's own schema is that of OpenAPI.
    const named = Object.keys(SCHEMAS).filter((name) => name !== 'OpenApiDocument');
    const seen = named.filter((name) => objectAt(SCHEMAS, name).examples === undefined);
    assert.deepEqual(seen, []);
    const unknown = Object.keys(EXAMPLES).filter((name) => !named.includes(name));
    assert.deepEqual(unknown, []);
  });

  for (const [name, { examples }] of Object.entries(SCHEMAS) as [string, JsonObject][]) {
    if (examples === undefined) continue;
    const [example] = examples as JsonValue[];
    test(`that of ${name} fits its schema`, () => {
      const check = checkOf(`/components/schemas/${name}`);
      assert.ok(check(structuredClone(example)), JSON.stringify(check.errors));
    });
  }

  test('those of parameters fit theirs', () => {
    for (const { method, path, operation } of operations()) {
      for (const [index, parameter] of ((operation.parameters ?? []) as JsonObject[]).entries()) {
        if (parameter.example === undefined) {
          assert.ok(!parameter.required, `${method} ${path} ${parameter.name} has no example`);
          continue;
        }
        const place = path.replaceAll('~', '~0').replaceAll('/', '~1');
        const pointer = `/paths/${place}/${method.toLowerCase()}/parameters/${index}/schema`;
        const check = checkOf(encodeURI(pointer));
        assert.ok(check(parameter.example as JsonValue), `${method} ${path} ${parameter.name}`);
      }
    }
  });
});
