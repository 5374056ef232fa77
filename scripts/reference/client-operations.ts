/**
 * What the client is made of, from the same rows as the document: the types of all shapes, the operations as
 * methods, and the table by which the client sends them. Pages for browsers are left out.
 */

import type { TSchema } from '@sinclair/typebox';
import { openApiDocument, operationIdOf } from '../../schema/openapi.js';
import { ROUTES, type Route } from '../../schema/routes.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { comment, FILLED, TypeWriter, union } from './client-types.js';
import { isListed, KEYS, repeatsOfTypeScript } from './repeats.js';

type Schema = { readonly [keyword: string]: JsonValue | undefined };

const HEAD = (purpose: string) => `/** ${purpose} Written by \`npm run generate\`. */\n\n`;

/** The generated files by their paths from the root of the repository, before they are formatted. */
export function clientFiles(): Readonly<Record<string, string>> {
  const document = openApiDocument('0.0.0');
  const operations = Object.values(ROUTES)
    .filter(isForPrograms)
    .map((route) => describe(document, route));
  const schemas = (document.components as JsonObject).schemas as Record<string, Schema>;
  const used = reachable(
    schemas,
    operations.flatMap(({ described }) => refsIn(described)),
  );
  const shapes = Object.fromEntries(Object.entries(schemas).filter(([name]) => used.has(name)));
  const bodies = operations.flatMap(({ body }) => (body === undefined ? [] : refsIn(body)));
  const asked = reachable(shapes, bodies);
  const filling = new Set(
    operations.flatMap(({ filling: { fills, shape } = {} }) => (fills ? [shape ?? ''] : [])),
  );
  const writer = new TypeWriter(shapes, asked, filling);
  const queries = operations.map((operation) => queryText(writer, operation));
  const dir = 'client/src/generated';
  return {
    [`${dir}/types.ts`]: `${HEAD('The shapes of requests and answers.')}${JSON_TYPES}\n${writer.declarations()}\n\n${queries.filter((text) => text !== '').join('\n\n')}\n`,
    [`${dir}/repeats.ts`]: repeatsOfTypeScript(),
    [`${dir}/operations.ts`]: operationsText(writer, operations, shapes),
  };
}

const JSON_TYPES = `/** Any value that JSON can hold. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;

export interface JsonObject {
  readonly [name: string]: JsonValue;
}
`;

interface Described {
  readonly route: Route;
  readonly described: Schema;
  /** `instances`, and what is called on it; operations of the server itself stand alone. */
  readonly resource: string | undefined;
  readonly name: string;
  readonly body: Schema | undefined;
  readonly isBodyRequired: boolean;
  readonly query: readonly Schema[];
  readonly filling: Filling | undefined;
  readonly pages: Paging | undefined;
  readonly answers: 'json' | 'text' | 'events';
}

/** Of the body, or of what its member `each` lists. */
interface Filling {
  readonly shape: string;
  readonly each?: string;
  readonly fills?: readonly string[];
  readonly key?: string;
}

type Paging = 'cursor' | 'offset' | 'page' | 'changes';

function isForPrograms({ contentType }: Route): boolean {
  return !/^text\/(?:html|css)/.test([contentType ?? ''].flat()[0] ?? '');
}

function describe(document: JsonObject, route: Route): Described {
  const paths = document.paths as Record<string, Record<string, Schema>>;
  const described = paths[route.path]?.[route.method.toLowerCase()] as Schema;
  const [resource, name] = route.id.split('.');
  const request = described.requestBody as JsonObject | undefined;
  const parameters = (described.parameters ?? []) as Schema[];
  const content = request?.content as Record<string, JsonObject> | undefined;
  const type = [route.contentType ?? ''].flat()[0] ?? '';
  return {
    route,
    described,
    resource: name === undefined ? undefined : resource,
    name: name ?? route.id,
    body: content?.['application/json']?.schema as Schema | undefined,
    isBodyRequired: request?.required === true,
    query: parameters.filter((parameter) => parameter.in === 'query'),
    filling: fillingOf(route),
    pages: pagingOf(route),
    answers: type === 'text/event-stream' ? 'events' : type === '' ? 'json' : 'text',
  };
}

