/** The server on uWebSockets.js, whose request object is valid only within the callback: everything is copied. */

import type {
  us_listen_socket as ListenSocket,
  TemplatedApp,
  HttpRequest as UwsRequest,
  HttpResponse as UwsResponse,
} from 'uWebSockets.js';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import type { EngineError } from '../base/errors.js';
import { LIMITS } from '../base/limits.js';
import { addressKey } from './address-census.js';
import type { Connections, SpareConnection } from './connections.js';
import { unusable } from './free-port.js';
import { RequestHead } from './request-head.js';
import type { HttpHandler, HttpServer, HttpServerOptions } from './server.js';
import { Transport } from './transport.js';
import { UwsExchange } from './uws-exchange.js';

/** The type file omits the form with both a host and options. */
interface UwsApp extends Pick<TemplatedApp, 'any' | 'close' | 'filter'> {
  listen(
    host: string,
    port: number,
    options: number,
    listening: (socket: ListenSocket | false) => void,
  ): UwsApp;
}

export interface Uws {
  App(): UwsApp;
  _cfg(option: string): void;
  us_socket_local_port(socket: ListenSocket): number;
  us_listen_socket_close(socket: ListenSocket): void;
  readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number;
}

const HEAD_BYTES_ENV = 'UWS_HTTP_MAX_HEADERS_SIZE';

/** Loads the native file directly: the image contains no other file, and the entry adds nothing that is used. */
export function loadUws(): { ok: true; uws: Uws } | { ok: false; cause: unknown } {
  if (!isMainThread) {
    return { ok: false, cause: new Error('uWebSockets.js runs on the main thread only') };
  }
  const file = `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`;
  // Read once, while the file is loaded. The transport enforces the exact limit; this stops headers far beyond it.
  process.env[HEAD_BYTES_ENV] = String(LIMITS.headerBytesMax * 2);
  try {
    const require = createRequire(import.meta.url);
    const folder = dirname(require.resolve('uWebSockets.js'));
    return { ok: true, uws: require(join(folder, file)) as Uws };
  } catch (cause) {
    return { ok: false, cause };
  } finally {
    delete process.env[HEAD_BYTES_ENV];
  }
}

/** Rejects with a `ConfigError` if the address cannot be bound. */
export async function startUwsServer(
  uws: Uws,
  options: HttpServerOptions,
  handler: HttpHandler,
): Promise<HttpServer> {
  const transport = new Transport(options, handler);
  // Omits the header with the server's name and version.
  uws._cfg('silent');
  const app = uws.App();
  let port = 0;
  const spares = boundConnections(app, options, () => port);
  app.any('/*', (res, req) => serve(transport, spares, res, req));
  const socket = await listen(uws, app, options);
  if (socket === undefined) {
    transport.close();
    // The library gives no reason; usually another process has the port.
    throw unusable(options.host, options.port, { code: 'EADDRINUSE' });
  }
  port = uws.us_socket_local_port(socket);
  return transport.serverOn(port, {
    stopListening: () => uws.us_listen_socket_close(socket),
    close: () => void app.close(),
  });
}

function serve(
  transport: Transport,
  spares: UwsSpares | undefined,
  res: UwsResponse,
  req: UwsRequest,
): void {
  const matched = spares?.match(res, req);
  if (matched === 'closed') return;
  const head = headOf(req);
  head.peer = () => transport.clientOf(head, Buffer.from(res.getRemoteAddressAsText()).toString());
  const exchange = new UwsExchange(transport, head, res);
  res.onAborted(() => exchange.lose());
  if (matched !== undefined) {
    // Only after the callback it is known whether the connection is a spare one.
    setImmediate(() => {
      exchange.unplaced = matched.spare?.refusal;
      if (!exchange.aborted) transport.begin(head, exchange, true);
    });
    return;
  }
  const reader = transport.begin(head, exchange, true);
  if (reader === undefined) return;
  res.onData((chunk, isLast) => {
    if (isLast && exchange.isLast) exchange.takeLast(reader, Buffer.from(chunk));
    else reader.push(Buffer.from(chunk), isLast);
  });
}

