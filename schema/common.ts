/**
 * The vocabulary of the wire contract, imported as `t`: builders of schemas, scalars, and bounds that the engine sets
 * (docs/reference/blocks.md). Builders take the description as their last argument. The validators use three
 * annotations: `x-lower-case` (converted to lower case), `x-cap` (larger numbers are lowered to it) and `x-check` (a
 * rule beyond JSON Schema, `keywords.ts`).
 */

import {
  type ArrayOptions,
  type IntegerOptions,
  type NumberOptions,
  type ObjectOptions,
  type SchemaOptions,
  type Static,
  type StringOptions,
  type TLiteralValue,
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

export type { Static } from '@sinclair/typebox';

/** In code points. Three names and a version share an index row, which Postgres limits to 2,704 bytes. */
export const NAME_LENGTH_MAX = 255;
/** Keys from callers' own data: idempotency, concurrency and rate limit keys. */
export const KEY_LENGTH_MAX = 512;
/** Name of a handler, plugin, credential, region or hardware of a runtime. */
export const FACT_BYTES_MAX = 256;
/** Pairs of a handler and a queue in one exchange: each pair is a separate read of its table. */
export const EXCHANGE_PAIRS_MAX = 100;
export const LIST_LIMIT_DEFAULT = 100;
export const LIST_LIMIT_MAX = 1_000;
/** Conditions are written by hand and parsed once per definition. */
export const EXPRESSION_LENGTH_MAX = 16_384;
/** Fits three names of the longest characters, escaped and in base64. */
const CURSOR_LENGTH_MAX = 8_192;
/** A century in ms: every wake time stays within the ranges of Postgres and JavaScript. */
export const DURATION_MS_MAX = 100 * 366 * 24 * 60 * 60 * 1_000;
/** The range of 32-bit columns, and the largest integer that JSON preserves. */
export const INT32_MAX = 2_147_483_647;
export const INTEGER_MAX = Number.MAX_SAFE_INTEGER;

const optionsOf = <T extends SchemaOptions>(more: T | string): T =>
  typeof more === 'string' ? ({ description: more } as T) : more;

export const text = (more: StringOptions | string = {}) => Type.String(optionsOf(more));
export const integer = (more: IntegerOptions | string = {}) => Type.Integer(optionsOf(more));
export const number = (more: NumberOptions | string = {}) => Type.Number(optionsOf(more));
export const boolean = (more: SchemaOptions | string = {}) => Type.Boolean(optionsOf(more));
export const literal = <T extends TLiteralValue>(value: T, note?: string) =>
  Type.Literal(value, optionsOf(note ?? {}));
export const list = <T extends TSchema>(items: T, more: ArrayOptions | string = {}) =>
  Type.Array(items, optionsOf(more));
export const object = <P extends TProperties>(members: P, more: ObjectOptions | string = {}) =>
  Type.Object(members, optionsOf(more));

/** A schema with another static type than TypeBox derives. */
export const typed = <T>(schema: SchemaOptions) => Type.Unsafe<T>(schema);

/** One of the words. */
export function oneOf<const T extends readonly string[]>(words: T, note?: string) {
  return Type.Unsafe<T[number]>({ type: 'string', enum: [...words], ...optionsOf(note ?? {}) });
}

/** A member that may be absent. */
export function optional<T extends TSchema>(schema: T, note?: string) {
  return Type.Optional(noted(schema, note));
}

type Nullable<T extends TSchema> = TUnsafe<Static<T> | null>;

/** A member that may be null. */
export function nullable<T extends TSchema>(schema: T, note?: string): Nullable<T> {
  return Type.Unsafe({ ...noted(schema, note), type: [schema.type as string, 'null'] });
}

/** The same for a named schema, which stays a reference. */
export const refOrNull = <T extends TSchema>(schema: T) =>
  Type.Unsafe<Static<T> | null>({ anyOf: [schema, { type: 'null' }] });

type Nullish<T extends TSchema> = TOptional<Nullable<T>>;

/** A member that may be absent or null, with the same meaning; in a change, null resets it (`change-shapes.ts`). */
export function nullish<T extends TSchema>(schema: T, note?: string): Nullish<T> {
  const { default: byDefault, ...rest } = unnamed(noted(schema, note));
  const shape = {
    ...rest,
    type: [schema.type as string, 'null'],
    ...(schema.enum === undefined ? {} : { enum: [...schema.enum, null] }),
    ...(byDefault === undefined ? {} : { default: byDefault }),
  };
  return Type.Optional(Type.Unsafe<Static<T> | null>(shape));
}

function mapped(members: TProperties, build: (schema: TSchema) => TSchema): TProperties {
  return Object.fromEntries(Object.entries(members).map(([name, one]) => [name, build(one)]));
}

/** The same members, each of which may be absent, null, or both. */
export const allOptional = <P extends TProperties>(members: P) =>
  mapped(members, (one) => optional(one)) as { [K in keyof P]: TOptional<P[K]> };
export const allNullable = <P extends TProperties>(members: P) =>
  mapped(members, (one) => nullable(one)) as { [K in keyof P]: Nullable<P[K]> };
export const allNullish = <P extends TProperties>(members: P) =>
  mapped(members, (one) => nullish(one)) as { [K in keyof P]: Nullish<P[K]> };

/** An optional switch of a request. */
export const flag = (byDefault: boolean, note?: string) =>
  nullish(Type.Boolean({ default: byDefault }), note);

/** A named schema without its name and description. */
function unnamed(schema: TSchema): Record<string, unknown> {
  const { $id, description, ...shape } = schema;
  return $id === undefined ? schema : shape;
}

/** Puts a note before the schema's own description. */
export function noted<T extends TSchema>(schema: T, note: string | undefined): T {
  if (note === undefined) return schema;
  const shape = unnamed(schema);
  const words = shape.description === undefined ? note : `${note} ${shape.description}`;
  return { ...shape, description: words } as T;
}

export function withDefault<T extends TSchema>(schema: T, value: JsonValue): T {
  return { ...schema, default: value };
}

/** A named component of the document, with an optional description. */
export function named<P extends TProperties>(name: string, properties: P): TObject<P>;
export function named<P extends TProperties>(name: string, note: string, properties: P): TObject<P>;
export function named<P extends TProperties>(name: string, ...rest: [P] | [string, P]): TObject<P> {
  const [note, properties] = rest.length === 1 ? [{}, rest[0]] : rest;
  return Type.Object(properties, { $id: name, ...optionsOf(note) });
}

/**
 * Strict shapes refuse unknown members: filters and bulk changes, where an ignored misspelt filter would select too
 * much; grants; and resources that act later by themselves, such as schedules. Requests that create or report one thing
 * ignore unknown members.
 */
export function strict<T extends TObject>(shape: T): T {
  return { ...shape, additionalProperties: false };
}

export const strictObject = <P extends TProperties>(properties: P) =>
  Type.Object(properties, { additionalProperties: false });

export const strictNamed = ((...args: Parameters<typeof named>) =>
  strict(named(...args))) as typeof named;

export function isStrict(shape: TSchema): boolean {
  return shape.additionalProperties === false;
}

/** Adds a rule beyond JSON Schema (`keywords.ts`) for the whole value. */
export function checked<T extends TSchema>(check: string, schema: T): T {
  return { ...schema, 'x-check': check };
}

type Unsupported<K extends string> = Record<K, TOptional<TUnsafe<null | false>>>;

const UNSUPPORTED_VALUES = [null, false] as const;

/** Whether the words of a field are those of an unsupported one. */
export function isUnsupported(words: readonly unknown[] | undefined): boolean {
  return UNSUPPORTED_VALUES.every((value, index) => words?.[index] === value);
}

/**
 * Fields that would change what runs but are not implemented: refused with 400 unless null or false, because ignoring
 * them would not do what was asked (docs/decisions/0017-unknown-fields.md).
 */
export function unsupported<K extends string>(...names: readonly K[]): Unsupported<K> {
  const field = Type.Optional(
    Type.Unsafe<null | false>({ enum: [...UNSUPPORTED_VALUES], description: 'Not supported.' }),
  );
  return Object.fromEntries(names.map((name) => [name, field])) as Unsupported<K>;
}

export const Uuid = text({ format: 'uuid', 'x-lower-case': true });

/** RFC 3339 with any offset on input; UTC with `Z` in responses. */
export const Timestamp = text({ format: 'date-time' });

/** A name that identifies something: not blank, at most 255 characters. */
export const Name = text({ pattern: '\\S', maxLength: NAME_LENGTH_MAX });

/**
 * A name in a path, when it is stored: clients resolve `.` and `..` in paths, even percent-encoded, so that nobody
 * could request it. Paths of deletions still accept them.
 */
export const addressed = <T extends TSchema>(schema: T): T => ({
  ...schema,
  'x-check': 'addressed',
});

/** A tenant in a body, as the header x-tenant-id and a path can name it. */
export const TenantName = text({ pattern: '\\S', maxLength: NAME_LENGTH_MAX, 'x-check': 'tenant' });
export const BodyTenant = noted(TenantName, 'Must equal the header x-tenant-id, if sent.');

/** Length of a header, counted in characters as in bodies; some characters are two UTF-16 units. */
export function isTenantTooLong(tenant: string): boolean {
  return tenant.length > NAME_LENGTH_MAX && [...tenant].length > NAME_LENGTH_MAX;
}

/** A group of people, or one of them by an address. Without spaces, so that lists of groups can be stored as one text. */
export const GroupName = text({
  pattern: '^[A-Za-z0-9._@:/+-]+$',
  maxLength: 64,
  description: 'Letters, digits and . _ @ : / + -',
});

/** A name used as a key of the context or of the outputs; `__proto__` is refused. */
export const PlainName = text({
  pattern: '\\S',
  maxLength: NAME_LENGTH_MAX,
  'x-check': 'plain-name',
});

/** The same for a name in a path. */
export const BlockId = { ...PlainName, 'x-check': 'block-id' };

export const Version = integer({ minimum: -INT32_MAX, maximum: INT32_MAX });

/** References a sequence by id or by name, never both; objects with it have the check `sequence-or-id`. */
export const SEQUENCE_REFERENCE = {
  sequence_id: nullish(
    Uuid,
    'Id of a version, from which a release may route to another one. ' +
      'Exactly one of sequence_id and sequence is required.',
  ),
  sequence: nullish(Name, 'Name of a sequence in the namespace, instead of sequence_id.'),
  version: nullish(
    Version,
    'With sequence: pins this version; no release routes it elsewhere. Default: the ' +
      'newest version that is not deprecated, on hold, or held back by a release.',
  ),
};

/** Replaces secrets in responses. */
export const REDACTED = '[REDACTED]';

/** A secret in a request: the replacement shown in responses is refused. */
export const secretText = (options: StringOptions) =>
  text({ ...options, 'x-check': 'not-redacted' });

export const Key = text({ maxLength: KEY_LENGTH_MAX, 'x-check': 'empty-is-absent' });

export const Expression = text({ pattern: '\\S', maxLength: EXPRESSION_LENGTH_MAX });

export const Natural = integer({ minimum: 0, maximum: INTEGER_MAX });

export const DurationMs = integer({ minimum: 0, maximum: DURATION_MS_MAX });

export const TimeZone = text({
  format: 'time-zone',
  description: 'IANA time zone, such as Europe/Berlin.',
});

export const DryRun = flag(false, 'Only counts: nothing is changed.');

export const Orphans = flag(
  false,
  'Also retries children whose parents continued without them. Default: skips them.',
);

export const AnyJson = Type.Unsafe<JsonValue>({});

export const JsonObjectSchema = Type.Unsafe<JsonObject>({ type: 'object' });

/** A JSON Schema of a user, for inputs or outputs; see `examineSchema`. */
export const UserSchema = Type.Unsafe<JsonObject>({
  type: 'object',
  'x-check': 'json-schema',
  description: 'JSON Schema 2020-12 without pattern, patternProperties and recursive references.',
});

export const InstanceStateWord = oneOf(INSTANCE_STATES);
export type InstanceStateWord = Static<typeof InstanceStateWord>;

export const TaskStateWord = oneOf(TASK_STATES);

/** Requests accept priorities in any case; rows have lower case. */
export const PriorityWord = Type.Unsafe<(typeof PRIORITIES)[number]>({
  ...oneOf(PRIORITIES, 'Case-insensitive.'),
  'x-lower-case': true,
});

export const ErrorBody = named(
  'ErrorBody',
  'Body of every error. A refused migration adds its verdict and findings (MigrationFinding).',
  { error: text() },
);

/** The tenant of a query; the header overrides it. */
export const TenantQuery = object({ tenant_id: optional(text()) });

/** Filters by time; both bounds are exclusive. */
export const CREATED_BETWEEN = {
  created_after: noted(Timestamp, 'Only objects created after this time.'),
  created_before: noted(Timestamp, 'Only objects created before this time.'),
};

/** Keyset pagination: rows that come and go do not shift the page (docs/decisions/0016-lists.md). */
export const Cursor = optional(
  text({ maxLength: CURSOR_LENGTH_MAX }),
  'From the header x-next-cursor of the previous page; instead of an offset.',
);

export const Offset = integer({ minimum: 0, default: 0 });

/** Page size; a `limit` above the maximum is lowered to it. */
export function Limit(byDefault: number, max: number, min = 0) {
  return integer({ minimum: min, default: byDefault, 'x-cap': max });
}

export const pageOf = (byDefault = LIST_LIMIT_DEFAULT, max = LIST_LIMIT_MAX) => ({
  offset: Offset,
  limit: Limit(byDefault, max),
  cursor: Cursor,
});

/** All rows: no default limit, and a truncated response has a link to the next page (docs/limits.md). */
export const ALL_ROWS = { offset: Offset, limit: optional(integer({ minimum: 0 })) };
/** The same for rows with keys to continue after. */
export const ALL_BY_KEY = { ...ALL_ROWS, cursor: Cursor };

export const IdParams = object({ id: Uuid });

/** The last four-digit year; the first instant is the Unix epoch. */
const TIMESTAMP_MS_MAX = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

const RFC_3339 =
  /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,18}))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

