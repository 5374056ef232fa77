/**
 * What generators of clients in other languages need of the document. They are not run here: these are the
 * properties without which they drop an operation, or make a hundred thousand lines of it.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/base/json.js';
import { DOCUMENT, objectAt, operations } from './document.js';

type Found = { readonly place: string; readonly object: JsonObject };

/** Every object of the document but those of examples, which may hold anything. */
function objectsIn(value: JsonValue, place: string): Found[] {
  if (Array.isArray(value)) {
    return value.flatMap((item, index) => objectsIn(item, `${place}/${index}`));
  }
  if (!isJsonObject(value)) return [];
  const inner = Object.entries(value)
    .filter(([key]) => key !== 'example' && key !== 'examples')
    .flatMap(([key, member]) => objectsIn(member, `${place}/${key}`));
  return [{ place, object: value }, ...inner];
}

const ALL = objectsIn(DOCUMENT, '#');
const placesOf = (found: readonly Found[]) => found.map(({ place }) => place);

/** Schemas that have no name, inside of named ones and of operations. */
const INLINE = ALL.filter(({ place }) => !/^#\/components\/schemas\/\w+$/.test(place));

test('no list of words holds null, or words of several types', () => {
  const mixed = ALL.filter(({ object }) => {
    if (!Array.isArray(object.enum)) return false;
    const types = new Set(object.enum.map((word) => (word === null ? 'null' : typeof word)));
    return types.size !== 1 || types.has('null') || object.enum.length === 0;
  });
  assert.deepEqual(placesOf(mixed), []);
});

test('a list of words, and a single one, says its type, which is one', () => {
  const untyped = ALL.filter(
    ({ object }) =>
      (Array.isArray(object.enum) || object.const !== undefined) && typeof object.type !== 'string',
  );
  assert.deepEqual(placesOf(untyped), []);
});

test('a type is one word, or one and null', () => {
  const others = ALL.filter(
    ({ object }) =>
      Array.isArray(object.type) && (object.type.length !== 2 || object.type[1] !== 'null'),
  );
  assert.deepEqual(placesOf(others), []);
});

test('a choice is between named kinds, or one schema and null; few members may be written in two ways', () => {
  const choices = ALL.filter(
    ({ object }) => Array.isArray(object.anyOf) || Array.isArray(object.oneOf),
  );
  assert.ok(choices.length > 0);
  const others = choices.filter(({ object }) => {
    const kinds = (object.oneOf ?? object.anyOf) as JsonObject[];
    const unnamed = kinds.filter((kind) => kind.$ref === undefined && kind.type !== 'null');
    return unnamed.length > (kinds.length === 2 && kinds[1]?.type === 'null' ? 1 : 0);
  });
  assert.deepEqual(placesOf(others), [
    '#/components/schemas/SagaStep/properties/action',
    '#/components/schemas/SagaStep/properties/compensation',
    '#/components/schemas/SendSignal/properties/signal_type',
    '#/components/schemas/TriggerVerify/properties/secret',
  ]);
});

test('every refusal is a reference to an answer that all operations share', () => {
  for (const { method, path, operation } of operations()) {
    const responses = operation.responses as JsonObject;
    assert.ok(responses.default !== undefined, `${method} ${path}`);
    for (const [status, response] of Object.entries(responses)) {
      if (status < '400') continue;
      assert.deepEqual(
        Object.keys(response as JsonObject),
        ['$ref'],
        `${method} ${path} ${status}`,
      );
    }
  }
});

/** Each of them is code in every client: what grows beyond this is better given a name, or the default. */
const REFUSALS_PER_OPERATION_MAX = 10;
const HEADERS_PER_REFUSAL_MAX = 3;
const INLINE_OBJECTS_MAX = 60;
const INLINE_WORDS_MAX = 221;

test('operations tell few refusals one by one, and these few headers', () => {
  const counts = operations().map(({ operation }) => {
    return Object.keys(objectAt(operation, 'responses')).filter((status) => status >= '400').length;
  });
  const most = Math.max(...counts);
  assert.ok(most <= REFUSALS_PER_OPERATION_MAX, `${most} refusals`);
  for (const [name, response] of Object.entries(objectAt(DOCUMENT, 'components', 'responses'))) {
    const headers = objectAt(response as JsonObject, 'headers');
    assert.ok(Object.keys(headers).length <= HEADERS_PER_REFUSAL_MAX, name);
  }
});

test('schemas without a name stay few', () => {
  const objects = INLINE.filter(
    ({ object }) => object.type === 'object' && isJsonObject(object.properties),
  );
  const words = INLINE.filter(({ object }) => Array.isArray(object.enum));
  assert.ok(objects.length <= INLINE_OBJECTS_MAX, `${objects.length} objects`);
  assert.ok(words.length <= INLINE_WORDS_MAX, `${words.length} lists of words`);
});

test('every reference leads somewhere, and every operation has a name that is a name in any language', () => {
  for (const { place, object } of ALL) {
    if (typeof object.$ref !== 'string') continue;
    assert.ok(isJsonObject(objectAt(DOCUMENT, ...object.$ref.split('/').slice(1))), place);
  }
  for (const { operation } of operations())
    assert.match(String(operation.operationId), /^[a-z]\w*$/);
  for (const name of Object.keys(objectAt(DOCUMENT, 'components', 'schemas'))) {
    assert.match(name, /^[A-Z][A-Za-z0-9]*$/);
  }
});
