/**
 * The scalars and small shapes that every part of the wire contract shares, and the caps that the
 * engine sets where the specification sets none (docs/reference/blocks.md). A field that is
 * optional may be null, which means absent; in a change it takes the value away (`change-shapes.ts`). Three annotations are read by the validators:
 * `x-lower-case` (taken in lower case), `x-cap` (a larger number is lowered to it) and `x-check` (a
 * named rule beyond JSON Schema).
 */

import {
  type Static,
  type StringOptions,
  type TObject,
  type TOptional,
  type TProperties,
  type TSchema,
  type TUnsafe,
  Type,
} from '@sinclair/typebox';
import type { JsonObject, JsonValue } from '../src/base/json.js';
import type { UnixMs } from '../src/base/time.js';
import { INSTANCE_STATES, PRIORITIES, TASK_STATES } from './states.js';

/**
 * Names and ids in code points. Three of them and a version share one index row, which Postgres
 * limits to 2,704 bytes.
 */
export const NAME_LENGTH_MAX = 255;
/** Keys that callers make up from their own data: idempotency, concurrency and rate limit keys. */
export const KEY_LENGTH_MAX = 512;
/** Of the name of a handler, plugin, credential, region or piece of hardware of a runtime. */
export const FACT_BYTES_MAX = 256;
/** Pairs of a handler and a queue that one exchange polls: each is read from its table by itself. */
export const EXCHANGE_PAIRS_MAX = 100;
/** Rows of a page, unless its list says otherwise. */
export const LIST_LIMIT_DEFAULT = 100;
export const LIST_LIMIT_MAX = 1_000;
/** A condition is parsed once per definition; nobody writes one of 16 KiB by hand. */
export const EXPRESSION_LENGTH_MAX = 16_384;
/** Three names of the longest characters, escaped and in base64, fit in. */
export const CURSOR_LENGTH_MAX = 8_192;
/** A century in ms: every wake time stays within what Postgres and JavaScript can hold. */
export const DURATION_MS_MAX = 100 * 366 * 24 * 60 * 60 * 1_000;
/** Columns of 32 bits, and the largest integer that survives JSON unchanged. */
export const INT32_MAX = 2_147_483_647;
export const INTEGER_MAX = Number.MAX_SAFE_INTEGER;

/** A field that may be absent or null, which mean the same. */
export function optional<T extends TSchema>(schema: T): TOptional<TUnsafe<Static<T> | null>> {
  const { default: byDefault, ...rest } = unnamed(schema);
  const nullable = {
    ...rest,
    type: [schema.type as string, 'null'],
    ...(schema.enum === undefined ? {} : { enum: [...schema.enum, null] }),
    ...(byDefault === undefined ? {} : { default: byDefault }),
  };
  return Type.Optional(Type.Unsafe<Static<T> | null>(nullable));
}

type AllOptional<P extends TProperties> = {
  [K in keyof P]: TOptional<TUnsafe<Static<P[K]> | null>>;
};

/** The same members, each of which may be absent or null. */
export function allOptional<P extends TProperties>(members: P): AllOptional<P> {
  const fields = Object.entries(members).map(([name, schema]) => [name, optional(schema)]);
  return Object.fromEntries(fields) as AllOptional<P>;
}

/** The shape of a named schema without its name and what the document says under that. */
function unnamed(schema: TSchema): Record<string, unknown> {
  const { $id, description, ...shape } = schema;
  return $id === undefined ? schema : shape;
}

/** The schema with words for the document, before those that it has. */
export function noted<T extends TSchema>(schema: T, note: string): T {
  const shape = unnamed(schema);
  const words = shape.description === undefined ? note : `${note} ${shape.description}`;
  return { ...shape, description: words } as T;
}

/** The schema with the value that the engine puts where there is none. */
export function withDefault<T extends TSchema>(schema: T, value: JsonValue): T {
  return { ...schema, default: value };
}

/** A shape that has a name of its own in the document, and words there if it needs some. */
export function named<P extends TProperties>(name: string, properties: P): TObject<P>;
export function named<P extends TProperties>(name: string, note: string, properties: P): TObject<P>;
export function named<P extends TProperties>(name: string, ...rest: [P] | [string, P]): TObject<P> {
  const [note, properties] = rest.length === 1 ? [undefined, rest[0]] : rest;
  const shape = Type.Object(properties, { $id: name });
  return note === undefined ? shape : { ...shape, description: note };
}

/** The schema with a named rule beyond JSON Schema (`keywords.ts`) for the value as a whole. */
export function checked<T extends TSchema>(check: string, schema: T): T {
  return { ...schema, 'x-check': check };
}

type Unsupported<K extends string> = Record<K, TOptional<TUnsafe<null | false>>>;

/** What marks a field that is known and refused; the validators recognise these values. */
export const UNSUPPORTED_VALUES = [null, false] as const;