function headOf(req: UwsRequest): RequestHead {
  // Undefined without a query, contrary to the types.
  const query: string | undefined = req.getQuery();
  const head = new RequestHead(req.getCaseSensitiveMethod(), req.getUrl(), query ?? '');
  req.forEach((name, value) => {
    // The parser drops letters beyond ASCII: an empty rest would mean every tenant.
    if (value === '' && name === 'x-tenant-id') head.reject('header x-tenant-id is empty');
    else head.add(name, value);
  });
  return head;
}

function boundConnections(
  app: UwsApp,
  { connections, proxies }: HttpServerOptions,
  port: () => number,
): UwsSpares | undefined {
  if (connections === undefined) return undefined;
  const spares = new UwsSpares(connections);
  // biome-ignore lint/suspicious/useIterableCallbackReturn: it filters connections, not an array
  app.filter((res, change) => {
    if (Number(change) < 0) {
      spares.closed();
      return;
    }
    const address = addressOf(res);
    const isProxy = proxies?.has(Buffer.from(res.getRemoteAddressAsText()).toString()) ?? false;
    const refusal = connections.admitAnonymous(address, isProxy, port(), performance.now());
    if (refusal !== undefined) spares.hold(res, address, refusal);
  });
  return spares;
}

/** Without the exclusive flag two servers could share a port. */
function listen(uws: Uws, app: UwsApp, options: HttpServerOptions) {
  return new Promise<ListenSocket | undefined>((resolve) => {
    app.listen(options.host, options.port, uws.LIBUS_LISTEN_EXCLUSIVE_PORT, (socket) => {
      resolve(socket === false ? undefined : socket);
    });
  });
}

const addressOf = (res: UwsResponse): string => addressKey(Buffer.from(res.getRemoteAddress()));

/**
 * Finds requests on connections beyond the limits. The library does not report the connection of a request, but calls
 * the handlers registered when the connection was opened: when it closes before a request, and after a request
 * without a body.
 */
class UwsSpares {
  readonly #connections: Connections;
  /** Closing connections without a slot to release. */
  #placeless = 0;
  #matched: { spare: SpareConnection | undefined } | undefined;

  constructor(connections: Connections) {
    this.#connections = connections;
  }

  hold(res: UwsResponse, address: string, refusal: EngineError): void {
    const close = () => {
      this.#placeless += 1;
      res.close();
    };
    const { spare: spares } = this.#connections;
    const spare: SpareConnection = { address, refusal, close };
    const leave = () => {
      if (spares.letGo(spare)) this.#placeless += 1;
    };
    res.onAborted(leave);
    res.onData(() => {
      if (this.#matched !== undefined) this.#matched.spare = spare;
      leave();
    });
    spares.hold(spare);
  }

  /** A connection has closed; which one is unknown. */
  closed(): void {
    if (this.#placeless > 0) this.#placeless -= 1;
    else this.#connections.left();
  }

  /**
   * Called before any handler of the request is registered.
   *
   * @returns undefined: the connection has a slot; else an object whose `spare` is set by the next turn of the event
   * loop. With a body no handler would be called: the spare connections of the address are closed, possibly including
   * this one.
   */
  match(
    res: UwsResponse,
    req: UwsRequest,
  ): { readonly spare: SpareConnection | undefined } | 'closed' | undefined {
    const { spare: spares } = this.#connections;
    if (spares.count === 0) return undefined;
    const address = addressOf(res);
    if (spares.countOf(address) === 0) return undefined;
    if (req.getHeader('content-length') === '' && req.getHeader('transfer-encoding') === '') {
      this.#matched = { spare: undefined };
      return this.#matched;
    }
    spares.closeAll(address);
    return res.getRemoteAddress().byteLength === 0 ? 'closed' : undefined;
  }
}