/** What the client writes into bodies: tenant and namespace that are left out, and a key. */
export function fillingOf({ body, tenant }: Route): Filling | undefined {
  const members = Object.entries((body?.properties ?? {}) as Record<string, TSchema>);
  const lists = members.map(([each, { items }]) => ({ each, shape: items as TSchema | undefined }));
  for (const { shape, ...at } of [{ shape: body }, ...lists]) {
    if (shape?.$id === undefined) continue;
    const fills = FILLED.filter((name) => tenant !== 'none' && shape.required?.includes(name));
    const key = KEYS.find((name) => shape.properties?.[name] !== undefined);
    if (fills.length === 0 && key === undefined) continue;
    return { shape: shape.$id, ...at, ...(fills.length > 0 && { fills }), ...(key && { key }) };
  }
  return undefined;
}

function pagingOf({ query, replies, method }: Route): Paging | undefined {
  const names = Object.keys(query?.properties ?? {});
  const reply = replies[200];
  if (method !== 'GET' || reply == null) return undefined;
  if (reply.properties?.next_cursor !== undefined) return 'changes';
  if (reply.type === 'array' && names.includes('cursor')) return 'cursor';
  if (reply.type === 'array' && names.includes('offset')) return 'offset';
  return reply.properties?.items !== undefined && names.includes('cursor') ? 'page' : undefined;
}

// ---------------------------------------------------------------- what is asked

function queryName({ route }: Described): string {
  const id = operationIdOf(route.id);
  return `${id.charAt(0).toUpperCase()}${id.slice(1)}Query`;
}

/** Whether the caller must pass a parameter. */
const isQueryRequired = ({ query, route }: Described) =>
  query.some(({ name, required }) => required === true && !isFilledInQuery(route, name));

const isFilledInQuery = ({ tenant }: Route, name: unknown) =>
  tenant !== 'none' && FILLED.includes(String(name));

function queryText(writer: TypeWriter, operation: Described): string {
  if (operation.query.length === 0) return '';
  const required = operation.query
    .filter(({ name, required: is }) => is === true && !isFilledInQuery(operation.route, name))
    .map(({ name }) => String(name));
  const fields = operation.query.map(({ name, schema, description }) => {
    const shape = schema as Schema;
    const { additionalProperties, propertyNames, maxProperties, ...rest } = shape;
    const field = rest.type === 'object' ? METADATA : { ...rest, description: description ?? '' };
    return [name, field] as const;
  });
  const note = `What \`${operation.route.id}\` can be asked.`;
  return writer.declareFields(
    queryName(operation),
    note,
    Object.fromEntries(fields) as Schema,
    required,
  );
}

const METADATA: Schema = {
  type: 'object',
  additionalProperties: { type: 'string' },
  description: 'Equalities on top-level texts of the metadata; all must hold. At most 16.',
};

// ---------------------------------------------------------------- the operations

