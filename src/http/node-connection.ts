/** One connection on node:http: the order of its pipelined requests, and responses to malformed ones. */

import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { EngineError, invalid } from '../base/errors.js';
import { LIMITS } from '../base/limits.js';
import type { SpareConnection } from './connections.js';
import { Exchange } from './exchange.js';
import {
  type HeaderList,
  NO_HEADERS,
  type Refusal,
  refusalReply,
  typeHeaders,
  typeOf,
} from './reply.js';
import { headersTooLarge, RequestHead } from './request-head.js';
import type { HttpReply, HttpStreamHead } from './server.js';
import type { Transport } from './transport.js';

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

export class NodeConnection {
  spare: SpareConnection | undefined;
  readonly #transport: Transport;
  readonly #socket: Duplex;
  #open = 0;
  /** No more requests are served: the client was informed that the connection closes. */
  #isRefused = false;
  /** The request whose body is incomplete. Requests behind it wait, since it may be refused. */
  #reading: { readonly req: IncomingMessage; readonly exchange: NodeExchange } | undefined;
  readonly #behind: (() => void)[] = [];
  /** Sent after the responses to earlier requests: the data behind them is no request. */
  #last: Refusal | undefined;

  constructor(transport: Transport, socket: Duplex) {
    this.#transport = transport;
    this.#socket = socket;
  }

  serve(req: IncomingMessage, res: ServerResponse, expectsContinue: boolean): void {
    if (this.#isRefused) return;
    this.#open += 1;
    res.on('close', () => {
      this.#open -= 1;
      if (this.#open === 0 && this.#last !== undefined) this.end(this.#last);
    });
    const serve = () => this.#serveOne(req, res, expectsContinue);
    if (this.#reading === undefined) serve();
    else this.#behind.push(serve);
  }

  #serveOne(req: IncomingMessage, res: ServerResponse, expectsContinue: boolean): void {
    const { options } = this.#transport;
    const head = headOf(req);
    head.peer = () => this.#transport.clientOf(head, req.socket.remoteAddress ?? '');
    const exchange = new NodeExchange(this.#transport, head, res, () => {
      this.#isRefused = true;
    });
    if (this.spare !== undefined) {
      exchange.unplaced = this.spare.refusal;
      options.connections?.spare.letGo(this.spare);
    }
    res.on('close', () => exchange.abort());
    if (this.#open > LIMITS.pipelinedRequestsMax) {
      head.settle(options, options.newRequestId);
      exchange.refuse(TOO_MANY_PIPELINED);
      return;
    }
    const reader = this.#transport.begin(head, exchange, false, expectsContinue);
    if (reader === undefined) return;
    if (expectsContinue) res.writeContinue();
    this.#reading = { req, exchange };
    let discarded = 0;
    const take = (chunk: Buffer, isLast: boolean) => {
      reader.push(chunk, isLast);
      if (reader.isOver) this.#serveBehind();
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

  #serveBehind(): void {
    this.#reading = undefined;
    while (this.#reading === undefined && !this.#isRefused) {
      const next = this.#behind.shift();
      if (next === undefined) return;
      next();
    }
  }

  failed(error: Error): void {
    const refusal = unparsedRefusal(error);
    if (refusal === undefined || !this.#socket.writable) this.#socket.destroy();
    else this.refuseRest(refusal);
  }

  /** Refuses malformed data, in response to the request that contains it, or after earlier responses. */
  refuseRest(refusal: Refusal): void {
    if (this.#isRefused && this.#open > 0) return;
    if (this.#reading !== undefined && !this.#reading.req.complete) {
      const { exchange } = this.#reading;
      exchange.bodyReader?.cancel();
      exchange.refuse(refusal);
      return;
    }
    if (this.#open > 0) this.#last = refusal;
    else if (this.#isRefused) this.#socket.destroy();
    else this.end(refusal);
    this.#isRefused = this.#behind.length === 0;
  }

  /** Closes the connection with a response that belongs to no request. */
  end(refusal: Refusal): void {
    const text = refusalText(refusal, this.#transport.options.newRequestId());
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
  else if (req.httpVersionMinor === 0 && req.headers['transfer-encoding'] !== undefined) {
    head.reject('HTTP/1.0 has no transfer-encoding');
  }
  return head;
}

/** Node decodes header values as latin1; clients send UTF-8, which the other backend decodes. */
function asUtf8(value: string): string {
  return NON_ASCII.test(value) ? Buffer.from(value, 'latin1').toString('utf8') : value;
}

function refusalText(refusal: Refusal, requestId: string): string {
  const reply = refusalReply(refusal);
  const { status, body = '', headers = [] } = reply;
  return [
    `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}`,
    `x-request-id: ${requestId}`,
    ...[...headers, ...typeHeaders(typeOf(reply))].map(([name, value]) => `${name}: ${value}`),
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
    '',
    body,
  ].join('\r\n');
}

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

class NodeExchange extends Exchange {
  readonly #res: ServerResponse;
  readonly #onRefused: () => void;

  /** @param onRefused called for a refusal after which nothing is served */
  constructor(transport: Transport, head: RequestHead, res: ServerResponse, onRefused: () => void) {
    super(transport, head);
    this.#res = res;
    this.#onRefused = onRefused;
  }

  protected sendReply(reply: HttpReply): void {
    if (this.#res.headersSent) {
      this.#res.end();
      return;
    }
    this.#writeReplyHead(reply);
    this.#res.end(this.head.method === 'HEAD' ? undefined : reply.body);
  }

  protected override sendEarly(reply: HttpReply): void {
    this.#writeReplyHead(reply);
    // The head contains the length, so the client has a complete response.
    this.#res.write(this.head.method === 'HEAD' ? '' : (reply.body ?? ''));
  }

  protected sendStreamHead(head: HttpStreamHead, isWhole: boolean): void {
    this.#res.writeHead(head.status, this.#flatHeaders(head.contentType, head.headers));
    if (isWhole) this.#res.end();
    else this.#res.on('drain', () => this.drained());
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

  #writeReplyHead(reply: HttpReply): void {
    const { status, body } = reply;
    if (this.isRefused) this.#onRefused();
    const flat = this.#flatHeaders(typeOf(reply), reply.headers);
    if (status !== 204 && status !== 304) {
      flat.push('content-length', String(body === undefined ? 0 : Buffer.byteLength(body)));
    }
    this.#res.writeHead(status, flat);
  }

  #flatHeaders(contentType: string | undefined, headers: HeaderList = NO_HEADERS): string[] {
    const flat = ['x-request-id', this.head.requestId];
    for (const list of [typeHeaders(contentType), headers, this.corsHeaders]) {
      for (const [name, value] of list) flat.push(name, value);
    }
    if (this.mustClose) flat.push('connection', 'close');
    return flat;
  }
}
