/**
 * From the schemas that validate to those of the document: named ones become components, our own
 * annotations become words, and defaults that the engine applies by itself are told.
 */

import type { TSchema } from '@sinclair/typebox';
import type { JsonObject, JsonValue } from '../src/base/json.js';
import { Block } from './blocks.js';
import { fixedMembers } from './change-shapes.js';
import { EXCHANGE_PAIRS_MAX, FACT_BYTES_MAX, REDACTED } from './common.js';
import { exampleOf } from './examples.js';
import {
  USER_SCHEMA_BYTES_MAX,
  USER_SCHEMA_DEPTH_MAX,
  USER_SCHEMA_NODES_MAX,
  USER_SCHEMA_PARTS_MAX,
} from './sequence.js';

/** What the named checks of `keywords.ts` ask for. */
export const CHECK_TEXTS: Readonly<Record<string, string>> = {
  'empty-is-absent': 'An empty text stands for none.',
  'not-redacted': `Not ${REDACTED}.`,
  'plain-name': 'Not __proto__, constructor or prototype.',
  'block-id': 'Not __proto__, constructor, prototype, . or ..',
  addressed: 'Not . or ..',
  tenant: 'Not . or .., and without spaces and tabs around it.',
  'json-schema':
    `At most ${USER_SCHEMA_BYTES_MAX} bytes, and with references followed ${USER_SCHEMA_NODES_MAX} values, ` +
    `${USER_SCHEMA_PARTS_MAX} schemas, keywords and listed names, and ${USER_SCHEMA_DEPTH_MAX} schemas ` +
    'within one another.',
  retry: 'initial_backoff must not be above max_backoff.',
  router: 'At least one route or a default.',
  variants: 'Names differ, and some weight is above 0.',
  'sequence-or-id': 'Exactly one of sequence_id and sequence; version goes with sequence.',
  'gate-choices': 'Each value once.',
  heartbeat: 'A checkpoint needs checkpoint_seq.',
  'exchange-poll': `At most ${EXCHANGE_PAIRS_MAX} pairs of a handler and a queue.`,
  'batch-action': 'The action signal needs signal_type.',
  'migration-target':
    'version or sequence_id must be there; with both, the sequence has that version.',
  fact: `At most ${FACT_BYTES_MAX} bytes.`,
};

/** The two forms of a signal's type. */
const SIGNAL_TYPE: JsonObject = {
  description:
    'pause, resume, cancel, update_context or custom:<name>, whose name is free. ' +
    'The form {"custom": name} is taken too.',
  anyOf: [
    {
      type: 'string',
      pattern: '^(?:pause|resume|cancel|update_context|custom:[\\s\\S]*\\S[\\s\\S]*)$',
      maxLength: 262,
    },
    {
      type: 'object',
      properties: { custom: { type: 'string', pattern: '\\S', maxLength: 255 } },
      required: ['custom'],
    },
  ],
};

/** Formats that JSON Schema knows by another name. */
const FORMATS: Readonly<Record<string, string>> = { 'calendar-day': 'date' };

/** What the description has instead, or the name of the component. */
const TOLD_IN_WORDS: ReadonlySet<string> = new Set([
  '$id',
  'description',
  'x-check',
  'x-fixed',
  'x-lower-case',
]);

const COMPONENT = '#/components/schemas/';

/** The named schemas of one document, collected while its operations are described. */
export class SchemaBook {
  readonly #named = new Map<string, JsonObject>();

  /** The schema as it stands in the document: a reference when it has a name. */
  refTo(schema: TSchema): JsonObject {
    const name = schema.$id;
    if (name === undefined) return this.#describe(schema, '');
    if (!this.#named.has(name)) {
      // Its place is taken first, because a block's schema holds itself.
      this.#named.set(name, {});
      this.#named.set(name, this.#describeNamed(schema, name));
    }
    return { $ref: COMPONENT + name };
  }

