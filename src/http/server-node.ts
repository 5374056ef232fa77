/**
 * The transport on node:http, for platforms where uWebSockets.js does not load. It answers as the
 * other backend does, so Node's own refusals, which have no JSON body, are replaced by ours.
 */

import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { EngineError, invalid } from '../base/errors.js';
import { LIMITS } from '../base/limits.js';
import { Exchange } from './exchange.js';
import { unusable } from './free-port.js';
import { type HeaderList, JSON_TYPE, type Refusal, refusalReply, typeHeaders } from './reply.js';
import { headersTooLarge, METHOD_UNKNOWN, RequestHead } from './request-head.js';
import type {
  HttpHandler,
  HttpReply,
  HttpServer,
  HttpServerOptions,
  HttpStreamHead,
} from './server.js';
import type { SpareConnection } from './spare-connections.js';
import { Transport } from './transport.js';

/** A connection whose headers do not arrive lives as long as with uWebSockets.js. */
const HEADERS_TIMEOUT_MS = 10_000;
/**
 * Between two requests longer than proxies keep idle connections (nginx 60 s): who closes second never sends
 * a request into a connection that is being closed.
 */
const KEEP_ALIVE_MS = 75_000;
const REQUEST_TIME_MAX_MS = 60_000;
const TIMEOUT_CHECK_MS = 2_000;

/** What is thrown away is read at 13 MB/s at most: each piece is memory, and work for this thread. */
const DISCARDED_AT_ONCE = 256 * 1024;
const DISCARD_PAUSE_MS = 20;

interface ConnectionState {
  /** Requests that have no whole answer. */
  open: number;
  /** Nothing more is served: the client is told that the connection closes. */
  isRefused: boolean;
  /** Whose body has not been taken whole; requests behind it wait, lest it be refused. */
  reading: { readonly req: http.IncomingMessage; readonly exchange: NodeExchange } | undefined;
  readonly behind: (() => void)[];
  /** Told once the requests before it are answered: what came behind them is no request. */
  last: Refusal | undefined;
  /** Beyond the bounds. */
  spare: SpareConnection | undefined;
}

const newState = (): ConnectionState => ({
  open: 0,
  isRefused: false,
  reading: undefined,
  behind: [],
  last: undefined,
  spare: undefined,
});

const TOO_MANY_PIPELINED = new EngineError(
  'ENG_TOO_MANY_CONNECTIONS',
  `too many requests on one connection: ${LIMITS.pipelinedRequestsMax} wait for their answers`,
  1_000,
);

const MALFORMED = invalid('malformed HTTP request');
const NON_ASCII = /[\u0080-\u00ff]/;

/** Serves on node:http. Rejects with an `Error` if the address cannot be bound. */
export async function startNodeServer(
  options: HttpServerOptions,
  handler: HttpHandler,
): Promise<HttpServer> {
  const transport = new Transport(options, handler);
  const server = http.createServer({
    // The exact bound is ours; Node only has to stop what is far beyond it.
    maxHeaderSize: options.maxHeaderBytes * 2,
    requireHostHeader: false,
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIME_MAX_MS,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
  });
  const states = new WeakMap<Duplex, ConnectionState>();
  const stateOf = (socket: Duplex) => {
    let state = states.get(socket);
    if (state === undefined) {
      state = newState();
      states.set(socket, state);
    }
    return state;
  };
  const serve = (expectsContinue: boolean) => {
    return (req: http.IncomingMessage, res: http.ServerResponse) => {
      const state = stateOf(req.socket);
      if (state.isRefused) return;
      state.open += 1;
      res.on('close', () => {
        state.open -= 1;
        if (state.open === 0 && state.last !== undefined) {
          refuseUnparsed(options, state.last, req.socket);
        }
      });
      if (state.reading === undefined) serveOne(transport, req, res, state, expectsContinue);
      else state.behind.push(() => serveOne(transport, req, res, state, expectsContinue));
    };
  };
  boundConnections(server, options, stateOf);
  server.on('request', serve(false));
  server.on('checkExpectation', serve(false));
  server.on('checkContinue', serve(true));
  server.on('connect', (req, socket) => {
    refuseRest(options, stateOf(req.socket), METHOD_UNKNOWN, socket);
  });
  server.on('clientError', (err, socket) => {
    const refusal = unparsedRefusal(err);
    if (refusal === undefined || !socket.writable) socket.destroy();
    else refuseRest(options, stateOf(socket), refusal, socket);
  });

  try {
    await listen(server, options);
  } catch (cause) {
    transport.close();
    throw unusable(options.host, options.port, cause);
  }
  const closed = new Promise<void>((resolve) => server.once('close', resolve));
  let isListening = true;
  const stopListening = () => {
    if (!isListening) return;
    isListening = false;
    transport.stop();
    server.close();
  };
  return {
    port: (server.address() as AddressInfo).port,
    stopListening,
    close: () => {
      stopListening();
      transport.close();
      server.closeAllConnections();
      return closed;
    },
  };
}

