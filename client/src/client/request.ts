/** Builds the request of an operation: path, query, body and headers, and whether it may be retried. */

import { UnsendableError } from './errors.js';
import { jsonOf } from './json.js';
import type { CallOptions, CreationOptions, OperationRow } from './operation.js';
import { expectNumbers } from './time.js';
import type { Sending } from './transport.js';

/** Settings of all requests of a client. */
export interface Settings {
  /** Including the prefix. */
  readonly base: string;
  readonly apiKey: string | undefined;
  readonly tenant: string | undefined;
  readonly namespace: string;
  readonly timeoutMs: number;
  readonly totalTimeoutMs: number | undefined;
  readonly retries: number;
}

export type Query = Readonly<Record<string, unknown>>;
type Fields = Readonly<Record<string, unknown>>;

/** The arguments of a call: path parameters, then the body or the query, then the options. */
export interface Call {
  readonly path: string;
  readonly query: Query | undefined;
  readonly body: unknown;
  readonly options: CreationOptions;
}

/** @throws UnsendableError if a path parameter is missing */
export function callOf(row: OperationRow, given: readonly unknown[], settings: Settings): Call {
  const rest = [...given];
  const path = row.path.replace(/\{(\w+)\}/g, (_, name) => pathPart(name, rest.shift()));
  const takesBody = row.takes?.startsWith('body') ?? false;
  const first = row.takes === undefined ? undefined : rest.shift();
  const options = (rest.shift() ?? {}) as CreationOptions & { readonly query?: Query };
  if (takesBody) return { path, query: options.query, body: first, options };
  const query = filled(row, (first ?? {}) as Fields, options, settings);
  return { path, query, body: undefined, options };
}

/** @param query replaces that of the call */
export function sendingOf(
  row: OperationRow,
  { path, body, options }: Call,
  query: Query | undefined,
  settings: Settings,
): Sending {
  const tenant = options.tenant ?? settings.tenant;
  const { timeoutMs, totalTimeoutMs, retries } = options;
  expectNumbers({ timeoutMs, totalTimeoutMs, retries });
  const { text, isKeyed } = bodyOf(row, body, options, settings);
  const isRepeatable = row.method !== 'POST' && row.method !== 'PATCH';
  return {
    method: row.method,
    url: `${settings.base}${path}${queryText(query)}`,
    headers: {
      accept: row.answers === 'events' ? 'text/event-stream' : '*/*',
      ...(text === undefined ? {} : { 'content-type': 'application/json' }),
      ...callerHeaders({ apiKey: settings.apiKey, tenant }),
      ...options.headers,
    },
    body: text,
    isRepeatable: isRepeatable || row.isRepeatable === true || isKeyed,
    timeoutMs: (timeoutMs ?? settings.timeoutMs) + (row.isParked ? waitMsOf(query, body) : 0),
    totalTimeoutMs: totalTimeoutMs ?? settings.totalTimeoutMs,
    retries: retries ?? settings.retries,
    signal: options.signal,
  };
}

/**
 * The headers that identify the caller and the tenant.
 *
 * @throws UnsendableError for values that would arrive changed: servers strip whitespace, and some of them all
 * non-ASCII characters, from both ends of a header
 */
export function callerHeaders({
  apiKey,
  tenant,
}: Partial<Pick<Settings, 'apiKey' | 'tenant'>>): Readonly<Record<string, string>> {
  if (apiKey !== undefined && !/^[ -~]*$/.test(apiKey)) {
    throw new UnsendableError('apiKey must be printable ASCII');
  }
  if (tenant && !TENANT.test(tenant)) {
    throw new UnsendableError(
      `the tenant ${JSON.stringify(tenant)} cannot be sent: it must begin and end with printable ASCII, and have no control characters`,
    );
  }
  return {
    ...(apiKey === undefined ? {} : { 'x-api-key': apiKey }),
    ...(tenant === undefined ? {} : { 'x-tenant-id': asBytes(tenant) }),
  };
}

const TENANT = /^[!-~](?:[^\p{Cc}\p{Cs}]*[!-~])?$/u;

/** UTF-8 bytes as characters, as headers are sent. */
const asBytes = (text: string) => String.fromCharCode(...new TextEncoder().encode(text));

interface Body {
  readonly text: Sending['body'];
  /** A repetition returns the result of the first request. */
  readonly isKeyed: boolean;
}

function bodyOf(
  row: OperationRow,
  body: unknown,
  options: CreationOptions,
  settings: Settings,
): Body {
  if (typeof body === 'string' || body instanceof Uint8Array) return { text: body, isKeyed: false };
  const { each, key } = row;
  if (body === undefined && key === undefined) return { text: undefined, isKeyed: false };
  const whole = (body ?? {}) as Fields;
  const listed = each === undefined ? [whole] : whole[each];
  // The server reports what is wrong with it.
  if (!Array.isArray(listed)) return { text: jsonOf(whole), isKeyed: false };
  const items = listed.map((item: Fields) => {
    const fields = filled(row, item, options, settings);
    return key === undefined ? fields : keyed(fields, key, options.idempotencyKey);
  });
  return {
    text: jsonOf(each === undefined ? items[0] : { ...whole, [each]: items }),
    isKeyed: key !== undefined && items.every((item) => hasText(item[key])),
  };
}

/**
 * An instance with a `cohort_key` gets no generated key, since a release would use that key to choose its side
 * (docs/releases.md).
 */
function keyed(fields: Fields, key: string, own: string | undefined): Fields {
  if (own !== undefined) return { ...fields, [key]: own };
  const { metadata } = fields as { metadata?: { cohort_key?: unknown } | null };
  if (hasText(fields[key]) || metadata?.cohort_key !== undefined) return fields;
  return { ...fields, [key]: crypto.randomUUID() };
}

const hasText = (value: unknown) => typeof value === 'string' && value !== '';

/** Adds tenant and namespace of the client where they apply and are omitted. */
function filled(
  { fills = [] }: OperationRow,
  given: Fields,
  options: CallOptions,
  { tenant, namespace }: Settings,
): Fields {
  const own = { tenant_id: options.tenant ?? tenant, namespace };
  const missing = fills.filter((field) => given[field] === undefined);
  return { ...given, ...Object.fromEntries(missing.map((field) => [field, own[field]])) };
}

/** An empty path parameter would address another operation. */
function pathPart(name: string, value: unknown): string {
  if (hasText(value)) return encodeURIComponent(value as string);
  throw new UnsendableError(`${name} must be a non-empty string`);
}

/** Lists are comma-separated; `metadata: { a: 'b' }` becomes `metadata.a=b`. */
function queryText(query: Query = {}): string {
  const pairs = Object.entries(query).flatMap(([name, value]): [string, string][] => {
    if (value === undefined || value === null) return [];
    if (Array.isArray(value)) return [[name, value.join(',')]];
    if (typeof value !== 'object') return [[name, String(value)]];
    return Object.entries(value).map(([key, text]) => [`${name}.${key}`, String(text)]);
  });
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`;
}

/** The server's limit for delaying a response. */
const WAIT_MS_MAX = 60_000;

/** How long the response may be delayed, according to the query, or to the body of a poll or an exchange. */
function waitMsOf(query: Query | undefined, body: unknown): number {
  const { wait_ms, poll } = (body ?? {}) as { wait_ms?: number; poll?: { wait_ms?: number } };
  const asked = query?.wait_ms ?? wait_ms ?? poll?.wait_ms ?? 0;
  return Math.min(Number(asked) || 0, WAIT_MS_MAX);
}
