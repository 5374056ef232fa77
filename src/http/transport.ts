/**
 * What both backends do alike between the socket and the handler: the life of an exchange, CORS,
 * refusals and the handler's own failures. A backend supplies only how bytes leave (`Exchange`'s
 * abstract part). An exchange is answered at most once, and never after its client went away:
 * that is decided here and nowhere else.
 */

import { BODY_BYTES_ANYWHERE } from '../../schema/route-row.js';
import { type AnswerMembers, EngineError, type ErrorCode } from '../base/errors.js';
import { type CorsPolicy, corsPolicy } from './cors.js';
import { BodyBudget, BodyDeadlines, BodyReader } from './request-body.js';
import type { RequestHead } from './request-head.js';
import type {
  HttpBodyStream,
  HttpExchange,
  HttpHandler,
  HttpReply,
  HttpServerOptions,
  HttpStreamHead,
} from './server.js';

/** Why a request is not served. An `EngineError` is one; a 408 has no code in the catalogue. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly code?: ErrorCode;
  readonly retryAfterMs?: number | undefined;
  readonly members?: AnswerMembers | undefined;
}

/** Of a defect nothing is told; the log has the request id. */
export const DEFECT = new EngineError('ENG_INTERNAL', 'internal error');

/** The body is the message, and what was found in a definition; the code goes into a header. */
export function refusalReply({ status, message, code, retryAfterMs, members }: Refusal): HttpReply {
  const headers: [string, string][] = [];
  if (code !== undefined) headers.push(['x-error-code', code]);
  if (retryAfterMs !== undefined) {
    headers.push(['retry-after', String(Math.ceil(retryAfterMs / 1_000))]);
  }
  if (members?.cell !== undefined) headers.push(['x-cell', members.cell]);
  return { status, body: JSON.stringify({ error: message, ...members }), headers };
}

export type HeaderList = readonly (readonly [string, string])[];

/** Enough for four maximum bodies at once, and less than the 64 MiB a crowd of them may cost. */
const BUFFERED_BYTES_MAX = 48 * 1024 * 1024;
export const JSON_TYPE = 'application/json';
/**
 * Of every answer in JSON, refusals too. It is for one caller and true for now: nobody in between keeps it.
 * It is what it says it is. And it depends on who asks, for whom, and whether a page is wanted.
 */
const JSON_HEADERS: HeaderList = [
  ['content-type', JSON_TYPE],
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
  ['vary', 'authorization, x-api-key, x-tenant-id, accept'],
];
const NO_HEADERS: HeaderList = [];

/** What the type of a body brings with it; undefined: there is none. */
export function typeHeaders(contentType: string | undefined): HeaderList {
  if (contentType === JSON_TYPE) return JSON_HEADERS;
  return contentType === undefined ? NO_HEADERS : [['content-type', contentType]];
}

/** uWebSockets.js writes a value as it is: a line break in one would forge the reply. */
const HEADER_UNWANTED = /[^\t\x20-\x7e]/;

export const NO_STREAM: HttpBodyStream = { write: () => false, onDrain: () => {}, end: () => {} };

/** The state that all connections of one server share. */
export class Transport {
  readonly options: HttpServerOptions;
  readonly cors: CorsPolicy;
  /** Once true, each reply closes its connection. */
  isStopping = false;
  readonly #handler: HttpHandler;
  readonly #budget: BodyBudget;
  readonly #deadlines: BodyDeadlines;

