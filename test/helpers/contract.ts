/**
 * The OpenAPI document as a check on answers. It knows nothing of the rows that the server routes
 * and validates by: what it looks at is the text that users get. Schemas are compiled one by one
 * when an answer first needs them.
 */

import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { openApiDocument } from '../../schema/openapi.js';

export type Schema = { readonly [keyword: string]: unknown };

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly explode?: boolean;
  readonly schema: Schema;
}

export interface Response {
  readonly headers?: { readonly [name: string]: Reference | Header };
  readonly content?: { readonly [type: string]: { readonly schema?: Schema } };
}

type Header = { readonly required?: boolean; readonly schema?: Schema };

type Reference = { readonly $ref: string };

/** An operation as the document describes it. */
export interface Operation {
  readonly id: string;
  readonly method: string;
  /** With parameters in braces. */
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly body: { readonly isRequired: boolean; readonly schema: Schema } | undefined;
  /** By status, and `default`. */
  readonly responses: { readonly [status: string]: Reference | Response };
  /** Each way to be let in, as names of schemes; an empty one, or none at all: open. */
  readonly security: readonly (readonly string[])[];
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly text: string;
}

interface PathItem {
  readonly template: string;
  readonly pattern: RegExp;
  readonly operations: ReadonlyMap<string, Operation>;
  /** What a method without an operation answers. */
  readonly otherMethods: Reference | Response | undefined;
}

interface DocumentOperation {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly required?: boolean;
    readonly content: { readonly [type: string]: { readonly schema: Schema } };
  };
  readonly responses: Operation['responses'];
  readonly security?: readonly { readonly [scheme: string]: unknown }[];
}

type Document = { readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>> };

const METHODS = ['get', 'put', 'post', 'delete', 'patch', 'options', 'head', 'trace'];
/** Where the paths of the document are served. */
const PREFIX = /^\/api\/v1\//;
const DOCUMENT_KEY = 'document';

/** The document of this build; the version is no part of what is checked. */
const document = openApiDocument('0.0.0') as unknown as Document;
const paths = Object.entries(document.paths).map(([template, item]) => readPath(template, item));
const ajv = newAjv();
const compiled = new Map<unknown, ValidateFunction>();
const resolved = new Map<string, object>();

/** Every operation, in the order of the document. */
export const OPERATIONS: readonly Operation[] = paths.flatMap(({ operations }) => [
  ...operations.values(),
]);

/**
 * What is wrong with an answer, as a sentence; undefined when the document describes it.
 *
 * @param path with or without the prefix and the query
 */
export function describeAnswer(method: string, path: string, answer: Answer): string | undefined {
  // The question of a browser is for the transport, whatever the path.
  if (method === 'OPTIONS' && answer.status === 204) return undefined;
  const item = findPath(path);
  if (item === undefined) return answer.status === 404 ? undefined : judgeUnknown(answer);
  const operation = item.operations.get(method === 'HEAD' ? 'GET' : method);
  const response =
    operation === undefined ? item.otherMethods : responseOf(operation, answer.status);
  if (operation === undefined && answer.status !== 405) return judgeUnknown(answer);
  if (response === undefined) return `status ${answer.status} is not described`;
  return judge(deref(response), method, answer);
}

/** What the default stands for, by its description. */
const TOLD_AS_DEFAULT = [408, 413, 421, 429, 431];

const responseOf = ({ responses }: Operation, status: number): Reference | Response | undefined =>
  responses[status] ?? (TOLD_AS_DEFAULT.includes(status) ? responses.default : undefined);

/** The operation that a request reaches; undefined when the document has none for it. */
export const operationFor = (method: string, path: string): Operation | undefined =>
  findPath(path)?.operations.get(method);

/** Whether a value conforms to a schema of the document. */
export const conforms = (schema: Schema, value: unknown): boolean => validatorOf(schema)(value);

/** What stands at the end of a reference within the document, or the thing itself. */
export function deref<T extends object>(thing: T | Reference): T {
  if (!('$ref' in thing) || typeof thing.$ref !== 'string') return thing as T;
  const known = resolved.get(thing.$ref);
  if (known !== undefined) return known as T;
  let at: unknown = document;
  for (const part of thing.$ref.split('/').slice(1)) {
    const key = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
    at = (at as Record<string, unknown>)[key];
  }
  if (at === undefined) throw new Error(`${thing.$ref} names nothing`);
  const found = deref(at as T | Reference);
  resolved.set(thing.$ref, found);
  return found;
}

// ---------------------------------------------------------------- the judgement