/**
 * Unix milliseconds of an RFC 3339 timestamp with an offset, truncated to ms. Undefined if the text is malformed, not a
 * real date, or outside 1970 … 9999.
 */
export function toUnixMs(text: string): UnixMs | undefined {
  const parts = RFC_3339.exec(text);
  // `Date.UTC` reads years below 100 as 1900 and more; years before 1970 are refused below anyway.
  if (parts === null || text < '1969') return undefined;
  const year = Number(parts[1]);
  const month = Number(parts[2]);
  const day = Number(parts[3]);
  const hour = Number(parts[4]);
  const minute = Number(parts[5]);
  const second = Number(parts[6]);
  const offsetHour = Number(parts[9] ?? 0);
  const offsetMinute = Number(parts[10] ?? 0);
  if (month < 1 || month > 12 || day < 1) return undefined;
  // The last day of the month.
  if (day > new Date(Date.UTC(year, month, 0)).getUTCDate()) return undefined;
  if (hour > 23 || minute > 59 || second > 59) return undefined;
  if (offsetHour > 23 || offsetMinute > 59) return undefined;
  const fraction = parts[7];
  const ms = fraction === undefined ? 0 : Number(fraction.slice(0, 3).padEnd(3, '0'));
  const offset = (offsetHour * 60 + offsetMinute) * (parts[8] === '-' ? -1 : 1);
  const unixMs = Date.UTC(year, month - 1, day, hour, minute - offset, second, ms);
  return unixMs >= 0 && unixMs <= TIMESTAMP_MS_MAX ? unixMs : undefined;
}
