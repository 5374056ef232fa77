/**
 * From a schema of the document to arbitrary values that conform to it. Names of fields say what a
 * schema cannot: which ids exist, what is an expression, what would make a run wait for hours. Ids
 * are marks that are replaced when the request is sent, so that they are ids of what is there.
 */

import fc from 'fast-check';
import { exampleOf } from '../../schema/examples.js';
import { Capsule } from '../../schema/handoff.js';
import type { Json } from '../helpers/api.js';
import { deref, type Operation, type Parameter, type Schema } from '../helpers/contract.js';

/** A request of an operation before its ids are filled in. */
export interface Draft {
  readonly operation: Operation;
  readonly params: Readonly<Record<string, string>>;
  /** Decoded pairs; a name may stand more than once. */
  readonly query: readonly (readonly [name: string, text: string])[];
  /** Undefined: no body is sent. */
  readonly body: unknown;
}

/** What a mark stands for: `@sequences#12` is the twelfth of the known sequences, counted around. */
export const MARK = /^@([a-z]+)#(\d+)$/;

/** The tenant of the request, for fields that must repeat it. */
export const TENANT_MARK = '@tenant';

export const NAMESPACE = 'fuzz';
export const WORKER = 'w1';
/** Served by workers, of which there are none but the requests themselves. */
export const EXTERNAL_HANDLERS = ['fuzz-a', 'fuzz-b'];
/** Half of the steps wait for a worker, so that there are instances that have not ended. */
const HANDLERS = [
  ...['noop', 'log', 'transform', 'assert', 'fail', 'sleep'],
  ...[...EXTERNAL_HANDLERS, ...EXTERNAL_HANDLERS, ...EXTERNAL_HANDLERS],
];

/** Lists and objects beyond this depth are as small as their schema allows. */
const DEPTH_MAX = 5;
/** Blocks deeper than this are steps. */
const BLOCK_DEPTH_MAX = 5;
const LIST_MAX = 3;

/** One draft that the operation must not refuse for its shape. */
export function draftOf(operation: Operation): fc.Arbitrary<Draft> {
  const inPath = operation.parameters.filter((parameter) => parameter.in === 'path');
  const inQuery = operation.parameters.filter((parameter) => parameter.in === 'query');
  return fc.record({
    operation: fc.constant(operation),
    params: fc.record(Object.fromEntries(inPath.map((it) => [it.name, pathText(operation, it)]))),
    query: fc.tuple(...inQuery.map(queryPairs)).map((pairs) => pairs.flat()),
    body: bodyOf(operation),
  });
}

function bodyOf({ body }: Operation): fc.Arbitrary<unknown> {
  if (body === undefined) return fc.constant(undefined);
  const value = fc.tuple(valueFrom(body.schema, '', 0), fc.nat()).map(([found, number]) => {
    return mend(found, number);
  });
  return body.isRequired ? value : fc.oneof(value, fc.constant(undefined));
}

function pathText({ path }: Operation, { name, schema }: Parameter): fc.Arbitrary<string> {
  if (name === 'id' || name === 'delivery_id') return mark(kindOfPath(path));
  if (name === 'checkpoint_id') return mark('checkpoints');
  if (name === 'slug') return mark('triggers');
  if (name === 'block_id') return blockName();
  if (name === 'file') return fc.constantFrom('index.css', 'swagger-ui.css', 'nothing.js');
  return valueFrom(schema, name, 0).map(String);
}

/** `/workers/tasks/{id}` names tasks: the last fixed part before the parameter. */
export function kindOfPath(path: string): string {
  const [before = ''] = path.split('/{');
  return before.split('/').at(-1)?.replaceAll('-', '') ?? '';
}

function queryPairs({ name, required, schema }: Parameter): fc.Arbitrary<[string, string][]> {
  if (schema.type === 'object') return metadataPairs(name);
  const value = valueFrom(schema, name, 0).map((it): [string, string][] => [[name, textOf(it)]]);
  return required === true ? value : fc.oneof(fc.constant<[string, string][]>([]), value);
}

function metadataPairs(name: string): fc.Arbitrary<[string, string][]> {
  const key = fc.constantFrom('a', 'b', '__proto__', 'constructor', 'a.b');
  const pair = fc.tuple(key, fc.constantFrom('x', '', '1', '__proto__'));
  return fc
    .array(pair, { maxLength: 2 })
    .map((pairs) => pairs.map(([inner, text]) => [`${name}.${inner}`, text]));
}

