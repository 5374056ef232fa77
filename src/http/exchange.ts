/** The life cycle of an exchange on both backends: at most one response, and none after a disconnect. */

import type { EngineError } from '../base/errors.js';
import {
  DEFECT,
  type HeaderList,
  headerText,
  headText,
  NO_HEADERS,
  type Refusal,
  refusalReply,
} from './reply.js';
import type { BodyReader } from './request-body.js';
import type { RequestHead } from './request-head.js';
import type { AnswerHooks, HttpBodyStream, HttpReply, HttpStreamHead } from './server.js';
import type { Transport } from './transport.js';

/** uWebSockets.js does not check values: a line break would forge a response. */
const HEADER_UNWANTED = /[^\t\x20-\x7e]/;

const NO_STREAM: HttpBodyStream = { write: () => false, onDrain: () => {}, end: () => {} };

type Phase = 'waiting' | 'streaming' | 'over';

export abstract class Exchange {
  /** The reader of a body that is still arriving. */
  bodyReader: BodyReader | undefined;
  /** The address whose requests in flight include this one; undefined: not counted, or no longer. */
  address: string | undefined;
  /** Set on a connection beyond the limits: the response to everything but a health check. */
  unplaced: EngineError | undefined;
  protected readonly transport: Transport;
  protected readonly head: RequestHead;
  #phase: Phase = 'waiting';
  #isRefused = false;
  #isAbandoned = false;
  #isEnded = false;
  #hooks: AnswerHooks | undefined;
  #headers = '';
  #abortListeners: (() => void)[] | undefined;
  #endListeners: (() => void)[] | undefined;
  #drainListener: (() => void) | undefined;

  constructor(transport: Transport, head: RequestHead) {
    this.transport = transport;
    this.head = head;
  }

  /** True once the client disconnected before the response, or the end of the stream, was written. */
  get aborted(): boolean {
    return this.#isAbandoned || this.#isEnded;
  }

  follow(hooks: AnswerHooks): void {
    this.#hooks = hooks;
  }

  /** Adds headers to the reply, as text. @param text each header after a line break, printable ASCII */
  addHeaders(text: string): void {
    this.#headers += text;
  }

