/**
 * One connection on node:http: its requests and replies, and responses to malformed requests. A body is taken from the
 * parser as it arrives, and a reply is one text: streams and lists of headers cost more than a small request itself.
 */

import { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { EngineError, invalid } from '../base/errors.js';
import { LIMITS } from '../base/limits.js';
import type { SpareConnection } from './connections.js';
import { Exchange } from './exchange.js';
import { headerText, headText, NO_HEADERS, type Refusal, refusalReply, typeOf } from './reply.js';
import { headersTooLarge, RequestHead } from './request-head.js';
import type { HttpReply, HttpStreamHead } from './server.js';
import type { Transport } from './transport.js';

/** Longer than proxies (nginx 60 s), so that none sends a request into a closing connection. */
const KEEP_ALIVE_MS = 75_000;
export const IDLE_TICK_MS = 5_000;
/** Limits reading a discarded body to 13 MB/s: each piece takes memory, and time of this thread. */
const DISCARDED_AT_ONCE = 256 * 1024;
const DISCARD_PAUSE_MS = 20;

const TOO_MANY_PIPELINED = new EngineError(
  'ENG_TOO_MANY_CONNECTIONS',
  `too many requests on one connection: ${LIMITS.pipelinedRequestsMax} wait for their answers`,
  1_000,
);

const MALFORMED = invalid('malformed HTTP request');
const NON_ASCII = /[\u0080-\u00ff]/;
const EMPTY = Buffer.alloc(0);

/** Gives its body to the connection, piece by piece, and is never read as a stream. */
export class NodeRequest extends IncomingMessage {
  /** Set for a request with a body. */
  taker: NodeConnection | undefined;

  /** Called by the parser. @returns false to pause reading */
  override push(chunk: Buffer | null): boolean {
    return this.taker?.take(chunk ?? EMPTY, chunk === null) ?? true;
  }

  /** Called by Node after the reply, to read and drop a body. */
  _dump(): void {}
}

Object.defineProperties(NodeRequest.prototype, {
  /** Node reads only one of them, and would make an object of all for each request. */
  headers: {
    get(this: NodeRequest) {
      const { rawHeaders: raw } = this;
      for (let at = 0; at < raw.length; at += 2) {
        if (raw[at]?.length === 6 && /^expect$/i.test(raw[at] ?? ''))
          return { expect: raw[at + 1] };
      }
      return {};
    },
  },
  /** Node keeps the request until this is true. */
  readableEnded: {
    get(this: NodeRequest) {
      return this.complete;
    },
  },
});

/** Its head is written by the exchange: `writeHead` would check and join each header again. */
export class NodeResponse extends ServerResponse<NodeRequest> {
  declare _header: string;
  /** Whether the connection closes after the response. */
  declare _last: boolean;
  owner: NodeConnection | undefined;
  exchange: NodeExchange | undefined;
}

/** A listener for all responses. */
function closed(this: NodeResponse): void {
  this.owner?.answered();
  this.exchange?.abort();
}

export class NodeConnection {
  spare: SpareConnection | undefined;
  readonly #transport: Transport;
  readonly #socket: Duplex;
  #open = 0;
  #idleMs = 0;
  /** No more requests are served: the client was informed that the connection closes. */
  #isRefused = false;
  /** The request whose body is incomplete. */
  #reading: NodeExchange | undefined;
  #discarded = 0;
  /** Sent after the responses to earlier requests: the data behind them is no request. */
  #last: Refusal | undefined;

  constructor(transport: Transport, socket: Duplex) {
    this.#transport = transport;
    this.#socket = socket;
  }

  serve(req: NodeRequest, res: NodeResponse, expectsContinue: boolean): void {
    if (this.#isRefused) return;
    this.#open += 1;
    this.#idleMs = 0;
    const { options } = this.#transport;
    const head = headOf(req);
    head.peer = () => this.#transport.clientOf(head, req.socket.remoteAddress ?? '');
    const exchange = new NodeExchange(this.#transport, head, res);
    res.owner = this;
    res.exchange = exchange;
    res.on('close', closed);
    if (this.spare !== undefined) {
      exchange.unplaced = this.spare.refusal;
      options.connections?.spare.letGo(this.spare);
    }
    if (this.#open > LIMITS.pipelinedRequestsMax) {
      head.settle(options, options.newRequestId);
      exchange.refuse(TOO_MANY_PIPELINED);
      return;
    }
    const reader = this.#transport.begin(head, exchange, false, expectsContinue);
    if (reader === undefined) return;
    if (expectsContinue) res.writeContinue();
    this.#reading = exchange;
    this.#discarded = 0;
    req.taker = this;
  }

  /** Takes a piece of the body. @returns false to pause reading */
  take(chunk: Buffer, isLast: boolean): boolean {
    const reader = this.#reading?.bodyReader;
    if (reader === undefined) return true;
    reader.push(chunk, isLast);
    if (reader.isOver) this.#reading = undefined;
    if (!reader.isDiscarding) return true;
    this.#discarded += chunk.length;
    if (this.#discarded < DISCARDED_AT_ONCE) return true;
    this.#discarded = 0;
    setTimeout(() => this.#socket.resume(), DISCARD_PAUSE_MS).unref();
    return false;
  }

  /** A response is sent, or the connection is lost. */
  answered(): void {
    this.#open -= 1;
    this.#idleMs = 0;
    if (this.#open === 0 && this.#last !== undefined) this.end(this.#last);
  }

  /** Called every `IDLE_TICK_MS`. */
  tick(): void {
    if (this.#open > 0) return;
    this.#idleMs += IDLE_TICK_MS;
    // The first tick comes early.
    if (this.#idleMs > KEEP_ALIVE_MS) this.#socket.destroy();
  }

  /** The reply to a request is its last one. */
  refused(): void {
    this.#isRefused = true;
  }

  failed(error: Error): void {
    const refusal = unparsedRefusal(error);
    if (refusal === undefined || !this.#socket.writable) this.#socket.destroy();
    else this.refuseRest(refusal);
  }

  /** Refuses malformed data, in response to the request that contains it, or after earlier responses. */
  refuseRest(refusal: Refusal): void {
    if (this.#isRefused && this.#open > 0) return;
    if (this.#reading !== undefined) {
      this.#reading.bodyReader?.cancel();
      this.#reading.refuse(refusal);
      return;
    }
    if (this.#open > 0) this.#last = refusal;
    else if (this.#isRefused) this.#socket.destroy();
    else this.end(refusal);
    this.#isRefused = true;
  }

  /** Closes the connection with a response that belongs to no request. */
  end(refusal: Refusal): void {
    const reply = refusalReply(refusal);
    const { status, body = '', headers = NO_HEADERS } = reply;
    const requestId = this.#transport.options.newRequestId();
    const head = headText(status, typeOf(reply)) + requestId + headerText(headers);
    const length = `content-length: ${Buffer.byteLength(body)}`;
    const text = `HTTP/1.1 ${head}\r\n${length}${CLOSE}\r\n\r\n${body}`;
    this.#socket.end(text, () => this.#socket.destroy());
  }
}

function headOf(req: IncomingMessage): RequestHead {
  const target = req.url ?? '';
  const mark = target.indexOf('?');
  const head = new RequestHead(
    req.method ?? '',
    mark < 0 ? target : target.slice(0, mark),
    mark < 0 ? '' : target.slice(mark + 1),
  );
  const raw = req.rawHeaders;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    head.add((raw[i] ?? '').toLowerCase(), asUtf8(raw[i + 1] ?? ''));
  }
  if (req.httpVersionMajor !== 1) head.reject(`HTTP/${req.httpVersion} is not served`);
  else if (req.httpVersionMinor === 0 && head.header('transfer-encoding') !== undefined) {
    head.reject('HTTP/1.0 has no transfer-encoding');
  }
  return head;
}

/** Node decodes header values as latin1; clients send UTF-8, which the other backend decodes. */
function asUtf8(value: string): string {
  return NON_ASCII.test(value) ? Buffer.from(value, 'latin1').toString('utf8') : value;
}

const CLOSE = '\r\nconnection: close';
const KEEP = `\r\nconnection: keep-alive\r\nkeep-alive: timeout=${KEEP_ALIVE_MS / 1_000}`;

/** Undefined when no one would receive it: the connection is broken, or the client has closed it. */
function unparsedRefusal(error: Error): Refusal | undefined {
  const code = 'code' in error ? String(error.code) : '';
  if (code === 'HPE_HEADER_OVERFLOW') return headersTooLarge('far beyond the limit');
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return { status: 408, message: 'the request came too slowly' };
  }
  if (!code.startsWith('HPE_') || code === 'HPE_INVALID_EOF_STATE') return undefined;
  return MALFORMED;
}

let second = 0;
let date = '';

/** Made once a second. */
function dateNow(): string {
  const now = Math.trunc(Date.now() / 1_000);
  if (now !== second) date = new Date().toUTCString();
  second = now;
  return date;
}

class NodeExchange extends Exchange {
  readonly #res: NodeResponse;

  constructor(transport: Transport, head: RequestHead, res: NodeResponse) {
    super(transport, head);
    this.#res = res;
  }

  protected sendReply(reply: HttpReply): void {
    if (!this.#res.headersSent) this.#write(reply);
    this.#res.end();
  }

  /** The head contains the length, so the client has a complete response. */
  protected override sendEarly(reply: HttpReply): void {
    this.#write(reply);
    this.#res.flushHeaders();
  }

  protected sendStreamHead(head: HttpStreamHead, isWhole: boolean): void {
    const res = this.#res;
    res.chunkedEncoding = res.useChunkedEncodingByDefault && !isWhole;
    // Without chunks a stream ends with its connection.
    const isLast = this.mustClose || !(res.chunkedEncoding || isWhole);
    const chunks = res.chunkedEncoding ? '\r\ntransfer-encoding: chunked' : '';
    this.#start(this.headOf(head, head.contentType) + chunks, isLast);
    if (isWhole) res.end();
    else res.on('drain', () => this.drained());
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

  /** Node writes the head as latin1, so a body behind it is given as the bytes of its UTF-8. */
  #write(reply: HttpReply): void {
    const { status, body = '' } = reply;
    if (this.isRefused) this.#res.owner?.refused();
    const bytes = Buffer.byteLength(body);
    const length = status === 204 || status === 304 ? '' : `\r\ncontent-length: ${bytes}`;
    this.#start(this.headOf(reply, typeOf(reply)) + length, this.mustClose);
    if (this.head.method === 'HEAD') return;
    const isAscii = typeof body === 'string' && bytes === body.length;
    this.#res._header += isAscii ? body : Buffer.from(body as string).toString('latin1');
  }

  /** Sets the head, which Node sends with the first data. */
  #start(head: string, mustClose: boolean): void {
    const res = this.#res;
    res._last = mustClose || !res.shouldKeepAlive;
    res._header = `HTTP/1.1 ${head}\r\ndate: ${dateNow()}${res._last ? CLOSE : KEEP}\r\n\r\n`;
  }
}