const textOf = (value: unknown) => (Array.isArray(value) ? value.join(',') : String(value));

// ---------------------------------------------------------------- values by their schemas

/** @param name of the field that holds the value; '' for a body and the items of lists */
function valueFrom(given: Schema, name: string, depth: number): fc.Arbitrary<unknown> {
  const schema = deref<Schema>(given);
  const [first, second] = (schema.anyOf ?? []) as Schema[];
  // Words that may be null: what their name says of them holds beside the null.
  if (first !== undefined && second?.type === 'null') {
    return fc.oneof({ weight: 5, arbitrary: valueFrom(first, name, depth) }, fc.constant(null));
  }
  const kept = nullable(schema, byName(name, schema));
  if (kept !== undefined) return kept;
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum);
  const choices = (schema.oneOf ?? schema.anyOf) as Schema[] | undefined;
  if (choices !== undefined) return oneOf(schema, choices, name, depth);
  const types = [schema.type ?? []].flat() as string[];
  if (types.length === 0) return freeJson();
  return fc.oneof(...types.map((type) => typedValue(type, schema, depth)));
}

function oneOf(
  schema: Schema,
  choices: readonly Schema[],
  name: string,
  depth: number,
): fc.Arbitrary<unknown> {
  const isDeep = schema.discriminator !== undefined && depth > BLOCK_DEPTH_MAX;
  const allowed = isDeep ? choices.slice(0, 1) : choices;
  return fc.oneof(...allowed.map((choice) => valueFrom(choice, name, depth)));
}

function typedValue(type: string, schema: Schema, depth: number): fc.Arbitrary<unknown> {
  switch (type) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return integerOf(schema);
    case 'number':
      return fc.double({ min: 0.001, max: 1e6, noNaN: true });
    case 'array':
      return arrayOf(schema, depth);
    case 'object':
      return objectOf(schema, depth);
    default:
      return stringOf(schema);
  }
}

function integerOf(schema: Schema): fc.Arbitrary<number> {
  const { minimum, exclusiveMinimum, maximum, multipleOf } = schema as Readonly<
    Record<string, number>
  >;
  if (minimum !== undefined && multipleOf !== undefined) return fc.constant(minimum);
  const min = minimum ?? (exclusiveMinimum === undefined ? -100 : exclusiveMinimum + 1);
  const max = maximum ?? Number.MAX_SAFE_INTEGER;
  const small = fc.integer({ min, max: Math.min(max, min + 20) });
  return fc.oneof(small, small, fc.constantFrom(min, max));
}

function arrayOf(schema: Schema, depth: number): fc.Arbitrary<unknown[]> {
  const least = (schema.minItems as number | undefined) ?? 0;
  const most = Math.max(least, depth > DEPTH_MAX ? 0 : LIST_MAX);
  const maxLength = Math.min(most, (schema.maxItems as number | undefined) ?? most);
  const item = valueFrom((schema.items as Schema | undefined) ?? {}, '', depth + 1);
  const length = { minLength: least, maxLength };
  return schema.uniqueItems === true
    ? fc.uniqueArray(item, { ...length, selector: (value) => JSON.stringify(value) })
    : fc.array(item, length);
}

function objectOf(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  const properties = Object.entries((schema.properties as Record<string, Schema>) ?? {});
  const required = new Set((schema.required as string[] | undefined) ?? []);
  if (properties.length === 0) return freeObject(schema);
  const fields = properties.map(([name, property]) => {
    const present = valueFrom(property, name, depth + 1).map((value) => [[name, value]]);
    const absent = fc.constant<[string, unknown][]>([]);
    if (required.has(name)) return present;
    return fc.oneof(
      { weight: depth > 1 ? 4 : 1, arbitrary: absent },
      { weight: 1, arbitrary: present },
    );
  }) as fc.Arbitrary<[string, unknown][]>[];
  // A field that nobody knows is ignored, or refused where the schema says so.
  const isOpen = schema.additionalProperties !== false;
  const unknown = fc.oneof(
    { weight: 7, arbitrary: fc.constant<[string, unknown][]>([]) },
    { weight: isOpen ? 1 : 0, arbitrary: fc.tuple(freeKey(), freeJson()).map((pair) => [pair]) },
  ) as fc.Arbitrary<[string, unknown][]>;
  return fc.tuple(unknown, ...fields).map((pairs) => Object.fromEntries(pairs.flat()));
}