/**
 * Fields that change what runs and that nothing implements yet
 * (docs/decisions/0017-unknown-fields.md): refused with 400 unless null or false,
 * because ignoring them would do something other than what was asked.
 */
export function unsupported<K extends string>(...names: readonly K[]): Unsupported<K> {
  const fields = names.map((name) => [
    name,
    Type.Optional(
      Type.Unsafe<null | false>({ enum: [...UNSUPPORTED_VALUES], description: 'Not supported.' }),
    ),
  ]);
  return Object.fromEntries(fields) as Unsupported<K>;
}

/** A reply's field that is always present and may be null. */
export function orNull<T extends TSchema>(schema: T): TUnsafe<Static<T> | null> {
  return Type.Unsafe<Static<T> | null>({ ...schema, type: [schema.type as string, 'null'] });
}

/** One word of a closed list. */
export function oneOfWords<const T extends readonly string[]>(words: T, note?: string) {
  const base = { type: 'string', enum: [...words] };
  return Type.Unsafe<T[number]>(note === undefined ? base : { ...base, description: note });
}

export const Uuid = Type.String({ format: 'uuid', 'x-lower-case': true });
export type Uuid = Static<typeof Uuid>;

/** RFC 3339 with any offset on input; UTC with `Z` in replies. */
export const Timestamp = Type.String({ format: 'date-time' });
export type Timestamp = Static<typeof Timestamp>;

/** A name that identifies something: not blank, at most 255 characters. */
export const Name = Type.String({ pattern: '\\S', maxLength: NAME_LENGTH_MAX });
export type Name = Static<typeof Name>;

/**
 * Of what a path names, where it is stored: whoever makes an address resolves `.` and `..` in it, also when they are
 * percent-encoded, so that nobody could ask for the thing again. What is there already can be removed by its params.
 */
export const addressed = <T extends TSchema>(schema: T): T => ({
  ...schema,
  'x-check': 'addressed',
});

/** A tenant in a body, as the header x-tenant-id and a path can name it. */
export const TenantName = Type.String({
  pattern: '\\S',
  maxLength: NAME_LENGTH_MAX,
  'x-check': 'tenant',
});
export type TenantName = Static<typeof TenantName>;

/** Of a header, as bodies are judged: in characters, of which some are two units of a string. */
export function isTenantTooLong(tenant: string): boolean {
  return tenant.length > NAME_LENGTH_MAX && [...tenant].length > NAME_LENGTH_MAX;
}

/** A name that becomes a key of the context or of the outputs, where `__proto__` is refused. */
export const PlainName = Type.String({
  pattern: '\\S',
  maxLength: NAME_LENGTH_MAX,
  'x-check': 'plain-name',
});
export type PlainName = Static<typeof PlainName>;

/** The same of what a path names, too. */
export const BlockId = { ...PlainName, 'x-check': 'block-id' };
export type BlockId = Static<typeof BlockId>;

/** Of a sequence. */
export const Version = Type.Integer({ minimum: -INT32_MAX, maximum: INT32_MAX });

/**
 * What starts something names the sequence by its id or by its name, never by both: for objects with
 * the check `sequence-or-id`.
 */
export const SEQUENCE_REFERENCE = {
  sequence_id: optional(
    noted(
      Uuid,
      'Of this version, from which a release may lead to another one. Exactly one of sequence_id and ' +
        'sequence must be there.',
    ),
  ),
  sequence: optional(
    noted(Name, 'The name of a sequence of the namespace, in place of sequence_id.'),
  ),
  version: optional(
    noted(
      Version,
      'With sequence: pins this version of it, from which no release leads elsewhere. When absent: the ' +
        'newest that is not deprecated, not on hold, and that no release holds back.',
    ),
  ),
};

/** Stands for a secret in answers, and is none. */
export const REDACTED = '[REDACTED]';

/** Of what is kept as a secret: what an answer shows of it is no value to be kept. */
export const secretText = (options: StringOptions) =>
  Type.String({ ...options, 'x-check': 'not-redacted' });

export const Key = Type.String({ maxLength: KEY_LENGTH_MAX, 'x-check': 'empty-is-absent' });
export type Key = Static<typeof Key>;

export const Expression = Type.String({ pattern: '\\S', maxLength: EXPRESSION_LENGTH_MAX });
export type Expression = Static<typeof Expression>;

/** A whole number from zero on. */
export const Natural = Type.Integer({ minimum: 0, maximum: INTEGER_MAX });

/** Whole milliseconds. */
export const DurationMs = Type.Integer({
  minimum: 0,
  maximum: DURATION_MS_MAX,
  description: 'Milliseconds.',
});
export type DurationMs = Static<typeof DurationMs>;

export const TimeZone = Type.String({
  format: 'time-zone',
  description: 'IANA time zone, such as Europe/Berlin.',
});
export type TimeZone = Static<typeof TimeZone>;

