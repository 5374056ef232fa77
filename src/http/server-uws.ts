/**
 * The transport on uWebSockets.js, and the only file that touches it. Its request object dies with
 * the callback, its response object with the client: the first is copied at once, the second is
 * reached only through an `Exchange` that has not been aborted.
 */

import type {
  us_listen_socket as ListenSocket,
  TemplatedApp,
  HttpRequest as UwsRequest,
  HttpResponse as UwsResponse,
} from 'uWebSockets.js';
import { STATUS_CODES } from 'node:http';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import type { EngineError } from '../base/errors.js';
import { LIMITS } from '../base/limits.js';
import { addressKey } from './address-census.js';
import type { Connections } from './connections.js';
import { Exchange } from './exchange.js';
import { unusable } from './free-port.js';
import { type HeaderList, typeHeaders } from './reply.js';
import type { BodyReader } from './request-body.js';
import { RequestHead } from './request-head.js';
import type {
  HttpHandler,
  HttpReply,
  HttpServer,
  HttpServerOptions,
  HttpStreamHead,
} from './server.js';
import type { SpareConnection } from './spare-connections.js';
import { Transport } from './transport.js';

/** The type file omits the form with both a host and options. */
interface UwsApp extends Pick<TemplatedApp, 'any' | 'close' | 'filter'> {
  listen(
    host: string,
    port: number,
    options: number,
    listening: (socket: ListenSocket | false) => void,
  ): UwsApp;
}

/** The native module, as far as it is used. */
export interface Uws {
  App(): UwsApp;
  _cfg(option: string): void;
  us_socket_local_port(socket: ListenSocket): number;
  us_listen_socket_close(socket: ListenSocket): void;
  readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number;
}

/** A write of more than this overflows the cork, and only then tells whether the socket is full. */
const CORK_BYTES = 16 * 1024;
/**
 * Streams are written in pieces of this size: large enough to tell, and small enough for what a full
 * socket refused to be gone once it reports room again, which it does long before it is empty.
 */
const PIECE_BYTES = 32 * 1024;
const HEAD_BYTES_ENV = 'UWS_HTTP_MAX_HEADERS_SIZE';
const EVENT_STREAM = 'text/event-stream';
/** How much may go out in small events before one is filled up in order to see if the client reads. */
const UNMEASURED_BYTES_MAX = 64 * 1024;
/** A comment to the reader of an event stream. */
const EVENT_FILLER = Buffer.from(`:${' '.repeat(CORK_BYTES)}\n`);

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
    return {
      ok: true,
      uws: require(join(dirname(require.resolve('uWebSockets.js')), file)) as Uws,
    };
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
  app.any('/*', (res, req) => {
    const asked = spares?.asked(res, req);
    if (asked === 'closed') return;
    // Undefined without a query, whatever the types say.
    const query: string | undefined = req.getQuery();
    const head = new RequestHead(req.getCaseSensitiveMethod(), req.getUrl(), query ?? '');
    req.forEach((name, value) => {
      // Of a value whose letters are all beyond ASCII its parser leaves nothing: it would mean every tenant.
      if (value === '' && name === 'x-tenant-id') head.reject('header x-tenant-id is empty');
      else head.add(name, value);
    });
    head.peer = () =>
      transport.clientOf(head, Buffer.from(res.getRemoteAddressAsText()).toString());
    const exchange = new UwsExchange(transport, head, res);
    res.onAborted(() => exchange.lose());
    if (asked !== undefined) {
      // Whether it came on a spare connection is told behind it.
      setImmediate(() => {
        exchange.unplaced = asked.spare?.refusal;
        if (!exchange.aborted) transport.begin(head, exchange, true);
      });
      return;
    }
    const reader = transport.begin(head, exchange, true);
    if (reader !== undefined) {
      res.onData((chunk, isLast) => {
        if (isLast && exchange.isLast) exchange.takeLast(reader, Buffer.from(chunk));
        else reader.push(Buffer.from(chunk), isLast);
      });
    }
  });

  const socket = await listen(uws, app, options);
  if (socket === undefined) {
    transport.close();
    // The library does not say why; nearly always somebody else listens there.
    throw unusable(options.host, options.port, { code: 'EADDRINUSE' });
  }
  port = uws.us_socket_local_port(socket);
  let state: 'open' | 'stopping' | 'closed' = 'open';
  return {
    port,
    stopListening: () => {
      if (state !== 'open') return;
      state = 'stopping';
      transport.stop();
      uws.us_listen_socket_close(socket);
    },
    close: async () => {
      if (state === 'closed') return;
      state = 'closed';
      transport.close();
      app.close();
    },
  };
}

