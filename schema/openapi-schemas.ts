/** The schemas of the document: named schemas become components, and annotations become prose. */

import type { TSchema } from '@sinclair/typebox';
import type { JsonObject, JsonValue } from '../src/base/json.js';
import { Block } from './blocks.js';
import { fixedMembers } from './change-shapes.js';
import { EXCHANGE_PAIRS_MAX, FACT_BYTES_MAX, KEY_LENGTH_MAX, REDACTED } from './common.js';
import { exampleOf } from './examples.js';
import { words } from './states.js';
import { SECRETS_MAX } from './trigger-parts.js';
import {
  USER_SCHEMA_BYTES_MAX,
  USER_SCHEMA_DEPTH_MAX,
  USER_SCHEMA_NODES_MAX,
  USER_SCHEMA_PARTS_MAX,
} from './user-schema-rules.js';

/** Descriptions of the named checks (`keywords.ts`). */
export const CHECK_TEXTS: Readonly<Record<string, string>> = {
  'empty-is-absent': 'An empty text counts as absent.',
  'not-redacted': `Must not be ${REDACTED}.`,
  'plain-name': 'Must not be __proto__, constructor or prototype.',
  'block-id': 'Must not be __proto__, constructor, prototype, . or ..',
  addressed: 'Must not be . or ..',
  tenant: 'Must not be . or .., or begin or end with spaces or tabs.',
  'json-schema':
    `At most ${USER_SCHEMA_BYTES_MAX} bytes, and with references followed ${USER_SCHEMA_NODES_MAX} values, ` +
    `${USER_SCHEMA_PARTS_MAX} schemas, keywords and listed names, and ${USER_SCHEMA_DEPTH_MAX} schemas ` +
    'within one another.',
  retry: 'initial_backoff must not be above max_backoff.',
  router: 'Requires a route or a default.',
  variants: 'Names are unique, and at least one weight is above 0.',
  'sequence-or-id': 'Exactly one of sequence_id and sequence; version goes with sequence.',
  'gate-choices': 'The values of the choices are unique.',
  heartbeat: 'A checkpoint requires checkpoint_seq.',
  'exchange-poll': `At most ${EXCHANGE_PAIRS_MAX} pairs of a handler and a queue.`,
  'batch-action': 'The action signal requires signal_type.',
  'migration-target': 'Requires version or sequence_id; with both, the sequence has that version.',
  'worker-handler': 'Must not be a built-in handler.',
  'worker-id': 'Must not begin with endpoint:.',
  fact: `At most ${FACT_BYTES_MAX} bytes.`,
};

const SIGNAL_TYPE: JsonObject = {
  description:
    'pause, resume, cancel, update_context or custom:<name> with any name. ' +
    'The form {"custom": name} is accepted too.',
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

const SECRETS: JsonObject = {
  anyOf: [
    { type: 'string', minLength: 1, maxLength: KEY_LENGTH_MAX },
    {
      type: 'array',
      items: { type: 'string', minLength: 1, maxLength: KEY_LENGTH_MAX },
      minItems: 1,
      maxItems: SECRETS_MAX,
    },
  ],
};

/** Formats with another name in JSON Schema. */
const FORMATS: Readonly<Record<string, string>> = { 'calendar-day': 'date' };

/** Keywords that the description or the name of the component replaces. */
const OMITTED: ReadonlySet<string> = new Set(words('$id description x-check x-fixed x-lower-case'));

const COMPONENT = '#/components/schemas/';

/** The named schemas of one document, collected while its operations are described. */
export class SchemaBook {
  readonly #named = new Map<string, JsonObject>();

  /** The schema in the document: a reference if it has a name. */
  refTo(schema: TSchema): JsonObject {
    const name = schema.$id;
    if (name === undefined) return this.#describe(schema);
    if (!this.#named.has(name)) {
      // Reserved first, since the schema of a block contains itself.
      this.#named.set(name, {});
      this.#named.set(name, this.#describeNamed(schema, name));
    }
    return { $ref: COMPONENT + name };
  }

  components(): JsonObject {
    return Object.fromEntries([...this.#named].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #describeNamed(schema: TSchema, name: string): JsonObject {
    const isTagged = schema.discriminator !== undefined;
    const described = isTagged ? this.#describeTagged(schema, name) : this.#describe(schema);
    const example = exampleOf(schema);
    return { ...described, ...(example === undefined ? {} : { examples: [example] }) };
  }

  /** Each kind of a tagged union is a component, as generators of clients require. */
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

  #describe(schema: TSchema): JsonObject {
    if (schema['x-check'] === 'signal-type') return SIGNAL_TYPE;
    if (schema['x-check'] === 'secrets') {
      return { description: schema.description ?? '', ...SECRETS };
    }
    // The only reference by name in the contract: blocks contain blocks.
    if (schema.$ref === Block.$id) return this.refTo(Block);
    if (schema.if !== undefined) return this.#describeChoice(schema);
    if (schema.enum?.includes(null)) return this.#describeOptionalWords(schema);
    const described: Record<string, JsonValue> = {};
    const description = [schema.description, ...remarks(schema)].filter(Boolean).join(' ');
    if (description !== '') described.description = description;
    for (const [keyword, value] of Object.entries(schema)) {
      if (OMITTED.has(keyword)) continue;
      described[keyword] = this.#keyword(keyword, value);
    }
    return described;
  }

  /** One of two shapes, as `anyOf` for generators of clients. */
  #describeChoice(schema: TSchema): JsonObject {
    const either = [schema.else, schema.then].map((shape: TSchema) => this.refTo(shape));
    return { description: schema.description ?? '', anyOf: either };
  }

  /** Most generators of clients refuse null in a list of words, hence beside it. */
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

  #keyword(keyword: string, value: unknown): JsonValue {
    switch (keyword) {
      case 'properties':
        return Object.fromEntries(
          Object.entries(value as Record<string, TSchema>).map(([field, schema]) => [
            field,
            this.refTo(schema),
          ]),
        );
      case 'items':
      case 'additionalProperties':
        return typeof value === 'boolean' ? value : this.refTo(value as TSchema);
      case 'anyOf':
      case 'oneOf':
        return (value as TSchema[]).map((schema) => this.refTo(schema));
      case 'format':
        return FORMATS[String(value)] ?? String(value);
      default:
        return value as JsonValue;
    }
  }
}

/** Annotations as prose; `x-cap` stays as well, for programs. */
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

/** `try_catch` as `TryCatch`. */
function pascalCase(word: string): string {
  return word
    .split('_')
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join('');
}
