/** The client of one engine: its operations by name, made of the table that is generated from the server's. */

import { OPERATIONS, type Operations } from '../generated/operations.js';
import { eventsOf } from './events.js';
import { listOf, type PageAnswer } from './list.js';
import type { CallOptions, CreationOptions, EventStream, OperationRow } from './operation.js';
import { type Fetch, type Sending, send } from './transport.js';

export interface ClientOptions {
  /** Of the engine, with or without `/api/v1`. */
  readonly url: string;
  /** Left out where the engine asks for none. */
  readonly apiKey?: string | undefined;
  /** Sent in `x-tenant-id`, and in bodies that name a tenant. Required by most operations. */
  readonly tenant?: string | undefined;
  /** For bodies that leave it out. Default: `default`. */
  readonly namespace?: string | undefined;
  /** How long one try may take, in milliseconds. Default: 30,000. Polls may take their `wait_ms` longer. */
  readonly timeoutMs?: number | undefined;
  /** How often a request is tried again at most. Default: 4. */
  readonly retries?: number | undefined;
  /** In place of the global one: for proxies, certificates, tests. */
  readonly fetch?: Fetch | undefined;
}

const TIMEOUT_MS = 30_000;
const RETRIES = 4;

type Query = Readonly<Record<string, unknown>>;
type Options = CreationOptions & { readonly query?: Query };

/** The operations of the server by their names: `client.instances.create(body)`. */
export interface Client extends Operations {}

// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the constructor gives every operation that the table names
export class Client {
  readonly #options: ClientOptions;
  readonly #base: string;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#base = baseOf(options.url);
    for (const [id, row] of Object.entries<OperationRow>(OPERATIONS)) {
      const [resource = '', name] = id.split('.');
      const operation = (...given: unknown[]) => this.#call(row, given);
      const here = this as unknown as Record<string, Record<string, unknown> | typeof operation>;
      if (name === undefined) here[resource] = operation;
      else here[resource] = { ...(here[resource] as object), [name]: operation };
    }
  }

  /** Parameters of the path, then the body or the query, then the options. */
  #call(row: OperationRow, given: readonly unknown[]): unknown {
    const rest = [...given];
    const path = row.path.replace(/\{(\w+)\}/g, (_, name) => pathPart(name, rest.shift()));
    const hasBody = row.takes?.startsWith('body') ?? false;
    const body = hasBody ? rest.shift() : undefined;
    const asked = row.takes === 'query' ? rest.shift() : undefined;
    const options = (rest.shift() ?? {}) as Options;
    const query = (hasBody ? options.query : this.#filled(row, asked, options)) as
      | Query
      | undefined;
    const sent = hasBody ? this.#body(row, body, options) : undefined;
    const sending = (changed: Query | undefined) =>
      this.#sending(row, path, changed, sent, options);
    if (row.pages !== undefined) {
      return listOf(row, query ?? {}, (place) => this.#send(sending(place), pageAnswer));
    }
    if (row.answers === 'events') return this.#events(sending(query));
    return this.#send(
      sending(query),
      row.answers === 'text' ? (response) => response.text() : json,
    );
  }

  #send<T>(sending: Sending, read: (response: Response) => Promise<T>): Promise<T> {
    return send(this.#options.fetch ?? fetch, sending, read);
  }

  async *#events(sending: Sending): EventStream {
    const body = await this.#send(sending, async (response) => response.body);
    if (body !== null) yield* eventsOf(body);
  }

  #sending(
    row: OperationRow,
    path: string,
    query: Query | undefined,
    body: Sending['body'],
    options: CallOptions,
  ): Sending {
    const { apiKey } = this.#options;
    const tenant = options.tenant ?? this.#options.tenant;
    return {
      method: row.method,
      url: `${this.#base}${path}${queryText(query)}`,
      headers: {
        accept: row.answers === 'events' ? 'text/event-stream' : '*/*',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(apiKey === undefined ? {} : { 'x-api-key': apiKey }),
        ...(tenant === undefined ? {} : { 'x-tenant-id': tenant }),
        ...options.headers,
      },
      body,
      isRepeatable: !['POST', 'PATCH'].includes(row.method) || !!row.isRepeatable || !!row.isKeyed,
      timeoutMs: options.timeoutMs ?? this.#options.timeoutMs ?? TIMEOUT_MS,
      retries: options.retries ?? this.#options.retries ?? RETRIES,
      signal: options.signal,
    };
  }

  #body(row: OperationRow, body: unknown, options: Options): Sending['body'] {
    if (typeof body === 'string' || body instanceof Uint8Array) return body;
    const filled = this.#filled(row, body, options) as Query | undefined;
    const key = options.idempotencyKey ?? filled?.idempotency_key;
    if (!row.isKeyed) return filled === undefined ? undefined : JSON.stringify(filled);
    return JSON.stringify({ ...filled, idempotency_key: key ?? crypto.randomUUID() });
  }

  /** With tenant and namespace of the client where they belong and are left out. */
  #filled({ fills = [], fillsEach }: OperationRow, given: unknown, options: CallOptions): unknown {
    if (fills.length === 0) return given;
    const own = {
      tenant_id: options.tenant ?? this.#options.tenant,
      namespace: this.#options.namespace ?? 'default',
    };
    const missing = Object.fromEntries(fills.map((field) => [field, own[field]]));
    const fill = (one: object) => ({ ...missing, ...withoutUndefined(one) });
    const shape = (given ?? {}) as Record<string, object[]>;
    if (fillsEach === undefined) return fill(shape);
    return { ...shape, [fillsEach]: shape[fillsEach]?.map(fill) };
  }
}

/** @throws TypeError when it is no address of HTTP */
function baseOf(url: string): string {
  const { protocol } = new URL(url);
  if (!/^https?:$/.test(protocol))
    throw new TypeError(`${url} is not an http:// or https:// address`);
  return `${url.replace(/\/+$/, '').replace(/\/api\/v1$/, '')}/api/v1`;
}

/** An empty part would lead to another operation. */
function pathPart(name: string, value: unknown): string {
  if (typeof value !== 'string' || value === '')
    throw new TypeError(`${name} must be a text that is not empty`);
  return encodeURIComponent(value);
}

/** Lists as words between commas, `metadata: { a: 'b' }` as `metadata.a=b`. */
function queryText(query: Query | undefined): string {
  const pairs = Object.entries(query ?? {}).flatMap(([name, value]): [string, string][] => {
    if (value === undefined || value === null) return [];
    if (Array.isArray(value)) return [[name, value.join(',')]];
    if (typeof value !== 'object') return [[name, String(value)]];
    return Object.entries(value).map(([key, text]) => [`${name}.${key}`, String(text)]);
  });
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`;
}

const withoutUndefined = (given: object) =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));

async function json(response: Response): Promise<unknown> {
  const text = await response.text();
  return text === '' ? undefined : JSON.parse(text);
}

async function pageAnswer(response: Response): Promise<PageAnswer> {
  const { headers } = response;
  const cursor = headers.get('x-next-cursor') ?? undefined;
  return { body: await response.json(), cursor, link: headers.get('link') ?? '' };
}