/** The library does not tell the address of a connection that closes. */
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

const addressOf = (res: UwsResponse): string => addressKey(Buffer.from(res.getRemoteAddress()));

/**
 * Which requests come on connections beyond the bounds. The library does not tell on which connection a request
 * comes, but it calls what was set when the connection was opened: when it closes, unless a request has come, and
 * behind a request without a body.
 */
class UwsSpares {
  readonly #connections: Connections;
  /** Of those that have closed, or will: they had no place to give back. */
  #placeless = 0;
  #asked: { spare: SpareConnection | undefined } | undefined;

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
      if (this.#asked !== undefined) this.#asked.spare = spare;
      leave();
    });
    spares.hold(spare);
  }

  /** Some connection has closed, nobody knows which. */
  closed(): void {
    if (this.#placeless > 0) this.#placeless -= 1;
    else this.#connections.left();
  }

  /**
   * To be asked before anything is set for the request.
   *
   * @returns undefined: it has a place; else what tells so in a later turn of the event loop. With a body nothing
   *   would: the spare connections of its address are closed, and so perhaps this one.
   */
  asked(
    res: UwsResponse,
    req: UwsRequest,
  ): { readonly spare: SpareConnection | undefined } | 'closed' | undefined {
    const { spare: spares } = this.#connections;
    if (spares.count === 0) return undefined;
    const address = addressOf(res);
    if (spares.countOf(address) === 0) return undefined;
    if (req.getHeader('content-length') === '' && req.getHeader('transfer-encoding') === '') {
      this.#asked = { spare: undefined };
      return this.#asked;
    }
    spares.closeAll(address);
    return res.getRemoteAddress().byteLength === 0 ? 'closed' : undefined;
  }
}

/** Without the exclusive flag two servers could share a port, each with half of the clients. */
function listen(uws: Uws, app: UwsApp, options: HttpServerOptions) {
  return new Promise<ListenSocket | undefined>((resolve) => {
    app.listen(options.host, options.port, uws.LIBUS_LISTEN_EXCLUSIVE_PORT, (socket) => {
      resolve(socket === false ? undefined : socket);
    });
  });
}

class UwsExchange extends Exchange {
  readonly #res: UwsResponse;
  /** What of a stream waits for company or for room. */
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #unmeasuredBytes = 0;
  #isEventStream = false;
  #isFull = false;
  #isWatching = false;
  #isLost = false;

  constructor(transport: Transport, head: RequestHead, res: UwsResponse) {
    super(transport, head);
    this.#res = res;
  }

  /**
   * Of chunks the parser takes nearly everything, and it takes trailers for a request. So what comes behind
   * a chunked body is never served: the connection closes with its answer.
   */
  get isLast(): boolean {
    return this.head.contentLength === undefined;
  }

  /** The body is taken in a later turn of the event loop: not at all if more came with its end. */
  takeLast(reader: BodyReader, lent: Buffer): void {
    const chunk = Buffer.from(lent);
    setImmediate(() => reader.push(chunk, true));
  }

  protected override get mustClose(): boolean {
    return this.isLast || super.mustClose;
  }

  /** The connection is gone. */
  lose(): void {
    this.#isLost = true;
    this.abort();
  }

  /**
   * A refusal leaves in a later turn of the event loop: until then its request is in work, behind which
   * uWebSockets.js serves nothing. Behind an answer it serves all that came in the same packet.
   */
  protected sendReply(
    reply: HttpReply,
    contentType: string | undefined,
    headers: HeaderList,
    mustClose: boolean,
  ): void {
    if (!this.isRefused) {
      this.#send(reply, contentType, headers, mustClose);
      return;
    }
    setImmediate(() => {
      if (!this.#isLost) this.#send(reply, contentType, headers, mustClose);
    });
  }

  #send(
    reply: HttpReply,
    contentType: string | undefined,
    headers: HeaderList,
    mustClose: boolean,
  ): void {
    const res = this.#res;
    const { status, body } = reply;
    res.cork(() => {
      this.#writeHead(status, contentType, headers);
      if (status === 204 || status === 304) {
        this.#endWithoutLength(mustClose);
      } else if (this.head.method === 'HEAD') {
        res.endWithoutBody(body === undefined ? 0 : Buffer.byteLength(body), mustClose);
      } else {
        res.end(body ?? '', mustClose);
      }
    });
  }