/** Texts that the schema allows, among them some at its bounds. */
function stringOf(schema: Schema): fc.Arbitrary<string> {
  const minLength = (schema.minLength as number | undefined) ?? 0;
  const maxLength = (schema.maxLength as number | undefined) ?? 40;
  switch (schema.format) {
    case 'uuid':
      return fc.uuid();
    case 'date-time':
      return fc.constantFrom('1970-01-01T00:00:00Z', '2031-05-01T10:00:00.5+02:00', soon());
    case 'date':
      return fc.constantFrom('2031-05-01', '2032-02-29', '1999-12-31');
    case 'time-zone':
      return fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kathmandu');
    default:
  }
  const text = fc.string({ minLength, maxLength: Math.min(12, maxLength), unit: 'grapheme' });
  const atBound = fc.constant('x'.repeat(Math.min(maxLength, 4_096)));
  const any = fc.oneof({ weight: 9, arbitrary: text }, { weight: 1, arbitrary: atBound });
  if (schema.pattern === undefined) return any;
  const pattern = new RegExp(String(schema.pattern), 'u');
  if (schema.pattern !== NOT_BLANK) return fc.stringMatching(pattern);
  return any.map((found) => (pattern.test(found) ? found : `x${found}`.slice(0, maxLength)));
}

const NOT_BLANK = '\\S';

const soon = () => new Date(Date.now() + 1_000).toISOString();

/** Null beside the values of a field by its name, where the schema allows it. */
function nullable(
  schema: Schema,
  value: fc.Arbitrary<unknown> | undefined,
): fc.Arbitrary<unknown> | undefined {
  if (value === undefined) return undefined;
  const isNullable = [schema.type ?? []].flat().includes('null');
  return isNullable ? fc.oneof({ weight: 5, arbitrary: value }, fc.constant(null)) : value;
}

// ---------------------------------------------------------------- values by their names

/** What only the words of the document say of a field; undefined: its schema says it all. */
function byName(name: string, schema: Schema): fc.Arbitrary<unknown> | undefined {
  if (schema.format === 'uuid') return uuidField(name);
  const found = Object.hasOwn(BY_NAME, name) ? BY_NAME[name] : undefined;
  return found?.(schema);
}

/** An id that the caller chooses is a new one. */
function uuidField(name: string): fc.Arbitrary<unknown> {
  if (name.endsWith('sequence_id')) return mark('sequences');
  const kind = Object.hasOwn(ID_KINDS, name) ? ID_KINDS[name] : undefined;
  return kind === undefined ? fc.uuid() : mark(kind);
}

const ID_KINDS: Readonly<Record<string, string>> = {
  instance_id: 'instances',
  continuity_id: 'executions',
  placement_decision_id: 'placements',
  runtime_id: 'runtimes',
  destination_runtime_id: 'runtimes',
};

const blockName = () => fc.constantFrom('b0', 'b0', 'b1', 'b2', '__proto__', 'no such block');

const expression = () =>
  fc.constantFrom(
    'context.data.a',
    'context.data.a == 1',
    'outputs.b0.ok == true',
    'context.data.__proto__.polluted',
    'context.data.constructor.name == "Object"',
    'not an expression (',
    '1 + 1 == 2',
    'true',
  );

const userSchema = () =>
  fc.constantFrom<Json>(
    {},
    { type: 'object' },
    { type: 'object', properties: { a: { type: ['integer', 'string', 'null'] } } },
    { type: 'object', required: ['a'] },
  );

/** In actions on many it is the bare name of a custom signal. */
const signalType = ({ anyOf }: Schema) =>
  anyOf === undefined
    ? fc.constant<unknown>('go')
    : fc.oneof(
        fc.constantFrom<unknown>('pause', 'resume', 'update_context', 'custom:go', {
          custom: 'go',
        }),
        fc.constantFrom<unknown>('cancel', 'custom:__proto__'),
      );