function listen(server: http.Server, options: HttpServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, () => {
      server.removeListener('error', reject);
      resolve();
    });
  });
}

function serveOne(
  transport: Transport,
  req: http.IncomingMessage,
  res: http.ServerResponse,
  state: ConnectionState,
  expectsContinue: boolean,
): void {
  const target = req.url ?? '';
  const mark = target.indexOf('?');
  const head = new RequestHead(
    req.method ?? '',
    mark < 0 ? target : target.slice(0, mark),
    mark < 0 ? '' : target.slice(mark + 1),
  );
  head.peer = () => transport.clientOf(head, req.socket.remoteAddress ?? '');
  const raw = req.rawHeaders;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    head.add((raw[i] ?? '').toLowerCase(), asUtf8(raw[i + 1] ?? ''));
  }
  if (req.httpVersionMajor !== 1) head.reject(`HTTP/${req.httpVersion} is not served`);
  else if (req.httpVersionMinor === 0 && req.headers['transfer-encoding'] !== undefined) {
    head.reject('HTTP/1.0 has no transfer-encoding');
  }
  const exchange = new NodeExchange(transport, head, res, state);
  if (state.spare !== undefined) {
    exchange.unplaced = state.spare.refusal;
    transport.options.connections?.spare.letGo(state.spare);
  }
  res.on('close', () => exchange.abort());
  if (state.open > LIMITS.pipelinedRequestsMax) {
    head.settle(transport.options, transport.options.newRequestId);
    exchange.refuse(TOO_MANY_PIPELINED);
    return;
  }
  const reader = transport.begin(head, exchange, false, expectsContinue);
  if (reader === undefined) return;
  if (expectsContinue) res.writeContinue();
  state.reading = { req, exchange };
  let discarded = 0;
  const take = (chunk: Buffer, isLast: boolean) => {
    reader.push(chunk, isLast);
    if (reader.isOver) serveBehind(state);
    if (!reader.isDiscarding) return;
    discarded += chunk.length;
    if (discarded < DISCARDED_AT_ONCE) return;
    discarded = 0;
    req.pause();
    setTimeout(() => req.resume(), DISCARD_PAUSE_MS).unref();
  };
  req.on('data', (chunk: Buffer) => take(chunk, false));
  req.on('end', () => take(EMPTY, true));
}

function serveBehind(state: ConnectionState): void {
  state.reading = undefined;
  while (state.reading === undefined && !state.isRefused) {
    const next = state.behind.shift();
    if (next === undefined) return;
    next();
  }
}

const EMPTY = Buffer.alloc(0);

/** Node gives header values as latin1; clients send UTF-8, and the other backend decodes that. */
function asUtf8(value: string): string {
  return NON_ASCII.test(value) ? Buffer.from(value, 'latin1').toString('utf8') : value;
}

/** In place of Node's listener: it is called for the connections that are served. */
function boundConnections(
  server: http.Server,
  options: HttpServerOptions,
  stateOf: (socket: Duplex) => ConnectionState,
) {
  const { connections, proxies } = options;
  if (connections === undefined) return;
  const [accept] = server.listeners('connection');
  server.removeAllListeners('connection');
  server.on('connection', (socket) => {
    const address = socket.remoteAddress ?? '';
    // A proxy's connections are those of all who come through it.
    const bounded = proxies?.has(address) ? undefined : address;
    const place = connections.admit(bounded, performance.now());
    if (typeof place === 'function') socket.once('close', place);
    else {
      const close = () => refuseUnparsed(options, place, socket);
      const spare = { address, refusal: place, close };
      stateOf(socket).spare = spare;
      connections.spare.hold(spare);
      socket.once('close', () => connections.spare.letGo(spare));
    }
    accept?.call(server, socket);
  });
}

/**
 * What came last on a connection is no request, and nothing behind it is one. That is the answer to the
 * request within which it came, else one of its own behind those that are in work.
 */
