/**
 * The HTTP transport: requests and replies for the router, and the choice of the backend. Limits, CORS, request ids,
 * HEAD and aborted clients are handled the same on both. It has no knowledge of routes, tenants or keys.
 */

import { ConfigError } from '../base/config-error.js';
import type { EngineError } from '../base/errors.js';
import type { AddressRequests, Connections, TrustedProxies } from './connections.js';
import type { Exchange } from './exchange.js';
import type { HeaderList } from './reply.js';
import type { RequestHead } from './request-head.js';
import { startNodeServer } from './server-node.js';
import { loadUws, startUwsServer } from './server-uws.js';

export type HttpRequest = Readonly<
  Pick<
    RequestHead,
    | 'method'
    | 'path'
    | 'query'
    | 'header'
    | 'allHeaders'
    | 'requestId'
    | 'peer'
    | 'body'
    | 'forgetBody'
  >
>;

/** A complete reply. `content-length`, `x-request-id` and the CORS headers are added to it. */
export interface HttpReply {
  readonly status: number;
  readonly body: string | Buffer | undefined;
  /** Default `application/json`, sent only with a body. */
  readonly contentType?: string;
  readonly headers?: HeaderList;
}

export interface HttpStreamHead extends Omit<HttpReply, 'body'> {
  readonly contentType: string;
}

/**
 * A chunked body; its head is sent with the first chunk. Chunks may be buffered, except those of a
 * `text/event-stream`: each must consist of whole lines, since comment lines may be inserted between two of them.
 */
export interface HttpBodyStream {
  /** False: wait for `onDrain` before writing more. The chunk is sent nevertheless. */
  write(chunk: string | Buffer): boolean;
  /** One listener, called each time the client has caught up after `write` returned false. */
  onDrain(listener: () => void): void;
  end(): void;
}

export type HttpExchange = Pick<Exchange, 'aborted' | 'onAbort' | 'reply' | 'stream'>;

export interface AnswerHooks {
  delayMs(status: number): number;
  /** Called after the reply, or after the head of a stream, whose body may last for hours. */
  answered(head: Pick<HttpReply, 'status' | 'headers'>): void;
}

export type HandledExchange = HttpExchange &
  Pick<Exchange, 'follow' | 'addHeaders' | 'onEnd' | 'end'>;

/** Called once per request, synchronously with its arrival when it has no body. */
export type HttpHandler = (request: HttpRequest, exchange: HandledExchange) => void;

export interface HttpLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface BodyLimits {
  /** For any request; a longer body gets a 413. */
  readonly maxBodyBytes: number;
  /** Undefined: `maxBodyBytes`. Called only beyond `BODY_BYTES_ANYWHERE`, or for an unknown length. */
  readonly bodyBytesOf?: (method: string, path: string) => number | undefined;
}

export interface HttpServerOptions extends BodyLimits {
  readonly host: string;
  /** 0 lets the system choose; see `HttpServer.port`. */
  readonly port: number;
  /** Target, header names and values together; more gets a 431. */
  readonly maxHeaderBytes: number;
  /** Memory of all incomplete bodies; beyond it 503. Default 48 MiB. */
  readonly maxBufferedBytes?: number;
  /** Refuses a large body before it arrives. @param bytes of this body and all incomplete ones */
  readonly refuseBody?: (bytes: number) => EngineError | undefined;
  /** Answered beyond the limits of connections and requests, when requested without a body. */
  readonly probePaths?: ReadonlySet<string>;
  readonly connections?: Connections;
  readonly requests?: AddressRequests;
  /** Proxies whose `x-forwarded-for` counts; absent: none. */
  readonly proxies?: TrustedProxies;
  /** Origins that may read replies, compared exactly; `*` is any; none = no cross-origin use. */
  readonly corsOrigins: readonly string[];
  /** Makes a UUID v4 for a request that brings no usable id. */
  readonly newRequestId: () => string;
  /**
   * A body without progress for so long, or of more than a minute in all, gets a 408, and its connection is closed.
   * uWebSockets.js closes, without an answer, below 16 KB/s over some ten seconds.
   */
  readonly bodyIdleTimeoutMs: number;
  readonly log: HttpLog;
}

export interface HttpServer {
  readonly port: number;
  /** Accepts no new connections; each further reply closes its connection. Idempotent. */
  stopListening(): void;
  /** Closes all connections, which aborts open exchanges. Idempotent. */
  close(): Promise<void>;
}

export type HttpBackend = 'auto' | 'uws' | 'node';

/**
 * Binds the address and serves it until `close()`. `auto` uses uWebSockets.js if its native file loads, else
 * node:http. Rejects with a `ConfigError` when the address cannot be bound, or when `uws` was required and does not
 * load. `uws` must be called on the main thread.
 */
export function startHttpServer(
  backend: HttpBackend,
  options: HttpServerOptions,
  handler: HttpHandler,
): Promise<HttpServer> {
  if (backend === 'node') {
    options.log.info({}, 'serving with node:http');
    return startNodeServer(options, handler);
  }
  const loaded = loadUws();
  if (loaded.ok) {
    options.log.info({}, 'serving with uWebSockets.js');
    return startUwsServer(loaded.uws, options, handler);
  }
  if (backend === 'uws') {
    return Promise.reject(
      new ConfigError(
        'ENGINE_HTTP_BACKEND=uws: the native part of uWebSockets.js does not load on this system; ' +
          'set it to auto or node',
        { cause: loaded.cause },
      ),
    );
  }
  options.log.info(
    { reason: reasonOf(loaded.cause) },
    'uWebSockets.js does not load here (it wants glibc 2.38 or later): serving with node:http',
  );
  return startNodeServer(options, handler);
}

function reasonOf(cause: unknown): string {
  const text = cause instanceof Error ? cause.message : String(cause);
  return text.split('\n', 1)[0] ?? text;
}