/** Only the version of a definition may be any number, and that of a worker is a text. */
function versionOf(schema: Schema): fc.Arbitrary<unknown> {
  if (schema.const !== undefined) return fc.constant(schema.const);
  const types = [schema.type ?? []].flat();
  if (!types.includes('integer')) return fc.constant('1.0');
  return fc.integer({ min: (schema.minimum as number | undefined) ?? -5, max: 1_000 });
}

/** A draft may wait for some minutes before it is sent. */
const RUNTIME_LIFE_MS = 290_000;
const fromNow = (ms: number) => new Date(Date.now() + ms).toISOString();

const BY_NAME: Readonly<Record<string, (schema: Schema) => fc.Arbitrary<unknown>>> = {
  tenant_id: () => fc.constant(TENANT_MARK),
  name: ({ pattern }) =>
    fc.oneof(
      fc.constantFrom('n1', 'n2', 'n3'),
      fc
        .string({ maxLength: 8 })
        .map((text) => `n${text}`)
        .filter((text) => pattern === undefined || new RegExp(String(pattern), 'u').test(text)),
    ),
  version: versionOf,
  url: () => fc.constant('https://hooks.example/in'),
  refresh_url: () => fc.constant('https://tokens.example/new'),
  sequence_name: () => fc.constantFrom('n1', 'n2', 'n3'),
  // Gates have these choices, unless they say others.
  value: () => fc.constantFrom('yes', 'no'),
  to_version: () => fc.constantFrom(1, 2),
  trust: () => fc.constantFrom('unverified', 'registered'),
  observed_at: () => fc.constant(fromNow(0)),
  expires_at: () => fc.constant(fromNow(RUNTIME_LIFE_MS)),
  capsule_signing_public_key: () => fc.constant(null),
  payload_key_base64: () => fc.constant('A'.repeat(43).concat('=')),
  // One that has the right form; nobody signed it.
  capsule: () => fc.constant(0).map(() => exampleOf(Capsule)),
  statement: () => fc.uuid().map((id) => `{"continuity_id":"${id}"}`),
  from_path: () => fc.constantFrom('count', 'context_snapshot.a'),
  to_path: () => fc.constantFrom('b', 'context_snapshot.__proto__'),
  namespace: () => fc.constant(NAMESPACE),
  // Hooks have none but those that are built in.
  handler: ({ enum: words }) => fc.constantFrom(...((words as string[] | undefined) ?? HANDLERS)),
  handler_name: () => fc.constantFrom(...EXTERNAL_HANDLERS),
  worker_id: () => fc.constantFrom(WORKER, WORKER, WORKER, 'w2'),
  claim_epoch: () => fc.integer({ min: 1, max: 2 }),
  block_id: blockName,
  from_block_id: blockName,
  // What is arbitrary is odd.
  strict: () => fc.constantFrom(false, false, false, true),
  wait_ms: ({ minimum }) => fc.integer({ min: (minimum as number | undefined) ?? 0, max: 20 }),
  cron_expr: () => fc.constantFrom('0 0 3 * * * *', '@daily', '*/5 * * * *', '0 0 0 29 2 ? 2032'),
  cursor: () => fc.constant(''),
  fire_at_local: () => fc.constant('2031-05-01T10:00:00'),
  input_schema: userSchema,
  // Hooks have none.
  output_schema: (schema) => (schema.const === false ? fc.constant(false) : userSchema()),
  condition: expression,
  collection: expression,
  retry_if: expression,
  when: expression,
  item_var: () => fc.constantFrom('item', 'x', 'toString'),
  // Never that of the item.
  index_var: () => fc.constantFrom('i', 'n', 'valueOf'),
  position: () => fc.constantFrom(0),
  signal_type: signalType,
  max_iterations: () => fc.integer({ min: 1, max: 5 }),
  max_attempts: () => fc.integer({ min: 1, max: 3 }),
  initial_backoff: () => fc.integer({ min: 0, max: 50 }),
  max_backoff: () => fc.integer({ min: 50, max: 100 }),
};

const mark = (kind: string): fc.Arbitrary<string> =>
  fc.nat({ max: 9_999 }).map((number) => `@${kind}#${number}`);

// ---------------------------------------------------------------- any JSON

const KEYS = [
  ...['a', 'b', 'items', 'a.b', '', '__proto__', 'constructor', 'prototype', 'toString', 'é'],
];

