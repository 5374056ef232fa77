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
import { LIMITS } from '../base/limits.js';
import { unusable } from './free-port.js';
import { RequestHead } from './request-head.js';
import type { HttpHandler, HttpServer, HttpServerOptions } from './server.js';
import { Transport } from './transport.js';
import { UwsExchange } from './uws-exchange.js';
import { addressOf, UwsSpares } from './uws-spares.js';

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

/** Loads the native file itself: the image keeps no other one, and the entry adds nothing that is used. */
export function loadUws(): { ok: true; uws: Uws } | { ok: false; cause: unknown } {
  if (!isMainThread) {
    return { ok: false, cause: new Error('uWebSockets.js runs on the main thread only') };
  }
  const file = `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`;
  // Read once, while the file is loaded. The exact bound is ours; this stops what is far beyond it.
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

/** Serves on uWebSockets.js. Rejects with an `Error` if the address cannot be bound. */
export async function startUwsServer(
  uws: Uws,
  options: HttpServerOptions,
  handler: HttpHandler,
): Promise<HttpServer> {
  const transport = new Transport(options, handler);
  // Leaves out the header that names the server and its version.
  uws._cfg('silent');
  const app = uws.App();
  let port = 0;
  const spares = boundConnections(app, options, () => port);
  app.any('/*', (res, req) => serve(transport, spares, res, req));
  const socket = await listen(uws, app, options);
  if (socket === undefined) {
    transport.close();
    // The library gives no reason; nearly always another process listens there.
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
  const asked = spares?.asked(res, req);
  if (asked === 'closed') return;
  const head = headOf(req);
  head.peer = () => transport.clientOf(head, Buffer.from(res.getRemoteAddressAsText()).toString());
  const exchange = new UwsExchange(transport, head, res);
  res.onAborted(() => exchange.lose());
  if (asked !== undefined) {
    // Whether it came on a spare connection is known once the callback has returned.
    setImmediate(() => {
      exchange.unplaced = asked.spare?.refusal;
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
  // Undefined without a query, whatever the types say.
  const query: string | undefined = req.getQuery();
  const head = new RequestHead(req.getCaseSensitiveMethod(), req.getUrl(), query ?? '');
  req.forEach((name, value) => {
    // Its parser drops letters beyond ASCII: an empty rest would mean every tenant.
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
    const refusal = connections.admitUntold(address, isProxy, port(), performance.now());
    if (refusal !== undefined) spares.hold(res, address, refusal);
  });
  return spares;
}

/** Without the exclusive flag two servers could share a port, each with half of the clients. */
function listen(uws: Uws, app: UwsApp, options: HttpServerOptions) {
  return new Promise<ListenSocket | undefined>((resolve) => {
    app.listen(options.host, options.port, uws.LIBUS_LISTEN_EXCLUSIVE_PORT, (socket) => {
      resolve(socket === false ? undefined : socket);
    });
  });
}
