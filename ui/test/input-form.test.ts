/** Forms from schemas: which field each schema makes, what it begins with, and what is said of its values. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { instantOf, localTimeOf } from '../src/lib/local-time.ts';
import {
  doubtOf,
  type FormField,
  fieldsOf,
  initialOf,
  inputRefusalOf,
  type Json,
  type JsonObject,
  withMember,
} from '../src/pages/sequences/input-form.ts';

const fieldOf = (schema: JsonObject, more: JsonObject = {}): FormField => {
  const [field] = fieldsOf({ type: 'object', properties: { it: schema }, ...more }) ?? [];
  assert.ok(field);
  return field;
};

const KINDS: readonly (readonly [schema: JsonObject, kind: FormField['kind']])[] = [
  [{ type: 'string' }, 'text'],
  [{ type: ['string', 'null'] }, 'text'],
  [{ type: 'string', format: 'date' }, 'text'],
  [{ type: 'number' }, 'number'],
  [{ type: 'integer' }, 'number'],
  [{ type: 'boolean' }, 'yes-no'],
  [{ type: 'string', enum: ['a', 'b'] }, 'choice'],
  [{ enum: [1, null, 'x'] }, 'choice'],
  [{ const: 7 }, 'choice'],
  [{ type: 'object', properties: { a: { type: 'string' } } }, 'group'],
  [{ properties: { a: { type: 'string' } } }, 'group'],
  [{ type: 'object' }, 'json'],
  [{ type: 'object', properties: {} }, 'json'],
  [{ type: 'array', items: { type: 'string' } }, 'list'],
  [{ type: 'array', items: { type: 'object', properties: { a: { type: 'number' } } } }, 'list'],
  [{ type: 'array' }, 'json'],
  [{ type: 'array', items: {} }, 'json'],
  [{ type: ['string', 'number'] }, 'json'],
  [{ anyOf: [{ type: 'string' }, { type: 'number' }] }, 'json'],
  [{ $ref: '#/$defs/none' }, 'json'],
  [{}, 'json'],
];

for (const [schema, kind] of KINDS) {
  test(`${JSON.stringify(schema)} makes a field of the kind ${kind}`, () => {
    assert.equal(fieldOf(schema).kind, kind);
  });
}

test('a reference is followed, and what stands beside it wins', () => {
  const money = { type: 'integer', title: 'Money', minimum: 0 };
  const field = fieldOf({ $ref: '#/$defs/money', title: 'Price' }, { $defs: { money } });
  assert.equal(field.label, 'Price');
  assert.ok(field.kind === 'number' && field.limits.isInteger && field.limits.min === 0);
});

test('a schema that asks for no object, or for no members, has no fields', () => {
  for (const schema of [undefined, {}, { type: 'object' }, { type: 'array', items: {} }]) {
    assert.equal(fieldsOf(schema as JsonObject | undefined), undefined);
  }
});

test('objects within objects end in a text of JSON where a form would be too deep', () => {
  let schema: JsonObject = { type: 'string' };
  for (let depth = 0; depth < 8; depth++) {
    schema = { type: 'object', properties: { inner: schema } };
  }
  let fields = fieldsOf(schema);
  let depth = 0;
  for (; fields?.[0]?.kind === 'group'; depth++) fields = fields[0].fields;
  assert.equal(fields?.[0]?.kind, 'json');
  assert.ok(depth > 2);
});

test('a form begins with defaults, with groups that are required, and with nothing else', () => {
  const fields = fieldsOf({
    type: 'object',
    required: ['address', 'tags', 'agreed'],
    properties: {
      name: { type: 'string' },
      amount: { type: 'number', default: 3 },
      agreed: { type: 'boolean' },
      newsletter: { type: 'boolean' },
      tags: { type: 'array', items: { type: 'string' } },
      kind: { const: 'order' },
      address: { type: 'object', properties: { city: { type: 'string' } } },
      billing: { type: 'object', properties: { city: { type: 'string' } } },
      delivery: { type: 'object', properties: { way: { type: 'string', default: 'post' } } },
    },
  });
  assert.deepEqual(initialOf(fields ?? []), {
    amount: 3,
    agreed: false,
    tags: [],
    kind: 'order',
    address: {},
    delivery: { way: 'post' },
  });
});

const DOUBTS: readonly (readonly [schema: JsonObject, value: Json, doubt: string | undefined])[] = [
  [{ type: 'number', minimum: 0 }, -1, 'Must be at least 0'],
  [{ type: 'number', maximum: 9 }, 10, 'Must be at most 9'],
  [{ type: 'number', exclusiveMinimum: 0 }, 0, 'Must be more than 0'],
  [{ type: 'number', exclusiveMaximum: 9 }, 9, 'Must be less than 9'],
  [{ type: 'integer' }, 1.5, 'Must be a whole number'],
  [{ type: 'number' }, 'x', 'Must be a number'],
  [{ type: 'number' }, 1.5, undefined],
  [{ type: 'string', minLength: 2 }, 'a', 'Must have at least 2 characters'],
  [{ type: 'string', maxLength: 2 }, '😀😀', undefined],
  [{ type: 'string', maxLength: 2 }, 'abc', 'Must have at most 2 characters'],
];

for (const [schema, value, doubt] of DOUBTS) {
  test(`of ${JSON.stringify(value)} for ${JSON.stringify(schema)} is said: ${doubt ?? 'nothing'}`, () => {
    assert.equal(doubtOf(fieldOf(schema), value), doubt);
  });
}

const REFUSALS: readonly (readonly [message: string, path: string, said: string])[] = [
  ["context.data must have required property 'order'", 'order', 'is required'],
  ["context.data address must have required property 'zip'", 'address.zip', 'is required'],
  ['context.data amount must be >= 0', 'amount', 'must be >= 0'],
  ['context.data lines[1].count must be integer', 'lines[1].count', 'must be integer'],
  ['context.data must be object', '', 'must be object'],
];

for (const [message, path, said] of REFUSALS) {
  test(`"${message}" is about ${path || 'the input'}`, () => {
    const refusal = inputRefusalOf(`unprocessable entity: ${message}`);
    assert.deepEqual(refusal, { path, message: said });
  });
}

test('a refusal of something else is about no input', () => {
  assert.equal(inputRefusalOf('invalid argument: priority must be one of low, normal'), undefined);
});

test('a member that is emptied is left out', () => {
  assert.deepEqual(withMember({ a: 1, b: 2 }, 'a', undefined), { b: 2 });
  assert.deepEqual(withMember({ a: 1 }, 'b', false), { a: 1, b: false });
});

test('an instant is the same after it was shown as a local time', () => {
  const instant = '2026-03-29T10:30:00.000Z';
  assert.equal(instantOf(localTimeOf(instant)), instant);
  assert.equal(localTimeOf('soon'), '');
  assert.equal(instantOf(''), undefined);
});