function operationsText(
  writer: TypeWriter,
  operations: readonly Described[],
  shapes: object,
): string {
  const resources = new Set(operations.map(({ resource }) => resource));
  const tree = [...resources].map((resource) => {
    const members = operations.filter((operation) => operation.resource === resource);
    const methods = members.map((operation) => methodText(writer, operation));
    if (resource === undefined) return methods.join('');
    return `  readonly ${resource}: {\n${methods.join('')}  };\n`;
  });
  const body = `/** Every operation of the server, by its name. */\nexport interface Operations {\n${tree.join('')}}\n\n`;
  const rows = operations.map((operation) => `  '${operation.route.id}': ${rowText(operation)},\n`);
  const table = `/** How each operation is sent. */\nexport const OPERATIONS = {\n${rows.join('')}} as const satisfies Readonly<Record<string, OperationRow>>;\n`;
  const names = [...Object.keys(shapes), 'JsonObject', 'JsonValue', ...operations.map(queryName)];
  const code = body.replaceAll(/\/\*[\s\S]*?\*\//g, '');
  const used = names.filter((name) => new RegExp(`\\b${name}\\b`).test(code)).sort();
  const ways = ['CallOptions', 'CreationOptions', 'EventStream', 'List', 'OperationRow'];
  return `${HEAD('The operations, typed, and the table by which they are sent.')}import type { ${ways.join(', ')} } from '../client/operation.js';\nimport type { ${used.join(', ')} } from './types.js';\n\n${body}${table}`;
}

function methodText(writer: TypeWriter, operation: Described): string {
  const { route, described, body, isBodyRequired, query, resource } = operation;
  const indent = resource === undefined ? '  ' : '    ';
  const hasQuery = query.length > 0;
  const options = route.body?.properties?.idempotency_key ? 'CreationOptions' : 'CallOptions';
  const aside =
    body !== undefined && hasQuery
      ? ` & { readonly query?: ${queryName(operation)} | undefined }`
      : '';
  const parameters = [
    ...route.paramNames.map((name) => `${camel(name)}: string`),
    ...(body === undefined
      ? []
      : [`body${isBodyRequired ? '' : '?'}: ${bodyType(writer, operation, body)}`]),
    ...(body === undefined && hasQuery
      ? [`query${isQueryRequired(operation) ? '' : '?'}: ${queryName(operation)}`]
      : []),
    `options?: ${options}${aside}`,
  ];
  const note = comment(
    `${route.summary.replace(/\.?$/, '.')} ${described.description ?? ''}`.trim(),
    indent,
  );
  return `${note}${indent}${operation.name}(${parameters.join(', ')}): ${answerType(writer, operation)};\n`;
}

/** A body that is judged by its bytes may be handed over as such. */
function bodyType(writer: TypeWriter, { route }: Described, body: Schema): string {
  const type = writer.typeOf(body, true, '    ');
  return route.isRaw ? union([type, 'string', 'Uint8Array']) : type;
}

function answerType(writer: TypeWriter, { route, described, answers, pages }: Described): string {
  if (answers === 'events') return 'EventStream';
  if (answers === 'text') return 'Promise<string>';
  const responses = described.responses as Record<string, JsonObject>;
  const types = Object.keys(route.replies)
    .filter((status) => Number(status) < 300)
    .map((status) => responses[status]?.content as Record<string, JsonObject> | undefined)
    // Plain text beside JSON is for providers, which do not use the client.
    .filter((content) => content === undefined || content['application/json'] !== undefined)
    .map((content) => content?.['application/json'])
    .map((media) =>
      media === undefined ? 'void' : writer.typeOf(media.schema as Schema, false, '    '),
    );
  if (pages === undefined) return `Promise<${union(types).replace(/ \| void$/, ' | undefined')}>`;
  const reply = route.replies[200];
  const items = reply?.properties?.items ?? reply?.properties?.changes ?? reply;
  return `List<${items?.items.$id}>`;
}

const camel = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** What is undefined does not come out as JSON. */
function rowText({ route, body, query, filling, pages, answers }: Described): string {
  const filledQuery = query
    .filter(({ name, required }) => required === true && isFilledInQuery(route, name))
    .map(({ name }) => String(name));
  const takes = [...(body === undefined ? [] : ['body']), ...(query.length === 0 ? [] : ['query'])];
  return JSON.stringify({
    method: route.method,
    path: route.path,
    takes: takes.length === 0 ? undefined : takes.join(' and '),
    each: filling?.each,
    fills: filling?.fills ?? (filledQuery.length === 0 ? undefined : filledQuery),
    key: filling?.key,
    pages,
    isRepeatable: isListed(route) ? true : undefined,
    isParked: route.isParked ?? route.mayWait,
    answers: answers === 'json' ? undefined : answers,
  });
}

// ---------------------------------------------------------------- the shapes of requests

function refsIn(value: JsonValue | undefined | Schema): string[] {
  if (Array.isArray(value)) return value.flatMap(refsIn);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value as Schema).flatMap(([keyword, inner]) => {
    if (keyword === '$ref') return [String(inner).split('/').at(-1) ?? ''];
    return keyword === 'examples' || keyword === 'mapping' ? [] : refsIn(inner);
  });
}

function reachable(
  schemas: Readonly<Record<string, Schema>>,
  first: readonly string[],
): Set<string> {
  const found = new Set<string>();
  const left = [...first];
  for (let name = left.pop(); name !== undefined; name = left.pop()) {
    if (found.has(name)) continue;
    found.add(name);
    left.push(...refsIn(schemas[name]));
  }
  return found;
}
