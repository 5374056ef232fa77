/**
 * The OpenAPI 3.1 document, made of the rows that route and validate: whatever it says about a field,
 * a status or a default is what the server checks. `docs/openapi.json` is its committed form.
 */

import type { TObject, TSchema } from '@sinclair/typebox';
import { ERROR_STATUS } from '../src/base/errors.js';
import type { JsonObject, JsonValue } from '../src/base/json.js';
import { ErrorBody, isStrict } from './common.js';
import { parameterExample } from './examples.js';
import { HEADER_NOTES, OPERATION_NOTES, QUERY_NOTES } from './openapi-notes.js';
import { SchemaBook } from './openapi-schemas.js';
import { DESCRIPTION, REFUSALS, TAGS, TITLE } from './openapi-texts.js';
import { bodyBytesMax } from './route-row.js';
import { ROUTES, type Route } from './routes.js';

/** Where the paths of the document are served. */
export const SERVER_URL = '/api/v1';

/**
 * The whole document, deeply frozen; the same version gives the same text.
 *
 * @param version of the server
 */
export function openApiDocument(version: string): JsonObject {
  const book = new SchemaBook();
  const paths = pathsOf(book);
  const responses = Object.fromEntries([
    ...Object.entries(REFUSALS).map(([status, [name, words]]) => [
      name,
      describeRefusal(book, [Number(status)], words),
    ]),
    ...pageRefusals(book),
    [OTHERWISE_NAME, describeRefusal(book, OTHERWISE, otherwiseWords())],
  ]);
  return deepFreeze({
    openapi: '3.1.0',
    info: { title: TITLE, version, description: DESCRIPTION },
    servers: [{ url: SERVER_URL }],
    tags: TAGS.map(({ name, description }) => ({ name, description })),
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
    paths[route.path] = {
      ...paths[route.path],
      [route.method.toLowerCase()]: describeRoute(book, route),
    };
  }
  // Methods without an operation are no operations, so their 405 stands beside those that are.
  for (const methods of Object.values(paths)) methods['x-other-methods'] = responseRef(405);
  return paths;
}

function describeRoute(book: SchemaBook, route: Route): JsonObject {
  const parameters = [
    ...parametersOf(book, route, route.params, 'path'),
    ...parametersOf(book, route, route.query, 'query'),
    ...headersOf(route),
  ];
  return {
    operationId: operationIdOf(route.id),
    tags: [TAGS.find(({ path }) => path.test(route.path))?.name ?? ''],
    summary: route.summary,
    description: remarksOn(route).join(' '),
    security: securityOf(route),
    ...(parameters.length === 0 ? {} : { parameters }),
    // What OpenAPI has no word for: the query as one object.
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

// ---------------------------------------------------------------- who may ask

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
    description: 'The tenant that the request is for; beside a key.',
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

// ---------------------------------------------------------------- what is asked

function parametersOf(
  book: SchemaBook,
  route: Route,
  schema: TObject | undefined,
  place: 'path' | 'query',
): JsonObject[] {
  if (schema === undefined) return [];
  return Object.entries(schema.properties).map(([name, property]) => {
    if (property.type === 'object') return metadataFilter(name);
    // Query parameters with a default are always there once they are read.
    const isRequired =
      place === 'path' || (schema.required?.includes(name) && property.default === undefined);
    const example = exampleOf(route, name, isRequired === true);
    const { description, ...shape } = book.refTo(property);
    const note = [place === 'query' ? QUERY_NOTES[name] : undefined, description];
    const told = note.filter((text) => text !== undefined).join(' ');
    return {
      name,
      in: place,
      ...(told === '' ? {} : { description: told }),
      ...(isRequired ? { required: true } : {}),
      // Comma-separated words; a list that is given twice counts as one.
      ...(property.type === 'array' ? { style: 'form', explode: false } : {}),
      schema: shape,
      ...(example === undefined ? {} : { example }),
    };
  });
}

function headersOf(route: Route): JsonObject[] {
  return Object.entries(HEADER_NOTES[route.id] ?? {}).map(([name, description]) => ({
    name,
    in: 'header',
    description,
    schema: { type: 'string' },
  }));
}

/** `metadata.<key>=<value>`: an exploded object is written as one parameter for each of its keys. */
function metadataFilter(name: string): JsonObject {
  return {
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
  };
}

function exampleOf(route: Route, name: string, isRequired: boolean): JsonValue | undefined {
  if (!isRequired) return undefined;
  return parameterExample(name, route.path);
}

function requestBodyOf(book: SchemaBook, route: Route, body: TSchema): JsonObject {
  return {
    description: sizeWords(route),
    required: route.isBodyOptional !== true,
    content: Object.fromEntries(
      [JSON_TYPE, ...(route.isForm ? [FORM_TYPE] : [])].map((type) => [
        type,
        { schema: book.refTo(body) },
      ]),
    ),
  };
}

function sizeWords(route: Route): string {
  const bytes = bodyBytesMax(route);
  if (bytes === undefined)
    return 'As large as the deployment allows, 10 MiB unless it says otherwise.';
  return `At most ${bytes} bytes.`;
}

// ---------------------------------------------------------------- what is answered

const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';

/** Any route gives these. */
const ANYWHERE = [400, 500, 503];
/**
 * The transport gives these on any route, whatever the operation (`src/http/transport.ts`), admission 429
 * (`actors/limits/front/admission.ts`), and a cell 421 for tenants of others (`src/cluster/placement.ts`). They are told once, as the default of every operation: clients that are generated have no
 * code for each of them.
 */
const OTHERWISE = [408, 413, 415, 421, 429, 431];
const OTHERWISE_NAME = 'OtherRefusal';
/** Where a key is asked for. */
const GUARDED = [401, 403];

const HEADERS: JsonObject = {
  'x-request-id': {
    required: true,
    description: 'That of the request, cut to letters, digits, _ and -, or a new one.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9_-]{1,128}$' },
  },
  'retry-after': {
    required: true,
    description: 'Seconds to wait before asking again.',
    schema: { type: 'string', pattern: '^\\d+$' },
  },
  allow: {
    required: true,
    description: 'The methods that the path has, separated by commas.',
    schema: { type: 'string' },
  },
  link: {
    description:
      'rel="next": the next page of a list that is full or was cut. rel="successor-version": the ' +
      'prefixed path, on bare aliases only.',
    schema: { type: 'string' },
  },
  'x-next-cursor': {
    description:
      'Of a list that is full or was cut: what the parameter cursor of its next page takes.',
    schema: { type: 'string' },
  },
  deprecation: {
    description: 'On bare aliases only: since when they are deprecated, as @ and unix seconds.',
    schema: { type: 'string', pattern: '^@\\d+$' },
  },
  sunset: {
    description: 'On bare aliases only: until when they are served at least.',
    schema: { type: 'string' },
  },
};

const headerRefs = (...names: readonly string[]): JsonObject =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

const COMMON_HEADERS = headerRefs('x-request-id', 'link', 'deprecation', 'sunset');

function responsesOf(book: SchemaBook, route: Route): JsonObject {
  const refused = new Set([...ANYWHERE, ...(isGuarded(route) ? GUARDED : [])]);
  const responses: Record<string, JsonObject> = {};
  for (const [status, schema] of Object.entries(route.replies)) {
    if (schema === ErrorBody) refused.add(Number(status));
    else responses[status] = describeSuccess(book, route, Number(status), schema);
  }
  for (const status of [...refused].sort((a, b) => a - b)) {
    responses[status] = responseRef(status, route.isPage && status < 500);
  }
  responses.default = { $ref: `#/components/responses/${OTHERWISE_NAME}` };
  return responses;
}

const isGuarded = ({ capability, isDocument }: Route) => capability !== 'public' || isDocument;

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
): JsonObject {
  const described = {
    description: SUCCESS_TEXTS[status] ?? '',
    headers: {
      ...(route.isAtRoot ? headerRefs('x-request-id') : COMMON_HEADERS),
      ...(route.query?.properties.cursor && schema?.type === 'array'
        ? headerRefs('x-next-cursor')
        : {}),
    },
  };
  const types = [route.contentType ?? (schema === null ? [] : JSON_TYPE)].flat();
  if (types.length === 0) return described;
  const media = types.map((type) => [type, mediaOf(book, type, schema)]);
  return { ...described, content: Object.fromEntries(media) };
}

/** Streams are text; of pictures nothing is said. */
function mediaOf(book: SchemaBook, type: string, schema: TSchema | null): JsonObject {
  if (schema !== null) return { schema: book.refTo(schema) };
  return type.startsWith('text/') ? { schema: { type: 'string' } } : {};
}

/** @param isPage browsers are told in HTML */
function responseRef(status: number, isPage = false): JsonObject {
  const [name] = REFUSALS[status] ?? [];
  if (name === undefined) throw new Error(`status ${status} is not described`);
  return { $ref: `#/components/responses/${name}${isPage ? PAGE : ''}` };
}

/** Marks the refusals of what people open in a browser. */
const PAGE = 'Page';

/** Those that operations for people give, by the names of their components. */
function pageRefusals(book: SchemaBook): [name: string, described: JsonObject][] {
  const pages = Object.values(ROUTES).filter(({ isPage }) => isPage);
  const statuses = new Set(
    pages.flatMap(({ replies }) => [400, ...Object.keys(replies).map(Number)]),
  );
  return Object.entries(REFUSALS).flatMap(([status, [name, words]]) => {
    if (!statuses.has(Number(status))) return [];
    const told = describeRefusal(book, [Number(status)], words);
    const html = { 'text/html': { schema: { type: 'string' } } };
    const content = { ...(told.content as JsonObject), ...html };
    return [[`${name}${PAGE}`, { ...told, content }]];
  });
}

function otherwiseWords(): string {
  return OTHERWISE.map((status) => `${status}: ${REFUSALS[status]?.[1]}`).join(' ');
}

/**
 * What bare aliases add to any answer is told of successes only: no path of the document is one. Where the
 * connection is given up (408) there is no code.
 */
function describeRefusal(
  book: SchemaBook,
  statuses: readonly number[],
  description: string,
): JsonObject {
  const codes = Object.entries(ERROR_STATUS)
    .filter(([, status]) => statuses.includes(status))
    .map(([code]) => code);
  const code = { schema: { type: 'string', enum: codes } };
  const isOneOf = (...some: readonly number[]) => statuses.some((status) => some.includes(status));
  return {
    description,
    headers: {
      ...headerRefs('x-request-id'),
      ...(codes.length === 0
        ? {}
        : { 'x-error-code': isOneOf(408) ? code : { required: true, ...code } }),
      ...(isOneOf(429, 503) ? retryAfter(statuses.length === 1) : {}),
      ...(isOneOf(405) ? headerRefs('allow') : {}),
    },
    content: { [JSON_TYPE]: { schema: book.refTo(ErrorBody) } },
  };
}

/** @param isRequired each of the statuses has it */
function retryAfter(isRequired: boolean): JsonObject {
  if (isRequired) return headerRefs('retry-after');
  return { 'retry-after': { ...(HEADERS['retry-after'] as JsonObject), required: false } };
}

function deepFreeze<T extends JsonValue>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const inner of Object.values(value)) deepFreeze(inner);
    Object.freeze(value);
  }
  return value;
}