function refuseRest(
  options: HttpServerOptions,
  state: ConnectionState,
  refusal: Refusal,
  socket: Duplex,
): void {
  const { reading } = state;
  if (state.isRefused && state.open > 0) return;
  if (reading !== undefined && !reading.req.complete) {
    reading.exchange.bodyReader?.cancel();
    reading.exchange.refuse(refusal);
    return;
  }
  if (state.open === 0) {
    if (state.isRefused) socket.destroy();
    else refuseUnparsed(options, refusal, socket);
  } else {
    state.last = refusal;
  }
  state.isRefused = state.behind.length === 0;
}

/** Answers, in place of Node's reply without a body, what its parser refused. */
function refuseUnparsed(options: HttpServerOptions, refusal: Refusal, socket: Duplex): void {
  socket.end(refusalText(refusal, options.newRequestId()), () => socket.destroy());
}

/** A whole answer, for a connection that has no request to answer. */
function refusalText(refusal: Refusal, requestId: string): string {
  const { status, body = '', headers = [] } = refusalReply(refusal);
  return [
    `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}`,
    `x-request-id: ${requestId}`,
    ...[...headers, ...typeHeaders(JSON_TYPE)].map(([name, value]) => `${name}: ${value}`),
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
    '',
    body,
  ].join('\r\n');
}

/** Undefined if there is nobody to tell: the connection is broken, or the client has ended it. */
function unparsedRefusal(err: Error): Refusal | undefined {
  const code = 'code' in err ? String(err.code) : '';
  if (code === 'HPE_HEADER_OVERFLOW') return headersTooLarge('far beyond the limit');
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return { status: 408, message: 'the request came too slowly' };
  }
  if (!code.startsWith('HPE_') || code === 'HPE_INVALID_EOF_STATE') return undefined;
  return MALFORMED;
}

class NodeExchange extends Exchange {
  readonly #res: http.ServerResponse;
  readonly #state: ConnectionState;

  constructor(
    transport: Transport,
    head: RequestHead,
    res: http.ServerResponse,
    state: ConnectionState,
  ) {
    super(transport, head);
    this.#res = res;
    this.#state = state;
  }

  protected sendReply(
    reply: HttpReply,
    contentType: string | undefined,
    headers: HeaderList,
    mustClose: boolean,
  ): void {
    if (this.#res.headersSent) {
      this.#res.end();
      return;
    }
    this.#writeReplyHead(reply, contentType, headers, mustClose);
    this.#res.end(this.head.method === 'HEAD' ? undefined : reply.body);
  }

  protected override sendEarly(reply: HttpReply, contentType: string, headers: HeaderList): void {
    this.#writeReplyHead(reply, contentType, headers, true);
    // The length is told, so the client has a whole answer.
    this.#res.write(this.head.method === 'HEAD' ? '' : (reply.body ?? ''));
  }

  protected sendStreamHead(head: HttpStreamHead, isWhole: boolean, mustClose: boolean): void {
    const flat = this.#flatHeaders(head.contentType, head.headers ?? [], mustClose);
    this.#res.writeHead(head.status, flat);
    if (isWhole) {
      this.#res.end();
      return;
    }
    this.#res.on('drain', () => this.drained());
  }

  protected writeChunk(chunk: string | Buffer): boolean {
    return this.#res.write(chunk);
  }

  protected endStream(): void {
    this.#res.end();
  }

  protected destroy(): void {
    this.#res.destroy();
  }

  #writeReplyHead(
    { status, body }: HttpReply,
    contentType: string | undefined,
    headers: HeaderList,
    mustClose: boolean,
  ): void {
    if (this.isRefused) this.#state.isRefused = true;
    const flat = this.#flatHeaders(contentType, headers, mustClose);
    if (status !== 204 && status !== 304) {
      flat.push('content-length', String(body === undefined ? 0 : Buffer.byteLength(body)));
    }
    this.#res.writeHead(status, flat);
  }

  #flatHeaders(contentType: string | undefined, headers: HeaderList, mustClose: boolean): string[] {
    const flat = ['x-request-id', this.head.requestId];
    for (const [name, value] of typeHeaders(contentType)) flat.push(name, value);
    for (const [name, value] of headers) flat.push(name, value);
    for (const [name, value] of this.corsHeaders) flat.push(name, value);
    if (mustClose) flat.push('connection', 'close');
    return flat;
  }
}
