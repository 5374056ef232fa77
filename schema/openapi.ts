/**
 * The OpenAPI 3.1 document, derived from the rows that route and validate: fields, statuses and defaults are those
 * that the server checks. Its committed form is `docs/openapi.json`.
 */

import type { TObject, TSchema } from '@sinclair/typebox';
import { ERROR_STATUS } from '../src/base/errors.js';
import type { JsonObject, JsonValue } from '../src/base/json.js';
import { ErrorBody, isStrict } from './common.js';
import { parameterExample } from './examples.js';
import {
  DESCRIPTION,
  HEADER_NOTES,
  OPERATION_NOTES,
  QUERY_NOTES,
  REFUSALS,
  TAGS,
  TITLE,
} from './openapi-descriptions.js';
import { SchemaBook } from './openapi-schemas.js';
import { bodyBytesMax, PLAIN_TEXT } from './route-row.js';
import { ROUTES, type Route } from './routes.js';

/** The whole document, deeply frozen. The same version of the server gives the same text. */
export function openApiDocument(version: string): JsonObject {
  const book = new SchemaBook();
  const paths = pathsOf(book);
  const otherwise = OTHERWISE.map((status) => `${status}: ${REFUSALS[status]?.[1]}`).join(' ');
  const responses = Object.fromEntries([
    ...Object.entries(REFUSALS).map(([status, [name, description]]) => [
      name,
      describeRefusal(book, [Number(status)], description),
    ]),
    ...pageRefusals(book),
    [OTHERWISE_NAME, describeRefusal(book, OTHERWISE, otherwise)],
  ]);
  return deepFreeze({
    openapi: '3.1.0',
    info: { title: TITLE, version, description: DESCRIPTION },
    servers: [{ url: '/api/v1' }],
    tags: TAGS.map(([, name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: book.components(),
      responses,
      headers: HEADERS,
      securitySchemes: SECURITY_SCHEMES,
    },
  });
}

// ---------------------------------------------------------------- operations

function pathsOf(book: SchemaBook): JsonObject {
  const paths: Record<string, JsonObject> = {};
  for (const route of Object.values(ROUTES)) {
    const method = route.method.toLowerCase();
    paths[route.path] = { ...paths[route.path], [method]: describeRoute(book, route) };
  }
  // The 405 of a path belongs to methods that are no operations.
  for (const methods of Object.values(paths)) methods['x-other-methods'] = responseRef(405);
  return paths;
}

function describeRoute(book: SchemaBook, route: Route): JsonObject {
  const parameters = [
    ...parametersOf(book, route, route.params, 'path'),
    ...parametersOf(book, route, route.query, 'query'),
    ...Object.entries(HEADER_NOTES[route.id] ?? {}).map(([name, description]) => ({
      name,
      in: 'header',
      description,
      schema: { type: 'string' },
    })),
  ];
  return {
    operationId: operationIdOf(route.id),
    tags: [TAGS.find(([path]) => path.test(route.path))?.[1] ?? ''],
    summary: route.summary,
    description: remarksOn(route).join(' '),
    security: securityOf(route),
    ...(parameters.length === 0 ? {} : { parameters }),
    // OpenAPI cannot describe the query as one object.
    ...(hasStrictQuery(route) ? { 'x-query': { additionalProperties: false } } : {}),
    ...(route.body === undefined ? {} : { requestBody: requestBodyOf(book, route, route.body) }),
    responses: responsesOf(book, route),
  };
}

/** `instances.patchState` as `instancesPatchState`: names of functions in generated clients. */
export function operationIdOf(routeId: string): string {
  return routeId.replace(/\.(\w)/g, (_, letter: string) => letter.toUpperCase());
}

const hasStrictQuery = ({ query }: Route) => query !== undefined && isStrict(query);

function remarksOn(route: Route): string[] {
  const note = OPERATION_NOTES[route.id];
  const remarks = [...(note === undefined ? [] : [note]), accessTo(route)];
  if (route.tenant === 'optional') remarks.push('The header x-tenant-id may be left out.');
  if (hasStrictQuery(route)) remarks.push('Unknown parameters are refused.');
  if (route.isAtRoot) remarks.push(`Served at the root as well: ${route.path}.`);
  return remarks;
}

function accessTo({ capability, isDocument }: Route): string {
  if (isDocument) return 'Open, unless the deployment protects it by key and tenant.';
  if (capability === 'public') return 'Open to everyone.';
  if (capability.length === 0) return 'For the root key only.';
  return `For the root key and for keys with the capability ${capability.join(' or ')}.`;
}

// ---------------------------------------------------------------- authentication

const SECURITY_SCHEMES: JsonObject = {
  apiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'x-api-key',
    description: 'The root key, or a key of a tenant.',
  },
  bearer: { type: 'http', scheme: 'bearer', description: 'The same keys; x-api-key wins.' },
  tenant: {
    type: 'apiKey',
    in: 'header',
    name: 'x-tenant-id',
    description: 'The tenant of the request; beside a key.',
  },
};

function securityOf(route: Route): JsonValue[] {
  const withTenant = [
    { apiKey: [], tenant: [] },
    { bearer: [], tenant: [] },
  ];
  const keyAlone = [{ apiKey: [] }, { bearer: [] }];
  if (route.isDocument) return [{}, ...withTenant];
  if (route.capability === 'public') return [];
  if (route.tenant === 'none') return keyAlone;
  return route.tenant === 'required' ? withTenant : [...withTenant, ...keyAlone];
}

// ---------------------------------------------------------------- requests

function parametersOf(
  book: SchemaBook,
  route: Route,
  schema: TObject | undefined,
  place: 'path' | 'query',
): JsonObject[] {
  return Object.entries(schema?.properties ?? {}).map(([name, property]) => {
    if (property.type === 'object') return metadataFilter(name);
    // Query parameters with a default are always present once they are parsed.
    const isRequired =
      place === 'path' || (schema?.required?.includes(name) && property.default === undefined);
    const example = isRequired ? parameterExample(name, route.path) : undefined;
    const { description, ...shape } = book.refTo(property);
    const notes = [place === 'query' ? QUERY_NOTES[name] : undefined, description];
    const words = notes.filter((text) => text !== undefined).join(' ');
    return {
      name,
      in: place,
      ...(words === '' ? {} : { description: words }),
      ...(isRequired ? { required: true } : {}),
      // Comma-separated words; a repeated parameter extends the list.
      ...(property.type === 'array' ? { style: 'form', explode: false } : {}),
      schema: shape,
      ...(example === undefined ? {} : { example }),
    };
  });
}

/** `metadata.<key>=<value>`: an exploded object is written as one parameter for each of its keys. */
const metadataFilter = (name: string): JsonObject => ({
  name,
  in: 'query',
  style: 'form',
  explode: true,
  description:
    `One parameter ${name}.<key>=<value> for each equality on a top-level text of the ` +
    'metadata; all must hold, and at most 16 are possible.',
  schema: {
    type: 'object',
    propertyNames: { pattern: `^${name}\\.` },
    additionalProperties: { type: 'string' },
    maxProperties: 16,
  },
  example: {},
});

function requestBodyOf(book: SchemaBook, route: Route, body: TSchema): JsonObject {
  const bytes = bodyBytesMax(route);
  const types = [JSON_TYPE, ...(route.isForm ? ['application/x-www-form-urlencoded'] : [])];
  return {
    description:
      bytes === undefined
        ? 'Limited by the deployment; default: 10 MiB.'
        : `At most ${bytes} bytes.`,
    required: route.isBodyOptional !== true,
    content: Object.fromEntries(types.map((type) => [type, { schema: book.refTo(body) }])),
  };
}

// ---------------------------------------------------------------- responses

const JSON_TYPE = 'application/json';

/** Error statuses of every route, and of every route that requires a key. */
const ANYWHERE = [400, 500, 503];
const GUARDED = [401, 403];
/**
 * Any route may answer these: the transport (`src/http/transport.ts`), admission 429, and a cell 421 for tenants of
 * others. They are described once, as the default of every operation, so that generated clients have no code for each.
 */
const OTHERWISE = [408, 413, 415, 421, 429, 431];
const OTHERWISE_NAME = 'OtherRefusal';

const header = (description: string, pattern?: string): JsonObject => ({
  description,
  schema: { type: 'string', ...(pattern === undefined ? {} : { pattern }) },
});
const requiredHeader = (description: string, pattern?: string): JsonObject => ({
  required: true,
  ...header(description, pattern),
});

const HEADERS: JsonObject = {
  'x-request-id': requiredHeader(
    'That of the request, reduced to letters, digits, _ and -, or a new one.',
    '^[A-Za-z0-9_-]{1,128}$',
  ),
  'retry-after': requiredHeader('Seconds to wait before a retry.', '^\\d+$'),
  allow: requiredHeader('The methods of the path, separated by commas.'),
  link: header(
    'rel="next": the next page of a list that is full or was truncated. rel="successor-version": ' +
      'the prefixed path, on bare aliases only.',
  ),
  'x-next-cursor': header(
    'For a list that is full or was truncated: the parameter cursor of its next page.',
  ),
  deprecation: header(
    'On bare aliases only: since when they are deprecated, as @ and unix seconds.',
    '^@\\d+$',
  ),
  sunset: header('On bare aliases only: the earliest end of their service.'),
  'preference-applied': requiredHeader('The header prefer took effect.', '^return=minimal$'),
};

const headerRefs = (...names: readonly string[]): JsonObject =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

function responsesOf(book: SchemaBook, route: Route): JsonObject {
  const isGuarded = route.capability !== 'public' || route.isDocument;
  const refused = new Set([...ANYWHERE, ...(isGuarded ? GUARDED : [])]);
  const responses: Record<string, JsonObject> = {};
  for (const [status, schema] of Object.entries(route.replies)) {
    if (schema === ErrorBody) refused.add(Number(status));
    else responses[status] = describeSuccess(book, route, Number(status), schema);
  }
  if (route.mayBeMinimal) {
    responses[204] = describeSuccess(book, route, 204, null, 'preference-applied');
  }
  for (const status of [...refused].sort((a, b) => a - b)) {
    responses[status] = responseRef(status, route.isPage && status < 500);
  }
  responses.default = { $ref: `#/components/responses/${OTHERWISE_NAME}` };
  return responses;
}

const SUCCESS_TEXTS: Readonly<Record<number, string>> = {
  200: 'Done.',
  201: 'Created.',
  204: 'Done; without a body.',
};

function describeSuccess(
  book: SchemaBook,
  route: Route,
  status: number,
  schema: TSchema | null,
  ...more: readonly string[]
): JsonObject {
  const aliasHeaders = route.isAtRoot ? [] : ['link', 'deprecation', 'sunset'];
  const isPaged = route.query?.properties.cursor && schema?.type === 'array';
  const byDefault = schema?.type === 'string' ? PLAIN_TEXT : JSON_TYPE;
  const types = [route.contentType ?? (schema === null ? [] : byDefault)].flat();
  const media = types.map((type) => [type, mediaOf(book, type, schema)]);
  return {
    description: SUCCESS_TEXTS[status] ?? '',
    headers: headerRefs(
      'x-request-id',
      ...aliasHeaders,
      ...(isPaged ? ['x-next-cursor'] : []),
      ...more,
    ),
    ...(types.length === 0 ? {} : { content: Object.fromEntries(media) }),
  };
}

/** Streams are text; images have no schema. */
function mediaOf(book: SchemaBook, type: string, schema: TSchema | null): JsonObject {
  if (schema !== null) return { schema: book.refTo(schema) };
  return type.startsWith('text/') ? { schema: { type: 'string' } } : {};
}

/** Suffix of the error responses that browsers receive as HTML. */
const PAGE = 'Page';

function responseRef(status: number, isPage = false): JsonObject {
  const [name] = REFUSALS[status] ?? [];
  if (name === undefined) throw new Error(`status ${status} is not described`);
  return { $ref: `#/components/responses/${name}${isPage ? PAGE : ''}` };
}

/** The error responses of operations for people, by component. */
function pageRefusals(book: SchemaBook): [name: string, described: JsonObject][] {
  const pages = Object.values(ROUTES).filter(({ isPage }) => isPage);
  const statuses = new Set(['400', ...pages.flatMap(({ replies }) => Object.keys(replies))]);
  return Object.entries(REFUSALS).flatMap(([status, [name, words]]) => {
    if (!statuses.has(status)) return [];
    const described = describeRefusal(book, [Number(status)], words);
    const html = { 'text/html': { schema: { type: 'string' } } };
    const content = { ...(described.content as JsonObject), ...html };
    return [[`${name}${PAGE}`, { ...described, content }]];
  });
}

/** A 408 has no code, since the connection is closed. */
function describeRefusal(
  book: SchemaBook,
  statuses: readonly number[],
  description: string,
): JsonObject {
  const codes = Object.entries(ERROR_STATUS)
    .filter(([, status]) => statuses.includes(status))
    .map(([code]) => code);
  const code = { schema: { type: 'string', enum: codes } };
  const retryAfter = HEADERS['retry-after'] as JsonObject;
  const isOneOf = (...some: readonly number[]) => statuses.some((status) => some.includes(status));
  const codeHeader = isOneOf(408) ? code : { required: true, ...code };
  // Only some of several statuses have the header.
  const wait =
    statuses.length === 1
      ? headerRefs('retry-after')
      : { 'retry-after': { ...retryAfter, required: false } };
  return {
    description,
    headers: {
      ...headerRefs('x-request-id'),
      ...(codes.length === 0 ? {} : { 'x-error-code': codeHeader }),
      ...(isOneOf(429, 503) ? wait : {}),
      ...(isOneOf(405) ? headerRefs('allow') : {}),
    },
    content: { [JSON_TYPE]: { schema: book.refTo(ErrorBody) } },
  };
}

function deepFreeze<T extends JsonValue>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const inner of Object.values(value)) deepFreeze(inner);
    Object.freeze(value);
  }
  return value;
}
