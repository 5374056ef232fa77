/** Reading the OpenAPI document in tests: operations by method and path, references followed. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { openApiDocument } from '../../schema/openapi.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/base/json.js';

export const VERSION = (JSON.parse(readFileSync('package.json', 'utf8')) as { version: string })
  .version;

export const DOCUMENT = openApiDocument(VERSION);

/** The object at this key. @throws AssertionError when there is none */
export function objectAt(object: JsonObject, ...keys: readonly string[]): JsonObject {
  let at: JsonValue | undefined = object;
  for (const key of keys) at = isJsonObject(at) ? resolve(at)[key] : undefined;
  assert.ok(isJsonObject(at), `no object at ${keys.join(' > ')}`);
  return resolve(at);
}

/** What a reference names; anything else as it is. */
export function resolve(value: JsonObject): JsonObject {
  if (typeof value.$ref !== 'string') return value;
  return objectAt(DOCUMENT, ...value.$ref.split('/').slice(1));
}

export interface DocumentedOperation {
  readonly method: string;
  readonly path: string;
  readonly operation: JsonObject;
}

const METHODS = new Set(['get', 'post', 'put', 'patch', 'delete']);

export function operations(): DocumentedOperation[] {
  return Object.entries(objectAt(DOCUMENT, 'paths')).flatMap(([path, item]) =>
    Object.entries(item as JsonObject)
      .filter(([method]) => METHODS.has(method))
      .map(([method, operation]) => ({
        method: method.toUpperCase(),
        path,
        operation: operation as JsonObject,
      })),
  );
}

export const operationAt = (method: string, path: string): JsonObject =>
  objectAt(DOCUMENT, 'paths', path, method.toLowerCase());

/** The schema of a request's or an answer's JSON. */
export const jsonSchemaOf = (described: JsonObject): JsonObject =>
  objectAt(described, 'content', 'application/json', 'schema');