/** Of a change of many. */
export const DryRun = optional(
  Type.Boolean({ default: false, description: 'Only counts: nothing is changed.' }),
);

/** Of a change of many that may retry instances. */
export const Orphans = optional(
  Type.Boolean({
    default: false,
    description:
      'Also retry children whose parents have gone on without them: nobody takes what they come to. Else they are skipped.',
  }),
);

export const AnyJson = Type.Unsafe<JsonValue>({});
export type AnyJson = Static<typeof AnyJson>;

export const JsonObjectSchema = Type.Unsafe<JsonObject>({ type: 'object' });
export type JsonObjectSchema = Static<typeof JsonObjectSchema>;

/** A schema that a user gives for inputs or outputs; see `findSchemaProblem` in sequence.ts. */
export const UserSchema = Type.Unsafe<JsonObject>({
  type: 'object',
  'x-check': 'json-schema',
  description: 'JSON Schema 2020-12 without pattern, patternProperties and recursive references.',
});
export type UserSchema = Static<typeof UserSchema>;

export const InstanceStateWord = oneOfWords(INSTANCE_STATES);
export type InstanceStateWord = Static<typeof InstanceStateWord>;

export const TaskStateWord = oneOfWords(TASK_STATES);
export type TaskStateWord = Static<typeof TaskStateWord>;

/** Requests write priorities in any case; inside and in rows they are lower case. */
export const PriorityWord = Type.Unsafe<(typeof PRIORITIES)[number]>({
  ...oneOfWords(PRIORITIES, 'Any case is accepted.'),
  'x-lower-case': true,
});
export type PriorityWord = Static<typeof PriorityWord>;

export const ErrorBody = named(
  'ErrorBody',
  'The body of every answer that is not a success. That of a migration that is refused also has its ' +
    'verdict and findings (MigrationFinding).',
  { error: Type.String() },
);
export type ErrorBody = Static<typeof ErrorBody>;

/** Whose things are asked for; the header overrides it. */
export const TenantQuery = Type.Object({ tenant_id: Type.Optional(Type.String()) });
export type TenantQuery = Static<typeof TenantQuery>;

/** By what lists are cut by time; what lies exactly at a bound is left out. */
export const CREATED_BETWEEN = {
  created_after: noted(Timestamp, 'Exclusive.'),
  created_before: noted(Timestamp, 'Exclusive.'),
};

/** A page goes on behind a row, whatever comes and goes meanwhile (docs/decisions/0016-lists.md). */
export const Cursor = Type.Optional(
  Type.String({
    maxLength: CURSOR_LENGTH_MAX,
    description: 'From the header x-next-cursor of the page before; instead of an offset.',
  }),
);

/** Query fields of a page; `limit` above the maximum is lowered to it without an error. */
export const Offset = Type.Integer({ minimum: 0, default: 0 });

export function Limit(byDefault: number, max: number, min = 0) {
  return Type.Integer({ minimum: min, default: byDefault, 'x-cap': max });
}

export const IdParams = Type.Object({ id: Uuid });
export type IdParams = Static<typeof IdParams>;

/** The last year that four digits can write; the first instant is 1970, where unix time begins. */
const TIMESTAMP_MS_MAX = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

const RFC_3339 =
  /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,18}))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

/**
 * Unix milliseconds of an RFC 3339 timestamp with an offset; fractions beyond ms are cut off.
 * Undefined when the text is none, names no real date, or lies outside 1970 … 9999.
 */
export function toUnixMs(text: string): UnixMs | undefined {
  const parts = RFC_3339.exec(text);
  // Years below 100 mean 1900 and more to `Date.UTC`; no year before 1970 is taken anyway.
  if (parts === null || text < '1969') return undefined;
  const year = Number(parts[1]);
  const month = Number(parts[2]);
  const day = Number(parts[3]);
  const hour = Number(parts[4]);
  const minute = Number(parts[5]);
  const second = Number(parts[6]);
  const offsetHour = Number(parts[9] ?? 0);
  const offsetMinute = Number(parts[10] ?? 0);
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) return undefined;
  if (hour > 23 || minute > 59 || second > 59) return undefined;
  if (offsetHour > 23 || offsetMinute > 59) return undefined;
  const fraction = parts[7];
  const ms = fraction === undefined ? 0 : Number(fraction.slice(0, 3).padEnd(3, '0'));
  const offset = (offsetHour * 60 + offsetMinute) * (parts[8] === '-' ? -1 : 1);
  const unixMs = Date.UTC(year, month - 1, day, hour, minute - offset, second, ms);
  return unixMs >= 0 && unixMs <= TIMESTAMP_MS_MAX ? unixMs : undefined;
}

function daysInMonth(year: number, month: number): number {
  if (month !== 2) return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
}
