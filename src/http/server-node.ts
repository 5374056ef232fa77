/** The server on node:http, for platforms where uWebSockets.js does not load. It behaves like that one. */

import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { unusable } from './free-port.js';
import { IDLE_TICK_MS, NodeConnection, NodeRequest, NodeResponse } from './node-connection.js';
import { METHOD_UNKNOWN } from './request-head.js';
import type { HttpHandler, HttpServer, HttpServerOptions } from './server.js';
import { Transport } from './transport.js';

/** Closes a connection without complete headers after the same time as uWebSockets.js. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIME_MAX_MS = 60_000;
const TIMEOUT_CHECK_MS = 2_000;

type NodeServer = http.Server<typeof NodeRequest, typeof NodeResponse>;
type ConnectionOf = (socket: Duplex) => NodeConnection;

/** Rejects with a `ConfigError` if the address cannot be bound. */
export async function startNodeServer(
  options: HttpServerOptions,
  handler: HttpHandler,
): Promise<HttpServer> {
  const transport = new Transport(options, handler);
  const server = http.createServer({
    IncomingMessage: NodeRequest,
    ServerResponse: NodeResponse,
    // The transport enforces the exact limit; this only stops headers far beyond it.
    maxHeaderSize: options.maxHeaderBytes * 2,
    requireHostHeader: false,
    // The connections close themselves: Node would set a timer twice for each request.
    keepAliveTimeout: 0,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIME_MAX_MS,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
  });
  const connections = new Map<Duplex, NodeConnection>();
  const ticks = setInterval(() => {
    for (const connection of connections.values()) connection.tick();
  }, IDLE_TICK_MS).unref();
  const connectionOf: ConnectionOf = (socket) => {
    const known = connections.get(socket);
    if (known !== undefined) return known;
    const connection = new NodeConnection(transport, socket);
    connections.set(socket, connection);
    socket.once('close', () => connections.delete(socket));
    return connection;
  };
  boundConnections(server, options, connectionOf);
  serveWith(server, connectionOf);
  try {
    server.listen(options.port, options.host);
    await once(server, 'listening');
  } catch (cause) {
    clearInterval(ticks);
    transport.close();
    throw unusable(options.host, options.port, cause);
  }
  const closed = once(server, 'close');
  return transport.serverOn((server.address() as AddressInfo).port, {
    stopListening: () => server.close(),
    close: async () => {
      clearInterval(ticks);
      server.closeAllConnections();
      await closed;
    },
  });
}

function serveWith(server: NodeServer, connectionOf: ConnectionOf): void {
  for (const [event, expectsContinue] of [
    ['request', false],
    ['checkExpectation', false],
    ['checkContinue', true],
  ] as const) {
    server.on(event, (req, res) => connectionOf(req.socket).serve(req, res, expectsContinue));
  }
  server.on('connect', (req) => connectionOf(req.socket).refuseRest(METHOD_UNKNOWN));
  server.on('clientError', (error, socket) => connectionOf(socket).failed(error));
}

/** Replaces Node's listener, which is then called for admitted connections. */
function boundConnections(
  server: NodeServer,
  { connections, proxies }: HttpServerOptions,
  connectionOf: ConnectionOf,
): void {
  if (connections === undefined) return;
  const [accept] = server.listeners('connection');
  server.removeAllListeners('connection');
  server.on('connection', (socket) => {
    const address = socket.remoteAddress ?? '';
    // Connections of a proxy belong to many clients.
    const bounded = proxies?.has(address) ? undefined : address;
    const place = connections.admit(bounded, performance.now());
    if (typeof place === 'function') socket.once('close', place);
    else {
      const connection = connectionOf(socket);
      const spare = { address, refusal: place, close: () => connection.end(place) };
      connection.spare = spare;
      connections.spare.hold(spare);
      socket.once('close', () => connections.spare.letGo(spare));
    }
    accept?.call(server, socket);
  });
}