const freeKey = () => fc.oneof(fc.constantFrom(...KEYS), fc.string({ maxLength: 6 }));

function freeScalar(): fc.Arbitrary<unknown> {
  return fc.oneof(
    fc.constantFrom<unknown>(null, true, false, '', 0, 1, -1.5, '{{context.data.a}}', '1e400'),
    fc.maxSafeInteger(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(exact),
    fc.string({ maxLength: 10, unit: 'grapheme' }),
  );
}

/** Integers beyond 2^53 are refused, however they are written. */
const exact = (value: number): number =>
  Number.isInteger(value) && !Number.isSafeInteger(value) ? value % 1_000_000 : value;

function freeJson(): fc.Arbitrary<unknown> {
  return fc.oneof(
    { weight: 3, arbitrary: freeScalar() },
    { weight: 1, arbitrary: fc.array(freeScalar(), { maxLength: 3 }) },
    { weight: 2, arbitrary: freeObject({}) },
  );
}

function freeObject(schema: Schema): fc.Arbitrary<unknown> {
  const members = schema.additionalProperties as Schema | undefined;
  const value = typeof members === 'object' ? valueFrom(members, '', DEPTH_MAX) : innerJson();
  return fc
    .array(fc.tuple(freeKey(), value), { maxLength: 3 })
    .map((pairs) => Object.fromEntries(pairs));
}

function innerJson(): fc.Arbitrary<unknown> {
  const pairs = fc.array(fc.tuple(freeKey(), freeScalar()), { maxLength: 2 });
  return fc.oneof(
    { weight: 3, arbitrary: freeScalar() },
    { weight: 1, arbitrary: pairs.map((found) => Object.fromEntries(found)) },
  );
}

// ---------------------------------------------------------------- rules in words

/** Makes true what the document asks for in words; the value is new already and changed in place. */
function mend(body: unknown, number: number): unknown {
  // Blocks that are added must have other names than those that are there.
  const isWhole = typeof body === 'object' && body !== null && 'version' in body;
  const prefix = isWhole ? 'b' : `i${number}-`;
  let blocks = 0;
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    if (Array.isArray(value)) {
      value.forEach(visit);
      return;
    }
    const object = value as Json;
    const isNamed = typeof object.type === 'string' || 'action' in object;
    if (isNamed && typeof object.id === 'string') {
      object.id = `${prefix}${blocks}`;
      blocks += 1;
    }
    mendObject(object, number);
    for (const inner of Object.values(object)) visit(inner);
  };
  visit(body);
  return body;
}

function mendObject(object: Json, number: number): void {
  // Actions on everything there is would leave nothing to work with.
  if (isObject(object.filter) && number % 8 > 0) object.filter.metadata = { a: 'x' };
  if (object.fire_at_local) delete object.duration;
  if (object.handler === 'assert') {
    object.params = { condition: 'true', ...(isObject(object.params) ? object.params : {}) };
  }
  if (object.type === 'router' && !object.default) object.default = [];
  if (Array.isArray(object.variants)) {
    for (const [i, variant] of object.variants.entries())
      Object.assign(variant, { name: `v${i}`, weight: i });
  }
  if (object.debounce) delete object.batch;
  if (isObject(object.debounce)) delete object.debounce.max_wait_ms;
  if (isObject(object.throttle)) delete object.throttle.burst;
  if (object.slug && object.publish) {
    delete object.sequence_name;
    delete object.version;
  } else if (object.slug) object.sequence_name ??= 'n1';
  if (object.groups && Array.isArray(object.capabilities)) object.capabilities.push('approver');
  if (object.checkpoint && typeof object.checkpoint_seq !== 'number') object.checkpoint_seq = 0;
  // What starts something names its sequence once.
  const hasOther = ['blocks', 'slug', 'baseline_sequence_id'].some((name) => name in object);
  if ('tenant_id' in object && 'namespace' in object && !hasOther) {
    const isNamed = number % 4 === 0;
    if (isNamed) delete object.sequence_id;
    else {
      delete object.sequence;
      delete object.version;
    }
    if (isNamed) object.sequence = 'n1';
    else object.sequence_id = `@sequences#${number % 10_000}`;
  }
  if (object.action === 'signal' && !object.signal_type) object.signal_type = 'go';
}

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