/** Before there is an operation, the transport may refuse a request by what any refusal looks like. */
function judgeUnknown({ status }: Answer): string | undefined {
  return [400, 404, 405, 408, 413, 429, 431, 503].includes(status)
    ? undefined
    : `status ${status} for what the document does not know`;
}

const judge = (response: Response, method: string, answer: Answer): string | undefined =>
  judgeHeaders(response, answer) ?? judgeContent(response, method, answer);

function judgeHeaders(response: Response, answer: Answer): string | undefined {
  for (const [name, described] of Object.entries(response.headers ?? {})) {
    const { required, schema } = deref<Header>(described);
    const value = answer.headers[name.toLowerCase()];
    if (value === undefined) {
      if (required === true) return `header ${name} is missing`;
    } else if (schema !== undefined && !conforms(schema, String(value))) {
      return `header ${name} is ${String(value)}`;
    }
  }
  return undefined;
}

function judgeContent(response: Response, method: string, answer: Answer): string | undefined {
  const { text } = answer;
  const content = Object.entries(response.content ?? {});
  if (content.length === 0) return text === '' ? undefined : 'a body is not described';
  const type = essence(String(answer.headers['content-type'] ?? ''));
  const media = content.find(([name]) => name === '*/*' || essence(name) === type);
  if (media === undefined) return `content type ${type} is not described`;
  const [, { schema }] = media;
  if (schema === undefined || method === 'HEAD') return undefined;
  return judgeBody(schema, type === 'application/json' ? parse(text) : text);
}

function judgeBody(schema: Schema, body: unknown): string | undefined {
  const validate = validatorOf(schema);
  if (validate(body)) return undefined;
  const [error] = validate.errors ?? [];
  return `the body${error?.instancePath ?? ''} ${error?.message ?? 'is not as described'}`;
}

/** The type without its parameters. */
const essence = (type: string): string => type.split(';')[0]?.trim().toLowerCase() ?? '';

/** Not JSON is undefined, which no schema of the document allows. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// ---------------------------------------------------------------- the document

function readPath(template: string, item: Readonly<Record<string, unknown>>): PathItem {
  const operations = new Map<string, Operation>();
  for (const method of METHODS) {
    const described = item[method] as DocumentOperation | undefined;
    if (described === undefined) continue;
    operations.set(method.toUpperCase(), readOperation(method, template, described));
  }
  const pattern = template.replace(/[.]/g, '\\$&').replace(/\{\w+\}/g, '[^/]+');
  return {
    template,
    pattern: new RegExp(`^${pattern}$`),
    operations,
    otherMethods: item['x-other-methods'] as Reference | Response | undefined,
  };
}

function readOperation(method: string, path: string, described: DocumentOperation): Operation {
  const { requestBody } = described;
  const schema = requestBody?.content['application/json']?.schema;
  return {
    id: described.operationId,
    method: method.toUpperCase(),
    path,
    parameters: described.parameters ?? [],
    body: schema && { isRequired: requestBody?.required === true, schema },
    responses: described.responses,
    security: (described.security ?? []).map((way) => Object.keys(way)),
  };
}

/** Fixed paths come before those with parameters, as OpenAPI has it. */
function findPath(path: string): PathItem | undefined {
  const [asked = ''] = path.split('?');
  const bare = asked.replace(PREFIX, '/');
  let found: PathItem | undefined;
  for (const item of paths) {
    if (item.template === bare) return item;
    if (found === undefined && item.pattern.test(bare)) found = item;
    else if (found !== undefined && item.pattern.test(bare) && isMoreFixed(item, found))
      found = item;
  }
  return found;
}

const isMoreFixed = (a: PathItem, b: PathItem): boolean =>
  a.template.indexOf('{') > b.template.indexOf('{');

function newAjv(): Ajv2020 {
  const found = new Ajv2020({ strict: false, validateSchema: false, validateFormats: true });
  addFormats.default(found);
  found.addFormat('time-zone', true);
  // References of the document begin at its root.
  found.addSchema({ $id: DOCUMENT_KEY, ...document });
  return found;
}

function validatorOf(schema: Schema): ValidateFunction {
  let validate = compiled.get(schema);
  if (validate === undefined) {
    validate = ajv.compile(rooted(schema) as Schema);
    compiled.set(schema, validate);
  }
  return validate;
}

/** The schema with its references bound to the document, so that it can stand by itself. */
function rooted(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(rooted);
  if (typeof schema !== 'object' || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [
      key,
      key === '$ref' && typeof value === 'string' ? DOCUMENT_KEY + value : rooted(value),
    ]),
  );
}
