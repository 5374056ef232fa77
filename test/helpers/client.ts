/**
 * A small HTTP client for tests: keep-alive, the tenant and key headers, typed replies. It never
 * tries anything again by itself, so that a test sees what the server answered; and when there is
 * no answer it tells whether the server can have seen the request. Every answer is held against the
 * OpenAPI document.
 */

import { type Dispatcher, errors, Pool } from 'undici';
import { describeAnswer } from './contract.js';

export interface ClientOptions {
  /** The server's address without the prefix, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /** Default `/api/v1`; '' reaches the bare paths. */
  readonly prefix?: string;
  /** No header is sent when it is null or absent. */
  readonly apiKey?: string | null;
  readonly tenant?: string | null;
  /** Connections that are kept open, and so the requests in flight at once. Default 16. */
  readonly connections?: number;
  /** How long an answer may take. Default 15 s; a long poll needs more than its `wait_ms`. */
  readonly timeoutMs?: number;
  /** Default true: an answer that the OpenAPI document does not describe is an error. */
  readonly isChecked?: boolean;
}

export interface RequestOptions {
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as it is, for bodies that are no JSON. */
  readonly raw?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export interface Reply<T> {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** The parsed text; undefined when it is empty or no JSON. */
  readonly body: T;
}

export interface Client {
  /** @param path after the prefix, with its query */
  request<T = unknown>(method: string, path: string, options?: RequestOptions): Promise<Reply<T>>;
  get<T = unknown>(path: string): Promise<Reply<T>>;
  post<T = unknown>(path: string, body?: unknown, signal?: AbortSignal): Promise<Reply<T>>;
  put<T = unknown>(path: string, body?: unknown): Promise<Reply<T>>;
  patch<T = unknown>(path: string, body?: unknown): Promise<Reply<T>>;
  delete<T = unknown>(path: string): Promise<Reply<T>>;
  /** The same connections with other headers or another prefix. */
  with(changes: Pick<ClientOptions, 'apiKey' | 'tenant' | 'prefix'>): Client;
  /** Drops the connections; what is in flight fails. */
  close(): Promise<void>;
}

/** There was no answer. When `isSent` is true the server may have done what was asked. */
export class NoReplyError extends Error {
  override readonly name = 'NoReplyError';
  readonly isSent: boolean;
  readonly isTimeout: boolean;

  constructor(what: string, cause: unknown) {
    super(`no reply to ${what}: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
    const code = (cause as { code?: unknown } | null)?.code;
    this.isSent = !NEVER_SENT.has(code);
    this.isTimeout = code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT';
  }
}

/** A reply had another status than the one that it had to have. */
export class UnexpectedStatusError extends Error {
  override readonly name = 'UnexpectedStatusError';
  readonly status: number;

  constructor(expected: number, { status, text }: Reply<unknown>) {
    super(`expected status ${expected}, got ${status}: ${text.slice(0, TEXT_QUOTED_MAX)}`);
    this.status = status;
  }
}

/** The server answered what its OpenAPI document does not describe. */
export class UndescribedAnswerError extends Error {
  override readonly name = 'UndescribedAnswerError';

  constructor(method: string, path: string, { status, text }: Reply<unknown>, problem: string) {
    super(`${method} ${path} answered ${status} ${text.slice(0, TEXT_QUOTED_MAX)}: ${problem}`);
  }
}

/** Failures of the connection attempt itself. Every other failure leaves the outcome open. */
const NEVER_SENT: ReadonlySet<unknown> = new Set(['ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT']);

const CONNECTIONS_DEFAULT = 16;
const TIMEOUT_MS_DEFAULT = 150_000;
/** How much of a reply an error message quotes. */
const TEXT_QUOTED_MAX = 500;

/** Opens no connection before the first request. */
export function createClient(options: ClientOptions): Client {
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS_DEFAULT;
  const pool = new Pool(options.url, {
    connections: options.connections ?? CONNECTIONS_DEFAULT,
    pipelining: 1,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  });
  return clientOf(pool, options);
}

/**
 * The body of a reply that must have this status.
 * @throws UnexpectedStatusError with the body's text when the status is another one
 */
export function expectStatus<T>(reply: Reply<T>, status: number): T {
  if (reply.status !== status) throw new UnexpectedStatusError(status, reply);
  return reply.body;
}

function clientOf(pool: Pool, options: ClientOptions): Client {
  const { prefix = '/api/v1', apiKey, tenant, isChecked = true } = options;
  const common = {
    ...(apiKey == null ? {} : { 'x-api-key': apiKey }),
    ...(tenant == null ? {} : { 'x-tenant-id': tenant }),
  };
  const send = async <T>(
    method: string,
    path: string,
    { body, raw, headers, signal }: RequestOptions = {},
  ): Promise<Reply<T>> => {
    const payload = raw ?? (body === undefined ? null : JSON.stringify(body));
    try {
      const reply = await pool.request({
        method: method as Dispatcher.HttpMethod,
        path: prefix + path,
        headers: {
          ...common,
          ...(payload === null ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        body: payload,
        ...(signal === undefined ? {} : { signal }),
      });
      const text = await reply.body.text();
      return { status: reply.statusCode, headers: reply.headers, text, body: parse(text) as T };
    } catch (error) {
      if (error instanceof errors.InvalidArgumentError) throw error;
      throw new NoReplyError(`${method} ${path}`, error);
    }
  };
  const request = async <T>(
    method: string,
    path: string,
    given?: RequestOptions,
  ): Promise<Reply<T>> => {
    const reply = await send<T>(method, path, given);
    const problem = isChecked ? describeAnswer(method, path, reply) : undefined;
    if (problem !== undefined) throw new UndescribedAnswerError(method, path, reply, problem);
    return reply;
  };
  const others = (changes: Partial<ClientOptions>) => clientOf(pool, { ...options, ...changes });
  return { ...requestsBy(request), with: others, close: () => pool.destroy() };
}

/** The members of a client that make requests, all of them in this way. */
export const requestsBy = (request: Client['request']): Omit<Client, 'with' | 'close'> => ({
  request,
  get: (path) => request('GET', path),
  post: (path, body, signal) =>
    request('POST', path, { body, ...(signal === undefined ? {} : { signal }) }),
  put: (path, body) => request('PUT', path, { body }),
  patch: (path, body) => request('PATCH', path, { body }),
  delete: (path) => request('DELETE', path),
});

function parse(text: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // Metrics and the like are no JSON; the caller has the text.
    return undefined;
  }
}
