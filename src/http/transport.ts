/** The work of both backends between socket and handler: check heads, limit bodies, answer preflights. */

import { BODY_BYTES_ANYWHERE } from '../../schema/route-row.js';
import type { EngineError } from '../base/errors.js';
import type { Exchange } from './exchange.js';
import { type CorsPolicy, corsPolicy, refusalReply } from './reply.js';
import { BodyBudget, BodyDeadlines, BodyReader } from './request-body.js';
import type { RequestHead } from './request-head.js';
import type { HttpHandler, HttpServer, HttpServerOptions } from './server.js';

/** Enough for four bodies of the maximum size. */
const BUFFERED_BYTES_MAX = 48 * 1024 * 1024;

export interface BoundSocket {
  stopListening(): void;
  close(): void | Promise<void>;
}

export class Transport {
  readonly options: HttpServerOptions;
  readonly cors: CorsPolicy;
  /** Each reply closes its connection from then on. */
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

  /** Undefined: there is no body to read. @param isBodyHeldBack the client waits for `100 Continue` */
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
      owner: exchange,
    });
    exchange.bodyReader = reader;
    return reader.isOver ? undefined : reader;
  }

  /** @returns the refusal of a request without a fault */
  #unserved(head: RequestHead, exchange: Exchange): EngineError | undefined {
    if (head.contentLength === 0 && this.options.probePaths?.has(head.path)) return undefined;
    return exchange.unplaced ?? this.#enter(head, exchange) ?? this.#overload(head);
  }

  /** @returns the refusal when the address has too many requests in flight */
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

  /** The server on a bound socket, whose functions are called once. */
  serverOn(port: number, socket: BoundSocket): HttpServer {
    const stopListening = () => {
      if (this.isStopping) return;
      this.isStopping = true;
      socket.stopListening();
    };
    let closed: Promise<void> | undefined;
    const close = async () => {
      stopListening();
      this.close();
      await socket.close();
    };
    return {
      port,
      stopListening,
      close: () => {
        closed ??= close();
        return closed;
      },
    };
  }

  close(): void {
    this.#deadlines.stop();
  }
}