  constructor(options: HttpServerOptions, handler: HttpHandler) {
    this.options = options;
    this.cors = corsPolicy(options.corsOrigins);
    this.#handler = handler;
    this.#budget = new BodyBudget(
      options.maxBufferedBytes ?? Math.max(BUFFERED_BYTES_MAX, options.maxBodyBytes),
    );
    this.#deadlines = new BodyDeadlines(options.bodyIdleTimeoutMs);
  }

  /**
   * Judges a head whose headers are all added. Gives the reader to feed with the body, or undefined
   * when there is nothing to read: then the request was refused, or handed to the handler.
   * `isBodyHeldBack` says that the client waits for leave to send its body.
   */
  begin(
    head: RequestHead,
    exchange: Exchange,
    mustCopy: boolean,
    isBodyHeldBack = false,
  ): BodyReader | undefined {
    const fault = head.settle(this.options, this.options.newRequestId);
    const refusal = fault ?? this.#unserved(head, exchange);
    const isDiscardable =
      exchange.unplaced === undefined &&
      (fault === undefined || fault.status === 413 || fault.status === 415);
    if (refusal !== undefined && (isBodyHeldBack || !isDiscardable)) {
      exchange.refuse(refusal);
      return undefined;
    }
    if (head.contentLength === 0) {
      if (refusal === undefined) this.dispatch(head, exchange);
      else exchange.reply(refusalReply(refusal));
      return undefined;
    }
    if (refusal !== undefined) exchange.announce(refusal);
    const reader = new BodyReader({
      maxBodyBytes: head.bodyBytesMax,
      contentLength: head.contentLength,
      mustCopy,
      refusal,
      budget: this.#budget,
      deadlines: this.#deadlines,
      onComplete: (body) => {
        head.body = body;
        this.dispatch(head, exchange);
      },
      onRefused: (reason) => exchange.refuse(reason),
    });
    exchange.bodyReader = reader;
    return reader.isOver ? undefined : reader;
  }

  /** @returns why a request that has no fault is not served */
  #unserved(head: RequestHead, exchange: Exchange): EngineError | undefined {
    if (head.contentLength === 0 && this.options.probePaths?.has(head.path)) return undefined;
    return exchange.unplaced ?? this.#enter(head, exchange) ?? this.#overload(head);
  }

  /** @returns why its address has too many in flight */
  #enter(head: RequestHead, exchange: Exchange): EngineError | undefined {
    const { requests } = this.options;
    if (requests === undefined) return undefined;
    const address = head.peer();
    const refusal = requests.enter(address);
    if (refusal === undefined) exchange.address = address;
    return refusal;
  }

  clientOf(head: RequestHead, peer: string): string {
    return this.options.proxies?.clientOf(peer, head.header('x-forwarded-for')) ?? peer;
  }

  #overload({ contentLength }: RequestHead): EngineError | undefined {
    if (contentLength === undefined || contentLength <= BODY_BYTES_ANYWHERE) return undefined;
    return this.options.refuseBody?.(this.#budget.bytes + contentLength);
  }

  /** Answers a preflight, and hands everything else to the handler. */
  dispatch(head: RequestHead, exchange: Exchange): void {
    if (head.isPreflight) {
      exchange.reply({
        status: 204,
        body: undefined,
        headers: this.cors.preflightHeaders(head.origin),
      });
      return;
    }
    try {
      this.#handler(head, exchange);
    } catch (err) {
      this.options.log.error(
        { err, requestId: head.requestId, method: head.method, path: head.path },
        'the handler of a request failed',
      );
      exchange.fail();
    }
  }

  stop(): void {
    this.isStopping = true;
  }

  close(): void {
    this.isStopping = true;
    this.#deadlines.stop();
  }
}

type Phase = 'waiting' | 'streaming' | 'over';

export abstract class Exchange implements HttpExchange {
  aborted = false;
  /** The reader of a body that is still arriving. */
  bodyReader: BodyReader | undefined;
  /** Among whose requests it counts; undefined: it does not, or no more. */
  address: string | undefined;
  /** Its connection is beyond the bounds: it has one answer, which is this unless it asks how the engine is. */
  unplaced: EngineError | undefined;
  protected readonly transport: Transport;
  protected readonly head: RequestHead;
  #phase: Phase = 'waiting';
  #isRefused = false;
  #abortListeners: (() => void)[] | undefined;
  #drainListener: (() => void) | undefined;

  constructor(transport: Transport, head: RequestHead) {
    this.transport = transport;
    this.head = head;
  }