  /** All of them by name. */
  components(): JsonObject {
    return Object.fromEntries([...this.#named].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #describeNamed(schema: TSchema, name: string): JsonObject {
    const described =
      schema.discriminator === undefined
        ? this.#describe(schema, name)
        : this.#describeTagged(schema, name);
    const example = exampleOf(schema);
    return {
      ...described,
      ...(example === undefined ? {} : { examples: [example] }),
    };
  }

  /** Each kind of a tagged union is a component of its own, which tools need to tell them apart. */
  #describeTagged(schema: TSchema, name: string): JsonObject {
    const mapping: Record<string, string> = {};
    const { propertyName } = schema.discriminator;
    for (const kind of schema.oneOf as TSchema[]) {
      const { const: word, enum: words = [word] } = kind.properties[propertyName] as TSchema;
      const kindName = `${pascalCase(words[0])}${name}`;
      const { $ref } = this.refTo({ ...kind, $id: kindName });
      for (const tag of words) mapping[tag] = $ref as string;
    }
    return {
      description: schema.description ?? '',
      oneOf: [...new Set(Object.values(mapping))].map(($ref) => ({ $ref })),
      discriminator: { propertyName, mapping },
    };
  }

  /** @param place name of the schema and field, for what is noted about it; '' inside others */
  #describe(schema: TSchema, place: string): JsonObject {
    if (schema['x-check'] === 'signal-type') return SIGNAL_TYPE;
    // Blocks hold blocks, which is the contract's only reference by name.
    if (schema.$ref === Block.$id) return this.refTo(Block);
    if (schema.if !== undefined) return this.#describeChoice(schema);
    if (schema.enum?.includes(null)) return this.#describeOptionalWords(schema);
    const described: Record<string, JsonValue> = {};
    const description = joined(schema.description, ...remarks(schema));
    if (description !== '') described.description = description;
    for (const [keyword, value] of Object.entries(schema)) {
      if (TOLD_IN_WORDS.has(keyword)) continue;
      described[keyword] = this.#keyword(keyword, value, place);
    }
    return described;
  }

  /** One of two shapes, which generators of clients know as `anyOf`. */
  #describeChoice(schema: TSchema): JsonObject {
    const either = [schema.else, schema.then].map((shape: TSchema) => this.#field(shape, ''));
    return { description: schema.description ?? '', anyOf: either };
  }

  /** Most generators of clients refuse a list of words that holds null, which therefore stands beside it. */
  #describeOptionalWords({ description, default: byDefault, ...schema }: TSchema): JsonObject {
    const words = (schema.enum as JsonValue[]).filter((word) => word !== null);
    const type = [schema.type ?? typeof words[0]].flat().find((name) => name !== 'null');
    const list = words.length === 1 ? { const: words[0] as JsonValue } : { enum: words };
    return {
      ...(description === undefined ? {} : { description }),
      ...(byDefault === undefined ? {} : { default: byDefault as JsonValue }),
      anyOf: [{ type, ...list }, { type: 'null' }],
    };
  }

  #keyword(keyword: string, value: unknown, place: string): JsonValue {
    switch (keyword) {
      case 'properties':
        return Object.fromEntries(
          Object.entries(value as Record<string, TSchema>).map(([field, schema]) => [
            field,
            this.#field(schema, place === '' ? '' : `${place}.${field}`),
          ]),
        );
      case 'items':
      case 'additionalProperties':
        return typeof value === 'boolean' ? value : this.#field(value as TSchema, `${place}[]`);
      case 'anyOf':
      case 'oneOf':
        return (value as TSchema[]).map((schema) => this.#field(schema, ''));
      case 'format':
        return FORMATS[String(value)] ?? String(value);
      default:
        return value as JsonValue;
    }
  }

  #field(schema: TSchema, place: string): JsonObject {
    return schema.$id === undefined ? this.#describe(schema, place) : this.refTo(schema);
  }
}

/** Our annotations in words. `x-cap` stays beside its words, for programs. */
function remarks(schema: TSchema): string[] {
  const found: string[] = [];
  const cap: unknown = schema['x-cap'];
  if (typeof cap === 'number') found.push(`Larger values are lowered to ${cap}.`);
  const check: unknown = schema['x-check'];
  if (typeof check === 'string') found.push(CHECK_TEXTS[check] ?? '');
  const fixed = fixedMembers(schema);
  if (fixed.length > 0) found.push(`Refused, because they cannot be changed: ${fixed.join(', ')}.`);
  return found;
}

function joined(...texts: readonly unknown[]): string {
  return texts.filter((text) => typeof text === 'string' && text !== '').join(' ');
}

/** `try_catch` as `TryCatch`. */
function pascalCase(word: string): string {
  return word
    .split('_')
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join('');
}