  /**
   * Calls `listener` once when the exchange is aborted, at once if it already is. A stream that answers HEAD counts
   * as aborted after its head, so that producers stop.
   */
  onAbort(listener: () => void): void {
    if (this.aborted) listener();
    else if (this.#abortListeners === undefined) this.#abortListeners = [listener];
    else this.#abortListeners.push(listener);
  }

  /** Calls `listener` once when the exchange is over: answered, its stream ended, or aborted. */
  onEnd(listener: () => void): void {
    if (this.aborted || this.#phase === 'over') listener();
    else if (this.#endListeners === undefined) this.#endListeners = [listener];
    else this.#endListeners.push(listener);
  }

  /** Exactly once per exchange, instead of `stream`; does nothing after an abort. */
  reply(reply: HttpReply): void {
    if (this.#isEnded) return;
    this.#callEndListeners();
    const delayMs = this.#hooks?.delayMs(reply.status) ?? 0;
    if (delayMs === 0) this.#send(reply);
    else setTimeout(() => this.#send(reply), delayMs).unref();
    this.#hooks?.answered(reply);
  }

  /** Exactly once per exchange, instead of `reply`; after an abort the stream discards everything. */
  stream(head: HttpStreamHead): HttpBodyStream {
    if (this.#isEnded) return NO_STREAM;
    const body = this.#open(head);
    this.#hooks?.answered(head);
    return body;
  }

  /** Ends a stream, or responds with the refusal; the exchange then counts as aborted. Does nothing when it is over. */
  end(refusal: HttpReply): void {
    if (this.aborted || this.#phase === 'over') return;
    if (this.#phase === 'streaming') this.#finish();
    else this.reply(refusal);
    this.#isEnded = true;
    this.#callAbortListeners();
  }

  #send(reply: HttpReply): void {
    if (!this.#mayAnswer(reply.headers)) return;
    this.#phase = 'over';
    try {
      this.sendReply(reply);
    } catch (error) {
      // Nothing was sent, so the caller may send another response.
      this.#phase = 'waiting';
      throw error;
    }
    this.#leaveAddress();
  }

  #open(head: HttpStreamHead): HttpBodyStream {
    if (!this.#mayAnswer(head.headers)) return NO_STREAM;
    const isHead = this.head.method === 'HEAD';
    this.#phase = isHead ? 'over' : 'streaming';
    this.sendStreamHead(head, isHead);
    if (isHead) {
      // Deferred, because the producer registers its listener after this.
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
        if (!this.aborted && this.#phase === 'streaming') this.#finish();
      },
    };
  }

  #finish(): void {
    this.#phase = 'over';
    this.#leaveAddress();
    this.#callEndListeners();
    this.endStream();
  }

  /** False after a disconnect. A second response is a defect of the caller, and is dropped. */
  #mayAnswer(headers: HeaderList | undefined): boolean {
    if (this.#isAbandoned) return false;
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

  complete(body: Buffer): void {
    this.head.body = body;
    this.transport.dispatch(this.head, this);
  }

  /** Responds with the refusal and closes the connection afterwards. */
  refuse(refusal: Refusal): void {
    this.#isRefused = true;
    this.#send(refusalReply(refusal));
  }

  /** Announces `refuse`, which follows once the body is discarded. A backend that can sends the response at once. */
  announce(refusal: Refusal): void {
    this.#isRefused = true;
    this.sendEarly(refusalReply(refusal));
  }

  /** For a handler that threw: 500 if there is no response yet, else the connection is cut. */
  fail(): void {
    if (this.#phase === 'waiting') this.#send(refusalReply(DEFECT));
    else if (this.#phase === 'streaming' && !this.aborted) this.destroy();
  }

  /** The connection is closed; nothing is written any more. */
  abort(): void {
    if (this.#isAbandoned || this.#phase === 'over') return;
    this.bodyReader?.cancel();
    this.#leave();
  }

  #leave(): void {
    this.#isAbandoned = true;
    this.#leaveAddress();
    this.#callEndListeners();
    this.#callAbortListeners();
  }

  #leaveAddress(): void {
    if (this.address === undefined) return;
    this.transport.options.requests?.leave(this.address);
    this.address = undefined;
  }

  #callAbortListeners(): void {
    const listeners = this.#abortListeners;
    this.#abortListeners = undefined;
    if (listeners !== undefined) for (const listener of listeners) this.#call(listener);
  }

  #callEndListeners(): void {
    const listeners = this.#endListeners;
    this.#endListeners = undefined;
    if (listeners !== undefined) for (const listener of listeners) this.#call(listener);
  }

  /** Native code calls the listeners, and an exception there ends the process. */
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

  /** To be called when the socket has room again after `writeChunk` returned false. */
  protected drained(): void {
    if (this.aborted || this.#phase !== 'streaming' || this.#drainListener === undefined) return;
    this.#call(this.#drainListener);
  }

  /** The connection cannot be reused: the position of the next request is unknown. */
  protected get isRefused(): boolean {
    return this.#isRefused || this.unplaced !== undefined;
  }

  protected get mustClose(): boolean {
    return this.isRefused || this.transport.isStopping;
  }

  /** The status and the headers, without those of the body's length and of the connection. */
  protected headOf(
    { status, headers = NO_HEADERS }: Pick<HttpReply, 'status' | 'headers'>,
    contentType: string | undefined,
  ): string {
    const start = headText(status, contentType) + this.head.requestId + this.#headers;
    const cors = this.transport.cors.replyHeaders(this.head.origin);
    return start + headerText(headers) + headerText(cors);
  }

  /** Writes the reply before `sendReply`, which then only closes the connection. */
  protected sendEarly(_reply: HttpReply): void {}

  protected abstract sendReply(reply: HttpReply): void;

  /** Writes the head of a stream; `isWhole` ends the reply after it. */
  protected abstract sendStreamHead(head: HttpStreamHead, isWhole: boolean): void;

  /** Returns false if the socket is full; `drained` follows. `chunk` is not empty. */
  protected abstract writeChunk(chunk: string | Buffer): boolean;

  protected abstract endStream(): void;

  protected abstract destroy(): void;
}