  onAbort(listener: () => void): void {
    if (this.aborted) listener();
    else if (this.#abortListeners === undefined) this.#abortListeners = [listener];
    else this.#abortListeners.push(listener);
  }

  reply(reply: HttpReply): void {
    if (!this.#mayAnswer(reply.headers)) return;
    this.#phase = 'over';
    const type = reply.body === undefined ? undefined : (reply.contentType ?? JSON_TYPE);
    try {
      this.sendReply(reply, type, reply.headers ?? NO_HEADERS, this.mustClose);
    } catch (error) {
      // Nothing was sent: whoever gave the reply may give another.
      this.#phase = 'waiting';
      throw error;
    }
    this.#leaveAddress();
  }

  stream(head: HttpStreamHead): HttpBodyStream {
    if (!this.#mayAnswer(head.headers)) return NO_STREAM;
    const isHead = this.head.method === 'HEAD';
    this.#phase = isHead ? 'over' : 'streaming';
    this.sendStreamHead(head, isHead, this.mustClose);
    if (isHead) {
      // Not at once: the producer has not yet had the chance to register its listener.
      queueMicrotask(() => this.#leave());
      return NO_STREAM;
    }
    return {
      write: (chunk) => {
        if (this.aborted || this.#phase !== 'streaming') return false;
        return chunk.length === 0 || this.writeChunk(chunk);
      },
      onDrain: (listener) => {
        this.#drainListener = listener;
      },
      end: () => {
        if (this.aborted || this.#phase !== 'streaming') return;
        this.#phase = 'over';
        this.#leaveAddress();
        this.endStream();
      },
    };
  }

  /** Answers with the refusal's error body and closes the connection afterwards. */
  refuse(refusal: Refusal): void {
    this.#isRefused = true;
    this.reply(refusalReply(refusal));
  }

  /**
   * `refuse` follows once the rest of the body was discarded. Where a backend can, the client has the answer
   * before that, and need not send what nobody reads.
   */
  announce(refusal: Refusal): void {
    this.#isRefused = true;
    const reply = refusalReply(refusal);
    this.sendEarly(reply, JSON_TYPE, reply.headers ?? NO_HEADERS);
  }

  /** The handler threw: 500 if nothing was answered yet, else the reply under way is cut off. */
  fail(): void {
    if (this.#phase === 'waiting') {
      this.reply(refusalReply(DEFECT));
    } else if (this.#phase === 'streaming' && !this.aborted) {
      this.destroy();
    }
  }

  /** The connection is gone. Nothing is written from here on. */
  abort(): void {
    if (this.aborted || this.#phase === 'over') return;
    this.bodyReader?.cancel();
    this.#leave();
  }

  #leaveAddress(): void {
    if (this.address === undefined) return;
    this.transport.options.requests?.leave(this.address);
    this.address = undefined;
  }

  #leave(): void {
    this.aborted = true;
    this.#leaveAddress();
    const listeners = this.#abortListeners ?? [];
    this.#abortListeners = undefined;
    for (const listener of listeners) this.#call(listener);
  }

  /** The socket has room again after `writeChunk` gave false. */
  protected drained(): void {
    if (this.aborted || this.#phase !== 'streaming' || this.#drainListener === undefined) return;
    this.#call(this.#drainListener);
  }

  /** True if the connection cannot be used again: who knows where the next request begins. */
  protected get isRefused(): boolean {
    return this.#isRefused || this.unplaced !== undefined;
  }

  protected get mustClose(): boolean {
    return this.isRefused || this.transport.isStopping;
  }

  /** Headers that every reply to this request carries. */
  protected get corsHeaders(): HeaderList {
    return this.transport.cors.replyHeaders(this.head.origin);
  }

  /** Writes the reply of which `sendReply` follows, and which closes the connection then. */
  protected sendEarly(_reply: HttpReply, _contentType: string, _headers: HeaderList): void {}

  /** Writes the whole reply; without the body when the method is HEAD. */
  protected abstract sendReply(
    reply: HttpReply,
    contentType: string | undefined,
    headers: HeaderList,
    mustClose: boolean,
  ): void;

  /** Writes the head of a stream, and ends the reply there when `isWhole`. */
  protected abstract sendStreamHead(
    head: HttpStreamHead,
    isWhole: boolean,
    mustClose: boolean,
  ): void;

  /** Gives false if the socket is full; then `drained` follows. `chunk` is not empty. */
  protected abstract writeChunk(chunk: string | Buffer): boolean;

  protected abstract endStream(): void;

  /** Cuts the connection, which aborts the exchange. */
  protected abstract destroy(): void;

  /** A listener is called from within native code, which ends the process if it throws. */
  #call(listener: () => void): void {
    try {
      listener();
    } catch (err) {
      this.transport.options.log.error(
        { err, requestId: this.head.requestId, path: this.head.path },
        'a listener of an exchange failed',
      );
      this.fail();
    }
  }

  /**
   * False when there is nobody to answer. A second answer is dropped with a log line: it is a defect
   * of its caller, which no other request should suffer from.
   */
  #mayAnswer(headers: HeaderList | undefined): boolean {
    if (this.aborted) return false;
    if (this.#phase !== 'waiting') {
      this.transport.options.log.error(
        { err: new Error('second answer'), requestId: this.head.requestId, path: this.head.path },
        'a second answer to one request was dropped',
      );
      return false;
    }
    for (const [name, value] of headers ?? NO_HEADERS) {
      if (HEADER_UNWANTED.test(value)) throw new Error(`reply header ${name} has a bad value`);
    }
    return true;
  }
}