  /** Asked to close, the library wants a length. So the client is told to, and is cut off when it idles. */
  #endWithoutLength(mustClose: boolean): void {
    if (mustClose) this.#res.writeHeader('Connection', 'close');
    this.#res.endWithoutBody();
  }

  protected sendStreamHead(head: HttpStreamHead, isWhole: boolean, mustClose: boolean): void {
    const res = this.#res;
    this.#isEventStream = head.contentType.startsWith(EVENT_STREAM);
    res.cork(() => {
      this.#writeHead(head.status, head.contentType, head.headers ?? []);
      if (isWhole) this.#endWithoutLength(mustClose);
      else if (mustClose) res.writeHeader('Connection', 'close');
    });
  }

  protected writeChunk(chunk: string | Buffer): boolean {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (!this.#isFull) this.#flush();
    return !this.#isFull;
  }

  protected endStream(): void {
    const res = this.#res;
    res.cork(() => {
      for (const bytes of this.#waiting) res.write(bytes);
      // Asked to close here, uWebSockets.js would write a header into the middle of the body.
      res.end();
    });
  }

  protected destroy(): void {
    this.#res.close();
  }

  #writeHead(status: number, contentType: string | undefined, headers: HeaderList): void {
    let text = headText(status, contentType) + this.head.requestId;
    for (const [name, value] of headers) text += `\r\n${name}: ${value}`;
    for (const [name, value] of this.corsHeaders) text += `\r\n${name}: ${value}`;
    // Headers may follow the status in its text: one native call instead of one for each of them.
    this.#res.writeStatus(text);
  }

  /** Hands pieces to the socket until it is full, or too little waits for one. */
  #flush(): void {
    const bytesMin = this.#isEventStream ? 1 : PIECE_BYTES;
    while (!this.#isFull && this.#waitingBytes >= bytesMin) {
      if (!this.#write(this.#takePiece())) {
        this.#isFull = true;
        this.#watch();
      }
    }
  }

  #takePiece(): Buffer {
    const [first] = this.#waiting;
    const all =
      first !== undefined && this.#waiting.length === 1 ? first : Buffer.concat(this.#waiting);
    const piece = all.subarray(0, PIECE_BYTES);
    this.#waiting = all.length > PIECE_BYTES ? [all.subarray(PIECE_BYTES)] : [];
    this.#waitingBytes -= piece.length;
    return piece;
  }

  /** False if the socket did not take all of it at once. */
  #write(piece: Buffer): boolean {
    let bytes = piece;
    if (piece.length <= CORK_BYTES) {
      this.#unmeasuredBytes += piece.length;
      if (this.#unmeasuredBytes > UNMEASURED_BYTES_MAX) {
        this.#unmeasuredBytes = 0;
        bytes = Buffer.concat([piece, EVENT_FILLER]);
      }
    }
    let hasRoom = true;
    this.#res.cork(() => {
      hasRoom = this.#res.write(bytes);
    });
    return hasRoom;
  }

  /**
   * From its registration on, this handler alone is responsible for what the socket refused: an
   * empty cork makes uWebSockets.js send it, and a further event follows while some is left.
   */
  #watch(): void {
    if (this.#isWatching) return;
    this.#isWatching = true;
    this.#res.onWritable(() => {
      this.#res.cork(() => {});
      if (!this.#isFull) return true;
      this.#isFull = false;
      this.#flush();
      if (!this.#isFull) this.drained();
      return true;
    });
  }
}

/** Beginnings of heads by type and status: those of JSON and of replies without a body are all but a few. */
const HEADS = new Map<string | undefined, Map<number, string>>();

/** Up to the value of `x-request-id`, which comes last. */
function headText(status: number, contentType: string | undefined): string {
  let heads = HEADS.get(contentType);
  if (heads === undefined) {
    heads = new Map();
    HEADS.set(contentType, heads);
  }
  let head = heads.get(status);
  if (head === undefined) {
    head = newHead(status, contentType);
    heads.set(status, head);
  }
  return head;
}

function newHead(status: number, contentType: string | undefined): string {
  const fields = typeHeaders(contentType).map(([name, value]) => `\r\n${name}: ${value}`);
  return `${status} ${STATUS_CODES[status] ?? 'Unknown'}${fields.join('')}\r\nx-request-id: `;
}
